"""Sparsemax: the Euclidean projection onto the simplex."""

from typing import Optional

from torch import Tensor

from fairseq_regattn.mappings._grouped import NAN_LABEL, grouped, store
from fairseq_regattn.mappings._kernels import kernel
from fairseq_regattn.mappings._module import MappingModule
from fairseq_regattn.mappings._rows import Parameter, by_rows
from fairseq_regattn.mappings._simplex import refuse, select
from fairseq_regattn.mappings._value import fenchel_young


@kernel(floats=1, ints=2)
def sparsemax_row(scores, mask, gamma, _lam, floats, ints, out, labels, slopes):
    """Sparsemax of a row; the threshold is at least the best score less 1."""
    n = scores.size
    where = ints[:n]
    ranks = groups = ints[n : 2 * n]
    kept, _, ok = select(scores, mask, gamma, 1.0, floats, where, ranks)
    if not ok:
        refuse(scores, mask, out, NAN_LABEL, labels)
        return
    for i in range(kept):
        groups[i] = i
    store(kept, floats, where, groups, floats, out, labels, slopes)


def solve(scores: Tensor, mask: Optional[Tensor], gamma: Parameter) -> Tensor:
    """Sparsemax of a ``rows x length`` matrix."""
    return grouped(sparsemax_row, scores, mask, gamma, 0.0)


def omega(weights: Tensor, mask: Optional[Tensor]) -> Tensor:
    """``1/2 ||y||^2`` of each row."""
    return 0.5 * weights.square().sum(-1)


def sparsemax(
    scores: Tensor,
    dim: int = -1,
    *,
    padding_mask: Optional[Tensor] = None,
    gamma: Parameter = 1.0,
) -> Tensor:
    """Sparse probabilities: the nearest point of the simplex to ``scores / gamma``.

    Solves, along `dim`::

        argmax_y  <y, scores> - gamma/2 ||y||^2   s.t.  y >= 0, sum(y) = 1

    Args:
        scores: any shape, floating point.
        dim: the weights sum to one along it.
        padding_mask: bool, broadcastable to `scores`; True = as if removed, weight 0.
        gamma: > 0; a number, or a tensor that broadcasts to `scores` with size 1 along
            `dim`. Smaller is sparser.

    Returns:
        Weights of the scores' shape and dtype; a fully masked row is all zeros.

    Raises:
        ArgumentError: a ValueError that names the argument, its value and what is allowed.

    Ties share equally. O(length) a row in practice. Twice differentiable almost everywhere:
    the Jacobian is ``(diag(s) - s s' / sum(s)) / gamma``, s the support (paper A, section 2;
    gamma = 1 is Martins and Astudillo 2016).
    """
    return by_rows(solve, scores, dim, padding_mask, gamma=gamma)


class Sparsemax(MappingModule):
    """Module twin of :func:`sparsemax`."""

    def __init__(self, dim: int = -1, gamma: Parameter = 1.0):
        super().__init__(sparsemax, dim, gamma=gamma)


def sparsemax_loss(
    scores: Tensor,
    target: Tensor,
    dim: int = -1,
    *,
    padding_mask: Optional[Tensor] = None,
    gamma: Parameter = 1.0,
) -> Tensor:
    """Fenchel-Young loss of :func:`sparsemax`; see :func:`fenchel_young_loss`."""
    return fenchel_young(solve, omega, scores, target, dim, padding_mask, gamma=gamma)
