"""Oscarmax as published: the OSCAR proximal operator, then the simplex projection."""

import math
from typing import Optional

from torch import Tensor

from fairseq_regattn.mappings import _sparsemax
from fairseq_regattn.mappings._grouped import NAN_LABEL, grouped, ungroup
from fairseq_regattn.mappings._kernels import kernel
from fairseq_regattn.mappings._module import MappingModule
from fairseq_regattn.mappings._oscarmax import ordered_prox
from fairseq_regattn.mappings._rows import Parameter, by_rows, ignored, or_nan
from fairseq_regattn.mappings._simplex import LARGE, refuse


@kernel(floats=5, ints=5)
def oscar_prox_row(scores, mask, _gamma, lam, floats, ints, out, labels, slopes):
    """The OSCAR proximal operator of a row of finite scores, or NaN."""
    n = scores.size
    values, sizes = floats[:n], floats[n : 2 * n]
    slopes_of, means = floats[2 * n : 3 * n], floats[3 * n : 4 * n]
    ordered = floats[4 * n : 5 * n]
    where, groups, order = ints[:n], ints[n : 2 * n], ints[2 * n : 3 * n]
    starts = ints[3 * n : 4 * n + 1]
    ok = 0.0 <= lam < math.inf
    present = 0
    for i in range(n):
        if mask.size < n or not mask[i]:
            value = float(scores[i])
            ok = ok and value < math.inf  # NaN is not
            value = max(value, -LARGE)
            values[present] = value
            sizes[present] = abs(value)
            where[present] = i
            present += 1
    if not ok:
        refuse(scores, mask, out, NAN_LABEL, labels)
        return
    out[:] = 0
    labels[:] = 0
    if slopes.size >= n:
        slopes[:] = 0
    step = min(lam, LARGE)  # its multiples must stay finite
    ordered_prox(sizes, present, present, step, ordered, order, starts, means, groups, slopes_of)
    if lam == 0.0:
        ungroup(present, groups, slopes_of, means)
    for i in range(present):
        if sizes[i] > 0 or lam == 0.0:
            j = where[i]
            sign = 1 if values[i] >= 0 else -1
            out[j] = sign * sizes[i]
            labels[j] = sign * (groups[i] + 1)
            if slopes.size >= n and sizes[i] > 0:
                slopes[j] = sign * slopes_of[groups[i]]


def solve(scores: Tensor, mask: Optional[Tensor], gamma: Parameter, lam: Parameter) -> Tensor:
    """The published composition for a ``rows x length`` matrix."""
    mask = ignored(scores, mask)
    scaled = scores.masked_fill(mask, 0) / or_nan(gamma)
    shrunk = grouped(oscar_prox_row, scaled, mask, 1.0, lam, centre=False)
    return _sparsemax.solve(shrunk, mask, 1.0)


def oscarmax_prox(
    scores: Tensor,
    dim: int = -1,
    *,
    padding_mask: Optional[Tensor] = None,
    gamma: Parameter = 1.0,
    lam: Parameter = 0.01,
) -> Tensor:
    """The composition that paper A published as oscarmax, kept to reproduce its numbers.

    ``sparsemax(P_OSC(scores / gamma))``, where ::

        P_OSC(x) = argmin_y  1/2 ||y - x||^2 + lam sum_{i<j} max(|y_i|, |y_j|)

    It only approximates :func:`oscarmax` (the paper's erratum), is not invariant to adding
    a constant to the scores, and is the gradient of no regularised max, so it has neither
    value nor loss. Arguments, shapes, errors and cost are those of :func:`oscarmax`.
    Gradients are those of the composition (Propositions 2 and 3).
    """
    return by_rows(solve, scores, dim, padding_mask, gamma=gamma, lam=lam)


class OscarmaxProx(MappingModule):
    """Module twin of :func:`oscarmax_prox`."""

    def __init__(self, dim: int = -1, gamma: Parameter = 1.0, lam: Parameter = 0.01):
        super().__init__(oscarmax_prox, dim, gamma=gamma, lam=lam)
