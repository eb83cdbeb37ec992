"""Alpha-entmax: from softmax (alpha -> 1) over entmax-1.5 to sparsemax (alpha = 2)."""

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
def _threshold_any(values, n, alpha):
    """tau with ``sum(max(values - tau, 0)^(1/(alpha-1))) == 1``, largest value 0.

    Newton's method inside a bracket that is halved whenever Newton leaves it or is slow.
    """
    power = 1.0 / (alpha - 1.0)
    low, high = -1.0, -(n ** (1.0 - alpha))
    tau = low
    last = high - low
    for _ in range(200):
        total = -1.0
        slope = 0.0
        for i in range(n):
            gap = values[i] - tau
            if gap > 0:
                term = gap**power
                total += term
                slope += term / gap
        if total >= 0:
            low = tau
        else:
            high = tau
        step = total / (power * slope)
        if not (low <= tau + step <= high) or abs(step) > 0.5 * last:
            step = 0.5 * (low + high) - tau
        last = abs(step)
        if tau + step == tau:
            break
        tau += step
    return tau


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
        return (weights ** (alpha - 1.0) - 1.0) / (alpha - 1.0)

    @classmethod
    def gradient_by_shape(cls, weights: Tensor, support: Tensor, alpha: Parameter) -> Tensor:
        power = weights ** (alpha - 1.0)
        return (power * weights.log() - cls.gradient(weights, support, alpha)) / (alpha - 1.0)

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
                for i in range(n):
                    values[i] *= alpha - 1.0
                if alpha == 2.0:
                    tau = threshold(values, n)
                elif alpha == 1.5:
                    tau = _threshold_quadratic(values, n)
                else:
                    tau = _threshold_any(values, n, alpha)
                for i in range(n):
                    gap = max(values[i] - tau, 0.0)
                    if alpha == 1.5:
                        values[i] = gap * gap
                    elif alpha == 2.0:
                        values[i] = gap
                    else:
                        values[i] = gap ** (1.0 / (alpha - 1.0))
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
    the last digit. O(length) a row and iteration, some ten iterations. Differentiable in
    scores, gamma and alpha, twice. Source: Peters, Niculae and Martins, ACL 2019; the
    gradient in alpha is that of Correia, Niculae and Martins, EMNLP 2019.
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
