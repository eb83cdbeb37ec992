"""fairseq commands as processes of their own, several side by side."""

from __future__ import annotations

import ctypes
import os
import re
import shlex
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from fairseq_regattn.recipes.progress import COMMAND, PROCESSOR_TIME, Display, State
from fairseq_regattn.recipes.stages import StageError

PR_SET_PDEATHSIG = 1


def command(name: str, *arguments: str) -> list[str]:
    """A fairseq command of the environment that this Python belongs to."""
    return [str(Path(sys.executable).parent / name), *arguments]


def environment() -> dict[str, str]:
    """One thread a process: threads that wait for each other's cores make everything crawl.

    Also where a process runs alone, so that the numbers do not depend on it.
    """
    return {**os.environ, "OMP_NUM_THREADS": "1", "NUMBA_NUM_THREADS": "1"}


def cores() -> int:
    """Processor cores that this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


@dataclass(frozen=True)
class Job:
    """A command, where its output goes, and how to tell how far it is.

    Attributes:
        command: program and arguments.
        log: file for its errors, and for the command itself. Appended to.
        folder: where it runs; arguments may be relative to it.
        state: looks how far it is.
        output: file for its standard output; `log` when None.
    """

    command: Sequence[str]
    log: Path
    folder: Path
    state: Callable[[], State]
    output: Path | None = None


@dataclass(frozen=True)
class Chain:
    """Jobs that follow one another.

    Attributes:
        title: for the display.
        jobs: gives the next job once the last one has succeeded, and does between them what
            needs no process of its own. An error that it raises is a failure like a job's.
    """

    title: str
    jobs: Iterator[Job]


def run(
    chains: Sequence[Chain],
    locks: Sequence[int],
    at_once: int | None = None,
    keep_going: bool = False,
    devices: int = 0,
) -> dict[str, Exception]:
    """Run chains side by side to their ends.

    When one fails, or this process is stopped, the running ones are stopped too: everything that
    they need to go on later is on disk.

    Args:
        at_once: as many side by side; as many as there are cores when None.
        locks: file descriptors that the processes inherit (``stages.exclusive``).
        keep_going: go on with the others after a failure.
        devices: how many GPUs there are; processes side by side get one each.

    Returns:
        Failures by title; empty unless `keep_going`.

    Raises:
        StageError: a job failed; names its log.
    """
    slots = at_once or max(1, cores())
    display = Display([chain.title for chain in chains], slots)
    waiting = list(enumerate(chains))
    running: dict[int, Running] = {}
    failures: dict[str, Exception] = {}

    def go_on(number: int, slot: int) -> None:
        """Start the next job of a chain, if there is one."""
        job = next(chains[number].jobs, None)
        if job is None:
            display.ended(number)
        else:
            running[number] = Running(job, slot, _start(job, locks, device(slot, slots, devices)))

    def step(number: int, slot: int) -> None:
        """Look at a running job."""
        job, _, process = running[number]
        seconds = _reaped(process)
        if seconds is None:
            display.show(number, slot, job.state())
            return
        del running[number]  # before anything that can fail
        with open(job.log, "a", encoding="utf-8") as log:
            log.write(f"{PROCESSOR_TIME}{seconds:.2f}\n")
        display.show(number, slot, job.state(), last=True)
        if process.returncode:
            raise StageError(f"{Path(job.command[0]).name} failed: {_cause(job.log)}")
        go_on(number, slot)

    def attempt(action: Callable[[int, int], None], number: int, slot: int) -> None:
        try:
            action(number, slot)
        except Exception as error:  # whatever it is, the others can go on
            if not keep_going:
                raise
            failures[chains[number].title] = error
            print(f"      {chains[number].title}: failed", flush=True)
            display.ended(number)

    try:
        while waiting or running:
            while waiting and len(running) < slots:
                free = min(set(range(slots)) - {one.slot for one in running.values()})
                attempt(go_on, waiting.pop(0)[0], free)
            time.sleep(0.5 if running else 0)
            for number, one in list(running.items()):
                attempt(step, number, one.slot)
    finally:
        for one in running.values():
            one.process.terminate()
        for one in running.values():
            one.process.wait()
        display.close()
    return failures


class Running(NamedTuple):
    """A process, and which of those side by side it is."""

    job: Job
    slot: int
    process: subprocess.Popen


def device(slot: int, slots: int, devices: int) -> dict[str, str]:
    """Variables for a process: a GPU of its own where several run side by side on several.

    One of those that the user lets this process see, by the name that they have there.
    """
    if slots == 1 or devices < 2:
        return {}
    given = os.environ.get("CUDA_VISIBLE_DEVICES")
    names = [name.strip() for name in given.split(",")] if given else [*map(str, range(devices))]
    return {"CUDA_VISIBLE_DEVICES": names[slot % devices]}


def _reaped(process: subprocess.Popen) -> float | None:
    """Processor time of a process that has ended; None of one that has not.

    Where machines are shared, processor time compares better than time on the clock.
    """
    ended, status, usage = os.wait4(process.pid, os.WNOHANG)
    if not ended:
        return None
    process.returncode = os.waitstatus_to_exitcode(status)
    return usage.ru_utime + usage.ru_stime


def _cause(log: Path) -> str:
    """The line of a log that tells most, and where the rest is."""
    lines = log.read_text(encoding="utf-8", errors="replace").splitlines()
    told = [line for line in lines if re.search(r"\w*(Error|error|Exception)\b: ", line)]
    return f"{told[-1].strip()} (see {log})" if told else f"see {log}"


def _start(job: Job, locks: Sequence[int], variables: dict[str, str]) -> subprocess.Popen:
    with ExitStack() as files:
        log = files.enter_context(open(job.log, "a", encoding="utf-8"))
        log.write(f"{COMMAND}cd {shlex.quote(str(job.folder))} && {shlex.join(job.command)}\n")
        log.flush()
        output = log
        if job.output is not None:
            output = files.enter_context(open(job.output, "w", encoding="utf-8"))
        return subprocess.Popen(
            job.command,
            stdout=output,
            stderr=log,
            stdin=subprocess.DEVNULL,
            cwd=job.folder,
            env={**environment(), **variables},
            pass_fds=locks,
            preexec_fn=_end_with_parent if sys.platform == "linux" else None,
        )


def _end_with_parent() -> None:
    """Linux ends this process when its parent dies, even by kill -9: nothing trains unseen."""
    ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGTERM)
    # Ctrl-C reaches the whole terminal group; the parent alone decides what to do then.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
