"""How the row algorithms are compiled."""

import ctypes
import logging
import types
import warnings
import zlib
from pathlib import Path
from typing import Any, Callable

import numba
from numba.core import cgutils
from numba.extending import intrinsic

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

    Under numba's CUDA simulator, which can call nothing but Python, the function stays as it is.
    """
    if numba.config.ENABLE_CUDASIM:
        return function
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


def specialised(template: Callable, name: str, **names: Any) -> Callable:
    """A copy of `template` called `name`, in which the global `names` mean what is given.

    A function handed over as an argument or in a closure would never be found in numba's cache.
    """
    copy = types.FunctionType(template.__code__, {**template.__globals__, **names}, name)
    copy.__module__ = template.__module__
    copy.__qualname__ = f"{template.__qualname__}_{name}"
    return copy


@intrinsic
def _pointer(_typingctx, address):
    """An address as ``numba.carray`` wants it."""

    def generate(_context, builder, _signature, arguments):
        return builder.inttoptr(arguments[0], cgutils.voidptr_t)

    return numba.types.voidptr(address), generate


# What is not compiled can do it too, under NUMBA_DISABLE_JIT and in the CUDA simulator; there even
# an array of no entries must be somewhere.
pointer: Any = _pointer
if numba.config.DISABLE_JIT or numba.config.ENABLE_CUDASIM:
    _somewhere = ctypes.create_string_buffer(64)

    def pointer(address: int) -> ctypes.c_void_p:
        return ctypes.c_void_p(address or ctypes.addressof(_somewhere))
