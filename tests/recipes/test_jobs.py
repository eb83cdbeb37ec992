"""Processes side by side, and what is read from their logs."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from fairseq_regattn.quickstart import models
from fairseq_regattn.recipes import jobs
from fairseq_regattn.recipes.progress import State, TrainingLog
from fairseq_regattn.recipes.stages import StageError, exclusive


def job(tmp_path, code, output=None, name="log"):
    command = [sys.executable, "-c", code]
    return jobs.Job("x", command, tmp_path / name, tmp_path, lambda: State(0.5, "half"), output)


def test_output_and_log_are_apart_and_the_log_names_the_command(tmp_path):
    code = "import sys, os; print(os.environ['OMP_NUM_THREADS']); print('e', file=sys.stderr)"
    with exclusive(tmp_path) as lock:
        jobs.run([job(tmp_path, code, tmp_path / "out")], lock)
    assert (tmp_path / "out").read_text() == "1\n"
    command, errors = (tmp_path / "log").read_text().splitlines()
    assert command.startswith(f"$ cd {tmp_path} && {sys.executable} -c ")
    assert errors == "e"


def test_a_failure_names_its_log_and_stops_the_others(tmp_path):
    slow = job(tmp_path, "import time; time.sleep(60)", name="slow.log")
    fails = job(tmp_path, "import sys; sys.exit(3)", name="fails.log")
    began = time.monotonic()
    with exclusive(tmp_path) as lock, pytest.raises(StageError, match=r"fails\.log"):
        jobs.run([fails, slow], lock)
    assert time.monotonic() - began < 30


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux ends children with their parent")
def test_kill_minus_nine_leaves_nothing_running(tmp_path, package_dir):
    child = f"import os, time; open({str(tmp_path / 'pid')!r}, 'w').write(str(os.getpid())); "
    code = (
        "import sys; from pathlib import Path\n"
        "from fairseq_regattn.recipes import jobs, stages\n"
        f"folder = Path({str(tmp_path)!r})\n"
        f"job = jobs.Job('x', [sys.executable, '-c', {child + 'time.sleep(60)'!r}], "
        "folder / 'log', folder, lambda: jobs.State(0, ''))\n"
        "with stages.exclusive(folder) as lock: jobs.run([job], lock)\n"
    )
    environment = {**os.environ, "PYTHONPATH": str(package_dir.parent)}
    parent = subprocess.Popen([sys.executable, "-c", code], env=environment)
    try:
        wait_for(lambda: (tmp_path / "pid").exists() and (tmp_path / "pid").read_text())
        with pytest.raises(StageError), exclusive(tmp_path):
            pass
    finally:
        parent.send_signal(signal.SIGKILL)
        parent.wait()
    wait_for(lambda: not Path("/proc", (tmp_path / "pid").read_text()).exists())
    with exclusive(tmp_path):
        pass


def wait_for(condition, seconds=60):
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, "waited too long"
        time.sleep(0.05)


def entry(**values):
    return f"[2026-11-30 12:00:00,123][train][INFO] - {json.dumps(values)}\n"


def test_training_log_over_two_runs(tmp_path):
    path = tmp_path / "train.log"
    log = TrainingLog(path, max_update=400)
    assert log.state() == State(0.0, "epoch 1, update 0/400")
    inner = {"epoch": 1, "update": 0.5, "loss": "8.1", "num_updates": "50", "wall": "30"}
    path.write_text("$ fairseq-hydra-train\n" + entry(**inner) + '{"epoch": 1, "upd')
    state = log.state()
    assert state.fraction == 0.125
    assert state.text == "epoch 1, update 50/400, loss 8.10"
    with open(path, "a") as file:  # killed there; the next run begins the epoch again
        file.write("\n" + entry(**{**inner, "wall": "10"}))
        file.write(entry(epoch=1, valid_ppl="90.5", valid_num_updates="100"))
        end = {"epoch": 1, "train_wps": "1000", "train_num_updates": "100", "train_wall": "25"}
        file.write(entry(**end))
        file.write(entry(epoch=2, valid_ppl="95"))
        file.write(entry(**{**end, "epoch": 2, "train_num_updates": "200", "train_wall": "50"}))
    state = log.state()
    assert state.fraction == 0.5
    assert state.text == "epoch 2, update 200/400, loss 8.10, valid ppl 95.0"
    assert (log.best_ppl, log.speeds) == (90.5, [1000, 1000])
    assert log.seconds == 30 + 50


def test_half_written_checkpoint_is_replaced_by_the_best_one(tmp_path):
    import torch

    last, best = tmp_path / "checkpoint_last.pt", tmp_path / "checkpoint_best.pt"
    torch.save({"epoch": 3}, best)
    last.write_bytes(best.read_bytes()[:-100])
    models._mend_last_checkpoint(tmp_path)
    assert torch.load(last, weights_only=True) == {"epoch": 3}
    torch.save({"epoch": 4}, last)
    models._mend_last_checkpoint(tmp_path)
    assert torch.load(last, weights_only=True) == {"epoch": 4}
    assert torch.load(best, weights_only=True) == {"epoch": 3}
