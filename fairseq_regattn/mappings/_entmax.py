"""Alpha-entmax: from softmax (alpha -> 1) over entmax-1.5 to sparsemax (alpha = 2)."""

import math
from typing import Optional

import torch
from torch import Tensor

from fairseq_regattn.mappings._jit import jit
from fairseq_regattn.mappings._kernels import kernel
from fairseq_regattn.mappings._module import MappingModule
from fairseq_regattn.mappings._rows import Parameter, by_rows
from fairseq_regattn.mappings._simplex import refuse, select, threshold
from fairseq_regattn.mappings._smooth import scatter, smooth, smooth_omega
from fairseq_regattn.mappings._value import fenchel_young


@jit
def _threshold_quadratic(values, n):
    """tau with ``sum(max(values - tau, 0)^2) == 1``, largest value 0: Newton, then exact.

    The sum is convex in tau, so Newton's method from the left only moves right; when it
    stops, the quadratic of the active set found is solved in closed form.
    """
    tau = -1.0
    for _ in range(100):
        total = 0.0
        square = 0.0
        for i in range(n):
            gap = values[i] - tau
            if gap > 0:
                total += gap
                square += gap * gap
        step = (square - 1.0) / (2.0 * total)
        if not step > 1e-15:
            break
        tau += step
    count = 0
    total = 0.0
    for i in range(n):
        if values[i] > tau:
            count += 1
            total += values[i]
    mean = total / count
    spread = 0.0
    for i in range(n):
        if values[i] > tau:
            spread += (values[i] - mean) ** 2
    return mean - math.sqrt(max(1.0 - spread, 0.0) / count)


@jit
def _power(value, level, rate):
    """``(1 + rate (value - level))_+ ^ (1 / rate)``, which tends to ``exp(value - level)``."""
    moved = rate * (value - level)
    return math.exp(math.log1p(moved) / rate) if moved > -1.0 else 0.0


@jit
def _level_any(values, n, rate):
    """level with ``sum(_power(values, level, rate)) == 1``, largest value 0, rate = alpha - 1.

    ``tau = rate level - 1`` in the usual notation; the level keeps its digits as rate -> 0.
    Newton's method inside a bracket that is halved whenever Newton leaves it or is slow.
    """
    low, high = 0.0, -math.expm1(-rate * math.log(n)) / rate
    level = low
    last = high - low
    for _ in range(200):
        total = -1.0
        slope = 0.0
        for i in range(n):
            weight = _power(values[i], level, rate)
            if weight > 0:
                total += weight
                slope += weight / (1.0 + rate * (values[i] - level))
        if total >= 0:
            low = level
        else:
            high = level
        step = total / slope if slope > 0 else math.inf
        if not (low <= level + step <= high) or abs(step) > 0.5 * last:
            step = 0.5 * (low + high) - level
        last = abs(step)
        if level + step == level:
            break
        level += step
    return level


@kernel(floats=1, ints=2)
def entmax_row(scores, mask, gamma, alpha, floats, ints, out, labels, _slopes):
    """Entmax of a row; no weight is over 1, so what scores 1 / (alpha - 1) less has none."""
    n = scores.size
    where, ranks = ints[:n], ints[n : 2 * n]
    reach = 1.0 / (alpha - 1.0) if 1.0 < alpha < math.inf else math.nan
    kept, _, ok = select(scores, mask, gamma, reach, floats, where, ranks)
    if not ok:
        refuse(scores, mask, out, 0, labels)
        return
    if kept and alpha == 2.0:
        tau = threshold(floats, kept)
        for i in range(kept):
            floats[i] = max(floats[i] - tau, 0.0)
    elif kept and alpha == 1.5:
        for i in range(kept):
            floats[i] *= 0.5
        tau = _threshold_quadratic(floats, kept)
        for i in range(kept):
            floats[i] = max(floats[i] - tau, 0.0) ** 2
    elif kept:
        level = _level_any(floats, kept, alpha - 1.0)
        for i in range(kept):
            floats[i] = _power(floats[i], level, alpha - 1.0)
    scatter(kept, floats, where, out)


@smooth_omega
class _Omega:
    """``Omega(y) = (sum_i y_i^alpha - 1) / (alpha (alpha - 1))``."""

    kernel = entmax_row

    @staticmethod
    def inverse_hessian(
        weights: Tensor, support: Tensor, vectors: Tensor, alpha: Parameter
    ) -> Tensor:
        return weights ** (2.0 - alpha) * vectors

    @staticmethod
    def gradient(weights: Tensor, support: Tensor, alpha: Parameter) -> Tensor:
        # less a constant, which the Jacobian ignores, for the sake of alpha near 1
        return torch.expm1((alpha - 1.0) * weights.log()) / (alpha - 1.0)

    @staticmethod
    def gradient_by_shape(weights: Tensor, support: Tensor, alpha: Parameter) -> Tensor:
        # with u = (alpha - 1) log y: log(y)^2 (exp(u) - expm1(u) / u) / u, a series near u = 0
        logs = weights.log()
        u = (alpha - 1.0) * logs
        near = u.abs() < 0.5
        far = torch.where(near, 1.0, u)
        direct = (far.exp() - torch.expm1(far) / far) / far
        small = torch.where(near, u, 0.0)
        series = torch.zeros_like(u)
        for k in range(14, -1, -1):
            series = series * small + (k + 1) / math.factorial(k + 2)
        return logs.square() * torch.where(near, series, direct)


def solve(scores: Tensor, mask: Optional[Tensor], gamma: Parameter, alpha: Parameter) -> Tensor:
    """Entmax of a ``rows x length`` matrix."""
    return smooth(_Omega, scores, mask, gamma, alpha)


def omega(weights: Tensor, mask: Optional[Tensor], alpha: Parameter) -> Tensor:
    """``(sum_i y_i^alpha - 1) / (alpha (alpha - 1))`` of each row."""
    support = weights > 0
    powers = torch.where(support, weights, 1.0) ** alpha
    total = powers.masked_fill(~support, 0.0).sum(-1, keepdim=True)
    value = (total - 1.0) / (alpha * (alpha - 1.0))
    return value.masked_fill(~support.any(-1, keepdim=True) & (total == 0), 0.0).squeeze(-1)


def entmax(
    scores: Tensor,
    dim: int = -1,
    *,
    padding_mask: Optional[Tensor] = None,
    gamma: Parameter = 1.0,
    alpha: Parameter = 1.5,
) -> Tensor:
    """Probabilities from dense (alpha near 1) to sparse (alpha = 2 is sparsemax, and beyond).

    Solves, along `dim`::

        argmax_y  <y, scores> - gamma (sum_i y_i^alpha - 1) / (alpha (alpha - 1))
            s.t.  y >= 0, sum(y) = 1

    Args:
        scores: any shape, floating point.
        dim: the weights sum to one along it.
        padding_mask: bool, broadcastable to `scores`; True = as if removed, weight 0.
        gamma: > 0; a number, or a tensor that broadcasts to `scores` with size 1 along
            `dim`. Strength of the regulariser.
        alpha: > 1, like `gamma`; may be learned, one for each head, say.

    Returns:
        Weights of the scores' shape and dtype; a fully masked row is all zeros.

    Raises:
        ArgumentError: a ValueError that names the argument, its value and what is allowed.

    Exact for alpha = 1.5 and 2; otherwise a safeguarded Newton search for the threshold, to
    the last digit. What is exact to rounding is ``y^(alpha-1)``: above alpha of about 5 small
    weights, its high roots, lose digits (alpha = 8: 1e-2). O(length) a row and iteration, some
    ten iterations. Differentiable in scores, gamma and alpha, twice. Source: Peters, Niculae
    and Martins, ACL 2019; gradient in alpha: Correia, Niculae and Martins, EMNLP 2019.
    """
    return by_rows(solve, scores, dim, padding_mask, gamma=gamma, alpha=alpha)


class Entmax(MappingModule):
    """Module twin of :func:`entmax`."""

    def __init__(self, dim: int = -1, gamma: Parameter = 1.0, alpha: Parameter = 1.5):
        super().__init__(entmax, dim, gamma=gamma, alpha=alpha)


def entmax_loss(
    scores: Tensor,
    target: Tensor,
    dim: int = -1,
    *,
    padding_mask: Optional[Tensor] = None,
    gamma: Parameter = 1.0,
    alpha: Parameter = 1.5,
) -> Tensor:
    """Fenchel-Young loss of :func:`entmax`; see :func:`fenchel_young_loss`."""
    return fenchel_young(solve, omega, scores, target, dim, padding_mask, gamma=gamma, alpha=alpha)
