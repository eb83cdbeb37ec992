"""A stranger's ten lines add a mapping: ``--user-dir theirs --attention mine``."""

import pytest

from . import commands, processes

MINE = """\
import torch
from fairseq_regattn.attention import register_attention


@register_attention("mine")
def mine(scores, dim=-1, *, padding_mask=None, gamma=1.0):
    scores = scores / gamma
    if padding_mask is not None:
        scores = scores.masked_fill(padding_mask, float("-inf"))
    return torch.softmax(scores, dim)
"""


@pytest.mark.slow
def test_train_and_generate_with_mine(data, tmp_path):
    theirs = tmp_path / "theirs"
    theirs.mkdir()
    (theirs / "__init__.py").write_text(MINE)
    assert len(MINE.splitlines()) <= 10
    flags = [*commands.TINY.split(), "--max-update=2", f"--save-dir={tmp_path}"]
    installed = {"user_dir": theirs, "PYTHONPATH": str(processes.ROOT)}
    process = processes.start("fairseq-train", data, *flags, "--attention=mine", **installed)
    status, _, err = processes.finish(process)
    assert status == 0, err
    checkpoint = tmp_path / "checkpoint_last.pt"
    signature = commands.state(checkpoint)["model"]["decoder.attention.mapping_version"]
    assert bytes(signature.tolist()).startswith(b"mine(gamma=1.0)\0")
    asked = ["--cpu", "--beam=2", "--max-len-b=9", "--print-alignment=hard"]
    process = processes.start("fairseq-generate", data, f"--path={checkpoint}", *asked, **installed)
    status, out, err = processes.finish(process)
    assert status == 0, err
    assert commands.lines(out, "A")


def test_in_process(data, tmp_path, monkeypatch):
    from fairseq_regattn.attention import ATTENTIONS

    monkeypatch.setattr("fairseq_regattn.attention.registry.ATTENTIONS", ATTENTIONS)
    names = dict(ATTENTIONS)
    try:
        exec(compile(MINE, "theirs", "exec"), {"__name__": "theirs"})
        flags = ("--dropout", 0, "--max-update", 3)
        mine = commands.train(data, tmp_path / "mine", "--attention", "mine", *flags)
        softmax = commands.train(data, tmp_path / "softmax", "--attention", "softmax", *flags)
    finally:
        ATTENTIONS.clear()
        ATTENTIONS.update(names)
    mine, softmax = (commands.state(out / "checkpoint_last.pt")["model"] for out in (mine, softmax))
    for name in softmax:
        if softmax[name].is_floating_point():
            assert (mine[name] - softmax[name]).abs().max() < 1e-4, name
