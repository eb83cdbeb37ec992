"""Word vectors as GloVe and word2vec write them: read by streaming, only the words needed."""

from __future__ import annotations

import math
import os
import re
import zipfile
from array import array
from collections import Counter
from collections.abc import Collection, Container, Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import chain, islice
from pathlib import Path
from typing import IO

import numpy as np

from fairseq_regattn.classification.sources import BROKEN
from fairseq_regattn.errors import UsageError
from fairseq_regattn.recipes.progress import with_progress
from fairseq_regattn.recipes.stages import partial_of
from fairseq_regattn.recipes.text import open_packed

HEADER = re.compile(rb"\d+ (\d+)")
"""word2vec's first line: how many words, of how many dimensions."""
PROBED = 10
"""Lines that tell the dimension: some words of GloVe have spaces inside."""
WHITE = b" \t\r\n"
USUAL = 300

Vectors = tuple[list[str], np.ndarray]


def read_vectors(path: Path, wanted: Collection[str], dim: int | None = None) -> Vectors:
    """Vectors of some words; of a word that comes twice, the first.

    Numbers are counted from the end of a line, as words may have spaces inside.

    Args:
        path: text with a word and its numbers a line, as it is or packed (``.gz``, ``.zip``).
        wanted: words.
        dim: numbers of each word; told by the first lines when None.

    Returns:
        The words that were found, in the order of the file, and their vectors,
        words x dim, float32.

    Raises:
        UsageError: no such file, or a line of it is malformed; names file and line. Of words that
            are not wanted only the number of columns is looked at.
    """
    keys = {word.encode(): word for word in wanted}
    words: list[str] = []
    numbers = array("f")
    name, number = str(path), 0
    try:
        with _open(path, dim) as (file, name):
            lines, dim = _probed(file, name, dim)
            for number, line in enumerate(with_progress(lines, "vectors"), start=1):
                if number == 1 and _is_header(line, dim):
                    continue
                place = f"{name}:{number}"
                word = _word(line.strip(WHITE), dim, place)
                if word in keys:
                    words.append(keys.pop(word))
                    numbers.extend(_numbers(line.split()[-dim:], place))
    except BROKEN as error:
        place = f"{name}:{number + 1}"
        raise UsageError(f"{place}: the file cannot be unpacked ({error})") from None
    return words, np.frombuffer(numbers, dtype=np.float32).reshape(len(words), dim)


def coverage(found: Container[str], counts: Mapping[str, int]) -> str:
    """How many words have a vector, and of how many tokens.

    Args:
        found: words with a vector.
        counts: how often each word is in the text.
    """
    known = [count for word, count in counts.items() if word in found]
    tokens = 100 * sum(known) / max(1, sum(counts.values()))
    return f"vectors: {len(known):,} of {len(counts):,} words ({tokens:.1f} % of the tokens)"


def write_vectors(path: Path, words: Sequence[str], vectors: np.ndarray) -> None:
    """As GloVe does, so that `read_vectors` gives the same numbers back.

    Args:
        vectors: words x dim, float32.
    """
    with open(partial_of(path), "w", encoding="utf-8", newline="\n") as file:
        for word, vector in zip(words, vectors):
            file.write(f"{word} {' '.join(_shortest(vector))}\n")
    os.replace(partial_of(path), path)


def _shortest(vector: np.ndarray) -> list[str]:
    """Six digits, as GloVe has, where they are enough; nine are for any float32."""
    texts = [f"{value:.6g}" for value in vector.tolist()]
    exact = np.array([float(text) for text in texts], dtype=np.float32) == vector
    if exact.all():
        return texts
    pairs = zip(texts, exact, vector.tolist())
    return [text if same else f"{value:.9g}" for text, same, value in pairs]


@contextmanager
def _open(path: Path, dim: int | None) -> Iterator[tuple[IO[bytes], str]]:
    """The text, and its name for messages."""
    if not path.is_file():
        raise UsageError(f"{path}: no such file")
    if path.suffix != ".zip":
        with open_packed(path) as file:
            yield file, str(path)
        return
    with zipfile.ZipFile(path) as archive:
        name = _member(path, archive.namelist(), dim or USUAL)
        with archive.open(name) as file:
            yield file, f"{path}/{name}"


def _member(path: Path, names: Sequence[str], dim: int) -> str:
    """The only text, or that of the dimension."""
    texts = [name for name in names if name.endswith((".txt", ".vec")) and "__MACOSX" not in name]
    fitting = [name for name in texts if name.endswith(f"{dim}d.txt")]
    for found in (texts, fitting):
        if len(found) == 1:
            return found[0]
    raise UsageError(
        f"{path} must hold one file .txt or .vec, or one whose name ends in {dim}d.txt, "
        f"got {', '.join(names) or 'none'}"
    )


def _probed(file: IO[bytes], name: str, dim: int | None) -> tuple[Iterator[bytes], int]:
    """All lines, and how many numbers they have: what most of the first lines have."""
    first = list(islice(file, PROBED))
    columns = [len(line.split()) for line in first]
    if dim is None:
        if columns and HEADER.fullmatch(first[0].strip(WHITE)):
            columns = columns[1:] or columns
        common = Counter(columns).most_common()
        most = max((columns for columns, n in common if n == common[0][1]), default=0)
        if most < 2:
            raise UsageError(f"{name}:1: no line of a word and its numbers")
        dim = most - 1
    return chain(first, file), dim


def _is_header(line: bytes, dim: int) -> bool:
    found = HEADER.fullmatch(line.strip(WHITE))
    return found is not None and int(found[1]) == dim


def _word(line: bytes, dim: int, place: str) -> bytes:
    """What stands before the numbers."""
    spaces = line.count(b" ")
    if spaces == dim:
        return line[: line.find(b" ")]
    parts = line.rsplit(None, dim)
    if len(parts) <= dim:
        raise UsageError(f"{place}: {len(parts)} columns instead of a word and {dim} numbers")
    return parts[0]


def _numbers(fields: Sequence[bytes], place: str) -> list[float]:
    try:
        numbers = [float(field) for field in fields]
    except ValueError:
        numbers = [math.nan]
    if not all(map(math.isfinite, numbers)):
        wrong = next(field for field in fields if not _is_number(field))
        raise UsageError(f"{place}: {wrong.decode(errors='replace')!r} is not a finite number")
    return numbers


def _is_number(field: bytes) -> bool:
    try:
        return math.isfinite(float(field))
    except ValueError:
        return False
