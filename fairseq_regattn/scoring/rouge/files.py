"""Hypotheses and references in files: lines of text, fairseq-generate's output, DUC's folders."""

from __future__ import annotations

import codecs
import gzip
import re
import zlib
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path

from fairseq_regattn.analysis.alignments import read_generate_output
from fairseq_regattn.errors import UsageError
from fairseq_regattn.scoring.translation import SUBWORD

NAME = re.compile(r"((?:[^.]+\.){3}[^.]+)\.([^.]+)((?:\.[^.]+)*)")
"""``D30001.P.10.T.A.APW19981016.0240``: what is before the author, the author, what is after."""

SEE = re.compile(
    r'<a (?:size="[0-9]+" )?name="[0-9]+">\[[0-9]+\]</a>\s+<a href="#[0-9]+" id=[0-9]+>([^<]+)'
)
"""A sentence in the HTML of the Summary Evaluation Environment, at the start of a line."""

TAGGED = re.compile(r"\s*<\w+\s+\w+\s*=")
"""A tag with an attribute at the start of a file."""


@dataclass(frozen=True)
class Corpus:
    """What is to be scored.

    Attributes:
        systems: by name, hypotheses of the documents, a line a sentence.
        references: of the documents, one or more each.
        names: of the documents, which ROUGE-1.5.5 would sort by; None: their numbers from 1.
    """

    systems: dict[str, list[str]]
    references: list[list[str]]
    names: list[str] | None = None


def read_texts(hypotheses: Sequence[str], references: Sequence[str]) -> Corpus:
    """Files of a line a document, UTF-8, gzipped where the name ends in ``.gz``.

    Args:
        hypotheses: a file a system, which is named after it.
        references: line n of each is a reference of line n of the hypotheses.

    Raises:
        UsageError: a file is empty, no UTF-8, no gzip file, has another number of lines than the
            first, or subwords that are not joined.
        OSError: it cannot be opened.
    """
    texts = {path: _checked(path) for path in (*hypotheses, *references)}
    first = hypotheses[0]
    for path, lines in texts.items():
        if len(lines) != len(texts[first]):
            raise UsageError(
                f"{first} has {len(texts[first]):,} lines, {path} {len(lines):,}: line n of each "
                "must be of the same document"
            )
    columns = zip(*(texts[path] for path in references))
    return Corpus({path: texts[path] for path in hypotheses}, [list(column) for column in columns])


def read_generated(paths: Sequence[str]) -> Corpus:
    """Output of ``fairseq-generate`` in the order of the samples.

    Hypotheses are the first D- line of a sample, or H- where there is none; references are the T-
    lines. These are what its ``--scoring`` is given.

    Args:
        paths: a file a system, as for :func:`read_texts`.

    Raises:
        UsageError: a sample is missing, there twice or without reference, or two files have other
            references; as for :func:`read_texts`.
    """
    systems: dict[str, list[str]] = {}
    references: list[str] = []
    for path in paths:
        systems[path], there = _samples(path)
        if references and there != references:
            raise UsageError(f"{path} has other references (T- lines) than {paths[0]}")
        references = there
    return Corpus(systems, [[text] for text in references])


def read_duc(peers: str, models: str, wanted: Sequence[str] = ()) -> Corpus:
    """Folders of summaries in the layout of DUC 2003 and 2004, a file each, a sentence a line.

    Names have at least five fields between points, ``DOCSET.TYPE.SIZE.ASSESSOR.AUTHOR`` and what
    else tells the document. The author of a model is a person (a letter), that of a peer a system
    (a number). What remains of the name without it is the name of the document. Names that begin
    with a point are passed over. Files in SEE's HTML are read as by ROUGE-1.5.5: sentences between
    ``<a name="1">[1]</a> <a href="#1" id=1>`` and the next tag, each on one line. Bytes that are
    no UTF-8 are read, too, as letters outside ASCII.

    Args:
        peers: folder of hypotheses.
        models: folder of references.
        wanted: peers to be read; all where empty.

    Raises:
        UsageError: a name does not fit; a peer lacks a document or has one without a model (which
            ROUGE-1.5.5 passes over), is not there, or is one of the models; a model is by a
            system; a file has other markup, or subwords that are not joined.
        OSError: one cannot be opened.
    """
    by_person, by_peer = _summaries(Path(models)), _summaries(Path(peers))
    for person, summaries in by_person.items():
        if person.isdigit():
            path = next(iter(summaries.values()))
            raise UsageError(f"{path} is by system {person}, but models are by people: letters")
    documents = sorted({document for summaries in by_person.values() for document in summaries})
    in_order = sorted(by_peer, key=lambda peer: (len(peer), peer))
    systems = {}
    for peer in wanted or in_order:
        if peer not in by_peer:
            raise UsageError(f"{peers} has no peer {peer}, only {', '.join(in_order)}")
        _check_peer(peer, by_peer[peer], by_person, documents)
        systems[peer] = [_summary(by_peer[peer][document]) for document in documents]
    references = [
        [
            _summary(by_person[person][document])
            for person in sorted(by_person)
            if document in by_person[person]
        ]
        for document in documents
    ]
    return Corpus(systems, references, documents)


def _lines(path: str) -> Iterator[str]:
    """Lines without their line feed; only that ends a line."""
    unpack = gzip.open if path.endswith(".gz") else open
    with unpack(path, "rb") as file:
        try:
            for number, raw in enumerate(file, start=1):
                if number == 1:
                    raw = raw.removeprefix(codecs.BOM_UTF8)
                try:
                    yield raw.decode().removesuffix("\n")
                except UnicodeDecodeError as error:
                    raise UsageError(
                        f"{path}:{number}: not UTF-8 (byte {error.start + 1})"
                    ) from None
        except (EOFError, gzip.BadGzipFile, zlib.error) as error:
            raise UsageError(f"{path}: not a whole gzip file ({error})") from None


def _checked(path: str) -> list[str]:
    lines = list(_lines(path))
    if not lines:
        raise UsageError(f"{path} is empty")
    for number, line in enumerate(lines, start=1):
        _check_words(line, f"{path}:{number}")
    return lines


def _check_words(text: str, place: str) -> None:
    mark = SUBWORD.search(text)
    if mark:
        raise UsageError(
            f"{place} still has subwords ({mark[0]!r}): join them first, with --bpe or "
            "--post-process of fairseq-generate"
        )


def _samples(path: str) -> tuple[list[str], list[str]]:
    """Hypotheses and references."""
    # alignments and scores, which need their sources, are of no use here
    lines = [line for line in _lines(path) if line[:2] in ("T-", "H-", "D-")]
    try:
        found = read_generate_output(lines)
    except UsageError:
        raise
    except ValueError as error:
        raise UsageError(f"{path}: {error}") from None
    samples: dict[int, tuple[str, str]] = {}
    for number, several in groupby(found, key=lambda hypothesis: hypothesis.sample_id):
        best = next(several)
        if number in samples:
            raise UsageError(f"{path} has sample {number} twice: the output of several runs?")
        if best.reference is None:
            raise UsageError(f"{path} has no reference T-{number} before H-{number}")
        samples[number] = best.text, best.reference
        for kind, text in zip("DT", samples[number]):
            _check_words(text, f"{path}: {kind}-{number}")
    printed = Counter(line[2:].partition("\t")[0] for line in lines if line[0] == "T")
    for number, times in printed.items():
        if times > 1:
            raise UsageError(f"{path} has sample {number} twice: the output of several runs?")
        if samples and not (number.isdigit() and int(number) in samples):
            raise UsageError(f"{path} has T-{number}, but no H-{number} or D-{number}: cut short?")
    if not samples:
        raise UsageError(f"{path} has no hypotheses (H- and D- lines) of fairseq-generate")
    missing = next((number for number in range(len(samples)) if number not in samples), None)
    if missing is not None:
        raise UsageError(
            f"{path} has {len(samples):,} samples up to {max(samples)}, but not sample {missing}: "
            "cut short, or generated without --required-batch-size-multiple 1?"
        )
    hypotheses, references = zip(*(samples[number] for number in range(len(samples))))
    return list(hypotheses), list(references)


def _summaries(folder: Path) -> dict[str, dict[str, Path]]:
    """Files by author and document."""
    found: defaultdict[str, dict[str, Path]] = defaultdict(dict)
    for path in sorted(folder.iterdir()):
        if path.name.startswith("."):
            continue
        name = NAME.fullmatch(path.name)
        if name is None or not path.is_file():
            raise UsageError(
                f"{path} is no file with a name such as D30001.P.10.T.A.APW19981016.0240: "
                "DOCSET.TYPE.SIZE.ASSESSOR.AUTHOR.DOCUMENT"
            )
        found[name[2]][name[1] + name[3]] = path
    if not found:
        raise UsageError(f"{folder} has no summaries")
    return found


def _check_peer(
    peer: str,
    summaries: dict[str, Path],
    by_person: dict[str, dict[str, Path]],
    documents: Sequence[str],
) -> None:
    missing = [document for document in documents if document not in summaries]
    if missing:
        raise UsageError(
            f"peer {peer} lacks {len(missing):,} of {len(documents):,} documents, the first is "
            f"{missing[0]}"
        )
    without = sorted(summaries.keys() - set(documents))
    if without:
        path = summaries[without[0]]
        raise UsageError(f"{path} is of a document without a model, one of {len(without):,}")
    if peer in by_person:
        path = next(iter(by_person[peer].values()))
        raise UsageError(f"peer {peer} also wrote models, such as {path}, of those documents")


def _summary(path: Path) -> str:
    text = path.read_bytes().decode(errors="surrogateescape")
    lines = text.split("\n")
    sentences = [found[1] for found in map(SEE.match, lines) if found]
    if sentences or text.lstrip()[:5].lower() == "<html":
        return "\n".join(sentences)
    if TAGGED.match(text):
        raise UsageError(f"{path}:1: is neither plain text nor SEE's HTML")
    for number, line in enumerate(lines, start=1):
        _check_words(line, f"{path}:{number}")
    return text
