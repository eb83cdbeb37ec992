#!/usr/bin/env python3
"""Make training, validation and test text of the Tatoeba pairs with English.

    python scripts/prepare/tatoeba.py RAW OUT [--pairs ron deu ...]

RAW holds ``eng-ron.tsv.gz``, ...: English, the other language, and more columns that are not
read. OUT gets ``en-ro/{train,valid,test}.{en,ro}``, ..., which serve both directions. The same
input gives the same text every time, and what was done is printed.

Everyday sentences repeat each other, so that a split by rows would test what was trained on:
all rows of one English sentence are on one side, and a sentence is held out only if nothing else
in the corpus is nearly the same: no pair with another English sentence shares more than 0.8 of
the words with one of its rows, in either language (case, punctuation, digits and word order
aside). So "Tom is here." and "Tom was here." may stand on different sides; one word replaced makes
another sentence of up to nine words, one word added of up to four. Of the sentences held out only
the first translation is kept; everything else is for training.
"""

from __future__ import annotations

import argparse
import gzip
import hashlib
from collections import Counter
from pathlib import Path

from near_duplicates import NearDuplicates, words

LANGUAGES = {"ces": "cs", "deu": "de", "fin": "fi", "ron": "ro", "rus": "ru"}
HELD_OUT = {"test": 1000, "valid": 500}
"""English sentences."""
JACCARD = 0.8

Pair = tuple[str, str]


def read(path: Path) -> tuple[dict[str, list[Pair]], Counter]:
    """Rows by English sentence, and how many were read and dropped."""
    rows: dict[str, list[Pair]] = {}
    tally: Counter = Counter()
    with gzip.open(path, "rt", encoding="utf-8") as lines:
        for line in lines:
            english, other = (" ".join(cell.split()) for cell in line.split("\t")[:2])
            tally["read"] += 1
            if not words(english) or not words(other):
                tally["dropped, a side without words"] += 1
            else:
                rows.setdefault(english, []).append((english, other))
    return rows, tally


def split(rows: dict[str, list[Pair]], tally: Counter) -> dict[str, list[Pair]]:
    """The three splits, each in the order of the rows; counts go to `tally`."""
    known = NearDuplicates(JACCARD)
    sentence_of = []
    for english, pairs in rows.items():
        for pair in pairs:
            known.add(pair)
            sentence_of.append(english)

    def is_new(english: str) -> bool:
        return all(
            sentence_of[n] == english for pair in rows[english] for n in known.repeated_by(pair)
        )

    order = sorted(rows, key=lambda english: hashlib.sha256(english.encode()).digest())
    side: dict[str, str] = {}
    for english in order:
        name = next((name for name in HELD_OUT if tally[name] < HELD_OUT[name]), None)
        if name is None:
            break
        if is_new(english):
            side[english] = name
            tally[name] += 1
        else:
            tally["not held out, nearly the same as another"] += 1

    splits: dict[str, list[Pair]] = {"train": [], "valid": [], "test": []}
    for english, pairs in rows.items():
        name = side.get(english, "train")
        kept = pairs if name == "train" else pairs[:1]
        splits[name] += kept
        tally["dropped, another translation of a held-out sentence"] += len(pairs) - len(kept)
    tally["train"] = len(splits["train"])
    return splits


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("raw", type=Path, help="folder with eng-ron.tsv.gz, ...")
    parser.add_argument("out", type=Path, help="folder that gets en-ro/train.en, ...")
    parser.add_argument(
        "--pairs",
        nargs="+",
        choices=LANGUAGES,
        default=list(LANGUAGES),
        help="the languages beside English, as the files call them (default: all)",
    )
    args = parser.parse_args()
    for other in args.pairs:
        path = args.raw / f"eng-{other}.tsv.gz"
        if not path.is_file():
            parser.error(f"{path}: no such file; --pairs names those that are there")

    for other in args.pairs:
        rows, tally = read(args.raw / f"eng-{other}.tsv.gz")
        splits = split(rows, tally)
        folder = args.out / f"en-{LANGUAGES[other]}"
        folder.mkdir(parents=True, exist_ok=True)
        for name, pairs in splits.items():
            for column, language in enumerate(("en", LANGUAGES[other])):
                text = "".join(f"{pair[column]}\n" for pair in pairs)
                (folder / f"{name}.{language}").write_bytes(text.encode("utf-8"))
        print(folder)
        for what, count in tally.items():
            print(f"{count:8d}  {what}")


if __name__ == "__main__":
    main()
