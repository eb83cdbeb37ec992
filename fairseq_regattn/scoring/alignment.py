"""Alignment error rate (Och and Ney, 2003), precision, recall and F1 of word alignments."""

from __future__ import annotations

import math
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field
from typing import Tuple

from fairseq_regattn.errors import UsageError

Link = Tuple[int, int]
"""Indices of a source word and of a target word, from 0."""


@dataclass(frozen=True)
class Links:
    """The links of one sentence pair as people set them.

    Attributes:
        sure: what an aligner must find.
        possible: what it may find; always holds the sure links too.
    """

    sure: set[Link] = field(default_factory=set)
    possible: set[Link] = field(default_factory=set)

    def __post_init__(self) -> None:
        self.possible.update(self.sure)


@dataclass(frozen=True)
class AlignmentScores:
    """Scores of a whole corpus, from 0 to 1; nan where the denominator is 0.

    With A the predicted, S the sure and P the possible links, summed over all sentences:

    Attributes:
        aer: 1 - (|A & S| + |A & P|) / (|A| + |S|); nan where nothing is predicted or sure.
        precision: |A & P| / |A|; nan where nothing is predicted.
        recall: |A & S| / |S|; nan where nothing is sure.
        f1: harmonic mean of precision and recall: 0 where both are 0, nan where one is nan.
        links: |A|.
        sentences: how many.
    """

    aer: float
    precision: float
    recall: float
    f1: float
    links: int
    sentences: int


def alignment_scores(
    predicted: Sequence[Collection[Link]], gold: Sequence[Links]
) -> AlignmentScores:
    """Score predicted links against those set by hand.

    Args:
        predicted: (source, target) indices of each sentence; a link given twice counts once.
        gold: of the same sentences in the same order.

    Raises:
        UsageError: other numbers of sentences, or an index below 0.
    """
    if len(predicted) != len(gold):
        raise UsageError(
            f"alignments must be of the same sentences, got {len(predicted)} predicted and "
            f"{len(gold)} gold"
        )
    links = sure = found_sure = found_possible = 0
    for number, (pairs, right) in enumerate(zip(predicted, gold)):
        guess = set(pairs)
        for name, some in (("predicted", guess), ("gold", right.possible)):
            below = [link for link in some if min(link) < 0]
            if below:
                raise UsageError(
                    f"indices must be at least 0, got the {name} link {min(below)} in sentence "
                    f"{number} (from 0)"
                )
        links += len(guess)
        sure += len(right.sure)
        found_sure += len(guess & right.sure)
        found_possible += len(guess & right.possible)
    precision, recall = _ratio(found_possible, links), _ratio(found_sure, sure)
    both = precision + recall
    return AlignmentScores(
        aer=1 - _ratio(found_sure + found_possible, links + sure),
        precision=precision,
        recall=recall,
        f1=2 * precision * recall / both if both else 0.0,
        links=links,
        sentences=len(gold),
    )


def _ratio(part: int, whole: int) -> float:
    return part / whole if whole else math.nan
