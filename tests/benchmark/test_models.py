"""The benchmarks of models run, and compare models of one size."""

import json
from argparse import Namespace

import contestants
import pytest
import torch

from fairseq_regattn.attention import ATTENTIONS

EVERYONE = {*ATTENTIONS, contestants.FAIRSEQ}


@pytest.mark.parametrize(
    ("arch", "width"), [("regattn_lstm_opennmt", 500), ("regattn_lstm_small", 192)]
)
def test_equal_sizes(arch, width):
    """In parameters, and in what can be seen of dropout."""
    args = Namespace(arch=arch, vocabulary=50, batch=4, length=9)
    task = contestants.make_task(args)
    models = contestants.models(args, task)
    assert set(models) == EVERYONE
    assert {model.decoder.hidden_size for model in models.values()} == {width}
    sizes = {sum(p.numel() for p in model.parameters()) for model in models.values()}
    assert len(sizes) == 1
    assert len({model.decoder.dropout_out_module.p for model in models.values()}) == 1
    sources = contestants.sources(args, task.source_dictionary)
    words = sources["src_tokens"] != task.source_dictionary.pad()
    assert torch.equal(words.sum(1), sources["src_lengths"])
    assert words[:, -1].all()


@pytest.mark.slow
@pytest.mark.parametrize(
    ("script", "unit"), [("training.py", "tokens/s"), ("decoding.py", "sentences/s")]
)
def test_scripts(run_python, package_dir, tmp_path, script, unit):
    root = package_dir.parent
    flags = "--arch regattn_lstm_small --vocabulary 50 --batch 2 --length 5 --rounds 2"
    path = root / "scripts" / "benchmark" / script
    result = run_python(path, *flags.split(), "--json", "figures.json", path=[root])
    assert unit in result.stdout
    lines = (tmp_path / "figures.json").read_text(encoding="utf-8").splitlines()
    table, targets = map(json.loads, lines)
    assert set(table["rows"]) == EVERYONE
    assert all(len(row["seconds"]) == 2 for row in table["rows"].values())
    ((name, value, _, _),) = targets["rows"]
    assert name == "speed, softmax x fairseq lstm"
    assert f"{value:.2f}" in result.stdout
