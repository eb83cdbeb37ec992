"""The script that splits the pairs of Tatoeba, and what it finds near-duplicates by."""

import gzip
import importlib
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
SCRIPT = ROOT / "scripts" / "prepare" / "tatoeba.py"
RAW = ROOT.parent / "shared" / "data" / "tatoeba-pairs"


def load(name):
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(SCRIPT.parent)  # the scripts import each other by bare names
        return importlib.import_module(name)


def test_near_duplicates_in_either_language_and_any_order():
    known = load("near_duplicates").NearDuplicates(jaccard=0.6, shared_trigrams=0.5)
    known.add(("He went up to the house of the king", "uno dos tres cuatro"))
    assert known.knows(("He went up to the house of Saul", "x y z"))  # most of its trigrams
    assert known.knows(("of the king the house up to went he", "x y z"))  # all of its words
    assert known.knows(("a b c", "Uno, dos, tres."))
    assert not known.knows(("The king sat in his own city and wept", "cinco dos seis siete"))


def test_near_duplicates_of_short_sentences():
    known = load("near_duplicates").NearDuplicates(jaccard=0.8)
    known.add(("Tom is here.", "Tom este aici."))
    known.add(("Really?", "Serios?"))
    assert known.knows(("Is Tom here?", "x"))
    assert list(known.repeated_by(("x", "aici este TOM!"))) == [0]
    assert not known.knows(("Tom was here.", "Tom era aici."))
    assert not known.knows(("Tom is really here.", "x"))


def split(raw, out):
    """The splits of English and Romanian as rows of two, and what was printed."""
    command = [sys.executable, SCRIPT, raw, out, "--pairs", "ron"]
    printed = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    sides = {
        name: [
            (out / "en-ro" / f"{name}.{language}").read_text("utf-8") for language in ("en", "ro")
        ]
        for name in ("train", "valid", "test")
    }
    return {
        name: list(zip(*(side.splitlines() for side in pair))) for name, pair in sides.items()
    }, printed


def check(rows, raw):
    """Nothing is lost or added, and no English or Romanian sentence is on two sides."""
    together = [row for part in rows.values() for row in part]
    assert set(together) <= set(raw)
    words = load("near_duplicates").words
    for side in (0, 1):
        train, valid, test = (
            {" ".join(words(row[side])) for row in part} for part in rows.values()
        )
        assert not test & train
        assert not valid & train
        assert not valid & test
        for held_out in ("valid", "test"):
            assert len({row[side] for row in rows[held_out]}) == len(rows[held_out])


def test_sentences_are_on_one_side_and_the_split_is_the_same_each_time(tmp_path):
    def name(number):
        return "".join(chr(ord("a") + int(digit)) for digit in str(number))

    raw = []
    for number in range(2000):
        raw += [(f"E{name(number)}.", f"{first}{name(number)}.") for first in ("Un", "Doi")]
    raw += [(f"All the {name(number)} same", "Tot una") for number in range(100)]
    raw.append(("...", "fără cuvinte"))
    with gzip.open(tmp_path / "eng-ron.tsv.gz", "wt", encoding="utf-8") as out:
        out.writelines(f"{english}\t{other}\t1,2\n" for english, other in raw)
    rows, printed = split(tmp_path, tmp_path / "one")
    assert rows == split(tmp_path, tmp_path / "two")[0]
    check(rows, raw)
    assert (len(rows["test"]), len(rows["valid"])) == (1000, 500)
    assert not any(english.startswith("All") for english, _ in rows["test"] + rows["valid"])
    assert all(other.startswith("Un") for _, other in rows["test"] + rows["valid"])
    assert len(rows["train"]) == 4100 - 2 * 1500
    assert "    4101  read\n" in printed
    assert "       1  dropped, a side without words\n" in printed
    assert "    1500  dropped, another translation of a held-out sentence\n" in printed
    assert "    1100  train\n" in printed


def test_a_missing_file_is_told_before_anything_is_made(tmp_path):
    command = [sys.executable, SCRIPT, tmp_path, tmp_path / "out", "--pairs", "ron"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert done.stderr.splitlines()[-1].endswith(
        f"{tmp_path}/eng-ron.tsv.gz: no such file; --pairs names those that are there"
    )
    assert not (tmp_path / "out").exists()


@pytest.mark.skipif(not RAW.is_dir(), reason=f"needs the pairs of Tatoeba in {RAW}")
def test_the_real_pairs(tmp_path):
    with gzip.open(RAW / "eng-ron.tsv.gz", "rt", encoding="utf-8") as lines:
        raw = [tuple(" ".join(cell.split()) for cell in line.split("\t")[:2]) for line in lines]
    rows, _ = split(RAW, tmp_path)
    check(rows, raw)
    assert (len(rows["test"]), len(rows["valid"]), len(rows["train"])) == (1000, 500, 3952)
