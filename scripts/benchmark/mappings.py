"""Forward and forward+backward time of every mapping against what others compute it with.

These are torch.softmax, entmax (`pip install '.[bench]'`), and the peers of peers.py:
torchsparseattn's algorithm row by row, and pnormmax by FISTA. Scores are standard normal, float32,
all parameters at their defaults. The table of 64x50, forward+backward, is followed by the ratios
that ought to hold there.

python scripts/benchmark/mappings.py [--shape 64x50 ...] [--rounds 21] [--json FILE]
"""

import argparse
import statistics
import sys
from functools import partial
from typing import Callable, Dict

import torch
from peers import Fista, rowwise_fusedmax, rowwise_oscarmax
from timing import (
    both,
    device,
    forward,
    options,
    paired,
    ratios,
    report,
    report_targets,
    seconds_of_budget,
)
from torch import Tensor

from fairseq_regattn.mappings import MAPPINGS, pnormmax

try:
    import entmax
except ImportError:
    entmax = None

SHAPES = ["64x20", "64x50", "320x50", "64x200", "1024x1000"]

# At 64x50, forward+backward: time of the first over time of the second, and what it should be.
TARGETS = [
    ("fusedmax", "torch.softmax", "<=", 2.5),
    ("oscarmax", "torch.softmax", "<=", 2.5),
    ("fusedmax", "entmax.sparsemax", "<=", 0.5),
    ("oscarmax", "entmax.sparsemax", "<=", 0.5),
    ("fusedmax, row by row", "fusedmax", ">=", 100.0),
    ("oscarmax_prox, row by row", "oscarmax", ">=", 100.0),
    ("pnormmax, FISTA to 1e-06", "pnormmax", ">=", 50.0),
]


def contestants(scores: Tensor) -> Dict[str, Callable[[Tensor], Tensor]]:
    """All mappings by name; FISTA is tuned to these scores."""
    functions: Dict[str, Callable[[Tensor], Tensor]] = {
        "torch.softmax": partial(torch.softmax, dim=-1)
    }
    if entmax is not None:
        functions["entmax.sparsemax"] = entmax.sparsemax
        functions["entmax.entmax15"] = entmax.entmax15
        functions["entmax.entmax_bisect"] = partial(entmax.entmax_bisect, alpha=1.5)
    functions.update({name: mapping.function for name, mapping in MAPPINGS.items()})
    if scores.device.type == "cpu":
        functions["fusedmax, row by row"] = rowwise_fusedmax
        functions["oscarmax_prox, row by row"] = rowwise_oscarmax
    for tolerance in (1e-2, 1e-6):  # good enough to train with; close to what pnormmax has
        functions[f"pnormmax, FISTA to {tolerance:g}"] = Fista(scores, tolerance)
    return functions


def rows_by_length(text: str) -> str:
    """A command line's rows x length."""
    rows, _, length = text.partition("x")
    if not all(number.isdecimal() and int(number) for number in (rows, length)):
        raise argparse.ArgumentTypeError(f"must look like 64x50, both > 0, got {text!r}")
    return text


def main() -> None:
    parser = options(__doc__.splitlines()[0], rounds=21)
    parser.add_argument(
        "--shape", nargs="+", type=rows_by_length, default=SHAPES, help="rows x length"
    )
    parser.add_argument(
        "--budget", type=seconds_of_budget, default=1.0, help="seconds a contestant and table"
    )
    parser.add_argument("--device", type=device, default="cpu", help="cpu or cuda")
    args = parser.parse_args()
    if entmax is None:
        print("entmax is not installed (pip install '.[bench]'): compared without it")

    for number, shape in enumerate(args.shape, 1):
        print(f"shape {number} of {len(args.shape)}: tuning FISTA", file=sys.stderr)
        rows, length = map(int, shape.split("x"))
        torch.manual_seed(1)
        scores = torch.randn(rows, length, device=args.device, requires_grad=True)
        direction = torch.randn(rows, length, device=args.device)
        functions = contestants(scores)
        rounding = (pnormmax(scores) - pnormmax(scores.double())).abs().max().item()
        print(f"\npnormmax, {shape}, largest errors: ours {rounding:.1e}")
        print("\n".join(str(peer) for peer in functions.values() if isinstance(peer, Fista)))
        for title, run in (("forward", forward), ("forward+backward", both)):
            seconds = paired(
                {name: partial(run, of, scores, direction) for name, of in functions.items()},
                args.rounds,
                budget=args.budget,
                device=args.device,
            )
            report(f"{title}, {shape}, float32", seconds, "torch.softmax", args.json)
        if shape == "64x50":
            targets = [
                (f"{name} / {base}", statistics.median(ratios(seconds, name, base)), *limit)
                for name, base, *limit in TARGETS
                if name in seconds and base in seconds
            ]
            report_targets(targets, args.json)


if __name__ == "__main__":
    main()
