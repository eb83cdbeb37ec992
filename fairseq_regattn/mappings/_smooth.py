"""Mappings whose Omega is smooth on the support: entmax and pnormmax.

Their weights solve ``scores = gamma grad Omega(y) + tau`` on the support, so with H the
Hessian of Omega there (paper A, Proposition 1, in its symmetric form) ::

    J = (1/gamma) (H^-1 - H^-1 1 1' H^-1 / (1' H^-1 1))

and a parameter theta of ``gamma Omega`` moves y by ``-J d(gamma grad Omega)/d theta``.
"""

from typing import Any, Dict, Optional, Protocol, Tuple

import torch
from torch import Tensor

from fairseq_regattn.mappings._jit import jit
from fairseq_regattn.mappings._kernels import Kernel
from fairseq_regattn.mappings._operators import column, empty_like, operator
from fairseq_regattn.mappings._rows import Parameter, plain


class SmoothOmega(Protocol):
    """What a smooth Omega with one shape parameter has to say for itself.

    `weights` and `support` are ``rows x length``, `support` 1 on the support and 0 off it,
    where `weights` are given as 1 so that every power and logarithm is tame: sums must
    multiply by `support`, and what is returned there is not used. `shape` is a float or
    ``rows x 1``. `inverse_hessian` multiplies `vectors`, which are 0 off the support.
    """

    kernel: Kernel

    def inverse_hessian(
        self, weights: Tensor, support: Tensor, vectors: Tensor, shape: Parameter
    ) -> Tensor: ...

    def gradient(self, weights: Tensor, support: Tensor, shape: Parameter) -> Tensor: ...

    def gradient_by_shape(self, weights: Tensor, support: Tensor, shape: Parameter) -> Tensor: ...


OMEGAS: Dict[str, SmoothOmega] = {}  # by the name of their kernel


def smooth_omega(omega: Any) -> Any:
    """Class decorator, for a class of static methods: make it known to the operator."""
    OMEGAS[omega.kernel.name] = omega
    return omega


def _run(
    scores: Tensor, mask: Optional[Tensor], gamma: Parameter, shape: Parameter, omega: str
) -> Tensor:
    out = empty_like(scores)
    OMEGAS[omega].kernel(scores, mask, gamma, shape, out)
    return out


class Smooth(torch.autograd.Function):
    """Run the forward kernel of a :class:`SmoothOmega`, and differentiate implicitly.

    The backward is written in torch operations on the weights, so that it can itself be
    differentiated.
    """

    @staticmethod
    def forward(
        ctx: Any,
        scores: Tensor,
        mask: Optional[Tensor],
        gamma: Parameter,
        shape: Parameter,
        omega: str,
    ) -> Tensor:
        weights = _run(scores, mask, gamma, shape, omega)
        _setup(ctx, (scores, mask, gamma, shape, omega), weights)
        return weights

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> Tuple[Optional[Tensor], ...]:
        weights, *tensors = ctx.saved_tensors
        gamma, shape = (n if t is None else t for t, n in zip(tensors, ctx.numbers))
        omega = OMEGAS[ctx.omega]
        off = weights == 0
        support = (~off).to(weights)
        safe = weights.masked_fill(off, 1.0)

        def inverse(vectors: Tensor) -> Tensor:
            return omega.inverse_hessian(safe, support, vectors, shape).masked_fill(off, 0.0)

        direct, constant = inverse(grad.masked_fill(off, 0.0)), inverse(support)
        total = constant.sum(-1, keepdim=True)
        total = total.masked_fill(off.all(-1, keepdim=True), 1.0)
        through = direct - constant * (direct.sum(-1, keepdim=True) / total)  # gamma J grad
        through = through.masked_fill(off, 0.0)  # masked positions of a row that holds NaN
        to_gamma = to_shape = None
        if ctx.needs_input_grad[2]:
            slope = omega.gradient(safe, support, shape)
            to_gamma = -(through * slope).sum(-1, keepdim=True) / gamma
        if ctx.needs_input_grad[3]:
            slope = omega.gradient_by_shape(safe, support, shape)
            to_shape = -(through * slope).sum(-1, keepdim=True)
        return through / gamma, None, to_gamma, to_shape, None


def _setup(ctx: Any, inputs: Tuple[Any, ...], output: Tensor) -> None:
    _, _, gamma, shape, ctx.omega = inputs
    ctx.numbers = [None if isinstance(v, Tensor) else v for v in (gamma, shape)]
    ctx.save_for_backward(output, *(v if isinstance(v, Tensor) else None for v in (gamma, shape)))


_operator = operator(
    "smooth",
    "(Tensor scores, Tensor? mask, Tensor gamma, Tensor shape, str omega) -> Tensor",
    _run,
    empty_like,
    _setup,
    Smooth.backward,
)


def smooth(
    omega: SmoothOmega,
    scores: Tensor,
    mask: Optional[Tensor],
    gamma: Parameter,
    shape: Parameter,
) -> Tensor:
    """:class:`Smooth`, by the shortest way."""
    name = omega.kernel.name
    if plain(scores):
        return Smooth.apply(scores, mask, gamma, shape, name)
    return _operator(scores, mask, column(gamma, scores), column(shape, scores), name)


@jit
def scatter(n, values, where, out):
    """Write n weights, less the rounding of their sum; 0 elsewhere."""
    out[:] = 0
    total = 0.0
    for i in range(n):
        total += values[i]
    for i in range(n):
        out[where[i]] = values[i] / total
