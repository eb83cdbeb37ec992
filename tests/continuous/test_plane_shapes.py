"""Densities over the plane: what is refused, batches, broadcasting."""

import math

import pytest
import torch

from fairseq_regattn.errors import ArgumentError

from .test_plane import EYE, F64, basis, every_density, some_moments, tensor


@every_density
@pytest.mark.parametrize(
    "sigma",
    [
        [[0.0, 0.0], [0.0, 0.0]],
        [[1.0, 0.0], [0.0, -1.0]],
        [[-1.0, 0.0], [0.0, -1.0]],
        [[1.0, 2.0], [2.0, 1.0]],
        [[1.0, 1.0], [1.0, 1.0]],
        [[1.0, 0.5], [0.4, 1.0]],
        [[math.nan, 0.0], [0.0, 1.0]],
        [[1.0, math.nan], [math.nan, 1.0]],
        [[math.inf, 0.0], [0.0, 1.0]],
        [[1e200, 0.0], [0.0, 1e200]],
        [[1.0, 0.0], [0.0, 1.0], [0.0, 0.0]],
        [1.0, 1.0],
        1.0,
    ],
    ids=str,
)
def test_wrong_matrices(kind, sigma):
    mu, sigma = tensor([0.0, 0.0]), tensor(sigma)
    with pytest.raises(ArgumentError, match=r"^sigma must be .* positive definite, got tensor"):
        kind(mu, sigma)
    with pytest.raises(ArgumentError, match=r"^quadratic must be .*negative definite, got tensor"):
        kind.from_theta(mu, -sigma)


@every_density
@pytest.mark.parametrize(
    "point", [[0.0, math.nan], [math.inf, 0.0], [0.0], [0.0] * 3, 0.0], ids=str
)
def test_wrong_points(kind, point):
    with pytest.raises(ArgumentError, match=r"^mu must be ... x 2 finite numbers, got tensor"):
        kind(tensor(point), tensor(EYE))
    with pytest.raises(ArgumentError, match=r"^linear must be ... x 2 finite numbers, got tensor"):
        kind.from_theta(tensor(point), -tensor(EYE))


@every_density
def test_shapes_that_do_not_fit(kind):
    mu, sigma = torch.zeros(3, 2), torch.eye(2).expand(2, 2, 2)
    shapes = r"a shape that broadcasts with {}'s \(3, 2\), got \(2, 2, 2\)"
    with pytest.raises(ArgumentError, match="sigma must be of " + shapes.format("mu")):
        kind(mu, sigma)
    with pytest.raises(ArgumentError, match="quadratic must be of " + shapes.format("linear")):
        kind.from_theta(mu, -sigma)
    with pytest.raises(ArgumentError, match="mu must be"):
        kind(torch.zeros(2, dtype=torch.long), torch.eye(2))


@every_density
def test_batches(kind):
    """Each density is what it is alone, whatever the shape and the strides."""
    means, covariances = some_moments(6)
    together = kind.from_moments(means.view(2, 3, 2), covariances.view(2, 3, 2, 2))
    result = together.expectation(basis())
    assert result.shape == (2, 3, 4)
    flipped = kind(together.mu.transpose(0, 1), together.sigma.transpose(0, 1).mT)
    torch.testing.assert_close(flipped.expectation(basis()), result.transpose(0, 1))
    for mean, covariance, row in zip(means, covariances, result.flatten(0, 1)):
        alone = kind.from_moments(mean, covariance)
        torch.testing.assert_close(alone.expectation(basis()), row, rtol=0, atol=1e-12)


@every_density
def test_broadcasting(kind):
    means, covariances = some_moments(3)
    one_mean, one_covariance = means[0], covariances[0]
    for density, expected in (
        (kind.from_moments(one_mean, covariances), (one_mean.expand(3, 2), covariances)),
        (kind.from_moments(means, one_covariance), (means, one_covariance.expand(3, 2, 2))),
    ):
        apart = kind.from_moments(*expected)
        torch.testing.assert_close(density.expectation(basis()), apart.expectation(basis()))
        points = torch.rand(5, 2, dtype=F64)
        torch.testing.assert_close(density.per_point().pdf(points), apart.per_point().pdf(points))


@every_density
@pytest.mark.parametrize("shape", [(0,), (2, 0)])
def test_empty(kind, shape):
    mu = torch.zeros(*shape, 2, requires_grad=True)
    density = kind(mu, torch.eye(2))
    result = density.expectation(basis())
    assert result.shape == (*shape, 4)
    result.sum().backward()
    assert mu.grad.shape == (*shape, 2)
    assert density.per_point().pdf(torch.zeros(5, 2)).shape == (*shape, 5)


@every_density
@pytest.mark.parametrize("count", [0, 1, 5])
def test_per_point(kind, count):
    means, covariances = some_moments(3)
    density = kind.from_moments(means, covariances)
    points = torch.rand(count, 2, dtype=F64)
    found = density.per_point().pdf(points)
    assert found.shape == (3, count)
    for number, point in enumerate(points):
        torch.testing.assert_close(found[:, number], density.pdf(point))
    assert kind.from_moments(means[0], covariances[0]).pdf(means[0]).shape == ()
