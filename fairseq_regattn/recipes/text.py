"""A parallel corpus as plain text: found, checked, cleaned.

Training text is streamed: only validation and test sentences are held in memory.
"""

from __future__ import annotations

import codecs
import gzip
import json
import re
import zlib
from array import array
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from itertools import zip_longest
from pathlib import Path
from typing import IO

import numpy as np

from fairseq_regattn.analysis.links import read_links as read_gold
from fairseq_regattn.errors import UsageError
from fairseq_regattn.recipes.progress import with_progress

SPLITS = ("train", "valid", "test")

SEPARATORS = re.compile("[\r\v\f\x1c-\x1e\x85\u2028\u2029]")
"""What Python's ``splitlines`` takes for the end of a line, and fairseq does not."""
CONTROLS = re.compile("[\x00-\x08\x0e-\x1b\x1f\x7f-\x84\x86-\x9f]")

SPECIAL = re.compile(r"(?<!\S)(?:<s>|</s>|<pad>|<unk>)(?!\S)")
"""Words that stand for something else in a dictionary of fairseq."""
SPECIAL_BUT_UNKNOWN = re.compile(r"(?<!\S)(?:<s>|</s>|<pad>)(?!\S)")
MARK = re.compile(r"@@(?!\S)|▁")
"""What marks subwords. Scores are not made of them, so a model must not learn to write them."""

Pair = tuple[str, str]


class Faults:
    """What is wrong with the files: all of it is looked for, and told at once."""

    SHOWN = 10

    def __init__(self) -> None:
        self.messages: list[str] = []
        self.more = 0

    def add(self, message: str) -> None:
        if len(self.messages) < self.SHOWN:
            self.messages.append(message)
        else:
            self.more += 1

    def check(self) -> None:
        """
        Raises:
            UsageError: there were any.
        """
        more = [f"and {self.more:,} more"] if self.more else []
        if self.messages:
            raise UsageError("\n".join([*self.messages, *more]))


def find_folder(
    data: Path,
    source: str,
    target: str,
    files: Mapping[str, str],
    splits: Sequence[str] = SPLITS,
) -> Path:
    """Where the text of a pair lies: the folder itself, or one for the pair in it.

    Args:
        data: what the user gave.
        files: names before the language, for train, valid and test.
        splits: those that are wanted.

    Raises:
        UsageError: none of the files is in any of them; names what was looked for.
    """
    folders = [data, data / f"{source}-{target}", data / f"{target}-{source}"]
    names = [f"{files[split]}.{lang}" for split in splits for lang in (source, target)]
    for folder in folders:
        if any(_existing(folder / name) for name in names):
            return folder
    raise UsageError(
        f"{data} has no text for {source}-{target}: looked for {', '.join(names)} "
        f"(each may end in .gz) there and in its folders {source}-{target} and {target}-{source}"
    )


def corpus_files(
    folder: Path,
    source: str,
    target: str,
    files: Mapping[str, str],
    gold: str | None = None,
    more: Sequence[str] = (),
    splits: Sequence[str] = SPLITS,
) -> list[Path]:
    """All files that ``take`` would read, of those that exist."""
    names = [f"{files[split]}.{language}" for split in splits for language in (source, target)]
    names += [f"{files['test']}.{ending}" for ending in ("names", *more)]
    names += [gold] if gold else []
    return [path for name in names if (path := _existing(folder / name)) is not None]


def take(
    folder: Path,
    out: Path,
    source: str,
    target: str,
    files: Mapping[str, str],
    gold: str | None = None,
    more: Sequence[str] = (),
    splits: Sequence[str] = SPLITS,
    unknown: bool = False,
    original: str | None = None,
) -> dict[str, Counter]:
    """Check a corpus and copy it, as ``train.ro``, ``train.en``, ... and ``counts.json``.

    Test sets stay whole. Training pairs are dropped where the pair is also in the validation or
    test set, or the source sentence in the test set (but for white space); training and validation
    pairs with an empty side, a word that fairseq has another use for, or a mark of subwords.

    Args:
        folder: has ``<files[split]>.<language>``, or the same with ``.gz``. Names of the test
            sentences are copied from ``<files["test"]>.names`` if that is there.
        out: is made.
        source, target: languages, which are the endings of the files.
        files: names before the language, for train, valid and test.
        gold: file in `folder` with the alignments of the test set, which becomes ``test.links``.
        more: endings of further files of the test set, a line a pair: other references.
        splits: what is taken, ``test`` at least.
        unknown: ``<unk>`` may stand in the text, for words that nobody knows.
        original: the one of `more` that has the words of the source before they were changed.

    Returns:
        For each split how many pairs were read, kept and dropped, and why. Printed, too.

    Raises:
        UsageError: missing files, invalid UTF-8, sides of unequal length, empty lines in the test
            set, other numbers of words in `original`, nothing left of a split. All faults are found
            before it is raised.
    """
    if source == target:
        raise UsageError(f"source and target must be two languages, got {source!r} for both")
    faults = Faults()
    paths = {
        (split, language): _find(folder / f"{files[split]}.{language}", faults)
        for split in splits
        for language in (source, target)
    }
    beside = {name: _find(folder / f"{files['test']}.{name}", faults) for name in more}
    links = _find(folder / gold, faults) if gold else None
    faults.check()

    out.mkdir()
    counts = {split: Counter({"read": 0, "kept": 0}) for split in splits}
    special = SPECIAL_BUT_UNKNOWN if unknown else SPECIAL

    def read(split: str) -> Iterator[Pair]:
        yield from _read_pairs(
            (paths[split, source], paths[split, target]), split, faults, counts[split], special
        )

    def write(split: str, pairs: Iterable[Pair]) -> None:
        write_pairs(out, split, (source, target), pairs)
        if not counts[split]["kept"]:
            faults.add(f"{paths[split, source]}: nothing is left of {split}: {told(counts[split])}")

    held_out = {split: list(read(split)) for split in splits if split != "train"}
    for split, pairs in held_out.items():
        write(split, pairs)
    if "train" in splits:
        write("train", _new(read("train"), held_out, counts["train"]))
    names = _existing(folder / f"{files['test']}.names")
    for name, path in {"links": links, "names": names, **beside}.items():
        if path is not None:
            lines = list(read_lines(path, faults, Counter()))
            if len(lines) != counts["test"]["read"]:
                faults.add(f"{path} has {len(lines):,} lines, test {counts['test']['read']:,}")
            if name in beside:
                for number, line in enumerate(lines, start=1):
                    _check_test_line(line, f"{path}:{number}", faults, special)
            if name == original and not faults.messages:
                for number, (line, (text, _)) in enumerate(zip(lines, held_out["test"]), start=1):
                    words, wanted = len(line.split()), len(text.split())
                    if words != wanted:
                        has = f"{words} words, {paths['test', source]}:{number} {wanted}"
                        faults.add(f"{path}:{number} has {has}: one for each of them is needed")
            (out / f"test.{name}").write_bytes("".join(f"{s}\n" for s in lines).encode())
    if links is not None and not faults.messages:
        _check_links(links, held_out["test"])
    faults.check()
    report(out, counts)
    return counts


def write_pairs(
    out: Path, split: str, languages: tuple[str, str], pairs: Iterable[tuple[str, str]]
) -> None:
    """Two files, line by line, UTF-8 with line feeds."""
    with ExitStack() as stack:
        sides = [
            stack.enter_context(open(out / f"{split}.{lang}", "w", encoding="utf-8", newline="\n"))
            for lang in languages
        ]
        for pair in pairs:
            for file, text in zip(sides, pair):
                file.write(f"{text}\n")


def report(out: Path, counts: Mapping[str, Counter], rows: str = "pairs") -> None:
    """Print what became of each split, and write it to ``counts.json``."""
    for split, tally in counts.items():
        print(f"      {split}: {told(tally, rows)}", flush=True)
    text = json.dumps({split: dict(tally) for split, tally in counts.items()}, indent=1)
    (out / "counts.json").write_text(text + "\n", encoding="utf-8")


def told(tally: Counter, rows: str = "pairs") -> str:
    """What became of a split, for people."""
    rest = [f"{n:,} {what}" for what, n in tally.items() if what not in ("read", "kept") and n]
    return "; ".join([f"{tally['kept']:,} of {tally['read']:,} {rows}", *rest])


def read_lines(path: Path, faults: Faults, tally: Counter) -> Iterator[str]:
    """Lines without their ends and what may not stand inside; only a line feed ends a line."""
    try:
        with open_packed(path) as file:
            for number, raw in enumerate(file, start=1):
                if number == 1:
                    raw = raw.removeprefix(codecs.BOM_UTF8)
                try:
                    text = raw.decode("utf-8")
                except UnicodeDecodeError as error:
                    faults.add(f"{path}:{number}: not UTF-8 (byte {error.start + 1})")
                    text = raw.decode("utf-8", errors="replace")
                yield clean(text.rstrip("\r\n"), tally)
    except (EOFError, gzip.BadGzipFile, zlib.error) as error:
        faults.add(f"{path}: not a whole gzip file ({error})")


def clean(text: str, tally: Counter) -> str:
    """Without white space around it, and with spaces for what may not stand inside a line."""
    if text.isprintable():
        return text.strip()
    for pattern, what in (
        (SEPARATORS, "lines with line separators inside (now spaces)"),
        (CONTROLS, "lines with control characters (now spaces)"),
    ):
        text, replaced = pattern.subn(" ", text)
        tally[what] += bool(replaced)
    return text.strip()


def _read_pairs(
    paths: tuple[Path, Path],
    split: str,
    faults: Faults,
    tally: Counter,
    special: re.Pattern[str],
) -> Iterator[Pair]:
    """Pairs without an empty side, and without words that match `special`."""
    lengths = [0, 0]
    sides = [read_lines(path, faults, tally) for path in paths]
    for source, target in with_progress(zip_longest(*sides), split):
        lengths[0] += source is not None
        lengths[1] += target is not None
        if source is None or target is None:
            continue
        tally["read"] += 1
        if split == "test":
            for path, text in zip(paths, (source, target)):
                _check_test_line(text, f"{path}:{tally['read']}", faults, special)
        if not source or not target:
            tally["dropped: empty line on a side"] += 1
        elif special.search(source) or special.search(target):
            tally["dropped: a word that fairseq has another use for, such as <pad>"] += 1
        elif MARK.search(source) or MARK.search(target):
            tally["dropped: a mark of subwords, @@ or ▁"] += 1
        else:
            tally["kept"] += 1
            yield source, target
    if lengths[0] != lengths[1]:
        faults.add(
            f"{paths[0]} has {lengths[0]:,} lines, {paths[1]} {lengths[1]:,}: line n of one must "
            "translate line n of the other"
        )


def _check_links(path: Path, pairs: Sequence[Pair]) -> None:
    """
    Raises:
        UsageError: a line is malformed, or a link is of a word that is not there.
    """
    for number, (links, pair) in enumerate(zip(read_gold(path), pairs), start=1):
        words = [len(text.split()) for text in pair]
        for link in sorted(links.possible):
            if any(index >= count for index, count in zip(link, words)):
                raise UsageError(
                    f"{path}:{number}: no link can be {link[0]}-{link[1]} between {words[0]} and "
                    f"{words[1]} words, counted from 0"
                )


def _check_test_line(text: str, place: str, faults: Faults, special: re.Pattern[str]) -> None:
    """Test sets stay whole, so what cannot be translated or scored is a fault."""
    if not text:
        faults.add(f"{place}: empty line in the test set")
    for what, pattern in (("word that fairseq has another use for", special), ("subword", MARK)):
        found = pattern.search(text)
        if found:
            faults.add(f"{place}: a {what} in the test set: {found[0].strip()!r}")


def _new(
    pairs: Iterable[Pair], held_out: Mapping[str, list[Pair]], tally: Counter
) -> Iterator[Pair]:
    """Training pairs that are not held out; those that repeat are kept, and counted."""
    tested = {_key(source) for source, _ in held_out["test"]}
    known = {(_key(s), _key(t)) for split in held_out.values() for s, t in split}
    hashes = array("q")  # 8 bytes a pair
    for pair in pairs:
        key = _key(pair[0]), _key(pair[1])
        if key in known:
            tally["dropped: also in the validation or test set"] += 1
        elif key[0] in tested:
            tally["dropped: source sentence also in the test set"] += 1
        else:
            hashes.append(hash(key))
            yield pair
            continue
        tally["kept"] -= 1
    repeats = len(hashes) - len(np.unique(np.frombuffer(hashes, dtype=np.int64)))
    tally["repeat another training pair (kept)"] = repeats


def _key(text: str) -> str:
    return " ".join(text.split())


def _existing(path: Path) -> Path | None:
    """The file, or the same with ``.gz``."""
    packed = path.with_name(f"{path.name}.gz")
    return next((found for found in (path, packed) if found.is_file()), None)


def _find(path: Path, faults: Faults) -> Path:
    found = _existing(path)
    if found is None:
        faults.add(f"{path}: no such file, nor {path.name}.gz")
    return found or path


def open_packed(path: Path) -> IO[bytes]:
    """A file, or what is in it where it is packed with gzip."""
    if path.suffix == ".gz":
        return gzip.open(path, "rb")  # type: ignore[return-value]
    return open(path, "rb")
