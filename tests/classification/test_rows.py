"""Rows of every format, and everything that can be wrong with them."""

import gzip
import io
import json
import re
import zipfile
from collections import Counter

import pytest

from fairseq_regattn.classification.malformed import Malformed
from fairseq_regattn.classification.rows import Preparation, read_inputs, tokenise
from fairseq_regattn.errors import UsageError

from .conftest import PAIRS, tree

ENDINGS = ("tsv", "txt", "jsonl", "tsv.gz", "txt.gz", "jsonl.gz")
GOOD = tree("a b")


@pytest.mark.parametrize("ending", ENDINGS)
def test_pairs_of_every_format(ending, write, read, tmp_path):
    path = write(tmp_path / f"pairs.{ending}", [*PAIRS, ("-", "A cat .", "A dog .")])
    rows, tally = read(path)
    assert [(row.label, *row.inputs) for row in rows] == PAIRS
    first = 2 if ".txt" in path.name else 1  # after the header
    assert [row.place for row in rows] == [f"{path}:{first + number}" for number in range(3)]
    assert tally == {"read": 4, "dropped: no gold label": 1}


def test_one_text(write, read, tmp_path):
    rows, _ = read(write(tmp_path / "texts.tsv", [("a", "one text"), ("b", "x")]), 1)
    assert [row[:2] for row in rows] == [("a", ("one text",)), ("b", ("x",))]


def test_the_format_can_be_named(write, read, tmp_path):
    path = write(tmp_path / "pairs.tsv").rename(tmp_path / "pairs.data")
    with pytest.raises(UsageError, match=r"pairs\.data: what it is cannot be told from its name"):
        read(path)
    assert len(read(path, format="tsv")[0]) == 3
    with pytest.raises(UsageError, match=r"format must be one of snli, jsonl, .*, got 'csv'"):
        read(path, format="csv")
    with pytest.raises(UsageError, match="is a file, but imdb is a folder"):
        read(path, format="imdb")


def test_leaves_of_parses(read, tmp_path):
    parses = "(ROOT (NP (NP (DT The)(NN man)) (-LRB- -LRB-) (CD 1\u00a01/2) (. .)))"
    path = tmp_path / "x.jsonl"
    entry = {"gold_label": "a", "sentence1_parse": parses, "sentence2_parse": "(ROOT (X n/a))"}
    path.write_text(json.dumps(entry), encoding="utf-8")
    assert read(path)[0][0].inputs == ("The man -LRB- 1 1/2 .", "n/a")


BAD_CELLS = {
    "tsv": [
        (b"a\tb", "missing column: 2 instead of label, premise, hypothesis"),
        (b"", "missing column: 1 instead of label, premise, hypothesis"),
        (b"a\tb\tc\td", "too many columns: 4 instead of label, premise, hypothesis"),
        (b"odd\tb\tc", "unknown label: 'odd' is none of a, x"),
        (b"\tb\tc", "unknown label: '' is none of a, x"),
        (b"a\tb\xff\tc", "not UTF-8: byte 4"),
        (b"a\t\tc", "empty input: the premise has no words"),
        (b"a\tb\t \xc2\xa0\r", "empty input: the hypothesis has no words"),
        (b"a\tb </s> c\tc", "a word that fairseq has another use for: '</s>'"),
    ],
    "txt": [
        (f"a\tx\t{GOOD}".encode(), "missing column: 3 columns, no sentence2_parse"),
        (f"odd\tx\t{GOOD}\t{GOOD}".encode(), "unknown label: 'odd'"),
        (f"a\tx\t{GOOD}\t\xff".encode("latin-1"), "not UTF-8: byte "),
        (f"a\tx\t\t{GOOD}".encode(), "empty input: sentence1_parse is empty"),
        (f"a\tx\tno tree\t{GOOD}".encode(), "a parse without leaves: sentence1_parse: 'no tree'"),
        (f"a\tx\t{GOOD}\t{GOOD[:-2]}".encode(), "a parse that is not whole: brackets of sentence2"),
        (f"a\tx\t{tree('<pad>')}\t{GOOD}".encode(), "a word that fairseq has another use for"),
    ],
    "jsonl": [
        (b"{", "not JSON: "),
        (b"", "not JSON: "),
        (b"[" * 99_999, "not JSON: "),
        (b"[1]", "wrong type: list instead of an object"),
        (b'{"gold_label": "a"}', "missing key: sentence1_parse"),
        (b'{"gold_label": 3}', "wrong type: gold_label must be a string, got 3"),
        (b'{"gold_label": "\xff"}', "not UTF-8: byte 17"),
        (
            json.dumps(
                {"gold_label": "a", "sentence1_parse": "(X \ud800)", "sentence2_parse": GOOD}
            ).encode(),
            "not UTF-8: half a surrogate pair in the premise",
        ),
        (
            json.dumps(
                {"gold_label": "b", "sentence1_parse": GOOD, "sentence2_parse": GOOD}
            ).encode(),
            "unknown label: 'b'",
        ),
    ],
}


@pytest.mark.parametrize("how", ["error", "skip"])
@pytest.mark.parametrize(
    ("ending", "line", "message"),
    [(ending, *case) for ending, cases in BAD_CELLS.items() for case in cases],
)
def test_malformed_rows(ending, line, message, how, write, read, tmp_path, capsys):
    path = write(tmp_path / f"x.{ending}", [("a", "p q", "h"), ("x", "p", "h")])
    lines = path.read_bytes().split(b"\n")
    number = len(lines) - 1
    path.write_bytes(b"\n".join([*lines[: number - 1], line, *lines[number - 1 :]]))
    expected = f"{path}:{number}: {message}"
    if how == "error":
        with pytest.raises(UsageError) as error:
            read(path, labels=("a", "x"))
        assert str(error.value).startswith(expected)
    rows, tally = read(path, how=how, check=how == "skip", labels=("a", "x"))
    assert [row.label for row in rows] == ["a", "x"]
    assert tally == {"read": 3, f"malformed: {message.partition(':')[0]}": 1}
    assert (f"skipped: {expected}" in capsys.readouterr().err) == (how == "skip")


@pytest.mark.parametrize("label", ["two words", "<pad>", ""])
def test_any_word_is_a_label_where_none_are_given(label, write, read, tmp_path):
    path = write(tmp_path / "x.tsv", [("any", "p", "h"), (label, "p", "h")])
    with pytest.raises(UsageError, match=re.escape(f"{path}:2: unknown label: '{label}'")):
        read(path)


@pytest.mark.parametrize("how", ["error", "skip"])
@pytest.mark.parametrize("ending", ["tsv.gz", "txt.gz", "jsonl.gz"])
def test_a_cut_gzip_file(ending, how, write, read, tmp_path, capsys):
    path = write(tmp_path / f"x.{ending}", PAIRS * 500)
    path.write_bytes(path.read_bytes()[:-15])
    if how == "error":
        with pytest.raises(UsageError, match=rf"{path}:\d+: broken file: it cannot be unpacked"):
            read(path)
        return
    rows, tally = read(path, how=how)
    assert tally["malformed: broken file"] == 1
    assert tally["read"] == len(rows)
    assert "broken file" in capsys.readouterr().err


@pytest.mark.parametrize("how", ["error", "skip"])
@pytest.mark.parametrize("damage", ["cut", "content"])
def test_a_broken_zip_file(damage, how, write, read, tmp_path, capsys):
    path = write(tmp_path / "x.zip", [("pos", f"good {n}") for n in range(999)])
    raw = bytearray(path.read_bytes())
    if damage == "cut":
        del raw[-30:]
    else:
        middle = len(raw) // 2
        raw[middle : middle + 20] = bytes(20)
    path.write_bytes(raw)
    if how == "error":
        with pytest.raises(UsageError, match=rf"{path}.*:\d+: broken file: it cannot be unpacked"):
            read(path, 1)
        return
    _, tally = read(path, 1, how=how)
    assert tally["malformed: broken file"] == 1
    assert "broken file" in capsys.readouterr().err


@pytest.mark.parametrize("how", ["error", "skip"])
def test_a_zip_packed_with_lzma_that_is_broken(how, read, tmp_path):
    path = tmp_path / "x.zip"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_LZMA) as archive:
        archive.writestr("rt-polarity.pos", "good\n" * 999)
    raw = bytearray(path.read_bytes())
    raw[60] ^= 255
    path.write_bytes(raw)
    if how == "error":
        with pytest.raises(UsageError, match="broken file: it cannot be unpacked"):
            read(path, 1)
        return
    assert read(path, 1, how=how)[1]["malformed: broken file"] == 1


def test_malformed_rows_of_a_zip(write, read, tmp_path):
    path = write(tmp_path / "x.zip", [("pos", "good"), ("pos", ""), ("neg", "bad <unk>")])
    with pytest.raises(UsageError) as error:
        read(path, 1)
    assert str(error.value).splitlines() == [
        f"{path}/sentence_polarity/rt-polarity.pos:2: empty input: the text has no words",
        f"{path}/sentence_polarity/rt-polarity.neg:1: a word that fairseq has another use for: "
        "'<unk>'",
    ]


def test_ten_are_shown_and_the_others_counted(write, read, tmp_path, capsys):
    path = write(tmp_path / "x.tsv", [("a",)] * 25)
    with pytest.raises(UsageError) as error:
        read(path)
    assert str(error.value).splitlines()[-1] == "and 15 more"
    _, tally = read(path, how="skip")
    assert tally == {"read": 25, "malformed: missing column": 25}
    assert capsys.readouterr().err.count("skipped") == 10


@pytest.mark.parametrize("missing", ["gold_label", "sentence2_parse"])
def test_a_header_without_a_column(missing, write, read, tmp_path):
    path = write(tmp_path / "x.txt")
    path.write_bytes(path.read_bytes().replace(missing.encode(), b"other", 1))
    with pytest.raises(UsageError, match=rf"x\.txt:1: the header has no column {missing}"):
        read(path, format="snli", how="skip")


def test_no_header_at_all(read, tmp_path):
    (tmp_path / "x.txt").touch()
    with pytest.raises(UsageError, match=r"x\.txt:1: no header with the columns gold_label"):
        read(tmp_path / "x.txt", format="snli")


def test_a_long_cell_is_not_told_whole(read, tmp_path):
    """As where the columns are in another order."""
    (tmp_path / "x.tsv").write_text(f"{'long ' * 9999}\tpos\n", encoding="utf-8")
    with pytest.raises(UsageError, match=r"x\.tsv:1: unknown label: 'long") as error:
        read(tmp_path / "x.tsv", 1)
    assert str(error.value).endswith(" is not one word, or fairseq has a use for it")
    assert len(str(error.value)) < 700


def test_only_a_line_feed_ends_a_line(read, tmp_path):
    path = tmp_path / "x.tsv"
    path.write_bytes("\ufeffa\tone\u2028two\x00 .\th\r\nb\tp\x85q\th".encode())
    rows, tally = read(path)
    assert [row[:2] for row in rows] == [("a", ("one two .", "h")), ("b", ("p q", "h"))]
    assert tally["lines with line separators inside (now spaces)"] == 2
    assert tally["lines with control characters (now spaces)"] == 1


@pytest.fixture
def reviews(tmp_path):
    for label in ("pos", "neg"):
        for number in (10, 9, 100):
            path = tmp_path / "train" / label / f"{number}_7.txt"
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(f"{label} {number}<br /><br />end\nof it", encoding="utf-8")
    (tmp_path / "train" / "pos" / "urls.list").touch()
    return tmp_path / "train"


def test_folder_of_reviews(reviews, read):
    rows, tally = read(reviews, 1)
    assert [row.label for row in rows] == ["neg"] * 3 + ["pos"] * 3
    assert [row.inputs[0] for row in rows[:3]] == [f"neg {n} end of it" for n in (9, 10, 100)]
    assert rows[0].place == str(reviews / "neg" / "9_7.txt")
    assert tally == {"read": 6}


@pytest.mark.parametrize(
    ("raw", "message"), [(b"\xff", "not UTF-8: byte 1"), (b"<br />\n", "empty input")]
)
def test_malformed_reviews(raw, message, reviews, read):
    path = reviews / "neg" / "10_7.txt"
    path.write_bytes(raw)
    with pytest.raises(UsageError, match=f"{path}: {message}"):
        read(reviews, 1)
    assert len(read(reviews, 1, how="skip")[0]) == 5


def test_a_folder_without_neg(reviews, read):
    (reviews / "neg").rename(reviews / "unsup")
    with pytest.raises(UsageError, match="train has no folder neg"):
        read(reviews, 1)


@pytest.mark.parametrize("ending", ["txt", "jsonl", "zip"])
def test_formats_have_their_number_of_texts(ending, write, read, tmp_path):
    path = write(tmp_path / f"x.{ending}", [])
    inputs = 2 if ending == "zip" else 1
    if ending == "txt":
        write(path)
    with pytest.raises(UsageError, match=f"inputs must be {3 - inputs} for {path}"):
        read(path, inputs)


def test_no_such_file(read, tmp_path):
    with pytest.raises(UsageError, match="nowhere: no such file or folder"):
        read(tmp_path / "nowhere")


def test_tokens():
    text = "It's Fine, isn't it?!"
    assert tokenise(text, "none", False) == ["It's", "Fine,", "isn't", "it?!"]
    assert " ".join(tokenise(text, "wordpunct", True)) == "it ' s fine , isn ' t it ?!"


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"inputs": 3}, "inputs must be 1 or 2, got 3"),
        ({"tokenizer": "moses"}, "tokenizer must be none or wordpunct, got 'moses'"),
        ({"labels": ("a",)}, "labels must be two different words"),
        ({"labels": ("a", "a")}, "labels must be two different words"),
        ({"labels": ("a", "-")}, "labels must be two different words"),
        ({"labels": ("a", "b c")}, "labels must be two different words"),
    ],
)
def test_wrong_preparations(wrong, message):
    with pytest.raises(UsageError, match=message):
        Preparation(**{"inputs": 2, **wrong})
    with pytest.raises(UsageError, match="malformed must be error or skip, got 'warn'"):
        Malformed("warn")


def test_preparations_are_written_and_read(tmp_path):
    path = tmp_path / "preparation.json"
    written = Preparation(2, ("b", "a"), "wordpunct", True)
    written.write(path)
    assert Preparation.read(path) == written
    path.write_text("[]", encoding="utf-8")
    with pytest.raises(UsageError, match=r"preparation\.json: not the preparation of a data"):
        Preparation.read(path)


@pytest.mark.parametrize("packed", [False, True])
def test_rows_to_predict(packed, tmp_path):
    """With and without gold labels, from a file and from an open one."""
    raw = b"A dog .\tAn animal .\nno\tA cat .\tA dog .\n-\tx\ty\nodd\tx\ty\nx\n"
    wanted = Preparation(2, ("no", "yes"), "none", True)
    path = tmp_path / ("x.gz" if packed else "x")
    path.write_bytes(gzip.compress(raw) if packed else raw)
    for source, name in ((path, str(path)), (io.BytesIO(raw), "input")):
        malformed, tally = Malformed(), Counter()
        rows = list(read_inputs(source, wanted, malformed, tally))
        assert [row.label for row in rows] == [None, "no", None]
        assert [row.inputs for row in rows[:2]] == [
            ("a dog .", "an animal ."),
            ("a cat .", "a dog ."),
        ]
        assert rows[1].place == f"{name}:2"
        with pytest.raises(UsageError) as error:
            malformed.check()
        assert str(error.value).splitlines() == [
            f"{name}:4: unknown label: 'odd' is none of no, yes",
            f"{name}:5: missing column: 1 instead of (label), premise, hypothesis",
        ]


@pytest.mark.parametrize("ending", ["txt", "jsonl", "jsonl.gz"])
def test_snli_to_predict(ending, tmp_path, write):
    path = write(tmp_path / f"dev.{ending}", [*PAIRS, ("-", "a dog", "a cat")])
    tally = Counter()
    rows = list(read_inputs(path, Preparation(2), Malformed(), tally))
    assert [(row.label, *row.inputs) for row in rows] == PAIRS
    assert tally == {"read": 4, "dropped: no gold label": 1}
    with pytest.raises(UsageError, match=r"inputs must be 2 for .*dev"):
        list(read_inputs(path, Preparation(1), Malformed(), tally))


def test_snli(shared, read):
    rows, tally = read(shared("snli/snli.dev.tsv.gz"))
    assert tally == {"read": 9842}
    assert Counter(row.label for row in rows) == {
        "neutral": 3235,
        "entailment": 3329,
        "contradiction": 3278,
    }


@pytest.mark.parametrize(
    ("name", "counts"),
    [
        ("sentence_polarity", {"pos": 5331, "neg": 5331}),
        ("subjectivity", {"subjective": 5000, "objective": 5000}),
    ],
)
def test_sentences_of_pang_and_lee(name, counts, shared, read):
    rows, tally = read(shared(f"sentiment/{name}.zip"), 1)
    assert Counter(row.label for row in rows) == counts
    assert tally["read"] == sum(counts.values())
