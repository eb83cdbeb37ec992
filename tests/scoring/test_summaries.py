"""Summaries: what is copied from the input, and ROUGE of what comes out."""

import numpy as np
import pytest

from fairseq_regattn.scoring.rouge import Limit, Rouge
from fairseq_regattn.scoring.summaries import (
    compare_summaries,
    finish,
    main_measure,
    names,
    score_summaries,
)

SOURCE = ["a", "##", "b", "##", "###"]
ORIGINAL = ["a", "17", "b", "42", "100"]


def attend(*columns, width=6):
    """A row a column: all weight there, and a row for the end."""
    weights = np.zeros((len(columns) + 1, width))
    for step, column in enumerate(columns):
        weights[step, column] = 1
    return weights


@pytest.mark.parametrize(
    ("word", "column", "found"),
    [("##", 3, "42"), ("##", 1, "17"), ("##", 0, "17"), ("###", 0, "100"), ("#.#", 1, "#.#")],
)
def test_masked_digits_come_back_from_where_attention_is(word, column, found):
    """From the first word that fits where no attention is on any, and from none that does not."""
    assert finish([word], SOURCE, attend(column), ORIGINAL) == [found]
    assert finish([word], SOURCE, attend(column)) == [word]


def test_a_masked_word_takes_only_what_is_the_same_but_for_digits():
    source = ["mid-####s", "#,###", "####s"]
    original = ["mid-1990s", "2,500", "1980s"]
    weights = np.full((4, 4), 0.25)
    assert finish(source, source, weights, original) == original
    assert finish(["####"], source, weights, original) == ["####"]


def test_unknown_words_take_the_largest_weight_and_the_first_of_a_segment():
    weights = np.array([[0, 0.3, 0.3, 0.3, 0, 0.1], [0.1, 0, 0, 0.5, 0, 0.4], [0] * 6])
    made = finish(["<unk>", "<unk>"], SOURCE, weights, ORIGINAL, replace_unknown=True)
    assert made == ["17", "42"]
    assert finish(["<unk>"], SOURCE, weights, replace_unknown=True) == ["##"]
    assert finish(["<unk>"], SOURCE, weights) == ["<unk>"]


@pytest.mark.parametrize(
    ("row", "found"), [([0.2, 0.8], "<unk>"), ([0, 0], "<unk>"), ([0.5, 0.5], "word")]
)
def test_unknown_words_stay_where_the_end_has_more_weight(row, found):
    weights = np.array([row, [0, 1]])
    assert finish(["<unk>"], ["word"], weights, replace_unknown=True) == [found]


def test_unknown_words_of_an_empty_input_stay():
    assert finish(["<unk>"], [], np.ones((2, 1)), replace_unknown=True) == ["<unk>"]


def test_brackets():
    words = ["-lrb-", "x", "-rrb-", "-LRB-"]
    weights = np.full((5, 2), 0.5)
    assert finish(words, ["a"], weights, brackets=True) == ["(", "x", ")", "-LRB-"]
    assert finish(words, ["a"], weights) == words


def test_original_of_another_length_is_refused():
    with pytest.raises(ValueError, match="2 original words for 5 words of the input"):
        finish(["x"], SOURCE, attend(0), ["a", "b"])


def test_scores_are_those_of_rouge():
    made = ["police arrest two men", "storm ##", ""]
    references = [["two men arrested by police"] * 2, ["storm hits coast", "coast hit"], ["x", "y"]]
    found, signatures = score_summaries(made, references, stem=True, size=9)
    for limit, size in ((None, None), (Limit("bytes", 9), 9)):
        expected = Rouge(("1", "2", "L"), True, limit).system(made, references)
        averages = expected.averages()
        for name, (kind, measure) in names(size).items():
            interval = getattr(averages[kind], measure)
            assert found.scores[name] == pytest.approx([100 * v for v in interval])
        assert expected.signature in signatures.values()
    assert list(signatures) == ["rouge", "rouge, 9 bytes"]
    assert (found.words, found.reference_words) == (2, 17 / 6)
    assert (found.unknown, found.masked) == (0, 1)
    assert set(names(None)).isdisjoint(names(9))
    assert (main_measure(None), main_measure(9)) == ("f1", "recall")


@pytest.mark.parametrize("mark", ["<unk>", "UNK"])
def test_two_unknown_words_are_no_match(mark):
    scores = [
        score_summaries(["a <unk> c"], [[reference]], False, None)[0].scores["rouge1 f1"][0]
        for reference in (f"a {mark} c", "a b c")
    ]
    assert scores[0] == scores[1] == pytest.approx(66.667)
    [kept] = [score_summaries(["a chunk c"], [["a chUNK c"]], False, None)[0]]
    assert kept.scores["rouge1 f1"][0] == 100


def test_p_values_of_the_main_scores():
    references = [[f"line {n} of the text", f"text line {n}"] for n in range(30)]
    good, bad = [f"line {n} of the" for n in range(30)], [f"lane {n}" for n in range(30)]
    found = compare_summaries(good, {"bad": bad, "same": good}, references, False, 5)
    assert set(found["bad"]) == {
        *("rouge1 f1", "rouge2 f1", "rougeL f1"),
        *("rouge1 recall, 5 bytes", "rouge2 recall, 5 bytes", "rougeL recall, 5 bytes"),
    }
    assert found["bad"]["rouge1 f1"].value < 0.001
    assert found["same"]["rouge1 f1"].value == 1
    assert "several:average" in found["bad"]["rougeL f1"].signature
