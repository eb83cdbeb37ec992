"""Alignments as heat maps (needs matplotlib): one sentence, several mappings side by side."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from fairseq_regattn.analysis.alignments import EOS, Hypothesis, display
from fairseq_regattn.analysis.statistics import longest_segment
from fairseq_regattn.errors import UsageError
from fairseq_regattn.recipes.stages import written

INK, GRID, PAPER = "#1f2733", "#d9dee5", "#ffffff"
MARK = "#c2410c"
LOW, HIGH = "#cfe3f5", "#08306b"
"""Even the smallest weight is clearly tinted, so that only zeros are white."""

CELL = 0.26
"""Inches a token."""

WIDE = 20
"""Panels with more columns are drawn one above the other."""

FORMATS = (".png", ".pdf")


def draw_alignments(
    hypotheses: Sequence[tuple[str, Hypothesis]],
    path: str | Path,
    heading: str = "",
    spans: bool = False,
) -> None:
    """Write a PNG or PDF of how several models attend while translating the same sentence.

    One panel a model, side by side, or one above the other where the source is long: source
    tokens along the top, the model's own translation down the side, a row the weights of one
    step. All panels share one colour scale, from 0 to 1, or to the largest weight where the source
    is long; a weight of zero leaves its cell empty. The same input gives the same bytes.

    Args:
        hypotheses: (title, hypothesis) in reading order, at least one, all with weights.
        path: file to write; its suffix, ``.png`` or ``.pdf``, says what.
        heading: printed above the panels.
        spans: frame the longest run of equal, non-zero weights of each panel, and tell its length.

    Raises:
        UsageError: another suffix.
        ValueError: a hypothesis has no alignment.
    """
    suffix = Path(path).suffix.lower()
    if suffix not in FORMATS:
        raise UsageError(f"{path}: a picture ends in {' or '.join(FORMATS)}, got {suffix!r}")
    from matplotlib import rc_context
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.colors import LinearSegmentedColormap, Normalize
    from matplotlib.figure import Figure

    colours = LinearSegmentedColormap.from_list("weights", [LOW, HIGH]).with_extremes(bad=PAPER)

    # A figure of its own and not pyplot's: no state is left behind, no display is needed.
    columns = len(hypotheses[0][1].source) + 1
    largest = max((h.weights.max() for _, h in hypotheses if h.weights is not None), default=1)
    scale = Normalize(0, largest if columns > WIDE else 1)
    labels = [token for _, hypothesis in hypotheses for token in [*hypothesis.target, EOS]]
    width = CELL * columns + 0.09 * max(map(len, labels)) + 0.3
    heights = [CELL * (len(hypothesis.target) + 1) + 1.4 for _, hypothesis in hypotheses]
    if columns <= WIDE:
        heights = [max(heights)]
    beside = len(hypotheses) // len(heights)
    figure = Figure(
        figsize=(width * beside + 0.9, sum(heights) + 0.5 + 0.4 * bool(heading)),
        facecolor=PAPER,
        layout="constrained",
    )
    FigureCanvasAgg(figure)
    grid = {"height_ratios": heights}
    axes = figure.subplots(len(heights), beside, squeeze=False, gridspec_kw=grid).flatten()
    for axis, (title, hypothesis) in zip(axes, hypotheses):
        image = _panel(axis, title, hypothesis, colours, scale)
        if spans:
            _frame(axis, title, hypothesis)
    bar = figure.colorbar(
        image,
        ax=list(axes),
        shrink=0.8,
        aspect=24,
        pad=0.015,
        panchor=False,  # keeps the anchors
    )
    bar.set_label("attention weight (empty cell: 0 to six decimals)", color=INK, fontsize=8)
    bar.ax.tick_params(labelsize=8, colors=INK)
    bar.outline.set_edgecolor(GRID)
    if heading:
        figure.suptitle(_plain(heading), color=INK, fontsize=10)
    metadata = {"CreationDate": None} if suffix == ".pdf" else None
    with rc_context({"pdf.fonttype": 42}):  # text stays text; journals refuse type 3
        how: Any = {"dpi": 150, "format": suffix[1:], "bbox_inches": "tight", "metadata": metadata}
        with written(Path(path)) as partial:
            figure.savefig(partial, **how)


def _panel(axis, title: str, hypothesis: Hypothesis, colours, scale):
    """Draw one weight matrix, tgt_len x src_len, with its tokens."""
    if hypothesis.weights is None:
        raise ValueError(f"sentence {hypothesis.sample_id} has no alignment to draw")
    weights = np.ma.masked_equal(hypothesis.weights, 0)
    # Squares and not an image of a dot a weight, which viewers of PDF may blur.
    edges = [np.arange(length + 1) - 0.5 for length in weights.shape]
    image = axis.pcolormesh(edges[1], edges[0], weights, cmap=colours, norm=scale)
    axis.set_aspect("equal")
    axis.invert_yaxis()
    axis.set_title(_plain(title), color=INK, fontsize=11, fontweight="bold", pad=8)
    axis.set_anchor("N")  # translations differ in length: panels begin at one height
    axis.xaxis.tick_top()
    for ticks, tokens, angle in (
        (axis.set_xticks, hypothesis.source, 90),
        (axis.set_yticks, hypothesis.target, 0),
    ):
        labels = [_plain(display(token)) for token in [*tokens, EOS]]
        ticks(range(len(labels)), labels=labels, rotation=angle, fontsize=9, color=INK)
    # Thin lines between the cells: minor ticks lie half-way.
    axis.set_xticks(np.arange(0.5, weights.shape[1] - 1), minor=True)
    axis.set_yticks(np.arange(0.5, weights.shape[0] - 1), minor=True)
    axis.grid(which="minor", color=GRID, linewidth=0.6)
    axis.tick_params(which="both", length=0)
    for side in axis.spines.values():
        side.set_color(GRID)
    return image


def _frame(axis, title: str, hypothesis: Hypothesis) -> None:
    """Around the longest run of equal weights in a row, if there is one."""
    from matplotlib.patches import Rectangle

    weights = hypothesis.weights
    assert weights is not None  # drawn already
    lengths = longest_segment(weights)
    row = int(lengths.argmax())
    length = int(lengths[row])
    if length < 2:
        return
    starts = range(weights.shape[1] - length + 1)
    start = next(j for j in starts if weights[row, j] and np.ptp(weights[row, j : j + length]) == 0)
    corner = (start - 0.5, row - 0.5)
    axis.add_patch(Rectangle(corner, length, 1, fill=False, edgecolor=MARK, linewidth=2, zorder=5))
    word = [*map(display, hypothesis.target), EOS][row]
    text = _plain(f"{title}: \u201c{word}\u201d attends to {length} tokens in a row alike")
    axis.set_title(text, color=INK, fontsize=11, fontweight="bold", pad=8)


def _plain(text: str) -> str:
    """Without this, a pair of dollar signs would be taken for a formula."""
    return text.replace("$", r"\$")
