"""Time and memory of preparing a corpus of the size of SNLI's training set.

Rows of a small file are repeated, each time with another word before the premise, so that all
of them are different. The memory is the peak of the largest process: the command itself, or a
fairseq-preprocess that it runs.

python scripts/benchmark/snli_size.py LABELLED.tsv[.gz] [--rows 549367] [--vectors FILE]
"""

import argparse
import gzip
import resource
import subprocess
import sys
import tempfile
import time
from itertools import count, islice
from pathlib import Path
from typing import Iterator, List

ROWS = 549_367  # with a gold label, in snli_1.0_train


def repeated(lines: List[str]) -> Iterator[str]:
    for turn in count():
        for line in lines:
            label, premise, hypothesis = line.split("\t")
            yield f"{label}\tturn{turn} {premise}\t{hypothesis}"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("rows_of", type=Path, metavar="LABELLED.tsv")
    parser.add_argument("--rows", type=int, default=ROWS, help=f"default: {ROWS:,}")
    parser.add_argument("--vectors", type=Path, metavar="FILE", help="word vectors")
    given = parser.parse_args()
    opened = gzip.open if given.rows_of.suffix == ".gz" else open
    with opened(given.rows_of, "rt", encoding="utf-8", newline="\n") as file:
        lines = list(file)
    with tempfile.TemporaryDirectory() as folder:
        train = Path(folder, "train.tsv")
        with open(train, "w", encoding="utf-8", newline="\n") as file:
            file.writelines(islice(repeated(lines), given.rows))
        command = [sys.executable, "-m", "fairseq_regattn.classification", "prepare"]
        command += ["--train", str(train), "--out", str(Path(folder, "out"))]
        command += ["--hold-out", "valid=0.02,test=0.02"]
        command += ["--vectors", str(given.vectors)] if given.vectors else []
        began = time.monotonic()
        status = subprocess.run(command, check=False).returncode
        seconds = time.monotonic() - began
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    print(
        f"{given.rows:,} rows: {seconds:.0f} s on the clock, "
        f"{used.ru_utime + used.ru_stime:.0f} s of the processor, "
        f"peak memory of a process {used.ru_maxrss / 1024:.0f} MiB"
    )
    return status


if __name__ == "__main__":
    sys.exit(main())
