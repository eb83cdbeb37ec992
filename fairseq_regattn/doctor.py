"""``python -m fairseq_regattn doctor``: what is installed, what works, what to do about the rest.

A check returns what it found or raises :class:`Problem` with the remedy. The checks run in
order and do not depend on each other, so one broken library does not hide the next.
"""

import argparse
import logging
import os
import platform
import re
import sys
import tempfile
import warnings
from importlib import import_module
from importlib.metadata import PackageNotFoundError, distributions, version
from typing import Callable, Dict

import fairseq_regattn

# All install the same `fairseq` folder.
FAIRSEQ_DISTRIBUTIONS = ("fairseq", "ve-fairseq", "fairseq-fixed")
REINSTALL = f"{sys.executable} -m pip install --force-reinstall --no-deps"


class Problem(Exception):  # noqa: N818  a finding, not always an error
    """Something is not right.

    Args:
        found: what was seen.
        remedy: what the user can do about it.
        essential: whether training or translating cannot work like this.
    """

    def __init__(self, found: str, remedy: str, essential: bool = True):
        super().__init__(found)
        self.found = found
        self.remedy = remedy
        self.essential = essential


def main() -> int:
    """Print the report; 1 if something essential is broken, else 0."""
    print(f"fairseq-regattn {fairseq_regattn.__version__}")
    print(f"  in {os.path.dirname(os.path.abspath(fairseq_regattn.__file__))}")
    broken = 0
    for name, check in CHECKS.items():
        try:
            print(f"  ok    {name}: {_quietly(check)}", flush=True)
        except Problem as problem:
            broken += problem.essential
            print(f"  {'FAIL' if problem.essential else 'note'}  {name}: {problem.found}")
            print(f"          -> {problem.remedy}", flush=True)
    print("everything essential works" if not broken else f"{broken} essential checks failed")
    return 1 if broken else 0


def _quietly(check: Callable[[], str]) -> str:
    # fairseq's imports log and warn about optional packages that this plugin never uses
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        logging.disable(logging.WARNING)
        try:
            return check()
        finally:
            logging.disable(logging.NOTSET)


def check_python() -> str:
    return f"{platform.python_version()} ({sys.executable})"


def check_pip() -> str:
    try:
        return version("pip")
    except PackageNotFoundError:
        raise Problem("not there", "only needed to install more packages", False) from None


def check_torch() -> str:
    torch = _import("torch")
    if int(torch.__version__.split(".")[0]) < 2:
        raise Problem(torch.__version__, "pip install 'torch>=2.0'")
    return f"{torch.__version__}, {torch.get_num_threads()} threads"


def check_cuda() -> str:
    torch = _import("torch")
    if torch.cuda.is_available():
        return f"{torch.version.cuda}, {torch.cuda.get_device_name()}"
    why = "this torch is a CPU build" if torch.version.cuda is None else "no usable GPU or driver"
    return f"none, everything runs on the CPU ({why}; give fairseq-train --cpu)"


def check_cuda_mappings() -> str:
    torch = _import("torch")
    if not torch.cuda.is_available():
        return "not needed"
    problem = _import("fairseq_regattn.mappings._kernels").cuda_problem()
    if problem is not None:
        raise Problem(
            f"run on the CPU, with copies both ways ({problem})",
            f"pip install 'numba-cuda[cu{(torch.version.cuda or '12').split('.')[0]}]'",
            essential=False,
        )
    return "compiled for the GPU"


def check_numpy() -> str:
    return _import("numpy").__version__


def check_numba() -> str:
    return _import("numba").__version__


def check_scipy() -> str:
    return _import("scipy.stats") and version("scipy")


def check_numba_cache() -> str:
    numba = _import("numba")
    try:
        # chooses the folder as for the mappings, without compiling anything
        return numba.njit(cache=True)(_import).stats.cache_path
    except RuntimeError:
        raise Problem(
            "no folder can be written, so every process compiles the mappings anew (seconds)",
            "set NUMBA_CACHE_DIR to a folder that can be written",
            essential=False,
        ) from None


def check_fairseq_distributions() -> str:
    found = installed_fairseq()
    if len(found) > 1:
        listing = " and ".join(f"{name} {number}" for name, number in found.items())
        raise Problem(
            f"{listing} overwrite each other's files, which pip does not notice",
            f"pip uninstall -y {' '.join(found)}, then install the one you want again",
        )
    if not found:
        return "none installed; fairseq is taken from a folder, if there is one (next line)"
    return " ".join(f"{name} {number}" for name, number in found.items())


def installed_fairseq() -> Dict[str, str]:
    """Installed distributions that bring a ``fairseq`` folder: name -> version."""
    found: Dict[str, str] = {}
    for distribution in distributions():
        name = re.sub(r"[-_.]+", "-", distribution.metadata["Name"] or "").lower()
        if name in FAIRSEQ_DISTRIBUTIONS:
            found[name] = distribution.version
    return found


def check_fairseq() -> str:
    fairseq = _import("fairseq")
    if fairseq.__file__ is None:
        raise Problem(
            f"{next(iter(fairseq.__path__))} hides the installed fairseq",
            "run from another folder, or rename that one",
        )
    return f"{fairseq.__version__} in {os.path.dirname(fairseq.__file__)}"


REGISTERED = {
    "regattn_lstm": ("architecture", "fairseq.models", "ARCH_MODEL_REGISTRY"),
    "regattn_nli": ("architecture", "fairseq.models", "ARCH_MODEL_REGISTRY"),
    "regattn_classifier": ("architecture", "fairseq.models", "ARCH_MODEL_REGISTRY"),
    "regattn_vqa": ("architecture", "fairseq.models", "ARCH_MODEL_REGISTRY"),
    "summarization": ("task", "fairseq.tasks", "TASK_REGISTRY"),
    "text_classification": ("task", "fairseq.tasks", "TASK_REGISTRY"),
    "vqa": ("task", "fairseq.tasks", "TASK_REGISTRY"),
    "sentence_prediction_l2": ("criterion", "fairseq.criterions", "CRITERION_REGISTRY"),
    "vqa_bce": ("criterion", "fairseq.criterions", "CRITERION_REGISTRY"),
    "rouge": ("scorer", "fairseq.scoring", "SCORER_REGISTRY"),
}
"""What fairseq has to know: by name, what it is and where fairseq keeps it."""


def check_registered() -> str:
    _import("fairseq")
    for name, (kind, module, registry) in REGISTERED.items():
        if name not in getattr(_import(module), registry):
            raise Problem(
                f"fairseq does not know the {kind} {name}",
                f"{REINSTALL} fairseq-regattn, or start Python where no other fairseq_regattn is",
            )
    return ", ".join(REGISTERED)


def check_checkpoints() -> str:
    """Write what fairseq writes and read it with fairseq's loader."""
    torch, np = _import("torch"), _import("numpy")
    loader = _import("fairseq.checkpoint_utils").load_checkpoint_to_cpu
    state = {
        "cfg": {"model": argparse.Namespace(arch="regattn_lstm")},
        "model": {"weight": torch.ones(2)},
        "optimizer_history": [{"optimizer_name": "", "lr_scheduler_state": {}, "num_updates": 1}],
        "extra_state": {
            "train_iterator": {"epoch": 1},
            "metrics": np.ones(2),
            "best": np.ones(1)[0],
        },
    }
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "checkpoint.pt")
        torch.save(state, path)
        try:
            loader(path)
        except Exception as error:
            raise Problem(
                f"fairseq cannot read its own checkpoints ({error})",
                "please report this with the versions above",
            ) from error
    return "written and read back"


def check_sacrebleu() -> str:
    return _import("sacrebleu").__version__


def check_sacremoses() -> str:
    _import("sacremoses")
    return version("sacremoses")


def check_sentencepiece() -> str:
    return _import("sentencepiece").__version__


def _import(name: str):
    """A library that the package requires, or the problem with it."""
    try:
        return import_module(name)
    except Exception as error:  # a broken binary can raise anything
        package = name.split(".")[0]
        reason = (str(error).splitlines() or [type(error).__name__])[0]
        if isinstance(error, ModuleNotFoundError) and error.name == package:
            raise Problem("not installed", "pip install fairseq-regattn brings it") from error
        raise Problem(
            f"import fails: {type(error).__name__}: {reason}",
            f"{REINSTALL} {package}, or see whether its version fits the others listed here",
        ) from error


CHECKS: Dict[str, Callable[[], str]] = {
    "python": check_python,
    "pip": check_pip,
    "torch": check_torch,
    "numpy": check_numpy,
    "numba": check_numba,
    "scipy": check_scipy,
    "numba cache": check_numba_cache,
    "fairseq distribution": check_fairseq_distributions,
    "fairseq": check_fairseq,
    "registered": check_registered,
    "checkpoints": check_checkpoints,
    "sacrebleu": check_sacrebleu,
    "sacremoses": check_sacremoses,
    "sentencepiece": check_sentencepiece,
    "cuda": check_cuda,
    "mappings on cuda": check_cuda_mappings,
}
