"""Word alignments in Pharaoh format, and a command that scores a file of them.

python -m fairseq_regattn.analysis.links PREDICTED GOLD [--gold-first 1]
"""

from __future__ import annotations

import argparse
import gzip
import os
import re
import sys
import zlib
from collections.abc import Iterable
from pathlib import Path

from fairseq_regattn.errors import UsageError
from fairseq_regattn.recipes.stages import partial_of
from fairseq_regattn.scoring.alignment import Link, Links, alignment_scores

TOKEN = re.compile(r"([0-9]{1,9})([-p?])([0-9]{1,9})")


def read_links(path: str | Path, first: int = 0) -> list[Links]:
    """Read a line a sentence: ``i-j`` is a sure link, ``ipj`` and ``i?j`` are possible ones.

    Args:
        path: the file, gzipped if its name ends in ``.gz``. A blank line is a sentence
            without links.
        first: the index of the first word in the file, 0 or 1; what is returned begins at 0.

    Raises:
        UsageError: a token is no link, or an index is below `first`.
    """
    path = Path(path)
    sentences = []
    unpack = gzip.open if path.suffix == ".gz" else open
    # what is not UTF-8 is no link either, and is reported as such
    with unpack(path, "rt", encoding="utf-8", errors="replace") as lines:
        try:
            for number, line in enumerate(lines, start=1):
                sentence = Links()
                for token in line.split():
                    match = TOKEN.fullmatch(token)
                    if match is None or min(int(match[1]), int(match[3])) < first:
                        raise UsageError(
                            f"{path}, line {number}: {token!r} is no link: i-j (sure), ipj or i?j "
                            f"(possible), with indices from {first}"
                        )
                    link = int(match[1]) - first, int(match[3]) - first
                    sentence.possible.add(link)
                    if match[2] == "-":
                        sentence.sure.add(link)
                sentences.append(sentence)
        except (EOFError, gzip.BadGzipFile, zlib.error) as error:
            raise UsageError(f"{path} cannot be unpacked: {error}") from error
    return sentences


def write_links(path: str | Path, sentences: Iterable[Iterable[Link]]) -> None:
    """Write sure links in order, a line a sentence, indices from 0; complete or not at all."""
    path = Path(path)
    with open(partial_of(path), "w", encoding="utf-8") as file:
        for links in sentences:
            file.write(" ".join(f"{source}-{target}" for source, target in sorted(links)) + "\n")
    os.replace(partial_of(path), path)


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        prog="python -m fairseq_regattn.analysis.links",
        description="Alignment error rate, precision, recall and F1, from 0 to 1. Files are in "
        "Pharaoh format (i-j sure, ipj or i?j possible), a line a sentence, .gz or not.",
    )
    parser.add_argument("predicted", metavar="PREDICTED", help="all its links count, from 0")
    parser.add_argument("gold", metavar="GOLD", help="links set by hand")
    parser.add_argument(
        "--gold-first",
        type=int,
        choices=(0, 1),
        default=0,
        help="index of the first word in GOLD (default: %(default)s)",
    )
    options = parser.parse_args(arguments)
    try:
        predicted = read_links(options.predicted)
        gold = read_links(options.gold, options.gold_first)
        scores = alignment_scores([links.possible for links in predicted], gold)
    except (OSError, UsageError) as error:
        print(f"{parser.prog}: error: {error}", file=sys.stderr)
        return 2
    print(f"AER        {scores.aer:.4f}")
    print(f"precision  {scores.precision:.4f}")
    print(f"recall     {scores.recall:.4f}")
    print(f"F1         {scores.f1:.4f}")
    print(f"predicted  {scores.links} links")
    print(f"sure       {sum(len(links.sure) for links in gold)} links")
    print(f"possible   {sum(len(links.possible) for links in gold)} links")
    print(f"sentences  {scores.sentences}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
