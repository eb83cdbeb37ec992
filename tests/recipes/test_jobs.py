"""Processes side by side, and what is read from their logs."""

import json
import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from fairseq_regattn.recipes import jobs, runs
from fairseq_regattn.recipes.progress import Display, State, TrainingLog
from fairseq_regattn.recipes.stages import StageError, exclusive


def chain(tmp_path, *codes, output=None, name="log"):
    """A process for each piece of code, one after the other."""
    for code in codes:
        command = [sys.executable, "-c", code]
        yield jobs.Job(command, tmp_path / name, tmp_path, lambda: State(0.5, "half"), output)


def run(tmp_path, *chains, **options):
    with exclusive(tmp_path) as lock:
        named = [jobs.Chain(str(number), one) for number, one in enumerate(chains)]
        return jobs.run(named, [lock], **options)


def test_output_and_log_are_apart_and_the_log_names_the_command(tmp_path):
    code = "import sys, os; print(os.environ['OMP_NUM_THREADS']); print('e', file=sys.stderr)"
    assert run(tmp_path, chain(tmp_path, code, output=tmp_path / "out")) == {}
    assert (tmp_path / "out").read_text() == "1\n"
    command, errors, time_line = (tmp_path / "log").read_text().splitlines()
    assert command.startswith(f"$ cd {tmp_path} && {sys.executable} -c ")
    assert errors == "e"
    assert 0 < float(time_line.removeprefix("# processor seconds: ")) < 30


def test_jobs_of_a_chain_follow_one_another(tmp_path):
    """The second reads what the first wrote; other chains go on meanwhile."""
    first = "import time; time.sleep(0.3); open('a', 'w').write('1')"
    second = "open('b', 'w').write(open('a').read() + '2')"
    run(tmp_path, chain(tmp_path, first, second), chain(tmp_path, "pass", name="other"))
    assert (tmp_path / "b").read_text() == "12"


def test_no_more_at_once_than_asked_for(tmp_path):
    code = "import os; os.mkdir('busy'); import time; time.sleep(0.2); os.rmdir('busy')"
    run(tmp_path, *(chain(tmp_path, code, code, name=f"{i}") for i in range(3)), at_once=1)


def test_processes_side_by_side_have_a_gpu_each(tmp_path, monkeypatch):
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    code = "import os; print(os.environ.get('CUDA_VISIBLE_DEVICES'))"
    for devices, at_once, expected in (
        (2, 3, {"0", "1"}),
        (1, 3, {"None"}),
        (4, 1, {"None"}),  # one uses all
    ):
        files = [tmp_path / f"out{number}" for number in range(3)]
        slow = f"{code}; import time; time.sleep(0.5)"
        chains = (chain(tmp_path, slow, output=file) for file in files)
        run(tmp_path, *chains, at_once=at_once, devices=devices)
        assert {file.read_text().strip() for file in files} == expected


def test_only_gpus_that_the_user_shows_are_used(monkeypatch):
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "5, GPU-8f3a")
    used = [jobs.device(slot, 3, 2)["CUDA_VISIBLE_DEVICES"] for slot in range(3)]
    assert used == ["5", "GPU-8f3a", "5"]
    assert jobs.device(0, 1, 2) == {}  # one process uses all of them, as they are


@pytest.mark.parametrize("terminal", [True, False])
def test_the_display_tells_of_each_and_of_all(monkeypatch, capsys, terminal):
    monkeypatch.setattr(sys.stderr, "isatty", lambda: terminal)
    display = Display(["first", "second", "third"], slots=2, every=0)
    display.show(0, 0, State(0.5, "half {of} it"))
    display.show(1, 1, State(0.25, "a quarter"))
    display.ended(1)
    display.show(2, 1, State(0.0, "begun"))
    display.close()
    out, err = capsys.readouterr()
    told = err if terminal else out
    for words in ("half {of} it", "a quarter", "begun", "1 of 3", "third"):
        assert words in told
    assert (out if terminal else err) == ""


def test_what_needs_no_process_says_nothing_of_the_time_left(capsys):
    display = Display(["scored", "trains", "waits"], slots=1)
    display.ended(0)
    assert "1 of 3, time left: not known yet" in capsys.readouterr().out
    display.show(1, 0, State(1.0, "all of it"))
    display.ended(1)
    assert re.search(r"50 %  2 of 3, \d+ s left", capsys.readouterr().out)


def test_a_failure_names_its_log_and_stops_the_others(tmp_path):
    slow = chain(tmp_path, "import time; time.sleep(60)", name="slow.log")
    fails = chain(tmp_path, "import sys; sys.exit(3)", name="fails.log")
    began = time.monotonic()
    with pytest.raises(StageError, match=r"fails\.log"):
        run(tmp_path, fails, slow)
    assert time.monotonic() - began < 30


def test_others_go_on_after_a_failure_if_they_are_to(tmp_path, capsys):
    def fails_between():
        yield from chain(tmp_path, "pass")
        raise StageError("no checkpoint")

    ends = chain(tmp_path, "import time; time.sleep(0.5); open('end', 'w')", name="ends")
    fails = chain(tmp_path, "raise SystemExit(1)", "open('never', 'w')", name="fails")
    failures = run(tmp_path, fails, fails_between(), ends, keep_going=True)
    assert {title: str(error) for title, error in failures.items()} == {
        "0": f"{Path(sys.executable).name} failed: see {tmp_path / 'fails'}",
        "1": "no checkpoint",
    }
    assert "1: failed" in capsys.readouterr().out
    assert (tmp_path / "end").exists()
    assert not (tmp_path / "never").exists()


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux ends children with their parent")
def test_kill_minus_nine_leaves_nothing_running(tmp_path, package_dir):
    child = f"import os, time; open({str(tmp_path / 'pid')!r}, 'w').write(str(os.getpid())); "
    code = (
        "import sys; from pathlib import Path\n"
        "from fairseq_regattn.recipes import jobs, stages\n"
        f"folder = Path({str(tmp_path)!r})\n"
        f"job = jobs.Job([sys.executable, '-c', {child + 'time.sleep(60)'!r}], "
        "folder / 'log', folder, lambda: jobs.State(0, ''))\n"
        "with stages.exclusive(folder) as lock: jobs.run([jobs.Chain('x', iter([job]))], [lock])\n"
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
    by_epochs = TrainingLog(path, max_epoch=8)
    assert log.state() == State(0.0, "epoch 1, update 0/400")
    inner = {"epoch": 1, "update": 0.5, "loss": "8.1", "num_updates": "50", "wall": "30"}
    path.write_text("$ fairseq-hydra-train\n" + entry(**inner) + '{"epoch": 1, "upd')
    state = log.state()
    assert state.fraction == 0.125
    assert log.processor_seconds is None
    assert by_epochs.state() == State(0.0625, "epoch 1/8, update 50, loss 8.10")
    assert state.text == "epoch 1, update 50/400, loss 8.10"
    with open(path, "a") as file:  # killed there; the next run begins the epoch again
        file.write("\n$ fairseq-hydra-train\n" + entry(**{**inner, "wall": "10"}))
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
    assert by_epochs.state().fraction == 0.25
    with open(path, "a") as file:
        file.write("# processor seconds: 40.50\n")
    log.read()
    assert log.processor_seconds is None  # the first run was killed and did not tell


def test_processor_time_of_runs_that_ended_by_themselves(tmp_path):
    path = tmp_path / "train.log"
    path.write_text("$ a\n# processor seconds: 2.25\n$ b\n# processor seconds: 4.50\n")
    log = TrainingLog(path)
    assert log.processor_seconds is None  # not read yet, as one that is not there
    log.read()
    assert log.processor_seconds == 6.75


def test_time_of_runs_of_any_length_and_damaged_lines(tmp_path):
    path = tmp_path / "train.log"
    inner = {"epoch": 1, "update": 0.5, "loss": "8.1", "num_updates": "50"}
    path.write_text(
        f"$ a\n{entry(**inner, wall='20')}# processor seconds: 3.0$ cd b\n"
        f"$ a\n{entry(**inner, wall='40')}"  # longer than the first from its first line on
    )
    log = TrainingLog(path)
    log.read()
    assert log.seconds == 60
    assert log.processor_seconds is None


def test_a_log_that_cannot_be_written_is_one_failure(tmp_path):
    """A full disk, say; here the folder is gone when the time is to be noted."""
    (tmp_path / "gone").mkdir()
    code = f"import shutil; shutil.rmtree({str(tmp_path / 'gone')!r})"
    failures = run(tmp_path, chain(tmp_path, code, name="gone/log"), keep_going=True)
    assert isinstance(failures["0"], FileNotFoundError)


def test_a_failure_tells_the_line_that_tells_most(tmp_path):
    code = "print('note', flush=True); raise ValueError('the reason')"
    with pytest.raises(StageError, match=r"failed: ValueError: the reason \(see .*log\)"):
        run(tmp_path, chain(tmp_path, code))


def test_half_written_best_checkpoint_is_no_last_one(tmp_path):
    import torch

    best = tmp_path / "checkpoint_best.pt"
    torch.save({"epoch": 3}, best)
    best.write_bytes(best.read_bytes()[:-100])
    runs._mend_checkpoints(tmp_path)
    assert list(tmp_path.iterdir()) == []


def test_half_written_checkpoint_is_replaced_by_the_best_one(tmp_path):
    import torch

    last, best = tmp_path / "checkpoint_last.pt", tmp_path / "checkpoint_best.pt"
    torch.save({"epoch": 3}, best)
    last.write_bytes(best.read_bytes()[:-100])
    runs._mend_checkpoints(tmp_path)
    assert torch.load(last, weights_only=True) == {"epoch": 3}
    torch.save({"epoch": 4}, last)
    runs._mend_checkpoints(tmp_path)
    assert torch.load(last, weights_only=True) == {"epoch": 4}
    assert torch.load(best, weights_only=True) == {"epoch": 3}
