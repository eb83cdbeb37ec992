"""``u^j`` times a Gaussian, integrated over an interval, in every regime.

Closed forms lose digits where the Gaussian is broad: they are differences of numbers that are
larger than the answer by powers of its width. There a quadrature with few nodes is exact.
"""

import math
from functools import cache
from typing import Any, List, Tuple

import numpy as np
import torch
from torch import Tensor
from torch.autograd import Function


@cache
def gauss_legendre(nodes: int) -> Tuple[Tuple[float, float], ...]:
    """Nodes in ``[-1, 1]`` and their weights."""
    return tuple(zip(*(part.tolist() for part in np.polynomial.legendre.leggauss(nodes))))


def normal(t: Tensor) -> Tensor:
    """The standard normal density."""
    return torch.exp(-0.5 * t.square()) / math.sqrt(2 * math.pi)


def normal_between(lower: Tensor, upper: Tensor) -> Tensor:
    """The standard normal's mass in an interval, to full precision on both tails."""
    flip = lower > 0
    low = torch.where(flip, -upper, lower) * math.sqrt(0.5)
    high = torch.where(flip, -lower, upper) * math.sqrt(0.5)
    return 0.5 * (torch.erfc(-high) - torch.erfc(-low))


def gaussian_moments(
    mean: Tensor, width: Tensor, degree: int, lower: float, broad: float, nodes: int
) -> List[Tensor]:
    """``int_lower^1 u^j N(u; mean, width^2) du`` for j from 0 to `degree`.

    Args:
        mean, width: of one shape.
        broad, nodes: Gaussians at least so wide are integrated by so many nodes.
    """
    is_broad = width >= broad
    exact = closed_form(mean, width.clamp(max=broad), degree, lower)
    if width.is_cpu:  # elsewhere a selection would wait
        if bool(is_broad.any()):
            numeric = _quadrature(mean[is_broad], width[is_broad], degree, lower, nodes)
            for total, part in zip(exact, numeric):
                total[is_broad] = part
        return exact
    numeric = _quadrature(mean, width, degree, lower, nodes)
    return [torch.where(is_broad, *pair) for pair in zip(numeric, exact)]


def _quadrature(mean: Tensor, width: Tensor, degree: int, lower: float, nodes: int) -> List[Tensor]:
    half = (1 - lower) / 2
    numeric = [torch.zeros_like(mean) for _ in range(degree + 1)]
    for node, weight in gauss_legendre(nodes):
        u = lower + half * (1 + node)
        value = half * weight / width * normal((u - mean) / width)
        for j, total in enumerate(numeric):
            total.add_(value, alpha=u**j)
    return numeric


def closed_form(mean: Tensor, width: Tensor, degree: int, lower: float) -> List[Tensor]:
    """``int_lower^1 u^j N(u; mean, width^2) du`` for j from 0 to `degree`, by parts.

    Good for widths that are small against the interval: their squares multiply rounding errors.
    """
    low, high = (lower - mean) / width, (1 - mean) / width
    at_low, at_high = width * normal(low), width * normal(high)
    moments = [normal_between(low, high)]
    moments.append(mean * moments[0] - (at_high - at_low))
    for j in range(2, degree + 1):
        boundary = at_high - lower ** (j - 1) * at_low
        moments.append(mean * moments[-1] + (j - 1) * width.square() * moments[-2] - boundary)
    return moments[: degree + 1]


class Once(Function):
    """A derivative as it is, of `inputs` that nobody may differentiate it for.

    torch's ``once_differentiable`` does not notice where the gradient handed in is a constant, and
    then leaves a term of the second derivative out.
    """

    @staticmethod
    def forward(ctx: Any, derivative: Tensor, *inputs: Tensor) -> Tensor:
        return derivative.view_as(derivative)

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> Tuple[Any, ...]:
        raise RuntimeError("expectations of truncated densities are differentiable once only")
