#!/usr/bin/env python3
"""Make plain text for the summarization recipes of the folder that Rush et al. (2015) made.

    python scripts/prepare/gigaword.py SUMDATA OUT

SUMDATA is licensed data (Gigaword from the LDC, DUC from NIST) in this layout:

    train/train.article.txt train/train.title.txt             3,803,957 lines
    train/valid.article.filter.txt train/valid.title.filter.txt  189,651 lines
    Giga/input.txt Giga/task1_ref0.txt                            1,951 lines
    DUC2003/input.txt DUC2003/task1_ref0.txt ... task1_ref3.txt     624 lines
    DUC2004/input.txt DUC2004/task1_ref0.txt ... task1_ref3.txt     500 lines

Each file may end in .gz. The two DUC folders may be missing. OUT gets train, valid and test, and
duc2003 and duc2004 with all references, as text of one sentence a line. In inputs, ``UNK`` becomes
``<unk>``, which is what training text has; DUC's are put in lower case, with ``-lrb-`` for ``(``
and ``#`` for digits as Gigaword's are, and kept as ``.original`` before the last step. References
are left as they are. Nothing else is touched: lines are dropped by the recipe, which counts them.
"""

from __future__ import annotations

import argparse
import gzip
import re
import sys
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path

SETS = {
    "train": ("train/train.article.txt", ["train/train.title.txt"]),
    "valid": ("train/valid.article.filter.txt", ["train/valid.title.filter.txt"]),
    "test": ("Giga/input.txt", ["Giga/task1_ref0.txt"]),
    **{
        name.lower(): (f"{name}/input.txt", [f"{name}/task1_ref{n}.txt" for n in range(4)])
        for name in ("DUC2003", "DUC2004")
    },
}
OPTIONAL = ("duc2003", "duc2004")
EXPECTED = {"train": 3803957, "valid": 189651, "test": 1951, "duc2003": 624, "duc2004": 500}
BRACKETS = {"(": "-lrb-", ")": "-rrb-", "[": "-lsb-", "]": "-rsb-", "{": "-lcb-", "}": "-rcb-"}

UNKNOWN = re.compile(r"(?<!\S)UNK(?!\S)")
DIGIT = re.compile(r"[0-9]")


def find(folder: Path, name: str) -> Path | None:
    """The file, or the same with .gz."""
    return next((path for path in (folder / name, folder / f"{name}.gz") if path.is_file()), None)


def lines(path: Path) -> Iterator[str]:
    """Without their ends.

    Raises:
        ValueError: no whole gzip file, or no UTF-8; names the file, and the line.
    """
    opened = gzip.open if path.suffix == ".gz" else open
    with opened(path, "rb") as file:
        try:
            for number, line in enumerate(file, start=1):
                try:
                    yield line.decode("utf-8").rstrip("\r\n")
                except UnicodeDecodeError as error:
                    raise ValueError(f"{path}:{number}: not UTF-8 ({error})") from None
        except (gzip.BadGzipFile, EOFError, zlib.error) as error:
            raise ValueError(f"{path}: not a whole gzip file ({error})") from None


def known(line: str) -> str:
    """An input of Gigaword, with the mark for unknown words that training text has."""
    return UNKNOWN.sub("<unk>", line)


def lowered(line: str) -> str:
    """An input of DUC in the words of Gigaword, digits aside."""
    return " ".join(BRACKETS.get(word, word) for word in known(line).lower().split())


def masked(line: str) -> str:
    """The same with # for each digit."""
    return DIGIT.sub("#", lowered(line))


def write(path: Path, out: Path, change: Callable[[str], str]) -> int:
    """A file line by line; returns how many."""
    count = 0
    partial = out.with_name(f"{out.name}.partial")
    with open(partial, "w", encoding="utf-8", newline="\n") as file:
        for line in lines(path):
            file.write(f"{change(line)}\n")
            count += 1
    partial.replace(out)
    return count


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("sumdata", type=Path, help="folder with train/, Giga/, DUC2003/, DUC2004/")
    parser.add_argument("out", type=Path, help="folder that gets train.article, train.title, ...")
    args = parser.parse_args()
    found = {
        split: {name: find(args.sumdata, name) for name in (source, *titles)}
        for split, (source, titles) in SETS.items()
    }
    missing = [
        name
        for split, files in found.items()
        if split not in OPTIONAL or any(files.values())
        for name, path in files.items()
        if path is None
    ]
    if missing:
        told = "".join(f"\n  {args.sumdata / name}" for name in missing)
        print(f"gigaword.py: error: missing, nor is there a .gz of it:{told}", file=sys.stderr)
        return 1
    args.out.mkdir(parents=True, exist_ok=True)
    for split, files in found.items():
        source, *titles = files.values()
        if source is None:
            print(f"{split}: left out, {args.sumdata / SETS[split][0]} is not there")
            continue
        # Digits of DUC's inputs are copied back into outputs.
        duc = split in OPTIONAL
        counts = [write(source, args.out / f"{split}.article", masked if duc else known)]
        if duc:
            write(source, args.out / f"{split}.original", lowered)
        for number, path in enumerate(titles):
            assert path is not None
            counts.append(write(path, args.out / f"{split}.title{number or ''}", str))
        told = f"{split}: {counts[0]:,} inputs"
        if counts[0] != EXPECTED[split]:
            told += f" (the set that others report on has {EXPECTED[split]:,})"
        print(told, flush=True)
        if len(set(counts)) > 1:
            lines_of = ", ".join(f"{name} {count}" for name, count in zip(files, counts))
            print(f"gigaword.py: error: unequal numbers of lines: {lines_of}", file=sys.stderr)
            return 1
    return 0


if __name__ == "__main__":
    try:
        sys.exit(main())
    except (OSError, ValueError) as error:
        print(f"gigaword.py: error: {error}", file=sys.stderr)
        sys.exit(1)
