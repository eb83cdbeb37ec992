"""Weights over words from weights over subwords, and links from weights."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fairseq_regattn.analysis import Hypothesis
from fairseq_regattn.analysis.words import hard_links, word_weights
from fairseq_regattn.errors import UsageError


def hypothesis(source, target, weights, sample_id=0):
    if weights is not None:
        weights = np.array(weights, dtype=float)
    return Hypothesis(sample_id, source, target, None, "", 0.0, weights=weights)


def test_source_pieces_are_summed_and_target_pieces_averaged():
    source, target, weights = word_weights(
        hypothesis(
            ["▁ab", "c", "▁d"],
            ["▁x", "▁y", "z"],
            [[0.5, 0.25, 0.25, 0], [0.25, 0.25, 0.5, 0], [0, 0, 0.5, 0.5], [0, 0, 0, 1]],
        ),
        subwords=True,
    )
    assert (source, target) == (["abc", "d"], ["x", "yz"])
    assert weights.tolist() == [[0.75, 0.25, 0], [0.25, 0.5, 0.25], [0, 0, 1]]


def test_words_are_left_alone():
    given_ = hypothesis(["▁a", "b"], ["c"], [[0.5, 0.5, 0], [0, 0, 1]])
    source, target, weights = word_weights(given_, subwords=False)
    assert (source, target) == (["▁a", "b"], ["c"])
    assert weights.tolist() == given_.weights.tolist()


@pytest.mark.parametrize(
    ("pieces", "words", "summed"),
    [
        (["a", "b", "▁c"], ["ab", "c"], [3, 4]),  # no ▁ at the start
        (["▁", "a", "▁b"], ["a", "b"], [3, 4]),
        (["▁a", "▁", "▁b"], ["a", "b"], [1, 6]),  # a lone piece, then one with its own ▁
        (["▁", "▁", "▁b"], ["b"], [7]),
        (["▁a", "▁b", "▁"], ["a", "b"], [1, 6]),  # nothing follows
        (["▁"], [""], [1]),
        ([], [], []),
    ],
)
def test_where_words_begin(pieces, words, summed):
    weights = [2.0**column for column in range(len(pieces))]
    source, target, found = word_weights(hypothesis(pieces, [], [[*weights, 100]]), subwords=True)
    assert (source, target) == (words, [])
    assert found.tolist() == [[*summed, 100]]
    # the same sentence as target: as many rows, each the mean of its pieces'
    rows = [[weight] for weight in [*weights, 100]]
    _, target, found = word_weights(hypothesis([], pieces, rows), subwords=True)
    assert target == words
    assert found.shape == (len(words) + 1, 1)
    assert found[-1] == 100


PIECES = st.lists(st.sampled_from(["▁", "▁a", "b", "▁ccc", "<unk>", "."]), max_size=8)


@given(PIECES, PIECES, st.randoms(use_true_random=False))
def test_agrees_with_post_processing_and_loses_nothing(source, target, random):
    weights = np.array([[random.random() for _ in [*source, 0]] for _ in [*target, 0]])
    words, _, found = word_weights(hypothesis(source, target, weights), subwords=True)
    # what fairseq does to the text
    expected = "".join(source).replace("▁", " ").split()
    assert words == (expected or [""] * bool(source))
    assert (found[:, -1][-1], found.shape[1]) == (weights[-1, -1], len(words) + 1)
    sums = weights.sum(axis=1)
    assert found[-1].sum() == pytest.approx(sums[-1])
    assert np.all(found.sum(axis=1) <= sums.max() + 1e-9)
    assert np.all(found.sum(axis=1) >= sums.min() - 1e-9)


def test_what_has_no_weights_or_others_is_refused():
    with pytest.raises(UsageError, match="sentence 7 has no weights"):
        word_weights(hypothesis(["a"], [], None, sample_id=7), subwords=True)
    with pytest.raises(UsageError, match=r"sentence 7 must be 1 x 2.* got shape \(2, 1\)"):
        word_weights(hypothesis(["a"], [], [[1], [1]], sample_id=7), subwords=False)


def test_links_go_to_the_largest_weight():
    weights = np.array(
        [
            [0.2, 0.5, 0.3],
            [0.4, 0.4, 0.2],  # the first of equal ones
            [0.2, 0.3, 0.5],  # the end has the most: no link
            [0.0, 0.5, 0.5],  # a word has as much as the end
            [0.0, 0.0, 0.0],
            [1.0, 0.0, 0.0],  # the end of the target links to nothing
        ]
    )
    assert hard_links(weights) == [(1, 0), (0, 1), (1, 3)]
    assert hard_links(np.array([[1.0]])) == []
    assert hard_links(np.array([[1.0], [1.0]])) == []  # an empty source
