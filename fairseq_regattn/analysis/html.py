"""One HTML page with nothing outside it: a table of results, and every alignment side by side.

Python writes the table and the data; ``browse.js`` leads through them, and ``page.js`` draws a
sentence when it is looked at, because drawings of all would be hundreds of megabytes.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from html import escape
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from fairseq_regattn.analysis.alignments import EOS, Hypothesis, display

FAINT = 0.22
"""Opacity of the smallest weight: a zero must stand out from it, on dark paper too."""


@dataclass(frozen=True)
class Sentence:
    """A test sentence with what each mapping made of it.

    Attributes:
        name: what to call it, e.g. its reference in the book.
        source, reference: as people read them.
        hypotheses: by the name of the mapping, all with weights.
    """

    name: str
    source: str
    reference: str
    hypotheses: Mapping[str, Hypothesis]


def page(
    title: str,
    table: str,
    sentences: Iterable[Sentence],
    introduction: str = "",
    notes: Sequence[str] = (),
) -> str:
    """The page as text.

    Args:
        title: of the page.
        table: HTML, e.g. of ``html_table``; the only argument that is not escaped.
        sentences: all that can be looked at, in the order of the page.
        introduction: a paragraph under the title.
        notes: short paragraphs under the table: signatures, how things were measured.

    Raises:
        ValueError: a hypothesis has no alignment, or weights that are none.
    """
    return document(
        title,
        table,
        introduction,
        notes,
        Drawings("Alignments", LEGEND, _data(sentences), Path(__file__).with_name("page.js")),
    )


class Drawings(NamedTuple):
    """What a script draws on a page, one item at a time.

    Attributes:
        heading: what they are.
        legend: HTML.
        data: what the script reads, for JSON.
        script: its file; it may use what is in ``browse.js``.
        style: CSS file of its own.
    """

    heading: str
    legend: str
    data: Any
    script: Path
    style: Path | None = None


def document(
    title: str, table: str, introduction: str, notes: Sequence[str], drawings: Drawings
) -> str:
    """A page as text, with its styles, data and scripts inside; arguments as for :func:`page`."""
    # An escaped "<" keeps "</script>" and "<!--" in a sentence from meaning anything.
    data = json.dumps(drawings.data, ensure_ascii=False, separators=(",", ":"))
    data = data.replace("<", "\\u003c")
    here = Path(__file__)
    styles = [here.with_name("page.css"), *([drawings.style] if drawings.style else [])]
    style = "".join(path.read_text(encoding="utf-8") for path in styles)
    scripts = (here.with_name("browse.js"), drawings.script)
    script = "".join(path.read_text(encoding="utf-8") for path in scripts)
    heading = escape(drawings.heading)
    return "\n".join(
        (
            '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">',
            '<meta name="viewport" content="width=device-width, initial-scale=1">',
            f"<title>{escape(title)}</title>\n<style>\n{style}</style>",
            f"</head>\n<body>\n<h1>{escape(title)}</h1>\n<p>{escape(introduction)}</p>",
            table,
            *(f'<p class="note">{escape(note)}</p>' for note in notes),
            f"<h2>{heading}</h2>",
            drawings.legend,
            f'<noscript><p class="note">A script in this page draws the {heading.lower()}: without '
            "JavaScript only the table above is shown.</p></noscript>",
            '<main id="drawings"></main>',
            f'<script type="application/json" id="data">{data}</script>',
            f"<script>\n{script}</script>\n</body>\n</html>\n",
        )
    )


def html_table(header: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A table of text; the first cell of a row names it."""
    head = "".join(f'<th scope="col">{escape(cell)}</th>' for cell in header)
    body = []
    for name, *numbers in rows:
        row = "".join(f"<td>{escape(number)}</td>" for number in numbers)
        body.append(f'<tr><th scope="row">{escape(name)}</th>{row}</tr>\n')
    return (
        f'<div class="scroll"><table>\n<thead><tr>{head}</tr></thead>\n'
        f"<tbody>\n{''.join(body)}</tbody>\n</table></div>"
    )


def run_lengths(weights: np.ndarray) -> list[int]:
    """A weight matrix as few small integers, row after row.

    A number above 0 is a weight in thousandths, at least 1 so that only zeros are drawn empty;
    one below 0 is so many zeros in a row.

    Raises:
        ValueError: a weight is not a number from 0 to 1.
    """
    flat = weights.ravel()
    if not ((flat >= 0) & (flat < 1.001)).all():  # rounded ones may pass 1 by a little
        raise ValueError("attention weights must be from 0 to 1")
    found: list[int] = []
    for weight, thousandths in zip(flat.tolist(), np.rint(1000 * flat).astype(int).tolist()):
        if weight:
            found.append(max(thousandths, 1))
        elif found and found[-1] < 0:
            found[-1] -= 1
        else:
            found.append(-1)
    return found


def _data(sentences: Iterable[Sentence]) -> dict:
    """What ``page.js`` reads; arrays and not objects, whose keys would be most of the file."""
    return {
        "faint": FAINT,
        "sentences": [
            [
                sentence.name,
                sentence.source,
                sentence.reference,
                [_drawing(name, found) for name, found in sentence.hypotheses.items()],
            ]
            for sentence in sentences
        ],
    }


def _drawing(name: str, hypothesis: Hypothesis) -> list:
    if hypothesis.weights is None:
        raise ValueError(f"sentence {hypothesis.sample_id} has no alignment to draw")
    try:
        weights = run_lengths(hypothesis.weights)
    except ValueError as error:
        raise ValueError(f"sentence {hypothesis.sample_id}, {name}: {error}") from None
    source, target = (
        " ".join(map(display, [*tokens, EOS])) for tokens in (hypothesis.source, hypothesis.target)
    )
    return [name, hypothesis.text, source, target, weights]


LEGEND = (
    '<p class="legend">A row is one step of the translation, a column one source token '
    "(<code>·</code> opens a word where words are cut into pieces). Weights are rounded to three "
    "decimals, tiny ones up to 0.001; only zeros (to six decimals) are empty. "
    'Scale, the same everywhere: <span class="empty"></span> 0 '
    + "".join(
        f'<span style="--o:{FAINT + (1 - FAINT) * weight:.3f}"></span> {weight:g} '
        for weight in (0.001, 0.25, 0.5, 1)
    )
    + "</p>"
)
