"""general_mapping: FISTA to the optimum of any regulariser, Proposition 1 backward."""

import functools

import cvxpy
import numpy as np
import pytest
import torch
from torch.autograd import gradcheck, gradgradcheck
from torch.autograd.functional import hessian, jacobian

from fairseq_regattn.mappings import general_mapping, pnormmax, sparsemax

from . import oracles
from .cases import random_row

F64 = torch.float64
INF, NAN = float("inf"), float("nan")
solve = functools.partial(general_mapping, tol=1e-12, max_iter=20000)


def noise(*shape, seed=0, scale=0.5):
    generator = torch.Generator().manual_seed(seed)
    return scale * torch.randn(*shape, generator=generator, dtype=F64)


def half_square(y):
    return y.square().sum(-1) / 2


def squared_norm(y, p=1.5):
    return y.pow(p).sum(-1).pow(2 / p) / 2


def shifted_entropy(y, shift=0.1):
    """Strongly convex, with finite slopes at zero, so the weights can be sparse."""
    return ((y + shift) * (y + shift).log()).sum(-1)


def shifted_entropy_oracle(x, gamma, shift=0.1):
    """y = (exp(x / gamma - tau) - shift)_+ , tau by bisection."""
    z = np.asarray(x, dtype=np.longdouble) / gamma
    z = z - z.max()

    def weights(tau):
        return np.maximum(np.exp(z - tau) - shift, 0)

    tau = oracles.bisect(lambda t: weights(t).sum() - 1, np.longdouble(-9), np.longdouble(9))
    return weights(tau).astype(np.float64)


def quadratic_oracle(x, gamma, matrix):
    y = cvxpy.Variable(len(x))
    goal = gamma * cvxpy.quad_form(y, cvxpy.psd_wrap(matrix)) / 2 - x @ y
    cvxpy.Problem(cvxpy.Minimize(goal), [y >= 0, cvxpy.sum(y) == 1]).solve(
        solver=cvxpy.CLARABEL, tol_gap_abs=1e-12, tol_gap_rel=1e-12, tol_feas=1e-12
    )
    return y.value


@pytest.mark.parametrize("gamma", [0.3, 1.0, 2.5])
def test_values(gamma):
    rng = np.random.default_rng(0)
    for _ in range(15):
        x = random_row(rng, 20)
        scores = torch.tensor(x)
        for omega, expected in (
            (half_square, oracles.sparsemax(x, gamma)),
            (squared_norm, oracles.pnormmax(x, gamma, 1.5)),
            (shifted_entropy, shifted_entropy_oracle(x, gamma)),
        ):
            found = solve(scores, omega, gamma=gamma)
            torch.testing.assert_close(found, torch.tensor(expected), rtol=0, atol=1e-7)


def test_default_tolerance():
    """Without asking for more, within 1e-4 of the exact mappings."""
    scores = noise(20, 12, scale=1.0)
    close = functools.partial(torch.testing.assert_close, rtol=0, atol=1e-4)
    close(general_mapping(scores, half_square), sparsemax(scores))
    close(general_mapping(scores, squared_norm), pnormmax(scores))
    close(general_mapping(scores.float(), half_square), sparsemax(scores.float()))


def test_position_dependent():
    """A full quadratic form: no closed form, no symmetry; a QP solver is the judge."""
    root = noise(6, 6, seed=1)
    matrix = root @ root.T + 0.3 * torch.eye(6, dtype=F64)
    scores = noise(8, 6, seed=2)
    found = solve(scores, lambda y: ((y @ matrix) * y).sum(-1) / 2, gamma=0.8)
    for x, y in zip(scores, found):
        expected = quadratic_oracle(x.numpy(), 0.8, matrix.numpy())
        np.testing.assert_allclose(y, expected, rtol=0, atol=1e-7)


@pytest.mark.parametrize("omega", [half_square, shifted_entropy, squared_norm])
def test_gradients(omega):
    scores = noise(3, 6, seed=3).requires_grad_()
    gamma = torch.tensor([[0.7], [1.0], [1.3]], dtype=F64, requires_grad=True)
    mask = torch.tensor([[False] * 6, [False] * 4 + [True] * 2, [True] + [False] * 5])

    def weights(scores, gamma):
        return solve(scores, omega, gamma=gamma, padding_mask=mask)

    assert gradcheck(weights, (scores, gamma), atol=1e-4)
    if omega is not squared_norm:  # its Hessian is infinite at zero: once is what it has
        assert gradgradcheck(weights, (scores, gamma), atol=1e-4)


@pytest.mark.parametrize("gamma", [0.5, 2.0])
def test_proposition_one(gamma):
    """(I + A(B - I)) J = A with B = gamma * Hessian, A the projection's Jacobian at y."""
    scores = noise(6, seed=4)
    y = solve(scores, shifted_entropy, gamma=gamma)
    s = (y > 0).to(F64)
    A = torch.diag(s) - torch.outer(s, s) / s.sum()
    B = gamma * hessian(shifted_entropy, y)
    identity = torch.eye(6, dtype=F64)
    expected = torch.linalg.solve(identity + A @ (B - identity), A)
    found = jacobian(lambda x: solve(x, shifted_entropy, gamma=gamma), scores)
    torch.testing.assert_close(found, expected, rtol=0, atol=1e-6)


def test_closed_over_parameter():
    """Learned parameters of the regulariser get the gradient of finite differences."""
    scores, upstream = noise(4, 5, seed=5), noise(4, 5, seed=6)
    weight = (1 + noise(5, seed=7).abs()).requires_grad_()
    sharp = torch.tensor(0.7, dtype=F64, requires_grad=True)

    def objective(weight, sharp):
        def omega(y):
            return (weight * y.square()).sum(-1) / 2 + sharp * y.pow(3).sum(-1)

        return (solve(scores, omega, gamma=0.9) * upstream).sum()

    grads = torch.autograd.grad(objective(weight, sharp), [weight, sharp])
    step = 1e-5
    with torch.no_grad():
        for i in range(5):
            e = step * torch.eye(5, dtype=F64)[i]
            slope = (objective(weight + e, sharp) - objective(weight - e, sharp)) / 2 / step
            assert grads[0][i].item() == pytest.approx(slope.item(), abs=1e-5)
        slope = (objective(weight, sharp + step) - objective(weight, sharp - step)) / 2 / step
    assert grads[1].item() == pytest.approx(slope.item(), abs=1e-5)
    assert grads[0].abs().max() > 1e-3
    assert grads[1].abs() > 1e-3


@pytest.mark.parametrize("omega", [half_square, shifted_entropy])
def test_contract(omega):
    """Masks, -inf, NaN, +inf and dead rows as for every other mapping."""
    scores = noise(6, 5, seed=8, scale=0.2)
    plain = solve(scores, omega)
    mask = torch.zeros(6, 5, dtype=torch.bool)
    scores[0, 1], mask[0, 1] = NAN, True
    scores[1, 2] = -INF
    mask[2] = True
    scores[3, 0] = NAN
    scores[4, 0] = INF
    mask[3, 4] = True
    scores.requires_grad_()
    weights = solve(scores, omega, padding_mask=mask)
    (grad,) = torch.autograd.grad(weights, scores, noise(6, 5, seed=9))
    torch.testing.assert_close(weights[5], plain[5], rtol=0, atol=1e-9)
    for row, gone in ((0, 1), (1, 2)):
        kept = [i for i in range(5) if i != gone]
        alone = solve(scores[row, kept], omega)
        torch.testing.assert_close(weights[row, kept], alone, rtol=0, atol=1e-9)
        assert weights[row, gone] == grad[row, gone] == 0
        assert torch.isfinite(grad[row]).all()
    assert (weights[2] == 0).all()
    assert (grad[2] == 0).all()
    assert weights[3, :4].isnan().all()
    assert weights[3, 4] == grad[3, 4] == 0
    assert weights[4].isnan().all()
    assert torch.isfinite(grad[5]).all()
    assert grad[5].abs().max() > 0


@pytest.mark.parametrize("shape", [(0,), (3, 0), (0, 4), (1,), (3, 1)], ids=str)
def test_small_shapes(shape):
    scores = noise(*shape).requires_grad_()
    weights = solve(scores, shifted_entropy)
    assert weights.shape == shape
    assert torch.equal(weights, torch.ones(shape, dtype=F64))
    (grad,) = torch.autograd.grad(weights.sum(), scores)
    assert (grad == 0).all()


@pytest.mark.parametrize("dim", [0, 1, -2])
def test_dim(dim):
    scores = noise(3, 4, 2, seed=10)
    expected = sparsemax(scores, dim)
    torch.testing.assert_close(solve(scores, half_square, dim), expected, rtol=0, atol=1e-9)


@pytest.mark.parametrize("scale", [1e-6, 1.0, 1e3, 1e6])
def test_scale(scale):
    scores = noise(5, 6, scale=scale, seed=11)
    found = general_mapping(scores, half_square, tol=1e-10, max_iter=20000)
    torch.testing.assert_close(found, sparsemax(scores), rtol=0, atol=1e-6)


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float32], ids=str)
def test_dtype(dtype):
    scores = noise(2, 4).to(dtype)
    weights = general_mapping(scores, half_square)
    assert weights.dtype == dtype
    atol = max(1e-4, 2 * torch.finfo(dtype).eps)
    torch.testing.assert_close(weights.double(), sparsemax(scores.double()), rtol=0, atol=atol)


def test_too_few_iterations_warn():
    with pytest.warns(RuntimeWarning, match="max_iter=2"):
        general_mapping(noise(3, 9), shifted_entropy, max_iter=2, tol=1e-12)


@pytest.mark.parametrize(
    ("name", "value"),
    [("tol", 0.0), ("tol", -1.0), ("tol", NAN), ("max_iter", 0), ("max_iter", -3), ("gamma", 0.0)],
)
def test_bad_arguments(name, value):
    with pytest.raises(ValueError, match=name) as error:
        general_mapping(noise(2, 3), half_square, **{name: value})
    assert str(value) in str(error.value)


def test_omega_of_the_wrong_shape():
    with pytest.raises(ValueError, match="omega"):
        general_mapping(noise(2, 3), lambda y: y.square().sum())
