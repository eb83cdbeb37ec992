"""What is finished has its final name; what is not, does not."""

from __future__ import annotations

import fcntl
import hashlib
import os
import shutil
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path

from fairseq_regattn.errors import UsageError


class StageError(Exception):
    """A stage could not be finished; the message is for the user."""


def partial_of(target: Path) -> Path:
    """Where a target is made until it is complete."""
    return target.with_name(target.name + ".partial")


def produce(target: Path, make: Callable[[Path], None]) -> bool:
    """Make a file or folder unless it is there, so that it is there only when complete.

    Args:
        target: what is wanted.
        make: writes it to the path that it is given, which does not exist yet but whose folder
            does. When it raises, or the machine dies, the rest is left there to look at, and is
            removed before the next try.

    Returns:
        whether it had to be made.
    """
    if target.exists():
        return False
    partial = partial_of(target)
    if partial.is_dir():
        shutil.rmtree(partial)
    else:
        partial.unlink(missing_ok=True)
    target.parent.mkdir(parents=True, exist_ok=True)
    make(partial)
    os.replace(partial, target)
    return True


def settings_key(*contents: bytes) -> str:
    """Short name of everything that results depend on: other settings, another folder."""
    digest = hashlib.sha256()
    for content in contents:
        digest.update(len(content).to_bytes(8, "big") + content)
    return digest.hexdigest()[:8]


def fingerprint(paths: Iterable[Path]) -> bytes:
    """Of the names and the contents of files."""
    digest = hashlib.sha256()
    for path in paths:
        digest.update(f"{path.name} {path.stat().st_size}\n".encode())
        with open(path, "rb") as file:
            while block := file.read(1 << 20):
                digest.update(block)
    return digest.digest()


@contextmanager
def exclusive(folder: Path) -> Iterator[int]:
    """Hold the folder for this process and the children that inherit the descriptor it yields.

    Children are included because they may live on for a moment when their parent is killed,
    and two trainings must never write to one folder.
    """
    folder.mkdir(parents=True, exist_ok=True)
    descriptor = os.open(folder / ".lock", os.O_RDWR | os.O_CREAT, 0o644)
    try:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise StageError(f"another process is at work in {folder}") from None
        yield descriptor
    finally:
        os.close(descriptor)


def check_file(target: Path) -> None:
    """
    Raises:
        UsageError: no file can be written there, because it is a folder.
    """
    if target.is_dir():
        raise UsageError(f"{target} is a folder, not a file to write")


@contextmanager
def written(target: Path) -> Iterator[Path]:
    """Where to write a file, whose folder is made; it gets its name when all is done.

    Raises:
        UsageError: as for `check_file`.
    """
    check_file(target)
    target.parent.mkdir(parents=True, exist_ok=True)
    yield partial_of(target)
    os.replace(partial_of(target), target)


def rewrite(target: Path, content: bytes) -> None:
    """Replace a file, or make it and its folder, so that nobody ever sees half of it.

    One that has this content already is left alone.

    Raises:
        UsageError: as for `check_file`.
    """
    check_file(target)
    if target.is_file() and target.read_bytes() == content:
        return
    target.parent.mkdir(parents=True, exist_ok=True)
    partial_of(target).write_bytes(content)
    os.replace(partial_of(target), target)
