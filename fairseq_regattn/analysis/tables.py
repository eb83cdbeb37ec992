"""The results of several mappings as one table, for a terminal and for markdown."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from fairseq_regattn.analysis.statistics import AlignmentStatistics


@dataclass(frozen=True)
class Result:
    """What one mapping reached.

    Attributes:
        name: the mapping with its parameters, e.g. ``fusedmax, lambda 0.1``.
        bleu, chrf: of the test split, 0 to 100.
        valid_ppl: perplexity of the best checkpoint on the validation split.
        training_seconds: wall time of training.
        tokens_per_second: target tokens trained on a second.
        alignments: statistics of the attention weights on the test split.
    """

    name: str
    bleu: float
    chrf: float
    valid_ppl: float
    training_seconds: float
    tokens_per_second: float
    alignments: AlignmentStatistics


HEADER = (
    "mapping",
    "BLEU",
    "chrF2",
    "valid ppl",
    "non-zero weights",
    "segments",
    "entropy (bits)",
    "training",
    "tokens/s",
)


def cells(result: Result) -> tuple[str, ...]:
    """One row of the table, in the order of ``HEADER``."""
    return (
        result.name,
        f"{result.bleu:.1f}",
        f"{result.chrf:.1f}",
        f"{result.valid_ppl:.1f}",
        f"{100 * result.alignments.nonzero:.1f} %",
        f"{result.alignments.segments:.2f}",
        f"{result.alignments.entropy:.2f}",
        duration(result.training_seconds),
        f"{result.tokens_per_second:,.0f}",
    )


def duration(seconds: float) -> str:
    """``3 min 07 s``, ``42 s``."""
    minutes, rest = divmod(round(seconds), 60)
    return f"{minutes} min {rest:02d} s" if minutes else f"{rest} s"


def text_table(results: Sequence[Result]) -> str:
    """Aligned columns: names to the left, numbers to the right."""
    rows = [HEADER, *map(cells, results)]
    widths = [max(map(len, column)) for column in zip(*rows)]
    lines = []
    for name, *numbers in rows:
        aligned = (number.rjust(width) for number, width in zip(numbers, widths[1:]))
        lines.append("  ".join((name.ljust(widths[0]), *aligned)))
    lines.insert(1, "  ".join("-" * width for width in widths))
    return "\n".join(lines)


def markdown_table(results: Sequence[Result]) -> str:
    """A GitHub table."""
    rule = ("---", *("---:" for _ in HEADER[1:]))
    return "\n".join(f"| {' | '.join(row)} |" for row in (HEADER, rule, *map(cells, results)))
