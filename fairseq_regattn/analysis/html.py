"""One HTML page with nothing outside it: the table of results, and alignments side by side."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from html import escape

from fairseq_regattn.analysis.alignments import EOS, Hypothesis, display
from fairseq_regattn.analysis.tables import HEADER, Result, cells

CELL = 19
CHARACTER = 7.2
"""Pixels: the side of a cell, the width of a character of a label."""

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
    results: Sequence[Result],
    sentences: Sequence[Sentence],
    introduction: str = "",
    notes: Sequence[str] = (),
) -> str:
    """The page as text.

    Args:
        title: of the page.
        results: one row of the table each.
        sentences: one section each.
        introduction: a paragraph under the title.
        notes: short paragraphs under the table: signatures, how things were measured.
    """
    return "\n".join(
        (
            '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">',
            '<meta name="viewport" content="width=device-width, initial-scale=1">',
            f"<title>{escape(title)}</title>\n<style>{STYLE}</style>\n</head>\n<body>",
            f"<h1>{escape(title)}</h1>\n<p>{escape(introduction)}</p>",
            _table(results),
            *(f'<p class="note">{escape(note)}</p>' for note in notes),
            "<h2>Alignments</h2>",
            LEGEND,
            *map(_section, sentences),
            "</body>\n</html>\n",
        )
    )


def _table(results: Sequence[Result]) -> str:
    head = "".join(f'<th scope="col">{escape(cell)}</th>' for cell in HEADER)
    rows = []
    for result in results:
        name, *numbers = map(escape, cells(result))
        row = "".join(f"<td>{number}</td>" for number in numbers)
        rows.append(f'<tr><th scope="row">{name}</th>{row}</tr>')
    return (
        f'<div class="scroll"><table>\n<thead><tr>{head}</tr></thead>\n'
        f"<tbody>{''.join(rows)}</tbody>\n</table></div>"
    )


def _section(sentence: Sentence) -> str:
    figures = []
    for name, hypothesis in sentence.hypotheses.items():
        figures.append(
            f"<figure><figcaption><b>{escape(name)}</b><br>{escape(hypothesis.text) or '(empty)'}"
            f'</figcaption><div class="scroll">{alignment_svg(name, hypothesis)}</div></figure>'
        )
    return (
        f"<section>\n<h3>{escape(sentence.name)}</h3>\n"
        f"<dl><dt>source</dt><dd>{escape(sentence.source)}</dd>"
        f"<dt>reference</dt><dd>{escape(sentence.reference)}</dd></dl>\n"
        f'<div class="side">{"".join(figures)}</div>\n</section>'
    )


def alignment_svg(name: str, hypothesis: Hypothesis) -> str:
    """An inline SVG of a weight matrix: a rectangle a weight, none where it is zero.

    Opacity runs from ``FAINT`` for the smallest weight to 1 for a weight of 1; pointing at a
    cell tells the two tokens and the weight.
    """
    if hypothesis.weights is None:
        raise ValueError(f"sentence {hypothesis.sample_id} has no alignment to draw")
    source = [display(token) for token in [*hypothesis.source, EOS]]
    target = [display(token) for token in [*hypothesis.target, EOS]]
    left = CHARACTER * max(map(len, target)) + 8
    top = CHARACTER * max(map(len, source)) + 8
    width, height = left + CELL * len(source) + 1, top + CELL * len(target) + 1
    parts = [
        f'<svg width="{width:.0f}" height="{height:.0f}" viewBox="0 0 {width:.0f} {height:.0f}" '
        f'role="img" aria-label="alignment of {escape(name)}">'
    ]
    for column, token in enumerate(source):
        x = left + CELL * (column + 0.5) + 4
        parts.append(
            f'<text transform="translate({x:.1f} {top - 5:.1f}) rotate(-90)">{escape(token)}</text>'
        )
    for row, token in enumerate(target):
        y = top + CELL * (row + 0.5) + 4
        parts.append(f'<text x="{left - 5:.1f}" y="{y:.1f}" class="end">{escape(token)}</text>')
        for column, weight in enumerate(hypothesis.weights[row]):
            if weight == 0:
                continue
            label = f"{token} ← {source[column]}: {weight:.3f}"
            parts.append(
                f'<rect x="{left + CELL * column:.1f}" y="{top + CELL * row:.1f}" width="{CELL}" '
                f'height="{CELL}" opacity="{FAINT + (1 - FAINT) * weight:.3f}">'
                f"<title>{escape(label)}</title></rect>"
            )
    lines = [f"M{left + CELL * i:.1f} {top:.1f}V{height - 1:.1f}" for i in range(len(source) + 1)]
    lines += [f"M{left:.1f} {top + CELL * i:.1f}H{width - 1:.1f}" for i in range(len(target) + 1)]
    parts.append(f'<path d="{"".join(lines)}"/></svg>')
    return "".join(parts)


LEGEND = (
    '<p class="legend">A row is one step of the translation, a column one source piece '
    '(<code>·</code> opens a word). Scale, the same everywhere: <span class="empty"></span> '
    "0 to six decimals "
    + "".join(
        f'<span style="--o:{FAINT + (1 - FAINT) * weight:.3f}"></span> {weight:g} '
        for weight in (0.01, 0.25, 0.5, 1)
    )
    + "</p>"
)

STYLE = """
:root { color-scheme: light dark; --paper: #fdfdfc; --ink: #1f2733; --soft: #5b6675;
  --line: #d9dee5; --weight: #0b4f9c; --panel: #ffffff; }
@media (prefers-color-scheme: dark) { :root { --paper: #14181e; --ink: #e6e9ee; --soft: #9aa5b4;
  --line: #333c48; --weight: #7cc0ff; --panel: #1a1f27; } }
* { box-sizing: border-box; }
body { margin: 0 auto; max-width: 90rem; padding: 1.5rem; background: var(--paper);
  color: var(--ink); font: 16px/1.5 system-ui, sans-serif; }
h1 { font-size: 1.6rem; } h2 { margin-top: 2.5rem; } h3 { margin: 0 0 .5rem; font-size: 1rem; }
p { max-width: 48rem; } .note, .legend { color: var(--soft); font-size: .875rem; }
.scroll { overflow-x: auto; }
table { border-collapse: collapse; font-variant-numeric: tabular-nums; white-space: nowrap; }
th, td { padding: .4rem .8rem; border-bottom: 1px solid var(--line); text-align: right; }
th:first-child { text-align: left; padding-left: 0; }
thead th { color: var(--soft); font-size: .8125rem; font-weight: 600; }
section { margin: 1.5rem 0; padding: 1rem; background: var(--panel);
  border: 1px solid var(--line); border-radius: .5rem; }
dl { display: grid; grid-template-columns: max-content 1fr; gap: .1rem 1rem; margin: 0 0 1rem; }
dt { color: var(--soft); } dd { margin: 0; }
.side { display: flex; flex-wrap: wrap; gap: 1.25rem; align-items: flex-end; }
figure { margin: 0; max-width: 100%; }
figcaption { max-width: 24rem; margin-bottom: .5rem; font-size: .875rem; }
svg { display: block; } svg text { fill: var(--ink); font: 12px ui-monospace, monospace; }
svg .end { text-anchor: end; } svg rect { fill: var(--weight); }
svg path { stroke: var(--line); fill: none; pointer-events: none; }
.legend span { display: inline-block; width: 1em; height: 1em; margin-left: .8em;
  border: 1px solid var(--line); background: var(--weight); opacity: var(--o, 1);
  vertical-align: -.1em; }
.legend .empty { background: none; }
"""
