"""``python -m fairseq_regattn.classification page NAME=FILE.jsonl ... --out page.html``."""

from __future__ import annotations

import argparse
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

from fairseq_regattn.analysis.html import html_table
from fairseq_regattn.analysis.tables import accuracy_cell
from fairseq_regattn.classification.page import FIRST, Text, check_same, page, text_of
from fairseq_regattn.classification.predictions import Prediction, read_predictions
from fairseq_regattn.classification.rows import is_text
from fairseq_regattn.errors import ArgumentError, UsageError
from fairseq_regattn.recipes.stages import rewrite
from fairseq_regattn.scoring.classification import ClassScores, score_labels

INTERVALS = "In square brackets the 95 % confidence interval of the accuracy (Wilson)."


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Of this command."""
    parser.add_argument(
        "runs",
        nargs="+",
        metavar="NAME=FILE.jsonl",
        help="predictions of the same texts, each with the name to show, from left to right",
    )
    parser.add_argument("--out", type=Path, required=True, metavar="FILE", help="page to write")
    parser.add_argument(
        "--title", default="Attention of classifiers", help="of the page (default: %(default)s)"
    )
    parser.add_argument(
        "--first",
        type=int,
        default=FIRST,
        metavar="N",
        help="texts to show; the table of accuracies is of all (default: %(default)s)",
    )


def run(args: argparse.Namespace) -> int:
    """Write the page.

    Raises:
        UsageError: an argument or a file is wrong, or the files are not of the same texts.
        OSError: a file cannot be read or written.
    """
    if args.first < 1:
        raise ArgumentError("--first", args.first, "a whole number > 0")
    paths: dict[str, Path] = {}
    for given in args.runs:
        name, equals, path = given.partition("=")
        if not (name and equals and path):
            raise UsageError(f"NAME=FILE.jsonl was expected, got {given!r}")
        if name in paths:
            raise UsageError(f"two files have the name {name}: {paths[name]} and {path}")
        paths[name] = Path(path)
    for what, text in [("--title", args.title), *(("NAME", name) for name in paths)]:
        if not is_text(text):
            raise ArgumentError(what, text, "valid UTF-8")
    read = {name: _read(path, args.first) for name, path in paths.items()}
    check_same({name: found.texts for name, found in read.items()})
    scores = {name: found.scores for name, found in read.items() if found.scores is not None}
    html = page(
        args.title,
        _table(scores),
        {name: found.first for name, found in read.items()},
        notes=[INTERVALS] if scores else [],
        first=args.first,
        total=len(next(iter(read.values())).texts),
    )
    rewrite(args.out, html.encode())
    print(f"Written: {args.out}")
    return 0


class _Read(NamedTuple):
    """Of a file: what is shown, and of all texts what is small; scores where all gold is known."""

    first: list[Prediction]
    texts: list[Text]
    scores: ClassScores | None


def _read(path: Path, first: int) -> _Read:
    shown: list[Prediction] = []
    texts: list[Text] = []
    predicted, gold, labels = [], [], dict[str, None]()
    for prediction in read_predictions(path):
        if len(shown) < first:
            shown.append(prediction)
        texts.append(text_of(prediction))
        predicted.append(prediction.label)
        labels.update(dict.fromkeys(prediction.probabilities))
        if prediction.gold is not None:
            gold.append(prediction.gold)
    if not texts:
        raise UsageError(f"{path} has no predictions")
    known = len(gold) == len(texts)
    return _Read(shown, texts, score_labels(predicted, gold, list(labels)) if known else None)


def _table(scores: Mapping[str, ClassScores]) -> str:
    """Accuracy of each run; empty where gold labels are not known."""
    if not scores:
        return ""
    labels = next(iter(scores.values())).labels
    header = ["mapping", "accuracy (%)", "macro F1 (%)", *(f"accuracy of {n}" for n in labels)]
    rows = []
    for name, found in scores.items():
        recalls = [found.recall.get(label) for label in labels]
        by_label = ["-" if value is None else f"{value:.2f}" for value in recalls]
        rows.append([name, accuracy_cell(found.accuracy), f"{found.macro_f1:.2f}", *by_label])
    return html_table(header, rows)
