"""Alignments as heat maps (needs matplotlib): one sentence, several mappings side by side."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from fairseq_regattn.analysis.alignments import EOS, Hypothesis, display

INK, GRID, PAPER = "#1f2733", "#d9dee5", "#ffffff"
LOW, HIGH = "#cfe3f5", "#08306b"
"""Even the smallest weight is clearly tinted, so that only zeros are white."""

CELL = 0.26
"""Inches a token."""


def draw_alignments(
    hypotheses: Sequence[tuple[str, Hypothesis]], path: str | Path, heading: str = ""
) -> None:
    """Write a PNG of how several models attend while translating the same sentence.

    One panel a model: source tokens along the top, the model's own translation down the side, a
    row the weights of one step. All panels share one colour scale from 0 to 1; a weight of zero
    leaves its cell empty.

    Args:
        hypotheses: (title, hypothesis) from left to right, at least one, all with weights.
        path: file to write.
        heading: printed above the panels.
    """
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.colors import LinearSegmentedColormap, Normalize
    from matplotlib.figure import Figure

    colours = LinearSegmentedColormap.from_list("weights", [LOW, HIGH]).with_extremes(bad=PAPER)
    scale = Normalize(0, 1)

    # A figure of its own and not pyplot's: no state is left behind, no display is needed.
    columns = len(hypotheses[0][1].source) + 1
    rows = max(len(hypothesis.target) + 1 for _, hypothesis in hypotheses)
    labels = [token for _, hypothesis in hypotheses for token in [*hypothesis.target, EOS]]
    panel = CELL * columns + 0.09 * max(map(len, labels)) + 0.3
    figure = Figure(
        figsize=(panel * len(hypotheses) + 0.9, CELL * rows + 1.9 + 0.4 * bool(heading)),
        facecolor=PAPER,
        layout="constrained",
    )
    FigureCanvasAgg(figure)
    axes = figure.subplots(1, len(hypotheses), squeeze=False)[0]
    for axis, (title, hypothesis) in zip(axes, hypotheses):
        image = _panel(axis, title, hypothesis, colours, scale)
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
        figure.suptitle(heading, color=INK, fontsize=10)
    figure.savefig(path, dpi=150, format="png", bbox_inches="tight")


def _panel(axis, title: str, hypothesis: Hypothesis, colours, scale):
    """Draw one weight matrix, tgt_len x src_len, with its tokens."""
    if hypothesis.weights is None:
        raise ValueError(f"sentence {hypothesis.sample_id} has no alignment to draw")
    weights = np.ma.masked_equal(hypothesis.weights, 0)
    image = axis.imshow(weights, cmap=colours, norm=scale, aspect="equal", interpolation="none")
    axis.set_title(title, color=INK, fontsize=11, fontweight="bold", pad=8)
    axis.set_anchor("N")  # translations differ in length: panels begin at one height
    axis.xaxis.tick_top()
    for ticks, tokens, angle in (
        (axis.set_xticks, hypothesis.source, 90),
        (axis.set_yticks, hypothesis.target, 0),
    ):
        # A pair of dollar signs would be taken for a formula.
        labels = [display(token).replace("$", r"\$") for token in [*tokens, EOS]]
        ticks(range(len(labels)), labels=labels, rotation=angle, fontsize=9, color=INK)
    # Thin lines between the cells: minor ticks lie half-way.
    axis.set_xticks(np.arange(0.5, weights.shape[1] - 1), minor=True)
    axis.set_yticks(np.arange(0.5, weights.shape[0] - 1), minor=True)
    axis.grid(which="minor", color=GRID, linewidth=0.6)
    axis.tick_params(which="both", length=0)
    for side in axis.spines.values():
        side.set_color(GRID)
    return image
