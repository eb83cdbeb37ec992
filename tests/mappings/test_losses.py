"""Fenchel-Young losses: never negative, zero at the mapping, gradient weights - target."""

import entmax as entmax_package
import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from fairseq_regattn import mappings

from .cases import WITH_OMEGA, ids

F64 = torch.float64
SCORES = st.lists(st.integers(-300, 300), min_size=2, max_size=8).map(
    lambda v: torch.tensor(v, dtype=F64) / 100
)
CHEAP = settings(deadline=None, max_examples=40, derandomize=True)

every_loss = pytest.mark.parametrize("case", WITH_OMEGA, ids=ids)


def batch(*shape, seed=0):
    generator = torch.Generator().manual_seed(seed)
    return torch.randn(*shape, generator=generator, dtype=F64)


@every_loss
@CHEAP
@given(st.data())
def test_sign(case, data):
    """Zero at the mapping's own weights; elsewhere at least half the squared distance."""
    scores, setting = data.draw(SCORES), data.draw(st.sampled_from(case.settings()))
    target = torch.softmax(batch(len(scores), seed=data.draw(st.integers(0, 9))), 0)
    if data.draw(st.booleans()):
        target = torch.eye(len(scores), dtype=F64)[data.draw(st.integers(0, len(scores) - 1))]
    weights = case(scores, **setting)
    assert case.loss(scores, weights, **setting).abs() < 1e-9
    loss = case.loss(scores, target, **setting)
    assert loss >= -1e-12
    distance = (weights - target).norm()
    assert loss >= case.modulus(**setting) * distance**2 / 2 - 1e-9
    assert loss > 1e-9 or distance < 1e-2


@every_loss
def test_gradient(case):
    for setting in case.settings():
        scores = batch(5, 7).requires_grad_()
        indices = torch.tensor([0, 3, 6, 2, 2])
        onehot = torch.nn.functional.one_hot(indices, 7).to(F64)
        for target, dense in (
            (indices, onehot),
            (onehot, onehot),
            2 * [onehot.roll(1) / 2 + 1 / 14],
        ):
            loss = case.loss(scores, target, **setting)
            assert loss.shape == (5,)
            assert loss.dtype == F64
            (grad,) = torch.autograd.grad(loss.sum(), scores)
            expected = case(scores, **setting) - dense
            torch.testing.assert_close(grad, expected, rtol=0, atol=1e-8)


@every_loss
def test_gradient_at_kinks(case):
    """The value and the loss are differentiable everywhere, also where the mapping is not.

    Walks in steps of a tenth, as large as lam: ties, and segments that just fuse or not.
    """
    rng = np.random.default_rng(0)
    setting = {name: values[0] for name, values in case.params.items()}
    if "lam" in setting:
        setting["lam"] = 0.1
    for n in range(120):
        steps = rng.integers(-1, 2, size=6) if n else np.ones(6)
        scores = torch.tensor(steps.cumsum() / 10, requires_grad=True)
        (grad,) = torch.autograd.grad(case.value(scores, **setting), scores)
        weights = case(scores, **setting).detach()
        torch.testing.assert_close(grad, weights, rtol=0, atol=1e-8)
        (grad,) = torch.autograd.grad(case.loss(scores, torch.tensor(0), **setting), scores)
        weights[0] -= 1
        torch.testing.assert_close(grad, weights, rtol=0, atol=1e-8)


@every_loss
def test_definition(case):
    """max_Omega(x) + gamma Omega(target) - <target, x>, Omega from the oracle."""
    scores, target = batch(4, 6), torch.softmax(batch(4, 6, seed=1), -1)
    for setting in case.settings():
        params = {name: value for name, value in setting.items() if name != "gamma"}
        omega = [case.omega(y.numpy(), **params) for y in target]
        omega = torch.tensor(omega, dtype=F64)
        expected = case.value(scores, **setting) + setting["gamma"] * omega
        expected = expected - (target * scores).sum(-1)
        loss = case.loss(scores, target, **setting)
        torch.testing.assert_close(loss, expected, rtol=0, atol=1e-9)


@every_loss
def test_dim_and_mask(case):
    """Any dim, one value a row; masked scores are as if removed, dead rows cost nothing."""
    scores, target = batch(2, 5, 3), torch.tensor([[0, 1, 4], [2, 2, 3]])
    loss = case.loss(scores, target, 1)
    assert loss.shape == (2, 3)
    rows = scores.transpose(1, 2)
    torch.testing.assert_close(loss, case.loss(rows, target))
    dense = torch.nn.functional.one_hot(target, 5).to(F64)
    torch.testing.assert_close(case.loss(scores, dense.transpose(1, 2), 1), loss)
    mask = torch.tensor([True, False, False, False, True])
    target = torch.tensor([[0, 1, 2], [2, 2, 1]])
    masked = case.loss(rows, target + 1, padding_mask=mask)
    torch.testing.assert_close(masked, case.loss(rows[..., 1:4], target))


@every_loss
def test_masked_gradient(case):
    scores = batch(2, 5)
    scores[:, 4] = float("nan")
    scores.requires_grad_()
    mask = torch.tensor([False, False, False, False, True])
    loss = case.loss(scores, torch.tensor([1, 3]), padding_mask=mask)
    (grad,) = torch.autograd.grad(loss.sum(), scores)
    assert torch.isfinite(loss).all()
    assert (grad[:, 4] == 0).all()
    expected = case(scores[:, :4]) - torch.eye(4, dtype=F64)[[1, 3]]
    torch.testing.assert_close(grad[:, :4], expected, rtol=0, atol=1e-8)


@pytest.mark.parametrize("gamma", [0.5, 1.0, 2.0])
def test_softmax_loss_is_cross_entropy(gamma):
    scores, target = batch(6, 5), torch.tensor([0, 1, 2, 3, 4, 0])
    expected = gamma * torch.nn.functional.cross_entropy(scores / gamma, target, reduction="none")
    torch.testing.assert_close(mappings.softmax_loss(scores, target, gamma=gamma), expected)


def test_entmax_package():
    """The authors' losses, for class indices."""
    scores, target = 2 * batch(20, 7), torch.arange(20) % 7
    close = torch.testing.assert_close
    close(mappings.sparsemax_loss(scores, target), entmax_package.sparsemax_loss(scores, target))
    close(mappings.entmax_loss(scores, target), entmax_package.entmax15_loss(scores, target))
    for alpha in (1.2, 1.75, 2.0):
        theirs = entmax_package.entmax_bisect_loss(scores, target, alpha)
        close(mappings.entmax_loss(scores, target, alpha=alpha), theirs)


@every_loss
@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float32], ids=str)
def test_dtype(case, dtype):
    scores, target = batch(3, 4), torch.tensor([0, 3, 1])
    loss = case.loss(scores.to(dtype), target)
    assert loss.dtype == dtype
    expected = case.loss(scores.to(dtype).double(), target)
    torch.testing.assert_close(loss.double(), expected, rtol=4 * torch.finfo(dtype).eps, atol=1e-6)


def test_oscarmax_prox_has_neither_value_nor_loss():
    """It is not the argmax of any known Omega."""
    assert not hasattr(mappings, "oscarmax_prox_loss")
    with pytest.raises(ValueError, match="oscarmax_prox"):
        mappings.regularized_max(batch(3), "oscarmax_prox")


def test_mapping_by_name_or_function():
    scores = batch(3, 4)
    by_name = mappings.regularized_max(scores, "fusedmax", lam=0.3)
    assert torch.equal(by_name, mappings.regularized_max(scores, mappings.fusedmax, lam=0.3))
    with pytest.raises(ValueError, match="fusedmax2"):
        mappings.regularized_max(scores, "fusedmax2")
