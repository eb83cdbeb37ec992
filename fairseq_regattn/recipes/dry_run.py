"""The commands of all runs as a shell script, for ``reproduce.sh --dry-run``."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Sequence
from pathlib import Path

from omegaconf import OmegaConf

from fairseq_regattn.recipes.commands import (
    hydra_command,
    on_cpu,
    relative,
    train_command,
    training_settings,
)
from fairseq_regattn.recipes.prepare import preprocess_commands
from fairseq_regattn.recipes.runs import output_command
from fairseq_regattn.recipes.stages import partial_of
from fairseq_regattn.recipes.workspace import Run


def show(wanted: Sequence[Run], command: str) -> None:
    """Print what would be done, in a form that a shell can do; `command` is what was typed."""
    words = shlex.split(command)
    prepare = shlex.join([*(w for w in words if w != "--dry-run"), "--stage", "preprocess"])
    print("#!/usr/bin/env bash")
    print("# All commands, each in the folder that it is run in; `bash` can run them as they are,")
    print(f"# after the text, the tokens and fairseq's binary format were made by\n#   {prepare}")
    print("set -eo pipefail")
    print(f'export PATH={shlex.quote(str(Path(sys.executable).parent))}:"$PATH"')
    print("export OMP_NUM_THREADS=1 NUMBA_NUM_THREADS=1")
    for workspace in dict.fromkeys(one.workspace for one in wanted):
        recipe = workspace.recipe
        title = " ".join((recipe.title or recipe.name).split())  # of one line, as a comment is
        commands = preprocess_commands(workspace)
        made_by = "; the binary format was made by" if commands else ""
        print(f"\n# {title}, {recipe.direction}{made_by}")
        for made in commands:
            print(f"#   {_in(workspace.folder, made)}")
        for one in wanted:
            if one.workspace == workspace:
                _show(one)
    print("\n# Scores, of text as people read it, and tables are made by")
    print(f"#   {shlex.join(w for w in words if w != '--dry-run')}")


def _show(one: Run) -> None:
    workspace = one.workspace
    binary = relative(workspace.binary, one.folder)
    print(f"\n# {one.attention.title}, seed {one.seed}")
    if one.trained == one:
        _show_training(one, binary)
    else:
        print(f"mkdir -p {shlex.quote(str(one.folder))}")
    for name in workspace.outputs:
        print(f"({_in(one.folder, output_command(one, name))} > {name})")


def _show_training(one: Run, binary: str) -> None:
    training = partial_of(one.folder)
    recipe, attention = one.workspace.recipe, one.attention.settings
    settings = training_settings(recipe, attention, one.seed, binary, on_cpu(one.workspace.recipe))
    print(f"mkdir -p {shlex.quote(str(training))}")
    print(f"cat > {shlex.quote(str(training / 'train.yaml'))} <<'END'")
    print(f"{OmegaConf.to_yaml(OmegaConf.create(settings))}END")
    print(f"({_in(training, hydra_command(training))} 2>&1 | tee -a train.log)")
    print(f"# or the same with flags\n# ({_in(training, train_command(settings))})")
    print(f"mv {shlex.quote(str(training))} {shlex.quote(str(one.folder))}")


def _in(folder: Path, command: Sequence[str]) -> str:
    program = Path(command[0]).name
    return f"cd {shlex.quote(str(folder))} && {shlex.join([program, *command[1:]])}"
