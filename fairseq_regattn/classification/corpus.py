"""From rows to text files, a dictionary, and the binary data that fairseq trains on.

Training data is streamed: what is held in memory is the vocabulary and eight bytes a row.
"""

from __future__ import annotations

import hashlib
import os
from array import array
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from typing import IO, NamedTuple

import numpy as np

from fairseq_regattn.classification.malformed import Malformed
from fairseq_regattn.classification.rows import Preparation, Row, read_rows
from fairseq_regattn.classification.sources import source_files
from fairseq_regattn.classification.vectors import coverage, read_vectors, write_vectors
from fairseq_regattn.errors import ArgumentError, UsageError
from fairseq_regattn.recipes import stages
from fairseq_regattn.recipes.jobs import Chain, Job, command, cores, run
from fairseq_regattn.recipes.progress import State, with_progress
from fairseq_regattn.recipes.text import SPLITS, report, told

PREPARATION = "preparation.json"
VECTORS = "vectors.txt"
HELD_OUT = {"valid": 0.1, "test": 0.2}
"""Of the first inputs of train, for splits without a file of their own."""


def fingerprint(path: Path) -> bytes:
    """Of the contents of all files of a source."""
    return stages.fingerprint(source_files(path))


def take(
    sources: Mapping[str, Path],
    out: Path,
    preparation: Preparation,
    held_out: Mapping[str, float] | None = None,
    malformed: str = "error",
    format: str | None = None,
) -> dict[str, Counter]:
    """Check a corpus and write it as ``train.input0``, ``train.label``, ... and ``counts.json``.

    A split without a source is held out of train, by a hash of the first input: rows that share
    it are on the same side, and stay there when rows are added.

    Args:
        sources: of train, and of those other splits that have one; see ``rows.read_rows``.
        out: is made.
        preparation: without `labels`, they are those of train, sorted; ``preparation.json`` in
            `out` has them.
        held_out: about which part of the different first inputs of train goes to each split
            that has no source; ``HELD_OUT`` when None.
        malformed: ``"error"`` or ``"skip"`` (``Malformed``).
        format: of all sources; by their names and contents when None.

    Returns:
        For each split what became of its rows. Rows of train that are in valid or test too are
        counted and kept, as published splits have such rows. Printed, too.

    Raises:
        UsageError: malformed rows that are not to be skipped, nothing left of a split, or only
            one label. All faults are found before it is raised.
    """
    shares = _shares(sources, held_out)
    wrong = Malformed(malformed)
    counts = {split: Counter({"read": 0, "kept": 0}) for split in SPLITS}
    hashes = {split: array("q") for split in SPLITS}
    labels: dict[str, Counter] = {split: Counter() for split in SPLITS}
    seen: set[str] = set()
    out.mkdir()
    with ExitStack() as stack:
        texts = {split: _open(stack, out, split, preparation.inputs) for split in SPLITS}

        def read(split: str) -> Iterator[Row]:
            rows = read_rows(sources[split], preparation, wrong, counts[split], format)
            return with_progress(rows, split)

        def write(split: str, row: Row) -> None:
            for file, text in zip(texts[split], (*row.inputs, row.label)):
                file.write(f"{text}\n")
            hashes[split].append(hash(row.inputs))
            counts[split]["kept"] += 1
            labels[split][str(row.label)] += 1

        for row in read("train"):
            split = _side(row.inputs[0], shares)
            seen.add(str(row.label))
            write(split, row)
            if split != "train":
                counts["train"][f"held out for {split}"] += 1
                counts[split]["read"] += 1
        if preparation.labels is None and not wrong.faults.messages:
            if len(seen) < 2:
                found = ", ".join(sorted(seen)) or "none"
                wrong.faults.add(f"{sources['train']}: it needs two labels or more, got {found}")
            else:
                preparation = replace(preparation, labels=tuple(sorted(seen)))
        for split in SPLITS[1:]:
            if split in sources:
                for row in read(split):
                    write(split, row)
    wrong.check()  # before what follows from it
    for split, tally in counts.items():
        if not tally["kept"]:
            source = sources.get(split, sources["train"])
            wrong.faults.add(f"{source}: nothing is left of {split}: {told(tally, 'rows')}")
    wrong.check()
    elsewhere = np.concatenate([_array(hashes[split]) for split in SPLITS[1:]])
    repeats = int(np.isin(_array(hashes["train"]), elsewhere).sum())
    counts["train"]["also in valid or test (kept)"] = repeats
    for split, tally in counts.items():
        tally.update({f"label {label}": labels[split][label] for label in preparation.labels or ()})
    report(out, counts, "rows")
    _tell_rare_labels(labels)
    preparation.write(out / PREPARATION)
    return counts


class Vocabulary(NamedTuple):
    """Words of a dictionary in its order with their counts in train, and their vectors.

    Attributes:
        counts: of each word; 0 where only other splits have it.
        words, vectors: those that have a vector, and words x dim, float32; both empty without.
    """

    counts: Mapping[str, int]
    words: Sequence[str]
    vectors: np.ndarray


def build_dictionary(
    text: Path, vectors: Path | None = None, min_count: int | None = None
) -> Vocabulary:
    """The words of train that are frequent, and all words of any split that have a vector.

    Args:
        text: as `take` makes it.
        vectors: see ``vectors.read_vectors``; coverage is printed.
        min_count: how often a word without a vector has to be in train; 2 when None if there
            are vectors, else 1.

    Raises:
        UsageError: malformed vectors, or none of a word of the text; or no word is left.
    """
    if min_count is None:
        min_count = 1 if vectors is None else 2
    if min_count < 1:
        raise ArgumentError("min_count", min_count, "a whole number >= 1")
    train, everywhere = _count_words(text, "train"), count_words(text)
    words: list[str] = []
    matrix: np.ndarray = np.zeros((0, 0), dtype=np.float32)
    if vectors is not None:
        words, matrix = read_vectors(vectors, everywhere.keys())
        print(f"      {coverage(set(words), everywhere)}", flush=True)
        if not words:
            raise UsageError(f"{vectors}: no word of the text has a vector there")
    chosen = {word for word, count in train.items() if count >= min_count}.union(words)
    if not chosen:
        raise UsageError(f"min_count {min_count}: no word is as frequent in the training text")
    order = sorted(chosen, key=lambda word: (-train[word], word))
    return Vocabulary({word: train[word] for word in order}, words, matrix)


def count_words(text: Path) -> Counter:
    """How often each word is in the inputs of all splits; `text` as `take` makes it."""
    return sum((_count_words(text, split) for split in SPLITS), Counter())


def write_dictionary(path: Path, counts: Mapping[str, int]) -> None:
    """As fairseq's ``Dictionary`` does: a word and its count a line."""
    with open(path, "w", encoding="utf-8", newline="\n") as file:
        for word, count in counts.items():
            file.write(f"{word} {count}\n")


def preprocess_commands(text: Path, out: Path, inputs: int) -> list[list[str]]:
    """``fairseq-preprocess`` for each column, to be run in the folder that `out` is in.

    The dictionary of a column is in its folder already. Paths are relative: fairseq takes a comma
    in a prefix for the end of one of several.
    """
    commands = []
    workers = str(max(1, cores() // inputs))  # labels take no time
    for column in columns(inputs):
        folder = os.path.join(out.name, column)
        arguments = ["--only-source", "--srcdict", os.path.join(folder, "dict.txt")]
        arguments += ["--destdir", folder, "--workers", workers]
        for split in SPLITS:
            prefix = os.path.relpath(text / f"{split}.{column}", out.parent)
            arguments += [f"--{split}pref", prefix]
        commands.append(command("fairseq-preprocess", *arguments))
    return commands


def binarise(
    text: Path,
    out: Path,
    vectors: Path | None = None,
    min_count: int | None = None,
    locks: Sequence[int] = (),
) -> None:
    """Make a data folder as that of fairseq's task ``sentence_prediction``.

    Args:
        text: as `take` makes it.
        out: is made; gets ``input0``, ``input1`` (of pairs, with the same dictionary), ``label``,
            ``preparation.json``, where there are vectors those of its words as ``vectors.txt``,
            and logs.
        vectors, min_count: as for `build_dictionary`.
        locks: as for ``jobs.run``.

    Raises:
        UsageError: malformed vectors.
        StageError: fairseq failed; names the log.
    """
    out.mkdir()
    preparation = Preparation.read(text / PREPARATION)
    vocabulary = build_dictionary(text, vectors, min_count)
    labels = _count_words(text, "train", ["label"])
    for column in columns(preparation.inputs):
        (out / column).mkdir()
        of_labels = {label: labels[label] for label in preparation.labels or ()}
        counts = of_labels if column == "label" else vocabulary.counts
        write_dictionary(out / column / "dict.txt", counts)
    if vectors is not None:
        write_vectors(out / VECTORS, vocabulary.words, vocabulary.vectors)
    del vocabulary  # fairseq needs the memory
    chains = []
    commands = preprocess_commands(text, out, preparation.inputs)
    for column, arguments in zip(columns(preparation.inputs), commands):
        log = out / f"binarise.{column}.log"
        job = Job(arguments, log, out.parent, lambda: State(0.0, "fairseq-preprocess"))
        chains.append(Chain(column, iter([job])))
    run(chains, locks)
    preparation.write(out / PREPARATION)


def columns(inputs: int) -> list[str]:
    """Files of a split, and folders of the binary data."""
    return [*(f"input{number}" for number in range(inputs)), "label"]


def _open(stack: ExitStack, out: Path, split: str, inputs: int) -> list[IO[str]]:
    """Files of one split, UTF-8 with line feeds."""
    return [
        stack.enter_context(open(out / f"{split}.{column}", "w", encoding="utf-8", newline="\n"))
        for column in columns(inputs)
    ]


def _shares(sources: Mapping[str, Path], held_out: Mapping[str, float] | None) -> dict[str, float]:
    """Parts of train for the splits that have no source.

    Raises:
        UsageError: a split has neither or both, or the parts leave nothing.
    """
    wanted = [split for split in SPLITS[1:] if split not in sources]
    if held_out is None:
        return {split: HELD_OUT[split] for split in wanted}
    for split, share in held_out.items():
        if split not in SPLITS[1:]:
            raise ArgumentError("a split that is held out", split, "valid or test")
        if split in sources:
            raise UsageError(f"{split} has a file of its own: nothing can be held out for it")
        if not 0 < share < 1:
            raise ArgumentError(f"the part of train for {split}", share, "between 0 and 1")
    missing = [split for split in wanted if split not in held_out]
    if missing:
        raise UsageError(f"{missing[0]} needs a file, or a part of train that is held out for it")
    if sum(held_out.values()) >= 1:
        given = ", ".join(f"{split} {share}" for split, share in held_out.items())
        raise UsageError(f"parts held out of train must leave some of it, got {given}")
    return {split: held_out[split] for split in wanted}


def _side(text: str, shares: Mapping[str, float]) -> str:
    """The split of rows with this first input."""
    point = int.from_bytes(hashlib.sha256(text.encode()).digest()[:8], "big") / 2**64
    for split, share in shares.items():
        if point < share:
            return split
        point -= share
    return "train"


def _tell_rare_labels(labels: Mapping[str, Counter]) -> None:
    """Of headers and misspellings, which are classes of their own unless labels are given."""
    for label, count in sum(labels.values(), Counter()).items():
        if count == 1:
            print(f"      warning: only one row has the label {label!r}", flush=True)


def _array(hashes: array) -> np.ndarray:
    return np.frombuffer(hashes, dtype=np.int64)


def _count_words(text: Path, split: str, of: Iterable[str] | None = None) -> Counter:
    """Of all inputs, or of some columns."""
    found = of or sorted(path.suffix[1:] for path in text.glob(f"{split}.input?"))
    counts: Counter = Counter()
    for column in found:
        with open(text / f"{split}.{column}", encoding="utf-8", newline="\n") as lines:
            for line in lines:
                counts.update(line.split())
    return counts
