"""What fairseq, archived since torch 2.0, needs to work with the versions around it today.

Everything that adapts fairseq is here and nowhere else. :func:`apply` runs right after
fairseq is imported, any number of times, and touches only fairseq's own three loaders and
its batching, and its scorer of references:

* torch >= 2.6 reads files with ``weights_only=True`` unless told otherwise, and fairseq's
  checkpoints also hold an ``argparse.Namespace`` and numpy arrays (the BLEU counts of
  ``--eval-bleu``). The loaders run under an allow-list of just those names; the default of
  the process, and every other ``torch.load``, stay as they are. On older torch the list is
  not needed and not applied.
* an unreadable or refused file is answered with one line that names it, on any torch.
* ``--score-reference --print-alignment soft`` dies, as the scorer makes hard alignments only.
* upstream's last main, and so the forks, silently leave out a last batch whose size is not a
  multiple of ``--required-batch-size-multiple`` (8), in translation too. It is counted and
  warned of; what fairseq does stays as it is.
"""

import argparse
import collections
import contextlib
import functools
import logging
import pickle
import re
import typing
from typing import Any, Callable, ContextManager, List, Tuple

import numpy as np
import torch

from fairseq_regattn.errors import UsageError

TRUST_VARIABLE = "TORCH_FORCE_NO_WEIGHTS_ONLY_LOAD"  # torch's own; its documentation has more
logger = logging.getLogger(__name__)

_MARK = "_fairseq_regattn_guarded"

# What torch.load raises on a file that is not, or not entirely, what torch.save wrote.
_UNREADABLE = (
    EOFError,
    LookupError,
    OSError,
    RuntimeError,
    UnicodeDecodeError,
    pickle.UnpicklingError,
)


def apply() -> None:
    """Guard fairseq's loaders of checkpoints; does nothing the second time."""
    from fairseq import checkpoint_utils, sequence_scorer
    from fairseq.data import data_utils
    from fairseq.distributed import utils as distributed_utils

    # Callers inside fairseq look these up on their modules, so replacing them there is enough.
    for name in ("load_checkpoint_to_cpu", "load_ema_from_checkpoint"):
        _guard(checkpoint_utils, name, _explain_file)
    # Sends what rank 0 read to the other ranks, again as a pickle.
    _guard(distributed_utils, "_broadcast_object_slow", _explain_broadcast)
    _count_dropped(data_utils)
    _align_softly(sequence_scorer.SequenceScorer)


def fairseq_globals() -> ContextManager[Any]:
    """Allow torch.load, for the length of a ``with``, the names that fairseq's checkpoints hold."""
    if _torch_version() < (2, 6):  # loads everything by default
        return contextlib.nullcontext()
    # Leaving safe_globals removes its names, so keep what somebody else allowed out of it.
    others = torch.serialization.get_safe_globals()
    return torch.serialization.safe_globals([g for g in _allowed() if g not in others])


def _torch_version() -> Tuple[int, ...]:
    return tuple(int(part) for part in torch.__version__.split(".")[:2])


@functools.cache
def _allowed() -> List[Any]:
    from fairseq.distributed.utils import _TensorPlaceholder
    from omegaconf import DictConfig, ListConfig
    from omegaconf.base import ContainerMetadata, Metadata
    from omegaconf.nodes import AnyNode

    allowed: List[Any] = [
        # "cfg" of a model whose flags are still argparse's
        argparse.Namespace,
        # best scores and meters; the dtypes are built by numpy.dtype, then checked by class
        np.dtype,
        np.ndarray,
        *{type(np.dtype(code)) for code in "?bhilqBHILQefd"},
        # "cfg" as rank 0 sends it to the others, and in checkpoints of fairseq 0.10
        AnyNode,
        ContainerMetadata,
        DictConfig,
        ListConfig,
        Metadata,
        _TensorPlaceholder,
        collections.defaultdict,
        dict,
        int,
        list,
        (typing.Any, "typing.Any"),  # has no __qualname__ before Python 3.11
    ]
    # numpy 2 moved these two; a file names the place where its writer had them
    multiarray = getattr(np, "_core", None) or np.core
    for module in ("numpy.core.multiarray", "numpy._core.multiarray"):
        for name in ("_reconstruct", "scalar"):
            allowed.append((getattr(multiarray.multiarray, name), f"{module}.{name}"))
    return allowed


def _guard(module: Any, name: str, explain: Callable[..., str]) -> None:
    load = getattr(module, name)
    if getattr(load, _MARK, False):
        return

    @functools.wraps(load)
    def guarded(*args, **kwargs):
        try:
            with fairseq_globals():
                return load(*args, **kwargs)
        except _UNREADABLE as error:
            explanation = explain(error, *args, **kwargs)
            if not explanation:
                raise
            raise UsageError(explanation) from error

    setattr(guarded, _MARK, True)
    setattr(module, name, guarded)


def _count_dropped(data_utils: Any) -> None:
    batch_by_size = data_utils.batch_by_size
    if getattr(batch_by_size, _MARK, False):
        return

    @functools.wraps(batch_by_size)
    def counted(indices, *args, **kwargs):
        indices = np.fromiter(indices, dtype=np.int64, count=-1)
        batches = batch_by_size(indices, *args, **kwargs)
        dropped = len(indices) - sum(len(batch) for batch in batches)
        if dropped:
            logger.warning(
                "fairseq leaves out %d of %d sentences, a last batch of a size it does not like; "
                "add --required-batch-size-multiple 1 to keep them",
                dropped,
                len(indices),
            )
        return batches

    setattr(counted, _MARK, True)
    data_utils.batch_by_size = counted


def _align_softly(scorer: Any) -> None:
    generate = scorer.generate
    if getattr(generate, _MARK, False):
        return

    @functools.wraps(generate)
    def aligned(self, models, sample, **kwargs):
        from fairseq import utils

        found = generate(self, models, sample, **kwargs)
        if self.compute_alignment == "soft":  # what --print-alignment was given
            sources = sample["net_input"]["src_tokens"]
            for [best], source, target in zip(found, sources, sample["target"]):
                best["alignment"] = utils.extract_soft_alignment(
                    best["attention"], source, target, self.pad, self.eos
                )
        return found

    setattr(aligned, _MARK, True)
    scorer.generate = aligned


def _explain_file(error: Exception, *args: Any, **kwargs: Any) -> str:
    if type(error).__module__.startswith("omegaconf"):
        return ""  # the file is sound; an override or a setting in it is not
    if isinstance(error, OSError) and error.filename is not None:
        return ""  # names the file itself
    path = args[0] if args else kwargs.get("path", kwargs.get("fpath"))
    refused = _refused_global(error)
    if refused:
        return (
            f"{path} is refused: loading it would call {refused}, which no checkpoint of fairseq "
            f"holds (if you trust the file, set {TRUST_VARIABLE}=1)"
        )
    return (
        f"{path} cannot be read as a fairseq checkpoint; "
        f"it may be truncated or of another kind ({_first_line(error)})"
    )


def _explain_broadcast(error: Exception, *_args: Any, **_kwargs: Any) -> str:
    refused = _refused_global(error)
    if not refused:
        return ""  # not about a pickle: a lost connection, say
    return (
        f"the state sent by rank 0 is refused: loading it would call {refused} "
        f"(if you trust the checkpoint, set {TRUST_VARIABLE}=1 on every rank)"
    )


def _refused_global(error: Exception) -> str:
    found = re.search(r"GLOBAL (\S+) (?:was not an allowed|whose module)", str(error))
    return found.group(1) if found else ""


def _first_line(error: Exception) -> str:
    if isinstance(error, EOFError):
        return "it ends too early"
    # torch puts half a page of advice, for other users than ours, around the reason
    reason = str(error).rsplit("WeightsUnpickler error:", 1)[-1].strip()
    return f"{type(error).__name__}: {reason.partition(chr(10))[0].partition('. ')[0]}"
