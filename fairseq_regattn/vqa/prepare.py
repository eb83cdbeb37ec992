"""``prepare``: from VQA-v2's files and grids of features to the data folder of task ``vqa``."""

from __future__ import annotations

import argparse
from pathlib import Path

SPLITS = ("train", "valid", "test")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Options of the command."""
    from fairseq_regattn.classification.malformed import HOW

    for split in SPLITS:
        parser.add_argument(
            f"--{split}",
            nargs=3,
            required=split != "test",
            metavar=("QUESTIONS", "ANNOTATIONS", "FEATURES"),
            help="VQA-v2's two json files, and a folder of .npz or .npy or an .h5 file with a grid"
            " an image (height x width x channels)"
            if split == "train"
            else "the same; - for ANNOTATIONS where answers are not known",
        )
    parser.add_argument("--out", type=Path, required=True, metavar="DIR", help="is made")
    parser.add_argument(
        "--answers",
        type=int,
        default=3129,
        metavar="N",
        help="the most common answers, which a model chooses from (default: %(default)s, as many as"
        " is usual for VQA-v2)",
    )
    parser.add_argument(
        "--min-count",
        type=int,
        default=1,
        metavar="N",
        help="words that are less frequent in train are unknown (default: %(default)s)",
    )
    parser.add_argument(
        "--channels-first",
        action="store_true",
        help="grids are stored as channels x height x width",
    )
    parser.add_argument(
        "--malformed",
        choices=HOW,
        default=HOW[0],
        help="what to do about malformed entries and images: tell all and stop, or leave them out"
        " (default: %(default)s)",
    )


def run(given: argparse.Namespace) -> int:
    """Make the folder, unless it is there.

    Raises:
        UsageError: wrong options, or malformed files.
    """
    from fairseq_regattn.errors import UsageError
    from fairseq_regattn.recipes.stages import produce
    from fairseq_regattn.vqa.data import Source, take

    sources = {}
    for split in SPLITS:
        if getattr(given, split) is not None:
            questions, annotations, features = getattr(given, split)
            known = None if annotations == "-" else Path(annotations)
            sources[split] = Source(Path(questions), known, Path(features))
    out: Path = given.out
    if out.exists():
        raise UsageError(f"--out {out} is there already: name another folder, or remove it")

    def make(partial: Path) -> None:
        take(
            sources, partial, given.answers, given.min_count, given.malformed, given.channels_first
        )

    produce(out, make)
    print(f"made: {out}", flush=True)
    return 0
