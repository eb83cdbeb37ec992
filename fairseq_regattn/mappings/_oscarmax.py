"""Oscarmax: positions are drawn to equal weight wherever they are, so clusters form."""

import math
from typing import Optional

from torch import Tensor

from fairseq_regattn.mappings._grouped import NAN_LABEL, capped, grouped, store, ungroup
from fairseq_regattn.mappings._jit import jit
from fairseq_regattn.mappings._kernels import kernel
from fairseq_regattn.mappings._module import MappingModule
from fairseq_regattn.mappings._rows import Parameter, by_rows
from fairseq_regattn.mappings._simplex import refuse, select
from fairseq_regattn.mappings._value import fenchel_young

_COUNTED = 32  # a quadratic number of comparisons, but several at a time


@jit
def sort_descending(keys, n, ordered, order, spare_keys, spare_order):
    """Fill `ordered` with the first n keys, descending, and `order` with their positions.

    Stretches are ranked by counting, which has no branch to mispredict, then merged, keys and
    positions together: looking keys up by position would miss the cache.
    """
    for start in range(0, n, _COUNTED):
        some = keys[start : min(start + _COUNTED, n)]
        for i in range(some.size):
            rank = 0
            for j in range(some.size):
                rank += (some[j] > some[i]) | ((some[j] == some[i]) & (j < i))
            ordered[start + rank] = some[i]
            order[start + rank] = start + i
    width = _COUNTED
    while width < n:
        for k in range(n):
            spare_keys[k] = ordered[k]
            spare_order[k] = order[k]
        for start in range(0, n, 2 * width):
            middle, stop = min(start + width, n), min(start + 2 * width, n)
            left, right, k = start, middle, start
            while left < middle and right < stop:
                take = spare_keys[left] >= spare_keys[right]
                source = left if take else right
                ordered[k] = spare_keys[source]
                order[k] = spare_order[source]
                left += take
                right += not take
                k += 1
            for source in range(left, middle):  # what is left on the right is in place
                ordered[k] = spare_keys[source]
                order[k] = spare_order[source]
                k += 1
        width *= 2


@jit
def ordered_prox(keys, n, total, lam, ordered, order, starts, means, groups, slopes):
    """``argmin_y 1/2 ||y - keys||^2 + lam sum_k (total-1-k) y_[k]``, y_[0] >= ..., in place.

    The k-th largest key is lowered by ``lam (total-1-k)``, then pooled with its neighbours
    until the order is descending again (pool adjacent violators).

    Args:
        total: how many keys there are; the n given are the largest.
        groups: out, pool number of each position.
        slopes: out, d(value)/d(lam) of each pool.
        ordered, order, starts, means: scratch of length n, n, n + 1 and n.
    """
    sort_descending(keys, n, ordered, order, means, starts)
    pools = 0
    for rank in range(n):
        starts[pools] = rank
        means[pools] = ordered[rank] - lam * (total - 1 - rank)
        pools += 1
        stop = rank + 1
        while pools > 1 and means[pools - 1] >= means[pools - 2]:
            last, first = stop - starts[pools - 1], starts[pools - 1] - starts[pools - 2]
            means[pools - 2] += (means[pools - 1] - means[pools - 2]) * last / (first + last)
            pools -= 1
    starts[pools] = n
    for pool in range(pools):
        start, stop = starts[pool], starts[pool + 1]
        mean = 0.0
        for rank in range(start, stop):
            mean += ordered[rank] - lam * (total - 1 - rank)
        mean /= stop - start
        for rank in range(start, stop):
            keys[order[rank]] = mean
            groups[order[rank]] = pool
        slopes[pool] = 0.5 * (start + stop - 1) + 1.0 - total  # the ranks' mean


@kernel(floats=4, ints=5)
def oscarmax_row(scores, mask, gamma, lam, floats, ints, out, labels, slopes):
    """Oscarmax of a row.

    The largest value falls by at most lam (n - 1), so the threshold is above that less 1. What
    scores less cannot end up in a pool above the threshold: it only lowers a pool's mean.
    """
    n = scores.size
    values, slopes_of = floats[:n], floats[n : 2 * n]
    means, ordered = floats[2 * n : 3 * n], floats[3 * n : 4 * n]
    where, groups, order = ints[:n], ints[n : 2 * n], ints[2 * n : 3 * n]
    ranks = starts = ints[3 * n : 4 * n + 1]
    reach = 1.0 + lam * (n - 1) if 0.0 <= lam < math.inf else math.nan
    kept, present, ok = select(scores, mask, gamma, reach, values, where, ranks)
    if not ok:
        refuse(scores, mask, out, NAN_LABEL, labels)
        return
    step = lam
    if kept == present:  # a step of the whole spread pools everything
        step = capped(lam, values, kept, 1)
    ordered_prox(values, kept, present, step, ordered, order, starts, means, groups, slopes_of)
    if lam == 0.0:
        ungroup(kept, groups, slopes_of, means)
    store(kept, values, where, groups, slopes_of, out, labels, slopes)


def solve(scores: Tensor, mask: Optional[Tensor], gamma: Parameter, lam: Parameter) -> Tensor:
    """Oscarmax of a ``rows x length`` matrix."""
    return grouped(oscarmax_row, scores, mask, gamma, lam)


def omega(weights: Tensor, mask: Optional[Tensor], lam: Parameter) -> Tensor:
    """``1/2 ||y||^2 + lam sum_{i<j} max(y_i, y_j)`` of each row, masked positions skipped."""
    descending = weights.sort(-1, descending=True).values
    length = weights.size(-1)
    ranks = descending.new_ones(length).cumsum(0)
    present = length if mask is None else (~mask).sum(-1, keepdim=True)
    pairs = (descending * (present - ranks)).sum(-1, keepdim=True)  # masked weights are 0
    return 0.5 * weights.square().sum(-1) + (lam * pairs).squeeze(-1)


def oscarmax(
    scores: Tensor,
    dim: int = -1,
    *,
    padding_mask: Optional[Tensor] = None,
    gamma: Parameter = 1.0,
    lam: Parameter = 0.01,
) -> Tensor:
    """Sparse probabilities in which clusters of positions share one weight.

    Solves, along `dim`::

        argmax_y  <y, scores> - gamma (1/2 ||y||^2 + lam sum_{i<j} max(|y_i|, |y_j|))
            s.t.  y >= 0, sum(y) = 1

    exactly. On the simplex the pairwise sum is ``sum_k (d-k) y_[k]`` (y_[1] the largest),
    so the solution is: sort, lower by ``lam (d-k)``, pool adjacent violators, project.
    Paper A (section 3.3) publishes a composition that is only an approximation, as its
    erratum says; that one is :func:`oscarmax_prox`.

    Args:
        scores: any shape, floating point.
        dim: the weights sum to one along it.
        padding_mask: bool, broadcastable to `scores`; True = as if removed: weight 0, and
            ranks close up.
        gamma: > 0; a number, or a tensor that broadcasts to `scores` with size 1 along
            `dim`. Strength of the whole regulariser.
        lam: >= 0, like `gamma`. Strength of clustering; 0 gives sparsemax.

    Returns:
        Weights of the scores' shape and dtype; a fully masked row is all zeros.

    Raises:
        ArgumentError: a ValueError that names the argument, its value and what is allowed.

    O(length log length) a row, about. Twice differentiable almost everywhere, in scores,
    gamma and lam: the gradient averages within clusters and centres on the support
    (Proposition 3 without signs).
    """
    return by_rows(solve, scores, dim, padding_mask, gamma=gamma, lam=lam)


class Oscarmax(MappingModule):
    """Module twin of :func:`oscarmax`."""

    def __init__(self, dim: int = -1, gamma: Parameter = 1.0, lam: Parameter = 0.01):
        super().__init__(oscarmax, dim, gamma=gamma, lam=lam)


def oscarmax_loss(
    scores: Tensor,
    target: Tensor,
    dim: int = -1,
    *,
    padding_mask: Optional[Tensor] = None,
    gamma: Parameter = 1.0,
    lam: Parameter = 0.01,
) -> Tensor:
    """Fenchel-Young loss of :func:`oscarmax`; see :func:`fenchel_young_loss`."""
    return fenchel_young(solve, omega, scores, target, dim, padding_mask, gamma=gamma, lam=lam)
