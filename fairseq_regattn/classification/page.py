"""One HTML page of texts, highlighted by what each mapping attends to, side by side.

``highlight.js`` draws a text when it is looked at.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import groupby
from pathlib import Path
from typing import Any

from fairseq_regattn.analysis.html import Drawings, document
from fairseq_regattn.classification.predictions import Prediction
from fairseq_regattn.errors import ArgumentError, UsageError

FIRST = 500
"""Texts on a page: 500 documents of 300 words with 7 mappings are about 5 MB."""

FAINT = 0.25
"""Opacity of the smallest weight: a zero must stand out from it, on dark paper too."""


def page(
    title: str,
    table_html: str,
    runs: Mapping[str, Sequence[Prediction]],
    introduction: str = "",
    notes: Sequence[str] = (),
    first: int = FIRST,
    total: int | None = None,
) -> str:
    """The page as text.

    Args:
        title: of the page.
        table_html: e.g. of ``html_table``, the only argument that is not escaped; may be empty.
        runs: by the name of the mapping, of the same texts in the same order.
        introduction: a paragraph under the title.
        notes: short paragraphs under the table.
        first: how many texts are in the page; the rest is left out, which the page tells.
        total: how many there are where `runs` hold only the first of them.

    Raises:
        UsageError: there are no runs or no texts, `first` is not positive, or runs are of
            different texts; names the run and the text.
    """
    if first < 1:
        raise ArgumentError("first", first, "a whole number > 0")
    check_same({name: [text_of(found) for found in run] for name, run in runs.items()})
    every = len(next(iter(runs.values()))) if total is None else total
    shown = {name: list(run[:first]) for name, run in runs.items()}
    count = len(next(iter(shown.values())))
    told = f"All {every:,} texts" if count == every else f"The first {count:,} of {every:,} texts"
    script = Path(__file__).with_name("highlight.js")
    drawings = Drawings(
        heading="Highlighted texts",
        legend=LEGEND,
        data=_data(shown),
        script=script,
        style=script.with_suffix(".css"),
    )
    return document(
        title, table_html, introduction, [*notes, f"{told} are in this page."], drawings
    )


Text = tuple[int, int]
"""Number of a text, and what tells it from others."""


def text_of(prediction: Prediction) -> Text:
    """The text of a prediction, without what was predicted; small, for there may be many."""
    hypothesis = None if prediction.hypothesis is None else tuple(prediction.hypothesis)
    return prediction.id, hash((prediction.gold, tuple(prediction.tokens), hypothesis))


def check_same(runs: Mapping[str, Sequence[Text]]) -> None:
    """
    Raises:
        UsageError: there are no runs or no texts, or runs are of different texts.
    """
    if not runs:
        raise UsageError("there are no runs to show")
    (base, texts), *others = runs.items()
    if not texts:
        raise UsageError(f"{base} has no predictions")
    for name, others_texts in others:
        for (number, one), (other_number, other) in zip(texts, others_texts):
            if number != other_number:
                raise UsageError(
                    f"{name} is not of the same texts as {base}: it has id {other_number} where "
                    f"{base} has id {number}"
                )
            if one != other:
                raise UsageError(
                    f"{name} is not of the same texts as {base}: tokens, gold label or hypothesis "
                    f"of id {number} differ"
                )
        if len(texts) != len(others_texts):
            longer = texts if len(texts) > len(others_texts) else others_texts
            left = longer[min(len(texts), len(others_texts))][0]
            raise UsageError(
                f"{name} is not of the same texts as {base}: {len(others_texts):,} instead of "
                f"{len(texts):,}, from id {left} on"
            )


def repeats(weights: Iterable[float]) -> list[int]:
    """Weights as few small integers.

    A number from 0 is a weight in millionths, rounded as in the lines; one below 0 repeats the
    weight before it so many times.
    """
    found: list[int] = []
    for millionths, group in groupby(round(1e6 * weight) for weight in weights):
        found.append(millionths)
        more = sum(1 for _ in group) - 1
        if more:
            found.append(-more)
    return found


def _data(runs: Mapping[str, Sequence[Prediction]]) -> dict[str, Any]:
    """What ``highlight.js`` reads; arrays and not objects, whose keys would be most of it."""
    labels = list(dict.fromkeys(k for run in runs.values() for p in run for k in p.probabilities))
    index = {label: number for number, label in enumerate(labels)}
    texts = []
    for found in zip(*runs.values()):
        text = found[0]
        gold = None if text.gold is None else index[text.gold]
        each = [
            [index[p.label], [_short(p.probabilities.get(k)) for k in labels], repeats(p.weights)]
            for p in found
        ]
        texts.append([text.id, gold, text.tokens, text.hypothesis, each])
    return {"faint": FAINT, "labels": labels, "names": list(runs), "texts": texts}


def _short(probability: float | None) -> float | None:
    return None if probability is None else round(probability, 4)


LEGEND = (
    '<p class="note">The stronger its colour, the more weight a token has, relative to the largest '
    "weight of the text for this mapping (weights of long texts are small): "
    + " ".join(
        f'<mark style="--o:{FAINT + (1 - FAINT) * share:.3f}">{words}</mark>'
        for share, words in ((0.0, "nearly 0"), (0.5, "half"), (1.0, "largest"))
    )
    + ". Tokens of weight 0 (to six decimals) have none. Neighbours with the same weight, to "
    f'six decimals, are <mark class="fused" style="--o:{FAINT + (1 - FAINT) * 0.5:.3f}">one framed '
    "box</mark>. Point at a token for its weight; arrow keys go from text to text.</p>"
)
