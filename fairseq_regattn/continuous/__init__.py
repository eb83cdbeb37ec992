"""Attention over a continuum: densities, their expectations, and values as functions.

What Martins et al. (NeurIPS 2020, paper B) call continuous softmax and continuous sparsemax, on the
line and in the plane. Never imports fairseq.
"""

from fairseq_regattn.continuous.basis import LineBasis, PlaneBasis
from fairseq_regattn.continuous.line import (
    Biweight,
    Gaussian,
    LineDensity,
    Parabola,
    Triweight,
)
from fairseq_regattn.continuous.plane import Paraboloid, PlaneDensity, PlaneGaussian
from fairseq_regattn.continuous.regression import RidgeRegression, positions

__all__ = [
    "Biweight",
    "Gaussian",
    "LineBasis",
    "LineDensity",
    "Parabola",
    "Paraboloid",
    "PlaneBasis",
    "PlaneDensity",
    "PlaneGaussian",
    "RidgeRegression",
    "Triweight",
    "positions",
]
