"""Oscarmax as published: the OSCAR proximal operator, then the simplex projection."""

from typing import Optional

import numpy as np
from torch import Tensor

from fairseq_regattn.mappings import _sparsemax
from fairseq_regattn.mappings._grouped import NAN_LABEL, Grouped, load
from fairseq_regattn.mappings._jit import jit
from fairseq_regattn.mappings._module import MappingModule
from fairseq_regattn.mappings._oscarmax import ordered_prox
from fairseq_regattn.mappings._rows import Parameter, by_rows, ignored


@jit
def _oscar_prox_rows(scores, mask, gamma, lam, weights, labels, slopes):
    rows, length = scores.shape
    values = np.empty(length)
    sizes = np.empty(length)
    where = np.empty(length, np.int64)
    groups = np.arange(length)
    ranks = np.zeros(length)
    order = np.empty(length, np.int64)
    starts = np.empty(length + 1, np.int64)
    means = np.empty(length)
    weights[:] = 0
    labels[:] = 0
    slopes[:] = 0
    for row in range(rows):
        n, ok = load(scores[row], mask[row], gamma[row % gamma.size], False, values, where)
        if ok and n:
            for i in range(n):
                sizes[i] = abs(values[i])
            step = min(lam[row % lam.size], 1e100)  # its multiples must stay finite
            ordered_prox(sizes, n, step, order, starts, means, groups, ranks)
        for i in range(n):
            j = where[i]
            if not ok:
                weights[row, j] = np.nan
                labels[row, j] = NAN_LABEL
            elif sizes[i] > 0:
                sign = 1 if values[i] >= 0 else -1
                weights[row, j] = sign * sizes[i]
                labels[row, j] = sign * (groups[i] + 1)
                if slopes.size:
                    slopes[row, j] = sign * ranks[i]


def solve(scores: Tensor, mask: Optional[Tensor], gamma: Parameter, lam: Parameter) -> Tensor:
    """The published composition for a ``rows x length`` matrix."""
    mask = ignored(scores, mask)
    scaled = scores.masked_fill(mask, 0) / gamma
    shrunk = Grouped.apply(scaled, 1.0, lam, mask, _oscar_prox_rows, False)
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
