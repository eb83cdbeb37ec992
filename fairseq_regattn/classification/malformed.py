"""What becomes of input that is not what it should be."""

from __future__ import annotations

import sys
from collections import Counter

from fairseq_regattn.errors import ArgumentError
from fairseq_regattn.recipes.text import Faults

HOW = ("error", "skip")


class Malformed:
    """What becomes of rows that are not what they should be; all of them are counted.

    Args:
        how: ``"error"``: all are looked for, and told at once by `check`; ``"skip"``: they are
            left out, and the first ten are printed to the standard error.
    """

    def __init__(self, how: str = "error"):
        if how not in HOW:
            raise ArgumentError("malformed", how, " or ".join(HOW))
        self.how = how
        self.faults = Faults()
        self.shown = 0

    def add(self, kind: str, place: str, detail: str, tally: Counter) -> None:
        tally[f"malformed: {kind}"] += 1
        message = f"{place}: {kind}: {detail}"
        if self.how == "error":
            self.faults.add(message)
        elif self.shown < Faults.SHOWN:
            self.shown += 1
            print(f"      skipped: {message}", file=sys.stderr, flush=True)

    def check(self) -> None:
        """
        Raises:
            UsageError: there were any, and they are not skipped.
        """
        self.faults.check()
