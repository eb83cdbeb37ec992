"""What running processes have reached, read from their logs, in one display."""

from __future__ import annotations

import json
import sys
import time
from dataclasses import dataclass, field
from pathlib import Path

from tqdm import tqdm  # type: ignore[import-untyped]

from fairseq_regattn.analysis.tables import duration


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
        max_update: how many updates there will be.
        epoch, updates, loss, valid_ppl, best_ppl: the latest ones, in fairseq's units.
        seconds: wall time of training in all runs up to the last line.
        speeds: target tokens a second, of each finished epoch.
    """

    path: Path
    max_update: int
    epoch: int = 1
    updates: int = 0
    loss: float | None = None
    valid_ppl: float | None = None
    best_ppl: float | None = None
    speeds: list[float] = field(default_factory=list)
    _tail: Tail = field(init=False, repr=False)
    _past_runs: float = 0.0
    _this_run: float = 0.0

    def __post_init__(self) -> None:
        self._tail = Tail(self.path)

    @property
    def seconds(self) -> float:
        return self._past_runs + self._this_run

    def read(self) -> None:
        """Take in what is new."""
        for line in self._tail.lines():
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
            self.loss = float(entry["loss"])
        if "valid_ppl" in entry:
            self.valid_ppl = float(entry["valid_ppl"])
            self.best_ppl = min(self.valid_ppl, self.best_ppl or self.valid_ppl)
        if "train_wps" in entry:  # the end of an epoch
            self.updates = int(entry["train_num_updates"])
            self.speeds.append(float(entry["train_wps"]))
        wall = entry.get("wall", entry.get("train_wall"))
        if wall is not None:
            if float(wall) < self._this_run:  # another run has begun
                self._past_runs += self._this_run
            self._this_run = float(wall)

    def state(self) -> State:
        """After reading what is new."""
        self.read()
        parts = [f"epoch {self.epoch}", f"update {self.updates}/{self.max_update}"]
        if self.loss is not None:
            parts.append(f"loss {self.loss:.2f}")
        if self.valid_ppl is not None:
            parts.append(f"valid ppl {self.valid_ppl:.1f}")
        return State(min(self.updates / self.max_update, 1.0), ", ".join(parts))


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
    """A bar for each process on a terminal; elsewhere a line now and then for each.

    Args:
        titles: names of the processes.
        every: seconds between two lines where there is no terminal.
    """

    def __init__(self, titles: list[str], every: float = 30.0):
        self.titles = titles
        self.every = every
        self.clocks = [Clock() for _ in titles]
        self.bars: list[tqdm] = []
        self.printed = [-float("inf")] * len(titles)
        self.width = max(map(len, titles))
        if sys.stderr.isatty():
            self.bars = [
                tqdm(
                    total=100,
                    bar_format=self._format(title),
                    position=position,
                    leave=True,
                    dynamic_ncols=True,
                )
                for position, title in enumerate(titles)
            ]

    def show(self, number: int, state: State, last: bool = False) -> None:
        """Report on process `number`; `last` makes sure that a line is printed."""
        words = f"{state.text}, {self.clocks[number].left(state.fraction)}"
        if self.bars:
            bar = self.bars[number]
            bar.n = round(100 * state.fraction)
            bar.bar_format = self._format(self.titles[number], words)
            bar.refresh()
        elif last or time.monotonic() - self.printed[number] >= self.every:
            self.printed[number] = time.monotonic()
            title = self.titles[number].ljust(self.width)
            print(f"      {title} {100 * state.fraction:3.0f} %  {words}", flush=True)

    def _format(self, title: str, words: str = "") -> str:
        """For tqdm, whose own place for words begins with a comma."""
        return f"{title.ljust(self.width)} {{percentage:3.0f}}% |{{bar:20}}| {words}"

    def close(self) -> None:
        for bar in self.bars:
            bar.close()
