#!/usr/bin/env python3
"""Make plain text of package descriptions: a paragraph and the synopsis of the package.

    python scripts/prepare/headlines.py RAW OUT

RAW holds ``train.tsv.gz``, ``valid.tsv.gz`` and ``test.tsv.gz``: paragraph, synopsis. OUT gets
``{train,valid,test}.{paragraph,synopsis}``, in lower case, which ROUGE scores as well. Splits are
taken as they are; what was done is printed. Nothing is written unless all of RAW can be read.
"""

from __future__ import annotations

import argparse
import gzip
import sys
import zlib
from collections import Counter
from pathlib import Path

SPLITS = ("train", "valid", "test")
SIDES = ("paragraph", "synopsis")


def read(path: Path, tally: Counter) -> list[tuple[str, str]]:
    """Pairs in lower case, without those that lack a side.

    Raises:
        ValueError: no whole gzip file, or no UTF-8; names the file, and the line.
    """
    pairs = []
    with gzip.open(path, "rb") as lines:
        try:
            for number, raw in enumerate(lines, start=1):
                try:
                    line = raw.decode("utf-8")
                except UnicodeDecodeError as error:
                    raise ValueError(f"{path}:{number}: not UTF-8 ({error})") from None
                tally["read"] += 1
                cells = [" ".join(cell.lower().split()) for cell in line.split("\t")]
                if len(cells) < len(SIDES) or not all(cells[:2]):
                    tally["dropped, a side is empty"] += 1
                else:
                    pairs.append((cells[0], cells[1]))
        except (gzip.BadGzipFile, EOFError, zlib.error) as error:
            raise ValueError(f"{path}: not a whole gzip file ({error})") from None
    if not pairs:
        raise ValueError(f"{path}: nothing is left of {tally['read']:,} lines")
    tally["kept"] = len(pairs)
    return pairs


def write(out: Path, texts: dict[str, str]) -> None:
    """All files, whole or not at all."""
    out.mkdir(parents=True, exist_ok=True)
    for name, text in texts.items():
        (out / f"{name}.partial").write_bytes(text.encode("utf-8"))
    for name in texts:
        (out / f"{name}.partial").replace(out / name)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("raw", type=Path, help="folder with train.tsv.gz, ...")
    parser.add_argument("out", type=Path, help="folder that gets train.paragraph, ...")
    args = parser.parse_args()
    texts = {}
    for split in SPLITS:
        tally: Counter = Counter()
        pairs = read(args.raw / f"{split}.tsv.gz", tally)
        for column, side in enumerate(SIDES):
            texts[f"{split}.{side}"] = "".join(f"{pair[column]}\n" for pair in pairs)
        print(split)
        for what, count in tally.items():
            print(f"{count:8d}  {what}")
    write(args.out, texts)


if __name__ == "__main__":
    try:
        main()
    except (OSError, ValueError) as error:
        print(f"headlines.py: error: {error}", file=sys.stderr)
        sys.exit(1)
