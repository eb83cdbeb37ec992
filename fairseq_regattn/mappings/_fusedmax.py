"""Fusedmax: neighbours are drawn to equal weight, so whole segments are attended to."""

from typing import Optional

import numpy as np
import torch
from torch import Tensor

from fairseq_regattn.mappings._grouped import Grouped, load, store
from fairseq_regattn.mappings._jit import jit
from fairseq_regattn.mappings._module import MappingModule
from fairseq_regattn.mappings._rows import Parameter, by_rows
from fairseq_regattn.mappings._value import fenchel_young


@jit
def total_variation(values, n, lam, groups, slopes, knots, bounds):
    """``argmin_y 1/2 ||y - values||^2 + lam sum |y[i+1] - y[i]|``, in place, O(n) always.

    Dynamic programming along the chain (Johnson 2013). Going right, the derivative of
    "best cost so far, given that this value is b" is an increasing piecewise linear
    function of b, clipped to [-lam, lam] by the next link; `knots` holds its pieces as a
    double-ended queue of (position, change of slope, change of intercept). Where clipping
    starts gives `bounds`, between which neighbours stay equal; going back left reads off
    the segments. Segment values are then computed afresh as means, so rounding does not
    add up along the chain.

    Args:
        groups: out, segment number of each position.
        slopes: out, d(values)/d(lam) summed over each segment, unaveraged.
        knots: scratch, 3 x 2n. bounds: scratch, 2 x n.
    """
    head = n  # the queue is knots[:, head:tail]
    tail = n
    below = 0.0  # derivative beyond the first and the last knot, before this term is added
    above = 0.0
    for k in range(n):
        target = 0.0 if k == n - 1 else lam
        slope, intercept = 1.0, below - values[k]
        while head < tail and slope * knots[0, head] + intercept <= -target:
            slope += knots[1, head]
            intercept += knots[2, head]
            head += 1
        bounds[0, k] = (-target - intercept) / slope
        if k == n - 1:
            break
        head -= 1
        knots[0, head] = bounds[0, k]
        knots[1, head] = slope
        knots[2, head] = intercept + lam

        slope, intercept = 1.0, above - values[k]
        # never past the knot just put in: only rounding, or lam = 0, could ask for it
        while head + 1 < tail and slope * knots[0, tail - 1] + intercept >= lam:
            tail -= 1
            slope -= knots[1, tail]
            intercept -= knots[2, tail]
        bounds[1, k] = (lam - intercept) / slope
        knots[0, tail] = bounds[1, k]
        knots[1, tail] = -slope
        knots[2, tail] = lam - intercept
        tail += 1
        below, above = -lam, lam

    level = bounds[0, n - 1]
    stop = n  # the segment being read ends before it
    group = 0
    slopes[n - 1] = 0.0
    for k in range(n - 2, -2, -1):
        rises = 0  # whether the chain steps up (1) or down (-1) from k to k + 1
        if k >= 0:
            slopes[k] = 0.0
            if level > bounds[1, k]:
                level, rises = bounds[1, k], 1
            elif level < bounds[0, k]:
                level, rises = bounds[0, k], -1
            slopes[k] += rises
            slopes[k + 1] -= rises
            if rises == 0:
                continue
        total = 0.0
        for i in range(k + 1, stop):
            total += values[i] + lam * slopes[i]
        for i in range(k + 1, stop):
            values[i] = total / (stop - k - 1)
            groups[i] = group
        group += 1
        stop = k + 1


@jit
def _fusedmax_rows(scores, mask, gamma, lam, weights, labels, slopes):
    rows, length = scores.shape
    values = np.empty(length)
    where = np.empty(length, np.int64)
    groups = np.arange(length)
    signs = np.zeros(length)
    knots = np.empty((3, 2 * length))
    bounds = np.empty((2, length))
    for row in range(rows):
        n, ok = load(scores[row], mask[row], gamma[row % gamma.size], True, values, where)
        if ok and n:
            # Beyond n times the spread everything has fused; more would only cost digits.
            most = -n * values[:n].min()
            step = min(lam[row % lam.size], most)
            total_variation(values, n, step, groups, signs, knots, bounds)
        store(n, ok, values, where, groups, signs, weights[row], labels[row], slopes[row])


def solve(scores: Tensor, mask: Optional[Tensor], gamma: Parameter, lam: Parameter) -> Tensor:
    """Fusedmax of a ``rows x length`` matrix."""
    return Grouped.apply(scores, gamma, lam, mask, _fusedmax_rows)


def omega(weights: Tensor, mask: Optional[Tensor], lam: Parameter) -> Tensor:
    """``1/2 ||y||^2 + lam sum |y[i+1] - y[i]|`` of each row, masked positions skipped."""
    norm = 0.5 * weights.square().sum(-1)
    if mask is not None:  # close the gaps; the last unmasked value repeats to the end
        order = mask.to(torch.uint8).argsort(dim=-1, stable=True)
        last = ((~mask).sum(-1, keepdim=True) - 1).clamp(min=0)
        place = torch.arange(mask.size(-1), device=mask.device).minimum(last)
        weights = weights.gather(-1, order.gather(-1, place))
    jumps = weights.diff(dim=-1).abs().sum(-1, keepdim=True)
    return norm + (lam * jumps).squeeze(-1)


def fusedmax(
    scores: Tensor,
    dim: int = -1,
    *,
    padding_mask: Optional[Tensor] = None,
    gamma: Parameter = 1.0,
    lam: Parameter = 0.1,
) -> Tensor:
    """Sparse probabilities in which contiguous segments share one weight.

    Solves, along `dim`::

        argmax_y  <y, scores> - gamma (1/2 ||y||^2 + lam sum_i |y[i+1] - y[i]|)
            s.t.  y >= 0, sum(y) = 1

    which is, exactly, the projection onto the simplex of the one-dimensional total
    variation denoising of ``scores / gamma`` (paper A, section 3.2 and Proposition 2).

    Args:
        scores: any shape, floating point.
        dim: the weights sum to one along it, and neighbours are neighbours along it.
        padding_mask: bool, broadcastable to `scores`; True = as if removed: weight 0, and
            the positions on its two sides become neighbours.
        gamma: > 0; a number, or a tensor that broadcasts to `scores` with size 1 along
            `dim`. Strength of the whole regulariser.
        lam: >= 0, like `gamma`. Strength of fusing; 0 gives sparsemax.

    Returns:
        Weights of the scores' shape and dtype; a fully masked row is all zeros.

    Raises:
        ArgumentError: a ValueError that names the argument, its value and what is allowed.

    O(length) a row. Twice differentiable almost everywhere, in scores, gamma and lam: the
    gradient averages within segments and centres on the support (Proposition 3).
    """
    return by_rows(solve, scores, dim, padding_mask, gamma=gamma, lam=lam)


class Fusedmax(MappingModule):
    """Module twin of :func:`fusedmax`."""

    def __init__(self, dim: int = -1, gamma: Parameter = 1.0, lam: Parameter = 0.1):
        super().__init__(fusedmax, dim, gamma=gamma, lam=lam)


def fusedmax_loss(
    scores: Tensor,
    target: Tensor,
    dim: int = -1,
    *,
    padding_mask: Optional[Tensor] = None,
    gamma: Parameter = 1.0,
    lam: Parameter = 0.1,
) -> Tensor:
    """Fenchel-Young loss of :func:`fusedmax`; see :func:`fenchel_young_loss`."""
    return fenchel_young(solve, omega, scores, target, dim, padding_mask, gamma=gamma, lam=lam)
