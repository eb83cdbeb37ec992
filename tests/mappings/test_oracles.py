"""The oracles are checked against each other, other packages and values known by hand."""

import entmax as entmax_package
import numpy as np
import pytest
import torch

from . import oracles, qp
from .cases import WITH_PROGRAM, ids, random_row


def test_known_values():
    np.testing.assert_allclose(oracles.fusedmax([1, 2.1, 1.9], lam=0.1), [0, 0.5, 0.5])
    np.testing.assert_allclose(qp.fusedmax([1, 2.1, 1.9], lam=0.1), [0, 0.5, 0.5])
    np.testing.assert_allclose(oracles.sparsemax([1, 0.5, -1]), [0.75, 0.25, 0])
    np.testing.assert_allclose(oracles.softmax([np.log(3), 0]), [0.75, 0.25])
    # lam * 1 is paid by the larger of two: 0.5 - 0.1 apart instead of 0.5
    np.testing.assert_allclose(oracles.oscarmax([0.5, 0], lam=0.1), [0.7, 0.3])
    np.testing.assert_allclose(qp.oscarmax([0.5, 0], lam=0.1), [0.7, 0.3])
    # p = 1.5 on two positions: y ~ (x - tau)^2
    y = oracles.pnormmax([0.2, 0.0], p=1.5)
    gradient = y**0.5 * (y**1.5).sum() ** (1 / 3)
    assert y.min() > 0
    assert gradient[0] - gradient[1] == pytest.approx(0.2, abs=1e-14)


def test_taut_string_by_hand():
    # ends move by lam, an inner peak by 2 lam
    assert [float(v) for v in oracles.taut_string(oracles.rational([4, 0]), 1)] == [3, 1]
    assert [float(v) for v in oracles.taut_string(oracles.rational([0, 4, 0]), 1)] == [1, 2, 1]
    assert [float(v) for v in oracles.taut_string(oracles.rational([0, 1, 5]), 9)] == [2, 2, 2]


@pytest.mark.parametrize("case", WITH_PROGRAM, ids=ids)
def test_composition_equals_program(case):
    """The short exact formulas against the QP, whose answers are proved optimal."""
    rng = np.random.default_rng(1)
    for _ in range(40):
        x, setting = random_row(rng), case.settings()[rng.integers(len(case.settings()))]
        np.testing.assert_allclose(
            case.oracle(x, **setting), case.program(x, **setting), rtol=0, atol=1e-13
        )


@pytest.mark.parametrize("case", WITH_PROGRAM, ids=ids)
def test_gap_notices_any_other_point(case):
    """The proof of optimality does not accept what is merely feasible."""
    gap = {"fusedmax": qp.fused_gap, "oscarmax": qp.oscar_gap}[case.name]
    rng = np.random.default_rng(2)
    lam = oracles.exact(0.1)
    for _ in range(20):
        z = oracles.rational(rng.normal(size=5))
        y = [oracles.exact(v) for v in case.oracle(oracles.as_float(z), lam=0.1)]
        other = oracles.project(oracles.rational(rng.normal(size=5)))
        assert gap(z, lam, y) < 1e-15
        assert gap(z, lam, other) >= sum((a - b) ** 2 for a, b in zip(y, other)) - 1e-15


def test_oscar_prox_is_a_minimum():
    """No nearby or far point has a smaller objective: the prox over R^d, signs included."""
    rng = np.random.default_rng(3)

    def objective(y, z, lam):
        i, j = np.triu_indices(len(y), 1)
        return ((y - z) ** 2).sum() / 2 + lam * np.maximum(np.abs(y[i]), np.abs(y[j])).sum()

    for _ in range(50):
        z = rng.normal(size=6)
        y = oracles.oscar_prox(z, 0.2)
        least = objective(y, z, 0.2)
        for step in (1e-6, 1e-3, 0.1, 1.0):
            for _ in range(20):
                other = y + step * rng.normal(size=6)
                # strong convexity: the minimum is lower by half the squared distance
                assert objective(other, z, 0.2) >= least + ((other - y) ** 2).sum() / 2 - 1e-12


def test_entmax_package():
    rng = np.random.default_rng(4)
    for _ in range(100):
        x = random_row(rng)
        t = torch.from_numpy(x)
        np.testing.assert_allclose(oracles.sparsemax(x), entmax_package.sparsemax(t), atol=1e-14)
        np.testing.assert_allclose(oracles.entmax(x), entmax_package.entmax15(t), atol=1e-8)
        for alpha in (1.25, 1.75, 2.0):
            theirs = entmax_package.entmax_bisect(t, alpha=alpha, n_iter=80)
            np.testing.assert_allclose(oracles.entmax(x, alpha=alpha), theirs, atol=1e-9)


def test_degenerate_exponents():
    rng = np.random.default_rng(5)
    for _ in range(50):
        x = random_row(rng)
        np.testing.assert_allclose(oracles.pnormmax(x, p=2), oracles.sparsemax(x), atol=1e-14)
        np.testing.assert_allclose(oracles.entmax(x, alpha=2), oracles.sparsemax(x), atol=1e-14)


@pytest.mark.parametrize("p", [1.1, 1.5, 1.9])
def test_pnormmax_optimality(p):
    """gamma * grad Omega(y) = x - tau on the support and x <= tau off it."""
    rng = np.random.default_rng(6)
    for gamma in (0.3, 1.0, 2.5):
        for _ in range(30):
            x = random_row(rng)
            y = oracles.pnormmax(x, gamma, p)
            gradient = gamma * y ** (p - 1) * (y**p).sum() ** ((2 - p) / p)
            support = y > 1e-6
            tau = (x - gradient)[support]
            assert np.ptp(tau) < 1e-9
            assert y.sum() == pytest.approx(1, abs=1e-14)
            assert (x[~support] <= tau.mean() + gamma * 1e-6 ** (p - 1)).all()
