"""Mappings whose Jacobian is 'average within groups, then centre on the support'.

Sparsemax, fusedmax and oscarmax are piecewise linear: once it is known which positions
were tied into one group and which groups got weight (paper A, Proposition 3), the
Jacobian is fixed. The forward kernels therefore return those groups as `labels`:
0 outside the support, k >= 1 for group k, negative for a group member whose sign was
flipped (oscarmax_prox), and NAN_LABEL in a row that holds NaN.
"""

import math
from typing import Any, Optional, Tuple

import torch
from torch import Tensor

from fairseq_regattn.mappings._jit import jit
from fairseq_regattn.mappings._kernels import KERNELS, Kernel, kernel
from fairseq_regattn.mappings._operators import column, empty_like, operator
from fairseq_regattn.mappings._rows import Parameter, plain
from fairseq_regattn.mappings._simplex import threshold

NAN_LABEL = -(2**31)


@jit
def store(n, values, where, groups, slopes, out, labels, slopes_out):
    """Project the first n values on the simplex; scatter weights, labels, slopes.

    `groups` numbers the group of each value, `slopes` holds d(value)/d(lam) of each group.
    """
    out[:] = 0
    labels[:] = 0
    if slopes_out.size >= out.size:
        slopes_out[:] = 0
    tau = threshold(values, n) if n else 0.0
    for i in range(n):
        weight = values[i] - tau
        if weight > 0:
            j = where[i]
            out[j] = weight
            labels[j] = groups[i] + 1
            if slopes_out.size >= out.size:
                slopes_out[j] = slopes[groups[i]]


@jit
def capped(lam, values, n, times):
    """lam, or `times` the spread of n values whose largest is 0: more would only cost digits."""
    lowest = 0.0
    for i in range(n):
        lowest = min(lowest, values[i])
    return min(lam, -times * lowest)


@jit
def ungroup(n, groups, slopes, spare):
    """Each of n positions a group of its own: where lam is 0, ties are not tied."""
    for i in range(n):
        spare[i] = slopes[groups[i]]
    for i in range(n):
        slopes[i] = spare[i]
        groups[i] = i


@kernel(floats=3, ints=1, side=torch.int32)
def average_row(vectors, labels, _gamma, centre, floats, where, out, _labels, _slopes):
    """Sign-aware group averages of a row, less their mean over the support if `centre`."""
    n = vectors.size
    sums = floats[: n + 1]
    counts = floats[n + 1 : 2 * n + 2]
    out[:] = 0
    support = 0
    for i in range(n):  # without a branch, which would be mispredicted
        where[support] = i
        support += labels[i] != 0
    if support and labels[where[0]] == NAN_LABEL:  # then all of them are
        for k in range(support):
            out[where[k]] = math.nan
        return
    for k in range(support):
        label = abs(labels[where[k]])
        sums[label] = 0.0
        counts[label] = 0.0
    total = 0.0
    for k in range(support):
        i = where[k]
        value = math.copysign(1.0, labels[i]) * float(vectors[i])
        label = abs(labels[i])
        sums[label] += value
        counts[label] += 1.0
        total += value
    mean = total / support if centre and support else 0.0
    for k in range(support):
        i = where[k]
        label = abs(labels[i])
        out[i] = math.copysign(1.0, labels[i]) * (sums[label] / counts[label]) - mean


def _run_average(vectors: Tensor, labels: Tensor, centre: bool) -> Tensor:
    out = empty_like(vectors)
    average_row(vectors, labels, 1.0, float(centre), out)
    return out


class GroupAverage(torch.autograd.Function):
    """v -> (sign-aware) group averages of v, less their mean over the support if `centre`.

    The operator is linear and symmetric, so it is its own backward, to any order.
    """

    @staticmethod
    def forward(ctx: Any, vectors: Tensor, labels: Tensor, centre: bool) -> Tensor:
        _setup_average(ctx, (vectors, labels, centre), None)
        return _run_average(vectors, labels, centre)

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> Tuple[Tensor, None, None]:
        return average(grad, ctx.saved_tensors[0], ctx.centre), None, None


def _setup_average(ctx: Any, inputs: Tuple[Any, ...], output: Any) -> None:
    _, labels, ctx.centre = inputs
    ctx.save_for_backward(labels)


_average_operator = operator(
    "group_average",
    "(Tensor vectors, Tensor labels, bool centre) -> Tensor",
    _run_average,
    empty_like,
    _setup_average,
    GroupAverage.backward,
)


def average(vectors: Tensor, labels: Tensor, centre: bool) -> Tensor:
    """:class:`GroupAverage`, by the shortest way."""
    if not plain(vectors):
        return _average_operator(vectors, labels, centre)
    if torch.is_grad_enabled():
        return GroupAverage.apply(vectors, labels, centre)
    return _run_average(vectors, labels, centre)


def _allocate(scores: Tensor, *others: Any) -> Tuple[Tensor, Tensor, Tensor]:
    """Weights, labels and, where they are wanted, slopes (else of length 0)."""
    labels = torch.empty(scores.shape, dtype=torch.int32, device=scores.device)
    return empty_like(scores), labels, empty_like(scores if others[-1] else scores[:, :0])


def _run_grouped(
    scores: Tensor,
    mask: Optional[Tensor],
    gamma: Tensor,
    lam: Tensor,
    kernel: str,
    centre: bool,
    slopes: bool,
) -> Tuple[Tensor, Tensor, Tensor]:
    out, labels, slopes_of = _allocate(scores, slopes)
    KERNELS[kernel](scores, mask, gamma, lam, out, labels, slopes_of if slopes else None)
    return out, labels, slopes_of


class Grouped(torch.autograd.Function):
    """Run a forward kernel that reports its groups, and differentiate through them.

    Args (of ``apply``):
        scores: ``rows x length``.
        mask: ``rows x length`` bool or None.
        gamma, lam: floats or ``rows x 1`` tensors.
        kernel: name of the row function; it fills weights, labels (both ``rows x length``)
            and, where they are wanted, d(values)/d(lam).
        centre: whether the kernel ends in the simplex projection.
    """

    @staticmethod
    def forward(
        ctx: Any,
        scores: Tensor,
        mask: Optional[Tensor],
        gamma: Parameter,
        lam: Parameter,
        kernel: str,
        centre: bool,
    ) -> Tensor:
        out = empty_like(scores)
        labels = torch.empty(scores.shape, dtype=torch.int32, device=scores.device)
        slopes = empty_like(scores) if ctx.needs_input_grad[3] else None
        KERNELS[kernel](scores, mask, gamma, lam, out, labels, slopes)
        _setup_grouped(ctx, (scores, mask, gamma, lam, kernel, centre), (out, labels, slopes))
        return out

    @staticmethod
    def backward(ctx: Any, grad: Tensor, *_others: Any) -> Tuple[Optional[Tensor], ...]:
        scores, gamma, labels, slopes = ctx.saved_tensors
        gamma = ctx.gamma if gamma is None else gamma
        through = average(grad, labels, ctx.centre)
        to_scores = through if isinstance(gamma, float) and gamma == 1.0 else through / gamma
        to_gamma = to_lam = None
        if ctx.needs_input_grad[2]:
            # `through` sums to zero over the support, so any shift of the scores will do;
            # the largest supported score keeps digits.
            off = labels == 0
            if scores.size(1):
                top = scores.detach().masked_fill(off, -torch.inf).amax(1, keepdim=True)
                scores = scores - top
            shifted = scores.masked_fill(off, 0)
            to_gamma = -(to_scores * shifted).sum(1, keepdim=True) / gamma
        if ctx.needs_input_grad[3]:
            to_lam = (through * slopes).sum(1, keepdim=True)
        return to_scores, None, to_gamma, to_lam, None, None


def _setup_grouped(ctx: Any, inputs: Tuple[Any, ...], output: Tuple[Tensor, ...]) -> None:
    scores, _, gamma, _, _, ctx.centre, *_ = inputs
    _, labels, slopes = output
    ctx.gamma = None if isinstance(gamma, Tensor) else gamma
    ctx.save_for_backward(
        scores if ctx.needs_input_grad[2] else None,
        gamma if isinstance(gamma, Tensor) else None,
        labels,
        slopes if ctx.needs_input_grad[3] else None,
    )


def _backward(ctx: Any, *grads: Tensor) -> Tuple[Optional[Tensor], ...]:
    return (*Grouped.backward(ctx, *grads), None)  # for `slopes`


_grouped_operator = operator(
    "grouped",
    "(Tensor scores, Tensor? mask, Tensor gamma, Tensor lam, str kernel, bool centre, bool slopes)"
    " -> (Tensor, Tensor, Tensor)",
    _run_grouped,
    _allocate,
    _setup_grouped,
    _backward,
)


def grouped(
    kernel: Kernel,
    scores: Tensor,
    mask: Optional[Tensor],
    gamma: Parameter,
    lam: Parameter,
    centre: bool = True,
) -> Tensor:
    """:class:`Grouped`, by the shortest way."""
    if plain(scores):
        return Grouped.apply(scores, mask, gamma, lam, kernel.name, centre)
    slopes = isinstance(lam, Tensor)  # inside a transform nobody knows whether they are wanted
    inputs = (scores, mask, column(gamma, scores), column(lam, scores))
    return _grouped_operator(*inputs, kernel.name, centre, slopes)[0]
