"""Tables of many runs."""

import csv
import json
import sys
from dataclasses import replace

import pytest

from fairseq_regattn.analysis import AlignmentStatistics
from fairseq_regattn.analysis.__main__ import main
from fairseq_regattn.analysis.records import LINKS, collect, text_key
from fairseq_regattn.analysis.results import (
    csv_text,
    json_text,
    markdown,
    notes,
    read_sweep,
    sections,
    text,
    write_results,
)
from fairseq_regattn.analysis.significance import significance
from fairseq_regattn.analysis.sweep import Sweep
from fairseq_regattn.scoring.summaries import SummaryScores
from fairseq_regattn.scoring.translation import Score

FUSED = "fusedmax-lambda0.1"


def cell(sweep, title, row, column):
    """From the table of that title."""
    (rows,) = [section.rows for section in sections(sweep) if section.title == title]
    (found,) = [cells for cells in rows[1:] if cells[0] == row]
    return found[rows[0].index(column)]


def p(record, bleu, chrf=0.5):
    return {record.path: {"bleu": Score(bleu, "bs:1000"), "chrf": Score(chrf, "bs:1000")}}


def test_means_over_seeds_and_differences_of_the_same_seeds(record):
    fused = [record(FUSED, seed=1, bleu=21.0), record(FUSED, seed=2, bleu=23.0)]
    runs = [record(bleu=20.0), record(seed=2, bleu=21.0), record(seed=3, bleu=40.0), *fused]
    sweep = Sweep(runs, {**p(fused[0], 0.04), **p(fused[1], 0.3)})
    assert sweep.columns == ["softmax", "fusedmax, lambda 0.1"]
    assert cell(sweep, "BLEU", "toy ro-en", "softmax") == "27.0 ± 11.3"
    # seed 3 has no fusedmax: it must not enter the difference
    expected = "22.0 ± 1.4 (+1.5, p 0.040 to 0.300)"
    assert cell(sweep, "BLEU", "toy ro-en", "fusedmax, lambda 0.1") == expected
    expected = "40.0 ± 0.0 (+0.0, p 0.500)"
    assert cell(sweep, "chrF2", "toy ro-en", "fusedmax, lambda 0.1") == expected
    assert "Seeds: 1, 2, 3." in notes(sweep)
    assert not any(note.startswith("One seed") for note in notes(sweep))


def test_one_seed_is_told(record):
    assert "One seed: differences of about one point are noise." in notes(Sweep([record()], {}))
    runs = [record(), record(seed=2), record(direction="en-ro")]
    assert any(note.startswith("One seed in toy en-ro: diff") for note in notes(Sweep(runs, {})))


def test_no_softmax_no_difference_and_no_ratio(record):
    runs = [record(FUSED), record(direction="en-ro"), record("sparsemax", direction="en-ro")]
    sweep = Sweep(runs, {})
    assert cell(sweep, "BLEU", "toy ro-en", "fusedmax, lambda 0.1") == "20.0"
    assert cell(sweep, "BLEU", "toy ro-en", "softmax") == "-"
    assert cell(sweep, "BLEU", "toy en-ro", "sparsemax") == "20.0 (+0.0, p -)"
    assert "p is not computed yet for 1 runs." in notes(sweep)
    title = "Training time, softmax = 1"
    assert cell(sweep, title, "toy ro-en", "fusedmax, lambda 0.1") == "-"
    assert cell(sweep, title, "toy en-ro", "softmax") == "1.00"


def test_no_ratio_of_times_that_are_not_known(record):
    for times in ((0.0, 200.0), (200.0, 0.0), (0.0, 0.0)):
        softmax, fused = (
            record(name, training_seconds=seconds)
            for name, seconds in zip(("softmax", FUSED), times)
        )
        sweep = Sweep([softmax, fused, record(seed=2)], {})
        title, column = "Training time, softmax = 1", "fusedmax, lambda 0.1"
        assert cell(sweep, title, "toy ro-en", column) == "-"


def test_other_tables(record):
    statistics = AlignmentStatistics(9, 0.125, 2.345, 0.75)
    links = dict(zip(LINKS, (0.256, 0.5, 0.6, 0.7)))
    changes = {"alignments": statistics, "links": links, "valid_ppl": 9.26}
    fused = record(FUSED, training_seconds=250.0, **changes)
    slow = record(FUSED, seed=2, training_seconds=270.0)
    elsewhere = record(FUSED, seed=3, training_seconds=900.0, machine="another")
    softmax = [record(seed=seed) for seed in (1, 2, 3)]
    one = Sweep([softmax[0], fused], {})
    column = "fusedmax, lambda 0.1"
    assert cell(one, "Non-zero weights (%)", "toy ro-en", column) == "12.5"
    assert cell(one, "Segments", "toy ro-en", column) == "2.35"
    assert cell(one, "Entropy (bits)", "toy ro-en", column) == "0.75"
    assert cell(one, "Validation perplexity", "toy ro-en", column) == "9.3"
    assert cell(one, "Alignment error rate (%)", "toy ro-en", column) == "25.6"
    assert cell(one, "Alignment error rate (%)", "toy ro-en", "softmax") == "-"
    three = Sweep([*softmax, fused, slow, elsewhere], {})
    expected = "1.30 ± 0.07"  # 1.25 and 1.35; times of another machine do not count
    assert cell(three, "Training time, softmax = 1", "toy ro-en", column) == expected
    untaken = [record(seed=seed, valid_ppl=None) for seed in (1, 2, 3)]
    titles = [section.title for section in sections(Sweep(untaken, {}))]
    assert "Validation perplexity" not in titles
    assert "Alignment error rate (%)" not in titles
    assert "Tokenised BLEU" not in titles


@pytest.mark.parametrize(
    ("scores", "verdict"),
    [((20.0, 19.5, 19.01), "yes"), ((20.0, 19.5, 18.99), "no"), ((20.0, 19.5), "yes, so far")],
)
def test_within_one_bleu_of_the_best(record, scores, verdict):
    names = ("softmax", FUSED, "sparsemax")
    runs = [record(name, bleu=score) for name, score in zip(names, scores)]
    other = [record(name, direction="en-ro", bleu=9.0) for name in names]
    sweep = Sweep([*runs, *other], {})
    assert sweep.verdict(runs[0].group) == verdict
    held = {
        "yes": "2 of 2 rows.",
        "no": "1 of 2 rows, not in 1.",
        "yes, so far": "1 of 2 rows, so far",
    }
    assert f"within 1 BLEU of the best in {held[verdict]}" in text(sweep)


def test_no_p_is_zero(record):
    """What is printed of the smallest one that 10,000 samples can give."""
    fused = record(FUSED, bleu=30.0)
    sweep = Sweep([record(), fused], p(fused, 0.0001))
    assert cell(sweep, "BLEU", "toy ro-en", fused.attention).endswith("(+10.0, p <0.001)")


def test_missing_runs_are_counted_and_named(record):
    runs = [record(), record(seed=2), record(FUSED, seed=2), record(direction="en-ro")]
    runs += [record("entmax", recipe="other")]  # what only another recipe has is not missing
    (note,) = [note for note in notes(Sweep(runs, {})) if "missing" in note]
    assert note == (
        "2 runs missing: toy en-ro: fusedmax, lambda 0.1, seed 1; "
        "toy ro-en: fusedmax, lambda 0.1, seed 1."
    )


def test_settings_and_test_sets_are_not_mixed(record):
    fused = record(FUSED, settings="other", bleu=25.0)
    retested = record(FUSED, test_key="new", bleu=30.0)
    sweep = Sweep([record(), fused, retested, record(direction="en-ro")], {})
    assert list(sweep.rows.values()) == [
        "toy en-ro",
        "toy ro-en, settings 0f0f0f0f, test set new",
        "toy ro-en, settings 0f0f0f0f, test set testtesttesttest",
        "toy ro-en, settings other, test set testtesttesttest",
    ]
    row = "toy ro-en, settings other, test set testtesttesttest"
    assert cell(sweep, "BLEU", row, "fusedmax, lambda 0.1") == "25.0"


def test_signatures_that_differ_are_told(record):
    runs = [record(), record("sparsemax", signatures={"bleu": "tok:none"})]
    assert "bleu: nrefs:1|tok:13a; tok:none (differ: compare with care)" in notes(Sweep(runs, {}))


def test_markdown_csv_and_json_say_the_same(record):
    fused = record(FUSED, bleu=18.5, training_seconds=300.0)
    sweep = Sweep([record(), fused], p(fused, 0.25))
    row = "| toy ro-en | 20.0 | 18.5 (-1.5, p 0.250) | no |"
    assert row in markdown(sweep)
    softmax, other = csv.DictReader(csv_text(sweep).splitlines())
    assert (softmax["bleu"], softmax["bleu_difference"], softmax["bleu_p"]) == ("20.0", "", "")
    assert (other["bleu_difference"], other["bleu_p"]) == ("-1.5", "0.25")
    assert (other["training_time_ratio"], other["segments"], other["aer"]) == ("1.5", "14.5", "")
    assert other["attention"] == "fusedmax, lambda 0.1"
    content = json.loads(json_text(sweep))
    (group,) = content["rows"]
    assert group["verdict"] == "no"
    assert group["runs"][1]["command"] == fused.command
    assert group["runs"][1]["against_softmax"]["bleu_p"] == 0.25
    assert content["tables"][0]["rows"][1] == row.strip("| ").split(" | ")


def test_from_records_to_files(tmp_path, capsys, monkeypatch, record):
    references = [f"this is line {number} of the text" for number in range(9)]
    keys = {"test_key": text_key(references)}
    for name, line in (("softmax", "line {} of the text"), (FUSED, "the line {}")):
        lines = [line.format(number) for number in range(9)]
        made = record(name, hypotheses_key=text_key(lines), **keys)
        collect(tmp_path, made, lines)
    significance(tmp_path, [[[line] for line in references]])

    out = tmp_path / "results"
    monkeypatch.setattr(sys, "argv", ["analysis", str(tmp_path), "--out", str(out)])
    assert main() == 0
    printed = capsys.readouterr().out
    assert "20.0 (+0.0, p 0.001)" in printed
    assert "bs:1000|seed:12345" in printed
    assert sorted(path.name for path in out.iterdir()) == [
        "results.csv",
        "results.json",
        "results.md",
    ]
    before = [path.read_bytes() for path in sorted(out.iterdir())]
    paths = write_results(tmp_path, out)  # reads its own files for no records, and changes nothing
    assert sorted(path.read_bytes() for path in paths) == sorted(before)


SUMMARY = SummaryScores(
    stem=True,
    bytes=None,
    words=5.0,
    reference_words=6.0,
    unknown=0,
    masked=0,
    scores={"rouge1 f1": [50.0, 40.0, 60.0]},
)


def test_the_same_summaries_scored_in_two_ways(tmp_path, record):
    """Each way has its own p: as many words alike, but more stems."""
    references = [f"cats run {number}" for number in range(9)]
    texts = {"softmax": ["cat runs"] * 9, FUSED: ["cats run"] * 9}
    ways = {"aaaaaaaa": SUMMARY, "bbbbbbbb": replace(SUMMARY, stem=False, bytes=8)}
    for settings, summary in ways.items():
        for name, lines in texts.items():
            keys = {"test_key": text_key(references), "hypotheses_key": text_key(lines)}
            made = record(name, settings=settings, summary=summary, bleu=None, chrf=None, **keys)
            collect(tmp_path, made, lines)
        counts = significance(tmp_path, [[[line] for line in references]])
        assert counts.made == 1
    sweep = read_sweep(tmp_path)
    found = {path.stem[-8:]: scores for path, scores in sweep.comparisons.items()}
    assert found["aaaaaaaa"]["rouge1 f1"].value == 1
    assert found["bbbbbbbb"]["rouge1 f1"].value < 0.01
    assert found["bbbbbbbb"]["rouge1 recall, 8 bytes"].value < 0.01
    assert significance(tmp_path, []) == (0, 2, 0)


def test_tables_of_classifiers(record, classified):
    sparse = classified([[4, 0], [1, 5]], "sparsemax")
    runs = [classified([[3, 1], [2, 4]]), sparse]
    sweep = Sweep([*runs, record()], {sparse.path: {"accuracy": Score(0.25, "test:mcnemar")}})
    assert cell(sweep, "snli", "Accuracy (%)", "softmax") == "70.00 [39.68, 89.22]"
    expected = "90.00 [59.58, 98.21] (+20.0, p 0.250)"
    assert cell(sweep, "snli", "Accuracy (%)", "sparsemax") == expected
    assert cell(sweep, "snli", "Macro F1 (%)", "softmax") == "69.70"  # of 2/3 and 8/11
    assert cell(sweep, "snli", "Accuracy of neutral (%)", "softmax") == "66.67"
    assert cell(sweep, "snli", "Non-zero weights (%)", "softmax") == "100.0"
    assert cell(sweep, "snli", "Training time, softmax = 1", "sparsemax") == "1.00"
    tables = {section.title: section for section in sections(sweep)}
    assert [row[0] for row in tables["BLEU"].rows] == ["test set", "toy ro-en"]
    assert not any(title.startswith(("Accuracy", "Macro")) for title in tables)
    assert [row[0] for row in tables["snli"].rows][:3] == [
        *("measure", "Accuracy (%)", "Macro F1 (%)")
    ]
    # a note that measures share is told once
    assert "- Accuracy of entailment (%), Accuracy of neutral (%): Of the" in tables["snli"].note
    assert sweep.verdict(sparse.group) == "-"
    assert "One seed in toy ro-en: differences of about one point are noise." in notes(sweep)
    assert "p of accuracy: test:mcnemar" in notes(sweep)
    alone = Sweep(runs, {})
    assert not any(note.startswith("One seed") for note in notes(alone))
    (table, _) = sections(alone)
    titles = [row[0] for row in table.rows]
    assert "Validation perplexity" not in titles
    assert "BLEU" not in titles


def test_confusion_is_the_sum_over_seeds(classified):
    runs = [classified([[3, 1], [2, 4]]), classified([[4000, 0], [1, 5]], seed=2)]
    sparse = classified([[2, 2], [3, 3]], "sparsemax", labels=["neutral", "entailment"])
    other = classified([[1, 0], [0, 1]], labels=["pos", "neg"], recipe="imdb", direction="imdb")
    sweep = Sweep([*runs, sparse, other], {})
    assert cell(sweep, "snli", "Accuracy (%)", "softmax").startswith("84.99 ± ")
    assert cell(sweep, "Confusion, snli", "softmax: neutral", "taken for entailment") == "3"
    row = "softmax: entailment"
    assert cell(sweep, "Confusion, snli", row, "taken for entailment") == "4,003"
    assert cell(sweep, "Confusion, snli", "sparsemax: neutral", "taken for neutral") == "2"
    assert cell(sweep, "Confusion, snli", "sparsemax: neutral", "taken for entailment") == "2"
    assert cell(sweep, "Confusion, imdb", "softmax: pos", "taken for pos") == "1"
    tables = {section.title: section.rows for section in sections(sweep)}
    assert "Accuracy of pos (%)" in [cells[0] for cells in tables["imdb"]]
    assert "Accuracy of pos (%)" not in [cells[0] for cells in tables["snli"]]
    assert tables["imdb"][0] == ["measure", "softmax"]  # of sparsemax there is nothing
    assert "## Confusion, snli" in markdown(sweep)


def test_all_numbers_of_classifiers_are_in_the_files(record, classified):
    sweep = Sweep([classified([[3, 1], [2, 4]]), record()], {})
    row, translated = csv.DictReader(csv_text(sweep).splitlines())
    assert (row["accuracy"], row["entailment as neutral"], row["precision neutral"]) == (
        "70.0",
        "1",
        "80.0",
    )
    assert (translated["accuracy"], translated["bleu"], row["bleu"]) == ("", "20.0", "")
    found = json.loads(json_text(sweep))["rows"][0]["runs"][0]["classes"]
    assert found["confusion"] == [[3, 1], [2, 4]]


def test_wrong_use_is_one_line(tmp_path, capsys, monkeypatch):
    monkeypatch.setattr(sys, "argv", ["analysis", str(tmp_path)])
    assert main() == 2
    captured = capsys.readouterr()
    assert captured.out == ""
    assert captured.err.count("\n") == 1
    assert captured.err.startswith("python -m fairseq_regattn.analysis: error: no records")


def test_columns_are_in_the_order_of_their_numbers(record):
    names = [f"fusedmax-lambda{number}" for number in ("10", "2", "0.5", "0.25")]
    sweep = Sweep([record(name) for name in names], {})
    assert sweep.columns == [f"fusedmax, lambda {number}" for number in ("0.25", "0.5", "2", "10")]
