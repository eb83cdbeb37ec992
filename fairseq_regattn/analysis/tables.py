"""The results of several mappings as one table, for a terminal and for markdown."""

from __future__ import annotations

from collections.abc import Sequence

from fairseq_regattn.analysis.records import Record
from fairseq_regattn.scoring.summaries import main_measure, names

Rows = Sequence[Sequence[str]]
"""Cells; the first row is the header, the first column has names."""


def table(records: Sequence[Record]) -> list[tuple[str, ...]]:
    """A header and one row a record; what no record has is left out."""
    summaries = [record.summary for record in records if record.summary is not None]
    rouge = rouge_columns(summaries[0].bytes) if summaries else {}
    labelled = any(record.classes is not None for record in records)
    answered = any(record.answers is not None for record in records)
    by_people = any(
        record.answers is not None and record.answers.vqa is not None for record in records
    )
    # what chooses the best checkpoint of a classifier may be its accuracy
    perplexity = not (labelled or answered) or any(
        record.valid_ppl is not None for record in records
    )
    translated = any(record.bleu is not None for record in records)
    tokenised = any(record.tokenised_bleu is not None for record in records)
    linked = any(record.links is not None for record in records)
    seeds = len({record.seed for record in records}) > 1
    header = (
        "mapping",
        *(["seed"] if seeds else []),
        *(["BLEU"] if translated else []),
        *(["tokenised BLEU"] if tokenised else []),
        *(["chrF2"] if translated else []),
        *rouge,
        *(["words"] if summaries else []),
        *(["accuracy (%)"] if labelled or answered else []),
        *(["macro F1 (%)"] if labelled else []),
        *(["VQA accuracy (%)"] if by_people else []),
        *(["valid ppl"] if perplexity else []),
        "non-zero weights",
        *(["segments"] if not answered else []),
        "entropy (bits)",
        *(["AER"] if linked else []),
        "training",
        "tokens/s",
    )
    rows = [header]
    for record in records:
        aer = None if record.links is None else 100 * record.links["aer"]
        row = (
            record.attention,
            *([str(record.seed)] if seeds else []),
            *([number(record.bleu)] if translated else []),
            *([number(record.tokenised_bleu)] if tokenised else []),
            *([number(record.chrf)] if translated else []),
            *(number(s[0] if (s := record.rouge(name)) else None) for name in rouge.values()),
            *([number(record.summary.words if record.summary else None)] if summaries else []),
            *([accuracy_cell(record.accuracy)] if labelled or answered else []),
            *([_two(record.classes.macro_f1 if record.classes else None)] if labelled else []),
            *([_two(record.answers.vqa if record.answers else None)] if by_people else []),
            *([number(record.valid_ppl)] if perplexity else []),
            f"{100 * record.alignments.nonzero:.1f} %",
            *([f"{record.alignments.segments:.2f}"] if not answered else []),
            f"{record.alignments.entropy:.2f}",
            *([number(aer, " %")] if linked else []),
            duration(record.training_seconds),
            f"{record.tokens_per_second:,.0f}",
        )
        rows.append(row)
    return rows


def rouge_columns(size: int | None) -> dict[str, str]:
    """The main scores of summaries: the name of each by what is printed."""
    return {
        f"ROUGE-{kind}" + ("" if limit is None else f", {limit} bytes"): name
        for limit in dict.fromkeys((None, size))
        for name, (kind, measure) in names(limit).items()
        if measure == main_measure(limit)
    }


def accuracy_cell(accuracy: Sequence[float] | None) -> str:
    """With its interval."""
    if accuracy is None:
        return "-"
    value, low, high = accuracy
    return f"{value:.2f} [{low:.2f}, {high:.2f}]"


def number(value: float | None, unit: str = "") -> str:
    """With one decimal; ``-`` where there is none."""
    return "-" if value is None else f"{value:.1f}{unit}"


def _two(value: float | None) -> str:
    return "-" if value is None else f"{value:.2f}"


def duration(seconds: float) -> str:
    """``3 min 07 s``, ``42 s``."""
    minutes, rest = divmod(round(seconds), 60)
    return f"{minutes} min {rest:02d} s" if minutes else f"{rest} s"


def text_table(records: Sequence[Record]) -> str:
    """Aligned columns: names to the left, numbers to the right."""
    return text_rows(table(records))


def markdown_table(records: Sequence[Record]) -> str:
    """A GitHub table."""
    return markdown_rows(table(records))


def text_rows(rows: Rows) -> str:
    """For a terminal."""
    widths = [max(map(len, column)) for column in zip(*rows)]
    lines = []
    for name, *numbers in rows:
        aligned = (number.rjust(width) for number, width in zip(numbers, widths[1:]))
        lines.append("  ".join((name.ljust(widths[0]), *aligned)))
    lines.insert(1, "  ".join("-" * width for width in widths))
    return "\n".join(lines)


def markdown_rows(rows: Rows) -> str:
    """For GitHub."""
    rule = ("---", *("---:" for _ in rows[0][1:]))
    return "\n".join(f"| {' | '.join(row)} |" for row in (rows[0], rule, *rows[1:]))
