"""``python -m fairseq_regattn.PART COMMAND``: each command is a module of its own."""

from __future__ import annotations

import argparse
import importlib
import logging
import os
import sys
from collections.abc import Mapping, Sequence

from fairseq_regattn.errors import UsageError
from fairseq_regattn.recipes.stages import StageError


def run_command(
    package: str,
    description: str,
    commands: Mapping[str, tuple[str, str]],
    arguments: Sequence[str] | None = None,
) -> int:
    """Run a command; 2 where the user asked for what cannot be done.

    Args:
        package: where the modules are.
        commands: by name, a module with ``add_arguments(parser)`` and ``run(given) -> status``,
            and what it does.
    """
    program = f"python -m {package}"
    parser = argparse.ArgumentParser(prog=program, description=description, allow_abbrev=False)
    added = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")
    modules = {}
    for name, (module, words) in commands.items():
        modules[name] = importlib.import_module(f"{package}.{module}")
        command = added.add_parser(name, help=words, description=words, allow_abbrev=False)
        modules[name].add_arguments(command)
    given = parser.parse_args(arguments)
    # fairseq and others tell of themselves what nobody asked.
    logging.disable(logging.WARNING)
    program = f"{program} {given.command}"
    try:
        return modules[given.command].run(given)
    except KeyboardInterrupt:
        print(f"\n{program}: stopped; the same command makes what is missing", file=sys.stderr)
        return 130
    except BrokenPipeError:  # the reader has seen enough
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 1
    except (StageError, UsageError, OSError) as error:
        told = str(error)
        if isinstance(error, FileNotFoundError) and error.filename is not None:
            told = f"{error.filename}: no such file"
        print(f"{program}: error: {told}", file=sys.stderr)
        return 2
