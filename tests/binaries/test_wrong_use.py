"""Wrong use is answered in one line, by the very commands that people type."""

import sys

import pytest

from fairseq_regattn import errors
from fairseq_regattn.errors import UsageError

from . import commands, processes

TINY = [*commands.TINY.split(), "--max-update", "1"]
FLAGS = {
    "--attention fusedmax2": ("--attention", "'fusedmax2'"),
    "--attention-gamma 0": ("--attention-gamma", "0.0"),
    "--attention fusedmax --attention-lambda -1": ("--attention-lambda", "-1.0"),
    "--attention pnormmax --attention-p 3": ("--attention-p", "3.0"),
    "--attention entmax --attention-alpha 1": ("--attention-alpha", "1.0"),
    "--attention-score cosine": ("--attention-score", "'cosine'"),
    "--encoder-layers 2": ("--encoder-layers 2", "--decoder-layers 1"),
}


def one_line(process, command):
    """The last line of standard error, after making sure that it is all a user sees of it."""
    status, _, err = processes.finish(process)
    assert status not in (0, None), err
    assert "Traceback" not in err
    lines = err.rstrip("\n").splitlines()
    assert lines[-1].startswith(f"{command}: error: "), err
    assert sum(line.startswith(f"{command}: error: ") for line in lines) == 1
    return lines[-1]


@pytest.mark.parametrize("flags", FLAGS)
def test_in_python_a_usage_error(data, tmp_path, flags):
    with pytest.raises(UsageError) as error:
        commands.train(data, tmp_path, *flags.split())
    assert all(part in str(error.value) for part in FLAGS[flags])
    assert "\n" not in str(error.value)


@pytest.mark.slow
@pytest.mark.parametrize("flags", FLAGS)
def test_flags(data, tmp_path, flags):
    process = processes.start(
        "fairseq-train", data, *TINY, f"--save-dir={tmp_path}", *flags.split()
    )
    line = one_line(process, "fairseq-train")
    assert all(part in line for part in FLAGS[flags])


@pytest.mark.slow
def test_missing_data(tmp_path):
    missing = tmp_path / "nowhere"
    process = processes.start("fairseq-train", missing, *TINY, f"--save-dir={tmp_path}")
    assert str(missing) in one_line(process, "fairseq-train")


@pytest.mark.slow
def test_missing_checkpoint(data, tmp_path):
    missing = tmp_path / "nothing.pt"
    process = processes.start("fairseq-generate", data, f"--path={missing}", "--cpu")
    assert str(missing) in one_line(process, "fairseq-generate")


OVERRIDES = "{'attention': 'softmax'}"


@pytest.mark.slow
def test_overriding_the_mapping_of_a_checkpoint(data, trained):
    path = f"--path={trained('fusedmax')}"
    process = processes.start(
        "fairseq-generate", data, path, "--cpu", "--model-overrides", OVERRIDES
    )
    line = one_line(process, "fairseq-generate")
    assert "fusedmax(gamma=1.0, lam=0.1)" in line
    assert "softmax(gamma=1.0)" in line


def test_overriding_in_python(data, trained, tmp_path):
    with pytest.raises(UsageError, match=r"trained with attention fusedmax.*, not softmax"):
        commands.generate(data, trained("fusedmax"), tmp_path, "--model-overrides", OVERRIDES)


def test_overriding_on_purpose(data, trained, tmp_path):
    swap = "{'attention': 'softmax', 'attention_swap': True}"
    path = trained("fusedmax")
    output, _ = commands.generate(data, path, tmp_path / "a", "--model-overrides", swap)
    original, _ = commands.generate(data, path, tmp_path / "b")
    assert commands.lines(output, "H") != commands.lines(original, "H")


@pytest.mark.slow
def test_resuming_with_another_mapping(data, tmp_path):
    commands.train(data, tmp_path, "--attention", "fusedmax", "--max-update", 1)
    process = processes.start(
        "fairseq-train", data, *TINY, f"--save-dir={tmp_path}", "--attention", "softmax"
    )
    line = one_line(process, "fairseq-train")
    assert "fusedmax(gamma=1.0, lam=0.1)" in line
    assert "softmax(gamma=1.0)" in line


@pytest.fixture
def hook(monkeypatch):
    """``hook(command)``: what would be called with an uncaught error in that command."""

    def install(command):
        monkeypatch.setattr(sys, "argv", [f"/bin/{command}"])
        monkeypatch.setattr(sys, "excepthook", sys.__excepthook__)
        errors.report_in_one_line()
        return sys.excepthook

    return install


def test_the_hook_prints_one_line(hook, capsys):
    try:
        try:
            raise UsageError("--attention must be known, got 'x'")
        except UsageError:
            raise Exception("Cannot load")  # noqa: B904  as fairseq's trainer does
    except Exception as error:
        hook("fairseq-train")(type(error), error, error.__traceback__)
    expected = "fairseq-train: error: --attention must be known, got 'x'\n"
    assert capsys.readouterr().err == expected


def test_a_split_that_is_missing_is_one_line(hook, capsys):
    try:
        raise FileNotFoundError("Dataset not found: valid (bin)")  # as tasks do
    except FileNotFoundError as error:
        hook("fairseq-train")(type(error), error, error.__traceback__)
    assert capsys.readouterr().err == "fairseq-train: error: Dataset not found: valid (bin)\n"


@pytest.mark.parametrize("error", [KeyError("x"), ValueError("a bug"), FileNotFoundError("x")])
def test_the_hook_leaves_other_errors_alone(hook, capsys, error):
    try:
        raise error
    except type(error):
        hook("fairseq-train")(type(error), error, error.__traceback__)
    assert "Traceback" in capsys.readouterr().err


def test_other_programs_keep_their_hook(hook):
    assert hook("python") is sys.__excepthook__
