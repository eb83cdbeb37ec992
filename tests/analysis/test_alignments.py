"""Reading ``fairseq-generate`` output, and the statistics of what was read."""

import numpy as np
import pytest

from fairseq_regattn.analysis import (
    alignment_statistics,
    read_generate_output,
)
from fairseq_regattn.analysis.alignments import display
from fairseq_regattn.analysis.statistics import count_segments

# As fairseq prints it with --bpe sentencepiece: S, T and D joined, H in pieces; in the order of
# batches, not of the file; log lines in between; the second translation is empty.
PRINTED = """\
2026-11-30 12:00:00 | INFO | fairseq_cli.generate | loading model(s) from checkpoint_best.pt
S-7\tEn el principio.
T-7\tIn the beginning.
H-7\t-0.5423\t▁In ▁the ▁begin ning .
D-7\t-0.5423\tIn the beginning.
P-7\t-0.1000 -0.2000 -0.3000 -1.0000 -0.2500 -1.5000
A-7\t1.000000,0.000000,0.000000,0.000000,0.000000 0.500000,0.500000,0.000000,0.000000,0.000000 \
0.000000,0.000000,0.600000,0.400000,0.000000 0.000000,0.250000,0.250000,0.500000,0.000000 \
0.000000,0.000000,0.000000,0.000000,1.000000 0.200000,0.200000,0.200000,0.200000,0.200000
S-2\t¡Ay!
T-2\tWoe!
H-2\t-3.25\t
D-2\t-3.25\t
P-2\t-3.2500
A-2\t0.750000,0.250000
2026-11-30 12:00:01 | INFO | fairseq_cli.generate | Translated 2 sentences (7 tokens) in 0.1s
Generate test with beam=5: BLEU = 100.00 100.0/100.0/100.0/100.0
"""
PIECES = {7: "▁En ▁el ▁principi o.", 2: "▁¡Ay!"}


@pytest.fixture
def hypotheses():
    return read_generate_output(PRINTED.splitlines(keepends=True), PIECES)


def test_tokens_texts_and_scores(hypotheses):
    first = hypotheses[0]
    assert first.sample_id == 7
    assert first.source == ["▁En", "▁el", "▁principi", "o."]
    assert first.target == ["▁In", "▁the", "▁begin", "ning", "."]
    assert first.text == "In the beginning."
    assert first.reference == "In the beginning."
    assert first.score == -0.5423
    assert first.token_scores == [-0.1, -0.2, -0.3, -1.0, -0.25, -1.5]


def test_weights_are_target_by_source(hypotheses):
    weights = hypotheses[0].weights
    assert weights.shape == (6, 5)
    assert weights[3].tolist() == [0, 0.25, 0.25, 0.5, 0]
    assert weights[:, 4].tolist() == [0, 0, 0, 0, 1, 0.2]


def test_an_empty_translation_has_the_row_of_its_end(hypotheses):
    empty = hypotheses[1]
    assert (empty.target, empty.text, empty.reference) == ([], "", "Woe!")
    assert empty.weights.tolist() == [[0.75, 0.25]]


def test_source_is_taken_from_the_output_where_it_is_not_given():
    lines = ["S-0\t▁a ▁b\n", "H-0\t-1\t▁c\n", "A-0\t0.1,0.2,0.7 1,0,0\n"]
    (hypothesis,) = read_generate_output(lines)
    assert hypothesis.source == ["▁a", "▁b"]
    assert hypothesis.reference is None


def test_several_hypotheses_of_one_sentence():
    lines = ["S-0\ta", "H-0\t-1\tb", "P-0\t-1 -1", "H-0\t-2\tc", "P-0\t-2 -3"]
    first, second = read_generate_output(lines)
    assert (first.target, first.token_scores) == (["b"], [-1, -1])
    assert (second.target, second.token_scores) == (["c"], [-2, -3])
    assert second.weights is None


def test_unicode_line_separators_are_part_of_a_sentence(tmp_path):
    path = tmp_path / "generate.txt"
    path.write_text("S-0\ta\u2028b\nH-0\t-1\tc\n", encoding="utf-8")
    with open(path, encoding="utf-8", newline="\n") as lines:
        (hypothesis,) = read_generate_output(lines)
    assert hypothesis.source == ["a", "b"]


@pytest.mark.parametrize(
    ("lines", "message"),
    [
        (["S-3\ta b", "H-3\t-1\tc", "A-3\t0-0 1-1"], "A-3 holds no soft alignment"),
        (["S-3\ta b", "H-3\t-1\tc", "A-3\t1,0 0,1"], "A-3 is 2 x 2 weights.* 2 target and 3"),
        (["S-3\ta", "H-3\t-1\tc", "A-3\t1,0"], "A-3 is 1 x 2 weights.* 2 target and 2"),
        (["S-3\ta", "H-3\t-1\tc", "A-3\t1,0 1"], "A-3 is 2 x 2"),
        (["S-3\ta", "H-3\t-1\tc", "P-4\t-1"], "P-4 does not follow its H-4"),
        (["A-0\t1"], "A-0 does not follow its H-0"),
    ],
)
def test_what_does_not_fit_is_refused(lines, message):
    with pytest.raises(ValueError, match=message):
        read_generate_output(lines)


def test_display_marks_the_start_of_a_word():
    assert [display(token) for token in ("▁In", "ning", "▁")] == ["·In", "ning", "·"]


def test_segments_are_runs_of_equal_nonzero_weights():
    weights = np.array(
        [
            [0.25, 0.25, 0, 0.25, 0.25],  # the same value on both sides of a gap: two
            [0.2, 0.2, 0.2, 0.2, 0.2],
            [0, 0, 1, 0, 0],
            [0.1, 0.2, 0.3, 0.4, 0],  # neighbours that differ: one each
            [0, 0, 0, 0, 0],
        ]
    )
    assert count_segments(weights).tolist() == [2, 1, 1, 4, 0]


def test_statistics_are_means_over_target_steps():
    statistics = alignment_statistics(
        [
            np.array([[0.5, 0.5, 0, 0]]),  # half of the positions, one segment, one bit
            np.array([[1.0, 0], [0.25, 0.75], [0, 1.0]]),
        ]
    )
    assert statistics.steps == 4
    assert statistics.nonzero == pytest.approx((0.5 + 0.5 + 1 + 0.5) / 4)
    assert statistics.segments == pytest.approx((1 + 1 + 2 + 1) / 4)
    quarter = -(0.25 * np.log2(0.25) + 0.75 * np.log2(0.75))
    assert statistics.entropy == pytest.approx((1 + 0 + quarter + 0) / 4)


def test_statistics_of_nothing_are_refused():
    with pytest.raises(ValueError, match="no alignments"):
        alignment_statistics([])
