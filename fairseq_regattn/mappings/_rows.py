"""The contract every mapping keeps: any shape, dim, mask and dtype become rows.

A mapping is written once for a matrix of rows (``rows x length``); :class:`Rows` checks
the arguments, lays the scores out that way and puts the answer back.
"""

import math
import numbers
from functools import lru_cache
from typing import Any, Callable, Dict, Optional, Tuple, Union

import numpy as np
import torch
from torch import Tensor, nn

from fairseq_regattn.errors import ArgumentError

Parameter = Union[float, Tensor]

# name -> (what is allowed in words, test that works on floats and on tensors)
_RANGES: Dict[str, Tuple[str, Callable[[Any], Any]]] = {
    "gamma": ("a finite number > 0", lambda v: (v > 0) & (v < math.inf)),
    "lam": ("a finite number >= 0", lambda v: (v >= 0) & (v < math.inf)),
    "p": ("a number with 1 < p <= 2", lambda v: (v > 1) & (v <= 2)),
    "alpha": ("a finite number > 1", lambda v: (v > 1) & (v < math.inf)),
}


# torch < 2.3 has no such functions, and its compiler is not supported
_compiler = getattr(torch, "compiler", None)
is_compiling: Callable[[], bool] = getattr(_compiler, "is_compiling", lambda: False)
# autograd's batched gradients (is_grads_batched) have a vmap of their own
_is_batched = getattr(torch._C._functorch, "is_legacy_batchedtensor", lambda tensor: False)


def plain(tensor: Tensor) -> bool:
    """Whether the tensor's memory can be read now: nothing is tracing or transforming it."""
    return (
        not is_compiling()
        and not torch._C._are_functorch_transforms_active()
        and not torch._C._len_torch_dispatch_stack()
        and not torch._C._is_tracing()
        and type(tensor) in (Tensor, nn.Parameter)
        and (tensor.is_cpu or tensor.is_cuda)
        and not _is_batched(tensor)
    )


def readable(tensor: Tensor) -> bool:
    """Whether its values can be looked at without waiting for a device."""
    return plain(tensor) and not tensor.is_cuda


def check_parameter(name: str, value: Any) -> None:
    """Raise :class:`ArgumentError` unless `value` is a number or tensor in its range.

    Values that cannot be looked at pass; where they are out of range the rows will be NaN.
    """
    allowed, within = _RANGES[name]
    if isinstance(value, Tensor):
        if not value.is_floating_point():
            raise ArgumentError(name, value.dtype, "a number or a floating point tensor")
        if readable(value) and not bool(within(value.detach()).all()):
            raise ArgumentError(name, value.detach(), f"{allowed}, everywhere")
    elif isinstance(value, bool) or not isinstance(value, numbers.Real) or not within(value):
        raise ArgumentError(name, value, f"{allowed} (or a tensor of them)")


def _check_rounded(name: str, value: Any, rounded: Any, dtype: torch.dtype) -> None:
    """Gradients are computed in the precision of the scores: the range must hold there."""
    allowed, within = _RANGES[name]
    holds = within(rounded)
    if not bool(holds.all() if isinstance(holds, Tensor) else holds):
        raise ArgumentError(name, value, f"{allowed} when rounded to {dtype}")


def _check_number(name: str, value: Any, dtype: torch.dtype) -> float:
    check_parameter(name, value)
    try:
        number = float(value)
    except OverflowError:
        raise ArgumentError(name, value, _RANGES[name][0]) from None
    if dtype == torch.float32:
        with np.errstate(over="ignore"):
            _check_rounded(name, value, np.float32(number), dtype)
    return number


_remembered = lru_cache(maxsize=1024)(_check_number)


def _number(name: str, value: Any, dtype: torch.dtype) -> float:
    """A parameter given as a number; remembered, because checking costs what a kernel does."""
    if is_compiling():  # what rounds out of range gives NaN
        check_parameter(name, value)
        return value
    return (_remembered if type(value) is float else _check_number)(name, value, dtype)


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
        moved = self._last(scores)
        self.shape = moved.shape  # the rows' own shape, then the length
        self.size = (math.prod(self.shape[:-1]), self.shape[-1])
        self.scores = self._matrix(moved)
        self.mask = None if padding_mask is None else self._mask(padding_mask, scores)
        self.params = {name: self._parameter(name, v, scores) for name, v in params.items()}

    def _last(self, tensor: Tensor) -> Tensor:
        return tensor if self.dim in (-1, tensor.dim() - 1) else tensor.movedim(self.dim, -1)

    def _matrix(self, moved: Tensor) -> Tensor:
        return moved if moved.dim() == 2 else moved.reshape(self.size)

    def _mask(self, mask: Tensor, scores: Tensor) -> Tensor:
        if not isinstance(mask, Tensor) or mask.dtype != torch.bool:
            given = mask.dtype if isinstance(mask, Tensor) else type(mask)
            raise ArgumentError("padding_mask", given, "a bool tensor, True = ignore")
        if mask.device != scores.device:
            raise ArgumentError("padding_mask", mask.device, f"on {scores.device}, as the scores")
        if mask.shape != scores.shape:
            try:
                mask = mask.expand(scores.shape)
            except RuntimeError:
                raise ArgumentError(
                    "padding_mask",
                    tuple(mask.shape),
                    f"broadcastable to the scores' shape {tuple(scores.shape)}",
                ) from None
        return self._matrix(self._last(mask))

    def _parameter(self, name: str, value: Parameter, scores: Tensor) -> Parameter:
        if not isinstance(value, Tensor):
            return _number(name, value, scores.dtype)
        check_parameter(name, value)
        row = list(scores.shape)
        row[self.dim] = 1
        try:
            wide = value.to(scores).expand(row)
        except RuntimeError:
            raise ArgumentError(
                name, tuple(value.shape), f"broadcastable to {tuple(row)}, one value a row"
            ) from None
        if value.dtype != scores.dtype and readable(value):
            _check_rounded(name, value, wide, scores.dtype)
        return wide.movedim(self.dim, -1).reshape(-1, 1)

    def restore(self, weights: Tensor) -> Tensor:
        """``rows x length`` back to the shape and dtype of the scores."""
        if len(self.shape) != 2:
            weights = weights.reshape(self.shape)
        if self.dim not in (-1, len(self.shape) - 1):
            weights = weights.movedim(-1, self.dim)
        return weights.to(self.dtype)

    def restore_values(self, values: Tensor) -> Tensor:
        """``rows`` back to the scores' shape without `dim`."""
        return values.reshape(self.shape[:-1]).to(self.dtype)


def _rows_already(
    scores: Tensor, dim: int, padding_mask: Optional[Tensor], params: Dict[str, Parameter]
) -> bool:
    """The case of every training step, for which the checks must cost next to nothing."""
    if dim != -1 or not isinstance(scores, Tensor) or scores.dim() != 2:
        return False
    if scores.dtype is not torch.float32 and scores.dtype is not torch.float64:
        return False
    for value in params.values():
        if type(value) is not float:
            return False
    return padding_mask is None or (
        isinstance(padding_mask, Tensor)
        and padding_mask.dtype is torch.bool
        and padding_mask.shape == scores.shape
        and padding_mask.device == scores.device
    )


def by_rows(
    solve: Callable[..., Tensor],
    scores: Tensor,
    dim: int,
    padding_mask: Optional[Tensor],
    **params: Parameter,
) -> Tensor:
    """Apply ``solve(scores, mask, **params)``, written for rows, to scores of any shape."""
    if _rows_already(scores, dim, padding_mask, params):
        for name, value in params.items():
            _number(name, value, scores.dtype)
        return solve(scores, padding_mask, **params)
    rows = Rows(scores, dim, padding_mask, params)
    return rows.restore(solve(rows.scores, rows.mask, **rows.params))


def or_nan(gamma: Parameter) -> Parameter:
    """A gamma that nobody could look at: NaN where it is out of range, as the kernels see to."""
    if not isinstance(gamma, Tensor) or readable(gamma):
        return gamma
    return torch.where((gamma > 0) & (gamma < torch.inf), gamma, torch.nan)


def ignored(scores: Tensor, mask: Optional[Tensor]) -> Tensor:
    """Where a position takes no part: masked, or scored -inf."""
    out = scores == -math.inf
    return out if mask is None else out | mask
