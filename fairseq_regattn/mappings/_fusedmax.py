"""Fusedmax: neighbours are drawn to equal weight, so whole segments are attended to."""

import math
from typing import Optional

import torch
from torch import Tensor

from fairseq_regattn.mappings._grouped import NAN_LABEL, capped, grouped, store, ungroup
from fairseq_regattn.mappings._jit import jit
from fairseq_regattn.mappings._kernels import kernel
from fairseq_regattn.mappings._module import MappingModule
from fairseq_regattn.mappings._rows import Parameter, by_rows
from fairseq_regattn.mappings._simplex import refuse, select
from fairseq_regattn.mappings._value import fenchel_young


@jit
def total_variation(values, start, stop, lam, left, right, group, groups, slopes, knots, bounds):
    """``argmin_y 1/2 ||y - x||^2 + lam sum |y[i+1] - y[i]|``, O(n) always, in place.

    x is ``values[start:stop]``, and n its length.

    Dynamic programming along the chain (Johnson 2013). Going right, the derivative of
    "best cost so far, given that this value is b" is an increasing piecewise linear
    function of b, clipped to [-lam, lam] by the next link; `knots` holds its pieces as a
    double-ended queue of (position, change of slope, change of intercept). Where clipping
    starts gives `bounds`, between which neighbours stay equal; going back left reads off
    the segments. Segment values are then computed afresh as means, so rounding does not
    add up along the chain.

    Args:
        left, right: 1 where the chain goes on, to something lower that is not solved for; else 0.
        group: number of the first segment, counted from there, right to left.
        groups: out, segment number of each position.
        slopes: out, d(value)/d(lam) of each segment.
        knots: scratch, 6n. bounds: scratch, 2n.

    Returns:
        The number of the next segment.
    """
    n = stop - start
    places, tilts, lifts = knots[: 2 * n], knots[2 * n : 4 * n], knots[4 * n : 6 * n]
    lower, upper = bounds[:n], bounds[n : 2 * n]
    head = n  # the queue is [head:tail]
    tail = n
    below = lam * left  # derivative beyond the outer knots, before this term is added
    above = below
    for k in range(n):
        target = lam * right if k == n - 1 else lam
        slope, intercept = 1.0, below - values[start + k]
        while head < tail and slope * places[head] + intercept <= -target:
            slope += tilts[head]
            intercept += lifts[head]
            head += 1
        lower[k] = (-target - intercept) / slope
        if k == n - 1:
            break
        head -= 1
        places[head] = lower[k]
        tilts[head] = slope
        lifts[head] = intercept + lam

        slope, intercept = 1.0, above - values[start + k]
        # never past the knot just put in: only rounding, or lam = 0, could ask for it
        while head + 1 < tail and slope * places[tail - 1] + intercept >= lam:
            tail -= 1
            slope -= tilts[tail]
            intercept -= lifts[tail]
        upper[k] = (lam - intercept) / slope
        places[tail] = upper[k]
        tilts[tail] = -slope
        lifts[tail] = lam - intercept
        tail += 1
        below, above = -lam, lam

    level = lower[n - 1]
    end = stop  # the segment being read ends before it
    steps = -right  # how often lam pulls the segment up, less how often down
    for k in range(n - 2, -2, -1):
        rises = 0  # whether the chain steps up (1) or down (-1) from k to k + 1
        if k < 0:
            rises = left
        elif level > upper[k]:
            level, rises = upper[k], 1
        elif level < lower[k]:
            level, rises = lower[k], -1
        if k >= 0 and rises == 0:
            continue
        begin = start + k + 1
        steps -= rises
        total = 0.0
        for i in range(begin, end):
            total += values[i]
        mean = (total + lam * steps) / (end - begin)
        for i in range(begin, end):
            values[i] = mean
            groups[i] = group
        slopes[group] = steps / (end - begin)
        group += 1
        end = begin
        steps = rises
    return group


@kernel(floats=10, ints=3)
def fusedmax_row(scores, mask, gamma, lam, floats, ints, out, labels, slopes):
    """Fusedmax of a row.

    No value moves by more than 2 lam, so the largest stays above -2 lam and the threshold
    above -2 lam - 1. At levels over that, whatever scores 2 lam less is never worth including:
    the chain falls apart there into islands that are solved one by one.
    """
    n = scores.size
    values, slopes_of = floats[:n], floats[n : 2 * n]
    knots, bounds = floats[2 * n : 8 * n], floats[8 * n : 10 * n]
    where, ranks, groups = ints[:n], ints[n : 2 * n], ints[2 * n : 3 * n]
    reach = 1.0 + 4.0 * lam if 0.0 <= lam < math.inf else math.nan
    kept, present, ok = select(scores, mask, gamma, reach, values, where, ranks)
    if not ok:
        refuse(scores, mask, out, NAN_LABEL, labels)
        return
    step = lam
    if kept == present:  # beyond n times the spread everything has fused
        step = capped(lam, values, kept, kept)
    group = 0
    start = 0
    for stop in range(1, kept + 1):
        if stop < kept and ranks[stop] == ranks[stop - 1] + 1:
            continue
        left = 1 if ranks[start] > 0 else 0
        right = 1 if ranks[stop - 1] < present - 1 else 0
        if stop - start == 1:
            values[start] -= step * (left + right)
            groups[start] = group
            slopes_of[group] = -(left + right)
            group += 1
        else:
            group = total_variation(
                values, start, stop, step, left, right, group, groups, slopes_of, knots, bounds
            )
        start = stop
    if lam == 0.0:
        ungroup(kept, groups, slopes_of, knots)
    store(kept, values, where, groups, slopes_of, out, labels, slopes)


def solve(scores: Tensor, mask: Optional[Tensor], gamma: Parameter, lam: Parameter) -> Tensor:
    """Fusedmax of a ``rows x length`` matrix."""
    return grouped(fusedmax_row, scores, mask, gamma, lam)


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
