"""fairseq's commands as a shell runs them."""

import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
USER_DIR = ROOT / "fairseq_regattn"


def start(command, *arguments, user_dir=USER_DIR, **environment):
    """A command of this Python's environment, in the background."""
    path = Path(sys.executable).parent / command
    plugin = [] if user_dir is None else [f"--user-dir={user_dir}"]
    return subprocess.Popen(
        [str(path), *map(str, arguments), *plugin],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "OMP_NUM_THREADS": "1", **environment},
    )


def finish(process, timeout=300):
    """Its status, output and errors."""
    try:
        out, err = process.communicate(timeout=timeout)
    finally:
        process.kill()
    return process.returncode, out, err
