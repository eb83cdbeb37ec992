"""fairseq's checkpoints load on every torch, nothing foreign does, and faults are one line."""

import argparse
import builtins
import collections
import os
import re
import sys
import zipfile
from pathlib import Path

import fairseq  # noqa: F401  applies the guards when fairseq_regattn is imported
import numpy as np
import pytest
import torch
from fairseq import checkpoint_utils
from fairseq.distributed import utils as distributed_utils

import fairseq_regattn  # noqa: F401
from fairseq_regattn import compat
from fairseq_regattn.errors import UsageError

ROOT = Path(__file__).resolve().parents[1]

restricted = pytest.mark.skipif(
    compat._torch_version() < (2, 6), reason="torch < 2.6 loads any pickle by default"
)


class Foreign:
    """A class that no checkpoint of fairseq holds."""


class Call:
    """Unpickling it calls a function: what an allow-list is there to prevent."""

    def __init__(self, function, *arguments):
        self.call = function, arguments

    def __reduce__(self):
        return self.call


def checkpoint(**extra):
    """The shape of a fairseq checkpoint after validation with --eval-bleu."""
    return {
        "args": None,
        "cfg": {"model": argparse.Namespace(arch="lstm", lr=[0.1]), "task": {"_name": "t"}},
        "model": collections.OrderedDict(weight=torch.ones(2, 3)),
        "optimizer_history": [
            {"optimizer_name": "FairseqAdam", "lr_scheduler_state": {}, "num_updates": 7}
        ],
        "extra_state": {
            "train_iterator": {"epoch": 2},
            "metrics": {"valid": [(10, "bleu", "SumMeter", {"sum": np.arange(4)})]},
            "best": np.float64(12.5),
            "sizes": np.int32(3),
        },
        "last_optimizer_state": {"state": {0: {"exp_avg": torch.zeros(2, 3)}}},
        **extra,
    }


@pytest.fixture
def save(tmp_path):
    def write(state, name="checkpoint.pt"):
        path = str(tmp_path / name)
        torch.save(state, path)
        return path

    return write


def test_checkpoint_loads(save):
    state = checkpoint_utils.load_checkpoint_to_cpu(save(checkpoint()))
    assert state["cfg"]["model"].lr == [0.1]
    assert state["extra_state"]["best"] == 12.5
    ((_, _, _, meter),) = state["extra_state"]["metrics"]["valid"]
    np.testing.assert_array_equal(meter["sum"], np.arange(4))


@pytest.mark.parametrize("module", ["numpy.core.multiarray", "numpy._core.multiarray"])
def test_checkpoint_of_either_numpy_loads(save, tmp_path, module):
    """numpy 1 and 2 write different names for the same two functions."""
    moved = str(tmp_path / "moved.pt")
    with zipfile.ZipFile(save(checkpoint())) as old, zipfile.ZipFile(moved, "w") as new:
        for item in old.infolist():
            data = old.read(item)
            if item.filename.endswith("/data.pkl"):
                data, count = re.subn(
                    rb"cnumpy\._?core\.multiarray\n", b"c" + module.encode() + b"\n", data
                )
                assert count == 2  # an array and a scalar
            new.writestr(item.filename, data)
    assert checkpoint_utils.load_checkpoint_to_cpu(moved)["extra_state"]["best"] == 12.5


def test_ema_checkpoint_loads(save):
    state = checkpoint()
    state["extra_state"]["ema"] = {"weight": torch.full((2, 3), 5.0)}
    loaded = checkpoint_utils.load_ema_from_checkpoint(save(state))
    assert torch.equal(loaded["model"]["weight"], torch.full((2, 3), 5.0))


@restricted
def test_the_rest_of_the_process_stays_restricted(save):
    path = save(checkpoint())
    before = torch.serialization.get_safe_globals()
    checkpoint_utils.load_checkpoint_to_cpu(path)
    assert set(torch.serialization.get_safe_globals()) == set(before)
    with pytest.raises(Exception, match=r"argparse\.Namespace"):
        torch.load(path)


@restricted
def test_what_the_user_allowed_stays_allowed(save):
    with torch.serialization.safe_globals([Foreign, argparse.Namespace]):
        checkpoint_utils.load_checkpoint_to_cpu(save(checkpoint(mine=Foreign())))
        assert argparse.Namespace in torch.serialization.get_safe_globals()
        checkpoint_utils.load_checkpoint_to_cpu(save(checkpoint(mine=Foreign())))


def refuse(path):
    with pytest.raises(UsageError) as caught:
        checkpoint_utils.load_checkpoint_to_cpu(path)
    message = str(caught.value)
    assert path in message
    assert "\n" not in message
    assert len(message) < len(path) + 250
    return message


@restricted
@pytest.mark.parametrize(
    ("content", "name"),
    [
        (Foreign(), f"{__name__}.Foreign"),
        (Call(os.system, "exit 1"), f"{os.name}.system"),  # torch blocks the module outright
        (Call(builtins.eval, "1 + 1"), "eval"),
        (Call(np.load, "file"), "numpy.load"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_foreign_global_is_refused_by_name(save, monkeypatch, content, name):
    path = save(checkpoint(foreign=content))
    message = refuse(path)
    assert name in message
    assert compat.TRUST_VARIABLE in message
    if isinstance(content, Foreign):  # and the documented way to trust it works
        monkeypatch.setenv(compat.TRUST_VARIABLE, "1")
        assert isinstance(checkpoint_utils.load_checkpoint_to_cpu(path)["foreign"], Foreign)


@pytest.mark.parametrize("kept", [0, 1, 10, 300, 0.5, 0.9, -1], ids=str)
def test_truncated_file_is_named(save, kept):
    path = save(checkpoint())
    data = Path(path).read_bytes()
    Path(path).write_bytes(data[: int(kept * len(data)) if isinstance(kept, float) else kept])
    assert "truncated" in refuse(path)


@pytest.mark.parametrize(
    "data", [b"hello world\n", bytes(1000), b"\x80\x04K\x01.", b"PK\x03\x04" * 50], ids=repr
)
def test_file_of_another_kind_is_named(tmp_path, data):
    path = tmp_path / "other.pt"
    path.write_bytes(data)
    assert "cannot be read as a fairseq checkpoint" in refuse(str(path))


def test_weights_alone_are_not_a_checkpoint(save):
    assert "cannot be read as a fairseq checkpoint" in refuse(save({"weight": torch.ones(2)}))


def test_other_errors_pass(save, tmp_path):
    with pytest.raises(FileNotFoundError):
        checkpoint_utils.load_checkpoint_to_cpu(str(tmp_path / "missing.pt"))
    with pytest.raises(IsADirectoryError):
        checkpoint_utils.load_checkpoint_to_cpu(str(tmp_path))


def test_applied_once():
    guarded = (
        checkpoint_utils.load_checkpoint_to_cpu,
        checkpoint_utils.load_ema_from_checkpoint,
        distributed_utils._broadcast_object_slow,
    )
    compat.apply()
    assert guarded == (
        checkpoint_utils.load_checkpoint_to_cpu,
        checkpoint_utils.load_ema_from_checkpoint,
        distributed_utils._broadcast_object_slow,
    )
    assert not any(hasattr(function.__wrapped__, "__wrapped__") for function in guarded)


WORDS = ["a", "b", "c", "d", "e", "f", "g", "h"]
# fairseq starts one process a GPU; pretending to have two makes it start two CPU processes, so
# this goes through its own spawn, in which each process has to find the plugin again.
TRAIN = """
import torch
from fairseq_cli.train import cli_main

if __name__ == "__main__":
    torch.cuda.device_count = lambda: 2
    cli_main()
"""


@pytest.fixture
def toy_data(tmp_path, run_python):
    """A binarised copying task of 60 sentences."""
    for split in ("train", "valid"):
        lines = "".join(f"{' '.join(WORDS[i % 7 : i % 7 + 1 + i % 5])}\n" for i in range(60))
        for side in ("src", "tgt"):
            (tmp_path / f"{split}.{side}").write_text(lines)
    options = "-s src -t tgt --trainpref train --validpref valid --destdir data --joined-dictionary"
    run_python("-m", "fairseq_cli.preprocess", *options.split())
    return tmp_path / "data"


@pytest.mark.slow
@pytest.mark.skipif(sys.platform == "win32", reason="gloo over a file store")
def test_two_processes_resume(toy_data, tmp_path, run_python, package_dir):
    """Rank 0 reads the checkpoint and sends it on, pickled, with omegaconf's classes in it."""
    (tmp_path / "train_two.py").write_text(TRAIN)
    options = f"""--user-dir {package_dir} --arch regattn_lstm_small --task translation --cpu
        --optimizer adam --lr 0.01 --max-tokens 200 --save-dir checkpoints --no-progress-bar
        --eval-bleu --eval-bleu-detok moses --best-checkpoint-metric bleu
        --maximize-best-checkpoint-metric --no-epoch-checkpoints
        --distributed-world-size 2 --distributed-backend gloo --ddp-backend legacy_ddp"""

    def train(epochs):
        command = ["train_two.py", toy_data, *options.split(), "--max-epoch", epochs]
        result = run_python(*command, timeout=900)
        return result.stdout + result.stderr

    assert "training on 2 devices" in train(1)
    log = train(2)
    assert "Loaded checkpoint checkpoints/checkpoint_last.pt (epoch 2" in log
    assert "epoch 002 | valid" in log


@pytest.mark.slow
@restricted
def test_command_answers_in_one_line(toy_data, tmp_path, run_python, package_dir, save):
    save(checkpoint(foreign=Call(os.system, "exit 1")), "foreign.pt")
    script = tmp_path / "fairseq-generate"
    script.write_text("from fairseq_cli.generate import cli_main\ncli_main()\n")
    options = ["--user-dir", package_dir, "--path", "foreign.pt", "--cpu"]
    result = run_python(script, toy_data, *options, expected=1)
    assert result.stderr.splitlines()[-1].startswith("fairseq-generate: error: foreign.pt")
    assert "Traceback" not in result.stderr


def test_left_out_sentences_are_counted(caplog):
    from fairseq.data import data_utils

    def batches(count, multiple):
        caplog.clear()
        compat.apply()
        made = data_utils.batch_by_size(
            range(count), lambda _: 1, max_sentences=8, required_batch_size_multiple=multiple
        )
        return sum(map(len, made))

    kept = batches(20, 8)
    assert (f"leaves out {20 - kept} of 20 sentences" in caplog.text) == (kept < 20)
    assert batches(20, 1) == 20
    assert not caplog.text
