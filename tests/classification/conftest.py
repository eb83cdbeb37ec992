"""Small corpora in every format."""

import gzip
import json
import zipfile
from collections import Counter
from pathlib import Path

import pytest

from fairseq_regattn.classification.malformed import Malformed
from fairseq_regattn.classification.rows import Preparation, read_rows

SHARED = Path(__file__).resolve().parents[3] / "shared" / "data"

PAIRS = [
    ("entailment", "A dog runs .", "An animal moves ."),
    ("neutral", "A dog runs .", "The dog is old ."),
    ("contradiction", "Two men sing .", "Nobody sings ."),
]


def tree(text):
    """As the Stanford parser writes it: binary brackets inside, a tag before each leaf."""
    return f"(ROOT (S {' '.join(f'(X {word})' for word in text.split())}))"


@pytest.fixture(scope="session")
def write():
    """``write(path, pairs)`` in the format of its name."""
    return _write


def _write(path, pairs=PAIRS):
    if path.suffix == ".zip":
        with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
            for label in ("neg", "pos"):
                lines = "".join(f"{text}\n" for gold, text in pairs if gold == label)
                archive.writestr(f"sentence_polarity/rt-polarity.{label}", lines)
        return path
    lines = list(_lines(path.name.removesuffix(".gz").rpartition(".")[2], pairs))
    raw = "".join(f"{line}\n" for line in lines).encode()
    path.write_bytes(gzip.compress(raw) if path.suffix == ".gz" else raw)
    return path


def _lines(ending, pairs):
    if ending == "tsv":
        yield from map("\t".join, pairs)
        return
    names = ["gold_label", "sentence1_binary_parse", "sentence1_parse", "sentence2_parse", "pairID"]
    if ending == "txt":
        yield "\t".join(names)
    for label, *texts in pairs:
        cells = [label, "( binary )", *map(tree, texts), "12#3"]
        yield "\t".join(cells) if ending == "txt" else json.dumps(dict(zip(names, cells)))


@pytest.fixture
def read():
    """Rows of a source, the tally, and what has been found wrong."""

    def read(path, inputs=2, how="error", format=None, check=True, **preparation):
        tally, malformed = Counter(), Malformed(how)
        rows = list(read_rows(path, Preparation(inputs, **preparation), malformed, tally, format))
        if check:
            malformed.check()
        return rows, tally

    return read


@pytest.fixture
def shared():
    """A file of the corpora beside the checkout; the test is skipped where it is absent."""

    def find(name):
        if not (SHARED / name).exists():
            pytest.skip(f"shared/data/{name} is not there")
        return SHARED / name

    return find
