"""fairseq commands as processes of their own, several side by side."""

from __future__ import annotations

import ctypes
import os
import shlex
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

from fairseq_regattn.recipes.progress import Display, State
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
        title: for the display.
        command: program and arguments.
        output: file for its standard output; `log` when None.
        log: file for its errors, and for the command itself. Appended to.
        folder: where it runs; arguments may be relative to it.
        state: looks how far it is.
    """

    title: str
    command: Sequence[str]
    log: Path
    folder: Path
    state: Callable[[], State]
    output: Path | None = None


def run(jobs: Sequence[Job], lock: int) -> None:
    """Run all jobs, as many at once as there are cores.

    When one fails the others are stopped: everything that they need to go on later is on disk.

    Args:
        lock: file descriptor that the processes inherit (``stages.exclusive``).

    Raises:
        StageError: a job failed; names its log.
    """
    display = Display([job.title for job in jobs])
    waiting = list(enumerate(jobs))
    running: dict[int, subprocess.Popen] = {}
    try:
        while waiting or running:
            while waiting and len(running) < max(1, cores()):
                number, job = waiting.pop(0)
                running[number] = _start(job, lock)
            time.sleep(0.5)
            for number, process in list(running.items()):
                status = process.poll()
                display.show(number, jobs[number].state(), last=status is not None)
                if status is None:
                    continue
                del running[number]
                if status:
                    job = jobs[number]
                    raise StageError(f"{Path(job.command[0]).name} failed: see {job.log}")
    finally:
        for process in running.values():
            process.terminate()
        for process in running.values():
            process.wait()
        display.close()


def _start(job: Job, lock: int) -> subprocess.Popen:
    with ExitStack() as files:
        log = files.enter_context(open(job.log, "a", encoding="utf-8"))
        log.write(f"$ cd {shlex.quote(str(job.folder))} && {shlex.join(job.command)}\n")
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
            env=environment(),
            pass_fds=[lock],
            preexec_fn=_end_with_parent if sys.platform == "linux" else None,
        )


def _end_with_parent() -> None:
    """Linux ends this process when its parent dies, even by kill -9: nothing trains unseen."""
    ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGTERM)
    # Ctrl-C reaches the whole terminal group; the parent alone decides what to do then.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
