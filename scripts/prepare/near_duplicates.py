"""Sentence pairs that repeat one another, for scripts that hold out test data."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Collection, Iterator

WORD = re.compile(r"[^\W\d_]+")


def words(text: str) -> list[str]:
    """Lower-cased words, without digits and punctuation."""
    return WORD.findall(text.lower())


def trigrams(text: str) -> set[tuple[str, ...]]:
    """Word trigrams; a shorter text is its own single n-gram."""
    tokens = words(text)
    if len(tokens) < 3:
        return {tuple(tokens)}
    return {tuple(tokens[i : i + 3]) for i in range(len(tokens) - 2)}


class NearDuplicates:
    """Finds pairs that repeat one seen before, in either language.

    A pair repeats another when the two share more than `jaccard` of the words that either has
    (word order aside), or when at least `shared_trigrams` of its word trigrams stand in the other.

    Args:
        jaccard: share of common words, in [0, 1].
        shared_trigrams: share of trigrams, in (0, 1]; None: trigrams do not count.
    """

    def __init__(self, jaccard: float, shared_trigrams: float | None = None) -> None:
        self.jaccard = jaccard
        self.shared_trigrams = shared_trigrams
        self.postings: dict[tuple, list[int]] = defaultdict(list)
        self.vocabularies: list[tuple[set[str], ...]] = []

    def add(self, pair: tuple[str, str]) -> None:
        """Pairs are numbered from 0 in this order."""
        vocabularies = tuple(set(words(text)) for text in pair)
        for side, text in enumerate(pair):
            grams: Collection = () if self.shared_trigrams is None else trigrams(text)
            for gram in (*grams, *vocabularies[side]):
                self.postings[side, gram].append(len(self.vocabularies))
        self.vocabularies.append(vocabularies)

    def repeated_by(self, pair: tuple[str, str]) -> Iterator[int]:
        """Numbers of the pairs that this one repeats, some of them more than once."""
        for side, text in enumerate(pair):
            if self.shared_trigrams is not None:
                grams = trigrams(text)
                for n, shared in self._shared(side, grams).items():
                    if shared >= self.shared_trigrams * len(grams):
                        yield n
            vocabulary = set(words(text))
            for n, shared in self._shared(side, vocabulary).items():
                union = len(vocabulary) + len(self.vocabularies[n][side]) - shared
                if shared > self.jaccard * union:
                    yield n

    def knows(self, pair: tuple[str, str]) -> bool:
        """Whether the pair repeats any."""
        return any(True for _ in self.repeated_by(pair))

    def _shared(self, side: int, grams: set) -> Counter:
        """For each pair seen, how many of the grams it has."""
        return Counter(n for gram in grams for n in self.postings.get((side, gram), ()))
