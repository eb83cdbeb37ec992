"""Fixtures that several test files share."""

import os
import subprocess
import sys
from pathlib import Path

# Before torch is imported: several test processes on few cores must not each start threads.
os.environ.setdefault("OMP_NUM_THREADS", "1")

import pytest

ROOT = Path(__file__).resolve().parents[1]


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


def pytest_make_parametrize_id(val, argname):
    """Bytes may hold the time (gzip's do), and all workers have to name a test alike."""
    return argname if isinstance(val, bytes) else None
