"""Densities over the line, against quadrature of what they are by definition."""

import math

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch.autograd import gradcheck, gradgradcheck

from fairseq_regattn.continuous import Biweight, Gaussian, LineBasis, Parabola, Triweight
from fairseq_regattn.continuous import line as line_module
from fairseq_regattn.continuous.line import MIN_VARIANCE
from fairseq_regattn.errors import ArgumentError

from .oracles import Line

F64 = torch.float64
POWERS = {Gaussian: None, Parabola: 1, Biweight: 2, Triweight: 3}
TRUNCATED = [Parabola, Biweight, Triweight]
CHEAP = settings(deadline=None, max_examples=40, derandomize=True)
SLOW = settings(deadline=None, max_examples=12, derandomize=True)

every_density = pytest.mark.parametrize("kind", POWERS, ids=lambda kind: kind.__name__)
every_truncated = pytest.mark.parametrize("kind", TRUNCATED, ids=lambda kind: kind.__name__)
MEAN = st.floats(-0.5, 1.5)
DEVIATION = st.floats(-3, 0.8).map(lambda power: 10**power)  # from a hair to six sentences


def tensor(value):
    return torch.tensor(value, dtype=F64)


def basis():
    """Narrow and broad functions, inside the sentence and outside of it."""
    centres = [0.0, 0.31, 0.5, 1.0, 1.4, -0.2, 0.5]
    widths = [0.03, 0.1, 0.3, 0.1, 0.5, 0.03, 2.0]
    return LineBasis(tensor(centres), tensor(widths))


def peaks(functions):
    """Each function's highest value."""
    return 1 / (math.sqrt(2 * math.pi) * functions.widths)


def some_means(kind, count=40, seed=0):
    """Means and variances over all regimes."""
    random = np.random.default_rng(seed)
    means = torch.from_numpy(random.uniform(-0.5, 1.5, count))
    return means, torch.from_numpy(10 ** (2 * random.uniform(-2.9, 1, count)))


def oracle(density):
    return Line(density.mu.item(), density.sigma2.item(), POWERS[type(density)])


@every_density
@SLOW
@given(MEAN, DEVIATION)
def test_values(kind, mean, deviation):
    density = kind.from_moments(tensor(mean), tensor(deviation**2))
    by_hand = oracle(density)
    assert by_hand.integral(by_hand.pdf) == pytest.approx(1, abs=1e-9)
    assert density.mean.item() == mean
    found = by_hand.integral(lambda t: by_hand.pdf(t) * (t - mean) ** 2) / deviation**2
    assert found == pytest.approx(1, abs=1e-8)
    assert density.variance.item() == pytest.approx(max(deviation**2, MIN_VARIANCE), rel=1e-12)
    t = mean + deviation * np.linspace(-4, 4, 17)
    heights = density.pdf(torch.from_numpy(t)).numpy()
    np.testing.assert_allclose(heights * deviation, by_hand.pdf(t) * deviation, atol=1e-9)
    below = [by_hand.integral(by_hand.pdf, below) for below in t]
    np.testing.assert_allclose(density.cdf(torch.from_numpy(t)), below, atol=1e-9)
    points = torch.from_numpy(t)
    parts = density.mass(points[:-1], points[1:])
    np.testing.assert_allclose(parts, np.diff(below), atol=1e-9)
    functions = basis()
    expected = by_hand.expectation(functions.centres.numpy(), functions.widths.numpy())
    np.testing.assert_allclose(density.expectation(functions), expected, atol=1e-9)


@every_density
def test_float32(kind):
    means, variances = some_means(kind, 300)
    precise = kind.from_moments(means.float().double(), variances.float().double())
    found = kind.from_moments(means.float(), variances.float()).expectation(basis())
    assert found.dtype == torch.float32
    error = (found.double() - precise.expectation(basis())).abs() / peaks(basis())
    assert error.max() < 1e-5


@every_density
@SLOW
@given(MEAN, DEVIATION)
def test_jacobian_is_the_generalised_covariance(kind, mean, deviation):
    density = kind.from_moments(tensor(mean), tensor(deviation**2))
    functions = basis()
    by_hand = oracle(density).jacobian(functions.centres.numpy(), functions.widths.numpy())

    def of_theta(theta):
        return kind.from_theta(theta).expectation(functions)

    found = torch.autograd.functional.jacobian(of_theta, density.theta)
    np.testing.assert_allclose(found, by_hand, atol=1e-8 * max(1, np.abs(by_hand).max()))


@every_density
def test_gradcheck(kind):
    """In all three parametrisations, of everything that has a gradient."""
    means, variances = some_means(kind, 8)
    variances = variances.clamp(min=0.01)
    density = kind.from_moments(means, variances)
    t = means + 0.3 * variances.sqrt()
    for build, inputs in (
        (kind, (density.mu, density.sigma2)),
        (kind.from_moments, (means, variances)),
        (kind.from_theta, (density.theta,)),
    ):
        inputs = [value.detach().clone().requires_grad_() for value in inputs]
        assert gradcheck(lambda *given: build(*given).expectation(basis()), inputs)
        assert gradcheck(lambda *given: build(*given).pdf(t), inputs)
        assert gradcheck(lambda *given: build(*given).cdf(t), inputs)
        assert gradcheck(lambda *given: build(*given).mass(t - 0.1, t), inputs)
        assert gradcheck(lambda *given: build(*given).variance, inputs)


def values_and_gradients(kind, mean, variance, functions):
    mean, variance = mean.clone().requires_grad_(), variance.clone().requires_grad_()
    result = kind.from_moments(mean, variance).expectation(functions)
    result.sum().backward()
    return result.detach(), mean.grad, variance.grad


@every_truncated
def test_regimes_meet(kind, monkeypatch):
    """At the threshold and around it both regimes give one answer, to rounding."""
    half_width = torch.linspace(0.9, 1.1, 9, dtype=F64)
    mean = torch.linspace(-1.5, 1.5, 9, dtype=F64)
    variance = half_width**2 / (2 * POWERS[kind] + 3)
    functions = LineBasis(tensor([0.0]), tensor([line_module._BROAD]))
    answers = []
    for threshold in (0.1, 10.0):
        with monkeypatch.context() as patch:
            patch.setattr(line_module, "_BROAD", threshold)
            answers.append(values_and_gradients(kind, mean, variance, functions))
    answers.append(values_and_gradients(kind, mean, variance, functions))
    for other in answers[1:]:
        torch.testing.assert_close(answers[0], other, rtol=0, atol=1e-12)


def test_gaussian_twice():
    means, variances = some_means(Gaussian, 5)
    inputs = [means.requires_grad_(), variances.clamp(min=0.01).requires_grad_()]
    assert gradgradcheck(lambda *given: Gaussian(*given).expectation(basis()), inputs)


@every_truncated
def test_truncated_only_once(kind):
    """Never silently without a term, whatever the gradient that is handed in depends on."""
    mu = tensor(0.3).requires_grad_()
    for loss in (torch.sum, lambda result: result.square().sum()):
        value = loss(kind(mu, tensor(0.1)).expectation(basis())) + mu**3
        (slope,) = torch.autograd.grad(value, mu, create_graph=True)
        with pytest.raises(RuntimeError, match="differentiable once only"):
            slope.backward()


@every_density
def test_a_narrow_density_reads_the_functions_at_its_mean(kind):
    means = torch.linspace(-0.3, 1.3, 9, dtype=F64)
    for sigma2 in (1e-12, 1e-20, 1e-60, 1e-200):
        found = kind(means, tensor(sigma2)).expectation(basis())
        torch.testing.assert_close(found, basis()(means), rtol=1e-3, atol=1e-4)


@every_density
@pytest.mark.parametrize("dtype", [torch.float32, F64])
@pytest.mark.parametrize("sigma2", [1e-36, 1e-16, 1e-8, 1e8, 1e16, 1e30])
def test_any_scale_is_finite(kind, dtype, sigma2):
    """Also where sigma2^3 is not."""
    mu = torch.tensor(0.3, dtype=dtype, requires_grad=True)
    sigma2 = torch.tensor(sigma2, dtype=dtype, requires_grad=True)
    density = kind(mu, sigma2)
    for value in (density.pdf(mu.detach()), density.variance, density.expectation(basis()).sum()):
        assert value.isfinite()
        assert value > 0
        for grad in torch.autograd.grad(value, (mu, sigma2), retain_graph=True, allow_unused=True):
            assert grad is None or not grad.isnan()


@every_truncated
@CHEAP
@given(MEAN, DEVIATION)
def test_support(kind, mean, deviation):
    density = kind.from_moments(tensor(mean), tensor(deviation**2))
    start, end = density.support()
    assert end - start == pytest.approx(2 * oracle(density).reach, rel=1e-9)
    assert (start + end) / 2 == pytest.approx(mean, abs=1e-12)
    outside = torch.stack([start - 1e-9, end + 1e-9, start - 5, end + 5])
    assert (density.pdf(outside) == 0).all()
    assert density.pdf(torch.stack([start, end]) * 0.999 + 0.001 * mean).gt(0).all()
    assert density.cdf(outside).tolist() == pytest.approx([0, 1, 0, 1], abs=1e-15)


def test_a_gaussian_has_no_ends():
    start, end = Gaussian(torch.zeros(3), torch.ones(3)).support()
    assert start.tolist() == [-math.inf] * 3
    assert end.tolist() == [math.inf] * 3


@every_density
def test_roundtrips(kind):
    means, variances = some_means(kind)
    density = kind.from_moments(means, variances)
    torch.testing.assert_close(density.mean, means)
    torch.testing.assert_close(density.variance, variances.clamp(min=MIN_VARIANCE))
    again = kind.from_theta(density.theta)
    torch.testing.assert_close(again.mu, density.mu)
    torch.testing.assert_close(again.sigma2, density.sigma2)


@every_density
def test_variance_zero(kind):
    """As of the weights of one position: the density is narrow, its gradient finite."""
    mean, variance = torch.tensor([0.0, 0.4, 1.0]), torch.zeros(3)
    result, *gradients = values_and_gradients(kind, mean, variance, basis())
    assert all(value.isfinite().all() for value in (result, *gradients))
    assert (gradients[1] == 0).all()
    torch.testing.assert_close(result, basis()(mean), rtol=0.01, atol=0.01)


@every_density
def test_nan_of_one_row_stays_there(kind):
    """Nothing is checked of moments, and neighbours are as they were."""
    means = torch.tensor([0.2, math.nan, 0.7])
    found = kind.from_moments(means, torch.full((3,), 0.01)).expectation(basis())
    assert found[1].isnan().all()
    alone = kind.from_moments(means[[0, 2]], torch.full((2,), 0.01)).expectation(basis())
    assert torch.equal(found[[0, 2]], alone)


@every_density
@pytest.mark.parametrize(
    ("mu", "sigma2", "message"),
    [
        ([0.5, 0.5], [0.1, 0.0], r"sigma2 must be finite and > 0, got 0\.0"),
        ([0.5, 0.5], [-0.25, 0.1], r"sigma2 must be finite and > 0, got -0\.25"),
        ([0.5], [math.nan], "sigma2 must be finite and > 0, got nan"),
        ([0.5], [math.inf], "sigma2 must be finite and > 0, got inf"),
        ([0.5, math.nan], [0.1], "mu must be finite, got nan"),
        ([-math.inf], [0.1], "mu must be finite, got -inf"),
        ([0.5, 0.5], [0.1] * 3, r"sigma2 must be of a shape that .* mu's \(2,\), got \(3,\)"),
        ([1, 2], [0.1], "mu must be of a floating point type"),
        ([0.5], [1], "sigma2 must be of a floating point type"),
    ],
)
def test_wrong_parameters(kind, mu, sigma2, message):
    with pytest.raises(ArgumentError, match=message):
        kind(torch.tensor(mu), torch.tensor(sigma2))


@every_density
@pytest.mark.parametrize(
    ("theta", "message"),
    [
        ([[1.0, -1.0], [1.0, 0.0]], r"theta\[\.\.\., 1\] must be < 0.*got 0\.0"),
        ([1.0, 0.5], r"theta\[\.\.\., 1\] must be < 0.*got 0\.5"),
        ([1.0, math.nan], r"theta\[\.\.\., 1\] must be < 0.*got nan"),
        ([1.0, -math.inf], r"theta\[\.\.\., 1\] must be < 0.*got -inf"),
        ([1.0, -1e-45], r"theta\[\.\.\., 1\] must be < 0.*got -1\.40"),
        ([math.nan, -1.0], r"theta\[\.\.\., 0\] must be finite.*got nan"),
        ([math.inf, -1.0], r"theta\[\.\.\., 0\] must be finite.*got inf"),
        ([1.0, -1.0, 0.0], r"theta must be \.\.\. x 2 numbers, got tensor"),
        (1.0, r"theta must be \.\.\. x 2 numbers, got tensor"),
    ],
)
def test_wrong_theta(kind, theta, message):
    with pytest.raises(ArgumentError, match=message):
        kind.from_theta(torch.tensor(theta))


@every_density
def test_batches(kind):
    """Each density is what it is alone, whatever the shape and the strides."""
    means, variances = some_means(kind, 6)
    functions = basis()
    together = kind.from_moments(means.view(2, 3), variances.view(2, 3)).expectation(functions)
    assert together.shape == (2, 3, len(functions))
    flipped = kind.from_moments(means.view(2, 3).T, variances.view(2, 3).T)
    torch.testing.assert_close(flipped.expectation(functions), together.transpose(0, 1))
    for mean, variance, row in zip(means, variances, together.flatten(0, 1)):
        alone = kind.from_moments(mean, variance).expectation(functions)
        torch.testing.assert_close(alone, row, rtol=0, atol=1e-12)


@every_density
def test_broadcasting(kind):
    """Means and variances with each other; the gradients are sums."""
    means, variances = some_means(kind, 3)
    means, variances = means.requires_grad_(), variances.view(3, 1)[:2].requires_grad_()
    result = kind.from_moments(means, variances).expectation(basis())
    assert result.shape == (2, 3, len(basis()))
    result.sum().backward()
    gradient, means.grad = means.grad, None
    for variance in variances.detach():
        kind.from_moments(means, variance.expand(3)).expectation(basis()).sum().backward()
    torch.testing.assert_close(means.grad, gradient)


@every_density
@pytest.mark.parametrize("shape", [(0,), (2, 0), (0, 3)])
def test_empty(kind, shape):
    mu = torch.zeros(shape, requires_grad=True)
    density = kind(mu, torch.ones(shape))
    result = density.expectation(basis())
    assert result.shape == (*shape, len(basis()))
    result.sum().backward()
    assert mu.grad.shape == shape
    assert density.per_point().cdf(torch.zeros(5)).shape == (*shape, 5)


@every_density
def test_per_point(kind):
    means, variances = some_means(kind, 6)
    density = kind.from_moments(means.view(2, 3), variances.view(2, 3))
    t = torch.linspace(0, 1, 5, dtype=F64)
    torch.testing.assert_close(
        density.per_point().mass(t[:-1], t[1:]), density.per_point().cdf(t).diff()
    )
    for name in ("pdf", "cdf"):
        found = getattr(density.per_point(), name)(t)
        assert found.shape == (2, 3, 5)
        for number, point in enumerate(t):
            torch.testing.assert_close(found[..., number], getattr(density, name)(point))


@every_density
def test_small_masses(kind):
    """Relative to themselves: in float32, of small bins, on either side of the middle."""
    precise = kind.from_moments(tensor(0.5), tensor(0.04))
    density = kind.from_moments(torch.tensor(0.5), torch.tensor(0.04))
    starts = torch.linspace(0.1, 0.9, 2000)[:-1]
    found = density.mass(starts, starts + 1e-4)
    expected = precise.mass(starts.double(), (starts + 1e-4).double())
    torch.testing.assert_close(found.double(), expected, rtol=1e-3, atol=0)
    by_pdf = precise.pdf(starts.double() + 0.5e-4) * 1e-4
    torch.testing.assert_close(expected, by_pdf, rtol=2e-3, atol=0)
    assert (kind.from_moments(torch.tensor(0.5), torch.tensor(0.3)).mass(starts, starts) == 0).all()


def test_both_tails_of_a_gaussian():
    density = Gaussian(torch.tensor(0.5), torch.tensor(0.01))
    right = density.mass(torch.tensor([1.5]), torch.tensor([2.0]))
    assert right.item() == pytest.approx(7.6199e-24, rel=1e-3)
    torch.testing.assert_close(density.mass(torch.tensor([-1.0]), torch.tensor([-0.5])), right)


@every_density
@CHEAP
@given(MEAN, DEVIATION, st.floats(-3, 3))
def test_mirror_and_translation(kind, mean, deviation, shift):
    functions = basis()
    density = kind.from_moments(tensor(mean), tensor(deviation**2))
    result = density.expectation(functions)
    for sign, by in ((-1, 1.0), (1, shift)):
        moved = LineBasis(sign * functions.centres + by, functions.widths)
        other = kind.from_moments(tensor(sign * mean + by), tensor(deviation**2))
        torch.testing.assert_close(other.expectation(moved), result, rtol=0, atol=1e-9)
    t = density.mu + deviation * torch.linspace(-4, 4, 9, dtype=F64)
    assert density.cdf(t) + density.cdf(2 * mean - t) == pytest.approx(np.ones(9), abs=1e-12)


@every_density
@CHEAP
@given(MEAN, DEVIATION, st.floats(-2, 2).map(lambda power: 10**power))
def test_units(kind, mean, deviation, unit):
    """In other units of length everything is the same; densities are per unit."""
    functions = basis()
    density = kind.from_moments(tensor(mean), tensor(max(deviation, 0.2 / unit) ** 2))
    scaled = kind.from_moments(unit * density.mean, unit**2 * density.variance)
    wide = LineBasis(unit * functions.centres, unit * functions.widths)
    found = unit * scaled.expectation(wide)
    torch.testing.assert_close(found, density.expectation(functions), rtol=0, atol=1e-9)
    point = density.mu + 0.3 * density.variance.sqrt()
    torch.testing.assert_close(scaled.cdf(unit * point), density.cdf(point))


@every_density
@CHEAP
@given(MEAN, DEVIATION, st.sampled_from([torch.float32, F64]))
def test_bounds(kind, mean, deviation, dtype):
    """An expectation is a mean of values: none below 0, none above the function's highest."""
    density = kind.from_moments(torch.tensor(mean, dtype=dtype), torch.tensor(deviation**2))
    share = density.expectation(basis()) / peaks(basis())
    rounding = 4 * torch.finfo(dtype).eps
    assert (share >= -rounding).all()
    assert (share <= 1 + rounding).all()
    assert density.cdf(torch.linspace(-9, 9, 200, dtype=dtype)).diff().min() >= -rounding


@every_density
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("sigma2", [1.0, 1e2, 1e4, 1e6, 1e9, 1e14])
def test_masses_in_bins_that_are_narrow(kind, dtype, sigma2):
    """Differences of the cumulative function lose all of their digits there."""
    mu, width = torch.tensor(0.3, dtype=dtype), torch.tensor(sigma2, dtype=dtype)
    edges = torch.linspace(0, 1, 51, dtype=dtype)
    density = kind.from_score(mu, width).per_point()
    found = density.mass(edges[:-1], edges[1:])
    nodes, weights = np.polynomial.legendre.leggauss(12)
    starts, ends = edges[:-1, None].double(), edges[1:, None].double()
    points = starts + (ends - starts) * (torch.from_numpy(nodes) + 1) / 2
    precise = kind.from_score(mu.double(), width.double()).per_point()
    heights = precise.pdf(points.flatten()).view(points.shape)
    expected = (heights * torch.from_numpy(weights)).sum(1) * (ends - starts)[:, 0] / 2
    inputs = [part.double().requires_grad_() for part in (mu, width)]
    assert gradcheck(
        lambda m, s: kind.from_score(m, s).per_point().mass(starts[:, 0], ends[:, 0]), inputs
    )
    slack = 1e-5 if dtype == torch.float32 else 1e-12
    torch.testing.assert_close(found.double(), expected, rtol=slack, atol=0)
