"""The regularised maximum and the Fenchel-Young loss, given a mapping and its Omega."""

from typing import Callable, Optional

import torch
from torch import Tensor

from fairseq_regattn.errors import ArgumentError
from fairseq_regattn.mappings._rows import Parameter, Rows, ignored


def _maximum(solve: Callable[..., Tensor], omega: Callable[..., Tensor], rows: Rows) -> Tensor:
    """``max_y <y, x> - gamma Omega(y)`` of each row.

    Autograd through this gives y for the scores and the partial derivatives for the
    parameters: what flows back through y itself is the Jacobian times a vector that is
    constant on the support, and so vanishes.
    """
    shape = {name: value for name, value in rows.params.items() if name != "gamma"}
    gamma = rows.params["gamma"]
    weights = solve(rows.scores, rows.mask, **rows.params)
    mask = ignored(rows.scores, rows.mask)
    filled = rows.scores.masked_fill(mask, 0)
    if rows.size[1]:  # relative to the best score, so that large ones keep their digits
        top = filled.detach().masked_fill(mask, -torch.inf).amax(-1, keepdim=True)
        top = top.masked_fill(mask.all(-1, keepdim=True), 0)
        rest = (filled - top).masked_fill(mask, 0)
        top = top.squeeze(-1)
    else:
        rest, top = filled, filled.sum(-1)
    # <weights, top> is top, but for its gradient, which `rest` carries whole
    regulariser = omega(weights, mask, **shape)
    penalty = (torch.as_tensor(gamma) * regulariser.unsqueeze(-1)).squeeze(-1)
    return (weights * rest).sum(-1) + top - penalty


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
        + (torch.as_tensor(rows.params["gamma"]) * entropy).squeeze(-1)
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
