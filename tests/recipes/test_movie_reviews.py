"""The script that splits IMDB's reviews."""

import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest

SCRIPT = Path(__file__).resolve().parents[2] / "scripts" / "prepare" / "movie_reviews.py"


def run(*arguments):
    command = [sys.executable, str(SCRIPT), *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, check=False)


@pytest.fixture
def reviews(tmp_path):
    """600 of two sources; some twice, one empty, tabs and lines inside."""
    rows = ["text,label,source"]
    for number in range(300):
        rows.append(f'"Review {number},<br /><br />so\tso\nlong",{number % 2},imdb')
        rows.append(f"Short {number},{number % 2},rotten_tomatoes")
    rows += [rows[1], '" ",1,imdb']
    (tmp_path / "reviews.csv").write_text("\n".join(rows) + "\n", encoding="utf-8")
    return tmp_path / "reviews.csv"


def read(folder):
    names = ("train", "valid", "test")
    return {name: (folder / f"{name}.tsv").read_text(encoding="utf-8") for name in names}


def test_each_text_is_in_one_split(reviews, tmp_path):
    done = run(reviews, tmp_path / "out", "--train", 1000)
    assert done.returncode == 0, done.stderr
    found = read(tmp_path / "out")
    rows = [line.split("\t") for text in found.values() for line in text.splitlines()]
    assert Counter(label for label, _ in rows) == {"pos": 150, "neg": 150}
    assert len({text for _, text in rows}) == 300
    assert all(text.startswith("Review ") and text.endswith(", so so long") for _, text in rows)
    assert 25 < found["test"].count("\n") < 75
    assert 10 < found["valid"].count("\n") < 45
    for told in (
        "1  dropped, the same text again",
        "300  dropped, of another",
        "1  dropped, empty",
    ):
        assert told in done.stdout


def test_fewer_to_train_on_and_the_same_to_test(reviews, tmp_path):
    for number in (20, 50):
        assert run(reviews, tmp_path / str(number), "--train", number).returncode == 0
    few, more = read(tmp_path / "20"), read(tmp_path / "50")
    assert few["train"].count("\n") == 20
    assert more["train"].startswith(few["train"])
    assert few["test"] == more["test"]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("text,label\nx,1\n", "x.csv:1: no column source"),
        ("text,label,source\nx,2,imdb\n", "x.csv:2: label must be 1 or 0, got '2'"),
        ("", "x.csv:1: no column label, source, text"),
    ],
)
def test_what_is_no_such_file_is_refused(text, message, tmp_path):
    (tmp_path / "x.csv").write_text(text, encoding="utf-8")
    done = run(tmp_path / "x.csv", tmp_path / "out")
    assert done.returncode == 2
    assert message in done.stderr
    assert "Traceback" not in done.stderr
    assert not (tmp_path / "out").exists()
