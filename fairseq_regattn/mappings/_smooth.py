"""Mappings whose Omega is smooth on the support: entmax and pnormmax.

Their weights solve ``scores = gamma grad Omega(y) + tau`` on the support, so with H the
Hessian of Omega there (paper A, Proposition 1, in its symmetric form) ::

    J = (1/gamma) (H^-1 - H^-1 1 1' H^-1 / (1' H^-1 1))

and a parameter theta of ``gamma Omega`` moves y by ``-J d(gamma grad Omega)/d theta``.
"""

from typing import Any, Optional, Protocol, Tuple

import numpy as np
import torch
from torch import Tensor

from fairseq_regattn.mappings._grouped import host, host_mask, per_row
from fairseq_regattn.mappings._jit import jit
from fairseq_regattn.mappings._rows import Parameter


class SmoothOmega(Protocol):
    """What a smooth Omega with one shape parameter has to say for itself.

    `weights` and `support` are ``rows x length``, `support` 1 on the support and 0 off it,
    where `weights` are given as 1 so that every power and logarithm is tame: sums must
    multiply by `support`, and what is returned there is not used. `shape` is a float or
    ``rows x 1``. `inverse_hessian` multiplies `vectors`, which are 0 off the support.
    """

    def kernel(self, *arrays: np.ndarray) -> None: ...

    def inverse_hessian(
        self, weights: Tensor, support: Tensor, vectors: Tensor, shape: Parameter
    ) -> Tensor: ...

    def gradient(self, weights: Tensor, support: Tensor, shape: Parameter) -> Tensor: ...

    def gradient_by_shape(self, weights: Tensor, support: Tensor, shape: Parameter) -> Tensor: ...


class Smooth(torch.autograd.Function):
    """Run the forward kernel of a :class:`SmoothOmega`, and differentiate implicitly.

    The backward is written in torch operations on the weights, so that it can itself be
    differentiated.
    """

    @staticmethod
    def forward(
        ctx: Any,
        scores: Tensor,
        gamma: Parameter,
        shape: Parameter,
        mask: Optional[Tensor],
        omega: SmoothOmega,
    ) -> Tensor:
        source = host(scores)
        out = np.empty_like(source)
        omega.kernel(source, host_mask(mask, len(source)), per_row(gamma), per_row(shape), out)
        weights = torch.from_numpy(out).to(scores.device)
        ctx.omega = omega
        ctx.numbers = [None if isinstance(v, Tensor) else v for v in (gamma, shape)]
        tensors = [v if isinstance(v, Tensor) else None for v in (gamma, shape)]
        ctx.save_for_backward(weights, *tensors)
        return weights

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> Tuple[Optional[Tensor], ...]:
        weights, *tensors = ctx.saved_tensors
        gamma, shape = (n if t is None else t for t, n in zip(tensors, ctx.numbers))
        off = weights == 0
        support = (~off).to(weights)
        safe = weights.masked_fill(off, 1.0)

        def inverse(vectors: Tensor) -> Tensor:
            product = ctx.omega.inverse_hessian(safe, support, vectors, shape)
            return product.masked_fill(off, 0.0)

        direct, constant = inverse(grad.masked_fill(off, 0.0)), inverse(support)
        total = constant.sum(-1, keepdim=True)
        total = total.masked_fill(off.all(-1, keepdim=True), 1.0)
        through = direct - constant * (direct.sum(-1, keepdim=True) / total)  # gamma J grad
        through = through.masked_fill(off, 0.0)  # masked positions of a row that holds NaN
        to_gamma = to_shape = None
        if ctx.needs_input_grad[1]:
            slope = ctx.omega.gradient(safe, support, shape)
            to_gamma = -(through * slope).sum(-1, keepdim=True) / gamma
        if ctx.needs_input_grad[2]:
            slope = ctx.omega.gradient_by_shape(safe, support, shape)
            to_shape = -(through * slope).sum(-1, keepdim=True)
        return through / gamma, to_gamma, to_shape, None, None


@jit
def scatter(n, ok, values, where, out_row):
    """Write a row of weights, NaN where the row was not all numbers, 0 where masked."""
    out_row[:] = 0
    total = 0.0
    for i in range(n):
        total += values[i]
    for i in range(n):
        out_row[where[i]] = values[i] / total if ok else np.nan
