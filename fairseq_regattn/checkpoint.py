"""What commands have in common that use a trained classifier."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterable
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from tqdm import tqdm  # type: ignore[import-untyped]

from fairseq_regattn.errors import ArgumentError, UsageError
from fairseq_regattn.recipes.stages import check_file, partial_of

if TYPE_CHECKING:
    import torch


class Loaded(NamedTuple):
    """In double precision and eval mode, with the task and all settings of its training."""

    model: Any
    task: Any
    cfg: Any
    device: torch.device


def load(
    checkpoint: str, data: Path, kind: str, cpu: bool = False, user_dir: str | None = None
) -> Loaded:
    """Everything is computed in double precision: the six decimals that are written do not depend
    on what shares a batch.

    Args:
        checkpoint: its file.
        data: the folder that it was trained on.
        kind: name of the class of models that it has to be of.
        cpu: do not use a GPU.
        user_dir: folder of a plugin of the user's own.

    Raises:
        UsageError: no such checkpoint, or one of another kind of model.
    """
    import torch
    from fairseq import checkpoint_utils, utils

    import fairseq_regattn  # noqa: F401  registers the models

    if user_dir is not None:
        utils.import_user_module(argparse.Namespace(user_dir=user_dir))
    if not Path(checkpoint).is_file():
        raise UsageError(f"--path {checkpoint}: no such file")
    try:
        [model], cfg, task = checkpoint_utils.load_model_ensemble_and_task(
            [checkpoint], arg_overrides={"data": str(data)}
        )
    except Exception as error:  # fairseq raises just that
        told = " ".join(str(error).split())
        raise UsageError(f"--path {checkpoint} does not fit {data}: {told}") from error
    if kind not in (base.__name__ for base in type(model).__mro__):
        held = type(model).__name__
        raise UsageError(f"--path {checkpoint} holds a {held}, which this command cannot use")
    device = torch.device("cuda" if torch.cuda.is_available() and not cpu else "cpu")
    return Loaded(model.to(device, torch.double).eval(), task, cfg, device)


def write_lines(lines: Iterable[str], out: Path | None, what: str) -> None:
    """To a file, whole or not at all, with a bar; to the standard output where `out` is None."""
    with ExitStack() as stack:
        if out is None:
            output = sys.stdout
            output.reconfigure(encoding="utf-8")  # type: ignore[union-attr]  # as JSON has to be
        else:
            out.parent.mkdir(parents=True, exist_ok=True)
            output = stack.enter_context(open(partial_of(out), "w", encoding="utf-8"))
            # else lines on a terminal show how far it is
            lines = tqdm(lines, what, leave=False, disable=None, unit=f" {what}")
        for line in lines:
            output.write(line + "\n")
        output.flush()
    if out is not None:
        partial_of(out).replace(out)


def check_output(given: argparse.Namespace) -> None:
    """What `add_arguments` added, before anything is loaded.

    Raises:
        UsageError: a batch size below 1, or nothing that can be written to.
    """
    if given.batch_size < 1:
        raise ArgumentError("--batch-size", given.batch_size, "at least 1")
    if given.out is not None:
        check_file(given.out)
    elif sys.stdout is None:
        raise UsageError("standard output is closed: name a file with --out")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Of commands that load one."""
    parser.add_argument("--path", required=True, metavar="FILE", help="checkpoint of the model")
    parser.add_argument(
        "--out", type=Path, metavar="FILE", help="where to write (default: standard output)"
    )
    parser.add_argument(
        "--batch-size", type=int, default=64, metavar="N", help="(default: 64); changes no number"
    )
    parser.add_argument("--cpu", action="store_true", help="do not use a GPU")
    parser.add_argument(
        "--user-dir", metavar="DIR", help="folder that registers an attention of yours"
    )
