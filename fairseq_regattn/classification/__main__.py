"""``python -m fairseq_regattn.classification COMMAND``: each command is a module of its own."""

from __future__ import annotations

import argparse
import importlib
import logging
import os
import sys
from collections.abc import Sequence

from fairseq_regattn.errors import UsageError
from fairseq_regattn.recipes.stages import StageError

PROGRAM = "python -m fairseq_regattn.classification"
COMMANDS = {
    "prepare": ("prepare", "make a data folder of labelled texts, or of labelled pairs of texts"),
    "predict": ("predict", "write labels, probabilities and attention weights, as JSON lines"),
    "page": (
        "page_command",
        "write an HTML page: texts highlighted by weight, mappings side by side",
    ),
}
"""Modules with ``add_arguments(parser)`` and ``run(given) -> status``, and what they do."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command; 2 where the user asked for what cannot be done."""
    parser = argparse.ArgumentParser(
        prog=PROGRAM,
        description="Classify texts, and pairs of texts.",
        allow_abbrev=False,
    )
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")
    modules = {}
    for name, (module, words) in COMMANDS.items():
        modules[name] = importlib.import_module(f"fairseq_regattn.classification.{module}")
        added = commands.add_parser(name, help=words, description=words, allow_abbrev=False)
        modules[name].add_arguments(added)
    given = parser.parse_args(arguments)
    # fairseq and others tell of themselves what nobody asked.
    logging.disable(logging.WARNING)
    program = f"{PROGRAM} {given.command}"
    try:
        return modules[given.command].run(given)
    except KeyboardInterrupt:
        print(f"\n{program}: stopped; the same command makes what is missing", file=sys.stderr)
        return 130
    except BrokenPipeError:  # the reader has seen enough
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 1
    except (StageError, UsageError, OSError) as error:
        told = error
        if isinstance(error, FileNotFoundError) and error.filename is not None:
            told = UsageError(f"{error.filename}: no such file")
        print(f"{program}: error: {told}", file=sys.stderr)
        return 2


if __name__ == "__main__":
    sys.exit(main())
