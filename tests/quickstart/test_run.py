"""The quick start as a whole, on a toy language."""

import pytest
import sacrebleu

from fairseq_regattn.quickstart import corpus, models, report
from fairseq_regattn.quickstart.__main__ import open_workspace, quickstart
from fairseq_regattn.quickstart.options import parse

PIECES = 32
TINY = ("optimization.max_update=6", "dataset.max_tokens=400", "lr_scheduler.warmup_updates=2")


def states(folder):
    """Every file with the time of its last change; looking at it changes neither."""
    return {p: p.stat().st_mtime_ns for p in folder.rglob("*") if p.is_file()}


@pytest.mark.slow
def test_first_run_second_run_and_another_mapping(tmp_path, capsys, monkeypatch, write_corpus):
    pytest.importorskip("matplotlib", reason="matplotlib draws the heat maps")
    monkeypatch.setattr(report, "LENGTHS", range(1, 100))
    verses = write_corpus(tmp_path / "tiny.gz", 40)
    out = tmp_path / "a folder, with 'signs'"
    chosen = parse(["--output", str(out), *TINY])

    folder = quickstart(chosen, verses, PIECES)
    printed = capsys.readouterr().out
    workspace = open_workspace(chosen, verses, PIECES)
    assert "softmax" in printed
    assert "fusedmax, lambda 0.1" in printed
    assert "nrefs:1|case:mixed|eff:no|tok:13a" in printed
    assert len(list(folder.glob("*.png"))) == 4  # as many as test sentences
    assert (folder / "index.html").stat().st_size > 5000
    assert not list(out.rglob("*.partial"))
    assert (workspace.model(chosen.attentions[0]) / "train.log").read_text().startswith("$ ")

    # The scores are those of sacrebleu on what was printed, and fairseq agrees on them.
    softmax = chosen.attentions[0]
    texts = [hypothesis.text for hypothesis in models.hypotheses(workspace, softmax)]
    references = corpus.read_lines(workspace.text / "test.en")
    result = models.read_result(workspace.model(softmax))
    assert result.bleu == pytest.approx(sacrebleu.corpus_bleu(texts, [references]).score)
    generated = (workspace.model(softmax) / "generate.txt").read_text(encoding="utf-8")
    assert f"BLEU = {result.bleu:.2f}" in generated.splitlines()[-1]
    assert result.alignments.nonzero > 0.99
    assert result.training_seconds > 0

    before = states(out)
    assert quickstart(chosen, verses, PIECES) == folder
    printed = capsys.readouterr().out
    assert printed.count("already there") == 4
    assert states(out) == before

    another = parse(["--output", str(out), "--attention", "sparsemax", *TINY])
    folder = quickstart(another, verses, PIECES)
    assert {path: time for path, time in states(out).items() if path in before} == before
    rows = (folder / "results.md").read_text(encoding="utf-8").splitlines()[2:5]
    assert [row.split(" | ")[0] for row in rows] == [
        "| softmax",
        "| fusedmax, lambda 0.1",
        "| sparsemax",
    ]
