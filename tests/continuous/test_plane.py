"""Densities over the plane, against quadrature of what they are by definition."""

import math

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch.autograd import gradcheck, gradgradcheck

from fairseq_regattn.continuous import Paraboloid, PlaneBasis, PlaneGaussian
from fairseq_regattn.continuous import plane as plane_module
from fairseq_regattn.continuous.line import MIN_VARIANCE
from fairseq_regattn.errors import ArgumentError

from .oracles import Plane

F64 = torch.float64
CHEAP = settings(deadline=None, max_examples=30, derandomize=True)
SLOW = settings(deadline=None, max_examples=8, derandomize=True)

every_density = pytest.mark.parametrize(
    "kind", [PlaneGaussian, Paraboloid], ids=lambda kind: kind.__name__
)
EYE = [[1.0, 0.0], [0.0, 1.0]]


def tensor(value):
    return torch.tensor(value, dtype=F64)


def turned(long, short, angle):
    """A covariance from standard deviations along its axes."""
    turn = np.array([[math.cos(angle), -math.sin(angle)], [math.sin(angle), math.cos(angle)]])
    matrix = turn @ np.diag([long**2, short**2]) @ turn.T
    return tensor((matrix + matrix.T) / 2)


DEVIATION = st.floats(-2.5, 0.3).map(lambda power: 10**power)
POINT = st.tuples(st.floats(-0.2, 1.2), st.floats(-0.2, 1.2)).map(tensor)
COVARIANCE = st.builds(
    lambda long, ratio, angle: turned(long, max(long / ratio, 0.003), angle),
    DEVIATION,
    st.floats(1, 20),
    st.floats(0, math.pi),
)


def basis(narrow=0.15):
    """Round and not, narrow and broad, inside the image and outside of it."""
    centres = tensor([[0.0, 0.0], [0.4, 0.6], [1.0, 0.5], [1.3, -0.2]])
    shapes = [(narrow, narrow, 0.0), (0.3, narrow, 0.5), (0.3, 0.2, 2.0), (1.5, 0.8, 1.0)]
    return PlaneBasis(centres, torch.stack([turned(*shape) for shape in shapes]))


def peaks(functions):
    """Each function's highest value."""
    return 1 / (2 * math.pi * torch.linalg.det(functions.covariances).sqrt())


def as_numpy(functions):
    return functions.centres.numpy(), functions.covariances.numpy()


def narrow_enough(covariance):
    """A basis that the grid of the oracle and the angles of the rule resolve."""
    return basis(0.15 * max(0.7, math.sqrt(torch.linalg.eigvalsh(covariance)[1].item())))


def oracle(density):
    return Plane(density.mu.numpy(), density.sigma.numpy(), isinstance(density, PlaneGaussian))


@every_density
@SLOW
@given(POINT, COVARIANCE)
def test_values(kind, mean, covariance):
    density = kind.from_moments(mean, covariance)
    expected = covariance + MIN_VARIANCE * torch.eye(2, dtype=F64)
    torch.testing.assert_close(density.covariance, expected, rtol=1e-9, atol=1e-12)
    assert torch.equal(density.mean, mean)
    by_hand = oracle(density)
    assert by_hand.integral(by_hand.pdf) == pytest.approx(1, abs=1e-7)
    moment = by_hand.integral(
        lambda t: (
            by_hand.pdf(t)[:, None, None]
            * (t - by_hand.mu)[:, :, None]
            * (t - by_hand.mu)[:, None, :]
        )
    )
    torch.testing.assert_close(torch.from_numpy(moment), expected, rtol=1e-5, atol=1e-12)
    steps = torch.stack([torch.linspace(-3, 3, 11, dtype=F64)] * 2, 1) * tensor([1.0, -0.5])
    points = mean + steps @ torch.linalg.cholesky(expected).T
    found, height = density.pdf(points).numpy(), density.pdf(mean).item()
    np.testing.assert_allclose(found / height, by_hand.pdf(points.numpy()) / height, atol=1e-9)
    functions = narrow_enough(covariance)
    by_hand = torch.from_numpy(by_hand.expectation(*as_numpy(functions)))
    error = (density.expectation(functions, angles=256) - by_hand).abs() / peaks(functions)
    assert error.max() < 1e-6


@every_density
@SLOW
@given(POINT, COVARIANCE)
def test_jacobian_is_the_generalised_covariance(kind, mean, covariance):
    density = kind.from_moments(mean, covariance)
    functions = narrow_enough(covariance)
    quadratic = -0.5 * torch.linalg.inv(density.sigma)
    quadratic = (quadratic + quadratic.T) / 2
    linear = -2 * quadratic @ mean

    def of_theta(*theta):
        return kind.from_theta(*theta).expectation(functions, angles=256)

    jacobian = torch.autograd.functional.jacobian(of_theta, (linear, quadratic))
    for found, by_hand in zip(jacobian, oracle(density).jacobian(*as_numpy(functions))):
        scale = peaks(functions).max() * max(1, np.abs(by_hand).max())
        np.testing.assert_allclose(found, by_hand, atol=1e-6 * scale)


def some_moments(count=6, seed=0):
    random = np.random.default_rng(seed)
    means = torch.from_numpy(random.uniform(-0.2, 1.2, (count, 2)))
    shapes = zip(*random.uniform([[0.05], [0.05], [0]], [[0.4], [0.4], [3]], (3, count)))
    return means, torch.stack([turned(*shape) for shape in shapes])


@every_density
def test_float32(kind):
    means, covariances = (part.float() for part in some_moments(40))
    precise = kind.from_moments(means.double(), covariances.double()).expectation(basis())
    found = kind.from_moments(means, covariances).expectation(basis())
    assert found.dtype == torch.float32
    assert ((found.double() - precise).abs() / peaks(basis())).max() < 1e-5


@every_density
def test_autocast_rounds_nothing(kind):
    means, covariances = (part.float() for part in some_moments())
    density = kind.from_moments(means, covariances)
    with torch.autocast("cpu", torch.bfloat16):
        found = density.expectation(basis()), density.pdf(means + 0.01)
    expected = density.expectation(basis()), density.pdf(means + 0.01)
    torch.testing.assert_close(found, expected, rtol=0, atol=0)


@every_density
def test_float32_of_points_on_a_line(kind):
    """The weights of a row or of the diagonal have a covariance that is all but singular."""
    steps = torch.linspace(0, 1, 14)
    for slope in (0.0, 0.3, 1.0, -1.0):
        points = torch.stack([steps, 0.5 + slope * (steps - 0.5)], 1)
        mean = points.mean(0).requires_grad_()
        covariance = ((points - mean).T @ (points - mean) / 14).detach().requires_grad_()
        found = kind.from_moments(mean, covariance).expectation(basis())
        precise = kind.from_moments(mean.double(), covariance.double()).expectation(basis())
        assert ((found - precise).abs() / peaks(basis())).max() < 2e-5
        found.sum().backward()
        assert mean.grad.isfinite().all()
        assert covariance.grad.isfinite().all()


@every_density
def test_gradcheck(kind):
    means, covariances = some_moments(3)
    factors = torch.linalg.cholesky(covariances).requires_grad_()
    linear = (2 * means).requires_grad_()
    means.requires_grad_()
    t = means.detach() + 0.05

    def from_sigma(mu, factor):
        return kind(mu, factor @ factor.mT)

    def from_moments(mean, factor):
        return kind.from_moments(mean, factor @ factor.mT)

    def from_theta(linear, factor):
        return kind.from_theta(linear, -0.5 * factor @ factor.mT)

    for build, first in ((from_sigma, means), (from_moments, means), (from_theta, linear)):
        inputs = (first, factors)
        assert gradcheck(lambda *given: build(*given).expectation(basis()), inputs)
        assert gradcheck(lambda *given: build(*given).covariance, inputs)
        assert gradcheck(lambda *given: build(*given).pdf(t), inputs)


@every_density
def test_gradient_of_a_symmetric_matrix_is_symmetric(kind):
    means, covariances = some_moments(3)
    for build, given_matrix in (
        (lambda matrix: kind(means, matrix), covariances),
        (lambda matrix: kind.from_theta(means, -matrix), covariances),
    ):
        matrix = given_matrix.clone().requires_grad_()
        (build(matrix).expectation(basis()).sum() + build(matrix).pdf(means).sum()).backward()
        torch.testing.assert_close(matrix.grad, matrix.grad.mT)


def test_gaussian_twice():
    means, covariances = some_moments(2)
    factors = torch.linalg.cholesky(covariances).requires_grad_()

    def expectation(mu, factor):
        return PlaneGaussian(mu, factor @ factor.mT).expectation(basis())

    assert gradgradcheck(expectation, (means.requires_grad_(), factors))


def test_paraboloid_only_once():
    mu = tensor([0.3, 0.3]).requires_grad_()
    for loss in (torch.sum, lambda result: result.square().sum()):
        value = loss(Paraboloid(mu, tensor(EYE)).expectation(basis())) + mu.pow(3).sum()
        (slope,) = torch.autograd.grad(value, mu, create_graph=True)
        with pytest.raises(RuntimeError, match="differentiable once only"):
            slope.sum().backward()


def test_regimes_meet(monkeypatch):
    """Around the threshold of a ray both regimes give one answer, to rounding."""
    mean = torch.stack([torch.linspace(-1.5, 1.5, 9, dtype=F64)] * 2, 1)
    size = torch.linspace(0.9, 1.1, 9, dtype=F64) / plane_module._BROAD  # half axes
    covariance = size[:, None, None] ** 2 / 6 * torch.eye(2, dtype=F64)
    functions = PlaneBasis(tensor([[0.0, 0.0]]), tensor([EYE]))
    answers = []
    for threshold in (plane_module._BROAD, 0.5, 2.0):
        monkeypatch.setattr(plane_module, "_BROAD", threshold)
        inputs = [mean.clone().requires_grad_(), covariance.clone().requires_grad_()]
        result = Paraboloid.from_moments(*inputs).expectation(functions)
        answers.append((result.detach(), *torch.autograd.grad(result.sum(), inputs)))
    for other in answers[:2]:
        torch.testing.assert_close(answers[2], other, rtol=0, atol=1e-10)


@CHEAP
@given(
    POINT,
    st.floats(0.05, 1),
    st.floats(1, 5),
    st.floats(0, math.pi),
    st.sampled_from([4, 8, 15, 16, 32, 64, 128]),
)
def test_error_of_the_angular_rule(mean, axis, ratio, turn, angles):
    """As `Paraboloid.expectation` states it."""
    covariance = turned(axis, axis / ratio, turn) / 6
    density = Paraboloid.from_moments(mean, covariance)
    functions = basis(0.08)
    precise = density.expectation(functions, angles=500)
    error = (density.expectation(functions, angles) - precise).abs() / peaks(functions)
    smallest = torch.linalg.eigvalsh(functions.covariances)[:, 0].sqrt()
    q = smallest / math.sqrt(axis**2 + 6 * MIN_VARIANCE)
    stated = 2 * torch.exp(-0.5 * (angles * q) ** 2)
    assert (error[(q < 0.5) & (stated > 1e-5)] <= 1.5 * stated[(q < 0.5) & (stated > 1e-5)]).all()
    assert (error[angles >= torch.clamp(5.4 / q, min=12)] < 1e-6).all()


def test_enough_angles_are_enough():
    """A function in the middle of the support's longest half axis, where the rule is worst."""
    q = 0.05
    density = Paraboloid.from_moments(tensor([0.0, 0.0]), tensor(EYE) / 6)
    functions = PlaneBasis(tensor([[0.5, 0.0], [1.0, 0.0]]), tensor([EYE] * 2) * q**2)
    precise = density.expectation(functions, angles=2000)
    error = density.expectation(functions, math.ceil(5.4 / q)) - precise
    assert (error.abs() / peaks(functions)).max() < 1e-6
    assert ((density.expectation(functions, 40) - precise).abs() / peaks(functions)).max() > 5e-5


@pytest.mark.parametrize("angles", [0, -3])
def test_no_angles(angles):
    with pytest.raises(ArgumentError, match=f"angles must be at least 1, got {angles}"):
        Paraboloid(tensor([0.0, 0.0]), tensor(EYE)).expectation(basis(), angles)


@every_density
def test_a_narrow_density_reads_the_functions_at_its_mean(kind):
    means = some_moments()[0]
    for variance in (1e-12, 1e-30, 1e-100):
        found = kind(means, variance * tensor(EYE)).expectation(basis())
        torch.testing.assert_close(found, basis()(means), rtol=1e-3, atol=1e-4)


@every_density
def test_covariance_zero(kind):
    mean = torch.tensor([[0.0, 0.5], [1.0, 0.2]], requires_grad=True)
    covariance = torch.zeros(2, 2, 2, requires_grad=True)
    result = kind.from_moments(mean, covariance).expectation(basis())
    torch.testing.assert_close(result, basis()(mean.detach()), rtol=0.01, atol=0.01)
    result.sum().backward()
    assert mean.grad.isfinite().all()
    assert covariance.grad.isfinite().all()


def test_support():
    """An ellipse, with all of the mass inside."""
    means, covariances = some_moments()
    density = Paraboloid.from_moments(means, covariances)
    centre, matrix = density.support()
    assert torch.equal(centre, means)
    border = torch.linalg.cholesky(matrix)[:, :, 1]
    assert (density.pdf(centre + 0.999 * border) > 0).all()
    assert (density.pdf(centre + 1.001 * border) == 0).all()
    for row in range(len(means)):
        radius = oracle(Paraboloid(density.mu[row], density.sigma[row])).radius
        torch.testing.assert_close(matrix[row], radius**2 * density.sigma[row])
    assert PlaneGaussian(means, covariances).support()[1].isinf().all()


@every_density
def test_theta(kind):
    means, sigmas = some_moments()
    quadratic = -0.5 * torch.linalg.inv(sigmas)
    linear = (-2 * quadratic @ means.unsqueeze(-1)).squeeze(-1)
    density = kind.from_theta(linear, quadratic)
    torch.testing.assert_close(density.mu, means)
    torch.testing.assert_close(density.sigma, sigmas)


@every_density
@pytest.mark.parametrize("angle", np.linspace(0, 6.3, 30))
def test_rounding_is_no_asymmetry(kind, angle):
    """A product of three matrices is symmetric up to rounding only; along the axes that is all."""
    turn = np.array([[math.cos(angle), -math.sin(angle)], [math.sin(angle), math.cos(angle)]])
    sigma = tensor(turn @ np.diag([0.5, 0.5]) @ turn.T)
    sigma[0, 1] += 1e-17
    kind(tensor([0.0, 0.0]), sigma)


@every_density
@CHEAP
@given(POINT, COVARIANCE, POINT, st.floats(-1, 1).map(lambda power: 10**power))
def test_units_translation_and_mirror(kind, mean, covariance, shift, unit):
    functions = narrow_enough(covariance)
    result = kind.from_moments(mean, covariance).expectation(functions, 256)
    covariance = covariance + MIN_VARIANCE * torch.eye(2, dtype=F64)
    for matrix in (
        unit * tensor(EYE),
        tensor([[-1.0, 0.0], [0.0, 1.0]]),
        tensor([[0, 1.0], [1, 0]]),
    ):
        moved = PlaneBasis(
            functions.centres @ matrix.T + shift, matrix @ functions.covariances @ matrix.T
        )
        floor = MIN_VARIANCE * torch.eye(2, dtype=F64)
        other = kind.from_moments(matrix @ mean + shift, matrix @ covariance @ matrix.T - floor)
        found = other.expectation(moved, 256) * torch.linalg.det(matrix).abs()
        torch.testing.assert_close(found, result, rtol=0, atol=1e-6 * peaks(functions).max().item())


@every_density
@CHEAP
@given(POINT, COVARIANCE, st.sampled_from([torch.float32, F64]))
def test_bounds(kind, mean, covariance, dtype):
    density = kind.from_moments(mean.to(dtype), covariance.to(dtype))
    share = density.expectation(narrow_enough(covariance), 256) / peaks(narrow_enough(covariance))
    assert (share >= -1e-6).all()
    assert (share <= 1 + 2e-6).all()
