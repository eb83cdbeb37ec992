#!/usr/bin/env python3
"""Derive the embedded corpus of the quick start from the verse-aligned raw file.

    python scripts/prepare/verses.py en-es.tsv.gz fairseq_regattn/data/verses.en-es.tsv.gz

The raw file has three tab-separated columns: reference (``Book.chapter.verse``), English,
Spanish. The output has four: split, reference, English, Spanish. Needs only the standard
library, and gives the same bytes every time. What it did is printed: that print is the
"Counts" section of ``fairseq_regattn/data/SOURCE.txt``.
"""

from __future__ import annotations

import argparse
import gzip
import hashlib
import re
from collections import Counter
from typing import NamedTuple

from near_duplicates import WORD, NearDuplicates, words

MAX_WORDS = 20
MAX_RATIO = 2.5
"""Longer side over shorter side, in words, once a side has more than four words."""

GLUED = re.compile(r"[^\W\d_A-Z]*[a-zà-ÿ][A-ZÀ-Þ]|[.,;:?!][^\W\d_]")
"""A capital after a small letter (``ChristJesus``), a letter after a stop (``east,they``)."""

CLITICS = {"la", "le", "lo", "me", "te", "se", "nos", "les", "los", "las", "os", "es"}
"""Spanish verbs take these as endings (``envióle``): no sign of two words run together."""

TRAIN_ONLY = {"Matthew", "Mark", "Luke"}
"""The synoptic gospels tell the same stories in nearly the same words: all on one side."""

HELD_OUT = {0: "valid", 1: "test", 2: "test"}
"""Whole chapters are held out: those whose hash modulo ``CHAPTER_BUCKETS`` is listed."""
CHAPTER_BUCKETS = 26


class Verse(NamedTuple):
    reference: str
    english: str
    spanish: str

    @property
    def chapter(self) -> str:
        return self.reference.rsplit(".", 1)[0]


def lower_opening_capitals(text: str, casing: Counter) -> str:
    """Undo the printed capitals that open a Spanish chapter (``EN el``, ``Y ACONTECIÓ``)."""

    def usual(match: re.Match) -> str:
        word = match.group()
        capitalised, small = word.capitalize(), word.lower()
        opens = not WORD.search(text[: match.start()])
        return capitalised if opens or casing[capitalised] > casing[small] else small

    return re.sub(r"\b[A-ZÀ-Þ]{2,}\b", usual, text)


def run_together(text: str, counts: Counter) -> bool:
    """Whether a rare word may be two known ones without the space (``Godcreated``).

    Some good compounds go too (``eyesight``): a few verses are a fair price.
    """
    for word in words(text):
        if counts[word] > 2:
            continue
        for cut in range(2, len(word) - 1):
            first, second = word[:cut], word[cut:]
            if min(counts[first], counts[second]) >= 10 and second not in CLITICS:
                return True
    return False


def reason_to_drop(verse: Verse, counts: tuple[Counter, Counter]) -> str | None:
    """Why a verse cannot be used, or None."""
    lengths = len(verse.english.split()), len(verse.spanish.split())
    if min(lengths) == 0 or not words(verse.english) or not words(verse.spanish):
        return "empty side"
    if max(lengths) > MAX_WORDS:
        return f"more than {MAX_WORDS} words on a side"
    if max(lengths) > MAX_RATIO * min(lengths) and max(lengths) > 4:
        return f"length ratio above {MAX_RATIO}"
    for text, language in zip((verse.english, verse.spanish), counts):
        if GLUED.search(text) or run_together(text, language):
            return "glued words"
    return None


def split_of(verse: Verse) -> str:
    if verse.chapter.split(".")[0] in TRAIN_ONLY:
        return "train"
    digest = hashlib.sha256(verse.chapter.encode()).digest()
    return HELD_OUT.get(int.from_bytes(digest[:8], "big") % CHAPTER_BUCKETS, "train")


def select(raw: list[Verse]) -> tuple[dict[str, list[Verse]], Counter]:
    """The three splits in the order of the raw file, and how many verses went where."""
    counts = (
        Counter(word for verse in raw for word in words(verse.english)),
        Counter(word for verse in raw for word in words(verse.spanish)),
    )
    casing = Counter(word for verse in raw for word in WORD.findall(verse.spanish))
    tally: Counter = Counter({"read": len(raw)})
    candidates: dict[str, list[Verse]] = {"train": [], "valid": [], "test": []}
    for verse in raw:
        verse = verse._replace(spanish=lower_opening_capitals(verse.spanish, casing))
        reason = reason_to_drop(verse, counts)
        if reason is None:
            candidates[split_of(verse)].append(verse)
        else:
            tally[f"dropped, {reason}"] += 1

    # Training first, so that the held-out side gives way and keeps only what is new.
    splits: dict[str, list[Verse]] = {}
    known, seen = NearDuplicates(jaccard=0.6, shared_trigrams=0.5), set()
    for split, verses in candidates.items():
        splits[split] = []
        for verse in verses:
            texts = {("en", *words(verse.english)), ("es", *words(verse.spanish))}
            if texts & seen:
                tally[f"dropped, duplicate ({split})"] += 1
            elif split != "train" and known.knows(verse[1:]):
                tally[f"dropped, near-duplicate ({split})"] += 1
            else:
                splits[split].append(verse)
                seen |= texts
        for verse in splits[split]:
            known.add(verse[1:])
        tally[f"kept, {split}"] = len(splits[split])
    return splits, tally


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("raw", help="gzipped TSV: reference, English, Spanish")
    parser.add_argument("output", help="gzipped TSV to write: split, reference, English, Spanish")
    args = parser.parse_args()

    with gzip.open(args.raw, "rt", encoding="utf-8") as lines:
        raw = [Verse(*(" ".join(cell.split()) for cell in line.split("\t"))) for line in lines]
    splits, tally = select(raw)

    text = "".join(
        "\t".join((split, *verse)) + "\n" for split, verses in splits.items() for verse in verses
    )
    # No file name and no time in the gzip header: the same input gives the same bytes.
    with open(args.output, "wb") as file, gzip.GzipFile("", "wb", 9, file, mtime=0) as packed:
        packed.write(text.encode("utf-8"))
    for what, count in tally.items():
        print(f"{count:6d}  {what}")


if __name__ == "__main__":
    main()
