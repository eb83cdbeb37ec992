"""The page of highlighted texts."""

import json
import re
import sys
from dataclasses import replace
from html.parser import HTMLParser

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fairseq_regattn.classification.__main__ import main
from fairseq_regattn.classification.page import FAINT, page, repeats
from fairseq_regattn.classification.predictions import Prediction
from fairseq_regattn.errors import UsageError


def text(number=1, weights=(0.5, 0.5, 0.0), label="yes", gold="no", tokens=("a", "<b>", "c")):
    share = {"yes": 0.75, "no": 0.25} if label == "yes" else {"yes": 0.125, "no": 0.875}
    return Prediction(number, label, gold, share, list(tokens), list(weights), ["h"])


RUNS = {
    "softmax": [text(n, weights=(0.25, 0.5, 0.25)) for n in (1, 2, 3)],
    "fusedmax": [text(1), text(2, label="no"), text(3)],
}


def embedded(html):
    found = re.findall(r'<script type="application/json" id="data">(.*?)</script>', html, re.DOTALL)
    return json.loads(found[0])


def unpack(numbers):
    """As highlight.js does."""
    weights = []
    for number in numbers:
        weights += [weights[-1]] * -number if number < 0 else [number]
    return weights


def test_what_the_script_gets():
    data = embedded(page("t", "", RUNS))
    assert data["names"] == ["softmax", "fusedmax"]
    assert data["labels"] == ["yes", "no"]
    number, gold, tokens, hypothesis, (softmax, fusedmax) = data["texts"][1]
    assert (number, gold, tokens, hypothesis) == (2, 1, ["a", "<b>", "c"], ["h"])
    assert softmax == [0, [0.75, 0.25], [250000, 500000, 250000]]
    assert fusedmax == [1, [0.125, 0.875], [500000, -1, 0]]
    assert 0 < data["faint"] == FAINT < 1


def test_what_is_not_known_and_other_labels():
    bare = replace(text(), gold=None, hypothesis=None)
    other = replace(bare, label="so", probabilities={"so": 1.0})
    data = embedded(page("t", "", {"a": [bare], "b": [other]}))
    (_, gold, _, hypothesis, (one, another)) = data["texts"][0]
    assert gold is hypothesis is None
    assert (one[1], another[:2]) == ([0.75, 0.25, None], [2, [None, None, 1]])


@given(st.lists(st.sampled_from([0.0, 0.1, 0.1000004, 0.9, 4e-7, 1e-6]), max_size=40))
def test_weights_are_kept_to_six_decimals(weights):
    numbers = repeats(weights)
    assert [weight / 1e6 for weight in unpack(numbers)] == [round(w, 6) for w in weights]
    # equal neighbours are one: the boxes of fused segments
    values = [number for number in numbers if number >= 0]
    assert all(a != b for a, b in zip(values, values[1:]))


def test_only_the_first_texts_are_in_the_page():
    html = page("t", "", RUNS, first=2)
    assert [number for number, *_ in embedded(html)["texts"]] == [1, 2]
    assert "The first 2 of 3 texts are in this page." in html
    assert "All 3 texts are in this page." in page("t", "", RUNS, first=3)
    assert "The first 3 of 25,000 texts are in this page." in page("t", "", RUNS, total=25000)
    with pytest.raises(UsageError, match="first must be a whole number > 0, got 0"):
        page("t", "", RUNS, first=0)


def test_long_documents_stay_small():
    """Dense weights, all different: the largest there are."""
    total = 300 * 301 / 2
    document = text(weights=[(i + 1) / total for i in range(300)], tokens=["abcde"] * 300)
    html = page("t", "", {str(n): [document] * 500 for n in range(7)})
    assert len(html.encode()) < 8e6


@pytest.mark.parametrize(
    ("other", "message"),
    [
        ([text(1), text(3), text(2)], "it has id 3 where softmax has id 2"),
        ([text(1), text(2, tokens=("a", "b", "x")), text(3)], "hypothesis of id 2 differ"),
        ([text(1), text(2), text(3, gold="yes")], "gold label or hypothesis of id 3 differ"),
        ([replace(text(1), hypothesis=None), *RUNS["softmax"][1:]], "of id 1 differ"),
        ([text(1), text(2)], "2 instead of 3, from id 3 on"),
        ([text(n) for n in (1, 2, 3, 4)], "4 instead of 3, from id 4 on"),
        ([], "0 instead of 3, from id 1 on"),
    ],
)
def test_runs_of_other_texts(other, message):
    told = f"^fusedmax is not of the same texts as softmax: .*{message}"
    with pytest.raises(UsageError, match=told):
        page("t", "", {**RUNS, "fusedmax": other}, first=1)


def test_nothing_to_show():
    with pytest.raises(UsageError, match="no runs"):
        page("t", "", {})
    with pytest.raises(UsageError, match="softmax has no predictions"):
        page("t", "", {"softmax": []})


class _Checker(HTMLParser):
    """Collects open tags, what is outside the page, scripts and styles."""

    def __init__(self):
        super().__init__()
        self.open, self.outside, self.code = [], [], []

    def handle_starttag(self, tag, attrs):
        self.outside += [v for k, v in attrs if k in ("src", "href") or "//" in (v or "")]
        if tag != "meta":
            self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        if self.open and self.open[-1] in ("script", "style"):
            self.code.append(data)


@pytest.mark.parametrize("nasty", ["plain", "</script><b>", "<!-- <script>", "\u2028 \"'&lt;"])
def test_the_page_is_well_formed_and_self_contained(nasty):
    run = [Prediction(1, nasty, nasty, {nasty: 1.0}, [nasty], [1.0], [nasty])]
    html = page(nasty, "", {nasty: run}, nasty, [nasty])
    checker = _Checker()
    checker.feed(html)
    checker.close()
    assert (checker.open, checker.outside) == ([], [])
    style, data, script = checker.code
    assert embedded(html)["texts"][0][2:4] == json.loads(data)["texts"][0][2:4] == [[nasty]] * 2
    assert re.findall(r"\w+://[^\"]*", script) == ["http://www.w3.org/2000/svg"]  # a name only
    assert style.count("prefers-color-scheme: dark") == 2
    assert not re.search(r"url\(|@import", style)


@pytest.fixture
def command(tmp_path, monkeypatch, capsys):
    """``command(*arguments)``: status and what was printed; files of RUNS are there."""
    monkeypatch.chdir(tmp_path)
    for name, run in RUNS.items():
        lines = "".join(f"{prediction.to_line()}\n" for prediction in run)
        (tmp_path / f"{name}.jsonl").write_text(lines, encoding="utf-8")

    def command(*arguments):
        monkeypatch.setattr(sys, "argv", ["classification", "page", *arguments, "--out", "p.html"])
        try:
            status = main()
        except SystemExit as end:
            status = end.code
        return status, capsys.readouterr()

    return command


BOTH = "softmax=softmax.jsonl", "fusedmax, lambda 0.1=fusedmax.jsonl"


def test_from_files_to_a_page(command, tmp_path):
    assert command(*BOTH, "--first", "1", "--title", "A & B")[0] == 0
    html = (tmp_path / "p.html").read_text(encoding="utf-8")
    assert "<title>A &amp; B</title>" in html
    assert "The first 1 of 3 texts are in this page." in html
    assert embedded(html)["names"] == ["softmax", "fusedmax, lambda 0.1"]
    assert len(embedded(html)["texts"]) == 1
    assert "33.33 [6.15, 79.23]" in html  # of all three, not of the one that is shown
    assert not list(tmp_path.glob("*.partial"))


def test_no_accuracy_where_gold_is_not_known_of_all(command, tmp_path):
    some = [replace(found, gold=None if found.id == 3 else "no") for found in RUNS["softmax"]]
    lines = "".join(f"{prediction.to_line()}\n" for prediction in some)
    (tmp_path / "softmax.jsonl").write_text(lines, encoding="utf-8")
    assert command("softmax=softmax.jsonl")[0] == 0
    assert "<table>" not in (tmp_path / "p.html").read_text(encoding="utf-8")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["softmax.jsonl"], "NAME=FILE.jsonl was expected, got 'softmax.jsonl'"),
        (["=softmax.jsonl"], "NAME=FILE.jsonl was expected"),
        (["a="], "NAME=FILE.jsonl was expected"),
        (["a=softmax.jsonl", "a=fusedmax.jsonl"], "two files have the name a: softmax.jsonl and"),
        (["a=none.jsonl"], "error: none.jsonl: no such file"),
        (["a=empty.jsonl"], "empty.jsonl has no predictions"),
        (["a=wrong.jsonl", "--first", "1"], "wrong.jsonl:4: no JSON"),
        (["a=softmax.jsonl", "b=longer.jsonl", "--first", "1"], "b is not of the same texts as a"),
        (["a=softmax.jsonl", "--title", "\udcff"], r"--title must be valid UTF-8, got '\udcff'"),
        (["\udcff=softmax.jsonl"], r"NAME must be valid UTF-8, got '\udcff'"),
        (["a=softmax.jsonl", "--first", "0"], "--first must be a whole number > 0, got 0"),
    ],
)
def test_wrong_use_is_one_line(command, tmp_path, arguments, message):
    lines = (tmp_path / "softmax.jsonl").read_text(encoding="utf-8")
    (tmp_path / "empty.jsonl").touch()
    (tmp_path / "wrong.jsonl").write_text(lines + "{\n", encoding="utf-8")
    (tmp_path / "longer.jsonl").write_text(f"{lines}{text(4).to_line()}\n", encoding="utf-8")
    status, printed = command(*arguments)
    assert status == 2
    assert printed.out == ""
    assert printed.err.count("\n") == 1
    assert message in printed.err
    assert not (tmp_path / "p.html").exists()
