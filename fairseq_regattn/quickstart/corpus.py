"""From the corpus inside the package to binary data that fairseq trains on."""

from __future__ import annotations

import gzip
import os
import subprocess
from collections import defaultdict
from pathlib import Path

import fairseq_regattn
from fairseq_regattn.recipes.stages import StageError, produce

PACKAGED = Path(fairseq_regattn.__file__).parent / "data" / "verses.en-es.tsv.gz"
SOURCE, TARGET = "es", "en"
PIECES = 3000
"""Size of the vocabulary of subwords that both languages share."""


def prepare(corpus: Path, folder: Path, bin_folder: Path, pieces: int = PIECES) -> list[str]:
    """Extract, learn subwords, binarise. What is there already is left alone.

    Args:
        corpus: gzipped TSV of split, reference, English, Spanish.
        folder: gets ``text/`` (``test.es``, ``test.en``, ``test.names``, ...), and ``pieces/``
            (the same in subwords, and ``spm.model``).
        bin_folder: data folder for fairseq, with ``preprocess.log``.
        pieces: how many subwords to learn.

    Returns:
        The names of what had to be made.
    """
    text, subwords = folder / "text", folder / "pieces"
    stages = (
        (text, lambda path: extract(corpus, path)),
        (subwords, lambda path: learn_subwords(text, path, pieces)),
        (bin_folder, lambda path: binarise(subwords, path)),
    )
    return [target.name for target, make in stages if produce(target, make)]


def extract(corpus: Path, folder: Path) -> None:
    """One file a split and language, and one with the names of the verses."""
    files: dict[str, list[str]] = defaultdict(list)
    with gzip.open(corpus, "rt", encoding="utf-8") as lines:
        for line in lines:
            split, name, english, spanish = line.rstrip("\n").split("\t")
            files[f"{split}.names"].append(name)
            files[f"{split}.en"].append(english)
            files[f"{split}.es"].append(spanish)
    folder.mkdir()
    for name, content in files.items():
        _write(folder / name, content)


def learn_subwords(text: Path, folder: Path, pieces: int) -> None:
    """A sentencepiece model of both languages together, and all splits in its pieces."""
    import sentencepiece

    folder.mkdir()
    model = folder / "spm.model"
    sentencepiece.SentencePieceTrainer.train(
        input=[str(text / f"train.{language}") for language in (SOURCE, TARGET)],
        model_prefix=str(model.with_suffix("")),
        vocab_size=pieces,
        character_coverage=1.0,
        num_threads=1,  # the same pieces on every machine
        minloglevel=2,
    )
    processor = sentencepiece.SentencePieceProcessor(model_file=str(model))
    for split in ("train", "valid", "test"):
        for language in (SOURCE, TARGET):
            lines = read_lines(text / f"{split}.{language}")
            encoded = processor.encode(lines, out_type=str)
            _write(folder / f"{split}.{language}", [" ".join(line) for line in encoded])


def binarise(subwords: Path, folder: Path) -> None:
    """``fairseq-preprocess`` with one dictionary for both languages."""
    from fairseq_regattn.recipes.jobs import command, environment

    # Relative paths: fairseq takes a comma in a prefix, or a colon in a data folder, for the
    # end of one of several.
    arguments = ["-s", SOURCE, "-t", TARGET, "--joined-dictionary", "--destdir", folder.name]
    for split in ("train", "valid", "test"):
        arguments += [f"--{split}pref", os.path.relpath(subwords / split, folder.parent)]
    folder.mkdir()
    log = folder / "quickstart.log"
    with open(log, "w", encoding="utf-8") as out:
        done = subprocess.run(
            command("fairseq-preprocess", *arguments),
            stdout=out,
            stderr=subprocess.STDOUT,
            env=environment(),
            cwd=folder.parent,
        )
    if done.returncode:
        raise StageError(f"fairseq-preprocess failed: see {log}")


def read_lines(path: Path) -> list[str]:
    """Lines without their ends; only a line feed ends a line."""
    return path.read_text(encoding="utf-8").split("\n")[:-1]


def _write(path: Path, lines: list[str]) -> None:
    path.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
