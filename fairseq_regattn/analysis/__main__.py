"""``python -m fairseq_regattn.analysis RECORDS [--out DIR]``: tables of all recorded runs."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from fairseq_regattn.analysis.results import read_sweep, text, write_results
from fairseq_regattn.errors import UsageError


def main() -> int:
    """Print the tables; 2 where that cannot be done."""
    parser = argparse.ArgumentParser(
        prog="python -m fairseq_regattn.analysis",
        description="Print BLEU, ROUGE or accuracy, sparsity, training time and alignment "
        "error of all runs in a folder of records, a table each: a row a test set, a column a "
        "mapping.",
        allow_abbrev=False,
    )
    parser.add_argument("records", type=Path, metavar="RECORDS", help="folder of records")
    parser.add_argument(
        "--out",
        type=Path,
        metavar="DIR",
        help="also write results.md, results.csv and results.json there",
    )
    given = parser.parse_args()
    try:
        written: list[Path] = []
        if given.out is not None:  # first: the reader of the print may leave before its end
            written = write_results(given.records, given.out)
        print(text(read_sweep(given.records)))
        if written:
            print("\nWritten: " + " ".join(map(str, written)))
    except (UsageError, OSError) as error:
        print(f"{parser.prog}: error: {error}", file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main())
