"""One clear message for wrong use, in Python as ``ValueError`` and in the shell as one line."""

import os
import re
import sys
from typing import Any, Optional


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


def setting_error(error: Exception) -> str:
    """The first line of a long message of omegaconf's, and the key that it is about."""
    words = str(error).splitlines()[0]
    key = getattr(error, "full_key", None)
    return words if not key or f"'{key}'" in words else f"{key}: {words}"


def report_in_one_line() -> None:
    """Print wrong use and missing files as one line under the ``fairseq-*`` commands.

    Everything else keeps its traceback, and so does Python code that catches or embeds
    fairseq: only the last-resort ``sys.excepthook`` of a fairseq command is wrapped.
    """
    command = os.path.basename(sys.argv[0] if sys.argv else "")
    if not command.startswith("fairseq-") or sys.excepthook is not sys.__excepthook__:
        return

    def hook(kind, error, traceback):
        ours = _usage_error(error)
        if ours is None:
            sys.__excepthook__(kind, error, traceback)
        else:
            print(f"{command}: error: {ours}", file=sys.stderr)

    sys.excepthook = hook


def _usage_error(error: Optional[BaseException]) -> Optional[BaseException]:
    """The user's error in a chain: fairseq wraps what goes wrong while it loads a model."""
    while error is not None:
        missing = isinstance(error, FileNotFoundError) and error.filename is not None
        # what fairseq raises for --path, and for a split that the data folder has not
        said = re.search("file not found|Dataset not found", str(error))
        missing = missing or (isinstance(error, OSError) and said is not None)
        if isinstance(error, UsageError) or missing:
            return error
        error = error.__cause__ or error.__context__
    return None
