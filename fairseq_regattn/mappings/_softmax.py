"""Softmax: the dense baseline, under the same contract as the others."""

from typing import Optional

import torch
from torch import Tensor

from fairseq_regattn.mappings._module import MappingModule
from fairseq_regattn.mappings._rows import Parameter, by_rows, ignored, or_nan
from fairseq_regattn.mappings._value import fenchel_young


def solve(scores: Tensor, mask: Optional[Tensor], gamma: Parameter) -> Tensor:
    """Softmax of a ``rows x length`` matrix."""
    mask = ignored(scores, mask)
    empty = mask.all(-1, keepdim=True)
    # Fill before dividing: -inf would turn the gradient of gamma into NaN.
    scaled = scores.masked_fill(mask, 0) / or_nan(gamma)
    filled = scaled.masked_fill(mask & ~empty, -torch.inf)
    return torch.softmax(filled, -1).masked_fill(mask, 0)


def omega(weights: Tensor, mask: Optional[Tensor]) -> Tensor:
    """``sum_i y_i log y_i`` of each row."""
    return (weights * torch.where(weights > 0, weights, 1.0).log()).sum(-1)


def softmax(
    scores: Tensor,
    dim: int = -1,
    *,
    padding_mask: Optional[Tensor] = None,
    gamma: Parameter = 1.0,
) -> Tensor:
    """Dense probabilities ``exp(scores / gamma) / sum exp(scores / gamma)``.

    Solves, along `dim`::

        argmax_y  <y, scores> - gamma sum_i y_i log y_i   s.t.  y >= 0, sum(y) = 1

    Args:
        scores: any shape, floating point.
        dim: the weights sum to one along it.
        padding_mask: bool, broadcastable to `scores`; True = as if removed, weight 0.
        gamma: > 0, the temperature; a number, or a tensor that broadcasts to `scores`
            with size 1 along `dim`.

    Returns:
        Weights of the scores' shape and dtype; a fully masked row is all zeros (where
        ``torch.softmax`` gives NaN).

    Raises:
        ArgumentError: a ValueError that names the argument, its value and what is allowed.

    O(length) a row; differentiable to any order (paper A, section 2).
    """
    return by_rows(solve, scores, dim, padding_mask, gamma=gamma)


class Softmax(MappingModule):
    """Module twin of :func:`softmax`."""

    def __init__(self, dim: int = -1, gamma: Parameter = 1.0):
        super().__init__(softmax, dim, gamma=gamma)


def softmax_loss(
    scores: Tensor,
    target: Tensor,
    dim: int = -1,
    *,
    padding_mask: Optional[Tensor] = None,
    gamma: Parameter = 1.0,
) -> Tensor:
    """Fenchel-Young loss of :func:`softmax`; see :func:`fenchel_young_loss`."""
    return fenchel_young(solve, omega, scores, target, dim, padding_mask, gamma=gamma)
