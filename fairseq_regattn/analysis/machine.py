"""What results were made with: the machine and the versions of the libraries."""

from __future__ import annotations

import os
import platform
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

import fairseq_regattn
from fairseq_regattn.doctor import installed_fairseq

LIBRARIES = ("torch", "numpy", "numba", "sacrebleu", "sacremoses", "sentencepiece")


def machine() -> str:
    """One line that is the same as long as times can be compared.

    E.g. ``2 cores, 8 GB, AMD EPYC 7B13, Linux x86_64``, and the GPU that torch sees.
    """
    import torch

    parts = [f"{os.cpu_count()} cores", *_memory(), processor()]
    parts.append(f"{platform.system()} {platform.machine()}")
    if torch.cuda.is_available():
        parts.append(torch.cuda.get_device_name())
    return ", ".join(parts)


def _memory() -> list[str]:
    try:
        size = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (AttributeError, OSError, ValueError):  # not every system tells
        return []
    return [f"{size / 2**30:.0f} GB"]


def processor() -> str:
    """The CPU's model where Linux tells it, else its architecture."""
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    except OSError:
        lines = []
    models = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return models[0] if models else platform.machine()


def versions() -> dict[str, str]:
    """Of Python, of this package, of the fairseq that is installed and of what scores depend on."""
    found = {"python": platform.python_version(), "fairseq-regattn": fairseq_regattn.__version__}
    found.update(installed_fairseq())
    for name in LIBRARIES:
        try:
            found[name] = version(name)
        except PackageNotFoundError:
            continue  # from a folder, not installed
    return found
