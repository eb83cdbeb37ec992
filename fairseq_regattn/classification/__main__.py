"""``python -m fairseq_regattn.classification COMMAND``."""

from __future__ import annotations

import argparse
import sys

from fairseq_regattn.classification import page_command
from fairseq_regattn.errors import UsageError


def main() -> int:
    """Run a command; 2 where that cannot be done."""
    parser = argparse.ArgumentParser(prog="python -m fairseq_regattn.classification")
    commands = parser.add_subparsers(required=True, metavar="COMMAND")
    for name, module in {"page": page_command}.items():
        command = commands.add_parser(
            name, help=module.HELP, description=module.HELP, allow_abbrev=False
        )
        module.add_arguments(command)
        command.set_defaults(run=module.run)
    args = parser.parse_args()
    try:
        return args.run(args)
    except (UsageError, OSError) as error:
        print(f"{parser.prog}: error: {error}", file=sys.stderr)
        return 2


if __name__ == "__main__":
    sys.exit(main())
