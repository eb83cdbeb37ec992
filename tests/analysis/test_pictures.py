"""Tables, heat maps and the HTML page."""

import json
import re
from html.parser import HTMLParser

import numpy as np
import pytest

from fairseq_regattn.analysis import (
    AlignmentStatistics,
    Hypothesis,
    heatmap,
    markdown_table,
    text_table,
)
from fairseq_regattn.analysis.html import Sentence, html_table, page, run_lengths
from fairseq_regattn.analysis.tables import duration, table
from fairseq_regattn.errors import UsageError


@pytest.fixture
def results(record):
    return [
        record(
            bleu=9.96,
            chrf=31.04,
            valid_ppl=20.5,
            training_seconds=187.2,
            tokens_per_second=3210.4,
            alignments=AlignmentStatistics(9, 1.0, 14.5, 2.5),
        ),
        record(
            "fusedmax-lambda0.1",
            bleu=10,
            chrf=30,
            valid_ppl=9,
            training_seconds=42,
            tokens_per_second=950,
            alignments=AlignmentStatistics(9, 0.125, 2, 0.75),
        ),
    ]


@pytest.fixture
def hypothesis():
    weights = np.array([[0.75, 0.25, 0], [0, 0, 1.0]])
    return Hypothesis(0, ["▁a<b", "&c$x$"], ["▁$d"], "ref", 'said "<d>"', -1.0, [], weights)


def test_text_table_is_aligned(results):
    header, rule, *rows = text_table(results).splitlines()
    assert {len(header), *map(len, rows)} == {len(rule)}
    assert rows[0].split("  ")[0] == "softmax"
    assert rows[1].startswith("fusedmax, lambda 0.1  ")
    for cell in ("10.0", "31.0", "20.5", "100.0 %", "14.50", "2.50", "3 min 07 s", "3,210"):
        assert cell in rows[0]


def test_markdown_table_has_the_same_cells(results):
    lines = markdown_table(results).splitlines()
    assert len(lines) == 4
    assert len({line.count("|") for line in lines}) == 1
    assert lines[3].startswith("| fusedmax, lambda 0.1 | 10.0 | 30.0 | 9.0 | 12.5 % | 2.00 |")


def test_columns_that_only_some_recipes_have(results, record):
    plain = text_table(results).splitlines()[0]
    assert "AER" not in plain
    assert "tokenised" not in plain
    links = {"aer": 0.256, "precision": 0.7, "recall": 0.8, "f1": 0.75}
    header, _, *rows = markdown_table([*results, record(links=links, tokenised_bleu=21.34)]).split(
        "\n"
    )
    columns = header.split(" | ")
    for title, cell in (("tokenised BLEU", "21.3"), ("AER", "25.6 %")):
        column = columns.index(title)
        assert [row.split(" | ")[column] for row in rows] == ["-", "-", cell]


def test_columns_of_classifiers(classified, record):
    softmax, sparsemax = table([classified([[3, 1], [2, 4]]), record("sparsemax", valid_ppl=None)])[
        1:
    ]
    header, row = table([classified([[3, 1], [2, 4]])])
    assert row[1:3] == softmax[3:5] == ("70.00 [39.68, 89.22]", "69.70")
    assert header[1:4] == ("accuracy (%)", "macro F1 (%)", "non-zero weights")
    assert sparsemax[3:5] == ("-", "-")
    header, row = table([classified([[3, 1], [2, 4]], valid_ppl=1.25)])
    assert row[header.index("valid ppl")] == "1.2"


@pytest.mark.parametrize(
    ("seconds", "text"), [(0.4, "0 s"), (59.4, "59 s"), (59.6, "1 min 00 s"), (3600, "60 min 00 s")]
)
def test_duration(seconds, text):
    assert duration(seconds) == text


def translated(weights, text="x"):
    rows, columns = np.shape(weights)
    source, target = (
        [f"{side}{i}" for i in range(n - 1)] for side, n in (("s", columns), ("t", rows))
    )
    return Hypothesis(0, source, target, None, text, -1.0, [], np.asarray(weights))


def page_data(html):
    (text,) = re.findall(
        r'<script type="application/json" id="data">(.*?)</script>', html, re.DOTALL
    )
    return json.loads(text)["sentences"]


def unpack(runs):
    """As page.js does."""
    return [weight for run in runs for weight in ([0] * -run if run < 0 else [run / 1000])]


def test_every_weight_of_every_sentence_is_in_the_page():
    random = np.random.default_rng(0)
    sparse = random.dirichlet(np.full(9, 0.2), size=7)
    sparse[sparse < 0.1] = 0
    dense = random.dirichlet(np.full(5, 1), size=3)
    extremes = np.array([[1, 0, 0], [0, 0, 0], [1e-6, 0.0004, 0.9996], [-0.0, 1.000001, 0.0006]])
    matrices = [sparse, dense, extremes, np.zeros((1, 1))]
    sentences = [
        Sentence(f"n{i}", "s", "r", {"softmax": translated(m), "fusedmax": translated(m, "other")})
        for i, m in enumerate(matrices)
    ]
    read = page_data(page("t", "", sentences))
    assert [name for name, *_ in read] == ["n0", "n1", "n2", "n3"]
    for (*_, drawings), weights in zip(read, matrices):
        assert [drawing[:2] for drawing in drawings] == [["softmax", "x"], ["fusedmax", "other"]]
        for _, _, source, target, runs in drawings:
            shape = len(target.split(" ")), len(source.split(" "))
            assert shape == weights.shape
            drawn = np.array(unpack(runs)).reshape(shape)
            assert np.array_equal(drawn == 0, weights == 0)
            tiny = (weights > 0) & (weights < 0.0005)
            assert (drawn[tiny] == 0.001).all()
            assert np.abs(drawn - weights)[~tiny].max() <= 0.0005 + 1e-9


def test_zeros_are_counted_across_rows():
    assert run_lengths(np.array([[0.5, 0.5, 0, 0], [0, 0, 0, 1]])) == [500, 500, -5, 1000]


@pytest.mark.parametrize("weight", [float("nan"), -0.1, 1.1, float("inf")])
def test_what_is_no_weight_is_not_drawn(weight):
    wrong = Sentence("n", "s", "r", {"fusedmax": translated([[0.5, weight]])})
    with pytest.raises(ValueError, match=r"sentence 0, fusedmax: .* from 0 to 1"):
        page("t", "", [wrong])


def test_a_thousand_sentences_stay_small():
    """Dense ones: the size depends on the data alone, and these are the largest."""
    dense = translated(np.random.default_rng(0).dirichlet(np.full(12, 1), size=12), "t" * 60)
    names = ["softmax", "fusedmax", "oscarmax", "sparsemax", "pnormmax"]
    sentence = Sentence("n", "s" * 60, "r" * 60, dict.fromkeys(names, dense))
    html = page("t", "", [sentence] * 1000)
    assert len(page_data(html)) == 1000
    assert len(html.encode()) < 5e6


class _Checker(HTMLParser):
    """Collects open tags, outside references, words and the text of scripts and styles."""

    def __init__(self):
        super().__init__()
        self.open, self.outside, self.words, self.code = [], [], [], {"script": [], "style": []}

    def handle_starttag(self, tag, attrs):
        self.outside += [v for k, v in attrs if k in ("src", "href") or "//" in (v or "")]
        if tag != "meta":
            self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        self.code.get(self.open[-1] if self.open else "", self.words).append(data)


def checked(html):
    checker = _Checker()
    checker.feed(html)
    checker.close()
    assert checker.open == []
    return checker


def test_page_is_well_formed_and_self_contained(hypothesis, results):
    header, *body = table(results)
    sentence = Sentence("Genesis.1.1", "¿?", "ref & more", {"softmax": hypothesis})
    html = page("A <title>", html_table(header, body), [sentence], "intro & such", ["a <note>"])
    checker = checked(html)
    assert checker.outside == []
    text = "".join(checker.words)
    # what can be read without JavaScript
    for words in ("A <title>", "intro & such", "a <note>", "12.5 %", "without JavaScript"):
        assert words in text
    data, script = checker.code["script"]
    assert json.loads(data)
    assert re.findall(r"\w+://[^\"]*", script) == ["http://www.w3.org/2000/svg"]  # a name only
    (style,) = checker.code["style"]
    assert "prefers-color-scheme: dark" in style
    assert not re.search(r"url\(|@import", style)


@pytest.mark.parametrize(
    "text", ["</script><b>", "<!-- <script>", "</SCRIPT ", "<b>&amp;&lt;", "\u2028 \\u003c \"'"]
)
def test_a_sentence_cannot_end_the_script(text):
    token = text.replace(" ", "_")
    hypothesis = Hypothesis(0, [token], [token], None, text, -1.0, [], np.full((2, 2), 0.5))
    html = page("t", "", [Sentence(text, text, text, {text: hypothesis})])
    assert len(checked(html).code["script"]) == 2
    labels = f"{token} </s>"
    assert page_data(html) == [[text, text, text, [[text, text, labels, labels, [500] * 4]]]]


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


def test_an_empty_translation_can_be_drawn(tmp_path, results):
    pytest.importorskip("matplotlib", reason="matplotlib draws the heat maps")
    from fairseq_regattn.analysis.heatmap import draw_alignments

    empty = Hypothesis(0, ["a"], [], None, "", -1.0, [], np.array([[0.5, 0.5]]))
    draw_alignments([("softmax", empty), ("fusedmax", empty)], tmp_path / "empty.png", "heading")
    assert (tmp_path / "empty.png").stat().st_size > 1000
    read = page_data(page("t", "", [Sentence("n", "s", "r", {"softmax": empty})]))
    assert read[0][3] == [["softmax", "", "a </s>", "</s>", [500, 500]]]


def test_no_alignment_no_picture(tmp_path):
    pytest.importorskip("matplotlib", reason="matplotlib draws the heat maps")
    from fairseq_regattn.analysis.heatmap import draw_alignments

    bare = Hypothesis(5, ["a"], ["b"], None, "b", -1.0)
    with pytest.raises(ValueError, match="sentence 5 has no alignment"):
        draw_alignments([("softmax", bare)], tmp_path / "none.png")
    with pytest.raises(ValueError, match="sentence 5 has no alignment"):
        page("t", "", [Sentence("n", "s", "r", {"softmax": bare})])


def test_a_pdf_has_real_text_and_the_same_bytes_every_time(tmp_path, hypothesis, monkeypatch):
    pytest.importorskip("matplotlib", reason="matplotlib draws the heat maps")
    from fairseq_regattn.analysis.heatmap import draw_alignments

    made = []
    for seconds in ("1", "1000000000"):
        monkeypatch.setenv("SOURCE_DATE_EPOCH", seconds)  # what matplotlib would write as date
        # two dollar signs make no formula of the heading
        draw_alignments([("x", hypothesis)], tmp_path / "a.PDF", heading=r"Γειά, привет $\frac$")
        made.append((tmp_path / "a.PDF").read_bytes())
    assert made[0] == made[1]
    assert made[0].startswith(b"%PDF")
    assert b"/CIDFontType2" in made[0]
    assert b"/Type3" not in made[0]
    assert made[0].count(b"/Subtype /Image") <= 1  # the colour bar; the weights are shapes


@pytest.mark.parametrize("name", ["a.jpg", "a", "a.pdf.partial"])
def test_another_kind_of_picture_is_refused(tmp_path, hypothesis, name):
    pytest.importorskip("matplotlib", reason="matplotlib draws the heat maps")
    from fairseq_regattn.analysis.heatmap import draw_alignments

    with pytest.raises(UsageError, match=rf"{name}: a picture ends in \.png or \.pdf, got"):
        draw_alignments([("x", hypothesis)], tmp_path / name)
    assert not list(tmp_path.iterdir())


def test_the_longest_span_is_framed():
    """Of equal ones the first; a step without two equal neighbours has none."""
    pytest.importorskip("matplotlib", reason="matplotlib draws the heat maps")
    from matplotlib.figure import Figure

    weights = [[0.5, 0.5, 0, 0], [0, 0.3, 0.3, 0.3], [0.2, 0, 0, 0.8]]
    frames = [(weights, [(0.5, 0.5, 3)]), (weights[2:], []), (weights[:1], [(-0.5, -0.5, 2)])]
    frames.append(([[0, 0, 0, 0.5, 0.5]], [(2.5, -0.5, 2)]))  # zeros are no span
    for rows, found in frames:
        axis = Figure().subplots()
        heatmap._frame(axis, "fusedmax", translated(rows))
        assert [(*patch.get_xy(), patch.get_width()) for patch in axis.patches] == found
    axis = Figure().subplots()
    heatmap._frame(axis, "fusedmax", translated(weights))
    assert axis.get_title() == "fusedmax: \u201ct1\u201d attends to 3 tokens in a row alike"


def test_long_sources_are_drawn_one_above_the_other(tmp_path):
    """With a frame around the span where that is asked for."""
    pytest.importorskip("matplotlib", reason="matplotlib draws the heat maps")
    drawn = {}
    for length, spans in ((5, False), (40, False), (40, True)):
        row = np.full(length, 1 / length)
        panels = [(name, translated([row] * 4)) for name in ("softmax", "fusedmax")]
        path = tmp_path / f"{length}{spans}.png"
        heatmap.draw_alignments(panels, path, spans=spans)
        content = path.read_bytes()
        size = (int.from_bytes(content[i : i + 4], "big") for i in (16, 20))
        drawn[length, spans] = content, *size
    assert drawn[5, False][1] > drawn[5, False][2] * 0.8
    assert drawn[40, False][2] > drawn[5, False][2] * 1.5
    assert drawn[40, True][0] != drawn[40, False][0]
