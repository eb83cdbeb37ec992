"""``python -m fairseq_regattn.recipes``; ``scripts/reproduce.sh`` sets it up and runs it."""

from __future__ import annotations

import importlib.util
import itertools
import logging
import os
import shlex
import signal
import sys
import time
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING

from fairseq_regattn.errors import UsageError
from fairseq_regattn.recipes.options import Reproduction, parse_reproduce, recipe_attentions
from fairseq_regattn.recipes.stages import StageError, exclusive

if TYPE_CHECKING:
    from fairseq_regattn.recipes.recipe import Recipe
    from fairseq_regattn.recipes.work import Work
    from fairseq_regattn.recipes.workspace import Run, Workspace

# Other modules are imported where they are used: torch and fairseq take seconds, in which Ctrl-C
# has to be one line too.


def main() -> int:
    options = parse_reproduce(sys.argv[1:])
    command = f"scripts/reproduce.sh {shlex.join(sys.argv[1:])}"
    return finish("reproduce.sh", lambda: reproduce(options, command))


def finish(program: str, action: Callable[[], int]) -> int:
    """Status of a script: what goes wrong is one line."""
    # The pictures come last: do not find out after the training that they cannot be drawn.
    if importlib.util.find_spec("matplotlib") is None:
        print(f"{program}: error: matplotlib is missing: pip install matplotlib", file=sys.stderr)
        return 1
    # fairseq, matplotlib and others tell of themselves what nobody asked.
    logging.disable(logging.WARNING)
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    try:
        return action()
    except KeyboardInterrupt:
        print(f"\n{program}: stopped; the same command goes on from here", file=sys.stderr)
        return 130
    except BrokenPipeError:  # the reader has seen enough
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 1
    except (StageError, UsageError, OSError) as error:
        print(f"{program}: error: {error}", file=sys.stderr)
        return 1


def reproduce(options: Reproduction, command: str) -> int:
    """Do what is missing of all stages, print the results and name the files.

    Args:
        command: what was typed, for the records.

    Returns:
        0, or 1 if something failed.
    """
    from fairseq_regattn.recipes import dry_run
    from fairseq_regattn.recipes.work import Work

    began = time.monotonic()
    wanted = planned(options)
    if options.dry_run:
        dry_run.show(wanted, command)
        return 0
    work = Work(options, wanted, command)
    with ExitStack() as locks:
        for workspace in dict.fromkeys(one.workspace for one in wanted):
            work.locks.append(locks.enter_context(exclusive(workspace.folder)))
        work.all_stages()
    _conclude(work, time.monotonic() - began)
    return 1 if work.failures else 0


def planned(options: Reproduction) -> list[Run]:
    """All runs, direction by direction, so that what is compared is measured side by side.

    Raises:
        UsageError: wrong in a recipe, or no corpus; before anything is done.
    """
    from fairseq_regattn.recipes.load import load_recipe
    from fairseq_regattn.recipes.workspace import Run

    # Two recipes of one name may mean the same, but for the mappings.
    workspaces: dict[Path, Workspace] = {}
    found: dict[Path, Run] = {}
    for path in options.recipes:
        recipe = load_recipe(path, options.overrides)
        try:
            attentions = options.attentions or recipe_attentions(
                recipe.attention, options.parameters
            )
        except ValueError as error:
            raise UsageError(f"{path}: {error}") from error
        for one in _towards(recipe, options.directions, path):
            for opened in _workspaces(one, path, options):
                workspace = workspaces.setdefault(opened.folder, opened)
                for seed, attention in itertools.product(options.seeds, attentions):
                    run = Run(workspace, attention, seed)
                    found.setdefault(run.folder, run)
    return list(found.values())


DECODING = ("summary.", "generate.", "data.references=", "data.original=", "data.files.test=")
"""Changes that a recipe which decodes has for itself: with others, models would be others."""


def _workspaces(recipe: Recipe, path: Path, options: Reproduction) -> list[Workspace]:
    """That of the recipe, after that of the recipe whose models it decodes."""
    from fairseq_regattn.recipes.load import load_recipe
    from fairseq_regattn.recipes.prepare import open_workspace

    where = options.output, options.data, options.dry_run
    if recipe.decodes is None:
        return [open_workspace(recipe, *where)]
    model_path = path.parent / recipe.decodes
    training = [change for change in options.overrides if not change.startswith(DECODING)]
    model_recipe = load_recipe(model_path, training).towards(recipe.direction)
    if model_recipe.decodes is not None:
        raise UsageError(f"{path}: decodes must name a recipe that trains, got {recipe.decodes}")
    for part in ("train", "preprocess"):
        if getattr(model_recipe, part) != getattr(recipe, part):
            raise UsageError(
                f"{path}: {part} must be that of {recipe.decodes}, whose models it decodes"
            )
    trained = open_workspace(model_recipe, *where)
    return [trained, open_workspace(recipe, *where, trained)]


def _towards(recipe: Recipe, directions: Sequence[str], path: Path) -> list[Recipe]:
    try:
        found = [recipe.towards(d) for d in directions] if directions else recipe.directions()
    except UsageError as error:
        raise UsageError(f"{path}: {error}") from error
    if not found:
        raise UsageError(f"{path} is for any pair of languages: give --direction, such as ro-en")
    return found


def _conclude(work: Work, seconds: float) -> None:
    """What there is now, and what is not."""
    from fairseq_regattn.analysis.tables import duration

    if work.written:
        print("\nWritten:")
        for path in work.written:
            print(f"  {os.path.relpath(path)}")
    for title, error in work.failures.items():
        print(f"failed: {title}: {error}", file=sys.stderr)
    if work.failures:
        print("The same command tries again what failed.", file=sys.stderr)
    elif work.made:
        print(f"\nDone in {duration(seconds)}.")
    else:
        print("\nNothing to do: everything was there already.")


if __name__ == "__main__":
    sys.exit(main())
