"""Public corpora, downloaded with mtdata (``pip install "fairseq-regattn[recipes]"``)."""

from __future__ import annotations

import importlib.util
import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from fairseq_regattn.errors import UsageError
from fairseq_regattn.recipes.jobs import command
from fairseq_regattn.recipes.progress import with_progress
from fairseq_regattn.recipes.text import SPLITS, write_pairs

INSTEAD = "or give a folder that has the text, with --data DIR"


def fetch(datasets: Mapping[str, Sequence[str]], folder: Path, source: str, target: str) -> None:
    """Download data sets and write ``train.ro``, ``train.en``, ... for ``text.take``.

    mtdata keeps what it has downloaded (in ``~/.mtdata``, or where ``MTDATA`` says), so another
    try goes on with the one that failed.

    Args:
        datasets: for train, valid and test the ids that are joined, in this order, such as
            ``Statmt-newstest_roen-2016-ron-eng``; either side may come first.
        folder: is made; removed when anything fails.
        source, target: languages, the endings of the files.

    Raises:
        UsageError: no mtdata, an id of other languages, a failed download; names the id.
    """
    if importlib.util.find_spec("mtdata") is None:
        raise UsageError(f'mtdata is missing: pip install "fairseq-regattn[recipes]", {INSTEAD}')
    missing = [split for split in SPLITS if not datasets.get(split)]
    if missing:
        raise UsageError(
            f"the recipe names no data set to download for {', '.join(missing)}: "
            f"fill in data.mtdata, {INSTEAD}"
        )
    reverse = {
        dataset: reversed_side(dataset, source, target)
        for split in SPLITS
        for dataset in datasets[split]
    }
    folder.mkdir()
    try:
        for split in reversed(SPLITS):  # the small ones first: what fails, fails soon
            pairs = (
                pair[::-1] if reverse[dataset] else pair
                for dataset in datasets[split]
                for pair in with_progress(rows(dataset), dataset)
            )
            write_pairs(folder, split, (source, target), pairs)
    except BaseException:
        shutil.rmtree(folder)
        raise


def reversed_side(dataset: str, source: str, target: str) -> bool:
    """Whether the target's text comes first in a data set.

    Raises:
        UsageError: the data set is of other languages, or the id is not one.
    """
    from mtdata.iso.bcp47 import bcp47

    parts = dataset.split("-")
    if len(parts) == 5:
        first, second = parts[3:]
        try:
            found, wanted = [bcp47(first), bcp47(second)], [bcp47(source), bcp47(target)]
        except Exception as error:  # mtdata raises plain ones
            raise UsageError(f"data.mtdata: {dataset}: {error}") from error
        if found in (wanted, wanted[::-1]):
            return found != wanted
    raise UsageError(
        f"data.mtdata: {dataset} is no data set of {source} and {target}: an id is "
        f"group-name-version-language-language, see `mtdata list -l {source}-{target} -id`"
    )


def rows(dataset: str) -> Iterator[tuple[str, str]]:
    """Pairs of a data set as they come.

    Raises:
        UsageError: mtdata failed, or gave what is no pair.
    """
    with tempfile.TemporaryFile("w+", encoding="utf-8", errors="replace") as log:
        with subprocess.Popen(
            command("mtdata", "echo", dataset),
            stdout=subprocess.PIPE,
            stderr=log,
            stdin=subprocess.DEVNULL,
            env={**os.environ, "PYTHONUTF8": "1"},
        ) as process:
            assert process.stdout is not None
            for number, line in enumerate(process.stdout, start=1):
                # Some have a third column, which is no text.
                cells = line.decode("utf-8", errors="replace").rstrip("\r\n").split("\t")[:2]
                if len(cells) != 2:
                    raise UsageError(f"mtdata: {dataset}: line {number} is no pair of sentences")
                yield cells[0], cells[1]
        if process.returncode:
            log.seek(0)
            errors = log.read().split("\n")
            last = next((line for line in reversed(errors) if line.strip()), "no message")
            raise UsageError(
                f"mtdata could not get {dataset} ({last.strip()}): try again, look for it in "
                f"`mtdata list -id`, {INSTEAD}"
            )
