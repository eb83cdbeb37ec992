"""Oscarmax: positions are drawn to equal weight wherever they are, so clusters form."""

from typing import Optional

import numpy as np
from torch import Tensor

from fairseq_regattn.mappings._grouped import Grouped, load, store
from fairseq_regattn.mappings._jit import jit
from fairseq_regattn.mappings._module import MappingModule
from fairseq_regattn.mappings._rows import Parameter, by_rows
from fairseq_regattn.mappings._value import fenchel_young


@jit
def sort_descending(keys, order, n):
    """Fill ``order[:n]`` so that ``keys[order]`` descends: Shell sort, in place, no recursion."""
    for i in range(n):
        order[i] = i
    gap = 1
    while gap < n // 3:
        gap = int(2.25 * gap) + 1
    while gap > 0:
        for i in range(gap, n):
            moving = order[i]
            j = i
            while j >= gap and keys[order[j - gap]] < keys[moving]:
                order[j] = order[j - gap]
                j -= gap
            order[j] = moving
        gap = 0 if gap == 1 else max(1, int(gap / 2.25))


@jit
def ordered_prox(keys, n, lam, order, starts, means, groups, slopes):
    """``argmin_y 1/2 ||y - keys||^2 + lam sum_k (n-1-k) y_[k]``, y_[0] >= y_[1] >= ..., in place.

    The k-th largest key is lowered by ``lam (n-1-k)``, then pooled with its neighbours
    until the order is descending again (pool adjacent violators).

    Args:
        groups: out, pool number of each position.
        slopes: out, d(values)/d(lam) summed over each pool, unaveraged.
        order, starts, means: scratch of length n, n + 1 and n.
    """
    sort_descending(keys, order, n)
    pools = 0
    for rank in range(n):
        starts[pools] = rank
        means[pools] = keys[order[rank]] - lam * (n - 1 - rank)
        pools += 1
        stop = rank + 1
        while pools > 1 and means[pools - 1] >= means[pools - 2]:
            last, first = stop - starts[pools - 1], starts[pools - 1] - starts[pools - 2]
            means[pools - 2] += (means[pools - 1] - means[pools - 2]) * last / (first + last)
            pools -= 1
    starts[pools] = n
    for pool in range(pools):
        total = 0.0
        for rank in range(starts[pool], starts[pool + 1]):
            total += keys[order[rank]] - lam * (n - 1 - rank)
        for rank in range(starts[pool], starts[pool + 1]):
            i = order[rank]
            keys[i] = total / (starts[pool + 1] - starts[pool])
            groups[i] = pool
            slopes[i] = rank + 1.0 - n


@jit
def _oscarmax_rows(scores, mask, gamma, lam, weights, labels, slopes):
    rows, length = scores.shape
    values = np.empty(length)
    where = np.empty(length, np.int64)
    groups = np.arange(length)
    ranks = np.zeros(length)
    order = np.empty(length, np.int64)
    starts = np.empty(length + 1, np.int64)
    means = np.empty(length)
    for row in range(rows):
        n, ok = load(scores[row], mask[row], gamma[row % gamma.size], True, values, where)
        if ok and n:
            # A step of the whole spread pools everything; more would only cost digits.
            step = min(lam[row % lam.size], -values[:n].min())
            ordered_prox(values, n, step, order, starts, means, groups, ranks)
        store(n, ok, values, where, groups, ranks, weights[row], labels[row], slopes[row])


def solve(scores: Tensor, mask: Optional[Tensor], gamma: Parameter, lam: Parameter) -> Tensor:
    """Oscarmax of a ``rows x length`` matrix."""
    return Grouped.apply(scores, gamma, lam, mask, _oscarmax_rows)


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
