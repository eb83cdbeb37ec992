"""Lower precision, and two processes.

fairseq itself cannot train with --fp16 on a CPU: its loss scaler asks for CUDA.
"""

import os
import re
import shlex
import socket
import subprocess
import sys
from pathlib import Path

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


RANK = """\
import os
import torch
import fairseq_cli.train
from fairseq.trainer import Trainer

trainers = []
made = Trainer.__init__

def make(self, *args, **kwargs):
    trainers.append(self)
    made(self, *args, **kwargs)

Trainer.__init__ = make
fairseq_cli.train.cli_main()
model = trainers[0].model
kind = type(trainers[0].get_model()).__module__
torch.save({"kind": kind, "model": model.state_dict()}, f"rank{os.environ['RANK']}.pt")
"""


@pytest.mark.slow
def test_torchrun_as_the_readme_says(data, tmp_path):
    """Both ranks find the plugin, train together and end with the same parameters."""
    (tmp_path / "rank.py").write_text(RANK, encoding="utf-8")
    readme = (processes.ROOT / "README.md").read_text(encoding="utf-8")
    [line] = [line for line in readme.splitlines() if line.startswith("torchrun ")]
    script = re.search(r"cat > train\.sh <<'END'\n(.*?)END\n", readme, re.DOTALL)[1]
    assert "fairseq-train data-bin " in script
    flags = [*commands.TINY.split(), "--attention=oscarmax", "--max-epoch=1"]
    flags += ["--distributed-backend=gloo", "--ddp-backend=legacy_ddp"]
    words = " ".join(shlex.quote(flag) for flag in [*flags, f"--save-dir={tmp_path}/checkpoints"])
    script = script.replace("fairseq-train data-bin ", f"{sys.executable} rank.py {data} {words} ")
    (tmp_path / "train.sh").write_text(script, encoding="utf-8")
    line = line.replace("--nnodes 2 --nproc_per_node 8", "--nnodes 1 --nproc_per_node 2")
    line = line.replace("HOST:29500", f"localhost:{free_port()}")
    done = subprocess.run(
        [str(Path(sys.executable).parent / "torchrun"), *shlex.split(line)[1:]],
        cwd=tmp_path,
        env={**os.environ, "OMP_NUM_THREADS": "1", "USER_DIR": str(processes.USER_DIR)},
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert "training on 2 devices" in done.stdout + done.stderr
    saved = [torch.load(tmp_path / f"rank{rank}.pt", weights_only=True) for rank in (0, 1)]
    assert [rank["kind"] for rank in saved] == ["fairseq_regattn.models.regattn_lstm"] * 2
    one, two = (rank["model"] for rank in saved)
    start = commands.state(tmp_path / "checkpoints" / "checkpoint_last.pt")["model"]
    assert one.keys() == two.keys() == start.keys()
    for name, value in one.items():
        assert torch.equal(value, two[name]), name
        assert torch.equal(value, start[name]), name


@pytest.mark.slow
def test_a_sweep_by_submitit(data, tmp_path):
    """Hydra's launcher for clusters, with processes of this machine for their nodes."""
    pytest.importorskip("hydra_plugins.hydra_submitit_launcher", reason="launches jobs")
    words = ["-m", "--config-dir", str(processes.ROOT / "configs" / "train")]
    words += ["--config-name", "small", "model.attention=softmax,fusedmax"]
    words += ["hydra/launcher=submitit_local", "hydra.launcher.timeout_min=5"]
    words += [f"task.data={data}", "task.source_lang=xx", "task.target_lang=yy", "common.cpu=true"]
    words += [f"common.user_dir={processes.USER_DIR}", "optimization.max_update=1"]
    process = processes.start(
        "fairseq-hydra-train", *words, f"hydra.sweep.dir={tmp_path}", user_dir=None
    )
    status, out, err = processes.finish(process)
    assert status == 0, out + err
    for number, name in enumerate(("softmax", "fusedmax")):
        state = commands.state(tmp_path / str(number) / "checkpoints" / "checkpoint_last.pt")
        assert state["cfg"]["model"]["attention"] == name
        signature = bytes(state["model"]["decoder.attention.mapping_version"].tolist())
        assert signature.startswith(f"{name}(".encode())


@pytest.mark.slow
def test_the_launcher_of_the_readme_is_valid(tmp_path):
    pytest.importorskip("hydra_plugins.hydra_submitit_launcher", reason="launches jobs")
    readme = (processes.ROOT / "README.md").read_text(encoding="utf-8")
    found = re.search(r"^fairseq-hydra-train -m ((?:.*\\\n)*.*hydra/launcher.*)$", readme, re.M)
    words = shlex.split(found[1].replace("\\\n", " "))
    words = [word.replace("configs/train", f"{processes.ROOT}/configs/train") for word in words]
    words = [word.partition(",")[0].replace("$PWD", "") for word in words]  # one job
    process = processes.start("fairseq-hydra-train", *words, "--cfg", "hydra", user_dir=None)
    status, out, err = processes.finish(process)
    assert status == 0, err
    assert "SlurmLauncher" in out
