"""A corpus that trains in seconds."""

import gzip

import pytest


@pytest.fixture
def write_corpus():
    return _write_corpus


def _write_corpus(path, verses):
    """A toy language of eight words, for every split."""
    words = [("uno", "one"), ("dos", "two"), ("tres", "three"), ("cuatro", "four")]
    words += [("perro", "dog"), ("gato", "cat"), ("casa", "house"), ("agua", "water")]
    with gzip.open(path, "wt", encoding="utf-8") as out:
        for split in ("train", "valid", "test"):
            for number in range(verses if split == "train" else 4):
                picked = [words[(number * 3 + i * i) % 8] for i in range(4 + number % 3)]
                spanish, english = (" ".join(side) for side in zip(*picked))
                out.write(f"{split}\tBook.1.{number}\t{english}\t{spanish}\n")
    return path
