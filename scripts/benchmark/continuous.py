"""Cost of discrete and of continuous attention against the length of the sequence.

Forward and backward of one query to each sequence of a batch, float32. Discrete attention is given
scores, and reads values; continuous attention is given a mean and a variance, and reads B, the
coefficients of the values' basis functions, which do not grow with the sequence. B has a cost of
its own, once a sequence however many queries there are, and the regression matrix G that it is
made with another, once a length.

python scripts/benchmark/continuous.py [--lengths 50 2450 ...] [--batch 16] [--json FILE]
"""

import argparse
import statistics
from functools import partial
from typing import Callable, Dict, List

import torch
from timing import (
    Contestant,
    Target,
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

from fairseq_regattn.continuous import Gaussian, LineBasis, LineDensity, Parabola, RidgeRegression

LENGTHS = [50, 450, 850, 1250, 1650, 2050, 2450]
DIM, FUNCTIONS, WIDTHS = 128, 64, (0.1, 0.5)  # as in paper B's script that measures speed


class Sequences:
    """A batch of sequences of one length, and what a model would know of them."""

    def __init__(self, length: int, args: argparse.Namespace):
        torch.manual_seed(1)
        on = {"device": args.device}
        self.basis = LineBasis.spread(FUNCTIONS, WIDTHS).to(args.device)
        self.regression = RidgeRegression(self.basis, margin=True)
        self.length = length
        self.scores = torch.randn(args.batch, 1, length, **on, requires_grad=True)
        self.values = torch.randn(args.batch, length, DIM, **on, requires_grad=True)
        self.mask = torch.zeros(args.batch, length, dtype=torch.bool, **on)
        self.mean = torch.rand(args.batch, 1, **on, requires_grad=True)
        self.variance = torch.rand(args.batch, 1, **on).mul(0.1).requires_grad_()
        known = self.regression.coefficients(self.values, self.mask)
        self.coefficients = known.detach().requires_grad_()
        self.direction = torch.randn(args.batch, 1, DIM, **on)
        self.back = torch.randn_like(known)

    def discrete(self) -> None:
        context = torch.bmm(self.scores.softmax(-1), self.values)
        self.differentiate(context, self.direction, self.scores, self.values)

    def continuous(self, kind: Callable[..., LineDensity]) -> None:
        density = kind(self.mean, self.variance)
        context = torch.bmm(density.expectation(self.basis), self.coefficients)
        self.differentiate(context, self.direction, self.mean, self.variance, self.coefficients)

    def known(self) -> None:
        found = self.regression.coefficients(self.values, self.mask)
        self.differentiate(found, self.back, self.values)

    def solve(self) -> None:
        RidgeRegression(self.basis, margin=True).matrix(self.length)

    @staticmethod
    def differentiate(result: Tensor, direction: Tensor, *inputs: Tensor) -> None:
        torch.autograd.grad(result, inputs, direction)


CONTESTANTS: Dict[str, Callable[[Sequences], None]] = {
    "discrete softmax": Sequences.discrete,
    "continuous softmax, B given": partial(Sequences.continuous, kind=Gaussian.from_moments),
    "continuous sparsemax, B given": partial(Sequences.continuous, kind=Parabola.from_moments),
    "B, G given": Sequences.known,
    "G, once a length": Sequences.solve,
}


def main() -> None:
    parser = options(__doc__.splitlines()[0], rounds=21)
    parser.add_argument(
        "--lengths", type=positive, nargs="+", default=LENGTHS, help="of the sequences"
    )
    parser.add_argument("--batch", type=positive, default=16, help="sequences")
    parser.add_argument(
        "--budget", type=seconds_of_budget, default=1.0, help="seconds a contestant and length"
    )
    parser.add_argument("--device", type=device, default="cpu", help="cpu or cuda")
    args = parser.parse_args()
    lengths = sorted(set(args.lengths))
    if len(lengths) < 2:
        parser.error("--lengths: a comparison takes two")

    batches = {f"{length}": Sequences(length, args) for length in lengths}
    shortest, *_, longest = batches
    targets: List[Target] = []
    for name, run in CONTESTANTS.items():
        calls: Dict[str, Contestant] = {n: partial(run, batch) for n, batch in batches.items()}
        seconds = paired(calls, args.rounds, budget=args.budget, device=args.device)
        report(f"{name}: {args.batch} sequences by length", seconds, shortest, args.json)
        if name.startswith("continuous"):
            ratio = statistics.median(ratios(seconds, longest, shortest))
            targets.append((f"{name}: {longest} / {shortest} positions", ratio, "<=", 1.2))
    report_targets(targets, args.json)


if __name__ == "__main__":
    main()
