"""The commands of all runs, for ``reproduce.sh --dry-run``."""

from __future__ import annotations

import os
import shlex
from collections.abc import Sequence
from pathlib import Path

from omegaconf import OmegaConf

from fairseq_regattn.recipes.commands import (
    generate_command,
    hydra_command,
    relative,
    train_command,
    training_settings,
)
from fairseq_regattn.recipes.encode import preprocess_command
from fairseq_regattn.recipes.runs import on_cpu
from fairseq_regattn.recipes.stages import partial_of
from fairseq_regattn.recipes.workspace import Run


def show(wanted: Sequence[Run]) -> None:
    """Print what would be typed, each command in the folder that it is run in."""
    for workspace in dict.fromkeys(one.workspace for one in wanted):
        recipe = workspace.recipe
        print(f"# {recipe.title or recipe.name}, {recipe.direction}")
        source, target = recipe.direction.split("-")
        words = preprocess_command(
            workspace.tokens, workspace.binary, recipe.preprocess, source, target
        )
        _print(workspace.folder, words)
        for one in wanted:
            if one.workspace == workspace:
                _show(one)


def _show(one: Run) -> None:
    workspace, recipe = one.workspace, one.workspace.recipe
    training = partial_of(one.folder)
    binary = relative(workspace.binary, one.folder)
    cpu = on_cpu(one)
    settings = training_settings(recipe, one.attention.settings, one.seed, binary, cpu)
    print(f"\n# {one.attention.title}, seed {one.seed}: train.yaml holds")
    for line in OmegaConf.to_yaml(OmegaConf.create(settings)).splitlines():
        print(f"#   {line}")
    _print(training, hydra_command(training))
    print("# or the same with flags:")
    _print(training, train_command(settings))
    model = workspace.subword_model
    subwords = relative(model, one.folder) if model is not None else None
    print(f"# renamed to {one.name} once it is trained")
    for forced in (False, True) if workspace.gold else (False,):
        _print(one.folder, generate_command(recipe, binary, subwords, cpu, forced))


def _print(folder: Path, command: Sequence[str]) -> None:
    program = Path(command[0]).name
    print(f"cd {shlex.quote(os.path.relpath(folder))} && {shlex.join([program, *command[1:]])}")
