"""Densities over the plane: continuous softmax and continuous sparsemax in two dimensions."""

import math
from typing import Any, Tuple, Type, TypeVar

import torch
from torch import Tensor
from torch.autograd import Function

from fairseq_regattn.continuous._integrals import Once, gaussian_moments
from fairseq_regattn.continuous.basis import (
    PlaneBasis,
    determinant,
    distance2,
    inverse,
    plane_normal,
    positive_definite,
)
from fairseq_regattn.continuous.line import MIN_VARIANCE, check_shapes
from fairseq_regattn.errors import ArgumentError

ANGLES = 128
"""Directions of the paraboloid's integral, see :meth:`Paraboloid.expectation`."""

_BROAD, _NODES = 1.0, 8
_SPARE = 12.0
"""Half of it is the logarithm of what a function left out of an integral is below the rounding
error of its highest value."""
"""As for the line, in lengths of the ray from the middle of the support to its border."""

_Self = TypeVar("_Self", bound="PlaneDensity")


class PlaneDensity:
    """A batch of densities over the plane, each the mapping of one quadratic score.

    The score is ``f(t) = -1/2 (t - mu)' Sigma^-1 (t - mu)`` (paper B, section 2). The attribute
    `covariance`, ``... x 2 x 2``, is the density's: ``E_p[(t - mean) (t - mean)']``.

    Args:
        mu: ``... x 2``, where the scores are highest, in units of the image's sides.
        sigma: ``... x 2 x 2``, symmetric and positive definite.

    Raises:
        ArgumentError: they are not, anywhere. This waits for a GPU, once.
    """

    def __init__(self, mu: Tensor, sigma: Tensor):
        _check_points("mu", mu)
        if not positive_definite(sigma.detach()):
            allowed = "... x 2 x 2, finite, symmetric and positive definite"
            raise ArgumentError("sigma", sigma.detach(), allowed)
        check_shapes("sigma", sigma, "mu", mu, 1)
        self._set(mu, self._covariance_of_sigma(sigma))

    @classmethod
    def from_theta(cls: Type[_Self], linear: Tensor, quadratic: Tensor) -> _Self:
        """From canonical parameters: ``f(t) = linear' t + t' quadratic t + const``.

        Raises:
            ArgumentError: `quadratic` is not negative definite, or `linear` not finite.
        """
        _check_points("linear", linear)
        if not positive_definite(-quadratic.detach()):
            allowed = "... x 2 x 2, finite, symmetric and negative definite"
            raise ArgumentError("quadratic", quadratic.detach(), allowed)
        check_shapes("quadratic", quadratic, "linear", linear, 1)
        sigma = inverse(-quadratic - quadratic.mT)
        return cls((sigma * linear.unsqueeze(-2)).sum(-1), sigma)

    @classmethod
    def from_moments(cls: Type[_Self], mean: Tensor, covariance: Tensor) -> _Self:
        """The density that has this mean, and this covariance plus `MIN_VARIANCE` times I.

        So does the papers' code, and the weights of one position give a density, too; nothing
        is checked, and NaN gives NaN.
        """
        floor = MIN_VARIANCE * torch.eye(2, dtype=covariance.dtype, device=covariance.device)
        return cls._unchecked(mean, covariance + floor)

    @classmethod
    def _unchecked(cls: Type[_Self], mu: Tensor, covariance: Tensor) -> _Self:
        density = cls.__new__(cls)
        density._set(mu, covariance)
        return density

    def _set(self, mu: Tensor, covariance: Tensor) -> None:
        # The covariance is what is kept: next to singular ones do not bear the way by sigma.
        shape = torch.broadcast_shapes(mu.shape[:-1], covariance.shape[:-2])
        symmetric = (covariance + covariance.mT) / 2  # and so is the gradient
        self.mu = mu.expand(*shape, 2)
        self.covariance = symmetric.expand(*shape, 2, 2)

    def per_point(self: _Self) -> _Self:
        """The same densities, ``... x 1``, whose `pdf` takes many points for each."""
        return self._unchecked(self.mu.unsqueeze(-2), self.covariance.unsqueeze(-3))

    @property
    def mean(self) -> Tensor:
        """``E_p[t]``, ``... x 2``."""
        return self.mu

    @property
    def sigma(self) -> Tensor:
        """Of the score, ``... x 2 x 2``."""
        raise NotImplementedError

    def support(self) -> Tuple[Tensor, Tensor]:
        """An ellipse: its centre, and the matrix S of ``(t - centre)' S^-1 (t - centre) <= 1``."""
        raise NotImplementedError

    def pdf(self, t: Tensor) -> Tensor:
        """The density at `t`, ``... x 2``, of a shape that broadcasts with mu's."""
        raise NotImplementedError

    def expectation(self, basis: PlaneBasis, angles: int = ANGLES) -> Tensor:
        """``r = E_p[psi(t)]``, ``... x N`` (paper B, section 4 and appendix)."""
        raise NotImplementedError

    @staticmethod
    def _covariance_of_sigma(sigma: Tensor) -> Tensor:
        raise NotImplementedError


class PlaneGaussian(PlaneDensity):
    """Continuous softmax: ``N(mu, Sigma)``. Differentiable any number of times."""

    @property
    def sigma(self) -> Tensor:
        return self.covariance

    def support(self) -> Tuple[Tensor, Tensor]:
        return self.mu, torch.full_like(self.covariance, math.inf)

    def pdf(self, t: Tensor) -> Tensor:
        return plane_normal(t - self.mu, inverse(self.covariance))

    def expectation(self, basis: PlaneBasis, angles: int = ANGLES) -> Tensor:
        """As in :class:`PlaneDensity`, in closed form, without `angles`."""
        # Autograd of this closed form is the covariance of phi and psi.
        total = self.covariance.unsqueeze(-3) + basis.covariances.to(self.mu)
        return plane_normal(self.mu.unsqueeze(-2) - basis.centres.to(self.mu), inverse(total))

    @staticmethod
    def _covariance_of_sigma(sigma: Tensor) -> Tensor:
        return sigma


class Paraboloid(PlaneDensity):
    """Continuous sparsemax: ``[f(t) - tau]_+``, a truncated paraboloid over an ellipse.

    With S of :meth:`support`, that is ``2 / (pi |S|^1/2) [1 - (t - mu)' S^-1 (t - mu)]_+``.
    """

    @property
    def sigma(self) -> Tensor:
        scale = 9 * math.pi * determinant(self.covariance).sqrt()
        return scale[..., None, None] * self.covariance

    def support(self) -> Tuple[Tensor, Tensor]:
        return self.mu, 6 * self.covariance

    def pdf(self, t: Tensor) -> Tensor:
        matrix = self.support()[1]
        height = 2 / (math.pi * determinant(matrix).sqrt())
        return height * (1 - distance2(t - self.mu, inverse(matrix))).clamp(min=0)

    def expectation(self, basis: PlaneBasis, angles: int = ANGLES) -> Tensor:
        """As in :class:`PlaneDensity`, exact along each of equally spaced directions.

        Args:
            angles: how many. With q, a basis function's smallest standard deviation over the
                longest half axis of the support, the error relative to the function's highest
                value is below 1e-6 for ``angles >= max(12, 5.4 / q)``. For fewer it is at most
                about ``2 exp(-(angles q)^2 / 2)``, if q is below 1/2 (and slower to fall if not).

        Differentiable once: a second time raises RuntimeError.
        """
        if angles < 1:
            raise ArgumentError("angles", angles, "at least 1")
        factor = _cholesky(self.support()[1])
        centres, precisions = basis.centres.to(self.mu), basis.precisions(self.mu)
        with torch.autocast(self.mu.device.type, enabled=False):  # it would round the factor
            return _DiscExpectation.apply(self.mu, factor, centres, precisions, angles)

    @staticmethod
    def _covariance_of_sigma(sigma: Tensor) -> Tensor:
        radius2 = 2 / (math.pi * determinant(sigma).sqrt()).sqrt()  # of the support, by sigma
        return radius2[..., None, None] / 6 * sigma


class _DiscExpectation(Function):
    """``E[psi(mu + A u)]`` for u on the unit disc with density ``2 / pi (1 - |u|^2)``.

    And its derivatives, the generalised covariances of paper B, Proposition 3, by parts
    (the escort density of a paraboloid is uniform on its support)::

        d/dmu = 2 / pi A^-T int 2 u psi du
        d/dA  = 2 / pi A^-T int (2 u u' - (1 - |u|^2) I) psi du

    In direction a, psi is a Gaussian of the radius: its moments are exact.
    """

    @staticmethod
    def forward(
        ctx: Any, mu: Tensor, factor: Tensor, centres: Tensor, precisions: Tensor, angles: int
    ) -> Tensor:
        # psi = c exp(-1/2 (A u - d)' P (A u - d)), d = centre - mu; in each direction u = r a:
        # (r - r0)^2 / width^2 + rest. Shapes: ... x N x angles.
        turn = torch.arange(angles, dtype=mu.dtype, device=mu.device) * (2 * math.pi / angles)
        direction = torch.stack([turn.cos(), turn.sin()])  # 2 x angles
        offset = (centres - mu.unsqueeze(-2)).unsqueeze(-1)  # ... x N x 2 x 1
        ray = (factor @ direction).unsqueeze(-3)  # ... x 1 x 2 x angles
        weighed = precisions @ ray
        curvature = (ray * weighed).sum(-2)
        along = (offset * weighed).sum(-2)
        # |P^1/2 d|^2 less its part along the ray, without cancellation: det(P) cross^2 / curvature
        size = determinant(precisions).unsqueeze(-1)
        cross = ray[..., 0, :] * offset[..., 1, :] - ray[..., 1, :] * offset[..., 0, :]
        rest = size * cross.square() / curvature
        width = curvature.rsqrt()
        # c sqrt(2 pi) width, times the step of the angle
        height = size.sqrt() * width * (math.sqrt(2 * math.pi) / angles)
        first, second, third = _along_rays(along / curvature, width, height, rest)

        scale = 2 / math.pi
        inside = (first - third).sum(-1)
        by_mu = scale * 2 * (second @ direction.T)  # ... x N x 2
        products = torch.stack([(a * b) for a in direction for b in direction], -1)
        spread = 2 * (third @ products).unflatten(-1, (2, 2))
        identity = torch.eye(2, dtype=mu.dtype, device=mu.device)
        by_factor = scale * (spread - inside[..., None, None] * identity)
        ctx.save_for_backward(by_mu, by_factor, mu, factor)
        return scale * inside

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> Tuple[Any, ...]:
        by_mu, by_factor, mu, factor = ctx.saved_tensors
        back = torch.linalg.inv(factor).mT
        to_mu = back @ (grad.unsqueeze(-1) * by_mu).sum(-2).unsqueeze(-1)
        to_factor = back @ (grad[..., None, None] * by_factor).sum(-3)
        found = [Once.apply(part, mu, factor) for part in (to_mu.squeeze(-1), to_factor)]
        return *found, None, None, None


def _along_rays(peak: Tensor, width: Tensor, height: Tensor, rest: Tensor) -> Tensor:
    """``int_0^1 r^j height exp(-rest / 2) N(r; peak, width^2) dr`` for j of 1 (r dr), 2 and 3.

    Arguments of one shape, which follows the three in the result.
    """
    if not peak.is_cpu:  # a selection would wait for the GPU
        moments = gaussian_moments(peak, width, 3, 0.0, _BROAD, _NODES)
        return (-0.5 * rest).exp_().mul_(height) * torch.stack(moments[1:])
    # next to nothing of most functions is on most rays
    beyond = torch.maximum(-peak, peak - 1).clamp_(min=0).div_(width)
    far = -2 * math.log(torch.finfo(peak.dtype).eps) + _SPARE
    near = beyond.square_().add_(rest).flatten().lt(far).nonzero().squeeze(1)
    peak_, width, height, rest = (part.flatten()[near] for part in (peak, width, height, rest))
    moments = gaussian_moments(peak_, width, 3, 0.0, _BROAD, _NODES)
    height = (-0.5 * rest).exp_().mul_(height)
    found = peak.new_zeros(3, peak.numel())
    for row, moment in zip(found, moments[1:]):
        row[near] = height * moment
    return found.view(3, *peak.shape)


def _cholesky(matrices: Tensor) -> Tensor:
    """The lower triangular factor of symmetric 2 x 2 matrices."""
    first = matrices[..., 0, 0].sqrt()
    below = matrices[..., 1, 0] / first
    last = determinant(matrices).sqrt() / first
    rows = torch.stack([first, torch.zeros_like(first), below, last], -1)
    return rows.unflatten(-1, (2, 2))


def _check_points(name: str, points: Tensor) -> None:
    fits = points.shape[-1:] == (2,) and points.is_floating_point()
    if not fits or not bool(points.isfinite().all()):
        raise ArgumentError(name, points.detach(), "... x 2 finite numbers")
