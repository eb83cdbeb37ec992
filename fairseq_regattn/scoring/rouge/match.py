"""Hits between a hypothesis and one reference, as ROUGE-1.5.5 counts them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from fairseq_regattn.scoring.rouge.text import Text


class Match(NamedTuple):
    """Of one hypothesis and one reference, or sums of several.

    Attributes:
        hits: n-grams or tokens (weighted runs for ROUGE-W) in both.
        reference: how many the reference has.
        hypothesis: how many the hypothesis has.
        recall: what ``-f B`` chooses the best reference by.
    """

    hits: float
    reference: float
    hypothesis: float
    recall: float


def ngrams(hypothesis: Text, reference: Text, size: int) -> Match:
    """ROUGE-N: each n-gram of the reference is found at most as often as it stands there."""
    there, found = _counts(reference.tokens, size), _counts(hypothesis.tokens, size)
    if len(found) < len(there):
        hits = sum(min(count, there[gram]) for gram, count in found.items() if gram in there)
    else:
        hits = sum(min(count, found[gram]) for gram, count in there.items() if gram in found)
    total, made = (max(len(text.tokens) - size + 1, 0) for text in (reference, hypothesis))
    return Match(hits, total, made, round(hits / total, 5) if total else 0.0)


def _counts(tokens: list[bytes], size: int) -> Counter:
    return Counter(tokens if size == 1 else zip(*(tokens[i:] for i in range(size))))


def sequence(hypothesis: Text, reference: Text) -> Match:
    """ROUGE-L: the longest common subsequence of all tokens."""
    hits = common_length(reference.tokens, hypothesis.tokens)
    total = len(reference.tokens)
    return Match(hits, total, len(hypothesis.tokens), hits / total if total else 0.0)


def union(hypothesis: Text, reference: Text) -> Match:
    """ROUGE-Lsum: tokens of each reference sentence that are in a longest common subsequence with
    some sentence of the hypothesis. A token counts at most as often as both documents have it.
    """
    if len(hypothesis.sentences) == 1 == len(reference.sentences):
        hits = common_length(reference.sentences[0], hypothesis.sentences[0])
    else:
        left = _Left(hypothesis, reference)
        hits = sum(
            left.take(token)
            for sentence in reference.sentences
            for token, hit in zip(sentence, _marked(sentence, hypothesis.sentences, 1.0))
            if hit
        )
    total = sum(map(len, reference.sentences))
    return Match(hits, total, len(hypothesis.tokens), hits / total if total else 0.0)


def weighted(hypothesis: Text, reference: Text, power: float) -> Match:
    """ROUGE-W: as :func:`union`, where a run of k hits in a row counts k ** power.

    As in ROUGE-1.5.5, lengths of reference sentences are raised to the power, and so is their sum;
    a hit that is not counted for its token being used up does not end a run.
    """
    left = _Left(hypothesis, reference)
    hits = 0.0
    for sentence in reference.sentences:
        marks = _marked(sentence, hypothesis.sentences, power)
        run = 0
        for j, token in enumerate(sentence):
            if marks[j] and left.take(token):
                run += 1
                if j + 1 == len(sentence) or not marks[j + 1]:
                    hits += run**power
                    run = 0
    base = sum(len(sentence) ** power for sentence in reference.sentences)
    recall = (hits / base) ** (1 / power) if base else 0.0
    return Match(hits, base**power, len(hypothesis.tokens) ** power, recall)


class _Left:
    """Tokens of both documents that were not yet hit."""

    def __init__(self, *texts: Text):
        self.counts = [Counter(text.tokens) for text in texts]

    def take(self, token: bytes) -> bool:
        there = all(counts[token] > 0 for counts in self.counts)
        if there:
            for counts in self.counts:
                counts[token] -= 1
        return there


def common_length(first: Sequence[bytes], second: Sequence[bytes]) -> int:
    """Length of the longest common subsequence.

    A row of the usual table is one integer whose zero bits are where it increases (Hyyrö 2004,
    "Bit-parallel LCS-length computation revisited").
    """
    places: dict[bytes, int] = {}
    for position, token in enumerate(first):
        places[token] = places.get(token, 0) | 1 << position
    everywhere = (1 << len(first)) - 1
    row = everywhere
    for token in second:
        matches = row & places.get(token, 0)
        row = (row + matches | row - matches) & everywhere
    return len(first) - bin(row).count("1")


def _marked(sentence: list[bytes], others: Iterable[list[bytes]], power: float) -> list[bool]:
    """Which tokens are in the longest common subsequence with some other sentence.

    Of several of the same length it is the one that ROUGE-1.5.5 finds. With a power above 1, runs
    of neighbours are worth more than the same number of tokens apart.
    """
    marks = [False] * len(sentence)
    for other in others:
        for position in _subsequence(sentence, other, power):
            marks[position] = True
    return marks


def _subsequence(first: list[bytes], second: list[bytes], power: float) -> list[int]:
    """Positions in the first of a longest (heaviest) common subsequence."""
    width = len(second) + 1
    values = [[0.0] * width]
    runs = [0] * width
    for token in first:
        above, row, previous, runs = values[-1], [0.0] * width, runs, [0] * width
        for j, other in enumerate(second, start=1):
            if token == other:
                run = previous[j - 1]
                row[j] = above[j - 1] + (run + 1) ** power - run**power
                runs[j] = run + 1
            else:
                row[j] = max(above[j], row[j - 1])
        values.append(row)
    found = []
    i, j = len(first), len(second)
    while i and j:
        if first[i - 1] == second[j - 1]:
            i, j = i - 1, j - 1
            found.append(i)
        elif values[i - 1][j] >= values[i][j - 1]:
            i -= 1
        else:
            j -= 1
    return found
