"""Large batches are shared among threads, and callers may be threads or forks themselves."""

import os
import signal
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest
import torch

from fairseq_regattn.mappings import _kernels, fusedmax

from .cases import ALL, ids

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture
def threads():
    """Two torch threads, and a batch just large enough for them."""
    before = torch.get_num_threads()
    torch.set_num_threads(2)
    yield 2
    torch.set_num_threads(before)


def scores_for_threads():
    return torch.randn(
        _kernels.PARALLEL_FROM // 32 + 1, 32, generator=torch.Generator().manual_seed(5)
    )


def results(case, scores):
    """Weights and gradients, one parameter a row."""
    scores = scores.clone().requires_grad_()
    gamma = torch.linspace(0.5, 2, len(scores)).unsqueeze(1).requires_grad_()
    weights = case(scores, gamma=gamma, padding_mask=torch.arange(32) > 27)
    return weights, *torch.autograd.grad(weights, (scores, gamma), scores.detach())


@pytest.mark.parametrize("case", ALL, ids=ids)
def test_threads_change_nothing(case, threads, monkeypatch):
    scores = scores_for_threads()
    used = []
    pool = _kernels._pool()

    class Counted:
        def submit(self, *task):
            used.append(task)
            return pool.submit(*task)

    monkeypatch.setattr(_kernels, "_pool", Counted)
    found = results(case, scores)
    assert used or case.name == "softmax"
    used.clear()
    torch.set_num_threads(1)
    for one, other in zip(found, results(case, scores)):
        assert torch.equal(one, other)
    torch.set_num_threads(threads)
    small = scores[:-2]  # below the crossover
    results(case, small)
    assert not used


def test_callers_in_threads(threads):
    """Scratch is each thread's own; the lock of Python is let go inside a kernel."""
    batches = [scores_for_threads() + shift for shift in range(8)] + [torch.randn(3, 5)] * 8
    jobs = [(case, scores) for scores in batches for case in ALL]
    with ThreadPoolExecutor(4) as pool:
        found = list(pool.map(lambda job: job[0](job[1]), jobs))
    for (case, scores), weights in zip(jobs, found):
        assert torch.equal(weights, case(scores))


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system does not fork")
@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_a_fork_has_threads_of_its_own(threads):
    """A child would wait for ever for its parent's threads (torch's own it must not ask for)."""
    scores = scores_for_threads()
    expected = fusedmax(scores).numpy()  # the pool is there now
    child = os.fork()
    if child == 0:
        signal.alarm(60)
        code = 1
        try:
            code = 0 if np.array_equal(fusedmax(scores).numpy(), expected) else 2
        finally:
            os._exit(code)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0


def test_scratch_is_reused_and_not_hoarded():
    _kernels._local.__dict__.clear()
    first = _kernels._scratch(100, 50)
    assert _kernels._scratch(60, 50) is first
    larger = _kernels._scratch(200, 50)
    assert larger is not first
    assert _kernels._scratch(150, 40) is larger
    huge = _kernels._scratch(_kernels._KEEP + 1, 50)
    assert huge[0].size > _kernels._KEEP
    assert _kernels._scratch(150, 40) is larger


@pytest.mark.parametrize("case", [case for case in ALL if case.name != "softmax"], ids=ids)
def test_a_row_too_long_for_the_kept_scratch(case, threads):
    """Its scratch lives as long as the kernel runs: memory given back would crash here."""
    scores = torch.zeros(2, _kernels._KEEP + 1)
    scores[:, 7:9] = 3.0
    scores[1, 7] = -3.0
    setting = {"lam": 0.0} if "lam" in case.params else {}
    short = case(scores[:, :20], **setting)
    for count in (threads, 1):
        torch.set_num_threads(count)
        weights = case(scores, **setting)
        torch.testing.assert_close(weights[:, :20], short, rtol=0, atol=1e-6)


INTERRUPTED = """
import os, signal, threading, time, torch
from fairseq_regattn.mappings import oscarmax
torch.set_num_threads(2)
scores = torch.randn(200, 20_000) * 1e-3
scores[:100] = -float("inf")  # this thread's part is over at once: the signal finds it waiting
for _ in range(2):  # compiled, then timed
    start = time.time()
    oscarmax(scores)
    long = time.time() - start
stop = lambda: (time.sleep(long / 5), os.kill(os.getpid(), signal.SIGINT))
threading.Thread(target=stop).start()
try:
    oscarmax(scores)
    time.sleep(long)
except KeyboardInterrupt:
    pass
others = [torch.full(scores.shape, 7.0) for _ in range(4)]
time.sleep(2 * long)
print([int((other != 7).sum()) for other in others])
"""


def test_an_interrupted_call_writes_to_nobody(run_python):
    """Threads that still run keep the memory they write to."""
    assert run_python("-c", INTERRUPTED, path=[ROOT]).stdout == "[0, 0, 0, 0]\n"


def test_a_failing_thread_fails_the_call(threads, monkeypatch):
    """After all others have ended."""
    here, scratch = threading.get_ident(), _kernels._scratch
    arrived, running = [], []

    def fail_elsewhere(*sizes):
        if threading.get_ident() == here:
            return scratch(*sizes)
        arrived.append(1)
        running.append(1)
        try:
            time.sleep(0.5 * (len(arrived) > 1))  # all but the first
            raise MemoryError
        finally:
            running.pop()

    monkeypatch.setattr(_kernels, "_scratch", fail_elsewhere)
    torch.set_num_threads(4)
    with pytest.raises(MemoryError):
        fusedmax(scores_for_threads())
    assert not running


def test_no_new_threads_when_python_ends(run_python):
    code = """
import atexit, torch
from fairseq_regattn.mappings import fusedmax
torch.set_num_threads(2)
scores = torch.randn(3000, 50)
before = fusedmax(scores)
atexit.register(lambda: print(bool((fusedmax(scores) == before).all())))
"""
    assert run_python("-c", code, path=[ROOT]).stdout == "True\n"


@pytest.mark.parametrize("variable", ["NUMBA_DISABLE_JIT", "NUMBA_ENABLE_CUDASIM"])
def test_without_compiling(run_python, monkeypatch, variable):
    """For debuggers: the same results, slowly."""
    code = """
import torch
from fairseq_regattn.mappings import MAPPINGS
scores = torch.tensor([[0.2, 1.1, 1.0, -0.5, 0.9]], requires_grad=True)
for mapping in MAPPINGS.values():
    weights = mapping.function(scores, gamma=0.5)
    grad, = torch.autograd.grad(weights[0, 1], scores)
    print([round(x, 5) for x in (weights + grad)[0].tolist()])
"""
    expected = run_python("-c", code, path=[ROOT]).stdout
    monkeypatch.setenv(variable, "1")
    assert run_python("-c", code, path=[ROOT]).stdout == expected
