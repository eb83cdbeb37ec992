"""ROUGE of documents and of systems, with the digits of ROUGE-1.5.5."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import NamedTuple

import numpy as np

import fairseq_regattn
from fairseq_regattn.errors import ArgumentError, UsageError
from fairseq_regattn.scoring.rouge.match import Match, ngrams, sequence, union, weighted
from fairseq_regattn.scoring.rouge.resampling import (
    SAMPLES,
    Interval,
    bootstrap,
    randomisation_p,
)
from fairseq_regattn.scoring.rouge.text import Limit, Text, read_text

Matcher = Callable[[Text, Text], Match]

PREFIX = re.compile(r"rouge-?", re.IGNORECASE)
TYPE = re.compile(r"(?P<size>[1-9])|L|Lsum|W-(?P<power>\d+(?:\.\d+)?)")
SEVERAL = ("average", "best", "jackknife")
MEASURES = ("recall", "precision", "f1")


class Score(NamedTuple):
    """Of one document, between 0 and 1, with five decimals as in ROUGE-1.5.5."""

    recall: float
    precision: float
    f1: float


class Average(NamedTuple):
    """Of a system."""

    recall: Interval
    precision: Interval
    f1: Interval


@dataclass(frozen=True)
class Rouge:
    """What is computed.

    Without `stem` and `limit` and with one reference of one sentence, scores are those of
    rouge-score but for rounding.

    Args:
        types: ``1`` to ``9`` for n-grams; ``L`` for the longest common subsequence of the whole
            text; ``Lsum`` for its union over sentences (lines), which is what ROUGE-1.5.5 calls
            ROUGE-L: the same where documents are of one line; ``W-1.2`` for ROUGE-W with a power
            above 1 and up to 4. Each type once; ``rouge1`` and ``ROUGE-1`` are ``1``, and so on.
        stem: ``-m``.
        limit: ``-b`` or ``-l``, of hypotheses and references.
        several: what to do with several references: ``average`` (``-f A``, sums hits and counts
            over them), ``best`` (``-f B``, the one with the highest recall), or ``jackknife``
            (the mean of ``best`` over all choices of all references but one, as ROUGE before 1.5
            did and Lin, 2004, describes, so that people can be compared with systems).

    Raises:
        ArgumentError: an unknown type or an argument out of range.

    Source: Lin (2004), "ROUGE: a package for automatic evaluation of summaries"; numbers by
    ROUGE-1.5.5.
    """

    types: tuple[str, ...] = ("1", "2", "L")
    stem: bool = False
    limit: Limit | None = None
    several: str = "average"
    _matchers: Mapping[str, Matcher] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        if isinstance(self.types, str) or not all(isinstance(name, str) for name in self.types):
            raise ArgumentError("types", self.types, "several names, such as ('1', '2', 'L')")
        types = tuple(PREFIX.sub("", name) for name in self.types)
        if not types or len(set(types)) < len(types):
            raise ArgumentError("types", self.types, "at least one type, each once")
        object.__setattr__(self, "types", types)
        if self.several not in SEVERAL:
            raise ArgumentError("several", self.several, " or ".join(SEVERAL))
        if self.limit is not None and not (
            isinstance(self.limit, Limit)
            and self.limit.unit in ("bytes", "words")
            and self.limit.size >= 1
        ):
            raise ArgumentError("limit", self.limit, "a Limit of at least 1 'bytes' or 'words'")
        object.__setattr__(self, "_matchers", {name: _matcher(name) for name in self.types})

    def document(self, hypothesis: str, references: Sequence[str]) -> dict[str, Score]:
        """Scores of one document by type.

        Args:
            hypothesis: a line a sentence. One without tokens scores 0.
            references: one or more; those without tokens count as nothing to be found.

        Raises:
            ArgumentError: a text is given for the references, whose letters would count as texts.
            UsageError: there is no reference; or only one, for a jackknife.
        """
        if isinstance(references, str):
            raise ArgumentError("references", references, "texts, [text] if there is one")
        made = self._read(hypothesis)
        there = [self._read(reference) for reference in references]
        if len(there) < self._fewest():
            raise UsageError(_too_few(len(there), self._fewest()))
        return {
            name: self._score(name, [match(made, reference) for reference in there])
            for name, match in self._matchers.items()
        }

    def system(
        self,
        hypotheses: Sequence[str],
        references: Sequence[Sequence[str]],
        names: Sequence[str] | None = None,
    ) -> System:
        """Scores of all documents.

        Args:
            hypotheses: of the documents.
            references: for each document, one or more.
            names: what ROUGE-1.5.5 is told as ``EVAL ID``: it sorts them as text, and its sampling
                goes by that order. ``1``, ``2`` and so on where None, as its wrappers have it.

        Raises:
            UsageError: no documents, or not as many of each; as for :meth:`document`.
        """
        if len(hypotheses) != len(references):
            raise UsageError(
                f"{len(hypotheses)} hypotheses do not fit references of {len(references)} documents"
            )
        if not hypotheses:
            raise UsageError("there are no hypotheses to score")
        if names is None:
            names = [str(number) for number in range(1, len(hypotheses) + 1)]
        if len(names) != len(hypotheses):
            raise UsageError(f"{len(names)} names do not fit {len(hypotheses)} hypotheses")
        fewest = self._fewest()
        for name, there in zip(names, references):
            if len(there) < fewest:
                raise UsageError(f"document {name}: {_too_few(len(there), fewest)}")
        documents = [self.document(made, there) for made, there in zip(hypotheses, references)]
        counts = sorted({len(there) for there in references})
        return System(self, documents, list(names), self.signature(counts))

    def signature(self, references: Sequence[int]) -> str:
        """What scores must share to be compared; sacreBLEU's way of telling it.

        Args:
            references: how many there are of a document, each number that occurs.
        """
        parts = {
            "types": ",".join(self.types),
            "nrefs": ",".join(map(str, references)),
            "several": self.several,
            "stem": "wordnet+porter" if self.stem else "no",
            "limit": str(self.limit).replace(" ", "") if self.limit else "no",
            "tok": "rouge155",
            "samples": str(SAMPLES),
            "version": f"fairseq-regattn.{fairseq_regattn.__version__}",
        }
        return "|".join(f"{name}:{value}" for name, value in parts.items())

    def _fewest(self) -> int:
        """References that a document must have."""
        return 2 if self.several == "jackknife" else 1

    def _read(self, text: str) -> Text:
        return read_text(text, self.stem, self.limit)

    def _score(self, name: str, matches: Sequence[Match]) -> Score:
        power = float(name[2:]) if name.startswith("W-") else 1.0
        if self.several == "average":
            return _ratios(matches, power)
        if self.several == "best":
            return _ratios([_best(matches)], power)
        left_out = [[*matches[:i], *matches[i + 1 :]] for i in range(len(matches))]
        scores = [_ratios([_best(some)], power) for some in left_out]
        return Score(*(round(sum(column) / len(scores), 5) for column in zip(*scores)))


@dataclass(frozen=True)
class System:
    """Scores of one system.

    Attributes:
        rouge: how they were made.
        documents: by type, in the order of the documents.
        names: of the documents.
        signature: :meth:`Rouge.signature`.
    """

    rouge: Rouge
    documents: list[dict[str, Score]]
    names: list[str]
    signature: str

    def averages(self) -> dict[str, Average]:
        """By type, what ROUGE-1.5.5 prints: means of 1,000 bootstrap samples, with intervals."""
        # Perl sorts "name.system"
        order = sorted(range(len(self.names)), key=lambda i: f"{self.names[i]}.".encode())
        rows = [[n for score in self.documents[i].values() for n in score] for i in order]
        found = bootstrap(np.array(rows))
        return {name: Average(*found[3 * i : 3 * i + 3]) for i, name in enumerate(self.rouge.types)}

    def means(self) -> dict[str, Score]:
        """By type, the plain means: of 25 documents they may differ from the averages in the second
        decimal, of thousands in the fourth.
        """
        return {
            name: Score(
                *(
                    math.fsum(column) / len(self.documents)
                    for column in zip(*(scores[name] for scores in self.documents))
                )
            )
            for name in self.rouge.types
        }

    def summary(self) -> dict[str, Average]:
        """By type, plain means with intervals, the same whatever the order of the documents.

        :meth:`averages` goes by the names of documents, which a scorer of fairseq is not told: it
        gets sentences in the order of the batches. Here each type's scores are sampled in the
        order of their size, so the interval does not depend on the other types either.
        """
        scores = [sorted(scores[name] for scores in self.documents) for name in self.rouge.types]
        found = bootstrap(np.hstack(scores))
        return {
            name: Average(
                *(i._replace(value=round(m, 5)) for i, m in zip(found[3 * n : 3 * n + 3], means))
            )
            for n, (name, means) in enumerate(self.means().items())
        }

    def lines(self) -> list[str]:
        """The summary in percent, a line a type, and the signature."""
        lines = []
        for name, average in self.summary().items():
            numbers = (
                f"{100 * n.value:.2f} ({100 * n.low:.2f}-{100 * n.high:.2f})" for n in average
            )
            lines.append("ROUGE-{}  R {}  P {}  F1 {}".format(name, *numbers))
        return [*lines, self.signature]

    def p_values(self, other: System, measure: str = "f1") -> dict[str, float]:
        """By type, p of the difference to another system on the same documents.

        Raises:
            ArgumentError: no such measure.
            UsageError: the two were not scored alike, or not on as many documents.
        """
        if measure not in MEASURES:
            raise ArgumentError("measure", measure, " or ".join(MEASURES))
        if self.signature != other.signature or self.names != other.names:
            raise UsageError(
                f"systems are compared on the same documents and scores, got {len(self.documents)} "
                f"with {self.signature} and {len(other.documents)} with {other.signature}"
            )
        return {
            name: randomisation_p(self._column(name, measure), other._column(name, measure))
            for name in self.rouge.types
        }

    def _column(self, name: str, measure: str) -> list[float]:
        return [getattr(scores[name], measure) for scores in self.documents]


def _matcher(name: str) -> Matcher:
    kind = TYPE.fullmatch(name)
    # with more, the powers of the powers of lengths overflow
    if kind is None or (kind["power"] and not 1 < float(kind["power"]) <= 4):
        allowed = "1 to 9, L, Lsum, or W- and a power above 1 up to 4, as W-1.2"
        raise ArgumentError("types", name, allowed)
    if kind["size"]:
        return partial(ngrams, size=int(kind["size"]))
    if kind["power"]:
        return partial(weighted, power=float(kind["power"]))
    return sequence if name == "L" else union


def _too_few(found: int, fewest: int) -> str:
    return f"{found} references, where at least {fewest} are needed"


def _best(matches: Sequence[Match]) -> Match:
    return max(matches, key=lambda match: match.recall)


def _ratios(matches: Sequence[Match], power: float) -> Score:
    hits = sum(match.hits for match in matches)
    recall = _ratio(hits, sum(match.reference for match in matches), power)
    precision = _ratio(hits, sum(match.hypothesis for match in matches), power)
    both = 0.5 * precision + 0.5 * recall
    return Score(recall, precision, round(precision * recall / both, 5) if both else 0.0)


def _ratio(hits: float, total: float, power: float) -> float:
    if not total:
        return 0.0
    return round(hits / total if power == 1 else (hits / total) ** (1 / power), 5)
