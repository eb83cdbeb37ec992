"""Fixtures that several test files share."""

import logging
import os
import random
import signal
import subprocess
import sys
from pathlib import Path

# Before torch is imported: several test processes on few cores must not each start threads.
os.environ.setdefault("OMP_NUM_THREADS", "1")

import pytest

# Jobs in the background of a shell ignore Ctrl-C, and so would the processes that tests send it to.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

ROOT = Path(__file__).resolve().parents[1]


@pytest.fixture(autouse=True)
def _logs():
    """Commands that a test has run in its process switch them off for what they do."""
    yield
    logging.disable(logging.NOTSET)


@pytest.fixture(scope="session")
def package_dir() -> Path:
    """The folder to give to ``--user-dir``."""
    return ROOT / "fairseq_regattn"


@pytest.fixture
def run_python(tmp_path):
    """Run Python in a fresh process, in an empty folder: ``run_python("-c", code, path=[...])``.

    ``path`` becomes PYTHONPATH, so without it the package is importable only if installed.
    Returns the completed process; a status that was not ``expected`` fails the test.
    """

    def run(*arguments, path=(), expected=0, timeout=600):
        environment = {**os.environ, "PYTHONPATH": os.pathsep.join(map(str, path))}
        result = subprocess.run(
            [sys.executable, *map(str, arguments)],
            cwd=tmp_path,
            env=environment,
            capture_output=True,
            text=True,
            timeout=timeout,
            check=False,
        )
        assert result.returncode == expected, result.stdout + result.stderr
        return result

    return run


@pytest.fixture(scope="session")
def write_rows():
    """``write_rows(path, rows, inputs)``: labelled texts, or pairs, that a small model learns."""
    return _write_rows


def _write_rows(path, rows, inputs):
    """TSV; a word of the first text tells its label."""
    generator = random.Random(inputs)
    words = ["a", "dog", "cat", "runs", "sleeps", "outside", "red", "band", "plays", "music"]
    with open(path, "w", encoding="utf-8") as file:
        for number in range(rows):
            label, sign = [("yes", "good"), ("no", "bad"), ("maybe", "so")][number % 3]
            first, second = (generator.choices(words, k=generator.randrange(1, 14)) for _ in "12")
            first.insert(generator.randrange(len(first) + 1), sign)
            texts = [" ".join([*first, str(number)]), " ".join(second)][:inputs]
            print(label, *texts, sep="\t", file=file)
    return path


def pytest_make_parametrize_id(val, argname):
    """Bytes may hold the time (gzip's do), and all workers have to name a test alike."""
    return argname if isinstance(val, bytes) else None
