"""From weights over subwords to weights over words, and to links between words."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from fairseq_regattn.analysis.alignments import Hypothesis
from fairseq_regattn.errors import UsageError

START = "▁"
"""What opens a word in sentencepiece."""


def word_weights(hypothesis: Hypothesis, subwords: bool) -> tuple[list[str], list[str], np.ndarray]:
    """Source words, target words, and the weights between them.

    The weight of a source word is the sum of its pieces' weights. The row of a target word is
    the mean of its pieces' rows. So rows still sum to what they summed to. ``</s>`` is no word:
    it keeps the last column and the last row, as they were.

    A piece opens a word if it begins with ``▁`` or comes first. A lone ``▁`` joins the word
    that follows (at the end of a sentence, the word before). Words are shown without ``▁``; they
    are those that fairseq's ``--post-process sentencepiece`` prints.

    Args:
        hypothesis: with weights.
        subwords: whether its tokens are sentencepiece pieces; otherwise they are words already,
            and all is returned as it is.

    Returns:
        (source words, target words, weights: (target words + 1) x (source words + 1))

    Raises:
        UsageError: the hypothesis has no weights, or not one for each of its tokens.
    """
    weights = hypothesis.weights
    if weights is None:
        raise UsageError(
            f"sentence {hypothesis.sample_id} has no weights: generate with --print-alignment soft"
        )
    expected = len(hypothesis.target) + 1, len(hypothesis.source) + 1
    if weights.shape != expected:
        raise UsageError(
            f"weights of sentence {hypothesis.sample_id} must be {expected[0]} x {expected[1]}, "
            f"a row a target token and a column a source token with their ends, got shape "
            f"{weights.shape}"
        )
    if not subwords:
        return hypothesis.source, hypothesis.target, weights
    columns, rows = _starts(hypothesis.source), _starts(hypothesis.target)
    # Sums along one axis at a time, in order: equal columns stay equal to the last bit.
    sums = np.add.reduceat(weights, [*columns, len(hypothesis.source)], axis=1)
    sums = np.add.reduceat(sums, [*rows, len(hypothesis.target)], axis=0)
    ends = len(hypothesis.target), len(hypothesis.target) + 1
    pieces = np.diff(np.array([*rows, *ends]))
    return (
        _join(hypothesis.source, columns),
        _join(hypothesis.target, rows),
        sums / pieces[:, None],
    )


def _starts(pieces: Sequence[str]) -> list[int]:
    """Where words begin."""
    starts: list[int] = []
    empty = True  # nothing of a word has been seen since the last start
    for position, piece in enumerate(pieces):
        if not starts or (piece.startswith(START) and not empty):
            starts.append(position)
            empty = True
        empty = empty and not piece.strip(START)
    if len(starts) > 1 and empty:
        starts.pop()  # a lone piece at the end has no word to join but the one before
    return starts


def _join(pieces: Sequence[str], starts: list[int]) -> list[str]:
    ends = [*starts[1:], len(pieces)]
    return ["".join(pieces[start:end]).replace(START, "") for start, end in zip(starts, ends)]


def hard_links(weights: np.ndarray) -> list[tuple[int, int]]:
    """The source word that each target word attends to most.

    Of equal weights the first counts. A target word has no link if ``</s>`` has the largest
    weight, and no word an equal one, or if all its weights are 0.

    Args:
        weights: (target words + 1) x (source words + 1), ``</s>`` last in both.

    Returns:
        (source, target) indices, in the order of the target.
    """
    words = weights[:-1]  # without the step that ends the translation
    best = words.argmax(axis=1)  # the first of equal ones
    linked = (best < weights.shape[1] - 1) & (words.max(axis=1) > 0)
    return [(int(best[target]), int(target)) for target in np.flatnonzero(linked)]


def join_subwords(lines: Sequence[str]) -> list[str]:
    """Lines of pieces as lines of words."""
    joined = []
    for line in lines:
        pieces = line.split()
        joined.append(" ".join(_join(pieces, _starts(pieces))))
    return joined
