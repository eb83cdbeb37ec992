"""The script that derives the Greek-English corpus with hand alignments."""

import gzip
import subprocess
import sys
from pathlib import Path

import pytest

from fairseq_regattn.analysis.links import read_links

ROOT = Path(__file__).resolve().parents[2]
SCRIPT = ROOT / "scripts" / "prepare" / "greek.py"
RAW = ROOT.parent / "shared" / "data" / "greek-english-gold" / "grc-en.tsv.gz"
LONG = " ".join(["λόγος"] * 61)
ROWS = [
    "40001001\tΒίβλος  γενέσεως\tThe record\t0-1 1-0",
    "41001001\tἀρχὴ\t\t",
    f"42001001\t{LONG}\tword\t",
    "52001001\tΠαῦλος\tPaul\t0-0",
    "58001001\tΠολυμερῶς καὶ\tIn many ways\t0-0 0-1 0-2",
    f"58001002\tword\t{LONG}\t0-60",
    "59001001\tἸάκωβος\tJames\t",
    "66001001\tἈποκάλυψις\tRevelation\t0-0",
]


def prepare(raw, output, status=0):
    result = subprocess.run(
        [sys.executable, SCRIPT, raw, output], capture_output=True, text=True, check=False
    )
    assert result.returncode == status, result.stderr
    return result


def pack(path, rows):
    with gzip.open(path, "wt", encoding="utf-8") as file:
        file.writelines(row + "\n" for row in rows)
    return path


def contents(folder):
    return {path.name: path.read_text(encoding="utf-8") for path in folder.iterdir()}


def test_splits_by_book_and_counts_what_it_drops(tmp_path):
    raw = pack(tmp_path / "raw.gz", ROWS)
    printed = prepare(raw, tmp_path / "one").stdout
    assert contents(tmp_path / "one") == {
        "train.grc": "Βίβλος γενέσεως\nἈποκάλυψις\n",
        "train.en": "The record\nRevelation\n",
        "valid.grc": "Παῦλος\n",
        "valid.en": "Paul\n",
        "test.grc": "Πολυμερῶς καὶ\nἸάκωβος\n",
        "test.en": "In many ways\nJames\n",
        "test.links": "0-0 0-1 0-2\n\n",
        "test.names": "58001001\n59001001\n",
    }
    assert [line.split(maxsplit=1) for line in printed.splitlines()] == [
        ["8", "read"],
        ["1", "dropped, empty side (train)"],
        ["1", "dropped, more than 60 tokens on a side (train)"],
        ["1", "dropped, more than 60 tokens on a side (test)"],
        ["2", "kept, train"],
        ["1", "kept, valid"],
        ["2", "kept, test"],
        ["3", "links kept, test"],
    ]
    assert prepare(raw, tmp_path / "two").stdout == printed
    assert contents(tmp_path / "two") == contents(tmp_path / "one")


@pytest.mark.parametrize(
    ("row", "message"),
    [
        ("40001001\tἀρχὴ\tbeginning", "line 2: must be verse"),
        ("Matthew\tἀρχὴ\tbeginning\t0-0", "line 2: must be verse"),
        ("40001001\tἀρχὴ\tbeginning\t0-1", "line 2: link '0-1' does not fit"),
        ("40001001\tἀρχὴ\tbeginning\t1-0", "line 2: link '1-0' does not fit"),
        ("40001001\tἀρχὴ\tbeginning\t0:0", "line 2: link '0:0' does not fit"),
    ],
)
def test_rows_that_do_not_fit_end_it(tmp_path, row, message):
    raw = pack(tmp_path / "raw.gz", [ROWS[0], row])
    assert message in prepare(raw, tmp_path / "out", status=1).stderr
    assert not (tmp_path / "out").exists()


def test_a_folder_that_is_there_is_left_alone(tmp_path):
    (tmp_path / "out").mkdir()
    result = prepare(pack(tmp_path / "raw.gz", ROWS), tmp_path / "out", status=2)
    assert "out is there already" in result.stderr
    assert not list((tmp_path / "out").iterdir())


@pytest.mark.skipif(not RAW.exists(), reason="the raw corpus is not beside the repository")
def test_the_real_corpus(tmp_path):
    prepare(RAW, tmp_path / "out")
    lines = {name: text.splitlines() for name, text in contents(tmp_path / "out").items()}
    counts = {name: len(text) for name, text in lines.items()}
    for split, count in (("train", 7101), ("valid", 402), ("test", 410)):
        assert counts[f"{split}.grc"] == counts[f"{split}.en"] == count
    assert {name[:2] for name in lines["test.names"]} == {"58", "59"}
    assert not set(lines["test.grc"]) & set(lines["train.grc"])
    links = read_links(tmp_path / "out" / "test.links")
    assert sum(len(sentence.sure) for sentence in links) == 9841
    for sentence, greek, english in zip(links, lines["test.grc"], lines["test.en"]):
        assert max(source for source, _ in sentence.sure) < len(greek.split())
        assert max(target for _, target in sentence.sure) < len(english.split())
