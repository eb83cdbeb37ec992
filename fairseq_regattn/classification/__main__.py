"""``python -m fairseq_regattn.classification COMMAND``."""

from __future__ import annotations

import sys
from collections.abc import Sequence

from fairseq_regattn.commands import run_command

COMMANDS = {
    "prepare": ("prepare", "make a data folder of labelled texts, or of labelled pairs of texts"),
    "predict": ("predict", "write labels, probabilities and attention weights, as JSON lines"),
    "page": (
        "page_command",
        "write an HTML page: texts highlighted by weight, mappings side by side",
    ),
}


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command; 2 where the user asked for what cannot be done."""
    what = "Classify texts, and pairs of texts."
    return run_command("fairseq_regattn.classification", what, COMMANDS, arguments)


if __name__ == "__main__":
    sys.exit(main())
