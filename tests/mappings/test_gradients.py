"""Gradients of every mapping, away from kinks: numerical, closed forms, double backward."""

import numpy as np
import pytest
import torch
from torch.autograd import gradcheck, gradgradcheck
from torch.autograd.functional import jacobian

from .cases import ALL, BY_NAME, WITH_OMEGA, WITH_PARAMS, ids

F64 = torch.float64


def batch(seed=0, shape=(4, 9), scale=0.4):
    """Small scores: several weights are positive, some zero, some neighbours fused."""
    generator = torch.Generator().manual_seed(seed)
    return (scale * torch.randn(*shape, generator=generator, dtype=F64)).requires_grad_()


def parameter(name, value):
    """A value a row, all different, in range."""
    least = 1 if name in ("p", "alpha") else 0
    wiggle = 1 - 0.02 * torch.arange(4, dtype=F64).reshape(4, 1)
    return (least + (value - least) * wiggle).requires_grad_()


def defaults(case):
    return {name: values[0] for name, values in case.params.items()}


MASK = torch.zeros(4, 9, dtype=torch.bool)
MASK[1, 6:] = MASK[2, :3] = MASK[3, 2] = MASK[3, 5] = True


@pytest.mark.parametrize("check", [gradcheck, gradgradcheck])
@pytest.mark.parametrize("mask", [None, MASK], ids=["whole", "masked"])
@pytest.mark.parametrize("case", ALL, ids=ids)
def test_scores(case, mask, check):
    for setting in case.settings():
        assert check(lambda x: case(x, padding_mask=mask, **setting), batch())


@pytest.mark.parametrize("check", [gradcheck, gradgradcheck])
@pytest.mark.parametrize("shape", [(4, 1), (1, 1), ()], ids=str)
@pytest.mark.parametrize(("case", "name"), WITH_PARAMS, ids=ids)
def test_parameters(case, name, shape, check):
    """gamma, lam, p and alpha, one a row, one for all and as a scalar."""
    value = 0.7 if name == "gamma" else case.params[name][0]
    param = parameter(name, value) if shape == (4, 1) else torch.full(shape, value, dtype=F64)
    others = {k: v for k, v in defaults(case).items() if k != name}

    def weights(x, param):
        return case(x, padding_mask=MASK, **{name: param}, **others)

    assert check(weights, (batch(1), param.detach().requires_grad_()))


@pytest.mark.parametrize(("case", "name"), WITH_PARAMS, ids=ids)
def test_parameters_matter(case, name):
    """The check above would pass on a parameter that is ignored: here it is seen to act."""
    values = [v for v in case.params.get(name, (0.7,)) if v not in (0.0, 2.0)]
    for value in values[:2]:
        param = parameter(name, value)
        weights = case(batch(1), **{name: param})
        (grad,) = torch.autograd.grad((weights * torch.arange(9)).sum(), param)
        assert grad.shape == param.shape
        assert grad.abs().max() > 1e-3, value


@pytest.mark.parametrize("case", ALL, ids=ids)
def test_all_at_once(case):
    """Scores, gamma and parameters together, in double backward too (mixed terms)."""
    names = ("gamma", *case.params)
    values = [parameter(*item) for item in {"gamma": 0.8, **defaults(case)}.items()]

    def weights(x, *values):
        return case(x, padding_mask=MASK, **dict(zip(names, values)))

    inputs = (batch(2), *(v.detach().requires_grad_() for v in values))
    assert gradcheck(weights, inputs)
    assert gradgradcheck(weights, inputs)


@pytest.mark.parametrize("case", ALL, ids=ids)
def test_differences_of_the_oracle(case):
    """Not our own forward: the Jacobian is the slope of the oracle, scores and parameters."""
    step = 1e-6
    x = batch(3, (8,)).detach()
    for setting in ({"gamma": 0.7, **defaults(case)}, {"gamma": 1.5, **defaults(case)}):
        J = jacobian(lambda x: case(x, **setting), x)
        for j in range(8):
            e = step * torch.eye(8, dtype=F64)[j]
            slope = (case.expected(x + e, **setting) - case.expected(x - e, **setting)) / 2 / step
            torch.testing.assert_close(J[:, j], slope, rtol=0, atol=1e-7)
        for name in setting:
            at = {k: torch.tensor(v, dtype=F64) for k, v in setting.items()}
            J_name = jacobian(lambda v: case(x, **{**at, name: v}), at[name])
            up = case.expected(x, **{**setting, name: setting[name] + step})
            down = case.expected(x, **{**setting, name: setting[name] - step})
            torch.testing.assert_close(J_name, (up - down) / 2 / step, rtol=0, atol=1e-7)


def simplex_jacobian(y):
    """diag(s) - s s' / |s| on the support s."""
    s = (y > 0).to(F64)
    return torch.diag(s) - torch.outer(s, s) / s.sum()


def group_jacobian(groups):
    """Averaging within groups: 1 / |G| for two members of a group G."""
    same = torch.tensor([[a == b for b in groups] for a in groups], dtype=F64)
    return same / same.sum(1, keepdim=True)


def jacobian_of(name, x, **params):
    return jacobian(lambda x: BY_NAME[name](x, **params), x.detach())


@pytest.mark.parametrize("gamma", [0.5, 1.0, 2.0])
def test_closed_forms_smooth(gamma):
    """Table 1 of paper A: softmax, sparsemax; Proposition 1: the squared p-norm."""
    x = batch(4, (7,)).detach()
    y = BY_NAME["softmax"].expected(x, gamma)
    expected = (torch.diag(y) - torch.outer(y, y)) / gamma
    torch.testing.assert_close(jacobian_of("softmax", x, gamma=gamma), expected)
    y = BY_NAME["sparsemax"].expected(x, gamma)
    expected = simplex_jacobian(y) / gamma
    torch.testing.assert_close(jacobian_of("sparsemax", x, gamma=gamma), expected)
    for p in (1.25, 1.5, 1.9):
        y = BY_NAME["pnormmax"].expected(x, gamma, p=p)
        on = y > 0
        z = y[on]
        norm = (z**p).sum() ** (1 / p)
        hessian = torch.diag((p - 1) / norm ** (p - 2) * z ** (p - 2))
        hessian += (2 - p) / norm ** (2 * p - 2) * torch.outer(z ** (p - 1), z ** (p - 1))
        A, identity = simplex_jacobian(z), torch.eye(len(z), dtype=F64)
        expected = torch.zeros(7, 7, dtype=F64)
        solved = torch.linalg.solve(identity + A @ (gamma * hessian - identity), A)
        expected[torch.outer(on, on)] = solved.flatten()
        found = jacobian_of("pnormmax", x, gamma=gamma, p=p)
        torch.testing.assert_close(found, expected, rtol=1e-8, atol=1e-8)


@pytest.mark.parametrize("gamma", [0.5, 1.0, 2.0])
def test_closed_forms_structured(gamma):
    """Proposition 3, groups written down by hand (a zigzag segment, an OSCAR group)."""
    x = gamma * torch.tensor([0.12, 0.5, 0.48, 0.52, 0.2, -0.9], dtype=F64)
    found = jacobian_of("fusedmax", x, gamma=gamma, lam=0.05)
    y = BY_NAME["fusedmax"].expected(x, gamma, lam=0.05)
    groups = [0, 1, 1, 1, 2, 3]
    assert y[1] == y[2] == y[3] > y[4] > y[0] > 0 == y[5]
    expected = simplex_jacobian(y) @ group_jacobian(groups) / gamma
    torch.testing.assert_close(found, expected)
    found = jacobian_of("oscarmax", x, gamma=gamma, lam=0.03)
    y = BY_NAME["oscarmax"].expected(x, gamma, lam=0.03)
    assert y[1] == y[2] == y[3] > y[4] > y[0] > 0 == y[5]
    expected = simplex_jacobian(y) @ group_jacobian(groups) / gamma
    torch.testing.assert_close(found, expected)


def test_closed_form_published_oscarmax():
    """sign(z_i z_j) / |G| for groups of equal magnitude, 0 where the prox is 0."""
    z = torch.tensor([0.5, -0.48, 0.3, 0.02, -0.9], dtype=F64)
    lam = 0.03  # sorted magnitudes .9 .5 .48 .3 .02 lose .12 .09 .06 .03 0
    # .78 | .41 .42 fuse at .415 | .27 | .02: all stay positive, signs as in z
    prox = torch.tensor([0.415, -0.415, 0.27, 0.02, -0.78], dtype=F64)
    groups, sign = [0, 0, 1, 2, 3], torch.sign(z)
    inner = group_jacobian(groups) * torch.outer(sign, sign)
    y = BY_NAME["oscarmax_prox"].expected(z, lam=lam)
    tau = (prox[[0, 2, 3]].sum() - 1) / 3
    torch.testing.assert_close(y, torch.clamp(prox - tau, min=0))
    found = jacobian_of("oscarmax_prox", z, lam=lam)
    torch.testing.assert_close(found, simplex_jacobian(y) @ inner)


@pytest.mark.parametrize("case", WITH_OMEGA, ids=ids)
def test_gradient_of_the_value(case):
    """grad max_Omega is the mapping; by the envelope theorem d/dgamma is -Omega(y)."""
    step = 1e-6
    x = batch(5)
    for setting in case.settings():
        tensors = {k: torch.tensor(v, dtype=F64, requires_grad=True) for k, v in setting.items()}
        value = case.value(x, padding_mask=MASK, **tensors)
        assert value.shape == (4,)
        grads = torch.autograd.grad(value.sum(), [x, *tensors.values()])
        weights = case(x, padding_mask=MASK, **setting)
        torch.testing.assert_close(grads[0], weights)
        params = {k: v for k, v in setting.items() if k != "gamma"}
        kept = [w[~m].detach().numpy() for w, m in zip(weights, MASK)]
        omega = sum(case.omega(y, **params) for y in kept)
        assert grads[1].item() == pytest.approx(-omega, abs=1e-8)
        for (name, at), grad in zip(params.items(), grads[2:]):
            up, down = ({**params, name: at + s} for s in (step, -step))
            slope = sum(case.omega(y, **up) - case.omega(y, **down) for y in kept) / 2 / step
            assert grad.item() == pytest.approx(-setting["gamma"] * slope, abs=1e-7), name


@pytest.mark.parametrize("case", WITH_OMEGA, ids=ids)
def test_value_and_loss_twice(case):
    names = ("gamma", *case.params)
    values = [parameter(*item) for item in {"gamma": 0.8, **defaults(case)}.items()]
    inputs = (batch(6), *(v.detach().requires_grad_() for v in values))
    target = torch.tensor([0, 1, 8, 3])

    def value(x, *values):
        return case.value(x, padding_mask=MASK, **dict(zip(names, values)))

    def loss(x, *values):
        return case.loss(x, target, padding_mask=MASK, **dict(zip(names, values)))

    for function in (value, loss):
        assert gradcheck(function, inputs)
        assert gradgradcheck(function, inputs)


@pytest.mark.parametrize("case", ALL, ids=ids)
def test_float32_gradient(case):
    """Single precision gives the gradient of double precision, to single precision."""
    x, setting = batch(7), defaults(case)
    upstream = torch.from_numpy(np.random.default_rng(0).normal(size=(4, 9)))
    (double,) = torch.autograd.grad(case(x, **setting), x, upstream)
    x = x.detach().float().requires_grad_()
    (single,) = torch.autograd.grad(case(x, **setting), x, upstream.float())
    torch.testing.assert_close(single.double(), double, rtol=1e-3, atol=1e-4)


@pytest.mark.parametrize("case", [case for case in ALL if "lam" in case.params], ids=ids)
def test_ties_are_not_tied_without_a_penalty(case):
    """At lam = 0 these are sparsemax, which is differentiable where scores are equal."""
    x = torch.tensor([1.0, 1.0, 0.9, 0.0, 0.0, -3.0], dtype=F64)
    expected = jacobian_of("sparsemax", x)
    torch.testing.assert_close(jacobian_of(case.name, x, lam=0.0), expected)
    expected = jacobian_of("sparsemax", x / 4)
    torch.testing.assert_close(jacobian_of(case.name, x / 4, lam=0.0), expected)
