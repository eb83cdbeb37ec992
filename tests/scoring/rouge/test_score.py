"""Scores of documents and systems: against rouge-score, by properties, and how they are refused."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from rouge_score import rouge_scorer

import fairseq_regattn
from fairseq_regattn.scoring.rouge import Interval, Limit, Rouge, Score, System

from .texts import CHEAP, TEXT

TYPES = ("1", "2", "3", "L", "Lsum", "W-1.2")
NOTHING = Score(0, 0, 0)
ROUNDING = 5e-6 + 1e-12


def score(hypothesis, *references, name="1", **settings):
    return Rouge((name,), **settings).document(hypothesis, references)[name]


# --- one reference


@CHEAP
@given(TEXT, TEXT)
def test_agrees_with_rouge_score(hypothesis, reference):
    """Which neither rounds nor has ROUGE-W; F1 here is of what was rounded, as in ROUGE-1.5.5."""
    names = [name for name in TYPES if name != "W-1.2"]
    found = Rouge(tuple(names)).document(hypothesis, [reference])
    scorer = rouge_scorer.RougeScorer([f"rouge{name}" for name in names])
    for name in names:
        expected = scorer.score(reference, hypothesis)[f"rouge{name}"]
        assert found[name].recall == pytest.approx(expected.recall, abs=ROUNDING)
        assert found[name].precision == pytest.approx(expected.precision, abs=ROUNDING)
        assert found[name].f1 == pytest.approx(expected.fmeasure, abs=3 * ROUNDING)


def test_five_decimals():
    """As ROUGE-1.5.5, F1 too is of what was rounded."""
    assert score("a b c", "a x y z z z z") == Score(0.14286, 0.33333, 0.2)
    assert score("a b c d e f", "a") == Score(1.0, 0.16667, 0.28572)  # of 2 / 7
    # 3 / 7 ** 1.2
    assert score("a b c", "a b c d e f g", name="W-1.2") == Score(0.2904, 1.0, 0.45009)


@CHEAP
@given(TEXT, st.booleans())
def test_of_itself(text, stemmed):
    found = Rouge(TYPES, stem=stemmed).document(text, [text])
    for name in TYPES:
        size = int(name) if name.isdigit() else 1
        there = bool(Rouge((str(size),)).document(text, [text])[str(size)].recall)
        expected = 1.0 if there else 0.0
        if name != "W-1.2":
            assert found[name] == (expected, expected, expected)


def test_runs_of_itself():
    """ROUGE-1.5.5 raises the length of the reference to the power twice: n ** (1 - power)."""
    assert score("a b c d", "a b c d", name="W-2") == Score(0.25, 1.0, 0.4)
    # and two sentences give two runs
    assert score("a b\nc d", "a b\nc d", name="W-2") == Score(0.35355, 0.70711, 0.4714)


@CHEAP
@given(TEXT, TEXT)
def test_a_swap_swaps(hypothesis, reference):
    rouge = Rouge(("1", "2", "L"))
    there = rouge.document(hypothesis, [reference])
    back = rouge.document(reference, [hypothesis])
    for name in rouge.types:
        assert there[name] == (back[name].precision, back[name].recall, back[name].f1)


@CHEAP
@given(TEXT, st.lists(TEXT, min_size=2, max_size=4), st.sampled_from(["average", "best"]))
def test_range(hypothesis, references, several):
    for found in Rouge(TYPES, several=several).document(hypothesis, references).values():
        assert all(0 <= number <= 1 for number in found)
        assert min(found) <= found.f1 <= max(found)
        assert (found.f1 > 0) == (min(found.recall, found.precision) > 0)


@pytest.mark.parametrize("several", ["average", "best", "jackknife"])
@pytest.mark.parametrize("empty", ["", ".", " \n ", "Ελλάδα", "日本 مرحبا"])
def test_nothing_to_score(empty, several):
    rouge = Rouge(TYPES, several=several)
    for references in (["a b", "b c"], ["a b", empty], [empty, empty]):
        assert set(rouge.document(empty, references).values()) == {NOTHING}
    assert set(rouge.document("a b", [empty, empty]).values()) == {NOTHING}


def test_an_empty_hypothesis_keeps_the_denominator():
    rouge = Rouge(TYPES)
    texts, references = ["a b c", ".", "Ελλάδα", ""], [["a b c"]] * 4
    assert rouge.system(texts, references).means()["1"] == (0.25, 0.25, 0.25)
    assert rouge.system(texts, references).averages()["1"].f1.value == pytest.approx(0.25, abs=0.02)


def test_unknown_words():
    """fairseq prints <<unk>> in references and <unk> in hypotheses."""
    assert score("the <unk>", "the <<unk>>") == (0.5, 0.5, 0.5)
    assert score("<unk>", "<<unk>>", stem=True) == NOTHING
    assert score("<<unk>>", "<<unk>>") == (1, 1, 1)


def test_options_reach_the_text():
    assert score("children ran", "child ran") == (0.5, 0.5, 0.5)
    assert score("children ran", "child ran", stem=True) == (1, 1, 1)
    # -b and -l cut references, too
    assert score("a b c", "a b d", limit=Limit("words", 2)) == (1, 1, 1)
    assert score("a b c", "a b d", limit=Limit("words", 3)).recall < 1
    assert score("abc d", "abd e", limit=Limit("bytes", 2)) == (1, 1, 1)
    assert score("a b", "a b c d", limit=Limit("words", 3)) == Score(0.66667, 1.0, 0.8)


# --- several references


def test_average_sums_over_references():
    """Hits and counts; not the mean of scores."""
    assert score("a b", "a", "a b c d") == Score(0.6, 0.75, 0.66667)
    # an empty one counts for precision only
    assert score("a b", "a b", "") == Score(1.0, 0.5, 0.66667)


def test_best_is_by_recall():
    # 1 of 1, for all that precision and F1 of the other are higher
    assert score("a b c", "a", "a b c d", several="best") == Score(1.0, 0.33333, 0.5)
    # and of equals the first
    assert score("a b c", "a x", "a b y z", several="best") == Score(0.5, 0.33333, 0.4)
    assert score("a b c", "a b y z", "a x", several="best") == Score(0.5, 0.66667, 0.57143)


def test_best_of_runs_is_by_another_recall():
    """ROUGE-1.5.5 chooses by the recall before the second power, and prints the one after."""
    one, other = "a x", "a b c y"  # before, 1/2 and 3/4
    assert score("a b c", one, name="W-2").recall == 0.25
    found = score("a b c", one, other, name="W-2", several="best")
    assert found == score("a b c", other, name="W-2") == Score(0.1875, 1.0, 0.31579)


@CHEAP
@given(TEXT, st.lists(TEXT, min_size=2, max_size=4))
def test_recall_of_best(hypothesis, references):
    """At least that of the average, of a jackknife and of each reference; runs aside."""
    names = ("1", "2", "L", "Lsum")
    best = Rouge(names, several="best").document(hypothesis, references)
    each = [Rouge(names).document(hypothesis, [reference]) for reference in references]
    for several in ("average", "jackknife"):
        other = Rouge(names, several=several).document(hypothesis, references)
        for name in names:
            assert best[name].recall >= other[name].recall - 2 * ROUNDING
    for name in names:
        assert best[name].recall == max(one[name].recall for one in each)
        assert best[name] in [one[name] for one in each]


@CHEAP
@given(TEXT, TEXT, st.integers(2, 4))
def test_equal_references_are_one(hypothesis, reference, count):
    for several in ("average", "best", "jackknife"):
        found = Rouge(TYPES, several=several).document(hypothesis, [reference] * count)
        expected = Rouge(TYPES).document(hypothesis, [reference])
        for name in TYPES:
            assert found[name] == pytest.approx(expected[name], abs=2e-5)


@CHEAP
@given(TEXT, st.lists(TEXT, min_size=2, max_size=4), st.randoms(use_true_random=False))
def test_the_order_of_references(hypothesis, references, random):
    """Means nothing to the average, and to recall of the best."""
    shuffled = random.sample(references, len(references))
    names = ("1", "2", "L", "Lsum")
    for several in ("average", "best", "jackknife"):
        rouge = Rouge(names, several=several)
        found, expected = (rouge.document(hypothesis, some) for some in (shuffled, references))
        for name in names:
            # the order of a sum may decide where the mean of a jackknife is rounded to
            assert found[name].recall == pytest.approx(expected[name].recall, abs=1.1e-5)
            assert found[name] == expected[name] or several != "average"


def test_jackknife():
    """Means of the best over what is left without each reference."""
    # the best without the first, second, third: 1/2, 1, 1
    found = score("a b", "a", "a x", "y z", several="jackknife")
    assert found == Score(0.83333, 0.5, 0.61111)
    # of two references, the mean of the scores with either
    one, other = score("a b c", "a x"), score("a b c", "b c d e y")
    found = score("a b c", "a x", "b c d e y", several="jackknife")
    assert found == pytest.approx(tuple(np.mean([one, other], axis=0)), abs=ROUNDING)


# --- systems


def documents(count, seed=1):
    """Random hypotheses, and a reference each."""
    random = np.random.default_rng(seed)
    texts = [" ".join(random.choice(list("abcdef"), 1 + i % 7)) for i in range(2 * count)]
    return texts[:count], [[text] for text in texts[count:]]


def test_system():
    hypotheses, references = documents(11)
    references[3] *= 2
    rouge = Rouge(TYPES)
    system = rouge.system(hypotheses, references)
    assert isinstance(system, System)
    assert system.rouge is rouge
    assert system.names == [str(i) for i in range(1, 12)]
    assert system.documents == [rouge.document(*texts) for texts in zip(hypotheses, references)]
    assert system.signature == rouge.signature([1, 2])
    assert set(system.averages()) == set(system.means()) == set(TYPES)
    for name in TYPES:
        scores = np.array([document[name] for document in system.documents])
        assert system.means()[name] == pytest.approx(tuple(scores.mean(0)))
        for measure, plain in zip(("recall", "precision", "f1"), system.means()[name]):
            interval = getattr(system.averages()[name], measure)
            assert isinstance(interval, Interval)
            assert interval.low <= interval.value <= interval.high
            assert (interval.low < interval.high) == (plain > 0)
            assert interval.value == pytest.approx(plain, abs=0.02)
            assert list(interval) == [round(number, 5) for number in interval]


def test_of_one_document_all_samples_are_the_same():
    system = Rouge().system(["a b"], [["a c d"]])
    assert system.averages()["1"] == (3 * (0.33333,), 3 * (0.5,), 3 * (0.4,))


def test_samples_go_by_names():
    """As text: 10 comes before 2, and d-1.1 before d.1, for that is what ROUGE-1.5.5 sorts."""
    hypotheses, references = documents(12)
    system = Rouge().system(hypotheses, references)
    order = np.random.default_rng(2).permutation(12)
    names = [str(i + 1) for i in order]
    shuffled = Rouge().system(
        [hypotheses[i] for i in order], [references[i] for i in order], names=names
    )
    assert shuffled.averages() == system.averages()
    assert replace(system, names=names).averages() != system.averages()
    as_numbers = [f"{i:02}" for i in range(1, 13)]
    assert replace(system, names=as_numbers).averages() != system.averages()
    tied = ["d-1", "d", "d1", *(f"e{i:02}" for i in range(9))]
    expected = [*(f"a{i}" for i in range(3)), *tied[3:]]
    assert replace(system, names=tied).averages() == replace(system, names=expected).averages()
    assert system.means() == replace(system, names=names).means()


def test_p_values():
    hypotheses, references = documents(40)
    rouge = Rouge(("1", "L"))
    system = rouge.system(hypotheses, references)
    perfect = rouge.system([there for (there,) in references], references)
    assert system.p_values(system) == {"1": 1.0, "L": 1.0}
    assert perfect.p_values(system) == system.p_values(perfect)
    assert max(perfect.p_values(system).values()) < 0.001
    # each measure is its own
    longer = rouge.system([f"{text} z z z" for text in hypotheses], references)
    assert longer.p_values(system, "recall") == {"1": 1.0, "L": 1.0}
    assert longer.p_values(system, "precision")["1"] < 0.001
    assert longer.p_values(system) == longer.p_values(system, "f1")
    assert longer.p_values(system)["1"] < 0.001


def test_large_powers_of_long_texts():
    text = "a " * 200
    assert score(text, text, name="W-4") == Score(0.0, 1.0, 0.0)


# --- what is said about them


def test_signature():
    version = fairseq_regattn.__version__
    assert Rouge().signature([1]) == (
        "types:1,2,L|nrefs:1|several:average|stem:no|limit:no|tok:rouge155|samples:1000|"
        f"version:fairseq-regattn.{version}"
    )
    other = Rouge(("W-1.2",), True, Limit("bytes", 75), "best").signature([2, 4])
    assert other.startswith(
        "types:W-1.2|nrefs:2,4|several:best|stem:wordnet+porter|limit:75bytes|tok:"
    )


def test_each_option_is_in_the_signature():
    options = [
        {},
        {"types": ("1",)},
        {"types": ("2", "1", "L")},
        {"stem": True},
        {"limit": Limit("bytes", 10)},
        {"limit": Limit("words", 10)},
        {"limit": Limit("words", 1)},
        {"several": "best"},
        {"several": "jackknife"},
    ]
    signatures = [Rouge(**some).signature(counts) for some in options for counts in ([1], [1, 4])]
    assert len(set(signatures)) == len(signatures)


def test_equal_settings_are_equal():
    assert Rouge(TYPES, stem=True) == Rouge(TYPES, stem=True)
    assert hash(Rouge(TYPES)) == hash(Rouge(TYPES))
    assert Rouge(TYPES) != Rouge(TYPES, stem=True)
    assert "_matchers" not in repr(Rouge())
