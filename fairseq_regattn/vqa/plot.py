"""``plot``: pictures of where models looked (needs matplotlib), mappings side by side."""

from __future__ import annotations

import argparse
import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from fairseq_regattn.analysis.heatmap import FORMATS, GRID, INK, MARK, PAPER
from fairseq_regattn.errors import UsageError
from fairseq_regattn.recipes.stages import check_file, written
from fairseq_regattn.vqa.predictions import Prediction, read_predictions

SIZE = 2.3
"""Inches a picture."""

PICTURES = (1, 3, 4)
"""Channels of an image: grey, or colours, which may be transparent."""

VEIL = 0.75
"""How dark the cell of least weight is; the one of most is as it was."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Of the command ``plot``."""
    parser.add_argument(
        "runs",
        nargs="+",
        metavar="NAME=FILE.jsonl",
        help="predictions of the same questions, each with the name to show, from left to right",
    )
    parser.add_argument(
        "--out", type=Path, required=True, metavar="FILE", help=f"{' or '.join(FORMATS)} to write"
    )
    where = parser.add_mutually_exclusive_group(required=True)
    where.add_argument(
        "--data", type=Path, metavar="DIR", help="data folder, where its features are pixels"
    )
    where.add_argument(
        "--images",
        type=Path,
        metavar="DIR",
        help="pictures that end in the number of their image, such as MSCOCO's val2014",
    )
    parser.add_argument(
        "--split", default="test", help="of --data, whose images (default: %(default)s)"
    )
    parser.add_argument(
        "--questions",
        type=_numbers,
        metavar="ID,ID,...",
        help="which to draw, one below the other (default: the first four)",
    )


def run(given: argparse.Namespace) -> int:
    """Draw them.

    Raises:
        UsageError: wrong arguments, a file that cannot be read, or other questions in it.
    """
    if given.out.suffix.lower() not in FORMATS:
        raise UsageError(f"{given.out}: a picture ends in {' or '.join(FORMATS)}")
    check_file(given.out)
    runs: dict[str, list[Prediction]] = {}
    for word in given.runs:
        name, equals, path = word.partition("=")
        if not (name and equals and path) or name in runs:
            raise UsageError(f"NAME=FILE.jsonl was expected, each name once, got {word!r}")
        runs[name] = _chosen(Path(path), given.questions)
    first = next(iter(runs.values()))
    for name, found in runs.items():
        asked, theirs = ([(one.id, one.image) for one in some] for some in (first, found))
        if asked != theirs:
            raise UsageError(f"{name} is not of the same questions as {next(iter(runs))}")
    try:
        draw(runs, _images(given), given.out)
    except ImportError:
        raise UsageError("pictures need matplotlib: pip install matplotlib") from None
    print(f"Written: {given.out}")
    return 0


def draw(runs: Mapping[str, Sequence[Prediction]], images: Any, path: Path) -> None:
    """A row a question, a column a run: the image, darker where there is less weight.

    Of continuous attention ellipses are drawn: the border of the support of continuous sparsemax;
    one and two standard deviations of continuous softmax, and a cross at the mean.

    Args:
        runs: predictions of the same questions, by what is written above them.
        images: gives an image, ``height x width x channels``, by its number.
        path: file to write.

    Raises:
        UsageError: there is no such image, or it is no picture.
    """
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    questions = len(next(iter(runs.values())))
    figure = Figure(
        figsize=(SIZE * len(runs), (SIZE + 0.55) * questions),
        facecolor=PAPER,
        layout="constrained",
    )
    FigureCanvasAgg(figure)
    axes = figure.subplots(questions, len(runs), squeeze=False)
    for column, (name, found) in enumerate(runs.items()):
        for row, prediction in enumerate(found):
            axis: Any = axes[row][column]
            _panel(axis, prediction, images[prediction.image])
            right = "" if prediction.gold is None else f" ({prediction.gold})"
            title = f"{name}\n" if row == 0 else ""
            told = f"{prediction.answer} {prediction.probability:.2f}{right}"
            axis.set_title(f"{title}{told}".replace("$", r"\$"), color=INK, fontsize=8)
            if column == 0:
                asked = _wrapped(prediction.question).replace("$", r"\$")
                axis.set_ylabel(asked, color=INK, fontsize=8)
    with written(path) as partial:
        figure.savefig(partial, dpi=150, format=path.suffix.lower()[1:])


def _panel(axis: Any, prediction: Prediction, image: np.ndarray) -> None:
    """The image is the unit square; y goes down."""
    if image.ndim not in (2, 3) or (image.ndim == 3 and image.shape[2] not in PICTURES):
        raise UsageError(
            f"image {prediction.image} of shape {image.shape} is no picture: give --images"
        )
    extent = (0, 1, 1, 0)
    pixels = image[..., 0] if image.ndim == 3 and image.shape[2] == 1 else image
    axis.imshow(pixels, extent=extent, cmap="gray" if pixels.ndim == 2 else None, aspect="auto")
    weights = np.array(prediction.weights)
    dark = np.zeros((*weights.shape, 4))
    dark[..., 3] = VEIL * (1 - weights / (weights.max() or 1))
    axis.imshow(dark, extent=extent, interpolation="nearest", aspect="auto")
    for ellipse in ellipses(prediction):
        axis.plot(ellipse[:, 1], ellipse[:, 0], color=MARK, linewidth=1.2)
    if prediction.mean is not None:
        axis.plot([prediction.mean[1]], [prediction.mean[0]], "+", color=MARK, markersize=7)
    axis.set(xlim=(0, 1), ylim=(1, 0), xticks=[], yticks=[])
    axis.set_box_aspect(image.shape[0] / image.shape[1])
    for side in axis.spines.values():
        side.set_color(GRID)


def ellipses(prediction: Prediction) -> list[np.ndarray]:
    """Points, ``100 x 2``, of each ellipse that stands for the density."""
    if prediction.mean is None:
        return []
    # the support of a paraboloid: (t - mean)' (6 covariance)^-1 (t - mean) <= 1
    supported = prediction.attention.startswith("continuous_sparsemax")
    turn = np.linspace(0, 2 * math.pi, 100)
    circle = np.stack([np.cos(turn), np.sin(turn)], 1)
    factor = np.linalg.cholesky(np.array(prediction.covariance))
    scales = (math.sqrt(6),) if supported else (1.0, 2.0)
    return [np.array(prediction.mean) + scale * circle @ factor.T for scale in scales]


def _chosen(path: Path, questions: Sequence[int] | None) -> list[Prediction]:
    """In the order in which they are asked for.

    Raises:
        UsageError: one is not there, or there are none.
    """
    found: dict[int, Prediction] = {}
    for prediction in read_predictions(path):
        if questions is None or prediction.id in questions:
            found[prediction.id] = prediction
        if len(found) == (4 if questions is None else len(questions)):
            break
    missing = [number for number in questions or () if number not in found]
    if missing or not found:
        which = f"question {missing[0]}" if missing else "questions"
        raise UsageError(f"{path} has no {which}")
    return [found[number] for number in questions or found]


def _images(given: argparse.Namespace) -> Any:
    from fairseq_regattn.vqa.data import Preparation
    from fairseq_regattn.vqa.features import Pictures

    if given.images is not None:
        return Pictures(given.images)
    return Preparation.read(given.data).open_features(given.split)


def _numbers(text: str) -> list[int]:
    try:
        return list(dict.fromkeys(int(number) for number in text.split(",")))
    except ValueError:
        wanted = "whole numbers with commas between them"
        raise argparse.ArgumentTypeError(f"{wanted} were expected, got {text!r}") from None


def _wrapped(text: str, width: int = 26) -> str:
    import textwrap

    return "\n".join(textwrap.wrap(text, width))
