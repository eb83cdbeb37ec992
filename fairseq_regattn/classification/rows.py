"""Rows of labelled text, one or two texts each: checked, cleaned, tokenised.

Every source is streamed. A row that is not what it should be is told with its file and line.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import IO, NamedTuple, Optional

from fairseq_regattn.classification.malformed import Malformed
from fairseq_regattn.classification.sources import (
    FORMATS,
    Record,
    aligned,
    find_format,
    records,
    stream,
)
from fairseq_regattn.errors import ArgumentError, UsageError
from fairseq_regattn.recipes.stages import rewrite
from fairseq_regattn.recipes.text import SPECIAL, clean

NO_GOLD = "-"
"""The label of SNLI's pairs on which its annotators did not agree."""

TOKENIZERS = ("none", "wordpunct")
WORDPUNCT = re.compile(r"\w+|[^\w\s]+")
"""NLTK's ``WordPunctTokenizer``."""

LEAVES = re.compile(r"\([^\s()]+\s+([^()]+)\)")
"""In a tree of the Penn Treebank a leaf stands alone in its brackets, after its tag."""
COLUMNS = ("gold_label", "sentence1_parse", "sentence2_parse")

Cells = tuple[Optional[str], list[str]]


class Row(NamedTuple):
    """One example.

    Attributes:
        label: None where it is not known.
        inputs: one text or two; tokens between single spaces.
        place: where it was read, ``file:line``.
    """

    label: str | None
    inputs: tuple[str, ...]
    place: str


@dataclass(frozen=True)
class Preparation:
    """How raw text becomes rows: the same for training data and for what is predicted.

    Attributes:
        inputs: texts in a row, 1 or 2.
        labels: in the order of the classes; None: not known yet.
        tokenizer: ``"none"`` splits at white space, ``"wordpunct"`` also at punctuation.
        lowercase: the text is.
    """

    inputs: int
    labels: tuple[str, ...] | None = None
    tokenizer: str = "none"
    lowercase: bool = False

    def __post_init__(self) -> None:
        if self.inputs not in (1, 2):
            raise ArgumentError("inputs", self.inputs, "1 or 2")
        if self.tokenizer not in TOKENIZERS:
            raise ArgumentError("tokenizer", self.tokenizer, " or ".join(TOKENIZERS))
        labels = self.labels
        if labels is not None and (
            len(labels) < 2
            or len(set(labels)) < len(labels)
            or not all(map(_is_label, labels))
            or NO_GOLD in labels
        ):
            raise ArgumentError(
                "labels", ",".join(labels), "two different words or more, none of them - or <pad>"
            )

    @classmethod
    def read(cls, path: Path) -> Preparation:
        """
        Raises:
            UsageError: not such a file.
        """
        try:
            given = json.loads(path.read_text(encoding="utf-8"))
            return replace(cls(**given), labels=tuple(given["labels"]))
        except (ValueError, TypeError, KeyError) as error:
            raise UsageError(f"{path}: not the preparation of a data folder: {error}") from None

    def write(self, path: Path) -> None:
        rewrite(path, (json.dumps(asdict(self), ensure_ascii=False) + "\n").encode())


class _RowError(Exception):
    """Why a row is malformed."""

    def __init__(self, kind: str, detail: str):
        super().__init__(kind, detail)
        self.kind = kind
        self.detail = detail


def tokenise(text: str, tokenizer: str, lowercase: bool) -> list[str]:
    """Tokens of a text; ``none`` splits at white space, ``wordpunct`` also at punctuation."""
    if lowercase:
        text = text.lower()
    return text.split() if tokenizer == "none" else WORDPUNCT.findall(text)


def read_rows(
    path: Path,
    preparation: Preparation,
    malformed: Malformed,
    tally: Counter,
    format: str | None = None,
) -> Iterator[Row]:
    """Rows of one source that have a gold label, one after the other.

    Args:
        path: SNLI's own ``.txt`` or ``.jsonl``, of whose trees the leaves are taken; ``.tsv``
            with label and text, or label, premise and hypothesis; each of them may end in
            ``.gz``. A folder with ``pos`` and ``neg`` (IMDB). A zip with the sentences of Pang
            and Lee (polarity or subjectivity).
        preparation: without `labels`, any word is a label.
        malformed: is told of what is wrong; the caller has to ``check()`` it in the end.
        tally: counts the rows that are read, those without a gold label, and malformed ones.
        format: one of ``FORMATS``; by name and content when None.

    Raises:
        UsageError: no such source, or not one of this kind.
    """
    format = find_format(path, format)
    if preparation.inputs != FORMATS[format].inputs and FORMATS[format].inputs is not None:
        wanted = f"{FORMATS[format].inputs} for {path} ({FORMATS[format].what})"
        raise ArgumentError("inputs", preparation.inputs, wanted)
    parse = _parse_table(preparation.inputs)
    found = records(path, format, malformed.add, tally)
    if format == "jsonl":
        parse = _parse_json
    elif format == "snli":
        header = next(found, None)
        parse = _parse_snli(header, path)
    elif FORMATS[format].inputs == 1:
        parse = _parse_text
    for row in _rows(found, parse, preparation, malformed, tally):
        if row.label is None:
            tally["dropped: no gold label"] += 1
        else:
            yield row


def read_inputs(
    source: Path | IO[bytes],
    preparation: Preparation,
    malformed: Malformed,
    tally: Counter,
) -> Iterator[Row]:
    """Rows to predict, a line each: the texts between tabs, before them the label if it is known.

    Args:
        source: a file, which may end in ``.gz``, or an open one, such as ``sys.stdin.buffer``. Of
            SNLI's own files pairs without a gold label are left out, as by `read_rows`.
        preparation: that of the data which the model was trained on.
        malformed, tally: as for `read_rows`.

    Raises:
        UsageError: no such file.
    """
    if isinstance(source, Path):
        named = source.name.removesuffix(".gz").endswith((".jsonl", ".txt"))
        format = find_format(source, None if named else "tsv")
        if format != "tsv":
            yield from read_rows(source, preparation, malformed, tally, format)
            return
        found = records(source, format, malformed.add, tally)
    else:
        name = str(getattr(source, "name", "input"))
        found = stream(source, name, malformed.add, tally)
    parse = _parse_table(preparation.inputs, labelled=False)
    yield from _rows(found, parse, preparation, malformed, tally)


def read_prepared(
    prefix: str, preparation: Preparation, malformed: Malformed, tally: Counter
) -> Iterator[Row]:
    """Rows of files with a text a line, as ``prepare`` and ``reproduce.sh`` make them.

    Args:
        prefix: of ``prefix.input0``, ``prefix.input1`` of pairs, and ``prefix.label``.
        preparation, malformed, tally: as for `read_inputs`; the text is tokenised already.

    Raises:
        UsageError: a file is missing, or there are more texts in a row than are read.
    """
    inputs = preparation.inputs
    if Path(f"{prefix}.input{inputs}").exists():
        raise UsageError(f"{prefix}.input{inputs}: the data folder is of rows with fewer texts")
    endings = ["label", *(f"input{number}" for number in range(inputs))]
    found = aligned(prefix, endings, malformed.add, tally)
    as_it_is = replace(preparation, tokenizer="none", lowercase=False)
    yield from _rows(found, _parse_table(inputs), as_it_is, malformed, tally)


Parse = Callable[[Record, str], Cells]


def _rows(
    found: Iterable[Record],
    parse: Parse,
    preparation: Preparation,
    malformed: Malformed,
    tally: Counter,
) -> Iterator[Row]:
    for record in found:
        tally["read"] += 1
        try:
            label, texts = parse(record, _decoded(record.raw))
            row = _row(label, texts, record.place, preparation, tally)
        except _RowError as error:
            malformed.add(error.kind, record.place, error.detail, tally)
        else:
            yield row


def _decoded(raw: bytes) -> str:
    try:
        return raw.decode("utf-8").rstrip("\r\n")
    except UnicodeDecodeError as error:
        raise _RowError("not UTF-8", f"byte {error.start + 1}") from None


def _row(
    label: str | None,
    texts: Sequence[str],
    place: str,
    preparation: Preparation,
    tally: Counter,
) -> Row:
    marks: Counter = Counter()
    if label is not None:
        label = clean(label, marks)
        if label == NO_GOLD:
            label = None
    if label is not None:
        _check_label(label, preparation.labels)
    inputs = []
    for name, text in zip(_names(len(texts)), texts):
        text = clean(text, marks)
        if not text.isprintable() and not is_text(text):
            raise _RowError("not UTF-8", f"half a surrogate pair in the {name}")
        text = " ".join(tokenise(text, preparation.tokenizer, preparation.lowercase))
        if not text:
            raise _RowError("empty input", f"the {name} has no words")
        special = SPECIAL.search(text)
        if special:
            raise _RowError("a word that fairseq has another use for", repr(special[0]))
        inputs.append(text)
    tally.update(what for what, number in marks.items() if number)
    return Row(label, tuple(inputs), place)


def _names(inputs: int) -> tuple[str, ...]:
    return ("text",) if inputs == 1 else ("premise", "hypothesis")


def is_text(text: str) -> bool:
    """JSON can name halves of surrogate pairs, which no file can hold."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def _is_label(label: str) -> bool:
    return label.split() == [label] and SPECIAL.fullmatch(label) is None and is_text(label)


def _check_label(label: str, labels: Sequence[str] | None) -> None:
    if labels is not None:
        if label not in labels:
            raise _RowError("unknown label", f"{label!r:.100} is none of {', '.join(labels)}")
    elif not _is_label(label):
        raise _RowError(
            "unknown label", f"{label!r:.100} is not one word, or fairseq has a use for it"
        )


def _parse_table(inputs: int, labelled: bool = True) -> Parse:
    def parse(record: Record, text: str) -> Cells:
        cells: list[str] = text.split("\t")
        columns = ", ".join(["label" if labelled else "(label)", *_names(inputs)])
        if len(cells) < inputs + labelled:
            raise _RowError("missing column", f"{len(cells)} instead of {columns}")
        if len(cells) > inputs + 1:
            raise _RowError("too many columns", f"{len(cells)} instead of {columns}")
        label = cells.pop(0) if len(cells) > inputs else None
        return label, cells

    return parse


def _parse_text(record: Record, text: str) -> Cells:
    return record.label, [text]


def _parse_snli(header: Record | None, path: Path) -> Parse:
    """By the names of the columns.

    Raises:
        UsageError: one of them is not in the header.
    """
    if header is None:
        raise UsageError(f"{path}:1: no header with the columns {', '.join(COLUMNS)}")
    names = header.raw.decode("utf-8", errors="replace").rstrip("\r\n").split("\t")
    missing = [name for name in COLUMNS if name not in names]
    if missing:
        raise UsageError(f"{header.place}: the header has no column {' nor '.join(missing)}")
    places = [names.index(name) for name in COLUMNS]

    def parse(record: Record, text: str) -> Cells:
        cells: list[str] = text.split("\t")
        absent = [name for name, place in zip(COLUMNS, places) if place >= len(cells)]
        if absent:
            raise _RowError("missing column", f"{len(cells)} columns, no {absent[0]}")
        label, *trees = (cells[place] for place in places)
        return _leaves(label, trees)

    return parse


def _parse_json(record: Record, text: str) -> Cells:
    try:
        entry = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise _RowError("not JSON", str(error)) from None
    if not isinstance(entry, dict):
        raise _RowError("wrong type", f"{type(entry).__name__} instead of an object")
    for name in COLUMNS:
        if name not in entry:
            raise _RowError("missing key", name)
        if not isinstance(entry[name], str):
            raise _RowError("wrong type", f"{name} must be a string, got {entry[name]!r:.100}")
    label, *trees = (entry[name] for name in COLUMNS)
    return _leaves(label, trees)


def _leaves(label: str, trees: Sequence[str]) -> Cells:
    """SNLI's own tokens."""
    if label.strip() == NO_GOLD:
        return label, ["-" for _ in trees]  # not used, so it need not be whole
    texts = []
    for name, tree in zip(COLUMNS[1:], trees):
        text = " ".join(LEAVES.findall(tree))
        if not tree.strip():
            raise _RowError("empty input", f"{name} is empty")
        if tree.count("(") != tree.count(")"):
            raise _RowError("a parse that is not whole", f"brackets of {name} do not match")
        if not text.strip():
            raise _RowError("a parse without leaves", f"{name}: {tree.strip()[:80]!r}")
        texts.append(text)
    return label, texts
