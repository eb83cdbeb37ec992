"""What must be true of the weights of any scores, by hypothesis.

Scores lie on a grid of hundredths, so that ties and kinks are common and two values are
either equal or clearly apart.
"""

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from .cases import ALL, BY_NAME, STRUCTURED, WITH_OMEGA, ids

F64 = torch.float64
CENT = st.integers(-300, 300).map(lambda n: n / 100)
SCORES = st.lists(CENT, min_size=1, max_size=12).map(lambda v: torch.tensor(v, dtype=F64))
CHEAP = settings(deadline=None, max_examples=40, derandomize=True)

every_mapping = pytest.mark.parametrize("case", ALL, ids=ids)


def some_setting(case):
    return st.sampled_from(case.settings())


def close(found, expected, atol=1e-9):
    torch.testing.assert_close(found, expected, rtol=0, atol=atol)


@every_mapping
@CHEAP
@given(st.data())
def test_simplex(case, data):
    weights = case(data.draw(SCORES), **data.draw(some_setting(case)))
    assert (weights >= 0).all()
    assert weights.sum().item() == pytest.approx(1, abs=1e-12)


@every_mapping
@CHEAP
@given(st.data())
def test_shift(case, data):
    """Adding a constant changes nothing; the published oscarmax is the exception."""
    scores, setting = data.draw(SCORES), data.draw(some_setting(case))
    shifted = scores + data.draw(CENT)
    if case.shift_invariant:
        close(case(shifted, **setting), case(scores, **setting))
    else:  # far from zero there are no signs to flip and nothing to clip: it is exact
        exact = BY_NAME["oscarmax"](scores, **setting)
        close(case(scores + 1000, **setting), exact, 1e-8)


def test_published_oscarmax_is_not_shift_invariant():
    scores = torch.tensor([0.5, -0.5, 0.0], dtype=F64)
    case = BY_NAME["oscarmax_prox"]
    assert (case(scores, lam=0.1) - case(scores - 0.3, lam=0.1)).abs().max() > 0.01


@every_mapping
@CHEAP
@given(st.data())
def test_symmetry(case, data):
    """Reordered scores give reordered weights; order means something to fusedmax only."""
    scores, setting = data.draw(SCORES), data.draw(some_setting(case))
    order = torch.arange(len(scores)).flip(0)
    if case.symmetric:
        order = torch.tensor(data.draw(st.permutations(range(len(scores)))))
    close(case(scores[order], **setting), case(scores, **setting)[order])


@every_mapping
@CHEAP
@given(st.data())
def test_order(case, data):
    """A larger score has no smaller weight (for fusedmax: no steps against the scores')."""
    scores, setting = data.draw(SCORES), data.draw(some_setting(case))
    weights = case(scores, **setting)
    if not case.symmetric:  # where the scores rise all along, so do the weights
        scores = scores.sort().values
        weights = case(scores, **setting)
    order = scores.argsort(stable=True)
    assert (weights[order].diff() >= -1e-12).all()


@every_mapping
@CHEAP
@given(st.data())
def test_gamma_divides_the_scores(case, data):
    """gamma multiplies the whole regulariser, lam inside it keeps its weight."""
    scores, setting = data.draw(SCORES), data.draw(some_setting(case))
    params = {name: value for name, value in setting.items() if name != "gamma"}
    close(case(scores, **setting), case(scores / setting["gamma"], **params))


@every_mapping
@CHEAP
@given(st.data())
def test_masked_is_removed(case, data):
    scores, setting = data.draw(SCORES), data.draw(some_setting(case))
    flags = st.lists(st.booleans(), min_size=len(scores), max_size=len(scores))
    mask = torch.tensor(data.draw(flags))
    weights = case(scores, padding_mask=mask, **setting)
    assert (weights[mask] == 0).all()
    close(weights[~mask], case(scores[~mask], **setting), 1e-12)
    close(case(scores.masked_fill(mask, -torch.inf), **setting), weights, 1e-12)


@every_mapping
@CHEAP
@given(st.data())
def test_rows_do_not_meet(case, data):
    """A batch gives what its rows give one by one, each with its own parameters."""
    length = data.draw(st.integers(1, 6))
    row = st.lists(CENT, min_size=length, max_size=length)
    scores = torch.tensor(data.draw(st.lists(row, min_size=2, max_size=4)), dtype=F64)
    chosen = [data.draw(some_setting(case)) for _ in scores]
    together = {name: torch.tensor([[s[name]] for s in chosen], dtype=F64) for name in chosen[0]}
    alone = torch.stack([case(x, **setting) for x, setting in zip(scores, chosen)])
    close(case(scores, **together), alone, 1e-12)
    columns = {name: value.T for name, value in together.items()}
    close(case(scores.T, 0, **columns), alone.T, 1e-12)


@pytest.mark.parametrize("case", WITH_OMEGA, ids=ids)
@CHEAP
@given(st.data())
def test_lipschitz(case, data):
    """Strong convexity bounds how far the weights move when the scores do."""
    scores, setting = data.draw(SCORES), data.draw(some_setting(case))
    moves = st.lists(CENT, min_size=len(scores), max_size=len(scores))
    move = torch.tensor(data.draw(moves), dtype=F64) / 10
    moved = case(scores + move, **setting) - case(scores, **setting)
    assert moved.norm() * case.modulus(**setting) <= move.norm() + 1e-12


@every_mapping
@pytest.mark.parametrize("power", range(-6, 7, 2))
@CHEAP
@given(st.data())
def test_scale(case, power, data):
    """Magnitudes from 1e-6 to 1e6 against the oracle."""
    scores = data.draw(SCORES) * 10.0**power
    setting = {name: values[0] for name, values in case.params.items()}
    close(case(scores, **setting), case.expected(scores, **setting), 1e-8)


@every_mapping
@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float32, F64], ids=str)
def test_dtype(case, dtype):
    scores = torch.linspace(-1, 1, 8, dtype=dtype).reshape(2, 4)
    weights = case(scores)
    assert weights.dtype == dtype
    atol = 2 * torch.finfo(dtype).eps
    for row, x in zip(weights, scores):
        params = {name: values[0] for name, values in case.params.items()}
        close(row.double(), case.expected(x.double(), **params), atol)


@every_mapping
@CHEAP
@given(st.data())
def test_small_gamma_is_argmax(case, data):
    scores, setting = data.draw(SCORES), data.draw(some_setting(case))
    best = data.draw(st.integers(0, len(scores) - 1))
    scores[best] = scores.max() + 0.5
    expected = torch.zeros_like(scores)
    expected[best] = 1
    close(case(scores, **{**setting, "gamma": 1e-3}), expected)


@every_mapping
@CHEAP
@given(st.data())
def test_large_gamma_is_uniform(case, data):
    scores, setting = data.draw(SCORES), data.draw(some_setting(case))
    uniform = torch.full_like(scores, 1 / len(scores))
    close(case(scores, **{**setting, "gamma": 1e8}), uniform, 1e-5)


@pytest.mark.parametrize("case", STRUCTURED, ids=ids)
@CHEAP
@given(st.data())
def test_large_lam_is_uniform(case, data):
    scores = data.draw(SCORES)
    close(case(scores, lam=1e4), torch.full_like(scores, 1 / len(scores)), 1e-7)


@CHEAP
@given(SCORES, st.sampled_from((0.3, 1.0, 2.5)))
def test_limits_that_are_sparsemax(scores, gamma):
    sparsemax = BY_NAME["sparsemax"](scores, gamma=gamma)
    for name, limit in (
        ("fusedmax", {"lam": 0.0}),
        ("oscarmax", {"lam": 0.0}),
        ("oscarmax_prox", {"lam": 0.0}),
        ("pnormmax", {"p": 2.0}),
        ("entmax", {"alpha": 2.0}),
    ):
        close(BY_NAME[name](scores, gamma=gamma, **limit), sparsemax, 1e-10)


@CHEAP
@given(SCORES, st.sampled_from((0.3, 1.0, 2.5)))
def test_entmax_tends_to_softmax(scores, gamma):
    softmax = BY_NAME["softmax"](scores, gamma=gamma)
    apart = [
        (BY_NAME["entmax"](scores, gamma=gamma, alpha=1 + step) - softmax).abs().max().item()
        for step in (1e-2, 1e-4, 1e-6)
    ]
    assert apart[1] < 1e-2
    assert apart[2] < 1e-4
    assert apart[2] <= apart[0] + 1e-6


@CHEAP
@given(st.data())
def test_what_has_fused_stays_fused(data):
    """Along growing lam: neighbours (fusedmax), pairs (oscarmax) of equal positive weight.

    The number of segments of the weights is not monotone: lowering a peak raises others
    above zero. What is true is that equal weights stay equal.
    """
    scores = data.draw(SCORES)
    small, step = data.draw(st.integers(0, 50)), data.draw(st.integers(1, 50))
    for name in ("fusedmax", "oscarmax"):
        before = BY_NAME[name](scores, lam=small / 100)
        after = BY_NAME[name](scores, lam=(small + step) / 100)
        if name == "oscarmax":
            order = scores.argsort(stable=True)
            before, after = before[order], after[order]
        fused = (before.diff().abs() < 1e-12) & (before[1:] > 1e-9)
        assert (after.diff().abs()[fused] < 1e-11).all()


def test_segments_shrink_without_zeros():
    """Where all weights are positive, fewer and fewer segments, down to one."""
    scores = torch.linspace(0, 1, 9, dtype=F64).cos() / 20 + torch.tensor([0, 0.01, -0.01] * 3)
    count = [
        1 + int((BY_NAME["fusedmax"](scores, lam=lam).diff().abs() > 1e-12).sum())
        for lam in (0.0, 0.002, 0.005, 0.01, 0.02, 0.2)
    ]
    assert count == sorted(count, reverse=True)
    assert count[0] == 9
    assert count[-1] == 1
    assert len(set(count)) > 3
