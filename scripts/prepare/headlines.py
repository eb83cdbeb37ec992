#!/usr/bin/env python3
"""Make plain text of package descriptions: a paragraph and the synopsis of the package.

    python scripts/prepare/headlines.py RAW OUT

RAW holds ``train.tsv.gz``, ``valid.tsv.gz`` and ``test.tsv.gz``: paragraph, synopsis. OUT gets
``{train,valid,test}.{paragraph,synopsis}``, in lower case, which ROUGE scores as well. Splits are
taken as they are; what was done is printed.
"""

from __future__ import annotations

import argparse
import gzip
from collections import Counter
from pathlib import Path

SPLITS = ("train", "valid", "test")
SIDES = ("paragraph", "synopsis")


def read(path: Path, tally: Counter) -> list[tuple[str, str]]:
    """Pairs in lower case, without those that lack a side."""
    pairs = []
    with gzip.open(path, "rt", encoding="utf-8", newline="\n") as lines:
        for line in lines:
            tally["read"] += 1
            cells = [" ".join(cell.lower().split()) for cell in line.split("\t")]
            if len(cells) < len(SIDES) or not all(cells[:2]):
                tally["dropped, a side is empty"] += 1
            else:
                pairs.append((cells[0], cells[1]))
    tally["kept"] = len(pairs)
    return pairs


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("raw", type=Path, help="folder with train.tsv.gz, ...")
    parser.add_argument("out", type=Path, help="folder that gets train.paragraph, ...")
    args = parser.parse_args()
    args.out.mkdir(parents=True, exist_ok=True)
    for split in SPLITS:
        tally: Counter = Counter()
        pairs = read(args.raw / f"{split}.tsv.gz", tally)
        for side, lines in zip(SIDES, zip(*pairs)):
            text = "".join(f"{line}\n" for line in lines)
            (args.out / f"{split}.{side}").write_bytes(text.encode("utf-8"))
        print(split)
        for what, count in tally.items():
            print(f"{count:8d}  {what}")


if __name__ == "__main__":
    main()
