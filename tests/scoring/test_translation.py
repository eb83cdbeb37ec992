"""Scores of translations against oracles, and what is refused."""

import logging
import math
from collections import Counter

import pytest
import sacrebleu

from fairseq_regattn.errors import UsageError
from fairseq_regattn.scoring.translation import bleu, chrf, compare, tokenised_bleu

REFERENCES = [
    "In the beginning God created the heaven and the earth.",
    "And the earth was without form, and void; and darkness was upon the face of the deep.",
    "And God said, Let there be light: and there was light.",
    "And the evening and the morning were the first day.",
] * 5
GOOD = [line.replace("And the", "The").replace("upon", "on") for line in REFERENCES]
BAD = [" ".join(line.split()[::2]) for line in REFERENCES]


def multi_bleu(hypotheses, references):
    """Moses' multi-bleu.perl for one reference, in the order of its lines."""
    correct, total = [0] * 4, [0] * 4
    hypothesis_length = reference_length = 0
    for hypothesis, reference in zip(hypotheses, references):
        words, right = hypothesis.split(), reference.split()
        hypothesis_length += len(words)
        reference_length += len(right)
        for n in range(1, 5):
            found = Counter(tuple(words[i : i + n]) for i in range(len(words) - n + 1))
            there = Counter(tuple(right[i : i + n]) for i in range(len(right) - n + 1))
            correct[n - 1] += sum(min(count, there[gram]) for gram, count in found.items())
            total[n - 1] += sum(found.values())
    if 0 in correct:
        return 0.0
    penalty = min(1.0, math.exp(1 - reference_length / hypothesis_length))
    return 100 * penalty * math.exp(sum(math.log(c / t) for c, t in zip(correct, total)) / 4)


@pytest.mark.parametrize(
    "hypotheses",
    [
        GOOD,
        [f"{line} and the and the and the end" for line in GOOD],  # longer; words are clipped
        [line.rsplit(maxsplit=3)[0] for line in REFERENCES],  # shorter: brevity penalty
        ["", *GOOD[1:]],
        BAD,  # no common 4-gram
        [""] * len(REFERENCES),
    ],
)
def test_tokenised_bleu_is_that_of_multi_bleu(hypotheses):
    expected = multi_bleu(hypotheses, REFERENCES)
    score = tokenised_bleu(hypotheses, REFERENCES)
    assert score.value == pytest.approx(expected, abs=1e-9)
    assert "tok:none|smooth:none" in score.signature


def test_the_oracle_of_multi_bleu_by_hand():
    # precisions 4/5, 3/4, 2/3, 1/2 and six words in the reference
    expected = 100 * math.exp(1 - 6 / 5) * (4 / 5 * 3 / 4 * 2 / 3 * 1 / 2) ** 0.25
    assert multi_bleu(["a b c d x"], ["a b c d e f"]) == pytest.approx(expected)


def test_detokenised_scores_are_sacrebleus_own():
    score = bleu(GOOD, REFERENCES)
    assert score.value == sacrebleu.corpus_bleu(GOOD, [REFERENCES]).score
    assert 50 < score.value < 100
    assert score.signature.startswith("nrefs:1|case:mixed|eff:no|tok:13a|smooth:exp|version:")
    score = chrf(GOOD, REFERENCES)
    assert score.value == sacrebleu.corpus_chrf(GOOD, [REFERENCES]).score
    assert score.signature.startswith("nrefs:1|case:mixed|eff:yes|nc:6|nw:0|space:no|version:")


@pytest.mark.parametrize("function", [bleu, chrf, tokenised_bleu])
@pytest.mark.parametrize(
    ("hypotheses", "references", "message"),
    [
        (["a", "b be@@ gin"], ["a", "b"], "line 2 of the hypotheses still has subwords .'@@'"),
        (["a", "b"], ["a@@", "b"], "line 1 of the references still has subwords"),
        (["a", "▁b"], ["a", "b"], "line 2 of the hypotheses still has subwords .'▁'"),
        (["a"], ["a", "b"], "1 hypotheses do not fit 2 references"),
        ([], [], "there are no hypotheses"),
    ],
)
def test_what_cannot_be_scored_is_refused(function, hypotheses, references, message):
    with pytest.raises(UsageError, match=message):
        function(hypotheses, references)


def test_at_signs_inside_words_are_no_subwords():
    assert bleu(["write to a@@b.org"], ["write to a@@b.org"]).value == pytest.approx(100)


@pytest.mark.parametrize("test", ["bs", "ar"])
def test_p_values(test, caplog):
    caplog.set_level(logging.INFO)
    # a little better here, a little worse there
    close = [line.replace("The", "And the") for line in GOOD[:8]]
    close += [line.replace("day", "time").replace("God", "he") for line in GOOD[8:14]] + GOOD[14:]
    systems = {"close": close, "bad": BAD, "same": list(GOOD)}
    found = compare(GOOD, systems, REFERENCES, test)
    assert list(found) == ["close", "bad", "same"]
    for metric in ("bleu", "chrf"):
        assert found["bad"][metric].value < 0.01
        assert 0.05 < found["close"][metric].value < 1
        assert found["same"][metric].value == 1
        samples = {"bs": "bs:1000", "ar": "ar:10000"}[test]
        assert f"{samples}|seed:12345|" in found["bad"][metric].signature
    assert "tok:13a" in found["bad"]["bleu"].signature
    assert "nc:6" in found["bad"]["chrf"].signature
    assert not caplog.records
    alone = compare(GOOD, {"close": close}, REFERENCES, test)
    assert alone == {"close": found["close"]}  # sampling does not depend on the others


def test_what_cannot_be_compared_is_refused():
    with pytest.raises(UsageError, match="20 hypotheses do not fit 19 references"):
        compare(GOOD, {}, REFERENCES[1:])
    with pytest.raises(UsageError, match="19 hypotheses do not fit 20 references"):
        compare(GOOD, {"x": GOOD[1:]}, REFERENCES)
    with pytest.raises(UsageError, match="test must be 'bs' or 'ar', got 'wilcoxon'"):
        compare(GOOD, {"x": BAD}, REFERENCES, "wilcoxon")
