"""Compiled kernels on disk: used again, never stale, and never in the way."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import fairseq_regattn

PACKAGE = Path(fairseq_regattn.__file__).parent
ASK = """
import torch, warnings
from fairseq_regattn.mappings import sparsemax
from fairseq_regattn.mappings._sparsemax import sparsemax_row
hits = sparsemax_row.cpu[torch.float32].stats.cache_hits
print(sparsemax(torch.tensor([0.0, 0.5])).tolist(), sum(hits.values()))
"""


def ask(folder: Path, **variables: str) -> subprocess.CompletedProcess:
    """sparsemax([0, 0.5]) and the number of cache hits, in a process of its own."""
    environment = {**os.environ, "PYTHONPATH": str(folder), **variables}
    return subprocess.run(
        [sys.executable, "-c", ASK],
        env=environment,
        cwd=folder,  # first on the path of python -c
        capture_output=True,
        text=True,
        check=True,
    )


def test_cache_is_used_and_forgotten_when_another_file_changes(tmp_path):
    copy = shutil.copytree(
        PACKAGE, tmp_path / "fairseq_regattn", ignore=shutil.ignore_patterns("__pycache__")
    )
    cache = {"NUMBA_CACHE_DIR": str(tmp_path / "cache")}
    assert ask(tmp_path, **cache).stdout.split("] ") == ["[0.25, 0.75", "0\n"]
    assert ask(tmp_path, **cache).stdout.split("] ") == ["[0.25, 0.75", "1\n"]
    helper = copy / "mappings" / "_simplex.py"  # sparsemax's kernel calls into it
    source = helper.read_text(encoding="utf-8")
    changed = source.replace("tau = (total - 1.0) / count", "tau = (total - 2.0) / count")
    assert changed != source
    helper.write_text(changed, encoding="utf-8")
    assert ask(tmp_path, **cache).stdout.split("] ") == ["[0.75, 1.25", "0\n"]


def test_no_place_for_the_cache_is_a_warning(tmp_path):
    package = tmp_path / "fairseq_regattn"
    shutil.copytree(PACKAGE, package, ignore=shutil.ignore_patterns("__pycache__"))
    (package / "mappings" / "__pycache__").write_text("a file, where the folder should be")
    (tmp_path / "home").write_text("likewise")
    nowhere = str(tmp_path / "home" / "x")
    done = ask(tmp_path, HOME=nowhere, XDG_CACHE_HOME=nowhere, NUMBA_CACHE_DIR=nowhere)
    assert done.stdout.startswith("[0.25, 0.75] 0")
    assert "NUMBA_CACHE_DIR" in done.stderr
