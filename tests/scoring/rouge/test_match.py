"""Hits against their definitions, and against rouge-score in test_score.py."""

from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fairseq_regattn.scoring.rouge.match import common_length, ngrams, sequence, union, weighted
from fairseq_regattn.scoring.rouge.text import read_text

from .texts import CHEAP, TEXT

TOKENS = st.lists(st.sampled_from([b"a", b"b", b"c", b"dd"]), max_size=90)


def read(text):
    return read_text(text, False, None)


def plain_common_length(first, second):
    """By the usual table."""
    row = [0] * (len(second) + 1)
    for token in first:
        above, row = row, [0]
        for j, other in enumerate(second):
            row.append(above[j] + 1 if token == other else max(above[j + 1], row[j]))
    return row[-1]


@CHEAP
@given(TOKENS, TOKENS)
def test_common_length(first, second):
    assert common_length(first, second) == plain_common_length(first, second)


@CHEAP
@given(TOKENS)
def test_common_length_of_equals(tokens):
    assert common_length(tokens, tokens) == len(tokens)
    assert common_length(tokens, tokens[::2]) == len(tokens[::2])
    assert common_length(tokens, [b"x", *tokens]) == len(tokens)
    assert common_length(tokens, []) == common_length([], tokens) == 0


def test_common_length_of_long_texts():
    first = [b"%d" % (i * i % 101) for i in range(1000)]
    second = [b"%d" % (i * 7 % 103) for i in range(900)]
    assert common_length(first, second) == plain_common_length(first, second)


@CHEAP
@given(TEXT, TEXT, st.integers(1, 9))
def test_ngrams(hypothesis, reference, size):
    made, there = read(hypothesis), read(reference)
    grams = [
        Counter(tuple(text.tokens[i : i + size]) for i in range(len(text.tokens) - size + 1))
        for text in (made, there)
    ]
    found = ngrams(made, there, size)
    assert found.hits == sum((grams[0] & grams[1]).values())
    assert found.hypothesis == sum(grams[0].values())
    assert found.reference == sum(grams[1].values())
    expected = found.hits / found.reference if found.reference else 0
    assert found.recall == pytest.approx(expected, abs=5.1e-6)


def test_ngrams_are_clipped():
    assert ngrams(read("a a a b"), read("a a c"), 1) == (2, 3, 4, 0.66667)
    assert ngrams(read("a a c"), read("a a a b"), 1) == (2, 4, 3, 0.5)
    assert ngrams(read("a\na a"), read("a a"), 2) == (1, 1, 2, 1.0)  # across sentences
    assert ngrams(read("a"), read("a"), 2) == (0, 0, 0, 0.0)


@CHEAP
@given(TEXT, TEXT)
def test_a_swap_swaps(hypothesis, reference):
    """Hits are the same from both sides, for all but ROUGE-Lsum and ROUGE-W of sentences."""
    for match in (sequence, lambda *texts: ngrams(*texts, 1), lambda *texts: ngrams(*texts, 2)):
        there = match(read(hypothesis), read(reference))
        back = match(read(reference), read(hypothesis))
        assert (there.hits, there.reference, there.hypothesis) == (
            back.hits,
            back.hypothesis,
            back.reference,
        )


@CHEAP
@given(TEXT, TEXT)
def test_what_is_at_most_what(hypothesis, reference):
    """Order only takes hits away; without sentences, two definitions are one."""
    made, there = read(hypothesis), read(reference)
    tokens, whole, parts = ngrams(made, there, 1), sequence(made, there), union(made, there)
    assert whole.hits <= tokens.hits
    assert parts.hits <= tokens.hits
    assert {tokens[1:3], whole[1:3], parts[1:3]} == {(len(there.tokens), len(made.tokens))}
    if len(made.sentences) == len(there.sentences) == 1:
        assert whole == parts


@CHEAP
@given(TEXT, TEXT)
def test_weights_of_runs(hypothesis, reference):
    """No more than all tokens in one run; counts are raised to the power, the reference's twice."""
    made, there = read(hypothesis), read(reference)
    found = weighted(made, there, 1.5)
    most = ngrams(made, there, 1).hits
    assert found.hits <= most**1.5 + 1e-9
    assert found.hypothesis == pytest.approx(len(made.tokens) ** 1.5)
    base = sum(len(sentence) ** 1.5 for sentence in there.sentences)
    assert found.reference == pytest.approx(base**1.5)
    assert found.recall == pytest.approx((found.hits / base) ** (1 / 1.5) if base else 0)


def test_union_of_sentences():
    """The example of Lin (2004), 3.2."""
    reference = read("w1 w2 w3 w4 w5")
    found = union(read("w1 w2 w6 w7 w8\nw1 w3 w8 w9 w5"), reference)
    assert found == (4, 5, 10, 0.8)
    # in one pass the order of the hypothesis' sentences counts
    assert sequence(read("w1 w2 w6 w7 w8\nw1 w3 w8 w9 w5"), reference).hits == 4
    assert sequence(read("w1 w3 w8 w9 w5\nw1 w2 w6 w7 w8"), reference).hits == 3


def test_runs():
    """The example of Lin (2004), 3.3: equal common subsequences, one of them in one piece."""
    reference = read("a b c d e f g")
    together, apart = read("a b c d h i k"), read("a h b k c i d")
    assert sequence(together, reference) == sequence(apart, reference)
    assert weighted(together, reference, 2) == (16, 49**2, 49, (16 / 49) ** 0.5)
    # the hits stand side by side in the reference, and that is where ROUGE-1.5.5 counts runs
    assert weighted(apart, reference, 2) == weighted(together, reference, 2)
    scattered = read("a x b y c z d")
    assert weighted(reference, scattered, 2).hits == 4


@pytest.mark.parametrize(
    ("hypothesis", "reference", "hits", "runs"),
    [
        # a token counts as often as both documents have it
        ("a\na", "a b", 1, 1),
        ("a b", "a\na", 1, 1),
        ("a b\na b", "a b\na b", 4, 8),
        # sentences are compared with sentences: b a is found in two parts
        ("a\nb", "b a", 2, 4),
        ("b a", "a\nb", 2, 2),
        # of three ways of the same length, the one that ends first in the reference: b
        ("a c b\nb", "b c a", 1, 1),
        ("a c b\na", "b c a", 2, 2),
        # a hit whose token is used up does not end a run
        ("a x b", "a\na\na x", 2, 2),
        ("a b c", "b\na b c", 3, 5),
        # but at the end of a sentence, the run is lost
        ("b a", "a\nb a", 2, 1),
    ],
)
def test_small_cases(hypothesis, reference, hits, runs):
    """ROUGE-Lsum's hits, and ROUGE-W's with each run squared."""
    made, there = read(hypothesis), read(reference)
    assert union(made, there).hits == hits
    assert weighted(made, there, 2).hits == runs


def test_a_run_is_worth_looking_for():
    """Of two common subsequences of two tokens, ROUGE-W takes the one in a row."""
    hypothesis, reference = read("c d a x b"), read("a y b c d")
    assert weighted(hypothesis, reference, 2).hits == 4
    assert union(hypothesis, reference).hits == 2
    assert weighted(read("a x b x c"), read("a b c"), 2).hits == 9


@pytest.mark.parametrize("empty", ["", ".", "\n\n", "Ελλάδα", ".\n."])
def test_nothing_to_find(empty):
    nothing, something = read(empty), read("a b")
    matchers = [
        lambda *texts: ngrams(*texts, 1),
        sequence,
        union,
        lambda *texts: weighted(*texts, 2),
    ]
    for match in matchers:
        assert match(nothing, nothing) == (0, 0, 0, 0)
        assert match(something, nothing)[:2] == (0, 0)
        assert match(nothing, something)[::2] == (0, 0)
        assert match(nothing, something).recall == 0
        assert match(nothing, something).reference > 0
        assert match(something, nothing).hypothesis > 0
        assert match(something, nothing).recall == 0
