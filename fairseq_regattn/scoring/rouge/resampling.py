"""Averages and confidence intervals of ROUGE-1.5.5, and a test of a difference.

ROUGE-1.5.5 prints the mean of 1,000 bootstrap samples, drawn with Perl's random numbers, instead
of the mean itself; to print its digits takes the same numbers.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

SAMPLES = 1000
CONFIDENCE = 95


class Interval(NamedTuple):
    """A mean with its confidence interval, between 0 and 1."""

    value: float
    low: float
    high: float


def bootstrap(scores: np.ndarray) -> list[Interval]:
    """What ROUGE-1.5.5 prints as average and 95 % confidence interval.

    Args:
        scores: ``[documents, numbers]``, in the order of the documents' names.

    Returns:
        One for each of the numbers, with five decimals.
    """
    sums = np.zeros((SAMPLES, scores.shape[1]))
    taken = np.empty_like(sums)
    for drawn in _draws(len(scores)):
        sums += np.take(scores, drawn, axis=0, out=taken, mode="clip")  # raise would copy
    means = np.sort(sums / len(scores), axis=0)
    outside = SAMPLES * (100 - CONFIDENCE) // 200
    averages = np.add.accumulate(means, axis=0)[-1] / SAMPLES
    rows = zip(averages, means[outside], means[SAMPLES - outside - 1])
    return [Interval(*(round(float(number), 5) for number in row)) for row in rows]


def _draws(documents: int):
    """For each draw the document that each sample takes: Perl's rand after ``srand(sample)``.

    Perl has carried the generator of drand48 with it since 5.20.
    """
    state = (np.arange(SAMPLES, dtype=np.uint64) << np.uint64(16)) | np.uint64(0x330E)
    factor, summand, mask = np.uint64(0x5DEECE66D), np.uint64(0xB), np.uint64((1 << 48) - 1)
    for _ in range(documents):
        state = (state * factor + summand) & mask
        yield (np.ldexp(state.astype(np.float64), -48) * documents).astype(np.intp)


def randomisation_p(
    first: Sequence[float], second: Sequence[float], samples: int = 10_000, seed: int = 12345
) -> float:
    """Paired approximate randomisation: how often a difference of means at least as large comes
    up when the two systems' scores of each document are exchanged at random.

    Args:
        first, second: scores of the same documents by two systems.

    Returns:
        p of two sides, at least ``1 / (samples + 1)``.

    Source: Noreen (1989), "Computer-intensive methods for testing hypotheses".
    """
    differences = np.asarray(first, dtype=np.float64) - np.asarray(second, dtype=np.float64)
    differences = differences[differences != 0]  # an exchange does not change these
    observed = abs(differences.sum())
    random = np.random.default_rng(seed)
    as_large = 0
    block = max(1, min(samples, 4_000_000 // max(len(differences), 1)))
    for start in range(0, samples, block):
        shape = (min(block, samples - start), len(differences))
        signs = random.integers(0, 2, size=shape, dtype=np.int8) * 2 - 1
        # sums of the same numbers in another order differ by rounding
        as_large += int((np.abs(signs @ differences) >= observed - 1e-9).sum())
    return (as_large + 1) / (samples + 1)
