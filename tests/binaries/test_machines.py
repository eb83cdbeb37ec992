"""Lower precision, and two processes.

fairseq itself cannot train with --fp16 on a CPU: its loss scaler asks for CUDA.
"""

import socket

import pytest
import torch

from . import commands, processes


@pytest.mark.parametrize("name", ["softmax", "fusedmax", "oscarmax"])
def test_bf16(data, tmp_path, name):
    flags = ("--attention", name, "--max-epoch", 1)
    full = commands.train(data, tmp_path / "full", *flags)
    low = commands.train(data, tmp_path / "low", *flags, bf16=True)
    full, low = (commands.state(out / "checkpoint_last.pt") for out in (full, low))
    for key, value in full["model"].items():
        if value.is_floating_point():
            found = low["model"][key]  # saved in float32, whatever it was trained in
            assert torch.equal(found, found.bfloat16().float()), key
            apart = (found - value).abs().mean()
            assert apart < 0.03, key  # ten updates moved it by up to 0.1
    path = tmp_path / "low" / "checkpoint_last.pt"
    output, _ = commands.generate(data, path, tmp_path / "generated")
    assert len(commands.lines(output, "H")) == 64


def free_port():
    with socket.socket() as found:
        found.bind(("localhost", 0))
        return found.getsockname()[1]


@pytest.mark.slow
def test_two_processes_equal_one(data, tmp_path):
    """Two of 8 sentences each make the update that one of 16 makes; then resume."""
    flags = ["--attention", "fusedmax", "--dropout", "0", "--train-subset", "valid"]
    flags += ["--optimizer", "sgd", "--clip-norm", "0", "--lr", "1"]
    both = [*commands.TINY.split(), *flags, "--batch-size", "8", f"--save-dir={tmp_path}/two"]
    both += ["--distributed-backend=gloo", "--ddp-backend=legacy_ddp", "--distributed-no-spawn"]
    for updates in ("2", "3"):  # the second time the first rank sends what it read
        meet = f"--distributed-init-method=tcp://localhost:{free_port()}"
        started = [
            processes.start(
                "fairseq-train",
                *(data, *both, "--max-update", updates, meet),
                *("--distributed-world-size=2", f"--distributed-rank={rank}"),
            )
            for rank in range(2)
        ]
        logs = []
        for process in started:
            status, out, err = processes.finish(process)
            assert status == 0, err
            logs.append(out + err)
        assert "training on 2 devices" in logs[0]  # the first rank speaks for all
    one = commands.train(data, tmp_path / "one", *flags, "--batch-size", 16, "--max-update", 3)
    one = commands.state(one / "checkpoint_last.pt")["model"]
    two = commands.state(tmp_path / "two" / "checkpoint_last.pt")["model"]
    for name in one:
        torch.testing.assert_close(one[name], two[name], atol=1e-5, rtol=1e-4, msg=name)
