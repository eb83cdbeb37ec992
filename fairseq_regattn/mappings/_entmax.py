"""Alpha-entmax: from softmax (alpha -> 1) over entmax-1.5 to sparsemax (alpha = 2)."""

import math
from typing import Optional

import numpy as np
import torch
from torch import Tensor

from fairseq_regattn.mappings._grouped import load, threshold
from fairseq_regattn.mappings._jit import jit
from fairseq_regattn.mappings._module import MappingModule
from fairseq_regattn.mappings._rows import Parameter, by_rows
from fairseq_regattn.mappings._smooth import Smooth, scatter
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
    return mean - np.sqrt(max(1.0 - spread, 0.0) / count)


@jit
def _power(value, level, rate):
    """``(1 + rate (value - level))_+ ^ (1 / rate)``, which tends to ``exp(value - level)``."""
    moved = rate * (value - level)
    return np.exp(np.log1p(moved) / rate) if moved > -1.0 else 0.0


@jit
def _level_any(values, n, rate):
    """level with ``sum(_power(values, level, rate)) == 1``, largest value 0, rate = alpha - 1.

    ``tau = rate level - 1`` in the usual notation; the level keeps its digits as rate -> 0.
    Newton's method inside a bracket that is halved whenever Newton leaves it or is slow.
    """
    low, high = 0.0, -np.expm1(-rate * np.log(n)) / rate
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
        step = total / slope if slope > 0 else np.inf
        if not (low <= level + step <= high) or abs(step) > 0.5 * last:
            step = 0.5 * (low + high) - level
        last = abs(step)
        if level + step == level:
            break
        level += step
    return level


class _Omega:
    """``Omega(y) = (sum_i y_i^alpha - 1) / (alpha (alpha - 1))``."""

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

    @staticmethod
    @jit
    def kernel(scores, mask, gamma, alphas, out):
        rows, length = scores.shape
        values = np.empty(length)
        where = np.empty(length, np.int64)
        for row in range(rows):
            alpha = alphas[row % alphas.size]
            n, ok = load(scores[row], mask[row], gamma[row % gamma.size], True, values, where)
            if ok and n:
                if alpha == 2.0:
                    tau = threshold(values, n)
                    for i in range(n):
                        values[i] = max(values[i] - tau, 0.0)
                elif alpha == 1.5:
                    for i in range(n):
                        values[i] *= 0.5
                    tau = _threshold_quadratic(values, n)
                    for i in range(n):
                        values[i] = max(values[i] - tau, 0.0) ** 2
                else:
                    level = _level_any(values, n, alpha - 1.0)
                    for i in range(n):
                        values[i] = _power(values[i], level, alpha - 1.0)
            scatter(n, ok, values, where, out[row])


def solve(scores: Tensor, mask: Optional[Tensor], gamma: Parameter, alpha: Parameter) -> Tensor:
    """Entmax of a ``rows x length`` matrix."""
    return Smooth.apply(scores, gamma, alpha, mask, _Omega)


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
