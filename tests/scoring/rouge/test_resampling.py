"""The samples of ROUGE-1.5.5, and the test of a difference against all exchanges there are."""

from itertools import islice, product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from fairseq_regattn.scoring.rouge.resampling import SAMPLES, _draws, bootstrap, randomisation_p

from .texts import CHEAP

DIGITS = st.integers(-4, 4).map(lambda n: n / 10)


def perl_random(seed):
    """Perl's rand after srand(seed): drand48, in whole numbers."""
    state = (seed << 16) + 0x330E
    while True:
        state = (state * 25214903917 + 11) % 2**48
        yield state / 2**48


def test_known_random_numbers():
    """As printed by perl 5.36."""
    assert list(islice(perl_random(0), 3)) == [
        0.17082803610628972,
        0.74990198048496381,
        0.09637165562356742,
    ]
    assert next(perl_random(999)) == 0.10233439302919933


@pytest.mark.parametrize("documents", [1, 2, 25, 10**6])
def test_draws(documents):
    found = np.array(list(islice(_draws(documents), 10)))
    expected = [
        [int(number * documents) for number in islice(perl_random(seed), len(found))]
        for seed in range(SAMPLES)
    ]
    assert found.T.tolist() == expected


def test_as_many_draws_as_documents():
    drawn = np.array(list(_draws(13)))
    assert drawn.shape == (13, 1000)
    assert np.bincount(drawn.ravel()).min() > 900  # a 13th are 1,000


def plain_bootstrap(column):
    """As ROUGE-1.5.5 writes it down, for one number."""
    count = len(column)
    means = []
    for seed in range(1000):
        total = 0.0
        for number in islice(perl_random(seed), count):
            total += column[int(number * count)]
        means.append(total / count)
    means.sort()
    total = 0.0
    for mean in means:
        total += mean
    return tuple(float(f"{number:.5f}") for number in (total / 1000, means[25], means[974]))


@pytest.mark.parametrize("documents", [1, 2, 3, 10, 40])
def test_bootstrap(documents):
    scores = np.random.default_rng(documents).integers(0, 100_001, (documents, 4)) / 1e5
    assert bootstrap(scores) == [plain_bootstrap(column) for column in scores.T.tolist()]


def test_bootstrap_of_halves():
    """The bounds of 100 coins: those of the binomial distribution."""
    (found,) = bootstrap(np.arange(100)[:, None] % 2.0)
    assert found.value == pytest.approx(0.5, abs=0.005)
    assert found.low == pytest.approx(stats.binom.ppf(0.025, 100, 0.5) / 100, abs=0.011)
    assert found.high == pytest.approx(stats.binom.ppf(0.975, 100, 0.5) / 100, abs=0.011)


# --- p


def exact_p(first, second):
    """The share of all exchanges with as large a difference."""
    differences = np.subtract(first, second)
    sums = [abs(np.dot(signs, differences)) for signs in product([1, -1], repeat=len(first))]
    return np.mean(np.array(sums) >= abs(differences.sum()) - 1e-9)


@CHEAP
@given(st.lists(st.tuples(DIGITS, DIGITS), min_size=1, max_size=8))
def test_p_of_all_exchanges(pairs):
    first, second = zip(*pairs)
    found, expected = randomisation_p(first, second), exact_p(first, second)
    assert found == pytest.approx(expected, abs=0.025)  # five times the error of sampling
    assert randomisation_p(second, first) == pytest.approx(expected, abs=0.025)


def test_p_as_scipy_has_it():
    random = np.random.default_rng(1)
    for shift in (0.0, 0.02, 0.05, 0.1):
        first, second = random.random((2, 14)) / 4
        second = second + shift
        expected = stats.permutation_test(
            (first, second),
            lambda a, b, axis: (a - b).mean(axis),
            permutation_type="samples",
            vectorized=True,
            n_resamples=np.inf,
        ).pvalue
        assert randomisation_p(first, second) == pytest.approx(expected, abs=0.02)


def test_p_of_equal_systems():
    assert randomisation_p([0.1, 0.5, 0.3], [0.1, 0.5, 0.3]) == 1
    assert randomisation_p([0.1, 0.5], [0.5, 0.1]) == 1  # no other exchange is closer
    assert randomisation_p([], []) == 1


def test_p_of_a_clear_difference():
    """No exchange of 50 documents is as large: the smallest p that so many samples can give."""
    better = np.linspace(0.3, 0.5, 50)
    assert randomisation_p(better, better - 0.1) == 1 / 10_001
    assert randomisation_p(better - 0.1, better, samples=99) == 1 / 100


def test_p_counts_sums_that_round_otherwise():
    """Exchanges with a difference of 0.3 come out as 0.3 and as 0.30000000000000004."""
    assert randomisation_p([0.0, 0.0, 0.7], [0.7, 0.3, 0.0]) == 1


def test_documents_without_a_difference_are_no_evidence():
    first, second = [0.2, 0.4, 0.5, 0.6, 0.1], [0.1, 0.1, 0.3, 0.4, 0.3]
    same = [0.7] * 500
    assert randomisation_p(first + same, second + same) == randomisation_p(first, second)


@pytest.mark.parametrize("documents", [401, 20_000])
def test_p_of_blocks(documents):
    """With many documents samples are drawn in blocks, which have their own signs."""
    random = np.random.default_rng(documents)
    differences = random.normal(0, 0.1, documents)
    differences += 1.5 * 0.1 / documents**0.5 - differences.mean()  # 1.5 standard errors
    found = randomisation_p(differences, np.zeros(documents), samples=2000)
    assert found == pytest.approx(2 * stats.norm.sf(1.5), abs=0.03)


def test_p_is_repeated_by_its_seed():
    first, second = np.random.default_rng(3).random((2, 30))
    assert randomisation_p(first, second) == randomisation_p(first, second)
    several = {randomisation_p(first, second, seed=seed) for seed in range(5)}
    assert len(several) > 1
    assert max(several) - min(several) < 0.03


def test_p_of_exchangeable_systems_is_uniform():
    random = np.random.default_rng(4)
    found = [randomisation_p(*random.random((2, 20)), samples=500) for _ in range(400)]
    assert stats.kstest(found, "uniform").pvalue > 0.01
