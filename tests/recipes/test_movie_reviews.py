"""The script that splits IMDB's reviews."""

import hashlib
import os
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest

SCRIPT = Path(__file__).resolve().parents[2] / "scripts" / "prepare" / "movie_reviews.py"


def run(*arguments, **environment):
    command = [sys.executable, str(SCRIPT), *map(str, arguments)]
    environment = {**os.environ, **environment}
    return subprocess.run(command, capture_output=True, text=True, check=False, env=environment)


@pytest.fixture
def reviews(tmp_path):
    """600 of two sources; some twice, one empty, tabs and lines inside."""
    rows = ["text,label,source"]
    for number in range(300):
        rows.append(f'"Review {number},<br /><br />so\tso\nlong",{number % 2},imdb')
        rows.append(f"Short {number},{number % 2},rotten_tomatoes")
    rows += [rows[1], '" ",1,imdb']
    (tmp_path / "reviews.csv").write_text("\n".join(rows) + "\n\n", encoding="utf-8")
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


def test_labels_and_splits_are_those_of_the_text(reviews, tmp_path):
    assert run(reviews, tmp_path / "out", "--train", 1000).returncode == 0
    found = read(tmp_path / "out")
    for name, low, high in (("test", 0, 1 / 6), ("valid", 1 / 6, 1 / 4), ("train", 1 / 4, 1)):
        rows = [line.split("\t") for line in found[name].splitlines()]
        digests = [hashlib.sha256(text.encode()).digest() for _, text in rows]
        assert all(low <= int.from_bytes(d[-8:], "big") / 2**64 < high for d in digests)
        assert digests == sorted(digests)
        for label, text in rows:
            assert label == ("neg", "pos")[int(text.split()[1].rstrip(",")) % 2]


def test_of_the_package(reviews, tmp_path):
    package = tmp_path / "site" / "movie_reviews"
    (package / "data").mkdir(parents=True)
    (package / "__init__.py").write_text("import nothing_of_the_kind\n")
    reviews.rename(package / "data" / "combined_movie_reviews.csv")
    done = run(tmp_path / "out", PYTHONPATH=str(tmp_path / "site"))
    assert done.returncode == 0, done.stderr
    assert read(tmp_path / "out")["train"].count("\n") > 100


def test_files_are_replaced_whole(reviews, tmp_path):
    out = tmp_path / "out"
    out.mkdir()
    for name in ("train", "valid", "test"):
        (out / f"{name}.tsv").write_text("before\n")
        os.link(out / f"{name}.tsv", tmp_path / name)
    assert run(reviews, out).returncode == 0
    assert "before\n" not in read(out).values()
    for name in ("train", "valid", "test"):  # else it was written over, bit by bit
        assert (tmp_path / name).read_text() == "before\n"
    assert len(list(out.iterdir())) == 3


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
        ('text,label,source\n"x,1,imdb\n', "x.csv:2: unexpected end of data"),
        ('text,label,source\n"x" y,1,imdb\n', "x.csv:2: ',' expected after '\"'"),
        ("text,label,source\nx\n", "x.csv:2: 3 columns were expected, got 1"),
        ("text,label,source\nx,1,imdb,more\n", "x.csv:2: 3 columns were expected, got 4"),
        ("text,label,source\n\ud8ff,1,imdb\n", "x.csv: not UTF-8"),
    ],
)
def test_what_is_no_such_file_is_refused(text, message, tmp_path):
    (tmp_path / "x.csv").write_text(text, encoding="utf-8", errors="surrogatepass")
    done = run(tmp_path / "x.csv", tmp_path / "out")
    assert done.returncode == 2
    assert message in done.stderr
    assert "Traceback" not in done.stderr
    assert not (tmp_path / "out").exists()


def test_wrong_arguments(reviews, tmp_path):
    for arguments, message in (
        ([reviews, tmp_path / "out", "--train", 0], "--train must be at least 1, got 0"),
        ([tmp_path / "nowhere", tmp_path / "out"], "No such file or directory"),
        ([reviews, reviews], "File exists"),
    ):
        done = run(*arguments)
        assert done.returncode == 2
        assert message in done.stderr
        assert "Traceback" not in done.stderr
