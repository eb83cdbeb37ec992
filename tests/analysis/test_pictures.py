"""Tables, heat maps and the HTML page."""

from html.parser import HTMLParser

import numpy as np
import pytest

from fairseq_regattn.analysis import (
    AlignmentStatistics,
    Hypothesis,
    Result,
    markdown_table,
    text_table,
)
from fairseq_regattn.analysis.html import Sentence, alignment_svg, page
from fairseq_regattn.analysis.tables import duration

RESULTS = [
    Result("softmax", 9.96, 31.04, 20.5, 187.2, 3210.4, AlignmentStatistics(9, 1.0, 14.5, 2.5)),
    Result("fusedmax, lambda 0.1", 10, 30, 9, 42, 950, AlignmentStatistics(9, 0.125, 2, 0.75)),
]


@pytest.fixture
def hypothesis():
    weights = np.array([[0.75, 0.25, 0], [0, 0, 1.0]])
    return Hypothesis(0, ["▁a<b", "&c$x$"], ["▁$d"], "ref", 'said "<d>"', -1.0, [], weights)


def test_text_table_is_aligned():
    header, rule, *rows = text_table(RESULTS).splitlines()
    assert {len(header), *map(len, rows)} == {len(rule)}
    assert rows[0].split("  ")[0] == "softmax"
    assert rows[1].startswith("fusedmax, lambda 0.1  ")
    for cell in ("10.0", "31.0", "20.5", "100.0 %", "14.50", "2.50", "3 min 07 s", "3,210"):
        assert cell in rows[0]


def test_markdown_table_has_the_same_cells():
    lines = markdown_table(RESULTS).splitlines()
    assert len(lines) == 4
    assert len({line.count("|") for line in lines}) == 1
    assert lines[3].startswith("| fusedmax, lambda 0.1 | 10.0 | 30.0 | 9.0 | 12.5 % | 2.00 |")


@pytest.mark.parametrize(
    ("seconds", "text"), [(0.4, "0 s"), (59.4, "59 s"), (59.6, "1 min 00 s"), (3600, "60 min 00 s")]
)
def test_duration(seconds, text):
    assert duration(seconds) == text


def test_svg_has_no_rectangle_for_a_zero(hypothesis):
    svg = alignment_svg("fusedmax", hypothesis)
    assert svg.count("<rect") == 3
    assert "·$d ← ·a&lt;b: 0.750" in svg
    assert "·$d ← &lt;/s&gt;" not in svg
    assert 'opacity="1.000"' in svg


VOID = {"meta", "br", "path", "rect"}


class _Checker(HTMLParser):
    """Collects open tags and outside references."""

    def __init__(self):
        super().__init__()
        self.open, self.outside, self.words = [], [], []

    def handle_starttag(self, tag, attrs):
        self.outside += [v for k, v in attrs if k in ("src", "href") or "//" in (v or "")]
        if tag not in VOID:
            self.open.append(tag)

    def handle_endtag(self, tag):
        if tag not in VOID:
            assert self.open.pop() == tag

    def handle_data(self, data):
        self.words.append(data)


def test_page_is_well_formed_self_contained_and_escaped(hypothesis):
    names = {"softmax": hypothesis, "fusedmax, lambda 0.1": hypothesis}
    sentence = Sentence("Genesis.1.1", "¿<b>?", "ref & more", names)
    html = page("A <title>", RESULTS, [sentence], "intro & such", ["a <note>"])
    checker = _Checker()
    checker.feed(html)
    checker.close()
    assert checker.open == []
    assert checker.outside == []
    text = "".join(checker.words)
    for words in ("A <title>", "intro & such", "a <note>", "¿<b>?", 'said "<d>"', "12.5 %"):
        assert words in text
    assert html.count("<svg") == 2
    assert "prefers-color-scheme: dark" in html


def test_heat_map_leaves_zeros_white_and_shares_the_scale(tmp_path, hypothesis):
    image = pytest.importorskip("matplotlib.image", reason="matplotlib draws the heat maps")
    from fairseq_regattn.analysis.heatmap import draw_alignments

    zeros = Hypothesis(0, ["a", "b"], ["c"], None, "c", -1.0, [], np.zeros((2, 3)))
    faint = Hypothesis(0, ["a", "b"], ["c"], None, "c", -1.0, [], np.full((2, 3), 1e-6))
    coloured = {}
    for name, drawn in {"zeros": zeros, "faint": faint, "some": hypothesis}.items():
        path = tmp_path / f"{name}.png"
        draw_alignments([("x", drawn)], path)
        pixels = image.imread(path)[..., :3]
        panel = pixels[:, : int(0.75 * pixels.shape[1])]  # without the colour bar
        # blue, as every weight is, and not the grey of lines and letters
        coloured[name] = float((panel[..., 2] - panel[..., 0] > 0.1).mean())
    assert coloured["zeros"] < 0.02
    assert coloured["faint"] > 0.05
    assert 0.3 < coloured["some"] / coloured["faint"] < 0.7  # 3 of 6 cells


def test_an_empty_translation_can_be_drawn(tmp_path):
    pytest.importorskip("matplotlib", reason="matplotlib draws the heat maps")
    from fairseq_regattn.analysis.heatmap import draw_alignments

    empty = Hypothesis(0, ["a"], [], None, "", -1.0, [], np.array([[0.5, 0.5]]))
    draw_alignments([("softmax", empty), ("fusedmax", empty)], tmp_path / "empty.png", "heading")
    assert (tmp_path / "empty.png").stat().st_size > 1000
    assert "(empty)" in page("t", RESULTS, [Sentence("n", "s", "r", {"softmax": empty})])


def test_no_alignment_no_picture(tmp_path):
    pytest.importorskip("matplotlib", reason="matplotlib draws the heat maps")
    from fairseq_regattn.analysis.heatmap import draw_alignments

    bare = Hypothesis(5, ["a"], ["b"], None, "b", -1.0)
    with pytest.raises(ValueError, match="sentence 5 has no alignment"):
        draw_alignments([("softmax", bare)], tmp_path / "none.png")
    with pytest.raises(ValueError, match="sentence 5 has no alignment"):
        alignment_svg("softmax", bare)
