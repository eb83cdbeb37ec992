"""Parameters and scores at the edge of what numbers hold: right, or refused, never silent."""

import math

import pytest
import torch

from fairseq_regattn.mappings import (
    entmax,
    fusedmax,
    general_mapping,
    oscarmax,
    oscarmax_prox,
    pnormmax,
    softmax,
    sparsemax,
)

UNIFORM = torch.full((3,), 1 / 3, dtype=torch.float64)


@pytest.mark.parametrize("mapping", [fusedmax, oscarmax, oscarmax_prox])
@pytest.mark.parametrize(("size", "lam"), [(1e17, 1e17), (3e14, 1e15), (1.0, 1e30), (1.0, 1e308)])
def test_everything_fuses_far_from_zero(mapping, size, lam):
    """Pools with a large common value have weights all the same: here all of it fuses."""
    scores = torch.tensor([0.0, size, 0.0], dtype=torch.float64)
    torch.testing.assert_close(mapping(scores, lam=lam), UNIFORM, rtol=0, atol=1e-15)


@pytest.mark.parametrize("distance", [1e-3, 1e-6, 1e-9, 1e-11, 1e-13])
def test_entmax_tends_to_softmax(distance):
    """The difference is linear in alpha - 1, down to the last digit."""
    scores = torch.linspace(-2, 3, 20, dtype=torch.float64)
    error = (entmax(scores, alpha=1 + distance) - softmax(scores)).abs().max().item()
    assert error < 5 * distance + 1e-15


@pytest.mark.parametrize("distance", [0.5, 0.1, 1e-2, 1e-3, 1e-4])
def test_gradient_of_alpha_in_float32(distance):
    scores = torch.randn(50, 12, generator=torch.Generator().manual_seed(0))
    direction = torch.randn(50, 12, generator=torch.Generator().manual_seed(1))
    gradients = []
    for dtype in (torch.float32, torch.float64):
        # the same number in both: float32 cannot hold 1 + distance
        alpha = torch.tensor(1 + distance).to(dtype).requires_grad_()
        weights = entmax(scores.to(dtype), alpha=alpha)
        gradients += torch.autograd.grad((weights * direction.to(dtype)).sum(), alpha)
    torch.testing.assert_close(gradients[0].double(), gradients[1], rtol=1e-3, atol=1e-4)


@pytest.mark.parametrize(
    ("mapping", "parameter", "value"),
    [
        (sparsemax, "gamma", 1e-46),
        (softmax, "gamma", torch.tensor(1e-50, dtype=torch.float64)),
        (entmax, "alpha", 1 + 1e-9),
        (entmax, "alpha", torch.tensor(1 + 1e-9, dtype=torch.float64)),
        (pnormmax, "p", 1 + 1e-9),
        (fusedmax, "lam", 10**400),
        (fusedmax, "lam", 1e39),
    ],
)
def test_parameter_out_of_range_in_the_precision_of_the_scores(mapping, parameter, value):
    with pytest.raises(ValueError, match=f"^{parameter} must be"):
        mapping(torch.tensor([1.0, 2.0]), **{parameter: value})


def test_integer_tensor_is_refused_by_type():
    with pytest.raises(ValueError, match=r"lam must be .*floating point.*int64"):
        fusedmax(torch.ones(2), lam=torch.tensor(1))


def test_general_mapping_in_inference_mode():
    with torch.inference_mode():
        scores = torch.tensor([0.3, 0.1, -2.0])
        weights = general_mapping(scores, lambda y: 0.5 * y.square().sum(-1))
        torch.testing.assert_close(weights, sparsemax(scores))


@pytest.mark.parametrize("mapping", [softmax, sparsemax, pnormmax, fusedmax, oscarmax, entmax])
def test_scores_may_change_after_use(mapping):
    """Nothing but the weights is kept for backward while the parameters are numbers."""
    scores = torch.tensor([0.3, 0.1, -2.0], requires_grad=True)
    copy = scores * 1
    weights = mapping(copy)
    copy.detach().fill_(math.nan)
    (gradient,) = torch.autograd.grad(weights[0], scores)
    assert gradient.isfinite().all()
    with torch.no_grad():
        copy.zero_()
