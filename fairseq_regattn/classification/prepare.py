"""``prepare``: from labelled rows to the data folder that fairseq trains on."""

from __future__ import annotations

import argparse
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from fairseq_regattn.errors import UsageError

STAGES = ("text", "bin")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Options of the command."""
    from fairseq_regattn.classification.corpus import HELD_OUT
    from fairseq_regattn.classification.malformed import HOW
    from fairseq_regattn.classification.rows import TOKENIZERS
    from fairseq_regattn.classification.sources import FORMATS

    for split in ("train", "valid", "test"):
        parser.add_argument(
            f"--{split}",
            type=Path,
            required=split == "train",
            metavar="SOURCE",
            help="a file, folder or zip"
            if split == "train"
            else f"the same; {HELD_OUT[split]:g} of train when not given",
        )
    parser.add_argument("--out", type=Path, required=True, metavar="DIR", help="gets text and bin")
    parser.add_argument(
        "--format",
        choices=list(FORMATS),
        help="of all sources; by name and content when not given. "
        + "; ".join(f"{name}: {kind.what}" for name, kind in FORMATS.items()),
    )
    parser.add_argument(
        "--inputs", type=int, default=2, choices=(1, 2), help="texts in a row (default: 2)"
    )
    parser.add_argument(
        "--hold-out",
        type=_parts,
        metavar="valid=0.1,test=0.2",
        help="parts of the first inputs of train for splits that have no source",
    )
    parser.add_argument(
        "--labels",
        type=lambda text: tuple(text.split(",")),
        metavar="A,B,...",
        help="in the order of the classes; those of train, sorted, when not given",
    )
    parser.add_argument(
        "--malformed",
        choices=HOW,
        default="error",
        help="what to do about malformed rows: tell all and stop, or leave them out (default: "
        "error)",
    )
    parser.add_argument(
        "--tokenizer",
        choices=TOKENIZERS,
        default="none",
        help="none: the text is split at white space (default); wordpunct: at punctuation, too",
    )
    parser.add_argument("--lowercase", action="store_true", help="the text")
    parser.add_argument(
        "--vectors",
        type=Path,
        metavar="FILE",
        help="word vectors as GloVe or word2vec write them, also .gz or .zip",
    )
    parser.add_argument(
        "--min-count",
        type=int,
        metavar="N",
        help="words that are less frequent in train, and have no vector, are unknown (default: 2 "
        "with --vectors, else 1)",
    )


def run(given: argparse.Namespace) -> int:
    """Do what is missing.

    Raises:
        UsageError: wrong options or rows, or the folder was made with other settings.
        StageError: fairseq failed, or another process works there.
    """
    from fairseq_regattn.classification.corpus import binarise, take
    from fairseq_regattn.classification.rows import Preparation
    from fairseq_regattn.recipes.stages import exclusive, produce

    preparation = Preparation(given.inputs, given.labels, given.tokenizer, given.lowercase)
    sources = {
        split: path
        for split, path in (("train", given.train), ("valid", given.valid), ("test", given.test))
        if path is not None
    }
    out: Path = given.out
    text, binary = (out / stage for stage in STAGES)
    settings = _settings(given, sources)
    with exclusive(out) as lock:
        _check_settings(out, settings)

        def make_text(partial: Path) -> None:
            take(sources, partial, preparation, given.hold_out, given.malformed, given.format)

        def make_binary(partial: Path) -> None:
            binarise(text, partial, given.vectors, given.min_count, [lock])

        for folder, make in ((text, make_text), (binary, make_binary)):
            made = produce(folder, make)
            print(f"{'made' if made else 'kept'}: {folder}", flush=True)
    return 0


def _parts(text: str) -> dict[str, float]:
    """The value of ``--hold-out``."""
    parts = {}
    for part in text.split(","):
        split, _, share = part.partition("=")
        try:
            parts[split] = float(share)
        except ValueError:
            wanted = "must be such as valid=0.1,test=0.2"
            raise argparse.ArgumentTypeError(f"{wanted}, got {text!r}") from None
    return parts


def _settings(given: argparse.Namespace, sources: Mapping[str, Path]) -> dict[str, dict[str, Any]]:
    """What each stage depends on: of files their contents, wherever they lie."""
    from fairseq_regattn.classification.corpus import fingerprint
    from fairseq_regattn.classification.sources import find_format

    of_text = ("inputs", "labels", "hold_out", "malformed", "tokenizer", "lowercase")
    text = {name: getattr(given, name) for name in of_text}
    for split, path in sources.items():
        text["format of " + split] = find_format(path, given.format)
        text[split] = fingerprint(path).hex()
    vectors = given.vectors
    if vectors is not None and not vectors.is_file():
        raise UsageError(f"{vectors}: no such file")
    binary = {
        "vectors": None if vectors is None else fingerprint(vectors).hex(),
        "min_count": given.min_count,
    }
    return json.loads(json.dumps({"text": text, "bin": binary}))


def _check_settings(out: Path, settings: Mapping[str, Mapping[str, Any]]) -> None:
    """What is there must have been made by these; if so, write them down.

    Raises:
        UsageError: it was not; names what differs.
    """
    from fairseq_regattn.recipes.stages import rewrite

    path = out / "settings.json"
    known = json.loads(path.read_text(encoding="utf-8")) if path.exists() else {}
    for stage in STAGES:
        if not (out / stage).exists():
            continue
        before, now = known.get(stage, {}), settings[stage]
        names = sorted(before.keys() | now.keys())
        other = [name for name in names if before.get(name) != now.get(name)]
        if other:
            raise UsageError(
                f"{out / stage} was made with other settings ({', '.join(other)}): "
                "name another folder, or remove it"
            )
    rewrite(path, (json.dumps(settings, indent=1, sort_keys=True) + "\n").encode())
