"""Paired timing: every contestant runs once a round, so drift of the machine hits all alike."""

import argparse
import ctypes
import gc
import json
import os
import statistics
import sys
import time
from pathlib import Path
from typing import Any, Callable, Dict, List, Optional, Tuple

import numba
import torch
from torch import Tensor

from fairseq_regattn.analysis.machine import processor

Contestant = Callable[[], Any]
Seconds = Dict[str, List[float]]
Target = Tuple[str, float, str, float]  # what, as measured, "<=" or ">=", the limit


def options(description: str, **defaults: Any) -> argparse.ArgumentParser:
    """A parser with the options that all benchmarks share; `defaults` of theirs."""
    parser = argparse.ArgumentParser(
        description=description,
        allow_abbrev=False,
        formatter_class=argparse.ArgumentDefaultsHelpFormatter,
    )
    parser.add_argument("--rounds", type=positive, help="each runs every contestant once")
    parser.add_argument("--json", type=appendable, help="append the figures to this file, in lines")
    parser.set_defaults(**defaults)
    return parser


def positive(text: str) -> int:
    """A command line's number of something."""
    if not text.isdecimal() or not int(text):
        raise argparse.ArgumentTypeError(f"must be an integer > 0, got {text!r}")
    return int(text)


def seconds_of_budget(text: str) -> float:
    """A command line's positive number."""
    try:
        value = float(text)
    except ValueError:
        value = 0.0
    if not 0 < value < float("inf"):
        raise argparse.ArgumentTypeError(f"must be a number > 0, got {text!r}")
    return value


def device(text: str) -> str:
    """A command line's device, which is there."""
    try:
        torch.empty(0, device=text)
    except (RuntimeError, AssertionError) as error:
        reason = str(error).partition("\n")[0]
        raise argparse.ArgumentTypeError(f"{text!r} cannot be used: {reason}") from None
    return text


def appendable(text: str) -> str:
    """A command line's output file; wrong ones are better refused before the work than after."""
    try:
        open(text, "a", encoding="utf-8").close()
    except OSError as error:
        raise argparse.ArgumentTypeError(f"cannot write {text!r}: {error.strerror}") from None
    return text


def forward(function: Callable[[Tensor], Tensor], scores: Tensor, direction: Tensor) -> None:
    with torch.no_grad():
        function(scores)


def both(function: Callable[[Tensor], Tensor], scores: Tensor, direction: Tensor) -> None:
    """Forward and the vector-Jacobian product with `direction`."""
    torch.autograd.grad(function(scores), scores, direction)


def keep_memory() -> None:
    """Let glibc keep what is freed, so that nobody pays for pages the last one gave back."""
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None) if os.name == "posix" else None
    if mallopt is not None:
        trim_threshold, mmap_threshold = -1, -3
        mallopt(trim_threshold, 1 << 30)
        mallopt(mmap_threshold, 1 << 30)


def paired(
    contestants: Dict[str, Contestant],
    rounds: int,
    budget: Optional[float] = None,
    device: str = "cpu",
) -> Seconds:
    """Seconds a call of each contestant, one figure a round, after a warm-up.

    Contestants take turns, A B C A B C, with garbage collected between rounds only. A turn is one
    call, or with `budget` as many as let all turns of a contestant take about that many seconds.
    One too slow for a call a round leaves when its budget is spent, so that figures of the same
    index are always of the same round.
    """
    keep_memory()
    repeats = dict.fromkeys(contestants, 1)
    lasts = dict.fromkeys(contestants, rounds)
    seconds: Seconds = {name: [] for name in contestants}
    gc.disable()
    try:
        for name, run in contestants.items():
            _progress(f"warming up {name}")
            call = _seconds(run, 1, device)
            if budget is not None:
                if call < 10 * budget:  # it may have compiled something
                    call = _seconds(run, 1, device)
                if call < 0.01:  # too short to go by
                    call = _seconds(run, int(0.01 / call), device)
                repeats[name] = max(1, int(budget / rounds / call))
                lasts[name] = max(1, min(rounds, int(budget / call)))
        start = time.perf_counter()
        for number in range(1, rounds + 1):
            gc.collect()
            for name, run in contestants.items():
                if number <= lasts[name]:
                    seconds[name].append(_seconds(run, repeats[name], device))
            left = (time.perf_counter() - start) / number * (rounds - number)
            _progress(f"round {number} of {rounds}, at most {left:.0f} s left")
    finally:
        gc.enable()
        _progress("")
    return seconds


def _progress(text: str) -> None:
    print(f"\r\033[K{text}", end="", file=sys.stderr, flush=True)


def _seconds(run: Contestant, repeat: int, device: str) -> float:
    """Seconds a call, mean of `repeat` calls."""
    synchronize(device)
    start = time.perf_counter()
    for _ in range(repeat):
        run()
    synchronize(device)
    return (time.perf_counter() - start) / repeat


def synchronize(device: str) -> None:
    if device != "cpu":
        torch.cuda.synchronize(device)


def ratios(seconds: Seconds, name: str, base: str) -> List[float]:
    """Time of `name` over time of `base`, round by round."""
    return [ours / theirs for ours, theirs in zip(seconds[name], seconds[base])]


def report(title: str, seconds: Seconds, base: str, out: Optional[str]) -> None:
    """Print medians, and ratios to `base` taken round by round; append JSON to `out`."""
    rows = {}
    width = max(map(len, seconds))
    columns = (
        f"{'median ms':>10} {'min':>9} {'max':>9} {'x ' + base:>16} {'range':>15} {'rounds':>6}"
    )
    print(f"\n{title}\n{'':{width}} {columns}")
    for name, values in seconds.items():
        ratio = ratios(seconds, name, base)
        rows[name] = {"seconds": values, "ratio": statistics.median(ratio)}
        ms = [1e3 * value for value in (statistics.median(values), min(values), max(values))]
        print(
            f"{name:>{width}} {ms[0]:10.3f} {ms[1]:9.3f} {ms[2]:9.3f} {rows[name]['ratio']:16.2f}"
            f" {f'{min(ratio):.2f}-{max(ratio):.2f}':>15} {len(values):6}"
        )
    append(out, {"title": title, "base": base, "rows": rows})


def report_targets(targets: List[Target], out: Optional[str]) -> None:
    """Print what was promised, what was measured, and whether that will do."""
    print("\ngoals of the project, in this run")
    width = max(len(name) for name, *_ in targets)
    for name, value, relation, limit in targets:
        met = value <= limit if relation == "<=" else value >= limit
        print(f"{name:>{width}} {value:8.2f}   {relation} {limit:<6g} {'met' if met else 'MISSED'}")
    append(out, {"title": "targets", "rows": targets})


def append(out: Optional[str], record: Dict[str, Any]) -> None:
    """Add a line of JSON to the file `out`, if there is one: `record` and how it came about."""
    if out is None:
        return
    about = {
        "command": " ".join([Path(sys.executable).name, *sys.argv]),
        "date": time.strftime("%Y-%m-%d"),
        "machine": f"{processor()}, {os.cpu_count()} cores",
        "threads": torch.get_num_threads(),
        "torch": torch.__version__,
        "numba": numba.__version__,
    }
    with open(out, "a", encoding="utf-8") as file:
        file.write(json.dumps({**record, "about": about}) + "\n")
