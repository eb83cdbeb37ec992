"""``python -m fairseq_regattn.vqa COMMAND``."""

from __future__ import annotations

import sys
from collections.abc import Sequence

from fairseq_regattn.commands import run_command

COMMANDS = {
    "prepare": ("prepare", "make a data folder of VQA-v2's files and grids of features"),
    "predict": ("predict", "write answers and where the model looked, as JSON lines"),
    "plot": ("plot", "draw where models looked, side by side"),
}


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command; 2 where the user asked for what cannot be done."""
    what = "Answer questions about images."
    return run_command("fairseq_regattn.vqa", what, COMMANDS, arguments)


if __name__ == "__main__":
    sys.exit(main())
