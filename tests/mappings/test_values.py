"""Every mapping against its oracle on 1,000 random rows of length 1 to 60, ties included."""

import functools

import entmax as entmax_package
import numpy as np
import pytest
import torch

from fairseq_regattn.mappings import (
    entmax,
    fusedmax,
    oscarmax,
    oscarmax_prox,
    softmax,
    sparsemax,
)

from . import oracles, qp
from .cases import ALL, BY_NAME, WITH_OMEGA, WITH_PROGRAM, ids, random_row

TOLERANCE = {torch.float64: 1e-8, torch.float32: 1e-5}


@functools.cache
def rows(case, count, use_program=False):
    """(scores, setting, weights) of `count` random rows; settings take turns."""
    rng = np.random.default_rng(20170522)
    settings = case.settings()
    solve = case.program if use_program else case.oracle
    out = []
    for n in range(count):
        x, setting = random_row(rng), settings[n % len(settings)]
        out.append((x, setting, solve(x, **setting)))
    return out


def worst(case, dtype, data):
    """The largest deviation, and the row where it is."""
    deviation = [
        float(np.abs(case(torch.tensor(x, dtype=dtype), **setting).double().numpy() - y).max())
        for x, setting, y in data
    ]
    n = int(np.argmax(deviation)) if not np.isnan(deviation).any() else deviation.index(np.nan)
    return deviation[n], data[n]


@pytest.mark.parametrize("dtype", TOLERANCE, ids=str)
@pytest.mark.parametrize("case", ALL, ids=ids)
def test_oracle(case, dtype, record_property):
    deviation, where = worst(case, dtype, rows(case, 1000))
    record_property("largest deviation", deviation)
    print(f"{case.name} {dtype}: largest deviation {deviation:.1e} on 1,000 rows")
    assert deviation <= TOLERANCE[dtype], where


@pytest.mark.parametrize("count", [100, pytest.param(1000, marks=pytest.mark.slow)])
@pytest.mark.parametrize("dtype", TOLERANCE, ids=str)
@pytest.mark.parametrize("case", WITH_PROGRAM, ids=ids)
def test_quadratic_program(case, dtype, count):
    deviation, where = worst(case, dtype, rows(case, count, use_program=True))
    print(f"{case.name} {dtype}: largest deviation from the QP {deviation:.1e} on {count} rows")
    assert deviation <= TOLERANCE[dtype], where


@pytest.mark.parametrize("count", [100, pytest.param(1000, marks=pytest.mark.slow)])
def test_published_oscarmax_is_not_the_program(count):
    """The erratum: the composition of prox and projection only approximates oscarmax."""
    data = rows(BY_NAME["oscarmax"], count, use_program=True)
    wrong = [
        float((oscarmax_prox(torch.tensor(x), **setting) - torch.tensor(y)).abs().max())
        for x, setting, y in data
    ]
    differing = sum(w > 1e-8 for w in wrong)
    print(
        f"oscarmax_prox differs from the QP on {differing} of {count} rows, "
        f"on {sum(w > 1e-3 for w in wrong)} by more than 1e-3, at most by {max(wrong):.2f}"
    )
    assert 0 < differing < count


@pytest.mark.parametrize("case", ALL, ids=ids)
def test_one_batch_with_parameters_a_row(case):
    """The same 1,000 rows padded into one batch, each with its own gamma and parameters."""
    data = rows(case, 1000)
    width = max(len(x) for x, _, _ in data)
    scores = torch.full((len(data), width), 7.0, dtype=torch.float64)  # the padding is large
    mask = torch.ones(len(data), width, dtype=torch.bool)
    expected = torch.zeros_like(scores)
    for n, (x, _, y) in enumerate(data):
        start = (width - len(x)) * (n % 2)  # right- and left-padded rows
        place = slice(start, start + len(x))
        scores[n, place], mask[n, place] = torch.tensor(x), False
        expected[n, place] = torch.tensor(y)
    setting = {
        name: torch.tensor([[s[name]] for _, s, _ in data], dtype=torch.float64)
        for name in data[0][1]
    }
    weights = case(scores, padding_mask=mask, **setting)
    torch.testing.assert_close(weights, expected, rtol=0, atol=1e-8)
    assert (weights[mask] == 0).all()


@pytest.mark.parametrize("case", WITH_OMEGA, ids=ids)
def test_value(case):
    """regularized_max is <x, y> - gamma * Omega(y) at the oracle's y."""
    for x, setting, y in rows(case, 1000)[:200]:
        params = {k: v for k, v in setting.items() if k != "gamma"}
        expected = x @ y - setting["gamma"] * case.omega(y, **params)
        value = case.value(torch.tensor(x), **setting)
        assert value.shape == ()
        assert value.item() == pytest.approx(expected, rel=1e-9, abs=1e-9), (x, setting)


def test_readme_values():
    x = torch.tensor([1.0, 2.1, 1.9], dtype=torch.float64)
    for found, expected in [
        (fusedmax(x, lam=0.1), [0, 0.5, 0.5]),
        (sparsemax(x), [0, 0.6, 0.4]),
        (oscarmax(x, lam=0.1), [0, 0.55, 0.45]),
        (fusedmax(x, lam=0.05), [0, 0.525, 0.475]),
        (softmax(torch.log(x)), [0.2, 0.42, 0.38]),
        (entmax(torch.tensor([0.0, 0.0], dtype=torch.float64)), [0.5, 0.5]),
    ]:
        expected = torch.tensor(expected, dtype=torch.float64)
        torch.testing.assert_close(found, expected, rtol=0, atol=1e-14)


def test_entmax_package():
    """The authors' own code, on a batch, in one call."""
    generator = torch.Generator().manual_seed(0)
    x = 2 * torch.randn(200, 17, generator=generator, dtype=torch.float64)
    x[::2] = (x[::2] * 10).round() / 10
    close = functools.partial(torch.testing.assert_close, rtol=0, atol=1e-8)
    close(sparsemax(x), entmax_package.sparsemax(x))
    close(entmax(x), entmax_package.entmax15(x))
    for alpha in (1.2, 1.7, 2.0):
        close(entmax(x, alpha=alpha), entmax_package.entmax_bisect(x, alpha=alpha, n_iter=80))
    alpha = torch.linspace(1.1, 2.0, 200, dtype=torch.float64)[:, None]
    close(entmax(x, alpha=alpha), entmax_package.entmax_bisect(x, alpha=alpha, n_iter=80))


@pytest.mark.parametrize("case", ALL, ids=ids)
def test_score_on_the_threshold(case):
    """0.4 has weight exactly 0: rounding may take it in and out of the support for ever."""
    scores = torch.tensor([1.5, 0.4, 1.8], dtype=torch.float64)
    setting = {name: 0.0 if name == "lam" else values[0] for name, values in case.params.items()}
    expected = case.expected(scores, gamma=2.5, **setting)
    weights = case(scores, gamma=2.5, **setting)
    torch.testing.assert_close(weights, expected, rtol=0, atol=1e-14)


@pytest.mark.parametrize("alpha", [3.0, 6.0])
def test_entmax_beyond_two(alpha):
    """Above alpha = 2 a weight near zero has unbounded slope: compare y^(alpha-1) instead."""
    rng = np.random.default_rng(8)
    for _ in range(100):
        x = random_row(rng, 20)
        y = entmax(torch.tensor(x), alpha=alpha).numpy()
        assert y.sum() == pytest.approx(1, abs=1e-7)
        np.testing.assert_allclose(
            y ** (alpha - 1), oracles.entmax(x, alpha=alpha) ** (alpha - 1), atol=1e-12
        )


@pytest.mark.parametrize("lam", [0.01, 0.3])
def test_long_rows(lam):
    """Sequence lengths of documents: the program at 400 positions."""
    x = np.random.default_rng(9).normal(size=400).cumsum() / 10
    found = fusedmax(torch.tensor(x), lam=lam).numpy()
    np.testing.assert_allclose(found, oracles.fusedmax(x, lam=lam), rtol=0, atol=1e-8)
    if lam == 0.3:
        np.testing.assert_allclose(found, qp.fusedmax(x, lam=lam), rtol=0, atol=1e-8)
    found = oscarmax(torch.tensor(x), lam=lam / 100).numpy()
    np.testing.assert_allclose(found, oracles.oscarmax(x, lam=lam / 100), rtol=0, atol=1e-8)
