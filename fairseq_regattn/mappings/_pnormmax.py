"""Pnormmax: the squared p-norm as regulariser."""

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
def _threshold(values, n, p):
    """tau such that ``y ~ max(values - tau, 0)^(1/(p-1))`` solves the problem for gamma = 1.

    The largest value is 0. With q = p/(p-1) and w = max(values - tau, 0), tau is the root of
    ``sum(w^(q-1)) / ||w||_q^(q-2) = 1``, whose left side decreases in tau and lies between
    max(w) and n^(2/q) max(w). Newton's method in that bracket, halved when it leaves it.
    """
    q = p / (p - 1.0)
    low, high = -1.0, -(n ** (-2.0 / q))
    tau = low
    last = high - low
    for _ in range(200):
        top = -tau  # the largest w; dividing by it keeps high powers from underflowing
        a = 0.0
        b = 0.0
        c = 0.0
        for i in range(n):
            w = (values[i] - tau) / top
            if w > 0:
                power = w ** (q - 1.0)
                a += power
                b += power * w
                c += power / w
        scale = b ** (-(q - 2.0) / q)
        excess = top * a * scale - 1.0
        slope = scale * ((q - 2.0) * a * a / b - (q - 1.0) * c)
        if excess >= 0:
            low = tau
        else:
            high = tau
        step = -excess / slope
        if not (low <= tau + step <= high) or abs(step) > 0.5 * last:
            step = 0.5 * (low + high) - tau
        last = abs(step)
        if tau + step == tau:
            break
        tau += step
    return tau


@kernel(floats=1, ints=2)
def pnormmax_row(scores, mask, gamma, p, floats, ints, out, labels, _slopes):
    """Pnormmax of a row; the threshold is at least the best score less 1."""
    n = scores.size
    where, ranks = ints[:n], ints[n : 2 * n]
    reach = 1.0 if 1.0 < p <= 2.0 else math.nan
    kept, _, ok = select(scores, mask, gamma, reach, floats, where, ranks)
    if not ok:
        refuse(scores, mask, out, 0, labels)
        return
    if kept:
        tau = threshold(floats, kept) if p == 2.0 else _threshold(floats, kept, p)
        for i in range(kept):  # as a share of the largest, lest high powers underflow
            share = max(floats[i] - tau, 0.0) / -tau
            floats[i] = share ** (1.0 / (p - 1.0))
    scatter(kept, floats, where, out)


@smooth_omega
class _Omega:
    """``Omega(y) = 1/2 ||y||_p^2``; its Hessian is diagonal plus rank one (paper A, appendix)."""

    kernel = pnormmax_row

    @staticmethod
    def inverse_hessian(weights: Tensor, support: Tensor, vectors: Tensor, p: Parameter) -> Tensor:
        norm = _norm(weights, support, p)
        diagonal = weights ** (2.0 - p) * norm ** (p - 2.0) / (p - 1.0)
        along = (weights * vectors).sum(-1, keepdim=True) / norm**2
        return diagonal * vectors - (2.0 - p) / (p - 1.0) * along * weights

    @staticmethod
    def gradient(weights: Tensor, support: Tensor, p: Parameter) -> Tensor:
        return weights ** (p - 1.0) * _norm(weights, support, p) ** (2.0 - p)

    @classmethod
    def gradient_by_shape(cls, weights: Tensor, support: Tensor, p: Parameter) -> Tensor:
        logs = weights.log()
        powers = support * weights**p
        total = powers.sum(-1, keepdim=True)
        total = total.masked_fill(total == 0, 1.0)
        mean_log = (powers * logs).sum(-1, keepdim=True) / total
        log_norm = total.log() / p
        by_norm = (2.0 - p) / p * (mean_log - log_norm) - log_norm
        return cls.gradient(weights, support, p) * (logs + by_norm)


def _norm(weights: Tensor, support: Tensor, p: Parameter) -> Tensor:
    """``||y||_p`` of each row, 1 where there is no support."""
    total = (support * weights**p).sum(-1, keepdim=True)
    return total.masked_fill(total == 0, 1.0) ** (1.0 / p)


def solve(scores: Tensor, mask: Optional[Tensor], gamma: Parameter, p: Parameter) -> Tensor:
    """Pnormmax of a ``rows x length`` matrix."""
    return smooth(_Omega, scores, mask, gamma, p)


def omega(weights: Tensor, mask: Optional[Tensor], p: Parameter) -> Tensor:
    """``1/2 ||y||_p^2`` of each row."""
    support = weights > 0
    safe = torch.where(support, weights, 1.0)
    norm = _norm(safe, support.to(weights), p)
    return 0.5 * (norm**2).masked_fill(~support.any(-1, keepdim=True), 0.0).squeeze(-1)


def pnormmax(
    scores: Tensor,
    dim: int = -1,
    *,
    padding_mask: Optional[Tensor] = None,
    gamma: Parameter = 1.0,
    p: Parameter = 1.5,
) -> Tensor:
    """Sparse probabilities under the squared p-norm, 1 < p <= 2 (2 is sparsemax).

    Solves, along `dim`::

        argmax_y  <y, scores> - gamma/2 ||y||_p^2   s.t.  y >= 0, sum(y) = 1

    Args:
        scores: any shape, floating point.
        dim: the weights sum to one along it.
        padding_mask: bool, broadcastable to `scores`; True = as if removed, weight 0.
        gamma: > 0; a number, or a tensor that broadcasts to `scores` with size 1 along
            `dim`. Strength of the regulariser.
        p: 1 < p <= 2, like `gamma`.

    Returns:
        Weights of the scores' shape and dtype; a fully masked row is all zeros.

    Raises:
        ArgumentError: a ValueError that names the argument, its value and what is allowed.

    Paper A (section 3.1) solves this by FISTA; here the threshold is the root of one
    monotone function, found to the last digit: O(length) a row and iteration, some ten
    iterations. Differentiable in scores, gamma and p, twice; the backward is O(length),
    Proposition 1 with the rank-one Hessian inverted in closed form.
    """
    return by_rows(solve, scores, dim, padding_mask, gamma=gamma, p=p)


class PNormMax(MappingModule):
    """Module twin of :func:`pnormmax`."""

    def __init__(self, dim: int = -1, gamma: Parameter = 1.0, p: Parameter = 1.5):
        super().__init__(pnormmax, dim, gamma=gamma, p=p)


def pnormmax_loss(
    scores: Tensor,
    target: Tensor,
    dim: int = -1,
    *,
    padding_mask: Optional[Tensor] = None,
    gamma: Parameter = 1.0,
    p: Parameter = 1.5,
) -> Tensor:
    """Fenchel-Young loss of :func:`pnormmax`; see :func:`fenchel_young_loss`."""
    return fenchel_young(solve, omega, scores, target, dim, padding_mask, gamma=gamma, p=p)
