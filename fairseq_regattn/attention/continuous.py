"""Attention by a density over the sentence, or over an image (paper B)."""

from typing import Any, Dict, Optional, Tuple, Type

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from fairseq_regattn.attention.attention import Attention, Memory, Named
from fairseq_regattn.attention.registry import BoundMapping, build_mapping
from fairseq_regattn.attention.scores import check_score
from fairseq_regattn.continuous import (
    Biweight,
    Gaussian,
    LineBasis,
    LineDensity,
    Parabola,
    Paraboloid,
    PlaneBasis,
    PlaneDensity,
    PlaneGaussian,
    RidgeRegression,
    Triweight,
    positions,
)
from fairseq_regattn.continuous.regression import MARGIN
from fairseq_regattn.errors import UsageError

LINE_DENSITIES: Dict[str, Type[LineDensity]] = {
    "continuous_softmax": Gaussian,
    "continuous_sparsemax": Parabola,
    "continuous_biweight": Biweight,
    "continuous_triweight": Triweight,
}

PLANE_DENSITIES: Dict[str, Type[PlaneDensity]] = {
    "continuous_softmax": PlaneGaussian,
    "continuous_sparsemax": Paraboloid,
}

COMBINATIONS = ("sum", "replace")

RIDGE = 0.01
"""The penalty of the regression, in all of paper B's experiments."""

SIDE, VARIANCE = 10, 0.001
"""Basis functions along each side of an image, and the variance of each, in those of paper B."""


class LineAttention(Attention):
    """Attend with a density over the sentence, which is the interval ``[0, 1]``.

    The discrete weights of `mapping`, over the middles of equal bins of ``[0, 1]``, give a mean
    and a variance; the density that has them reads the values as a function of position. Padding
    takes no part in either. The weights that are shown are the density's masses in the bins,
    divided by its mass in the sentence.

    Args:
        query_dim, value_dim, score, allow_swap: as for :class:`Attention`.
        mapping: gives the moments.
        density: of :data:`LINE_DENSITIES`.
        regression: turns values into functions.
        combine: sum (of the discrete context and the density's, as in paper B) or replace.
        name: as for :class:`Attention`.

    Raises:
        UsageError: as for :class:`Attention`, and an unknown way to combine.
    """

    def __init__(
        self,
        query_dim: int,
        value_dim: int,
        mapping: BoundMapping,
        density: Type[LineDensity],
        regression: RidgeRegression,
        combine: str = "sum",
        score: str = "general",
        allow_swap: bool = False,
        name: str = "continuous()",
    ):
        super().__init__(query_dim, value_dim, mapping, score, allow_swap, name)
        _check_combine(combine)
        self.density = density
        self.regression = regression
        self.combine = combine

    def remember(self, values: Tensor, padding_mask: Tensor) -> Memory:
        return _as_function(super().remember(values, padding_mask), self.regression)

    def read(self, weights: Tensor, memory: Memory) -> Tuple[Tensor, Tensor]:
        mean, variance = _moments(weights, memory.places)
        density = self.density.from_moments(mean.squeeze(-1), variance.flatten(-3))
        context, shown = self.read_density(density, memory)
        if self.combine == "sum":
            context = context + torch.bmm(weights, memory.values)
        return context, shown

    def read_density(self, density: LineDensity, memory: Memory) -> Tuple[Tensor, Tensor]:
        """The context of densities ``bsz x n``, and their weights ``bsz x n x src_len``."""
        return _read(density, memory, self.regression)


class PredictedLineAttention(Named):
    """Attend to a sequence once, with a density whose parameters are predicted from its values.

    ``mu = sigmoid(.)`` and ``sigma2 = softplus(.)`` of a linear layer on the highest outputs, over
    time, of a convolution of three neighbours with ReLU: paper B's model of documents. There are
    no scores, and no discrete weights.

    Args:
        value_dim: size of the values.
        hidden_size: of the convolution.
        density, regression: as for :class:`LineAttention`.
        name, allow_swap: as for :class:`Named`; checkpoints without a name are loaded.
    """

    def __init__(
        self,
        value_dim: int,
        hidden_size: int,
        density: Type[LineDensity],
        regression: RidgeRegression,
        name: str = "predicted()",
        allow_swap: bool = False,
    ):
        super().__init__(name, allow_swap)
        self.convolution = nn.Conv1d(value_dim, hidden_size, kernel_size=3, padding=1)
        self.output = nn.Linear(hidden_size, 2)
        self.density = density
        self.regression = regression

    def forward(self, values: Tensor, padding_mask: Tensor) -> Tuple[Tensor, Tensor]:
        """``bsz x length x value_dim`` -> context ``bsz x value_dim``, weights ``bsz x length``."""
        values = values.masked_fill(padding_mask.unsqueeze(2), 0)  # as if nothing was there
        highest = torch.relu(self.convolution(values.transpose(1, 2)))
        highest = highest.masked_fill(padding_mask.unsqueeze(1), 0).amax(2)
        mu, sigma2 = self.output(highest).to(_precise(values)).split(1, dim=1)
        density = self.density.from_score(torch.sigmoid(mu), F.softplus(sigma2))
        nothing = Memory(values[..., :0], values, padding_mask, values[..., :0], values[:, :0])
        context, weights = _read(density, _as_function(nothing, self.regression), self.regression)
        return context.squeeze(1), weights.squeeze(1)

    def _load_from_state_dict(self, state_dict: Any, prefix: str, *rest: Any) -> None:
        known = {f"{prefix}mapping_version": self.mapping_version, **state_dict}
        super()._load_from_state_dict(known, prefix, *rest)


class PlaneAttention(Attention):
    """As :class:`LineAttention`, over the cells of a grid, which is the unit square.

    The context is the density's alone, as in paper B's model of images. The weights that are
    shown are those of the density at the middles of the cells.
    """

    def __init__(
        self,
        query_dim: int,
        value_dim: int,
        mapping: BoundMapping,
        density: Type[PlaneDensity],
        regression: RidgeRegression,
        score: str = "general",
        allow_swap: bool = False,
        name: str = "continuous()",
    ):
        super().__init__(query_dim, value_dim, mapping, score, allow_swap, name)
        self.density = density
        self.regression = regression

    def remember_grid(self, grid: Tensor) -> Memory:
        """Prepare features ``bsz x height x width x value_dim``."""
        bsz, height, width = grid.shape[:3]
        memory = super().remember_grid(grid)
        cells = torch.cartesian_prod(positions(height), positions(width))
        places = cells.to(grid.device, _precise(grid)).expand(bsz, -1, 2)
        matrix = self.regression.matrix(height, width).to(grid)
        return memory._replace(places=places, coefficients=matrix.T @ memory.values)

    def read(self, weights: Tensor, memory: Memory) -> Tuple[Tensor, Tensor]:
        return self.read_density(self.density_of(weights, memory), memory)

    def density_of(self, weights: Tensor, memory: Memory) -> PlaneDensity:
        """Densities ``bsz x n`` with the moments of discrete weights ``bsz x n x cells``."""
        return self.density.from_moments(*_moments(weights, memory.places))

    def read_density(self, density: PlaneDensity, memory: Memory) -> Tuple[Tensor, Tensor]:
        """The context of densities ``bsz x n``, and their weights ``bsz x n x cells``."""
        expected = density.expectation(self.regression.basis)
        context = torch.bmm(expected.to(memory.values), memory.coefficients)
        return context, self.cells(density, memory)

    def cells(self, density: PlaneDensity, memory: Memory) -> Tensor:
        """Weights ``bsz x n x cells`` of densities ``bsz x n``."""
        weights = density.per_point().pdf(memory.places.unsqueeze(1))
        return _normalised(weights).to(memory.values)


def build_attention(
    name: str,
    query_dim: int,
    value_dim: int,
    score: str = "general",
    allow_swap: bool = False,
    combine: str = "sum",
    basis: int = 30,
    widths: str = "0.03,0.1,0.3",
    **params: Optional[float],
) -> Attention:
    """What ``--attention name`` is for sequences, discrete or continuous.

    Args:
        query_dim, value_dim, score, allow_swap: as for :class:`Attention`.
        combine, basis, widths: of continuous attention: how contexts are combined, how many basis
            functions there are, and their standard deviations, in lengths of the sentence, with
            commas between them.
        params: gamma, lam, p and alpha, as for :func:`build_mapping`.

    Raises:
        UsageError: an unknown name or a value out of range; names the flag and the value.
    """
    _check_combine(combine)
    regression = build_regression(basis, widths)
    if name not in LINE_DENSITIES:
        mapping = build_mapping(name, **params)
        return Attention(query_dim, value_dim, mapping, score, allow_swap)
    mapping = build_mapping("softmax", **params)
    fit = {"basis": basis, "widths": widths.replace(" ", ""), "margin": MARGIN}
    told = {**mapping.params, "combine": combine, **fit}
    return LineAttention(
        query_dim,
        value_dim,
        mapping,
        LINE_DENSITIES[name],
        regression,
        combine,
        score,
        allow_swap,
        _signature(name, told),
    )


def build_predicted_attention(
    name: str,
    query_dim: int,
    value_dim: int,
    score: str = "general",
    allow_swap: bool = False,
    combine: str = "sum",
    basis: int = 30,
    widths: str = "0.03,0.1,0.3",
    **params: Optional[float],
) -> PredictedLineAttention:
    """What ``--attention-density predicted`` is, with a convolution of size `query_dim`.

    Args:
        name, value_dim, allow_swap, basis, widths: as for :func:`build_attention`.
        score, combine, params: only checked; there is nothing that they could do.

    Raises:
        UsageError: as for :func:`build_attention`, and attention that is discrete.
    """
    if name not in LINE_DENSITIES:
        raise UsageError(
            "--attention-density predicted belongs to continuous attention:"
            f" {', '.join(LINE_DENSITIES)}; --attention is {name}"
        )
    _check_combine(combine)
    check_score(score)
    build_mapping("softmax", **params)
    regression = build_regression(basis, widths)
    widths = widths.replace(" ", "")
    told = {"density": "predicted", "basis": basis, "widths": widths, "margin": MARGIN}
    density = LINE_DENSITIES[name]
    return PredictedLineAttention(
        value_dim, query_dim, density, regression, _signature(name, told), allow_swap
    )


def _check_combine(combine: str) -> None:
    if combine not in COMBINATIONS:
        allowed = " or ".join(COMBINATIONS)
        raise UsageError(f"--attention-combine must be {allowed}, got {combine!r}")


def _signature(name: str, told: Dict[str, Any]) -> str:
    """What checkpoints call it."""
    return f"{name}({', '.join(f'{k}={v}' for k, v in told.items())})"


def build_regression(basis: int, widths: str) -> RidgeRegression:
    """What turns values into a function, as ``--attention-basis`` and its widths say.

    Raises:
        UsageError: a value out of range; names the flag and the value.
    """
    try:
        spread = [float(width) for width in widths.split(",")]
    except ValueError:
        spread = []
    numbers = torch.tensor(spread)  # in the basis' precision
    if not spread or not bool(((numbers > 0) & numbers.isfinite()).all()):
        allowed = "numbers > 0 with commas between them"
        raise UsageError(f"--attention-basis-widths must be {allowed}, got {widths!r}")
    if basis < 1 or basis % len(spread):
        allowed = f"a multiple of {len(spread)}, as there are so many --attention-basis-widths"
        raise UsageError(f"--attention-basis must be {allowed}, got {basis}")
    # with no values to fit beyond its ends, V would be enormous there, where densities reach
    return RidgeRegression(LineBasis.spread(basis, spread), RIDGE, margin=True)


def _as_function(memory: Memory, regression: RidgeRegression) -> Memory:
    """With places in the sentence, and the values' coefficients."""
    present = (~memory.padding_mask).to(_precise(memory.values))
    places = (present.cumsum(1) - 0.5) / present.sum(1, keepdim=True).clamp(min=1)
    coefficients = regression.coefficients(memory.values, memory.padding_mask)
    return memory._replace(places=places.unsqueeze(-1), coefficients=coefficients)


def _read(
    density: LineDensity, memory: Memory, regression: RidgeRegression
) -> Tuple[Tensor, Tensor]:
    """As :meth:`LineAttention.read_density`."""
    expected = density.expectation(regression.basis)  # bsz x n x N
    context = torch.bmm(expected.to(memory.values), memory.coefficients)
    present = ~memory.padding_mask.unsqueeze(1)
    lengths = present.sum(2, keepdim=True, dtype=memory.places.dtype)  # bsz x 1 x 1
    half_bin = 0.5 / lengths.clamp(min=1)
    middles = memory.places.transpose(1, 2)
    masses = density.per_point().mass(middles - half_bin, middles + half_bin)
    return context, _normalised(masses * present).to(memory.values)


def build_plane_attention(
    name: str,
    query_dim: int,
    value_dim: int,
    score: str = "general",
    allow_swap: bool = False,
    **params: Optional[float],
) -> Attention:
    """What ``--attention name`` is for grids; of continuous attention the basis is paper B's.

    Args:
        query_dim, value_dim, score, allow_swap: as for :class:`Attention`.
        params: gamma, lam, p and alpha, as for :func:`build_mapping`.

    Raises:
        UsageError: as for :func:`build_attention`, and a density that there is on the line only.
    """
    if name not in PLANE_DENSITIES:
        if name in LINE_DENSITIES:
            known = " and ".join(PLANE_DENSITIES)
            raise UsageError(f"--attention {name!r} is for texts; for images there are {known}")
        mapping = build_mapping(name, **params)
        return Attention(query_dim, value_dim, mapping, score, allow_swap)
    mapping = build_mapping("softmax", **params)
    told = {**mapping.params, "side": SIDE, "variance": VARIANCE}
    return PlaneAttention(
        query_dim,
        value_dim,
        mapping,
        PLANE_DENSITIES[name],
        RidgeRegression(PlaneBasis.grid(SIDE, VARIANCE), RIDGE, margin=True),
        score,
        allow_swap,
        _signature(name, told),
    )


def _moments(weights: Tensor, places: Tensor) -> Tuple[Tensor, Tensor]:
    """Means ``bsz x n x axes`` and covariances ``bsz x n x axes x axes`` of weights on places."""
    weights = weights.to(places)
    with torch.autocast(places.device.type, enabled=False):  # variances are small
        mean = torch.bmm(weights, places)
        offsets = places.unsqueeze(1) - mean.unsqueeze(2)  # bsz x n x src_len x axes
        return mean, (weights.unsqueeze(-1) * offsets).transpose(-1, -2) @ offsets


def _normalised(masses: Tensor) -> Tensor:
    """Along the last dimension; 0 where everything is."""
    total = masses.sum(-1, keepdim=True)
    return masses / total.masked_fill(total == 0, 1)


def _precise(values: Tensor) -> torch.dtype:
    """At least float32: variances are small."""
    return torch.promote_types(values.dtype, torch.float32)
