"""What is told of a run, one number at a time."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

from fairseq_regattn.analysis.records import Record
from fairseq_regattn.scoring.summaries import main_measure, names

TEXTS = ("translations", "summaries", "classifications")
"""Kinds of runs that attend to texts."""


class Measure(NamedTuple):
    """One number of a run.

    Attributes:
        key: in files.
        title: of its table.
        of: the number, from the run and the softmax run that it is compared with; None where
            there is none.
        form: how it is printed.
        note: what it means.
        compared: whether the difference to softmax is told, with its p value.
        interval: its 95 % confidence interval, if it has one.
        kinds: of the runs that have it.
    """

    key: str
    title: str
    of: Callable[[Record, Record | None], float | None]
    form: str
    note: str
    compared: bool = False
    interval: Callable[[Record], tuple[float, float] | None] | None = None
    kinds: tuple[str, ...] = (*TEXTS, "answers")


def _time_ratio(record: Record, softmax: Record | None) -> float | None:
    if softmax is None or softmax.machine != record.machine:
        return None
    if record.processor_seconds and softmax.processor_seconds:
        return record.processor_seconds / softmax.processor_seconds
    if record.training_seconds and softmax.training_seconds:
        return record.training_seconds / softmax.training_seconds
    return None  # trained by hand, without the log that tells


MEASURES = (
    Measure(
        "bleu",
        "BLEU",
        lambda record, _: record.bleu,
        "{:.1f}",
        "Of detokenised text. In brackets the difference to softmax of the same seeds, and p by "
        "paired bootstrap (of several seeds: the smallest and the largest).",
        compared=True,
        kinds=("translations",),
    ),
    Measure(
        "chrf",
        "chrF2",
        lambda record, _: record.chrf,
        "{:.1f}",
        "In brackets as for BLEU.",
        compared=True,
        kinds=("translations",),
    ),
    Measure(
        "tokenised_bleu",
        "Tokenised BLEU",
        lambda record, _: record.tokenised_bleu,
        "{:.1f}",
        "The value of Moses' multi-bleu.perl.",
        kinds=("translations",),
    ),
    Measure(
        "valid_ppl",
        "Validation perplexity",
        lambda record, _: record.valid_ppl,
        "{:.1f}",
        "The lowest of the training, by token of the model: a subword where it has subwords.",
    ),
    Measure(
        "nonzero",
        "Non-zero weights (%)",
        lambda record, _: 100 * record.alignments.nonzero,
        "{:.1f}",
        "Share of the positions of a test text, or of the cells of an image, mean over all steps "
        "(words of the output; a classifier has one step a text); weights below 0.0000005 count "
        "as zero.",
    ),
    Measure(
        "segments",
        "Segments",
        lambda record, _: record.alignments.segments,
        "{:.2f}",
        "Runs of equal, non-zero neighbours in a step, mean over all steps.",
        kinds=TEXTS,
    ),
    Measure(
        "entropy",
        "Entropy (bits)",
        lambda record, _: record.alignments.entropy,
        "{:.2f}",
        "Of the weights of a step, mean over all steps: 0 where one position has all the weight.",
    ),
    Measure(
        "training_time_ratio",
        "Training time, softmax = 1",
        _time_ratio,
        "{:.2f}",
        "Over that of softmax with the same settings and seed, on the same machine: processor time "
        "where it is known of both (start-up and validation included), else wall time.",
    ),
    Measure(
        "aer",
        "Alignment error rate (%)",
        lambda record, _: None if record.links is None else 100 * record.links["aer"],
        "{:.1f}",
        "Of the links drawn from the weights, against alignments made by hand.",
    ),
)


def rouge_measures(records: Sequence[Record]) -> list[Measure]:
    """Of summaries: ROUGE of whole outputs, and of their first bytes where some run has it."""
    made = [record.summary for record in records if record.summary is not None]
    if not made:
        return []
    measures = []
    for size in (None, *sorted({one.bytes for one in made if one.bytes is not None})):
        for name, (kind, measure) in names(size).items():
            # of the longest common subsequence all is told, as in the paper's tables 6 and 7
            if measure == main_measure(size) or kind == "L":
                measures.append(_rouge_measure(name, kind, measure, size))
    lengths = ", ".join(sorted({f"{one.reference_words:.1f}" for one in made}))
    measures.append(
        Measure(
            "words",
            "Words of an output",
            lambda record, _: record.summary.words if record.summary else None,
            "{:.1f}",
            f"Between white space. References have {lengths}.",
            kinds=("summaries",),
        )
    )
    return measures


def _rouge_measure(name: str, kind: str, measure: str, size: int | None) -> Measure:
    def interval(record: Record) -> tuple[float, float] | None:
        scores = record.rouge(name)
        return (scores[1], scores[2]) if scores else None

    def value(record: Record, _: Record | None) -> float | None:
        scores = record.rouge(name)
        return scores[0] if scores else None

    title = f"ROUGE-{kind} {'F1' if measure == 'f1' else measure}"
    what = "whole outputs" if size is None else f"the first {size} bytes of outputs"
    note = f"Percent, of {what}, as ROUGE-1.5.5; in square brackets the 95 % confidence interval."
    compared = measure == main_measure(size)
    if compared:
        note += " In brackets the difference to softmax of the same seeds, and p by paired"
        note += " approximate randomisation."
    title += "" if size is None else f", {size} bytes"
    return Measure(name, title, value, "{:.2f}", note, compared, interval, ("summaries",))


def class_measures(records: Sequence[Record]) -> list[Measure]:
    """Of what is right or wrong: accuracy; of labels macro F1, and accuracy by label; of answers
    VQA's accuracy, and accuracy by kind of question."""
    labels = dict.fromkeys(
        label for record in records if record.classes for label in record.classes.labels
    )
    types = dict.fromkeys(
        name for record in records if record.answers for name in record.answers.types
    )
    if all(record.accuracy is None for record in records):
        return []
    return [
        Measure(
            "accuracy",
            "Accuracy (%)",
            lambda record, _: record.accuracy[0] if record.accuracy else None,
            "{:.2f}",
            "In square brackets, where there is one seed, the 95 % confidence interval (Wilson). "
            "In brackets the difference to softmax of the same seeds, and p by McNemar's exact "
            "test (of several seeds: the smallest and the largest).",
            compared=True,
            interval=_accuracy_interval,
            kinds=("classifications", "answers"),
        ),
        Measure(
            "vqa_accuracy",
            "VQA accuracy (%)",
            lambda record, _: record.answers.vqa if record.answers else None,
            "{:.2f}",
            "Of an answer that n of ten people gave min(n / 3, 1), averaged over all nine of ten.",
            kinds=("answers",),
        ),
        Measure(
            "macro_f1",
            "Macro F1 (%)",
            lambda record, _: record.classes.macro_f1 if record.classes else None,
            "{:.2f}",
            "Mean F1 of the labels, each counting once.",
            kinds=("classifications",),
        ),
        *map(_recall_measure, labels),
        *map(_type_measure, types),
    ]


def _accuracy_interval(record: Record) -> tuple[float, float] | None:
    return (record.accuracy[1], record.accuracy[2]) if record.accuracy else None


def _type_measure(name: str) -> Measure:
    def value(record: Record, _: Record | None) -> float | None:
        if record.answers is None or name not in record.answers.types:
            return None
        right, questions = record.answers.types[name]
        return 100 * right / questions

    title, note = f"Accuracy, {name} (%)", "Of the questions of this kind."
    return Measure(f"accuracy {name}", title, value, "{:.2f}", note, kinds=("answers",))


def _recall_measure(label: str) -> Measure:
    def value(record: Record, _: Record | None) -> float | None:
        return record.classes.recall.get(label) if record.classes else None

    title, note = f"Accuracy of {label} (%)", "Of the texts that have this label (its recall)."
    return Measure(f"recall {label}", title, value, "{:.2f}", note, kinds=("classifications",))
