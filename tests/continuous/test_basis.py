"""Gaussian basis functions: values, places, and what is refused."""

import copy
import math
import pickle

import numpy as np
import pytest
import torch
from scipy.stats import multivariate_normal, norm

from fairseq_regattn.continuous import LineBasis, PlaneBasis
from fairseq_regattn.errors import ArgumentError

EYE = torch.eye(2)


def test_line_values():
    basis = LineBasis(torch.tensor([0.0, 0.5, 1.0]).double(), torch.tensor([0.1, 0.2, 3]).double())
    t = torch.linspace(-1, 2, 12).double().view(3, 4)
    expected = norm.pdf(t.numpy()[..., None], [0, 0.5, 1], basis.widths.numpy())
    np.testing.assert_allclose(basis(t), expected, rtol=1e-12)
    assert basis(t.float()).dtype == torch.float32
    assert basis(t[:, :0]).shape == (3, 0, 3)
    assert len(basis) == 3


def test_plane_values():
    covariances = torch.tensor([[[0.1, 0.02], [0.02, 0.3]], [[1.0, 0.0], [0.0, 0.5]]]).double()
    basis = PlaneBasis(torch.tensor([[0.0, 1.0], [0.5, 0.2]]).double(), covariances)
    t = torch.rand(3, 4, 2).double()
    for number in range(2):
        expected = multivariate_normal.pdf(t, basis.centres[number], covariances[number])
        np.testing.assert_allclose(basis(t)[..., number], expected, rtol=1e-12)
    assert basis(t.float()).dtype == torch.float32
    assert basis(t[:0]).shape == (0, 4, 2)


def test_spread():
    """All centres for the first width, then for the next."""
    basis = LineBasis.spread(6, [0.1, 0.5])
    assert basis.centres.tolist() == [0, 0.5, 1] * 2
    assert basis.widths.tolist() == pytest.approx([0.1] * 3 + [0.5] * 3)
    assert LineBasis.spread(2, [0.1, 0.5]).centres.tolist() == [0.5, 0.5]


def test_grid():
    """Row by row: the first axis goes down."""
    basis = PlaneBasis.grid(3, 0.001)
    assert basis.centres[:4].tolist() == [[0, 0], [0, 0.5], [0, 1], [0.5, 0]]
    assert torch.equal(basis.covariances, (0.001 * EYE).expand(9, 2, 2))
    assert PlaneBasis.grid(1, 0.1).centres.tolist() == [[0.5, 0.5]]


def test_nothing_is_saved():
    """A basis is made of its parameters, wherever a checkpoint comes from."""
    for basis in (LineBasis.spread(2, [0.1]), PlaneBasis.grid(2, 0.1)):
        assert not basis.state_dict()
        for other in (copy.deepcopy(basis), pickle.loads(pickle.dumps(basis))):
            assert torch.equal(other.centres, basis.centres)


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_narrow_functions_in_half_precision(dtype):
    """The inverse of a covariance of 1e-5 is beyond float16."""
    basis = PlaneBasis.grid(2, 1e-5).to(dtype)
    value = basis(torch.tensor([0.0, 0.0]))[0].item()
    assert value == pytest.approx(1 / (2 * math.pi * 1e-5), rel=0.05)


@pytest.mark.parametrize(
    ("size", "widths"), [(31, [0.03, 0.1, 0.3]), (0, [0.1]), (-3, [0.1]), (4, []), (1, [0.1, 0.2])]
)
def test_sizes_that_do_not_fit(size, widths):
    message = f"size must be a positive multiple of {len(widths)}, .* got {size}"
    with pytest.raises(ArgumentError, match=message):
        LineBasis.spread(size, widths)


@pytest.mark.parametrize("width", [0.0, -0.1, math.nan, math.inf])
def test_wrong_widths(width):
    with pytest.raises(ArgumentError, match="widths must be 2 finite numbers > 0, got tensor"):
        LineBasis.spread(2, [width])
    with pytest.raises(ArgumentError, match=f"variance must be a finite number > 0, got {width}"):
        PlaneBasis.grid(2, width)


@pytest.mark.parametrize(
    ("centres", "widths", "name"),
    [
        ([math.nan], [1.0], "centres"),
        ([[0.5]], [1.0], "centres"),
        ([1], [1.0], "centres"),
        ([0.5], [1.0, 1.0], "widths"),
        ([0.5], [1], "widths"),
    ],
)
def test_wrong_line_basis(centres, widths, name):
    with pytest.raises(ArgumentError, match=f"^{name} must be"):
        LineBasis(torch.tensor(centres), torch.tensor(widths))


@pytest.mark.parametrize(
    ("centres", "covariances", "name"),
    [
        ([[0.5, math.inf]], [[[1.0, 0.0], [0.0, 1.0]]], "centres"),
        ([0.5, 0.5], [[[1.0, 0.0], [0.0, 1.0]]], "centres"),
        ([[0.5] * 3], [[[1.0, 0.0], [0.0, 1.0]]], "centres"),
        ([[0.5, 0.5]], [[1.0, 0.0], [0.0, 1.0]], "covariances"),
        ([[0.5, 0.5]], [[[1.0, 2.0], [2.0, 1.0]]], "covariances"),
        ([[0.5, 0.5]], [[[1.0, 0.5], [0.0, 1.0]]], "covariances"),
        ([[0.5, 0.5]], [[[math.inf, 0.0], [0.0, 1.0]]], "covariances"),
    ],
)
def test_wrong_plane_basis(centres, covariances, name):
    with pytest.raises(ArgumentError, match=f"^{name} must be"):
        PlaneBasis(torch.tensor(centres), torch.tensor(covariances))


def test_a_basis_is_not_learned():
    widths = torch.ones(1, requires_grad=True)
    with pytest.raises(ArgumentError, match="widths must be fixed: a basis is not learned"):
        LineBasis(torch.zeros(1), widths)
    with pytest.raises(ArgumentError, match="centres must be fixed"):
        PlaneBasis(torch.zeros(1, 2, requires_grad=True), EYE.expand(1, 2, 2))


@pytest.mark.parametrize(
    ("basis", "t"), [(LineBasis.spread(2, [0.1]), [0, 1]), (PlaneBasis.grid(2, 0.1), [[0, 1]])]
)
def test_whole_numbers_are_no_places(basis, t):
    """Widths would be rounded to them."""
    with pytest.raises(ArgumentError, match="t must be of a floating point type"):
        basis(torch.tensor(t))
