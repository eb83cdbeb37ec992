"""The benchmark of ROUGE runs, on what it says, and gives both the same work."""

import json
import sys

import pytest
import rouge


def test_both_score_alike():
    pairs = rouge.made_up(50)
    ours = rouge.ours(pairs, stemmed=False, intervals=False)
    theirs = rouge.theirs(pairs, stemmed=False, intervals=False)
    for name, score in ours.items():
        assert score.f1 == pytest.approx(theirs[f"rouge{name}"], abs=1e-5)
    ours = rouge.ours(pairs, stemmed=True, intervals=True)
    theirs = rouge.theirs(pairs, stemmed=True, intervals=True)
    for name, average in ours.items():
        for edge, other in zip(
            (average.f1.low, average.f1.value, average.f1.high), ("low", "mid", "high")
        ):
            expected = getattr(theirs[f"rouge{name}"], other).fmeasure
            assert edge == pytest.approx(expected, abs=0.02)


def test_made_up_pairs():
    pairs = rouge.made_up(12_000)
    assert len(pairs) == 12_000
    assert pairs[0] == rouge.made_up(1)[0]
    assert all(len(made.split()) == len(there.split()) for made, there in pairs)
    words = [pair for made, there in pairs for pair in zip(made.split(), there.split())]
    assert sum(made == there for made, there in words) / len(words) == pytest.approx(0.6, abs=0.03)


@pytest.mark.slow
def test_script(run_python, package_dir, tmp_path):
    root = package_dir.parent
    (tmp_path / "pairs.tsv").write_text("a b\tb a\nx\t\n\ty\n", encoding="utf-8")
    script = root / "scripts" / "benchmark" / "rouge.py"
    flags = "--pairs pairs.tsv --count 2 --rounds 2 --json figures.json"
    result = run_python(script, *flags.split(), path=[root])
    lines = (tmp_path / "figures.json").read_text(encoding="utf-8").splitlines()
    tables = list(map(json.loads, lines))
    assert [table["title"] for table in tables] == [
        "scores of 2 pairs, without stemming",
        "scores and intervals of 2 pairs, without stemming",
        "scores of 2 pairs, with stemming",
        "scores and intervals of 2 pairs, with stemming",
    ]
    for table in tables:
        assert table["title"] in result.stdout
        assert set(table["rows"]) == {"ours", "rouge-score"}
        assert all(len(row["seconds"]) == 2 for row in table["rows"].values())


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ("--pairs missing.tsv", "--pairs: cannot read 'missing.tsv': No such file or directory"),
        ("--pairs one.tsv", "--pairs: line 2 of 'one.tsv' must be a hypothesis and a reference"),
        ("--pairs three.tsv", "--pairs: line 1 of 'three.tsv' must be a hypothesis and"),
        ("--pairs latin.tsv", "--pairs: cannot read 'latin.tsv': 'utf-8' codec can't decode"),
        ("--count 0", "--count: must be an integer > 0, got '0'"),
    ],
)
def test_wrong_arguments(arguments, message, tmp_path, monkeypatch, capsys):
    (tmp_path / "one.tsv").write_text("a\tb\nc\n", encoding="utf-8")
    (tmp_path / "three.tsv").write_text("a\tb\tc\n", encoding="utf-8")
    (tmp_path / "latin.tsv").write_bytes("é\té\n".encode("latin-1"))
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "argv", ["rouge.py", *arguments.split()])
    with pytest.raises(SystemExit):
        rouge.main()
    assert message in capsys.readouterr().err.splitlines()[-1]
