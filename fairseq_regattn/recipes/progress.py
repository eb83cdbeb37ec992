"""What running processes have reached, read from their logs, in one display."""

from __future__ import annotations

import json
import re
import sys
import time
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeVar

from tqdm import tqdm  # type: ignore[import-untyped]

from fairseq_regattn.analysis.tables import duration

Item = TypeVar("Item")

PROCESSOR_TIME = "# processor seconds: "
"""Begins the line that ``jobs`` adds to the log of a process that has ended."""

PROCESSOR_LINE = re.compile(re.escape(PROCESSOR_TIME) + r"(\d+\.\d\d)")

COMMAND = "$ "
"""Begins the line of the command itself."""


class Tail:
    """Complete lines that were added to a file since the last look."""

    def __init__(self, path: Path):
        self.path = path
        self.offset = 0

    def lines(self) -> list[str]:
        if not self.path.exists():
            return []
        with open(self.path, "rb") as file:
            file.seek(self.offset)
            complete, newline, _ = file.read().rpartition(b"\n")
        self.offset += len(complete) + len(newline)
        return complete.decode("utf-8", errors="replace").splitlines()


@dataclass
class TrainingLog:
    """A log of ``fairseq-hydra-train`` with ``common.log_format: json``; resumed runs append.

    Attributes:
        max_update, max_epoch: how many there will be, 0 where there is no such limit.
        epoch, epochs, updates, loss, valid_ppl, valid_accuracy, best_ppl: the latest ones, in
            fairseq's units; `epochs` with the fraction of the one that is going on.
        seconds: wall time of training in all runs up to the last line.
        processor_seconds: processor time of all runs; None where one did not live to tell.
        speeds: target tokens a second, of each finished epoch.
    """

    path: Path
    max_update: int = 0
    max_epoch: int = 0
    epoch: int = 1
    epochs: float = 0.0
    updates: int = 0
    loss: float | None = None
    valid_ppl: float | None = None
    valid_accuracy: float | None = None
    best_ppl: float | None = None
    speeds: list[float] = field(default_factory=list)
    _tail: Tail = field(init=False, repr=False)
    _past_runs: float = 0.0
    _this_run: float = 0.0
    _started: int = 0
    _processor: list[float] = field(default_factory=list)

    def __post_init__(self) -> None:
        self._tail = Tail(self.path)

    @property
    def seconds(self) -> float:
        return self._past_runs + self._this_run

    @property
    def processor_seconds(self) -> float | None:
        known = 0 < len(self._processor) == self._started
        return sum(self._processor) if known else None

    def read(self) -> None:
        """Take in what is new."""
        for line in self._tail.lines():
            if line.startswith(COMMAND):  # another run has begun
                self._started += 1
                self._past_runs += self._this_run
                self._this_run = 0.0
            told = PROCESSOR_LINE.fullmatch(line)
            if told is not None:
                self._processor.append(float(told[1]))
            start = line.find('{"epoch"')
            if start < 0:
                continue
            try:
                entry = json.loads(line[start:])
            except json.JSONDecodeError:
                continue  # the process was killed while it wrote this line
            self._take(entry)

    def _take(self, entry: dict) -> None:
        self.epoch = int(entry["epoch"])
        if "update" in entry:  # within an epoch
            self.updates = int(entry["num_updates"])
            self.epochs = float(entry["update"])
            self.loss = float(entry["loss"])
        if "valid_ppl" in entry:
            self.valid_ppl = float(entry["valid_ppl"])
            self.best_ppl = min(self.valid_ppl, self.best_ppl or self.valid_ppl)
        if "valid_accuracy" in entry:
            self.valid_accuracy = float(entry["valid_accuracy"])
        if "train_wps" in entry:  # the end of an epoch
            self.updates = int(entry["train_num_updates"])
            self.epochs = float(self.epoch)
            self.speeds.append(float(entry["train_wps"]))
        wall = entry.get("wall", entry.get("train_wall"))
        if wall is not None:
            self._this_run = float(wall)

    def state(self) -> State:
        """After reading what is new."""
        self.read()
        parts = [f"epoch {self.epoch}{_of(self.max_epoch)}"]
        parts.append(f"update {self.updates}{_of(self.max_update)}")
        if self.loss is not None:
            parts.append(f"loss {self.loss:.2f}")
        if self.valid_ppl is not None:
            parts.append(f"valid ppl {self.valid_ppl:.1f}")
        if self.valid_accuracy is not None:
            parts.append(f"valid accuracy {self.valid_accuracy:.1f} %")
        limits = ((self.updates, self.max_update), (self.epochs, self.max_epoch))
        fraction = max((done / limit for done, limit in limits if limit), default=0.0)
        return State(min(fraction, 1.0), ", ".join(parts))


def _of(limit: int) -> str:
    return f"/{limit}" if limit else ""


@dataclass(frozen=True)
class State:
    """How far something is: a fraction of the whole, and words."""

    fraction: float
    text: str


class Clock:
    """Time left, from the speed since this process began to watch."""

    def __init__(self) -> None:
        self.start: tuple[float, float] | None = None

    def left(self, fraction: float) -> str:
        now = time.monotonic()
        if self.start is None or fraction < self.start[1]:
            self.start = now, fraction
        began, at_start = self.start
        if fraction >= 1:
            return "done"
        if fraction - at_start < 0.01:
            return "time left: not known yet"
        return f"{duration((now - began) * (1 - fraction) / (fraction - at_start))} left"


class Display:
    """A bar for each running process on a terminal; elsewhere a line now and then for each.

    Where there are more processes than run at once, one more line is about all of them.

    Args:
        titles: names of all processes.
        slots: how many run at once.
        every: seconds between two lines where there is no terminal.
    """

    def __init__(self, titles: Sequence[str], slots: int, every: float = 30.0):
        self.titles = titles
        self.every = every
        self.clocks = [Clock() for _ in titles]
        self.all = Clock()
        self.fractions = [0.0] * len(titles)
        self.seen: set[int] = set()
        self.quick: set[int] = set()  # needed no process: they say nothing of the time left
        self.printed = [-float("inf")] * len(titles)
        self.width = max(map(len, titles))
        self.several = len(titles) > slots
        self.bars: list[tqdm] = []
        if sys.stderr.isatty():
            for position in range(slots + self.several):
                self.bars.append(tqdm(total=100, position=position, dynamic_ncols=True))
                self._draw(position, "", 0.0)

    def show(self, number: int, slot: int, state: State, last: bool = False) -> None:
        """Report on process `number`, which runs in `slot`.

        Args:
            last: make sure that a line is printed.
        """
        self.seen.add(number)
        words = f"{state.text}, {self.clocks[number].left(state.fraction)}"
        title = self.titles[number].ljust(self.width)
        # Of a job that follows another one, the fraction begins anew.
        self.fractions[number] = max(self.fractions[number], 0.99 * state.fraction)
        if self.bars:
            self._draw(slot, title, state.fraction, words)
            self._overall()
        elif last or time.monotonic() - self.printed[number] >= self.every:
            self.printed[number] = time.monotonic()
            print(f"      {title} {100 * state.fraction:3.0f} %  {words}", flush=True)

    def ended(self, number: int) -> None:
        """Process `number` is done, or has failed."""
        if number not in self.seen:
            self.quick.add(number)
        self.fractions[number] = 1.0
        self._overall(line=True)

    def _overall(self, line: bool = False) -> None:
        if not self.several:
            return
        slow = [one for number, one in enumerate(self.fractions) if number not in self.quick]
        fraction = sum(slow) / len(slow) if slow else 1.0
        done = sum(one == 1 for one in self.fractions)
        words = f"{done} of {len(self.titles)}, {self.all.left(fraction)}"
        if self.bars:
            self._draw(len(self.bars) - 1, "all".ljust(self.width), fraction, words)
        elif line:
            print(f"      {'all'.ljust(self.width)} {100 * fraction:3.0f} %  {words}", flush=True)

    def _draw(self, position: int, title: str, fraction: float, words: str = "") -> None:
        bar = self.bars[position]
        bar.n = round(100 * fraction)
        # tqdm's own place for words begins with a comma
        words = words.replace("{", "{{").replace("}", "}}")
        bar.bar_format = f"{title} {{percentage:3.0f}}% |{{bar:20}}| {words}"
        bar.refresh()

    def close(self) -> None:
        for bar in self.bars:
            bar.close()


def with_progress(items: Iterable[Item], title: str, every: float = 30.0) -> Iterator[Item]:
    """Count lines in a bar on a terminal; elsewhere print a line now and then."""
    shown = time.monotonic()
    bar = tqdm(items, title, leave=False, disable=None, unit=" lines", unit_scale=True)
    for number, item in enumerate(bar, start=1):
        yield item
        if bar.disable and number % 1000 == 0 and time.monotonic() - shown >= every:
            shown = time.monotonic()
            print(f"      {title}: {number:,} lines", flush=True)
