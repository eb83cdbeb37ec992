"""The script that derived the packaged corpus."""

import gzip
import importlib
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest

SCRIPT = Path(__file__).resolve().parents[2] / "scripts" / "prepare" / "verses.py"


@pytest.fixture(scope="module")
def prepare():
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(SCRIPT.parent)  # it imports its neighbour
        yield importlib.import_module("verses")


def test_reasons_to_drop(prepare):
    counts = Counter(god=50, created=50, envió=50, le=50, the=50), Counter(envió=50, le=50)

    def reason(english, spanish="uno dos tres"):
        return prepare.reason_to_drop(prepare.Verse("Book.1.1", english, spanish), counts)

    assert reason("One, two three.") is None
    assert reason("Godcreated the heavens") == "glued words"
    assert reason("go east,they said") == "glued words"
    assert reason("in ChristJesus now") == "glued words"
    assert reason("one two three", "y envióle tres") is None  # a clitic, not a glued word
    assert reason("—", "uno") == "empty side"
    assert reason(" ".join(["word"] * 21)) == "more than 20 words on a side"
    assert reason(" ".join(["word"] * 8)) == "length ratio above 2.5"


def test_opening_capitals_are_lowered(prepare):
    casing = Counter({"En": 3, "en": 90, "el": 99, "Jehová": 50, "aconteció": 9, "Aconteció": 1})
    lowered = prepare.lower_opening_capitals
    assert lowered("EN el principio", casing) == "En el principio"
    assert lowered("Y ACONTECIÓ en JEHOVÁ", casing) == "Y aconteció en Jehová"
    assert lowered("“Y el Rey", casing) == "“Y el Rey"


def test_the_script_gives_the_same_bytes_and_shuts_out_what_it_should(tmp_path):
    raw = tmp_path / "raw.tsv.gz"
    with gzip.open(raw, "wt", encoding="utf-8") as out:
        for chapter in range(200):
            name = "".join(chr(ord("a") + int(digit)) for digit in str(chapter))
            out.write(f"Book.{chapter}.1\tx{name} verse\ty{name} verso\n")
            out.write(f"Book.{chapter}.2\tAnd it was so.\tY fué así.\n")
    written = []
    for name in ("one.gz", "two.gz"):
        command = [sys.executable, SCRIPT, raw, tmp_path / name]
        printed = subprocess.run(command, check=True, capture_output=True, text=True).stdout
        written.append((tmp_path / name).read_bytes())
    assert written[0] == written[1]
    assert "   400  read" in printed
    rows = [line.split("\t") for line in gzip.decompress(written[0]).decode().splitlines()]
    assert sum(row[2] == "And it was so." for row in rows) == 1
    assert {row[0] for row in rows} == {"train", "valid", "test"}
