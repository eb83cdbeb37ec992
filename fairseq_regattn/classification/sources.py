"""Files, folders and zips with rows of text: which kind they are, and their lines."""

from __future__ import annotations

import codecs
import gzip
import lzma
import os
import re
import zipfile
import zlib
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from itertools import zip_longest
from pathlib import Path, PurePosixPath
from typing import IO, NamedTuple

from fairseq_regattn.errors import ArgumentError, UsageError
from fairseq_regattn.recipes.text import open_packed

Tell = Callable[[str, str, str, Counter], None]
"""Is told what is wrong: kind, place, detail, and the tally that counts it."""

BROKEN = (
    EOFError,
    gzip.BadGzipFile,
    zlib.error,
    lzma.LZMAError,
    zipfile.BadZipFile,
    RuntimeError,  # a zip that has a password, or is packed in a way that Python does not know
)


class Format(NamedTuple):
    """A kind of source, and how many texts its rows have; None: one or two."""

    what: str
    inputs: int | None


FORMATS = {
    "snli": Format("SNLI's tab-separated text", 2),
    "jsonl": Format("SNLI's JSON lines", 2),
    "tsv": Format("label and text, or label, premise and hypothesis between tabs", None),
    "imdb": Format("a folder with pos/*.txt and neg/*.txt", 1),
    "zip": Format("Pang and Lee's sentences in a zip", 1),
}

MEMBERS = {
    "rt-polarity.pos": "pos",
    "rt-polarity.neg": "neg",
    "quote.tok.gt9.5000": "subjective",
    "plot.tok.gt9.5000": "objective",
}
"""Labels of Pang and Lee's files."""


class Record(NamedTuple):
    """A line, or what takes its place; the label where the file's name tells it."""

    place: str
    raw: bytes
    label: str | None = None


def find_format(path: Path, format: str | None = None) -> str:
    """The kind of a source, one of ``FORMATS``, by its name and its first line.

    Raises:
        UsageError: there is none, or it cannot be told.
    """
    if not path.exists():
        raise UsageError(f"{path}: no such file or folder")
    if format is not None:
        if format not in FORMATS:
            raise ArgumentError("format", format, f"one of {', '.join(FORMATS)}")
        if path.is_dir() != (format == "imdb"):
            kind = "a folder" if path.is_dir() else "a file"
            raise UsageError(f"{path} is {kind}, but {format} is {FORMATS[format].what}")
        return format
    if path.is_dir():
        return "imdb"
    ending = Path(path.name[: -len(".gz")] if path.suffix == ".gz" else path.name).suffix
    if ending in (".jsonl", ".zip"):
        return ending[1:]
    if ending not in (".txt", ".tsv"):
        raise UsageError(
            f"{path}: what it is cannot be told from its name: give it an ending of .txt, .tsv, "
            f".jsonl (each may end in .gz) or .zip, or name the format ({', '.join(FORMATS)})"
        )
    return "snli" if b"gold_label" in _first_line(path).split(b"\t") else "tsv"


def records(path: Path, format: str, tell: Tell, tally: Counter) -> Iterator[Record]:
    """Lines of a source; of SNLI's text the first is the header.

    Raises:
        UsageError: a folder or zip without the files that it should have.
    """
    if format == "imdb":
        yield from _reviews(path)
    elif format == "zip":
        yield from _sentences(path, tell, tally)
    else:
        with open_packed(path) as file:
            yield from stream(file, str(path), tell, tally)


def stream(
    file: IO[bytes], name: str, tell: Tell, tally: Counter, label: str | None = None
) -> Iterator[Record]:
    """Lines of an open file; only a line feed ends a line."""
    number = 0
    try:
        for number, raw in enumerate(file, start=1):
            if number == 1:
                raw = raw.removeprefix(codecs.BOM_UTF8)
            yield Record(f"{name}:{number}", raw, label)
    except BROKEN as error:
        tell("broken file", f"{name}:{number + 1}", f"it cannot be unpacked ({error})", tally)


def aligned(prefix: str, endings: Sequence[str], tell: Tell, tally: Counter) -> Iterator[Record]:
    """Files with a column each, as rows with tabs between the columns.

    Raises:
        UsageError: one of the files is missing.
    """
    names = [f"{prefix}.{ending}" for ending in endings]
    with ExitStack() as stack:
        try:
            files = [stack.enter_context(open(name, "rb")) for name in names]
        except FileNotFoundError as error:
            raise UsageError(f"{error.filename}: no such file") from None
        for number, lines in enumerate(zip_longest(*files), start=1):
            place = f"{prefix}:{number}"
            if None in lines:
                name = names[lines.index(None)]
                tell("missing line", place, f"{name} has only {number - 1:,} lines", tally)
            else:
                yield Record(place, b"\t".join(line.rstrip(b"\r\n") for line in lines))


def source_files(path: Path) -> list[Path]:
    """All files that rows would be read from."""
    if not path.is_dir():
        return [path]
    return [file for label in ("neg", "pos") for file in _texts(path / label)]


def _first_line(path: Path) -> bytes:
    try:
        with open_packed(path) as file:
            return file.readline().removeprefix(codecs.BOM_UTF8).rstrip(b"\r\n")
    except BROKEN:  # will be told when the rows are read
        return b""


def _reviews(folder: Path) -> Iterator[Record]:
    """Files of IMDB; a line break of HTML is a space."""
    for label in ("neg", "pos"):
        for path in _texts(folder / label):
            raw = path.read_bytes().removeprefix(codecs.BOM_UTF8)
            yield Record(str(path), raw.replace(b"<br />", b" "), label)


def _texts(folder: Path) -> list[Path]:
    """In the order of the numbers in their names."""
    if not folder.is_dir():
        raise UsageError(f"{folder.parent} has no folder {folder.name}: {FORMATS['imdb'].what}")
    names = [name for name in os.listdir(folder) if name.endswith(".txt")]
    key = {name: ([int(part) for part in re.findall(r"\d+", name)], name) for name in names}
    return [folder / name for name in sorted(names, key=key.__getitem__)]


def _sentences(path: Path, tell: Tell, tally: Counter) -> Iterator[Record]:
    try:
        archive = zipfile.ZipFile(path)
    except BROKEN as error:
        tell("broken file", f"{path}:1", f"it cannot be unpacked ({error})", tally)
        return
    with archive:
        members = {PurePosixPath(name).name: name for name in archive.namelist()}
        found = [name for name in MEMBERS if name in members]
        if not found:
            raise UsageError(f"{path} has none of the files {', '.join(MEMBERS)}")
        for name in found:
            place = f"{path}/{members[name]}"
            try:
                with archive.open(members[name]) as file:
                    yield from stream(file, place, tell, tally, MEMBERS[name])
            except BROKEN as error:
                tell("broken file", f"{place}:1", f"it cannot be unpacked ({error})", tally)
