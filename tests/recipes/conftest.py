"""A corpus that trains in seconds."""

import pytest

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
