"""``python -m fairseq_regattn.quickstart``; ``scripts/quickstart.sh`` sets it up and runs it."""

from __future__ import annotations

import shlex
import sys
from pathlib import Path

from fairseq_regattn.quickstart import corpus
from fairseq_regattn.recipes.__main__ import finish, reproduce
from fairseq_regattn.recipes.load import CONFIGS
from fairseq_regattn.recipes.options import Options, Reproduction, parse_quickstart


def main() -> int:
    options = parse_quickstart(sys.argv[1:])
    return finish("quickstart.sh", lambda: quickstart(options, corpus.PACKAGED))


def quickstart(options: Options, verses: Path) -> int:
    """Do what is missing of all stages, print the results and name the files.

    Args:
        options: from the command line.
        verses: the corpus (``fairseq_regattn/data``).
    """
    wanted = Reproduction(
        recipes=(CONFIGS / "quickstart.yaml",),
        attentions=options.attentions,
        output=options.output,
        overrides=options.overrides,
        data=corpus.extract(verses, options.output),
        records=options.output / "records",
    )
    return reproduce(wanted, f"scripts/quickstart.sh {shlex.join(sys.argv[1:])}".strip())


if __name__ == "__main__":
    sys.exit(main())
