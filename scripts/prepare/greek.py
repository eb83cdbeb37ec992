#!/usr/bin/env python3
"""Derive a Greek-English corpus with hand alignments from the verse-aligned raw file.

    python scripts/prepare/greek.py grc-en.tsv.gz greek

The raw file has four tab-separated columns: verse (``BBCCCVVV``: book, chapter, verse), Greek
tokens, English tokens, links ``i-j`` from 0, Greek first. The output is a folder of plain text,
a verse a line: ``train``, ``valid`` and ``test`` with ``.grc`` and ``.en``, and for the test
split ``test.links`` (Pharaoh format) and ``test.names`` (verses). Needs only the standard
library, and gives the same bytes every time. What it did is printed.
"""

from __future__ import annotations

import argparse
import gzip
import os
import re
import shutil
import sys
from collections import Counter
from pathlib import Path
from typing import NamedTuple

MAX_WORDS = 60

# Whole books, since verses of one book repeat one another. Books that share their text are kept
# on one side: the synoptic gospels (40-42), John and his letters (43, 62-64), Luke and Acts,
# Romans and Galatians, the two to the Corinthians, Ephesians and Colossians, 2 Peter and Jude
# train; the two to the Thessalonians and the three pastoral letters, with Philemon, validate;
# Hebrews and James, which lean on the rest least (7 % of their English verses have six words in
# a row that training has too), test. Validation and test are both letters, of about 400 verses.
HELD_OUT = {
    **dict.fromkeys(("52", "53", "54", "55", "56", "57"), "valid"),
    **dict.fromkeys(("58", "59"), "test"),
}


class Verse(NamedTuple):
    name: str
    greek: list[str]
    english: list[str]
    links: list[str]


def read(path: str) -> list[Verse]:
    """All verses of the raw file; a row that does not fit the format ends the program."""
    verses = []
    with gzip.open(path, "rt", encoding="utf-8", newline="\n") as lines:
        for number, line in enumerate(lines, start=1):
            cells = line.rstrip("\r\n").split("\t")
            if len(cells) != 4 or not re.fullmatch(r"[0-9]{8}", cells[0]):
                sys.exit(f"{path}, line {number}: must be verse (8 digits), Greek, English, links")
            verse = Verse(cells[0], *(cell.split() for cell in cells[1:]))
            for link in verse.links:
                match = re.fullmatch(r"([0-9]+)-([0-9]+)", link)
                if not (
                    match
                    and int(match[1]) < len(verse.greek)
                    and int(match[2]) < len(verse.english)
                ):
                    sys.exit(f"{path}, line {number}: link {link!r} does not fit its verse")
            verses.append(verse)
    return verses


def select(verses: list[Verse]) -> tuple[dict[str, list[Verse]], Counter]:
    """The three splits in the order of the raw file, and how many verses went where."""
    tally: Counter = Counter({"read": len(verses)})
    splits: dict[str, list[Verse]] = {"train": [], "valid": [], "test": []}
    for verse in verses:
        split = HELD_OUT.get(verse.name[:2], "train")
        lengths = len(verse.greek), len(verse.english)
        if min(lengths) == 0:
            tally[f"dropped, empty side ({split})"] += 1
        elif max(lengths) > MAX_WORDS:
            tally[f"dropped, more than {MAX_WORDS} tokens on a side ({split})"] += 1
        else:
            splits[split].append(verse)
    tally.update({f"kept, {split}": len(kept) for split, kept in splits.items()})
    tally["links kept, test"] = sum(len(verse.links) for verse in splits["test"])
    return splits, tally


def write(splits: dict[str, list[Verse]], folder: Path) -> None:
    """The folder, complete or not at all."""
    partial = folder.with_name(folder.name + ".partial")
    shutil.rmtree(partial, ignore_errors=True)
    partial.mkdir(parents=True)
    columns = [(split, "grc", "greek") for split in splits]
    columns += [(split, "en", "english") for split in splits]
    columns += [("test", "links", "links")]
    for split, suffix, column in columns:
        lines = [" ".join(getattr(verse, column)) + "\n" for verse in splits[split]]
        (partial / f"{split}.{suffix}").write_bytes("".join(lines).encode("utf-8"))
    names = "".join(verse.name + "\n" for verse in splits["test"])
    (partial / "test.names").write_bytes(names.encode("utf-8"))
    os.replace(partial, folder)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("raw", help="gzipped TSV: verse, Greek, English, links")
    parser.add_argument("output", type=Path, help="folder to make; must not be there yet")
    args = parser.parse_args()
    if args.output.exists():
        parser.error(f"{args.output} is there already: remove it, or name another folder")

    splits, tally = select(read(args.raw))
    write(splits, args.output)
    for what, count in tally.items():
        print(f"{count:6d}  {what}")


if __name__ == "__main__":
    main()
