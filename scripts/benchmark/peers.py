"""Other ways to the same weights, each run as well as it can be, to be timed against ours.

`rowwise_fusedmax` and `rowwise_oscarmax` work as torchsparseattn 0.2 does, the package released
with paper A, which no longer runs on current torch: two autograd functions one after the other,
proximal operator and simplex projection; each loops in Python over the rows of the batch, forward
and backward, and the backward finds the groups again by equality of floats. Each step uses what
it uses there: torch for the projection, numpy for sorting, machine code (Cython there, numba
here) for total variation, pooling and averaging segments. Faster than there: rows are stacked
instead of written one by one, masked instead of selected, and groups summed by ``np.bincount``
instead of ``np.add.at``.

`Fista` is how paper A computes pnormmax.
"""

from functools import partial
from itertools import islice
from typing import Any, Callable, Iterator, Tuple

import numba
import numpy as np
import torch
from torch import Tensor

from fairseq_regattn.mappings import pnormmax, sparsemax

P = 1.5  # the default of pnormmax


@numba.njit(cache=True)
def total_variation(values, lam):
    """``argmin_y 1/2 ||y - values||^2 + lam sum |y[i+1] - y[i]|``, in place, by Condat (2013).

    Quadratic in the worst case: after each jump the scan restarts where the segment ended.
    `low` and `high` bound the current segment's value, `u_low` and `u_high` are the dual
    variable at `k` for each, and `low_end` and `high_end` the last places where it may end.
    """
    last = values.size - 1
    start = k = low_end = high_end = 0
    low, high = values[0] - lam, values[0] + lam
    u_low, u_high = lam, -lam
    while True:
        inside = k < last
        target = lam if inside else 0.0  # the dual variable ends at zero
        u_low += values[k + 1] - low if inside else 0.0
        if u_low < -target:
            values[start : low_end + 1] = low
            start = k = low_end = low_end + 1
            low, u_low = values[k], lam
            if inside:
                high_end, high, u_high = k, low + 2 * lam, -lam
            else:
                u_high = low + lam - high
            continue
        u_high += values[k + 1] - high if inside else 0.0
        if u_high > target:
            values[start : high_end + 1] = high
            start = k = high_end = high_end + 1
            high, u_high = values[k], -lam
            if inside:
                low_end, low, u_low = k, high - 2 * lam, lam
            else:
                u_low = high - lam - low
            continue
        if not inside:
            values[start:] = low + u_low / (k - start + 1)
            return
        k += 1
        if u_low >= lam:
            low_end = k
            low += (u_low - lam) / (k - start + 1)
            u_low = lam
        if u_high <= -lam:
            high_end = k
            high += (u_high + lam) / (k - start + 1)
            u_high = -lam


@numba.njit(cache=True)
def pool_descending(values):
    """The nearest descending sequence, in place: pool adjacent violators."""
    sizes = np.empty(values.size, np.int64)
    pools = 0
    for value in values:
        mean, size = value, 1
        while pools and values[pools - 1] <= mean:
            pools -= 1
            mean = (size * mean + sizes[pools] * values[pools]) / (size + sizes[pools])
            size += sizes[pools]
        values[pools], sizes[pools] = mean, size
        pools += 1
    stop = values.size
    for pool in range(pools - 1, -1, -1):
        values[stop - sizes[pool] : stop] = values[pool]
        stop -= sizes[pool]


@numba.njit(cache=True)
def average_segments(weights, vector):
    """Replace `vector` by its mean over each run of equal `weights`."""
    start = 0
    for stop in range(1, weights.size + 1):
        if stop == weights.size or weights[stop] != weights[start]:
            vector[start:stop] = vector[start:stop].mean()
            start = stop


def fused_prox(row: Tensor, lam: float) -> Tensor:
    values = row.numpy().copy()
    total_variation(values, lam)
    return torch.from_numpy(values)


def fused_prox_vjp(grad: Tensor, weights: Tensor) -> Tensor:
    grad = grad.clone()
    average_segments(weights.numpy(), grad.numpy())
    return grad


def oscar_prox(row: Tensor, lam: float) -> Tensor:
    """Zeng and Figueiredo (2014): sort sizes, lower by rank, pool, clip, give back order, sign."""
    values = row.numpy()
    sizes = np.abs(values)
    order = np.argsort(sizes)[::-1]
    lowered = sizes[order] - lam * np.arange(len(sizes) - 1, -1, -1, dtype=sizes.dtype)
    pool_descending(lowered)
    sizes[order] = lowered.clip(min=0)
    return torch.from_numpy(np.copysign(sizes, values))


def oscar_prox_vjp(grad: Tensor, weights: Tensor) -> Tensor:
    signs = np.sign(weights.numpy())
    _, groups, counts = np.unique(np.abs(weights.numpy()), return_inverse=True, return_counts=True)
    means = np.bincount(groups, grad.numpy() * signs) / counts
    return torch.from_numpy((means[groups] * signs).astype(signs.dtype))


def project(row: Tensor) -> Tensor:
    """The simplex projection, by sorting."""
    ordered = row.sort(descending=True).values
    excess = ordered.cumsum(0) - 1
    counts = torch.arange(1, len(row) + 1, dtype=row.dtype)
    support = int((ordered * counts > excess).sum())
    return (row - excess[support - 1] / support).clamp(min=0)


def project_vjp(grad: Tensor, weights: Tensor) -> Tensor:
    support = weights > 0
    grad = grad.masked_fill(~support, 0)
    return (grad - grad.sum() / support.sum()).masked_fill(~support, 0)


class _Rowwise(torch.autograd.Function):
    """Forward and backward row by row, each with a function of its own."""

    @staticmethod
    def forward(
        ctx: Any,
        scores: Tensor,
        forward_row: Callable[[Tensor], Tensor],
        backward_row: Callable[[Tensor, Tensor], Tensor],
    ) -> Tensor:
        weights = torch.stack([forward_row(row) for row in scores.detach()])
        ctx.backward_row = backward_row
        ctx.save_for_backward(weights)
        return weights

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> Tuple[Tensor, None, None]:
        (weights,) = ctx.saved_tensors
        return torch.stack([ctx.backward_row(*pair) for pair in zip(grad, weights)]), None, None


def rowwise_fusedmax(scores: Tensor, lam: float = 0.1) -> Tensor:
    smoothed = _Rowwise.apply(scores, partial(fused_prox, lam=lam), fused_prox_vjp)
    return _Rowwise.apply(smoothed, project, project_vjp)


def rowwise_oscarmax(scores: Tensor, lam: float = 0.01) -> Tensor:
    """The composition that was published, our oscarmax_prox."""
    clustered = _Rowwise.apply(scores, partial(oscar_prox, lam=lam), oscar_prox_vjp)
    return _Rowwise.apply(clustered, project, project_vjp)


def _fista(scores: Tensor, lipschitz: float) -> Iterator[Tensor]:
    """Iterates for ``min 1/2 ||y||_P^2 - <y, scores>`` over the simplex, all rows at once.

    Beck and Teboulle (2009), step ``1 / lipschitz``, momentum restarted in the rows where it
    points uphill. The gradient is in closed form and the projection is our sparsemax.
    """
    here = ahead = sparsemax(scores)
    momentum = scores.new_ones(len(scores), 1)
    while True:
        powers = ahead ** (P - 1)
        norm = (ahead * powers).sum(-1, keepdim=True)  # ||y||_P^P
        new = sparsemax(ahead - (powers * norm ** (2 / P - 1) - scores) / lipschitz)
        uphill = ((ahead - new) * (new - here)).sum(-1, keepdim=True) > 0
        momentum = momentum.masked_fill(uphill, 1)
        following = (1 + (1 + 4 * momentum.square()).sqrt()) / 2
        ahead = (new + (momentum - 1) / following * (new - here)).clamp(min=0)
        here, momentum = new, following
        yield here


class _Pnormmax(torch.autograd.Function):
    """FISTA forward; backward by Proposition 1 with the Hessian inverted in closed form."""

    @staticmethod
    def forward(
        ctx: Any, scores: Tensor, lipschitz: float, iterations: int, dtype: torch.dtype
    ) -> Tensor:
        iterates = _fista(scores.to(dtype), lipschitz)
        weights = next(islice(iterates, iterations - 1, None)).to(scores)
        ctx.save_for_backward(weights)
        return weights

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> Tuple[Tensor, None, None, None]:
        (weights,) = ctx.saved_tensors
        norm = (weights**P).sum(-1, keepdim=True) ** (1 / P)
        diagonal = (weights / norm) ** (2 - P)

        def inverse(vectors: Tensor) -> Tensor:
            along = (weights * vectors).sum(-1, keepdim=True) / norm**2
            return (diagonal * vectors - (2 - P) * along * weights) / (P - 1)

        direct, constant = inverse(grad), inverse(torch.ones_like(grad))
        share = direct.sum(-1, keepdim=True) / constant.sum(-1, keepdim=True)
        return direct - constant * share, None, None, None


class Fista:
    """pnormmax by FISTA, stopped as soon as no weight is further than `tolerance` from the truth.

    1/2 ||y||_P^2 has no Lipschitz gradient: where weights are small, long steps end in a cycle
    around the solution, so every step length has an accuracy of its own. The longest that is
    accurate enough, and the number of iterations it needs, are found beforehand on the first 64
    rows of `scores`, with the solution at hand. A call pays neither for the search nor for a
    stopping rule. It works in the scores' precision if that will do, else in float64: in float32
    no step gets 64 rows much below 1e-5.
    """

    def __init__(self, scores: Tensor, tolerance: float):
        self.tolerance = tolerance
        scores = scores.detach()[:64]
        solution = pnormmax(scores.double(), p=P)
        for self.dtype in (scores.dtype, torch.float64):
            for self.lipschitz in (2.0**k for k in range(11)):
                iterates = _fista(scores.to(self.dtype), self.lipschitz)
                limit = int(40 * self.lipschitz**0.5)  # twice what is needed, where it gets there
                for self.iterations, weights in enumerate(islice(iterates, limit), 1):
                    self.error = (weights - solution).abs().max().item()
                    if self.error <= tolerance:
                        return
        raise RuntimeError(f"no step length gets to {tolerance}")

    def __call__(self, scores: Tensor) -> Tensor:
        return _Pnormmax.apply(scores, self.lipschitz, self.iterations, self.dtype)

    def __str__(self) -> str:
        return (
            f"FISTA to {self.tolerance:g}, {self.iterations} iterations of step"
            f" 1/{self.lipschitz:g} in {str(self.dtype)[6:]}: {self.error:.1e}"
        )
