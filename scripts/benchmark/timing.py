"""Paired timing: every contestant runs once a round, so drift of the machine hits all alike."""

import json
import os
import platform
import statistics
import sys
import time
from typing import Callable, Dict, List, Optional

import torch


def paired(contestants: Dict[str, Callable[[], None]], rounds: int, repeat: int = 1):
    """Seconds a call of each contestant, one figure a round, after one warm-up round."""
    seconds: Dict[str, List[float]] = {name: [] for name in contestants}
    for number in range(rounds + 1):
        for name, run in contestants.items():
            start = time.perf_counter()
            for _ in range(repeat):
                run()
            if number:
                seconds[name].append((time.perf_counter() - start) / repeat)
        print(f"\rround {number} of {rounds}", end="", file=sys.stderr, flush=True)
    print("\r", end="", file=sys.stderr)
    return seconds


def report(title: str, seconds: Dict[str, List[float]], base: str, out: Optional[str]) -> None:
    """Print medians, and ratios to `base` taken round by round; write JSON to `out`."""
    rows = {}
    columns = f"{'median ms':>10} {'min':>8} {'max':>8} {'x ' + base:>16} {'range':>13}"
    print(f"\n{title}\n{'':>20} {columns}")
    for name, values in seconds.items():
        ratios = [value / other for value, other in zip(values, seconds[base])]
        rows[name] = {"seconds": values, "ratio": statistics.median(ratios)}
        ms = [1e3 * value for value in (statistics.median(values), min(values), max(values))]
        print(
            f"{name:>20} {ms[0]:10.3f} {ms[1]:8.3f} {ms[2]:8.3f} {rows[name]['ratio']:16.2f}"
            f" {min(ratios):6.2f}-{max(ratios):.2f}"
        )
    if out:
        about = {
            "command": " ".join(sys.argv),
            "date": time.strftime("%Y-%m-%d"),
            "machine": f"{platform.machine()}, {os.cpu_count()} cores",
            "threads": torch.get_num_threads(),
            "torch": torch.__version__,
        }
        with open(out, "a", encoding="utf-8") as file:
            file.write(
                json.dumps({"title": title, "base": base, "about": about, "rows": rows}) + "\n"
            )
