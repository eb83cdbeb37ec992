"""The kernels for what cannot be run on plain memory at once.

Eager tensors go straight to a kernel, through an autograd Function that costs microseconds.
``torch.compile``, ``torch.export`` and fake tensors get the same kernels as registered operators,
whose outputs' shapes are known without running them; ``torch.func`` gets an autograd Function
in the form that it can transform.
"""

from typing import Any, Callable, Optional, Sequence, Tuple, Union

import torch
from torch import Tensor

from fairseq_regattn.mappings._rows import Parameter, is_compiling

Outputs = Union[Tensor, Tuple[Tensor, ...]]


def column(value: Parameter, scores: Tensor) -> Tensor:
    """A parameter as an operator takes it: a tensor, ``rows x 1`` or ``1 x 1``."""
    if isinstance(value, Tensor):
        return value
    return torch.full((1, 1), value, dtype=torch.float64, device=scores.device)


def empty_like(matrix: Tensor, *_: Any) -> Tensor:
    """A contiguous output of the same shape, as an operator's `allocate` when that is all."""
    return torch.empty_like(matrix, memory_format=torch.contiguous_format)


def operator(
    name: str,
    schema: str,
    run: Callable[..., Outputs],
    allocate: Callable[..., Outputs],
    setup_context: Callable[..., None],
    backward: Callable[..., Any],
) -> Callable[..., Any]:
    """``torch.ops.fairseq_regattn.<name>``, and its like under ``torch.func``.

    Its first argument is ``rows x length``; its other tensors, and its outputs, are matrices of
    as many rows (parameters may have one).

    Args:
        run: does it. allocate: returns outputs of the right shapes, not filled.
        setup_context, backward: as in ``torch.library.register_autograd``.
    """
    transformable: Any = type(
        name,
        (torch.autograd.Function,),
        {
            "forward": staticmethod(run),
            "setup_context": staticmethod(setup_context),
            "backward": staticmethod(backward),
        },
    )
    transformable.vmap = staticmethod(_over_rows(transformable.apply))
    if not hasattr(torch.library, "register_vmap"):  # torch < 2.5
        return transformable.apply
    made = torch.library.custom_op(f"fairseq_regattn::{name}", run, mutates_args=(), schema=schema)
    made.register_fake(allocate)
    made.register_autograd(backward, setup_context=setup_context)
    made.register_vmap(_over_rows(made))

    def call(*args: Any) -> Any:
        if is_compiling() or not torch._C._are_functorch_transforms_active():
            return made(*args)
        return transformable.apply(*args)

    return call


def _over_rows(call: Callable[..., Outputs]) -> Callable[..., Any]:
    """The vmap rule of every operator here: a batch of matrices is a taller matrix."""

    def rule(info: Any, in_dims: Sequence[Optional[int]], *args: Any) -> Tuple[Outputs, Any]:
        batch = info.batch_size
        rows = args[0].movedim(in_dims[0] or 0, 0).size(0 if in_dims[0] is None else 1)

        def fold(value: Any, dim: Optional[int]) -> Any:
            if not isinstance(value, Tensor):
                return value
            value = value.unsqueeze(0) if dim is None else value.movedim(dim, 0)
            return value.expand(batch, rows, -1).reshape(batch * rows, value.size(-1))

        def unfold(value: Tensor) -> Tensor:
            return value.reshape(batch, rows, value.size(-1))

        out = call(*(fold(*pair) for pair in zip(args, in_dims)))
        if isinstance(out, Tensor):
            return unfold(out), 0
        return tuple(map(unfold, out)), (0,) * len(out)

    return rule
