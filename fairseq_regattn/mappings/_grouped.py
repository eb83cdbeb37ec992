"""Mappings whose Jacobian is 'average within groups, then centre on the support'.

Sparsemax, fusedmax and oscarmax are piecewise linear: once it is known which positions
were tied into one group and which groups got weight (paper A, Proposition 3), the
Jacobian is fixed. The forward kernels therefore return those groups as `labels`:
0 outside the support, k >= 1 for group k, negative for a group member whose sign was
flipped (oscarmax_prox), and NAN_LABEL in a row that holds NaN.
"""

from typing import Any, Callable, Optional, Tuple

import numpy as np
import torch
from torch import Tensor

from fairseq_regattn.mappings._jit import jit
from fairseq_regattn.mappings._rows import Parameter

NAN_LABEL = np.iinfo(np.int32).min
_LOWEST = -1e100  # far below any support, and safe to add up


@jit
def load(scores, mask, gamma, shift, values, where):
    """Gather a row's unmasked scores as ``score / gamma``, less their maximum if `shift`.

    Returns how many there are, and whether all are numbers (NaN and +inf are not).
    """
    n = 0
    top = -np.inf
    for i in range(scores.size):
        score = scores[i]
        if (mask.size and mask[i]) or score == -np.inf:
            continue
        if not score < np.inf:
            top = np.nan
        elif score > top:
            top = score
        values[n] = score
        where[n] = i
        n += 1
    ok = not np.isnan(top)
    if not shift:
        top = 0.0
    for i in range(n):
        values[i] = max((values[i] - top) / gamma, _LOWEST)
    return n, ok


@jit
def threshold(values, n):
    """tau with ``sum(max(values - tau, 0)) == 1``; the first n values lose their maximum first.

    Values far from zero would have no digits left for weights. Newton's method from below on a
    convex piecewise linear function: the active set only shrinks, so it ends after finitely many
    passes (Michelot 1986), few in practice. A set that grows back can only be rounding, and
    ends it too.
    """
    top = values[0]
    for i in range(1, n):
        top = max(top, values[i])
    for i in range(n):
        values[i] -= top
    tau = -1.0
    active = n + 1
    while True:
        count = 0
        total = 0.0
        for i in range(n):
            if values[i] > tau:
                count += 1
                total += values[i]
        if count >= active:
            return tau
        active = count
        tau = (total - 1.0) / count


@jit
def store(n, ok, values, where, groups, slopes, weights_row, labels_row, slopes_row):
    """Project the first n values on the simplex; scatter weights, labels, slopes."""
    weights_row[:] = 0
    labels_row[:] = 0
    slopes_row[:] = 0
    if not ok:
        for i in range(n):
            weights_row[where[i]] = np.nan
            labels_row[where[i]] = NAN_LABEL
        return
    tau = threshold(values, n) if n else 0.0
    for i in range(n):
        weight = values[i] - tau
        if weight > 0:
            weights_row[where[i]] = weight
            labels_row[where[i]] = groups[i] + 1
        if slopes_row.size:
            slopes_row[where[i]] = slopes[i]


@jit
def _average_rows(vectors, labels, centre, out):
    rows, length = vectors.shape
    sums = np.empty(length + 1)
    counts = np.empty(length + 1)
    for row in range(rows):
        sums[:] = 0
        counts[:] = 0
        total = 0.0
        support = 0
        bad = False
        for i in range(length):
            label = labels[row, i]
            if label == NAN_LABEL:
                bad = True
            elif label != 0:
                value = vectors[row, i] if label > 0 else -vectors[row, i]
                sums[abs(label)] += value
                counts[abs(label)] += 1
                total += value
                support += 1
        mean = total / support if centre and support else 0.0
        for i in range(length):
            label = labels[row, i]
            if label == 0:
                out[row, i] = 0
            elif bad:
                out[row, i] = np.nan
            else:
                average = sums[abs(label)] / counts[abs(label)]
                out[row, i] = (average if label > 0 else -average) - mean


class GroupAverage(torch.autograd.Function):
    """v -> (sign-aware) group averages of v, less their mean over the support if `centre`.

    The operator is linear and symmetric, so it is its own backward, to any order.
    """

    @staticmethod
    def forward(ctx: Any, vectors: Tensor, labels: Tensor, centre: bool) -> Tensor:
        ctx.save_for_backward(labels)
        ctx.centre = centre
        source = host(vectors)
        out = np.empty_like(source)
        _average_rows(source, host(labels), centre, out)
        return torch.from_numpy(out).to(vectors.device)

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> Tuple[Tensor, None, None]:
        (labels,) = ctx.saved_tensors
        return GroupAverage.apply(grad, labels, ctx.centre), None, None


class Grouped(torch.autograd.Function):
    """Run a forward kernel that reports its groups, and differentiate through them.

    Args (of ``apply``):
        scores: ``rows x length``.
        gamma, lam: floats or ``rows x 1`` tensors.
        mask: ``rows x length`` bool or None.
        kernel: fills weights, labels (both ``rows x length``) and, unless it has no
            columns, d(values)/d(lam) before averaging.
        centre: whether the kernel ends in the simplex projection.
    """

    @staticmethod
    def forward(
        ctx: Any,
        scores: Tensor,
        gamma: Parameter,
        lam: Parameter,
        mask: Optional[Tensor],
        kernel: Callable[..., None],
        centre: bool = True,
    ) -> Tensor:
        source = host(scores)
        rows, length = source.shape
        weights = np.empty_like(source)
        labels = np.empty((rows, length), np.int32)
        slopes = np.empty((rows, length if ctx.needs_input_grad[2] else 0))
        kernel(source, host_mask(mask, rows), per_row(gamma), per_row(lam), weights, labels, slopes)
        ctx.centre = centre
        ctx.gamma = None if isinstance(gamma, Tensor) else gamma
        ctx.save_for_backward(
            scores if ctx.needs_input_grad[1] else None,
            gamma if isinstance(gamma, Tensor) else None,
            torch.from_numpy(labels).to(scores.device),
            torch.from_numpy(slopes).to(scores),
        )
        return torch.from_numpy(weights).to(scores.device)

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> Tuple[Optional[Tensor], ...]:
        scores, gamma, labels, slopes = ctx.saved_tensors
        gamma = ctx.gamma if gamma is None else gamma
        through = GroupAverage.apply(grad, labels, ctx.centre)
        to_scores = through / gamma
        to_gamma = to_lam = None
        if ctx.needs_input_grad[1]:
            # `through` sums to zero over the support, so any shift of the scores will do;
            # the largest supported score keeps digits.
            off = labels == 0
            if scores.size(1):
                top = scores.detach().masked_fill(off, -torch.inf).amax(1, keepdim=True)
                scores = scores - top
            shifted = scores.masked_fill(off, 0)
            to_gamma = -(to_scores * shifted).sum(1, keepdim=True) / gamma
        if ctx.needs_input_grad[2]:
            to_lam = (through * slopes).sum(1, keepdim=True)
        return to_scores, to_gamma, to_lam, None, None, None


def host(tensor: Tensor) -> np.ndarray:
    """The tensor as a contiguous numpy array."""
    return tensor.detach().cpu().contiguous().numpy()


def host_mask(mask: Optional[Tensor], rows: int) -> np.ndarray:
    """The mask for a kernel; no columns where there is none."""
    return np.empty((rows, 0), np.bool_) if mask is None else host(mask)


def per_row(value: Parameter) -> np.ndarray:
    """A parameter for a kernel: float64, one entry for all rows or one for each."""
    if isinstance(value, Tensor):
        return host(value).astype(np.float64).ravel()
    return np.array([value])
