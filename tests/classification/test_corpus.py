"""Splits, text files and dictionaries."""

import json
from collections import Counter

import pytest

from fairseq_regattn.classification.corpus import (
    build_dictionary,
    fingerprint,
    preprocess_commands,
    take,
)
from fairseq_regattn.classification.rows import Preparation
from fairseq_regattn.errors import UsageError

from .conftest import PAIRS

LABELS = ("neutral", "entailment", "contradiction")


def many(number):
    """Three pairs of each premise."""
    return [
        (label, f"premise {n} .", f"{label} of {n} .") for n in range(number) for label in LABELS
    ]


def lines(path):
    return path.read_text(encoding="utf-8").split("\n")[:-1]


def texts(out, split):
    return list(
        zip(*(lines(out / f"{split}.{column}") for column in ("label", "input0", "input1")))
    )


@pytest.fixture
def made(write, tmp_path):
    """``made(rows of train, ...)`` takes them; ``made.out`` has the text."""

    class Made:
        out = tmp_path / "text"

        def __init__(self, train, valid=None, test=None, labels=None, **options):
            given = {"train": train, "valid": valid, "test": test}
            self.sources = {
                split: write(tmp_path / f"{split}.tsv", rows)
                for split, rows in given.items()
                if rows is not None
            }
            self.preparation = Preparation(2, labels)
            self.counts = take(self.sources, self.out, self.preparation, **options)

    return Made


def test_splits_with_sources_of_their_own(made, capsys):
    train = [*PAIRS, ("-", "no", "gold"), PAIRS[0]]
    one = made(train, [PAIRS[0]], [("neutral", "a", "b"), ("-", "a", "c")])
    assert texts(one.out, "train") == [*PAIRS, PAIRS[0]]
    assert texts(one.out, "test") == [("neutral", "a", "b")]
    labels = {"label contradiction": 1, "label entailment": 2, "label neutral": 1}
    assert one.counts["train"] == {
        "read": 5,
        "kept": 4,
        "dropped: no gold label": 1,
        "also in valid or test (kept)": 2,
        **labels,
    }
    assert json.loads((one.out / "counts.json").read_text())["train"] == one.counts["train"]
    assert (
        "      train: 4 of 5 rows; 1 dropped: no gold label; 2 also in" in capsys.readouterr().out
    )
    assert Preparation.read(one.out / "preparation.json").labels == tuple(sorted(LABELS))


def test_a_label_of_one_row_is_told(made, capsys):
    """A header, or a misspelling."""
    rows = [*PAIRS, *PAIRS]
    made([*rows, ("label", "premise", "hypothesis")], [PAIRS[0]], [PAIRS[0]])
    warnings = [line for line in capsys.readouterr().out.splitlines() if "warning" in line]
    assert warnings == ["      warning: only one row has the label 'label'"]


def test_only_the_cause_is_told(made):
    """Not that nothing is left of what it was held out of."""
    with pytest.raises(UsageError) as error:
        made([("neutral", "", "x")] * 30, held_out={"valid": 0.1, "test": 0.1})
    *ten, more = str(error.value).splitlines()
    assert len(ten) == 10
    assert not any("nothing is left" in message for message in ten)
    assert more == "and 20 more"


def test_no_premise_is_on_two_sides(made):
    rows = many(600)
    one = made(rows)
    found = {split: texts(one.out, split) for split in ("train", "valid", "test")}
    premises = {split: {row[1] for row in of} for split, of in found.items()}
    assert sum(map(len, premises.values())) == 600
    assert Counter(row for of in found.values() for row in of) == Counter(rows)
    for split, share in {"train": 0.7, "valid": 0.1, "test": 0.2}.items():
        assert len(premises[split]) / 600 == pytest.approx(share, abs=0.05)
        assert one.counts[split]["kept"] == len(found[split])
    assert one.counts["train"]["held out for valid"] == one.counts["valid"]["read"]


def test_premises_stay_on_their_side_when_others_come(made, tmp_path, write):
    one = made(many(300))
    more = [("neutral", f"another {n}", "x") for n in range(300)]
    source = {"train": write(tmp_path / "more.tsv", [*more, *many(300)[::-1]])}
    take(source, tmp_path / "again", Preparation(2))
    for split in ("train", "valid", "test"):
        again = {row for row in texts(tmp_path / "again", split) if "another" not in row[1]}
        assert again == set(texts(one.out, split))


def test_only_what_has_no_source_is_held_out(made):
    one = made(many(100), test=many(1), held_out={"valid": 0.3})
    assert 15 < one.counts["valid"]["kept"] / 3 < 45
    assert one.counts["test"]["read"] == 3
    assert one.counts["train"]["also in valid or test (kept)"] in (0, 3)


@pytest.mark.parametrize(
    ("held_out", "message"),
    [
        ({"valid": 0.1, "test": 0.1}, "test has a file of its own"),
        ({}, "valid needs a file, or a part of train"),
        ({"valid": 1.0}, r"the part of train for valid must be between 0 and 1, got 1\.0"),
        ({"dev": 0.1}, "must be valid or test, got 'dev'"),
    ],
)
def test_wrong_parts(held_out, message, made):
    with pytest.raises(UsageError, match=message):
        made(many(5), test=PAIRS, held_out=held_out)


def test_parts_that_leave_nothing(made):
    with pytest.raises(UsageError, match=r"must leave some of it, got valid 0\.5, test 0\.5"):
        made(many(5), held_out={"valid": 0.5, "test": 0.5})


@pytest.mark.parametrize("malformed", ["error", "skip"])
def test_a_label_that_train_does_not_have(malformed, made, tmp_path):
    options = {"valid": [*PAIRS, ("odd", "a", "b")], "test": [*PAIRS, ("new", "a", "b")]}
    if malformed == "skip":
        one = made(PAIRS, malformed="skip", **options)
        assert one.counts["valid"]["malformed: unknown label"] == 1
        assert one.counts["valid"]["kept"] == 3
        return
    with pytest.raises(UsageError) as error:
        made(PAIRS, **options)
    assert [line.partition(" is none")[0] for line in str(error.value).splitlines()] == [
        f"{tmp_path}/valid.tsv:4: unknown label: 'odd'",
        f"{tmp_path}/test.tsv:4: unknown label: 'new'",
    ]
    assert not (tmp_path / "text" / "counts.json").exists()


def test_labels_in_a_given_order(made):
    one = made(many(30), labels=LABELS)
    assert Preparation.read(one.out / "preparation.json").labels == LABELS


def test_every_row_is_accounted_for(made):
    bad = [("a", "b"), ("neutral", "", "x"), ("odd", "x", "y"), ("-", "x", "y")]
    one = made([*many(100), *bad], labels=LABELS, malformed="skip")
    tally = one.counts["train"]
    gone = [n for what, n in tally.items() if what.startswith(("malformed", "dropped", "held"))]
    assert len(gone) == 6
    assert tally["read"] == 304 == tally["kept"] + sum(gone)


@pytest.mark.parametrize("malformed", ["error", "skip"])
def test_an_empty_split(malformed, made, tmp_path):
    message = rf"{tmp_path}/test\.tsv: nothing is left of test: 0 of 1 rows; 1 dropped: no gold"
    with pytest.raises(UsageError, match=message):
        made(PAIRS, PAIRS, [("-", "a", "b")], malformed=malformed)


def test_one_label(made):
    with pytest.raises(UsageError, match=r"train\.tsv: it needs two labels or more, got neutral"):
        made([("neutral", "a", "b")], PAIRS, PAIRS)


@pytest.fixture
def text(made):
    train = [("x", "a a a b", "c c"), ("y", "b d", "c e")]
    return made(train, [("x", "f", "a")], [("y", "g", "h")]).out


def test_a_dictionary_has_the_frequent_words_of_train(text):
    assert build_dictionary(text).counts == {"a": 3, "c": 3, "b": 2, "d": 1, "e": 1}
    assert list(build_dictionary(text, min_count=2).counts) == ["a", "c", "b"]
    for wrong, message in ((0, "min_count must be a whole"), (9, "min_count 9: no word is as")):
        with pytest.raises(UsageError, match=message):
            build_dictionary(text, min_count=wrong)


def test_and_all_words_with_a_vector(text, tmp_path, capsys):
    vectors = tmp_path / "v.txt"
    vectors.write_text("z 1 2\nh 1 2\ne 3 4\na 5 6\n")
    found = build_dictionary(text, vectors)
    assert list(found.counts.items()) == [("a", 3), ("c", 3), ("b", 2), ("e", 1), ("h", 0)]
    assert (found.words, found.vectors.tolist()) == (["h", "e", "a"], [[1, 2], [3, 4], [5, 6]])
    assert "vectors: 3 of 8 words (42.9 % of the tokens)" in capsys.readouterr().out
    vectors.write_text("z 1 2\n")
    with pytest.raises(UsageError, match="no word of the text has a vector"):
        build_dictionary(text, vectors)


def test_commands(tmp_path):
    commands = preprocess_commands(tmp_path / "text", tmp_path / "bin.partial", 2)
    assert [command[command.index("--destdir") + 1] for command in commands] == [
        f"bin.partial/{column}" for column in ("input0", "input1", "label")
    ]
    command = " ".join(commands[1])
    assert "fairseq-preprocess --only-source --srcdict bin.partial/input1/dict.txt" in command
    assert "--trainpref text/train.input1 --validpref text/valid.input1" in command
    assert len(preprocess_commands(tmp_path / "text", tmp_path / "bin", 1)) == 2


def test_fingerprints_are_of_contents(write, tmp_path):
    path = write(tmp_path / "x.tsv")
    before = fingerprint(path)
    path.touch()
    assert fingerprint(path) == before
    path.write_bytes(path.read_bytes().replace(b"dog", b"cat"))
    assert fingerprint(path) != before
    for label in ("pos", "neg"):
        (tmp_path / "imdb" / label).mkdir(parents=True)
    (tmp_path / "imdb" / "pos" / "1.txt").write_text("good")
    before = fingerprint(tmp_path / "imdb")
    (tmp_path / "imdb" / "neg" / "1.txt").write_text("bad")
    assert fingerprint(tmp_path / "imdb") != before
