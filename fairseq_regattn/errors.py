"""One clear message for wrong use, in Python as ``ValueError`` and in the shell as one line."""

import os
import sys
from typing import Any


class UsageError(ValueError):
    """The user asked for something that cannot be done; the message is for them."""


class ArgumentError(UsageError):
    """An argument has a value outside its range.

    Args:
        argument: its name, as the caller wrote it.
        value: what was given.
        allowed: what would have been accepted, e.g. ``"a finite number > 0"``.
    """

    def __init__(self, argument: str, value: Any, allowed: str):
        super().__init__(f"{argument} must be {allowed}, got {value!r}")
        self.argument = argument
        self.value = value
        self.allowed = allowed


def report_in_one_line() -> None:
    """Print wrong use and missing files as one line under the ``fairseq-*`` commands.

    Everything else keeps its traceback, and so does Python code that catches or embeds
    fairseq: only the last-resort ``sys.excepthook`` of a fairseq command is wrapped.
    """
    command = os.path.basename(sys.argv[0] if sys.argv else "")
    if not command.startswith("fairseq-") or sys.excepthook is not sys.__excepthook__:
        return

    def hook(kind, error, traceback):
        if isinstance(error, UsageError) or (
            isinstance(error, FileNotFoundError) and error.filename is not None
        ):
            print(f"{command}: error: {error}", file=sys.stderr)
        else:
            sys.__excepthook__(kind, error, traceback)

    sys.excepthook = hook
