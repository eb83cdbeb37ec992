"""Alignment error rate against its definition."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fairseq_regattn.errors import UsageError
from fairseq_regattn.scoring.alignment import Links, alignment_scores

SET = st.sets(st.tuples(st.integers(0, 3), st.integers(0, 3)))


def test_links_that_are_sure_are_possible():
    assert Links({(0, 0)}, {(1, 1)}).possible == {(0, 0), (1, 1)}
    assert Links() == Links(set(), set())


def test_a_case_by_hand():
    predicted = [[(0, 0), (1, 1)], [(0, 0), (0, 0)]]
    gold = [Links({(0, 0), (2, 2)}, {(1, 1)}), Links({(1, 1)})]
    scores = alignment_scores(predicted, gold)
    assert scores.precision == pytest.approx(2 / 3)
    assert scores.recall == pytest.approx(1 / 3)
    assert scores.f1 == pytest.approx(4 / 9)
    assert scores.aer == pytest.approx(1 - (1 + 2) / (3 + 3))
    assert (scores.links, scores.sentences) == (3, 2)


@given(st.lists(st.tuples(SET, SET, SET), max_size=4))
def test_agrees_with_the_definition(sentences):
    """Over the links of all sentences at once, one link at a time."""
    gold = [Links(set(sure), set(possible)) for _, sure, possible in sentences]
    scores = alignment_scores([predicted for predicted, _, _ in sentences], gold)
    a, s, p = (
        {(number, *link) for number, sets in enumerate(sentences) for link in sets[which]}
        for which in range(3)
    )
    p |= s

    def ratio(part, whole):
        return part / whole if whole else math.nan

    right, found = sum(link in p for link in a), sum(link in a for link in s)
    precision, recall = ratio(right, len(a)), ratio(found, len(s))
    if math.isnan(precision + recall):
        f1 = math.nan
    else:
        f1 = 2 / (1 / precision + 1 / recall) if precision and recall else 0.0
    expected = 1 - ratio(right + found, len(a) + len(s)), precision, recall, f1
    actual = scores.aer, scores.precision, scores.recall, scores.f1
    assert actual == pytest.approx(expected, nan_ok=True)
    assert (scores.links, scores.sentences) == (len(a), len(sentences))


def test_empty_denominators():
    gold, link = [Links({(0, 0)})], [[(0, 0)]]
    nothing = alignment_scores([[]], gold)
    assert (nothing.aer, nothing.recall) == (1, 0)
    assert math.isnan(nothing.precision)
    assert math.isnan(nothing.f1)
    only_possible = alignment_scores(link, [Links(set(), {(0, 0)})])
    assert (only_possible.aer, only_possible.precision) == (0, 1)
    assert math.isnan(only_possible.recall)
    assert alignment_scores([[(1, 1)]], gold).f1 == 0
    assert math.isnan(alignment_scores([], []).aer)


def test_what_cannot_be_compared_is_refused():
    with pytest.raises(UsageError, match="got 1 predicted and 2 gold"):
        alignment_scores([[]], [Links(), Links()])
    with pytest.raises(UsageError, match=r"the predicted link \(-1, 0\) in sentence 1"):
        alignment_scores([[], [(-1, 0), (0, 0)]], [Links(), Links()])
    with pytest.raises(UsageError, match=r"the gold link \(0, -2\) in sentence 0"):
        alignment_scores([[]], [Links({(0, -2)})])
