"""The regularised maximum and the Fenchel-Young loss, given a mapping and its Omega."""

from typing import Any, Callable, List, Optional, Tuple

import torch
from torch import Tensor

from fairseq_regattn.errors import ArgumentError
from fairseq_regattn.mappings._rows import Parameter, Rows, ignored


class _Envelope(torch.autograd.Function):
    """A maximum over weights, differentiated as if the weights were fixed (Danskin).

    Backward: the weights for the scores, and minus the partial derivatives of
    ``penalty(weights, *params)``. Both keep their link to the weights, so that a second
    backward sees how these move.
    """

    @staticmethod
    def forward(
        ctx: Any,
        value: Tensor,
        scores: Tensor,
        weights: Tensor,
        penalty: Callable[..., Tensor],
        *params: Tensor,
    ) -> Tensor:
        ctx.penalty = penalty
        ctx.save_for_backward(weights, *params)
        return value.clone()

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> Tuple[Optional[Tensor], ...]:
        weights, *params = ctx.saved_tensors
        twice = torch.is_grad_enabled()
        to_params: List[Optional[Tensor]] = [None] * len(params)
        wanted = [i for i, needed in enumerate(ctx.needs_input_grad[4:]) if needed]
        if wanted:
            with torch.enable_grad():
                # Aliases: the weights depend on the parameters too, and not on these.
                params = [param.view_as(param) for param in params]
                cost = ctx.penalty(weights, *params)
            sources = [params[i] for i in wanted]
            found = torch.autograd.grad(cost, sources, -grad, create_graph=twice)
            for i, gradient in zip(wanted, found):
                to_params[i] = gradient
        return (None, grad.unsqueeze(-1) * weights, None, None, *to_params)


def _maximum(solve: Callable[..., Tensor], omega: Callable[..., Tensor], rows: Rows) -> Tensor:
    """``max_y <y, x> - gamma Omega(y)`` of each row."""
    names = [name for name, value in rows.params.items() if isinstance(value, Tensor)]
    mask = ignored(rows.scores, rows.mask)

    def penalty(weights: Tensor, *tensors: Tensor) -> Tensor:
        shape = {**rows.params, **dict(zip(names, tensors))}
        gamma = shape.pop("gamma")
        return (gamma * omega(weights, mask, **shape).unsqueeze(-1)).squeeze(-1)

    params = [rows.params[name] for name in names]
    weights = solve(rows.scores, rows.mask, **rows.params)
    with torch.no_grad():
        value = -penalty(weights, *params)
        if rows.size[1]:  # relative to the best score, so that large ones keep their digits
            top = rows.scores.masked_fill(mask, -torch.inf).amax(-1, keepdim=True)
            top = top.masked_fill(mask.all(-1, keepdim=True), 0)
            rest = (rows.scores - top).masked_fill(mask, 0)
            value = value + (weights * rest).sum(-1) + top.squeeze(-1)
    return _Envelope.apply(value, rows.scores, weights, penalty, *params)


def regularized_max_of(
    solve: Callable[..., Tensor],
    omega: Callable[..., Tensor],
    scores: Tensor,
    dim: int,
    padding_mask: Optional[Tensor],
    **params: Parameter,
) -> Tensor:
    """The value for scores of any shape: the scores' shape without `dim`."""
    rows = Rows(scores, dim, padding_mask, params)
    return rows.restore_values(_maximum(solve, omega, rows))


def fenchel_young(
    solve: Callable[..., Tensor],
    omega: Callable[..., Tensor],
    scores: Tensor,
    target: Tensor,
    dim: int,
    padding_mask: Optional[Tensor],
    **params: Parameter,
) -> Tensor:
    """``max_Omega(scores) + gamma Omega(target) - <target, scores>`` of each row."""
    rows = Rows(scores, dim, padding_mask, params)
    wanted = _distribution(target, rows)
    mask = ignored(rows.scores, rows.mask)
    if bool((mask & (wanted != 0)).any()):
        raise ArgumentError("target", target.detach(), "zero where scores are masked")
    shape = {name: value for name, value in rows.params.items() if name != "gamma"}
    entropy = omega(wanted, mask, **shape).unsqueeze(-1)
    filled = rows.scores.masked_fill(mask, 0)
    loss = (
        _maximum(solve, omega, rows)
        + (rows.params["gamma"] * entropy).squeeze(-1)
        - (wanted * filled).sum(-1)
    )
    return rows.restore_values(loss)


def _distribution(target: Tensor, rows: Rows) -> Tensor:
    """Targets as ``rows x length`` probabilities, from those or from class indices."""
    length = rows.shape[-1]
    moved_shape = torch.Size(rows.shape)
    if target.is_floating_point():
        moved = target.movedim(rows.dim, -1) if target.dim() == len(moved_shape) else target
        if moved.shape != moved_shape:
            raise ArgumentError("target", tuple(target.shape), "of the scores' shape")
        return moved.reshape(rows.size).to(rows.scores)
    if target.shape != moved_shape[:-1]:
        raise ArgumentError(
            "target", tuple(target.shape), f"class indices of shape {tuple(moved_shape[:-1])}"
        )
    if bool(((target < 0) | (target >= length)).any()):
        raise ArgumentError("target", target, f"class indices from 0 to {length - 1}")
    return torch.nn.functional.one_hot(target.reshape(-1).long(), length).to(rows.scores)
