"""Summaries as they are scored: finished by what attention tells, then ROUGE."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from fairseq_regattn.scoring import Score
from fairseq_regattn.scoring.rouge import Limit, Rouge

UNKNOWN = "<unk>"
"""What fairseq prints for a word that the dictionary does not have."""

UNKNOWN_IN_REFERENCE = re.compile(r"(?<!\S)(?:<unk>|UNK)(?!\S)")
"""What corpora print for one (Rush et al.'s Gigaword has both)."""

BRACKETS = dict(zip(["-lrb-", "-rrb-", "-lsb-", "-rsb-", "-lcb-", "-rcb-"], "()[]{}"))
"""The Penn treebank's names for brackets."""

TYPES = ("1", "2", "L")
DIGIT = re.compile(r"\d")


@dataclass(frozen=True)
class SummaryScores:
    """ROUGE of one system.

    Attributes:
        stem: whether words were stemmed.
        bytes: how many of an output were scored apart from the whole; None: no such scores.
        words: of an output, mean.
        reference_words: of a reference, mean.
        unknown: ``<unk>`` left in all outputs.
        masked: words with ``#`` for a digit left in all outputs.
        scores: value and 95 % confidence interval, 0 to 100, by the names of :func:`names`.
    """

    stem: bool
    bytes: int | None
    words: float
    reference_words: float
    unknown: int
    masked: int
    scores: dict[str, list[float]]


def names(size: int | None) -> dict[str, tuple[str, str]]:
    """All scores of whole outputs, or of their first bytes: name -> type and measure."""
    ending = "" if size is None else f", {size} bytes"
    measures = ("recall", "precision", "f1")
    return {f"rouge{t} {m}{ending}": (t, m) for t in TYPES for m in measures}


def main_measure(size: int | None) -> str:
    """F1 of whole outputs; recall where all outputs are cut to one length, as in DUC."""
    return "f1" if size is None else "recall"


def finish(
    target: Sequence[str],
    source: Sequence[str],
    weights: np.ndarray,
    original: Sequence[str] | None = None,
    replace_unknown: bool = False,
    brackets: bool = False,
) -> list[str]:
    """The words of an output with what can be copied from the input.

    A word with ``#`` (Gigaword's digits) becomes an input word that is the same but for having
    digits there; of several the one with the largest weight. ``<unk>`` becomes the input word with
    the largest weight, and stays where the end of the sentence has a larger one. Of equal weights
    the first counts: of a fused segment, its first word.

    Args:
        target: words of the output.
        source: words of the input.
        weights: (target words + 1) x (source words + 1), the ends last.
        original: words of the input before digits became ``#``, as many; None: they are left.
        replace_unknown: as told above; else ``<unk>`` stays.
        brackets: ``-lrb-`` becomes ``(`` and so on, where references have not got them.

    Raises:
        ValueError: `original` is of another length.
    """
    there = source if original is None else original
    if len(there) != len(source):
        raise ValueError(f"{len(there)} original words for {len(source)} words of the input")
    words = []
    for step, word in enumerate(target):
        row = weights[step]
        if word == UNKNOWN and replace_unknown:
            best = int(row[:-1].argmax()) if len(there) else 0
            if len(there) and row[best] > 0 and row[best] >= row[-1]:
                word = there[best]
        elif "#" in word and original is not None:
            same = [j for j, known in enumerate(there) if DIGIT.sub("#", known) == word]
            if same:
                word = there[max(same, key=lambda j: row[j])]
        words.append(BRACKETS.get(word, word) if brackets else word)
    return words


def score_summaries(
    summaries: Sequence[str],
    references: Sequence[Sequence[str]],
    stem: bool,
    size: int | None,
) -> tuple[SummaryScores, dict[str, str]]:
    """ROUGE-1, 2 and L.

    Args:
        summaries: one a line, finished.
        references: of each, one or more; ``<unk>`` and ``UNK`` in them match nothing.
        stem, size: as in :class:`SummaryScores`.

    Returns:
        The scores, and ROUGE's signatures.

    Raises:
        UsageError: as for :meth:`Rouge.system`.
    """
    scores, signatures = {}, {}
    comparable = _comparable(references)
    for limit in dict.fromkeys((None, size)):
        system = _rouge(stem, limit).system(summaries, comparable)
        averages = system.averages()
        for name, (kind, measure) in names(limit).items():
            interval = getattr(averages[kind], measure)
            scores[name] = [round(100 * value, 3) for value in interval]
        signatures["rouge" if limit is None else f"rouge, {limit} bytes"] = system.signature
    words = [word for summary in summaries for word in summary.split()]
    found = SummaryScores(
        stem=stem,
        bytes=size,
        words=len(words) / len(summaries),
        reference_words=float(np.mean([len(r.split()) for some in references for r in some])),
        unknown=words.count(UNKNOWN),
        masked=sum("#" in word for word in words),
        scores=scores,
    )
    return found, signatures


def compare_summaries(
    baseline: Sequence[str],
    systems: Mapping[str, Sequence[str]],
    references: Sequence[Sequence[str]],
    stem: bool,
    size: int | None,
) -> dict[str, dict[str, Score]]:
    """p of the difference of each system to a baseline, by paired approximate randomisation.

    Returns:
        For each system, by the name of each type's main score.
    """
    found: dict[str, dict[str, Score]] = {name: {} for name in systems}
    comparable = _comparable(references)
    for limit in dict.fromkeys((None, size)):
        rouge, measure = _rouge(stem, limit), main_measure(limit)
        base = rouge.system(baseline, comparable)
        for name, texts in systems.items():
            p_values = rouge.system(texts, comparable).p_values(base, measure)
            for key, (kind, of) in names(limit).items():
                if of == measure:
                    signature = f"{base.signature}|test:randomisation|trials:10000"
                    found[name][key] = Score(p_values[kind], signature)
    return found


def _rouge(stem: bool, size: int | None) -> Rouge:
    return Rouge(TYPES, stem, None if size is None else Limit("bytes", size))


def _comparable(references: Sequence[Sequence[str]]) -> list[list[str]]:
    """A word that is unknown in both is no match: fairseq escapes it in references."""
    return [[UNKNOWN_IN_REFERENCE.sub(f"<{UNKNOWN}>", r) for r in some] for some in references]
