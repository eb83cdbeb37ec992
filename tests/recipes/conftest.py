"""A corpus that trains in seconds."""

import pytest

from fairseq_regattn.recipes.__main__ import reproduce
from fairseq_regattn.recipes.options import parse_reproduce

WORDS = [("uno", "one"), ("dos", "two"), ("tres", "three"), ("cuatro", "four")]
WORDS += [("perro", "dog"), ("gato", "cat"), ("casa", "house"), ("agua", "water")]


@pytest.fixture(scope="session")
def write_text():
    return _write_text


def _write_text(folder, train=40, held_out=4):
    """A toy language of eight words as plain text, ``train.es`` and so on."""
    folder.mkdir(parents=True)
    number = 0
    for split in ("train", "valid", "test"):
        pairs = []
        for _ in range(train if split == "train" else held_out):
            picked = [WORDS[(number * 3 + i * i) % 8] for i in range(4 + number % 3)]
            # No sentence of one split is in another.
            pairs.append([f"{split} {' '.join(side)}" for side in zip(*picked)])
            number += 1
        for language, side in zip(("es", "en"), zip(*pairs)):
            text = "".join(f"{line}\n" for line in side)
            (folder / f"{split}.{language}").write_text(text, encoding="utf-8")
    return folder


@pytest.fixture
def run(capsys):
    """``run(arguments, status=0)``: ``reproduce.sh`` in this process; what it printed."""

    def run(arguments, status=0):
        words = [str(word) for word in arguments]
        assert reproduce(parse_reproduce(words), "scripts/reproduce.sh ...") == status
        return capsys.readouterr()

    return run


@pytest.fixture(scope="session")
def everything():
    """``everything(folder)``: when each file was written, but those that only lock."""

    def everything(folder):
        files = (path for path in folder.rglob("*") if path.is_file() and path.name != ".lock")
        return {path: path.stat().st_mtime_ns for path in files}

    return everything
