"""Densities over the line: continuous softmax, and the family of continuous sparsemax.

The score is a parabola, ``f(t) = -(t - mu)^2 / (2 sigma2)``, and the density maximises
``E_p[f] - Omega(p)`` over all densities (paper B, section 2): with Shannon's entropy it is a
Gaussian, with Tsallis' of alpha = 2 the truncated parabola ``[f(t) - tau]_+``.
"""

import math
from typing import Any, Tuple, Type, TypeVar

import torch
from torch import Tensor
from torch.autograd import Function

from fairseq_regattn.continuous._integrals import (
    Once,
    closed_form,
    gauss_legendre,
    normal,
    normal_between,
)
from fairseq_regattn.continuous.basis import LineBasis
from fairseq_regattn.errors import ArgumentError

MIN_VARIANCE = 1e-6
"""What `from_moments` takes smaller variances for, in units of a sentence's (or image's) length."""

_BROAD, _NODES = 0.5, 20
"""Basis functions at least so wide, in half-widths of the support, are integrated numerically with
an error of 1e-14 of their highest value; closed forms are as good for narrower ones."""

_NARROW = 0.01
"""Bins that are narrower, in standard deviations, have a Gaussian's mass from a series of which the
next term is below 1e-14, four deviations from its mean."""

_NEGATIVE = "< 0, and finite as sigma2 = -1 / (2 theta_2) is"

_Self = TypeVar("_Self", bound="LineDensity")


class LineDensity:
    """A batch of densities over the line, each the mapping of one quadratic score.

    Args:
        mu: where the scores are highest, any shape, in units of the sentence's length.
        sigma2: ``1 / -f''``, of a shape that broadcasts with mu's; > 0.

    Raises:
        ArgumentError: sigma2 not > 0 or mu not finite, anywhere, shapes that do not fit, or whole
            numbers. This waits for a GPU, once.
    """

    def __init__(self, mu: Tensor, sigma2: Tensor):
        _check("mu", mu, mu.isfinite(), "finite")
        _check("sigma2", sigma2, (sigma2 > 0) & sigma2.isfinite(), "finite and > 0")
        check_shapes("sigma2", sigma2, "mu", mu)
        self.mu, self.sigma2 = torch.broadcast_tensors(mu, sigma2)

    @classmethod
    def from_theta(cls: Type[_Self], theta: Tensor) -> _Self:
        """From canonical parameters ``... x 2``: ``f(t) = theta_1 t + theta_2 t^2 + const``.

        Raises:
            ArgumentError: theta_2 not < 0, or not finite as theta_1 has to be.
        """
        if theta.shape[-1:] != (2,):
            raise ArgumentError("theta", theta.detach(), "... x 2 numbers")
        first, second = theta.unbind(-1)
        mu, sigma2 = -first / (2 * second), -0.5 / second
        _check("theta[..., 1]", second, (second < 0) & (sigma2 > 0) & sigma2.isfinite(), _NEGATIVE)
        _check("theta[..., 0]", first, mu.isfinite(), "finite, as mu = theta_1 sigma2 is")
        return cls(mu, sigma2)

    @classmethod
    def from_moments(cls: Type[_Self], mean: Tensor, variance: Tensor) -> _Self:
        """The density that has this mean and variance.

        A variance below `MIN_VARIANCE` is taken for that, as the papers' code does, so the weights
        of one position give a density; nothing is checked, and NaN gives NaN.
        """
        return cls._unchecked(mean, cls._sigma2_of_variance(variance.clamp(min=MIN_VARIANCE)))

    @classmethod
    def from_score(cls: Type[_Self], mu: Tensor, sigma2: Tensor) -> _Self:
        """As the constructor, without waiting for a GPU: nothing is checked.

        A sigma2 below `MIN_VARIANCE` is taken for that.
        """
        return cls._unchecked(mu, sigma2.clamp(min=MIN_VARIANCE))

    @classmethod
    def _unchecked(cls: Type[_Self], mu: Tensor, sigma2: Tensor) -> _Self:
        density = cls.__new__(cls)
        density.mu, density.sigma2 = torch.broadcast_tensors(mu, sigma2)
        return density

    def per_point(self: _Self) -> _Self:
        """The same densities, ``... x 1``: `pdf`, `cdf` and `mass` take many points for each."""
        return self._unchecked(self.mu.unsqueeze(-1), self.sigma2.unsqueeze(-1))

    @property
    def theta(self) -> Tensor:
        """Canonical parameters ``... x 2``."""
        return torch.stack([self.mu / self.sigma2, -0.5 / self.sigma2], -1)

    @property
    def mean(self) -> Tensor:
        """``E_p[t]``."""
        return self.mu

    @property
    def variance(self) -> Tensor:
        """``E_p[(t - mean)^2]``."""
        raise NotImplementedError

    def support(self) -> Tuple[Tensor, Tensor]:
        """Where the density begins and ends."""
        raise NotImplementedError

    def pdf(self, t: Tensor) -> Tensor:
        """The density at `t`, of a shape that broadcasts with mu's."""
        raise NotImplementedError

    def cdf(self, t: Tensor) -> Tensor:
        """The mass below `t`, of a shape that broadcasts with mu's."""
        raise NotImplementedError

    def mass(self, start: Tensor, end: Tensor) -> Tensor:
        """What lies between: never negative, and as precise above mu as below."""
        raise NotImplementedError

    def expectation(self, basis: LineBasis) -> Tensor:
        """``r = E_p[psi(t)]``: mu's shape ``... x N``, in closed form (paper B, section 4)."""
        raise NotImplementedError

    @staticmethod
    def _sigma2_of_variance(variance: Tensor) -> Tensor:
        raise NotImplementedError


class Gaussian(LineDensity):
    """Continuous softmax, alpha = 1: ``N(mu, sigma2)``. Differentiable any number of times."""

    @property
    def variance(self) -> Tensor:
        return self.sigma2

    def support(self) -> Tuple[Tensor, Tensor]:
        return torch.full_like(self.mu, -math.inf), torch.full_like(self.mu, math.inf)

    def pdf(self, t: Tensor) -> Tensor:
        sigma = self.sigma2.sqrt()
        return normal((t - self.mu) / sigma) / sigma

    def cdf(self, t: Tensor) -> Tensor:
        return torch.special.ndtr((t - self.mu) / self.sigma2.sqrt())

    def mass(self, start: Tensor, end: Tensor) -> Tensor:
        sigma = self.sigma2.sqrt()
        exact = normal_between((start - self.mu) / sigma, (end - self.mu) / sigma)
        size = (end - start) / sigma
        narrow = size < _NARROW
        if size.is_cpu and not bool(narrow.any()):
            return exact
        # differences of the cumulative function would lose digits; this is Taylor's series
        step = torch.where(narrow, size, 0)
        z = torch.where(narrow, ((start + end) / 2 - self.mu) / sigma, 0)
        step2, z2 = step.square(), z.square()
        rest = step2 * (z2 - 1) / 24 + step2.square() * (z2.square() - 6 * z2 + 3) / 1920
        series = step * normal(z) * (1 + rest)
        return torch.where(narrow, series, exact)

    def expectation(self, basis: LineBasis) -> Tensor:
        # Autograd of this closed form is the covariance of phi and psi.
        centres, widths = basis.centres.to(self.mu), basis.widths.to(self.mu)
        width = (self.sigma2.unsqueeze(-1) + widths.square()).sqrt()
        return normal((self.mu.unsqueeze(-1) - centres) / width) / width

    @staticmethod
    def _sigma2_of_variance(variance: Tensor) -> Tensor:
        return variance


class _Truncated(LineDensity):
    """``p = [(alpha - 1) (f - tau)]_+^power`` with ``power = 1 / (alpha - 1)`` a whole number.

    With ``u = (t - mu) / half_width`` that is ``normaliser / half_width (1 - u^2)^power``.
    """

    power: int

    @classmethod
    def _normaliser(cls) -> float:
        """1 over the integral of ``(1 - u^2)^power``."""
        return math.gamma(cls.power + 1.5) / (math.sqrt(math.pi) * math.gamma(cls.power + 1))

    @property
    def half_width(self) -> Tensor:
        """The support is ``mu`` plus and minus this."""
        # at mu: (half_width^2 / (2 power sigma2))^power = normaliser / half_width
        k = self.power
        scale = (self._normaliser() * (2 * k) ** k) ** (1 / (2 * k + 1))
        return scale * self.sigma2 ** (k / (2 * k + 1))

    @property
    def variance(self) -> Tensor:
        return self.half_width.square() / (2 * self.power + 3)

    @classmethod
    def _sigma2_of_variance(cls, variance: Tensor) -> Tensor:
        k = cls.power
        scale = cls._normaliser() ** (1 / k) * 2 * k
        return ((2 * k + 3) * variance) ** ((2 * k + 1) / (2 * k)) / scale

    def support(self) -> Tuple[Tensor, Tensor]:
        return self.mu - self.half_width, self.mu + self.half_width

    def pdf(self, t: Tensor) -> Tensor:
        u = (t - self.mu) / self.half_width
        return self._normaliser() / self.half_width * (1 - u.square()).clamp(min=0) ** self.power

    def cdf(self, t: Tensor) -> Tensor:
        u = ((t - self.mu) / self.half_width).clamp(-1, 1)
        terms = (
            factor * u ** (power + 1) / (power + 1)
            for power, factor in _polynomial(self.power).items()
        )
        return 0.5 + self._normaliser() * sum(terms)

    def mass(self, start: Tensor, end: Tensor) -> Tensor:
        low, high = (((t - self.mu) / self.half_width).clamp(-1, 1) for t in (start, end))
        middle, half = (low + high) / 2, (high - low) / 2
        nodes = gauss_legendre(self.power + 1)  # exact
        parts = (w * (1 - (middle + half * u).square()) ** self.power for u, w in nodes)
        return self._normaliser() * half * sum(parts)

    def expectation(self, basis: LineBasis) -> Tensor:
        """As in :class:`LineDensity`. Differentiable once: a second time raises RuntimeError."""
        scale = self._normaliser()
        centres, widths = basis.centres.to(self.mu), basis.widths.to(self.mu)
        return _TruncatedExpectation.apply(
            self.mu, self.half_width, centres, widths, self.power, scale
        )


class Parabola(_Truncated):
    """Continuous sparsemax, alpha = 2: ``[f(t) - tau]_+``, a truncated parabola."""

    power = 1


class Biweight(_Truncated):
    """alpha = 3/2: the square of a truncated parabola (Martins et al., JMLR 2022)."""

    power = 2


class Triweight(_Truncated):
    """alpha = 4/3: the cube of a truncated parabola (Martins et al., JMLR 2022)."""

    power = 3


class _TruncatedExpectation(Function):
    """``E_p[psi]`` and its derivatives in mu and the half-width.

    Where psi is narrow, from the moments of its part inside the support; the derivatives are
    the generalised covariances of paper B, Proposition 3, in other coordinates:
    by parts, ``d/du (1 - u^2)^k`` is the escort density times u. Where psi is broad, all three by
    one quadrature, with the derivative under the integral.
    """

    @staticmethod
    def forward(
        ctx: Any,
        mu: Tensor,
        half_width: Tensor,
        centres: Tensor,
        widths: Tensor,
        power: int,
        scale: float,
    ) -> Tensor:
        inputs = mu, half_width
        mu, half_width = mu.unsqueeze(-1), half_width.unsqueeze(-1)
        mean, width = (centres - mu) / half_width, widths / half_width
        broad = width >= _BROAD

        moments = closed_form(mean, width.clamp(max=_BROAD), 2 * power, -1.0)
        inside = _integral(_polynomial(power), moments)
        slope = _polynomial(power - 1)  # -d/du (1 - u^2)^power = 2 power u (1 - u^2)^(power - 1)
        by_mu = 2 * power * _integral({j + 1: c for j, c in slope.items()}, moments)
        spread = 2 * power * _integral({j + 2: c for j, c in slope.items()}, moments)
        exact = (
            inside * (scale / half_width),
            by_mu * (scale / half_width.square()),
            (spread - inside) * (scale / half_width.square()),
        )

        numeric = [torch.zeros_like(mean) for _ in exact]
        for u, weight in gauss_legendre(_NODES):
            z = (mu + half_width * u - centres) / widths
            value = scale * weight * (1 - u * u) ** power * normal(z) / widths
            slopes = -value * z / widths
            for total, part, factor in zip(numeric, (value, slopes, slopes), (1, 1, u)):
                total.add_(part, alpha=factor)

        result, *derivatives = (torch.where(broad, *pair) for pair in zip(numeric, exact))
        ctx.save_for_backward(*derivatives, *inputs)
        return result

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> Tuple[Any, ...]:
        *derivatives, mu, half_width = ctx.saved_tensors
        found = [Once.apply((grad * part).sum(-1), mu, half_width) for part in derivatives]
        return *found, None, None, None, None


def _polynomial(power: int) -> dict:
    """Exponent -> coefficient of ``(1 - u^2)^power``."""
    return {2 * i: (-1) ** i * math.comb(power, i) for i in range(power + 1)}


def _integral(polynomial: dict, moments: Any) -> Tensor:
    return sum(factor * moments[j] for j, factor in polynomial.items())


def _check(name: str, value: Tensor, fine: Tensor, allowed: str) -> None:
    if not value.is_floating_point():
        raise ArgumentError(name, value, "of a floating point type")
    if not bool(fine.all()):
        raise ArgumentError(name, value.detach()[~fine].flatten()[0].item(), allowed)


def check_shapes(name: str, value: Tensor, other: str, its: Tensor, axes: int = 0) -> None:
    """Refuse shapes that do not broadcast; the last are `axes` of `other`, twice that of `name`."""
    try:
        torch.broadcast_shapes(value.shape[: value.dim() - 2 * axes], its.shape[: its.dim() - axes])
    except RuntimeError:
        allowed = f"of a shape that broadcasts with {other}'s {tuple(its.shape)}"
        raise ArgumentError(name, tuple(value.shape), allowed) from None
