"""Labels as they are scored: accuracy with its interval, what was taken for what, and chance.

scipy.stats takes a second to import, so that is done where it is used.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from fairseq_regattn.errors import ArgumentError, UsageError
from fairseq_regattn.scoring import Score
from fairseq_regattn.scoring.answers import check_interval


@dataclass(frozen=True)
class ClassScores:
    """How many texts of each label were given which.

    Attributes:
        labels: all there are.
        confusion: rows gold, columns predicted, both in the order of `labels`.
        accuracy: value and 95 % confidence interval (Wilson's), 0 to 100.

    Raises:
        ArgumentError: these are no labels, no matrix of counts, or no interval.
    """

    labels: list[str]
    confusion: list[list[int]]
    accuracy: list[float]

    def __post_init__(self) -> None:
        if not self.labels or len(set(self.labels)) != len(self.labels):
            raise ArgumentError("labels", self.labels, "one or more, all different")
        size = len(self.labels)
        square = len(self.confusion) == size and all(len(row) == size for row in self.confusion)
        if not square:
            wanted = f"{size} rows of {size} counts, as there are {size} labels"
            raise ArgumentError("confusion", self.confusion, wanted)
        counts = [count for row in self.confusion for count in row]
        if min(counts) < 0 or not sum(counts):
            raise ArgumentError("confusion", self.confusion, "counts >= 0 that are not all 0")
        check_interval("accuracy", self.accuracy)

    @property
    def gold(self) -> dict[str, int]:
        """Texts by their true label."""
        return {label: sum(row) for label, row in zip(self.labels, self.confusion)}

    @property
    def predicted(self) -> dict[str, int]:
        """Texts by the label that they were given."""
        return {label: sum(column) for label, column in zip(self.labels, zip(*self.confusion))}

    @property
    def right(self) -> dict[str, int]:
        """Texts that were given their true label, by it."""
        return {label: self.confusion[i][i] for i, label in enumerate(self.labels)}

    @property
    def recall(self) -> dict[str, float | None]:
        """Percent of a label's texts that were given it; None where there are no such texts."""
        return {label: _percent(n, self.gold[label]) for label, n in self.right.items()}

    @property
    def precision(self) -> dict[str, float | None]:
        """Percent of the texts given a label that have it; None where none was given it."""
        return {label: _percent(n, self.predicted[label]) for label, n in self.right.items()}

    @property
    def f1(self) -> dict[str, float | None]:
        """Harmonic mean of both, 0 to 100; None where a label is neither there nor given."""
        gold, predicted = self.gold, self.predicted
        return {
            label: _percent(2 * n, gold[label] + predicted[label])
            for label, n in self.right.items()
        }

    @property
    def macro_f1(self) -> float:
        """Mean F1 of the labels that are there or given, each counting once."""
        known = [value for value in self.f1.values() if value is not None]
        return sum(known) / len(known)


def score_labels(
    predicted: Sequence[str], gold: Sequence[str], labels: Sequence[str]
) -> ClassScores:
    """Accuracy and confusion.

    Args:
        predicted: a label a text.
        gold: the true ones, in the same order.
        labels: all there are, in the order in which they are to be told.

    Raises:
        UsageError: there are no texts, the numbers differ, or a label is none of `labels`.
    """
    _check(predicted, gold)
    for name, lines in (("predicted", predicted), ("gold", gold)):
        for number, label in enumerate(lines, 1):
            if label not in labels:
                known = f"one of {', '.join(labels)}"
                raise ArgumentError(f"line {number} of the {name} labels", label, known)
    counts = Counter(zip(gold, predicted))
    right = sum(counts[label, label] for label in labels)
    return ClassScores(
        labels=list(labels),
        confusion=[[counts[row, column] for column in labels] for row in labels],
        accuracy=interval(right, len(gold)),
    )


def interval(right: int, texts: int) -> list[float]:
    """Percent, with Wilson's 95 % confidence interval: it stays within 0 and 100."""
    from scipy.stats import binomtest

    found = binomtest(right, texts).proportion_ci(method="wilson")
    share = right / texts
    # rounding must not put the value outside
    ends = min(float(found.low), share), max(float(found.high), share)
    return [100 * value for value in (share, *ends)]


def compare_labels(
    baseline: Sequence[str], systems: Mapping[str, Sequence[str]], gold: Sequence[str]
) -> dict[str, dict[str, Score]]:
    """p of the difference in accuracy to a baseline, by McNemar's exact test.

    Of the texts that only one of the two has right, each has half the texts by chance (two-sided
    binomial test); where there are no such texts p is 1.

    Args:
        baseline: a label a text.
        systems: the labels of the others, by name.
        gold: the true ones.

    Returns:
        By the name of the system, p under ``accuracy`` with the signature of the test.

    Raises:
        UsageError: there are no texts, or the numbers differ.
    """
    import scipy
    from scipy.stats import binomtest

    _check(baseline, gold)
    signature = f"test:mcnemar|exact:yes|sides:2|version:scipy-{scipy.__version__}"
    found = {}
    for name, labels in systems.items():
        _check(labels, gold)
        ours = sum(a == true != b for a, b, true in zip(labels, baseline, gold))
        theirs = sum(b == true != a for a, b, true in zip(labels, baseline, gold))
        p = float(binomtest(ours, ours + theirs).pvalue) if ours + theirs else 1.0
        found[name] = {"accuracy": Score(p, signature)}
    return found


def text(scores: ClassScores) -> str:
    """For a terminal: accuracy, and a row a label with what it was taken for."""
    value, low, high = scores.accuracy
    right, texts = sum(scores.right.values()), sum(scores.gold.values())
    rows = [["gold \\ predicted", *scores.labels, "texts", "right"]]
    for label, counts in zip(scores.labels, scores.confusion):
        recall = scores.recall[label]
        share = "-" if recall is None else f"{recall:.1f} %"
        rows.append([label, *(f"{n:,}" for n in counts), f"{scores.gold[label]:,}", share])
    widths = [max(map(len, column)) for column in zip(*rows)]
    lines = [
        "  ".join((name.ljust(widths[0]), *(c.rjust(w) for c, w in zip(cells, widths[1:]))))
        for name, *cells in rows
    ]
    lines.insert(1, "  ".join("-" * width for width in widths))
    told = f"accuracy {value:.2f} % [{low:.2f}, {high:.2f}] ({right:,} of {texts:,}), "
    return "\n".join((f"{told}macro F1 {scores.macro_f1:.2f}", "", *lines))


def _percent(part: int, whole: int) -> float | None:
    return 100 * part / whole if whole else None


def _check(predicted: Sequence[str], gold: Sequence[str]) -> None:
    if len(predicted) != len(gold):
        raise UsageError(
            f"{len(predicted)} predicted labels do not fit {len(gold)} gold ones: "
            "one of each a text, in the same order"
        )
    if not gold:
        raise UsageError("there are no labels to score")
