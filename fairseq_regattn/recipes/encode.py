"""From text to tokens and subwords, and from these to the binary data that fairseq trains on."""

from __future__ import annotations

import multiprocessing
import os
import re
import shutil
import signal
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from functools import partial
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

from fairseq_regattn.analysis.words import join_subwords
from fairseq_regattn.errors import ArgumentError, UsageError
from fairseq_regattn.recipes.jobs import Chain, Job, command, cores, run
from fairseq_regattn.recipes.progress import State, with_progress
from fairseq_regattn.recipes.text import SPLITS, Pair, report, told, write_pairs
from fairseq_regattn.recipes.workspace import read_lines

if TYPE_CHECKING:
    from fairseq_regattn.recipes.recipe import Preprocess

SAMPLE = 5_000_000
"""Lines that subwords are learnt from at most: sentencepiece holds them in memory."""
BATCH = 40_000
"""Lines that are held in memory."""
CHUNK = 2_000
"""Lines that a process tokenises at a time."""
SPECIALS = 4
"""``<s>``, ``<pad>``, ``</s>`` and ``<unk>`` count as words of a fairseq dictionary."""

Encoder = Callable[[list[str]], list[str]]


def encode(
    text: Path,
    out: Path,
    preprocess: Preprocess,
    source: str,
    target: str,
    splits: Sequence[str] = SPLITS,
    models: Sequence[Path] = (),
) -> Mapping[str, Counter]:
    """Tokenise, drop pairs that are too long, split into subwords; ``counts.json`` tells.

    Args:
        text: as ``text.take`` makes it.
        out: is made; gets ``train.ro``, ``train.en``, ..., and where there are subwords
            ``spm.model`` (joined) or ``spm.ro.model`` and ``spm.en.model``. fairseq undoes them
            by ``--bpe sentencepiece``, given the target's model, and ``--tokenizer moses``.
        preprocess: pairs with more than `max_words` tokens on a side, counted before subwords,
            are dropped from the training and validation sets. Test sets stay whole.
        splits: what there is.
        models: of subwords, for source and target or for both, where they were learnt elsewhere.

    Returns:
        For each split how many pairs were read, kept and dropped. Printed, too.

    Raises:
        UsageError: nothing left of a split, or more subwords than the text has.
    """
    out.mkdir()
    languages = (source, target)
    words = out / "words" if preprocess.subwords else out
    words.mkdir(exist_ok=True)
    tokenisers = [_tokeniser(preprocess.tokenizer, language) for language in languages]
    counts = {split: Counter({"read": 0, "kept": 0}) for split in splits}
    for split, tally in counts.items():
        pairs = _encoded(with_progress(_read(text, split, languages), split), tokenisers)
        write_pairs(words, split, languages, _kept(pairs, split, preprocess.max_words, tally))
        if not tally["kept"]:
            raise UsageError(f"nothing is left of {split}: {told(tally)}")
    report(out, counts)
    if preprocess.subwords:
        aligned = (text / "test.links").exists()
        if not models:
            models = _learn_subwords(words, out, preprocess, languages, aligned)
        encoders = [_encoder(models[0]), _encoder(models[-1])]
        for split in splits:
            pairs = with_progress(_read(words, split, languages), f"{split}, subwords")
            write_pairs(out, split, languages, _encoded(pairs, encoders))
        if aligned:
            for language in languages:
                _check_words(words / f"test.{language}", out / f"test.{language}")
        shutil.rmtree(words)
    return counts


def _check_words(words: Path, subwords: Path) -> None:
    """Links made by hand count words, so subwords have to join to just these.

    Raises:
        UsageError: in some line they do not.
    """
    lines = zip(read_lines(words), join_subwords(read_lines(subwords)))
    for number, (before, after) in enumerate(lines, start=1):
        if before.split() != after.split():
            raise UsageError(
                f"test.{words.suffix[1:]}:{number}: subwords make other words of it "
                f"({after!r}), so links made by hand would not fit; set preprocess.subwords=0"
            )


def preprocess_command(
    encoded: Path,
    out: Path,
    preprocess: Preprocess,
    source: str,
    target: str,
    splits: Sequence[str] = SPLITS,
    dictionaries: Path | None = None,
) -> list[str]:
    """``fairseq-preprocess``, to be run in the folder that `out` is in.

    Paths are relative: fairseq takes a comma in a prefix, or a colon in a data folder, for the
    end of one of several.
    """
    arguments = ["-s", source, "-t", target, "--destdir", out.name, "--workers", str(cores())]
    for split in splits:
        arguments += [f"--{split}pref", os.path.relpath(encoded / split, out.parent)]
    if dictionaries is not None:
        for flag, language in (("--srcdict", source), ("--tgtdict", target)):
            arguments += [flag, os.path.relpath(dictionaries / f"dict.{language}.txt", out.parent)]
    elif preprocess.joined:
        arguments.append("--joined-dictionary")
    if not preprocess.subwords and dictionaries is None:
        size = str(preprocess.vocabulary + SPECIALS)
        arguments += ["--nwordssrc", size, "--nwordstgt", size]
    return command("fairseq-preprocess", *arguments)


def binarise(
    encoded: Path,
    out: Path,
    preprocess: Preprocess,
    source: str,
    target: str,
    locks: Sequence[int] = (),
    splits: Sequence[str] = SPLITS,
    dictionaries: Path | None = None,
) -> None:
    """Make the data folder for fairseq.

    Args:
        encoded: as `encode` makes it.
        out: is made; also gets ``binarise.log``.
        locks: as for ``jobs.run``.
        splits: what there is.
        dictionaries: a data folder of fairseq whose dictionaries are used; None: made here.

    Raises:
        StageError: fairseq failed; names the log.
    """
    out.mkdir()
    job = Job(
        preprocess_command(encoded, out, preprocess, source, target, splits, dictionaries),
        out / "binarise.log",
        out.parent,
        lambda: State(0.0, "fairseq-preprocess"),
    )
    run([Chain(f"{source}-{target}", iter([job]))], locks)


def _tokeniser(name: str, language: str) -> Encoder:
    if name == "none":
        return list
    from sacremoses.corpus import NonbreakingPrefixes

    if language not in NonbreakingPrefixes().available_langs:
        print(f"      sacremoses does not know {language!r}: it takes abbreviations from English")
    return partial(_tokenise_all, language=language)


def _tokenise_all(lines: list[str], language: str) -> list[str]:
    """On all cores: sacremoses is slow."""
    parts = [lines[start : start + CHUNK] for start in range(0, len(lines), CHUNK)]
    one = partial(tokenise, language=language)
    if len(parts) < 2:
        return [line for part in parts for line in one(part)]
    ignore = signal.signal, (signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for this process alone
    with multiprocessing.get_context("fork").Pool(min(cores(), len(parts)), *ignore) as pool:
        return [line for part in pool.map(one, parts) for line in part]


def tokenise(lines: list[str], language: str) -> list[str]:
    """What ``fairseq --tokenizer moses`` undoes; no XML entities, as no text here is XML."""
    from sacremoses import MosesTokenizer

    tokenizer = MosesTokenizer(language)
    one = partial(tokenizer.tokenize, aggressive_dash_splits=True, return_str=True, escape=False)
    return [one(line) for line in lines]


def _learn_subwords(
    words: Path, out: Path, preprocess: Preprocess, languages: tuple[str, str], exact: bool
) -> list[Path]:
    """sentencepiece models, one for both languages or one for each; `exact`: no letter changes."""
    import sentencepiece

    groups: dict[str, Sequence[str]] = {f"spm.{language}": [language] for language in languages}
    if preprocess.joined:
        groups = {"spm": languages}
    models = []
    for name, members in groups.items():
        try:
            sentencepiece.SentencePieceTrainer.train(
                sentence_iterator=_sample([words / f"train.{language}" for language in members]),
                model_prefix=str(out / name),
                vocab_size=preprocess.subwords,
                character_coverage=1.0,
                normalization_rule_name="identity" if exact else "nmt_nfkc",
                num_threads=1,  # the same pieces on every machine
                minloglevel=2,
            )
        except RuntimeError as error:
            raise _wrong_size(error, preprocess.subwords, " and ".join(members)) from error
        models.append(out / f"{name}.model")
    return models


def _encoder(model: Path) -> Encoder:
    import sentencepiece

    processor = sentencepiece.SentencePieceProcessor(model_file=str(model))
    return partial(_split_up, model=processor)


def _sample(files: Sequence[Path]) -> Iterator[str]:
    """Every n-th line of the files; sentencepiece's own sample is another each time."""
    with ExitStack() as stack:
        opened = [stack.enter_context(open(path, encoding="utf-8", newline="\n")) for path in files]
        lines = sum(1 for file in opened for _ in file)
        for file in opened:
            file.seek(0)
            for line in islice(file, 0, None, -(-lines // SAMPLE)):
                yield line.rstrip("\n")


def _split_up(lines: list[str], model: Any) -> list[str]:
    return [" ".join(pieces) for pieces in model.encode(lines, out_type=str)]


def _wrong_size(error: RuntimeError, size: int, languages: str) -> UsageError:
    """sentencepiece's two ways to say that the vocabulary does not fit the text."""
    message = str(error)
    for pattern, allowed in (
        (r"Vocabulary size too high .* a value <= (\d+)", "at most"),
        (r"smaller than required_chars\. \d+ vs (\d+)", "at least"),
    ):
        found = re.search(pattern, message)
        if found:
            limit = f"{allowed} {found.group(1)} for the training text of {languages}"
            return ArgumentError("preprocess.subwords", size, limit)
    return UsageError(f"sentencepiece failed with preprocess.subwords={size}: {message}")


def _read(folder: Path, split: str, languages: tuple[str, str]) -> Iterator[Pair]:
    with ExitStack() as stack:
        sides = [
            stack.enter_context(open(folder / f"{split}.{lang}", encoding="utf-8", newline="\n"))
            for lang in languages
        ]
        for source, target in zip(*sides):
            yield source.rstrip("\n"), target.rstrip("\n")


def _encoded(pairs: Iterable[Pair], encoders: Sequence[Encoder]) -> Iterator[Pair]:
    """Both sides by their encoders, a batch at a time."""
    pairs = iter(pairs)
    while batch := list(islice(pairs, BATCH)):
        sides = [encoder(list(side)) for encoder, side in zip(encoders, zip(*batch))]
        yield from zip(*sides)


def _kept(
    pairs: Iterable[Pair], split: str, max_words: int | None, tally: Counter
) -> Iterator[Pair]:
    """Pairs of which no side is empty or too long; all, for the test set."""
    for pair in pairs:
        tally["read"] += 1
        lengths = [len(side.split()) for side in pair]
        if split != "test" and max_words is not None and max(lengths) > max_words:
            tally[f"dropped: more than {max_words} words on a side"] += 1
        elif split != "test" and min(lengths) == 0:
            tally["dropped: no words on a side"] += 1
        else:
            tally["kept"] += 1
            yield pair
