"""Forward and forward+backward time of every mapping against torch.softmax and entmax.

python scripts/benchmark/mappings.py [--shape 64x50 ...] [--rounds 21] [--json FILE]
"""

import argparse
from functools import partial

import torch
from timing import paired, report

from fairseq_regattn.mappings import MAPPINGS


def forward(function, scores, direction) -> None:
    with torch.no_grad():
        function(scores)


def both(function, scores, direction) -> None:
    torch.autograd.grad(function(scores), scores, direction)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--shape", nargs="+", default=["64x50"], help="rows x length")
    parser.add_argument("--rounds", type=int, default=21)
    parser.add_argument("--json", help="append the figures to this file, one line a table")
    args = parser.parse_args()
    functions = {"torch.softmax": lambda scores: torch.softmax(scores, -1)}
    try:
        import entmax

        functions["entmax.sparsemax"] = entmax.sparsemax
        functions["entmax.entmax15"] = entmax.entmax15
    except ImportError:
        print("entmax is not installed (pip install '.[bench]'): only torch.softmax is compared")
    functions.update({name: mapping.function for name, mapping in MAPPINGS.items()})

    for shape in args.shape:
        rows, length = map(int, shape.split("x"))
        torch.manual_seed(1)
        scores = torch.randn(rows, length, requires_grad=True)
        direction = torch.randn(rows, length)

        for title, run in (("forward", forward), ("forward+backward", both)):
            contestants = {
                name: partial(run, function, scores, direction)
                for name, function in functions.items()
            }
            seconds = paired(contestants, args.rounds, repeat=max(1, 200_000 // (rows * length)))
            report(f"{title}, {shape}, float32", seconds, "torch.softmax", args.json)


if __name__ == "__main__":
    main()
