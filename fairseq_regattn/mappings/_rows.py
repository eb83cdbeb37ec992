"""The contract every mapping keeps: any shape, dim, mask and dtype become rows.

A mapping is written once for a matrix of rows (``rows x length``); :class:`Rows` checks
the arguments, lays the scores out that way and puts the answer back.
"""

import math
import numbers
from typing import Any, Callable, Dict, Optional, Tuple, Union

import numpy as np
import torch
from torch import Tensor

from fairseq_regattn.errors import ArgumentError

Parameter = Union[float, Tensor]

# name -> (what is allowed in words, test that works on floats and on tensors)
_RANGES: Dict[str, Tuple[str, Callable[[Any], Any]]] = {
    "gamma": ("a finite number > 0", lambda v: (v > 0) & (v < math.inf)),
    "lam": ("a finite number >= 0", lambda v: (v >= 0) & (v < math.inf)),
    "p": ("a number with 1 < p <= 2", lambda v: (v > 1) & (v <= 2)),
    "alpha": ("a finite number > 1", lambda v: (v > 1) & (v < math.inf)),
}


def check_parameter(name: str, value: Any) -> None:
    """Raise :class:`ArgumentError` unless `value` is a number or tensor in its range."""
    allowed, within = _RANGES[name]
    if isinstance(value, Tensor):
        if not value.is_floating_point():
            raise ArgumentError(name, value.dtype, "a number or a floating point tensor")
        if not bool(within(value.detach()).all()):
            raise ArgumentError(name, value.detach(), f"{allowed}, everywhere")
    elif isinstance(value, bool) or not isinstance(value, numbers.Real) or not within(value):
        raise ArgumentError(name, value, f"{allowed} (or a tensor of them)")


class Rows:
    """Scores as a matrix of rows, with what belongs to each row.

    Args:
        scores: floating point, any shape with at least one dimension.
        dim: the dimension the weights sum to one along.
        padding_mask: bool, broadcastable to `scores`; True = ignore.
        params: gamma, lam, p, alpha; numbers, or tensors that broadcast to `scores` with
            size 1 along `dim`.

    Attributes:
        scores: ``rows x length``, float32 or float64 (half precision is widened).
        mask: ``rows x length`` bool, or None.
        params: each a float, or a ``rows x 1`` tensor.

    Raises:
        ArgumentError: names the argument, its value and what is allowed.
    """

    def __init__(
        self, scores: Tensor, dim: int, padding_mask: Optional[Tensor], params: Dict[str, Parameter]
    ):
        if not isinstance(scores, Tensor) or not scores.is_floating_point():
            given = scores.dtype if isinstance(scores, Tensor) else type(scores)
            raise ArgumentError("scores", given, "a floating point tensor")
        if scores.dim() == 0:
            raise ArgumentError("scores", scores.detach(), "a tensor of at least one dimension")
        if not isinstance(dim, int) or not -scores.dim() <= dim < scores.dim():
            raise ArgumentError("dim", dim, f"an int from {-scores.dim()} to {scores.dim() - 1}")
        self.dtype = scores.dtype
        self.dim = dim
        if self.dtype not in (torch.float32, torch.float64):
            scores = scores.float()
        moved = scores.movedim(dim, -1)
        self.shape = moved.shape  # the rows' own shape, then the length
        self.size = (math.prod(self.shape[:-1]), self.shape[-1])
        self.scores = moved.reshape(self.size)
        self.mask = self._mask(padding_mask, scores)
        self.params = {name: self._parameter(name, v, scores) for name, v in params.items()}

    def _mask(self, mask: Optional[Tensor], scores: Tensor) -> Optional[Tensor]:
        if mask is None:
            return None
        if not isinstance(mask, Tensor) or mask.dtype != torch.bool:
            given = mask.dtype if isinstance(mask, Tensor) else type(mask)
            raise ArgumentError("padding_mask", given, "a bool tensor, True = ignore")
        if mask.shape != scores.shape:
            try:
                mask = mask.expand(scores.shape)
            except RuntimeError:
                raise ArgumentError(
                    "padding_mask",
                    tuple(mask.shape),
                    f"broadcastable to the scores' shape {tuple(scores.shape)}",
                ) from None
        return mask.movedim(self.dim, -1).reshape(self.size)

    def _parameter(self, name: str, value: Parameter, scores: Tensor) -> Parameter:
        check_parameter(name, value)
        if not isinstance(value, Tensor):
            return self._number(name, value, scores.dtype)
        row = list(scores.shape)
        row[self.dim] = 1
        try:
            wide = value.to(scores).expand(row)
        except RuntimeError:
            raise ArgumentError(
                name, tuple(value.shape), f"broadcastable to {tuple(row)}, one value a row"
            ) from None
        if value.dtype != scores.dtype:
            self._check_rounded(name, value, wide, scores.dtype)
        return wide.movedim(self.dim, -1).reshape(-1, 1)

    def _number(self, name: str, value: Any, dtype: torch.dtype) -> float:
        try:
            number = float(value)
        except OverflowError:
            raise ArgumentError(name, value, _RANGES[name][0]) from None
        if dtype == torch.float32:
            with np.errstate(over="ignore"):
                self._check_rounded(name, value, np.float32(number), dtype)
        return number

    def _check_rounded(self, name: str, value: Any, rounded: Any, dtype: torch.dtype) -> None:
        """Gradients are computed in the precision of the scores: the range must hold there."""
        allowed, within = _RANGES[name]
        holds = within(rounded)
        if not bool(holds.all() if isinstance(holds, Tensor) else holds):
            raise ArgumentError(name, value, f"{allowed} when rounded to {dtype}")

    def restore(self, weights: Tensor) -> Tensor:
        """``rows x length`` back to the shape and dtype of the scores."""
        return weights.reshape(self.shape).movedim(-1, self.dim).to(self.dtype)

    def restore_values(self, values: Tensor) -> Tensor:
        """``rows`` back to the scores' shape without `dim`."""
        return values.reshape(self.shape[:-1]).to(self.dtype)


def by_rows(
    solve: Callable[..., Tensor],
    scores: Tensor,
    dim: int,
    padding_mask: Optional[Tensor],
    **params: Parameter,
) -> Tensor:
    """Apply ``solve(scores, mask, **params)``, written for rows, to scores of any shape."""
    rows = Rows(scores, dim, padding_mask, params)
    return rows.restore(solve(rows.scores, rows.mask, **rows.params))


def ignored(scores: Tensor, mask: Optional[Tensor]) -> Tensor:
    """Where a position takes no part: masked, or scored -inf."""
    out = scores == -math.inf
    return out if mask is None else out | mask
