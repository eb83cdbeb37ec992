"""Gaussian radial basis functions ``psi``, on the line and in the plane."""

import math
from typing import Sequence

import torch
from torch import Tensor, nn

from fairseq_regattn.continuous._integrals import normal
from fairseq_regattn.errors import ArgumentError


class LineBasis(nn.Module):
    """``psi_j(t) = N(t; centre_j, width_j^2)`` (paper B, section 4).

    Args:
        centres, widths: ``N`` each; widths > 0.

    Raises:
        ArgumentError: names the argument, its value and what is allowed.
    """

    centres: Tensor
    widths: Tensor

    def __init__(self, centres: Tensor, widths: Tensor):
        super().__init__()
        _check("centres", centres, centres.dim() == 1, "a list of finite numbers")
        fits = widths.shape == centres.shape and bool((widths > 0).all())
        _check("widths", widths, fits, f"{len(centres)} finite numbers > 0")
        self.register_buffer("centres", centres.detach(), persistent=False)
        self.register_buffer("widths", widths.detach(), persistent=False)

    @classmethod
    def spread(cls, size: int, widths: Sequence[float]) -> "LineBasis":
        """For each of the `widths` equally many centres, evenly spread over ``[0, 1]``.

        Args:
            size: how many functions in all, a multiple of the number of widths.
        """
        allowed = f"a positive multiple of {len(widths)}, the number of widths"
        if not widths or size < 1 or size % len(widths):
            raise ArgumentError("size", size, allowed)
        each = size // len(widths)
        centres = torch.linspace(0, 1, each) if each > 1 else torch.tensor([0.5])
        spread = torch.tensor([float(width) for width in widths]).repeat_interleave(each)
        return cls(centres.repeat(len(widths)), spread)

    def double_precision(self) -> "LineBasis":
        """The same functions in float64, on the CPU."""
        return LineBasis(self.centres.cpu().double(), self.widths.cpu().double())

    def __len__(self) -> int:
        return len(self.centres)

    def forward(self, t: Tensor) -> Tensor:
        """``...`` -> ``... x N``."""
        _check_floats(t)
        centres, widths = self.centres.to(t), self.widths.to(t)
        return normal((t.unsqueeze(-1) - centres) / widths) / widths


class PlaneBasis(nn.Module):
    """``psi_j(t) = N(t; centre_j, covariance_j)``.

    Args:
        centres: ``N x 2``.
        covariances: ``N x 2 x 2``, symmetric and positive definite.

    Raises:
        ArgumentError: names the argument, its value and what is allowed.
    """

    centres: Tensor
    covariances: Tensor

    def __init__(self, centres: Tensor, covariances: Tensor):
        super().__init__()
        _check("centres", centres, centres.dim() == 2 and centres.size(-1) == 2, "N x 2 numbers")
        fits = covariances.shape == (len(centres), 2, 2) and positive_definite(covariances)
        allowed = f"{len(centres)} symmetric positive definite 2 x 2 matrices"
        _check("covariances", covariances, fits, allowed)
        self.register_buffer("centres", centres.detach(), persistent=False)
        self.register_buffer("covariances", covariances.detach(), persistent=False)

    @classmethod
    def grid(cls, side: int, variance: float) -> "PlaneBasis":
        """``side x side`` round functions, evenly spread over the unit square.

        Args:
            side: functions along each axis, at least 1.
            variance: of each along any axis, > 0.
        """
        if side < 1:
            raise ArgumentError("side", side, "at least 1")
        if not 0 < variance < math.inf:
            raise ArgumentError("variance", variance, "a finite number > 0")
        axis = torch.linspace(0, 1, side) if side > 1 else torch.tensor([0.5])
        centres = torch.cartesian_prod(axis, axis)
        return cls(centres, (variance * torch.eye(2)).expand(len(centres), 2, 2))

    def precisions(self, like: Tensor) -> Tensor:
        """The covariances' inverses, in this precision (that of half precision has no room)."""
        return inverse(self.covariances.to(like))

    def double_precision(self) -> "PlaneBasis":
        """The same functions in float64, on the CPU."""
        return PlaneBasis(self.centres.cpu().double(), self.covariances.cpu().double())

    def __len__(self) -> int:
        return len(self.centres)

    def forward(self, t: Tensor) -> Tensor:
        """``... x 2`` -> ``... x N``."""
        _check_floats(t)
        offset = t.unsqueeze(-2) - self.centres.to(t)
        return plane_normal(offset, self.precisions(t))


def plane_normal(offset: Tensor, precision: Tensor) -> Tensor:
    """The bivariate normal density at ``... x 2`` from its mean; precisions ``... x 2 x 2``."""
    return torch.exp(-0.5 * distance2(offset, precision)) * (
        determinant(precision).sqrt() / (2 * math.pi)
    )


def distance2(offset: Tensor, precision: Tensor) -> Tensor:
    """``offset' precision offset``, of ``... x 2`` and symmetric ``... x 2 x 2``."""
    x, y = offset.unbind(-1)
    a, b, c = precision[..., 0, 0], precision[..., 0, 1], precision[..., 1, 1]
    return a * x.square() + 2 * b * x * y + c * y.square()


def inverse(matrices: Tensor) -> Tensor:
    """Of symmetric ``... x 2 x 2``."""
    a, b, c = matrices[..., 0, 0], matrices[..., 0, 1], matrices[..., 1, 1]
    adjugate = torch.stack([c, -b, -b, a], -1).unflatten(-1, (2, 2))
    return adjugate / determinant(matrices)[..., None, None]


def determinant(matrices: Tensor) -> Tensor:
    """Of symmetric ``... x 2 x 2``."""
    (a, b), (c, d) = (matrices[..., row, :].unbind(-1) for row in (0, 1))
    return a * d - b * c  # not b^2: gradients are symmetric, too


def positive_definite(matrices: Tensor) -> bool:
    """Whether these are ``... x 2 x 2``, finite, symmetric and positive definite."""
    if matrices.shape[-2:] != (2, 2) or not matrices.is_floating_point():
        return False
    a, c, size = matrices[..., 0, 0], matrices[..., 1, 1], determinant(matrices)
    skew = (matrices[..., 0, 1] - matrices[..., 1, 0]).abs()
    symmetric = skew <= 1e-4 * torch.maximum(a, c)
    return bool((symmetric & (a > 0) & (c > 0) & (size > 0) & size.isfinite()).all())


def _check_floats(t: Tensor) -> None:
    if not t.is_floating_point():
        raise ArgumentError("t", t, "of a floating point type")


def _check(name: str, value: Tensor, fits: bool, allowed: str) -> None:
    if value.requires_grad:
        raise ArgumentError(name, value, "fixed: a basis is not learned")
    if not fits or not value.is_floating_point() or not bool(value.isfinite().all()):
        raise ArgumentError(name, value, allowed)
