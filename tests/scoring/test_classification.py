"""Accuracy, its interval, McNemar's test."""

import math
from dataclasses import asdict

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fairseq_regattn.errors import UsageError
from fairseq_regattn.scoring.classification import (
    ClassScores,
    compare_labels,
    interval,
    score_labels,
    text,
)

LABELS = ["yes", "no", "maybe"]
GOLD = ["yes"] * 5 + ["no"] * 3
FOUND = ["yes", "yes", "yes", "no", "maybe", "no", "yes", "no"]

label = st.sampled_from(LABELS)
pairs = st.lists(st.tuples(label, label), min_size=1, max_size=60)
triples = st.lists(st.tuples(label, label, label), min_size=1, max_size=60)


def test_what_was_taken_for_what():
    scores = score_labels(FOUND, GOLD, LABELS)
    assert scores.confusion == [[3, 1, 1], [1, 2, 0], [0, 0, 0]]
    assert scores.accuracy[0] == 62.5
    assert scores.recall == {"yes": 60, "no": pytest.approx(200 / 3), "maybe": None}
    assert scores.precision == {"yes": 75, "no": pytest.approx(200 / 3), "maybe": 0}
    assert scores.f1 == pytest.approx({"yes": 200 / 3, "no": 200 / 3, "maybe": 0})
    assert scores.macro_f1 == pytest.approx(400 / 9)


def test_a_label_that_is_neither_there_nor_given_does_not_count():
    scores = score_labels(["yes", "no"], ["yes", "no"], LABELS)
    assert scores.f1["maybe"] is scores.recall["maybe"] is scores.precision["maybe"] is None
    assert scores.macro_f1 == 100


@given(pairs)
def test_sums(found):
    gold, predicted = zip(*found)
    scores = score_labels(predicted, gold, LABELS)
    assert sum(map(sum, scores.confusion)) == len(found)
    assert scores.gold == {label: gold.count(label) for label in LABELS}
    assert scores.predicted == {label: predicted.count(label) for label in LABELS}
    right = sum(a == b for a, b in found)
    assert sum(scores.right.values()) == right
    assert scores.accuracy[0] == pytest.approx(100 * right / len(found))
    turned = score_labels(gold, predicted, LABELS)
    assert turned.confusion == [list(column) for column in zip(*scores.confusion)]
    assert turned.recall == scores.precision
    assert turned.macro_f1 == pytest.approx(scores.macro_f1)
    assert ClassScores(**asdict(scores)) == scores


@pytest.mark.parametrize(("right", "texts"), [(0, 1), (1, 1), (8, 10), (50, 100), (8096, 9824)])
def test_interval_is_wilsons(right, texts):
    z, share = 1.959963984540054, right / texts
    middle = (share + z * z / (2 * texts)) / (1 + z * z / texts)
    half = z * math.sqrt(share * (1 - share) / texts + z * z / (4 * texts * texts))
    half /= 1 + z * z / texts
    expected = [100 * share, 100 * (middle - half), 100 * (middle + half)]
    assert interval(right, texts) == pytest.approx(expected, abs=1e-9)


def test_wilson_in_a_textbook():
    """Newcombe 1998, table I: 81 of 263, and 1 of 29."""
    assert interval(81, 263)[1:] == pytest.approx([25.53, 36.62], abs=0.006)
    assert interval(1, 29)[1:] == pytest.approx([0.61, 17.18], abs=0.006)


@given(st.integers(1, 300).flatmap(lambda n: st.tuples(st.integers(0, n), st.just(n))))
def test_interval_is_around_the_value_and_narrows(counts):
    right, texts = counts
    value, low, high = interval(right, texts)
    assert 0 <= low <= value <= high <= 100
    _, lower, higher = interval(4 * right, 4 * texts)
    assert higher - lower < high - low


def mcnemar(ours, theirs):
    """Twice the smaller tail of fair coins, by counting."""
    n, k = ours + theirs, min(ours, theirs)
    return min(1.0, 2 * sum(math.comb(n, i) for i in range(k + 1)) / 2**n)


def compared(ours, theirs, both=3, neither=2):
    gold = ["yes"] * (ours + theirs + both + neither)
    system = ["yes"] * ours + ["no"] * theirs + ["yes"] * both + ["no"] * neither
    baseline = ["no"] * ours + ["yes"] * theirs + ["yes"] * both + ["maybe"] * neither
    return compare_labels(baseline, {"x": system}, gold)["x"]["accuracy"]


@pytest.mark.parametrize(
    ("ours", "theirs", "p"),
    [
        (0, 0, 1.0),
        (1, 0, 1.0),
        (1, 1, 1.0),
        (5, 0, 0.0625),  # 2 / 32
        (8, 1, 0.0390625),  # 20 / 512
        (2, 10, 0.03857421875),  # 2 (1 + 12 + 66) / 4096
    ],
)
def test_mcnemar_by_hand(ours, theirs, p):
    assert mcnemar(ours, theirs) == pytest.approx(p)
    score = compared(ours, theirs)
    assert score.value == pytest.approx(p)
    assert score.signature.startswith("test:mcnemar|exact:yes|sides:2|version:scipy-")
    assert compared(ours, theirs, both=40, neither=9).value == score.value


@given(triples)
def test_mcnemar_is_symmetric_and_of_discordant_texts_alone(found):
    gold, one, other = zip(*found)
    p = compare_labels(one, {"x": other, "same": one}, gold)
    assert p["same"]["accuracy"].value == 1
    assert compare_labels(other, {"x": one}, gold)["x"] == p["x"]
    ours = sum(a == t != b for t, a, b in found)
    theirs = sum(b == t != a for t, a, b in found)
    assert p["x"]["accuracy"].value == pytest.approx(mcnemar(ours, theirs))


@pytest.mark.parametrize(
    ("predicted", "gold", "message"),
    [
        ([], [], "no labels to score"),
        (["yes"], ["yes", "no"], "1 predicted labels do not fit 2 gold ones"),
        (["yes", "so"], ["yes", "no"], "line 2 of the predicted labels must be one of yes, no, m"),
        (["yes", "no"], ["yes", "-"], "line 2 of the gold labels must be .*, got '-'"),
    ],
)
def test_what_cannot_be_scored(predicted, gold, message):
    with pytest.raises(UsageError, match=message):
        score_labels(predicted, gold, LABELS)


def test_what_cannot_be_compared():
    with pytest.raises(UsageError, match="no labels"):
        compare_labels([], {}, [])
    for baseline, system in ((["a"], ["a", "b"]), (["a", "b"], ["a"])):
        with pytest.raises(UsageError, match="1 predicted labels do not fit 2"):
            compare_labels(baseline, {"x": system}, ["a", "b"])


def test_text_for_a_terminal():
    lines = text(score_labels(FOUND, GOLD, LABELS)).splitlines()
    assert lines[0] == "accuracy 62.50 % [30.57, 86.32] (5 of 8), macro F1 44.44"
    header, _, yes, no, maybe = lines[2:]
    assert header.split() == ["gold", "\\", "predicted", *LABELS, "texts", "right"]
    assert yes.split() == ["yes", "3", "1", "1", "5", "60.0", "%"]
    assert no.split()[-2:] == ["66.7", "%"]
    assert maybe.split() == ["maybe", "0", "0", "0", "0", "-"]
    assert len(set(map(len, lines[2:]))) == 1
