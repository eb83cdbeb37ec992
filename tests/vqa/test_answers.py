"""Answers are compared as in VQA's evaluation."""

import itertools
import re

import pytest
import torch

from fairseq_regattn.criterions.vqa_bce import vqa_accuracy
from fairseq_regattn.vqa.accuracy import Accuracy
from fairseq_regattn.vqa.answers import accuracy, normalise, soft_score, votes
from fairseq_regattn.vqa.predictions import Prediction


@pytest.mark.parametrize(
    ("answer", "wanted"),
    [
        ("Yes", "yes"),
        (" A dog. ", "dog"),
        ("two", "2"),
        ("none", "0"),
        ("1,000", "1000"),
        ("2.5", "2.5"),
        ("black/white", "black white"),
        ("1.", "1"),
        ("A 1.", "1"),
        ("$1.50.", "$1.50"),
        ("old-fashioned", "old fashioned"),
        ("old-fashioned - red", "oldfashioned red"),
        ("yes, it is", "yes it is"),
        ("red,blue", "red blue"),
        ("1,000-2,000 (about)", "10002000 about"),
        ("what?", "what"),
        (" a/b/c/ ", "b c"),
        ("this\n/that/", "this that"),
        ("the", "the"),  # else nothing would be left
    ],
)
def test_normalise(answer, wanted):
    assert normalise(answer) == wanted
    assert normalise(normalise(answer)) == wanted


@pytest.mark.parametrize("count", range(11))
def test_accuracy_leaves_each_of_the_ten_out(count):
    people = [1] * count + [0] * (10 - count)
    nines = list(itertools.combinations(people, 9))
    wanted = sum(min(sum(nine) / 3, 1) for nine in nines) / len(nines)
    assert accuracy(count) == pytest.approx(wanted)
    counts = torch.tensor([float(count)], dtype=torch.double)
    assert vqa_accuracy(counts).item() == pytest.approx(wanted)
    assert soft_score(count) == min(count / 3, 1)


def test_one_answer_stands_for_ten():
    assert votes("a", None) == {"a": 10}
    assert votes("a", {"a": 4, "b": 6}) == {"a": 4, "b": 6}


def said(answer, gold, kind, score=None):
    return Prediction(
        1, 1, "q", answer, 0.5, "softmax()", [[1.0]], None, None, gold, kind, "x", score
    )


def test_accuracy_by_kind():
    table = Accuracy()
    assert table.text() == ""
    for found in (
        said("a", "a", "t", 1.0),
        said("b", "a", "t", 0.3),
        said("b", "b", "u"),
        said("b", None, "u"),
        said("b", "a", "u"),
    ):
        table.add(found)
    rows = [re.split(r"  +", line.strip()) for line in table.text().splitlines()[2:]]
    assert [(row[0], row[1], row[2], row[-1]) for row in rows] == [
        ("all", "4", "2", "-"),  # not all have ten answers
        ("answer type x", "4", "2", "-"),
        ("question type t", "2", "1", "65.00"),
        ("question type u", "2", "1", "-"),
    ]
    assert rows[0][3].startswith("50.00 [")
