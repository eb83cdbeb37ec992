"""Running a row function over a matrix: on the CPU, and from the same source on CUDA.

A row function is compiled by :func:`kernel` and called as ::

    row(scores, side, first, second, floats, ints, out, labels, slopes)

`scores` is one row. `side` goes with it: a mask, or labels. `first` and `second` are its
parameters, numbers. `floats` and `ints` are scratch, float64 and int32. It fills `out`, and
`labels` and `slopes` if it has a use for them. An array that is not there has fewer entries
than the row.
"""

import os
import threading
import warnings
from concurrent.futures import Future, ThreadPoolExecutor, wait
from functools import lru_cache
from typing import Any, Callable, Dict, List, Optional, Tuple

import numba
import numpy as np
import torch
from torch import Tensor

from fairseq_regattn.errors import ArgumentError
from fairseq_regattn.mappings._jit import jit, pointer, specialised
from fairseq_regattn.mappings._rows import Parameter

# From so many scores on, threads share the rows. Waking one takes 0.1 ms: on two cores, with rows
# of 50, fusedmax and oscarmax gain from 20,000 scores on, sparsemax from 100,000.
PARALLEL_FROM = 65_536
_KEEP = 1 << 20  # scratch beyond so many entries is not kept for the next call
_BLOCK = 64  # CUDA threads a block
_MOST_THREADS = 1 << 16  # CUDA threads, each with scratch of its own

KERNELS: Dict[str, "Kernel"] = {}


# Put into the loops by `specialised`: the row function, what it is for, and numba's cuda.
row: Any = None
dtype: Any = None
side_dtype: Any = None
FLOATS = INTS = 0
cuda: Any = None

# The CPU's arrays come as addresses: numba would count references to numpy's in every slice, and
# unpacking them costs as much as some rows do.


def _cpu_loop(
    start,
    stop,
    rows,
    length,
    scores,
    side,
    first,
    firsts,
    second,
    seconds,
    floats,
    ints,
    out,
    labels,
    slopes,
):
    all_of_it, nothing = (rows, length), (1, 0)
    scores_of = numba.carray(pointer(scores), all_of_it, dtype)
    side_of = numba.carray(pointer(side), all_of_it if side else nothing, side_dtype)
    firsts_of = numba.carray(pointer(firsts), rows if firsts else 0, np.float64)
    seconds_of = numba.carray(pointer(seconds), rows if seconds else 0, np.float64)
    floats_of = numba.carray(pointer(floats), FLOATS * length + 1, np.float64)
    ints_of = numba.carray(pointer(ints), INTS * length + 1, np.int32)
    out_of = numba.carray(pointer(out), all_of_it, dtype)
    labels_of = numba.carray(pointer(labels), all_of_it if labels else nothing, np.int32)
    slopes_of = numba.carray(pointer(slopes), all_of_it if slopes else nothing, dtype)
    for r in range(start, stop):
        row(
            scores_of[r],
            side_of[r if side else 0],
            firsts_of[r] if firsts else first,
            seconds_of[r] if seconds else second,
            floats_of,
            ints_of,
            out_of[r],
            labels_of[r if labels else 0],
            slopes_of[r if slopes else 0],
        )


def _cuda_loop(scores, side, firsts, seconds, floats, ints, out, labels, slopes):
    thread = cuda.grid(1)
    for r in range(thread, scores.shape[0], floats.shape[1]):
        row(
            scores[r],
            side[min(r, side.shape[0] - 1)],
            firsts[min(r, firsts.size - 1)],
            seconds[min(r, seconds.size - 1)],
            floats[:, thread],
            ints[:, thread],
            out[r],
            labels[min(r, labels.shape[0] - 1)],
            slopes[min(r, slopes.shape[0] - 1)],
        )


class Kernel:
    """A compiled row function with its loops over rows.

    Args:
        row: see the head of this file.
        floats, ints: scratch it needs, in rows' lengths; one entry more is always there.
        side: dtype of what goes with the scores.
    """

    def __init__(self, row: Callable, floats: int, ints: int, side: torch.dtype):
        self.name = row.__name__
        self.row = jit(row)
        self.floats = floats
        self.ints = ints
        self.side = side
        self.cpu = {
            torch.float32: self._for_cpu(np.float32),
            torch.float64: self._for_cpu(np.float64),
        }
        self._cuda: Any = None

    def _for_cpu(self, dtype: Any) -> Any:
        loop = specialised(
            _cpu_loop,
            f"{self.name}_{dtype.__name__}",
            row=self.row,
            dtype=dtype,
            side_dtype=np.bool_ if self.side == torch.bool else np.int32,
            FLOATS=self.floats,
            INTS=self.ints,
        )
        return jit(loop)

    @property
    def cuda(self) -> Any:
        """The CUDA kernel; numba compiles it when it is first launched."""
        if self._cuda is None:
            from numba import cuda

            loop = specialised(_cuda_loop, self.name, row=self.row, cuda=cuda)
            self._cuda = cuda.jit(loop)
        return self._cuda

    def __call__(
        self,
        scores: Tensor,
        side: Optional[Tensor],
        first: Parameter,
        second: Parameter,
        out: Tensor,
        labels: Optional[Tensor] = None,
        slopes: Optional[Tensor] = None,
    ) -> None:
        """Fill `out`, `labels` and `slopes`, all ``rows x length`` and contiguous."""
        if scores.is_cpu:
            _on_cpu(self, scores, side, first, second, out, labels, slopes)
        elif not scores.numel():
            return
        elif scores.is_cuda and cuda_problem() is None:
            on_cuda(self, scores, side, first, second, out, labels, slopes)
        else:
            _through_host(self, scores, side, first, second, out, labels, slopes)


def kernel(floats: int, ints: int, side: torch.dtype = torch.bool) -> Callable[[Callable], Kernel]:
    """Make a row function a :class:`Kernel`, known by its name in ``KERNELS``."""

    def make(row: Callable) -> Kernel:
        made = Kernel(row, floats, ints, side)
        KERNELS[made.name] = made
        return made

    return make


# --- CPU


def _on_cpu(kernel: Kernel, scores: Tensor, side, first, second, out: Tensor, labels, slopes):
    rows, length = scores.shape
    scores = scores.contiguous().resolve_neg()
    if side is not None:
        side = side.contiguous()
    firsts = seconds = None
    if isinstance(first, Tensor):
        first, firsts = 0.0, _column(first, rows)
    if isinstance(second, Tensor):
        second, seconds = 0.0, _column(second, rows)
    inputs = (
        rows,
        length,
        _address(scores),
        _address(side),
        first,
        _address(firsts),
        second,
        _address(seconds),
    )
    outputs = _address(out), _address(labels), _address(slopes)
    sizes = kernel.floats * length + 1, kernel.ints * length + 1
    loop = kernel.cpu[scores.dtype]
    if rows * length < PARALLEL_FROM or torch.get_num_threads() == 1:
        scratch = _scratch(*sizes)  # held until the loop is over
        loop(0, rows, *inputs, *scratch[2:], *outputs)
    else:
        used = scores, side, firsts, seconds, out, labels, slopes
        _in_threads(loop, rows, inputs, sizes, outputs, used)


def _in_threads(
    loop: Callable[..., None],
    rows: int,
    inputs: Tuple[Any, ...],
    sizes: Tuple[int, int],
    outputs: Tuple[int, int, int],
    used: Tuple[Optional[Tensor], ...],
) -> None:
    """As many equal parts as torch uses threads; this thread takes the first.

    Every part holds on to the tensors it uses: the caller may be interrupted and let go of them.
    """
    part = -(-rows // min(rows, torch.get_num_threads()))

    def work(start: int, used: Tuple[Optional[Tensor], ...] = used) -> None:
        scratch = _scratch(*sizes)
        loop(start, min(start + part, rows), *inputs, *scratch[2:], *outputs)

    others: List[Future] = []
    here = [0]
    try:
        for start in range(part, rows, part):
            try:
                others.append(_pool().submit(work, start))
            except RuntimeError:  # Python is on its way out, and starts no more threads
                here.append(start)
        for start in here:
            work(start)
    finally:
        wait(others)
    for other in others:
        other.result()


def _address(tensor: Optional[Tensor]) -> int:
    """Where the kernel finds the tensor; 0 where there is none."""
    if tensor is None:
        return 0
    address = tensor.data_ptr()
    if (not address and tensor.numel()) or not tensor.is_cpu:
        raise ArgumentError("device", tensor.device, "one device for all tensors, with memory")
    return address


def _column(value: Tensor, rows: int) -> Tensor:
    return value.detach().double().expand(rows, 1).contiguous().resolve_neg()


_local = threading.local()


def _scratch(floats: int, ints: int) -> Tuple[np.ndarray, np.ndarray, int, int]:
    """This thread's buffers, at least so large, and their addresses."""
    kept = getattr(_local, "scratch", None)
    if kept is not None and kept[0].size >= floats and kept[1].size >= ints:
        return kept
    words: Any = np.empty(floats)
    numbers: Any = np.empty(ints, np.int32)
    made = words, numbers, words.ctypes.data, numbers.ctypes.data
    if floats <= _KEEP:
        _local.scratch = made
    return made


@lru_cache(maxsize=1)
def _pool() -> ThreadPoolExecutor:
    return ThreadPoolExecutor(os.cpu_count(), "fairseq_regattn")


# A forked child inherits the pool's queue and none of its threads.
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_pool.cache_clear)


# --- CUDA


@lru_cache(maxsize=1)
def cuda_problem() -> Optional[str]:
    """None if numba can compile for this machine's GPU, else why not, warned of once."""
    try:
        from numba import cuda

        # small grids are what small batches are
        warnings.filterwarnings("ignore", "Grid size", numba.NumbaPerformanceWarning)
        cuda.jit(_nothing)[1, 1]()
        return None
    except Exception as error:  # no numba-cuda, no driver, no NVVM, versions that do not fit
        problem = f"{type(error).__name__}: {' '.join(str(error).split())[:300]}"
    warnings.warn(
        "numba cannot compile for this GPU, so every mapping but softmax copies CUDA tensors to"
        f" the host and back; see python -m fairseq_regattn doctor. {problem}",
        RuntimeWarning,
        stacklevel=2,
    )
    return problem


def _nothing():
    pass


def on_cuda(kernel: Kernel, scores: Tensor, side, first, second, out: Tensor, labels, slopes):
    """Launch on torch's current stream, a thread a row, and return at once."""
    rows, length = scores.shape
    device = scores.device
    threads = min(rows, _MOST_THREADS)
    # a column a thread, so that neighbouring threads touch neighbouring words
    floats = torch.empty(kernel.floats * length + 1, threads, dtype=torch.float64, device=device)
    ints = torch.empty(kernel.ints * length + 1, threads, dtype=torch.int32, device=device)
    arrays = (
        scores.detach().contiguous().resolve_neg(),
        _absent(kernel.side, device) if side is None else side.contiguous(),
        _column_on(device, first),
        _column_on(device, second),
        floats,
        ints,
        out,
        _absent(torch.int32, device) if labels is None else labels,
        _absent(scores.dtype, device) if slopes is None else slopes,
    )
    with torch.cuda.device_of(scores):
        grid = -(-threads // _BLOCK), _BLOCK, _stream(device)
        kernel.cuda[grid](*map(_device_array, arrays))


def _column_on(device: torch.device, value: Parameter) -> Tensor:
    if isinstance(value, Tensor):
        return value.detach().to(device, torch.float64).flatten()
    return torch.full((1,), value, dtype=torch.float64, device=device)  # no copy from the host


@lru_cache(maxsize=64)
def _absent(dtype: torch.dtype, device: torch.device) -> Tensor:
    """One entry, for numba has no views of nothing; False, so that a row of one may read it."""
    return torch.zeros(1, 1, dtype=dtype, device=device)


def _device_array(tensor: Tensor) -> Any:
    return tensor  # numba reads its __cuda_array_interface__


def _stream(device: torch.device) -> Any:
    from numba import cuda

    return cuda.external_stream(torch.cuda.current_stream(device).cuda_stream)


def _through_host(kernel: Kernel, *arguments: Any) -> None:
    """The CPU kernel for tensors elsewhere."""
    host = [a.detach().cpu() if isinstance(a, Tensor) else a for a in arguments]
    _on_cpu(kernel, *host)
    for out, result in zip(arguments[4:], host[4:]):
        if isinstance(out, Tensor):
            out.copy_(result)
