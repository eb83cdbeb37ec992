"""The quick start as a whole, on a toy language."""

import gzip

import pytest

from fairseq_regattn.analysis.records import read_records
from fairseq_regattn.quickstart.__main__ import quickstart
from fairseq_regattn.recipes import report
from fairseq_regattn.recipes.options import parse_quickstart

SIZES = [
    f"model.{side}_{what}=16"
    for side in ("encoder", "decoder")
    for what in ("embed_dim", "hidden_size")
]
TINY = (
    *SIZES,
    "generate.max_len_b=12",
    "optimization.max_update=6",
    "dataset.max_tokens=400",
    "lr_scheduler.warmup_updates=2",
)


@pytest.mark.slow
def test_first_run_second_run_and_another_mapping(tmp_path, capsys, monkeypatch, write_corpus):
    pytest.importorskip("matplotlib", reason="matplotlib draws the heat maps")
    monkeypatch.setattr(report, "LENGTHS", range(1, 100))
    monkeypatch.setattr(report, "LONGEST", 200)
    verses = write_corpus(tmp_path / "tiny.gz", 40)
    out = tmp_path / "out"

    def run(*arguments):
        given = ["--output", str(out), "preprocess.subwords=24", *arguments, *TINY]
        assert quickstart(parse_quickstart(given), verses) == 0
        return capsys.readouterr().out

    printed = run()
    rows = [line for line in printed.splitlines() if line.startswith(("softmax ", "fusedmax,"))]
    assert len(rows) == 2
    assert "nrefs:1|case:mixed|eff:no|tok:13a" in printed
    [folder] = out.rglob("report")
    page = (folder / "index.html").read_text(encoding="utf-8")
    with gzip.open(verses, "rt", encoding="utf-8") as lines:
        names = [line.split("\t")[1] for line in lines if line.startswith("test")]
    assert len(names) == 4
    assert all(f'["{name}"' in page for name in names)
    assert len(list(folder.glob("alignment-*-Book*.png"))) == 4

    assert "Nothing to do" in run()
    printed = run("--attention", "sparsemax")
    rows = [line.split()[0] for line in printed.splitlines() if " " in line.strip()]
    assert {"softmax", "fusedmax,", "sparsemax"} <= set(rows)
    assert sorted(record.mapping for record in read_records(out / "records")) == [
        "fusedmax",
        "softmax",
        "sparsemax",
    ]
