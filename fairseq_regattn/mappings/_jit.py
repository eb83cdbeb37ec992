"""How the row algorithms are compiled."""

import logging
import warnings
import zlib
from pathlib import Path
from typing import Any, Callable

import numba

# numba logs every instruction it compiles at DEBUG, and importing fairseq puts the root
# logger there: megabytes on stderr unless numba is told otherwise.
if logging.getLogger("numba").level == logging.NOTSET:
    logging.getLogger("numba").setLevel(logging.WARNING)

# `nogil` lets threads work on other rows; `error_model` drops Python's division checks.
_OPTIONS = {"nogil": True, "error_model": "numpy"}

_FINGERPRINT = zlib.crc32(
    b"".join(path.read_bytes() for path in sorted(Path(__file__).parent.glob("*.py")))
)


def jit(function: Callable) -> Any:
    """Compile with numba, machine code cached on disk.

    numba caches beside the source, else in the user's cache folder (or in
    ``NUMBA_CACHE_DIR``). Where none can be written the function is compiled anew in each
    process, and a warning says so once.

    numba would use a cached kernel until its own file changes, though it holds machine code
    of functions from other files; so the cache's name holds a fingerprint of all of them.
    """
    function.__qualname__ += f"_{_FINGERPRINT:08x}"
    try:
        return numba.njit(cache=True, **_OPTIONS)(function)
    except RuntimeError:  # numba: "cannot cache function ...: no locator available"
        warnings.warn(
            "numba finds no folder to cache compiled mappings in, so each process compiles them"
            " anew (seconds); set NUMBA_CACHE_DIR to a folder that can be written",
            RuntimeWarning,
            stacklevel=2,
        )
        return numba.njit(**_OPTIONS)(function)
