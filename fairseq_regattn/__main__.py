"""``python -m fairseq_regattn`` prints where the package is; ``... doctor`` looks it over."""

import argparse
import os
import sys


def main() -> int:
    parser = argparse.ArgumentParser(
        prog="python -m fairseq_regattn",
        description="Without an argument: print the folder of the package, for "
        '--user-dir "$(python -m fairseq_regattn)".',
    )
    parser.add_argument(
        "command",
        nargs="?",
        choices=["doctor"],
        help="print versions, what works, and what to do about what does not",
    )
    command = parser.parse_args().command
    if command is None:
        # neither torch nor fairseq is imported on this path: it is on every command line
        print(os.path.dirname(os.path.abspath(__file__)))
        return 0
    from fairseq_regattn import doctor

    return doctor.main()


if __name__ == "__main__":
    sys.exit(main())
