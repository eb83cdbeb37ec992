"""Cost of every mapping, forward+backward, against the length of a row and the number of rows.

Scores are standard normal; fusedmax also gets rows that rise evenly from 0 to 1, on which Condat's
total variation takes far more than linear time. Parameters are at their defaults but where said.
An exponent is the slope of the line through log(time) against log(size), fitted by least squares
in each round over the sizes of some 50,000 scores and more, where a call's fixed cost is small.

python scripts/benchmark/scaling.py [--lengths 3000 ...] [--batches 1024 ...] [--json FILE]
"""

import argparse
import statistics
import sys
from functools import partial
from typing import Any, Callable, Dict, Sequence, Tuple

import numpy as np
import torch
from peers import rowwise_fusedmax
from timing import (
    Target,
    append,
    both,
    device,
    options,
    paired,
    positive,
    ratios,
    report,
    report_targets,
    seconds_of_budget,
)
from torch import Tensor

from fairseq_regattn.mappings import MAPPINGS, fusedmax, oscarmax

LENGTHS = [100, 1000, 3000, 10_000, 30_000, 100_000]
BATCHES = [16, 64, 256, 1024, 4096, 16_384]
ROWS, LENGTH = 16, 50  # of all lengths, and of all batches
FIT_FROM = 48_000  # scores


def normal(rows: int, length: int, device: str) -> Tensor:
    torch.manual_seed(1)
    return torch.randn(rows, length, device=device, requires_grad=True)


def ramp(rows: int, length: int, device: str) -> Tensor:
    return torch.linspace(0, 1, length, device=device).repeat(rows, 1).requires_grad_()


def prepare(function: Callable[[Tensor], Tensor], scores: Tensor) -> Callable[[], None]:
    return partial(both, function, scores, torch.randn_like(scores))


def exponent(sizes: Sequence[int], seconds: Sequence[float]) -> Tuple[float, float]:
    """e of the power law ``seconds ~ size^e``, and the factor by which times miss it at most."""
    x, y = np.log(sizes), np.log(seconds)
    slope, intercept = np.polyfit(x, y, 1)
    return float(slope), float(np.exp(np.abs(y - slope * x - intercept).max()))


def sweep(
    title: str, shapes: Dict[int, Tuple[int, int]], args: argparse.Namespace
) -> Dict[str, float]:
    """Time every mapping at each size, print and record the figures, return the exponents."""
    fitted = [size for size, (rows, length) in shapes.items() if rows * length >= FIT_FROM]
    print(f"\n{title}: median ms; exponent and largest miss of the fit over {fitted}")
    print(f"{'':14}" + "".join(f"{size:>10,}" for size in shapes) + "  exponent       range   miss")
    cases = {
        "fusedmax": (fusedmax, normal),
        "fusedmax, ramp": (fusedmax, ramp),
        "oscarmax": (oscarmax, normal),
        **{name: (mapping.function, normal) for name, mapping in MAPPINGS.items()},
        "torch.softmax": (partial(torch.softmax, dim=-1), normal),
    }
    record: Dict[str, Any] = {}
    for number, (name, (function, scores)) in enumerate(cases.items(), 1):
        print(f"{title}, {name}: {number} of {len(cases)}", file=sys.stderr)
        contestants = {
            f"{size}": prepare(function, scores(*shape, args.device))
            for size, shape in shapes.items()
        }
        seconds = paired(contestants, args.rounds, budget=args.budget, device=args.device)
        fits = [exponent(fitted, times) for times in zip(*(seconds[f"{n}"] for n in fitted))]
        slopes, misses = zip(*fits)
        slope, miss = statistics.median(slopes), statistics.median(misses)
        record[name] = {"seconds": seconds, "exponents": slopes, "exponent": slope, "miss": miss}
        print(
            f"{name:>14}"
            + "".join(f"{1e3 * statistics.median(times):10.3f}" for times in seconds.values())
            + f"{slope:10.2f}   {min(slopes):.2f}-{max(slopes):.2f} {100 * (miss - 1):4.0f} %"
        )
    append(args.json, {"title": title, "fitted": fitted, "rows": record})
    return {name: row["exponent"] for name, row in record.items()}


def hard_case(args: argparse.Namespace) -> Target:
    """20,000 points at lambda 50, a ramp against normal scores; Condat's algorithm beside ours."""
    functions = {"fusedmax": fusedmax}
    if args.device == "cpu":
        functions["Condat"] = rowwise_fusedmax
    contestants = {
        f"{name}, {kind.__name__}": prepare(partial(of, lam=50.0), kind(1, 20_000, args.device))
        for name, of in functions.items()
        for kind in (normal, ramp)
    }
    seconds = paired(contestants, args.rounds, budget=args.budget, device=args.device)
    report("one row of 20,000, lambda 50", seconds, "fusedmax, normal", args.json)
    ratio = statistics.median(ratios(seconds, "fusedmax, ramp", "fusedmax, normal"))
    return "fusedmax of 20,000, lambda 50: ramp / normal", ratio, "<=", 3.0


def main() -> None:
    parser = options(__doc__.splitlines()[0], rounds=11)
    parser.add_argument("--lengths", type=positive, nargs="+", default=LENGTHS, help="of a row")
    parser.add_argument("--batches", type=positive, nargs="+", default=BATCHES, help="rows")
    parser.add_argument(
        "--budget", type=seconds_of_budget, default=0.5, help="seconds a mapping and size"
    )
    parser.add_argument("--device", type=device, default="cpu", help="cpu or cuda")
    args = parser.parse_args()
    for name, per_size in (("lengths", ROWS), ("batches", LENGTH)):
        if sum(size * per_size >= FIT_FROM for size in set(getattr(args, name))) < 2:
            least = -(-FIT_FROM // per_size)
            parser.error(f"--{name}: a fit takes two sizes of at least {least:,}")

    exponents = sweep(f"length of {ROWS} rows", {n: (ROWS, n) for n in args.lengths}, args)
    sweep(f"rows of length {LENGTH}", {n: (n, LENGTH) for n in args.batches}, args)
    hard = hard_case(args)
    limits = [
        (f"{name}: exponent of the length", exponents[name], "<=", 1.15)
        for name in ("fusedmax", "fusedmax, ramp", "oscarmax")
    ]
    report_targets([*limits, hard], args.json)


if __name__ == "__main__":
    main()
