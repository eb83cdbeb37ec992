"""Any differentiable strongly convex regulariser, by FISTA and Proposition 1."""

import warnings
from typing import Any, Callable, Optional, Tuple

import torch
from torch import Tensor

from fairseq_regattn.errors import ArgumentError
from fairseq_regattn.mappings import _sparsemax
from fairseq_regattn.mappings._rows import Parameter, Rows, ignored

Omega = Callable[[Tensor], Tensor]


def _value_and_gradient(omega: Omega, weights: Tensor, create_graph: bool = False):
    """Omega of each row and its gradient."""
    with torch.inference_mode(False), torch.enable_grad():
        if not weights.requires_grad:
            weights = weights.detach().clone().requires_grad_()
        value = omega(weights)
        if value.shape != weights.shape[:-1]:
            raise ArgumentError(
                "omega",
                f"a result of shape {tuple(value.shape)}",
                f"one value a row, shape {tuple(weights.shape[:-1])} for weights of shape"
                f" {tuple(weights.shape)}",
            )
        (gradient,) = torch.autograd.grad(value.sum(), weights, create_graph=create_graph)
    return value, gradient


def _fista(
    scores: Tensor, mask: Tensor, gamma: Parameter, omega: Omega, tol: float, max_iter: int
) -> Tensor:
    """Minimise ``gamma Omega(y) - <y, scores>`` over the simplex, all rows at once.

    Beck and Teboulle 2009 with backtracking, momentum restarted when it points uphill.
    Extrapolated points are projected, so that Omega is only asked about probabilities.
    """

    def objective(weights: Tensor) -> Tuple[Tensor, Tensor]:
        value, gradient = _value_and_gradient(omega, weights)
        smooth = gamma * value.detach().unsqueeze(-1)
        linear = (weights * scores).sum(-1, keepdim=True)
        return smooth - linear, (gamma * gradient.detach() - scores).masked_fill(mask, 0)

    here = _sparsemax.solve(torch.zeros_like(scores), mask, 1.0)  # uniform
    ahead, momentum = here, scores.new_ones(len(scores), 1)
    lipschitz = scores.new_full((len(scores), 1), 1.0) * gamma
    done = mask.all(-1, keepdim=True) | ~scores.isfinite().all(-1, keepdim=True)
    for _ in range(max_iter):
        value, gradient = objective(ahead)
        for _ in range(60):
            new = _sparsemax.solve(ahead - gradient / lipschitz, mask, 1.0)
            step = new - ahead
            model = value + (gradient * step).sum(-1, keepdim=True)
            model = model + 0.5 * lipschitz * step.square().sum(-1, keepdim=True)
            slack = 4 * torch.finfo(scores.dtype).eps * (1 + value.abs())
            short = (objective(new)[0] > model + slack) & ~done
            if not bool(short.any()):
                break
            lipschitz = torch.where(short, 2 * lipschitz, lipschitz)
        uphill = ((ahead - new) * (new - here)).sum(-1, keepdim=True) > 0
        momentum = momentum.masked_fill(uphill, 1.0)
        following = 0.5 * (1 + (1 + 4 * momentum.square()).sqrt())
        beyond = new + (momentum - 1) / following * (new - here)
        done = done | (step.abs().amax(-1, keepdim=True) <= tol)
        here, momentum = new, following
        ahead = _sparsemax.solve(beyond, mask, 1.0)
        if bool(done.all()):
            return here
    warnings.warn(
        f"general_mapping: {int((~done).sum())} of {len(done)} rows moved by more than"
        f" tol={tol} in the last of max_iter={max_iter} iterations",
        RuntimeWarning,
        stacklevel=4,
    )
    return here


class _Implicit(torch.autograd.Function):
    """The optimum as a function of scores, gamma, and whatever moves ``-gamma grad Omega``."""

    @staticmethod
    def forward(
        ctx: Any, scores: Tensor, gamma: Parameter, drift: Tensor, optimum: Tensor, omega: Omega
    ) -> Tensor:
        weights = optimum.clone()
        ctx.omega = omega
        ctx.number = None if isinstance(gamma, Tensor) else gamma
        ctx.save_for_backward(weights, gamma if isinstance(gamma, Tensor) else None)
        return weights

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> Tuple[Optional[Tensor], ...]:
        weights, gamma = ctx.saved_tensors
        gamma = ctx.number if gamma is None else gamma
        if not weights.requires_grad:
            weights = weights.detach().requires_grad_()
        off = weights == 0
        twice = torch.is_grad_enabled()
        slope = _value_and_gradient(ctx.omega, weights, create_graph=True)[1]
        with torch.enable_grad():
            columns = [column.sum() for column in slope.unbind(-1)]
        hessian = torch.stack(
            [
                torch.autograd.grad(column, weights, retain_graph=True, create_graph=twice)[0]
                for column in columns
            ],
            dim=-1,
        )
        # Off the support: the identity, which leaves the rest alone.
        eye = torch.eye(off.size(-1), dtype=grad.dtype, device=grad.device)
        hessian = torch.where(off.unsqueeze(-1) | off.unsqueeze(-2), eye, hessian)
        sides = torch.stack([grad.masked_fill(off, 0), (~off).to(grad)], -1)
        direct, constant = torch.linalg.solve(hessian, sides).unbind(-1)
        total = constant.sum(-1, keepdim=True).masked_fill(off.all(-1, keepdim=True), 1.0)
        through = direct - constant * (direct.sum(-1, keepdim=True) / total)
        to_scores = through / gamma
        to_gamma = None
        if ctx.needs_input_grad[1]:
            to_gamma = -(to_scores * slope.masked_fill(off, 0)).sum(-1, keepdim=True)
        return to_scores, to_gamma, to_scores, None, None


def general_mapping(
    scores: Tensor,
    omega: Omega,
    dim: int = -1,
    *,
    padding_mask: Optional[Tensor] = None,
    gamma: Parameter = 1.0,
    tol: float = 1e-6,
    max_iter: int = 1000,
) -> Tensor:
    """The mapping of any differentiable, strongly convex regulariser written in torch.

    Solves, along `dim`::

        argmax_y  <y, scores> - gamma omega(y)   s.t.  y >= 0, sum(y) = 1

    Args:
        scores: any shape, floating point.
        omega: maps weights ``rows x length`` to one value a row. Must be twice
            differentiable with finite gradients on the whole simplex, zeros included (for
            the entropy use :func:`softmax`).
        dim: the weights sum to one along it.
        padding_mask: bool, broadcastable to `scores`; True = weight 0, which is what
            `omega` sees there.
        gamma: > 0; a number, or a tensor that broadcasts to `scores` with size 1 along `dim`.
        tol: stop when no weight of a row moves by more than this in an iteration.
        max_iter: iterations at most; rows that have not stopped by then are counted in a
            RuntimeWarning.

    Returns:
        Weights of the scores' shape and dtype; a fully masked row is all zeros.

    Raises:
        ArgumentError: a ValueError that names the argument, its value and what is allowed.

    Forward by FISTA (paper A, section 3.1), one simplex projection an iteration. Backward by
    Proposition 1 on the support, in the scores, in gamma, and in tensors that `omega` closes
    over: O(length) Hessian products and a ``length x length`` solve a row. Twice
    differentiable in scores and gamma.
    """
    if isinstance(tol, bool) or not tol > 0:
        raise ArgumentError("tol", tol, "a number > 0")
    if isinstance(max_iter, bool) or not isinstance(max_iter, int) or max_iter < 1:
        raise ArgumentError("max_iter", max_iter, "an int >= 1")
    rows = Rows(scores, dim, padding_mask, {"gamma": gamma})
    mask = ignored(rows.scores, rows.mask)
    filled = rows.scores.masked_fill(mask, 0)
    level = rows.params["gamma"]
    fixed = level.detach() if isinstance(level, Tensor) else level
    if filled.numel() == 0:
        return rows.restore(filled)
    optimum = _fista(filled.detach(), mask, fixed, omega, tol, max_iter).detach()
    drift = torch.zeros_like(optimum)
    if omega(optimum).requires_grad:  # it closes over tensors that want a gradient
        drift = -fixed * _value_and_gradient(omega, optimum, create_graph=True)[1]
    weights = _Implicit.apply(filled, level, drift, optimum, omega)
    return rows.restore(weights)
