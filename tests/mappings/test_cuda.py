"""The CUDA kernels: simulated everywhere, compiled where NVVM is, run where a GPU is."""

import os
import subprocess
import sys
import warnings
from pathlib import Path
from types import SimpleNamespace

import numba
import pytest
import torch

from fairseq_regattn.mappings import _kernels
from fairseq_regattn.mappings._kernels import KERNELS

from .cases import ALL, ids
from .simulated import answer

INF, NAN = float("inf"), float("nan")
ROOT = Path(__file__).resolve().parents[2]
LENGTH = 9


def rows(dtype):
    """Random, tied, constant, sorted, huge, tiny and impossible rows, and masks for them."""
    generator = torch.Generator().manual_seed(3)
    noise = torch.randn(40, LENGTH, generator=generator, dtype=torch.float64)
    noise[8:16] = noise[8:16].mul(2).round() / 2  # ties
    noise[16] = 0.25
    noise[17] = noise[17].sort().values
    noise[18] = noise[18].sort(descending=True).values
    noise[19] *= 1e6
    noise[20] *= 1e-6
    noise[21, 4] = 1e30
    noise[22, 4] = -1e30
    noise[23] = noise[23] / 10 + 1e6
    noise[24, ::2] = -INF
    noise[25] = -INF
    noise[26, 3] = NAN
    noise[27, 0] = INF
    noise[28, :] = torch.finfo(dtype).max
    noise[29, 3] = torch.finfo(dtype).min
    mask = torch.rand(40, LENGTH, generator=generator) < 0.3
    mask[:8] = False
    mask[30] = True
    mask[31, 1:] = True
    return noise.to(dtype), mask


def questions(case, dtype):
    scores, mask = rows(dtype)
    upstream = torch.linspace(-1, 2, scores.numel()).reshape(scores.shape).to(dtype)
    made = []
    for settings in ({}, {name: values[-1] for name, values in case.params.items()}):
        params = {"gamma": 0.8, **{n: v[0] for n, v in case.params.items()}, **settings}
        made.append({"params": params, "mask": None})
        wiggle = 1 - 0.005 * torch.arange(len(scores), dtype=dtype).unsqueeze(1)
        least = {"p": 1, "alpha": 1}
        one_a_row = {n: least.get(n, 0) + (v - least.get(n, 0)) * wiggle for n, v in params.items()}
        made.append({"params": one_a_row, "mask": mask})
    common = {"mapping": case.name, "scores": scores, "upstream": upstream}
    short = {**common, "scores": scores[:, :1], "upstream": upstream[:, :1], "mask": mask[:, :1]}
    return [*({**common, **q} for q in made), {**short, "params": {"gamma": 1.0}}]


@pytest.fixture(scope="module")
def simulated(tmp_path_factory):
    """Every question of every mapping, answered by the CUDA kernels in the simulator."""
    asked = {(case.name, d): questions(case, d) for case in ALL for d in DTYPES}
    folder = tmp_path_factory.mktemp("simulated")
    torch.save([q for qs in asked.values() for q in qs], folder / "asked")
    subprocess.run(
        [
            sys.executable,
            Path(__file__).with_name("simulated.py"),
            folder / "asked",
            folder / "told",
        ],
        env={**os.environ, "NUMBA_ENABLE_CUDASIM": "1", "PYTHONPATH": str(ROOT)},
        check=True,
    )
    told = torch.load(folder / "told")
    answers = iter(told["answers"])
    return {key: [(q, next(answers)) for q in qs] for key, qs in asked.items()}, told["launches"]


DTYPES = (torch.float32, torch.float64)
TOLERANCE = {torch.float32: 1e-6, torch.float64: 1e-12}


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize("case", ALL, ids=ids)
def test_simulated_kernels_agree_with_the_cpu(simulated, case, dtype):
    pairs = simulated[0][case.name, dtype]
    assert len(pairs) == 5
    for question, found in pairs:
        expected = answer(question)
        assert found.keys() == expected.keys()
        for name, tensor in expected.items():
            assert tensor.dtype == dtype
            scale = tensor.nan_to_num(0, 0, 0).abs().amax().clamp(min=1)
            torch.testing.assert_close(
                found[name] / scale,
                tensor / scale,
                rtol=0,
                atol=TOLERANCE[dtype],
                equal_nan=True,
                msg=lambda text, name=name: f"{name}: {text}",
            )


def test_every_kernel_was_simulated(simulated):
    assert simulated[1] == sorted(KERNELS)


@pytest.mark.parametrize("name", sorted(KERNELS))
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_kernels_compile_for_cuda(name, dtype, monkeypatch):
    """To PTX, which needs NVVM but no GPU."""
    pytest.importorskip("numba_cuda", reason="numba-cuda is not installed")
    from numba import cuda, types
    from numba.cuda import dispatcher

    device = SimpleNamespace(compute_capability=(8, 0))
    monkeypatch.setattr(dispatcher, "get_current_device", lambda: device)
    kernel = KERNELS[name]
    real, matrix = getattr(types, dtype), lambda kind: types.Array(kind, 2, "C")
    side = types.boolean if kernel.side == torch.bool else types.int32
    column = types.Array(types.float64, 1, "C")
    signature = (
        *(matrix(real), matrix(side), column, column, matrix(types.float64), matrix(types.int32)),
        *(matrix(real), matrix(types.int32), matrix(real)),
    )
    ptx, _ = cuda.compile_ptx(kernel.cuda.py_func, signature, cc=(8, 0))
    assert ".visible .entry" in ptx
    assert name in ptx


def test_cuda_tensors_go_through_the_host_without_numba_cuda(monkeypatch):
    """With a warning, once, that says why; here the tensors only claim to be on CUDA."""
    _kernels.cuda_problem.cache_clear()
    monkeypatch.setitem(sys.modules, "numba.cuda", None)
    monkeypatch.delattr(numba, "cuda", raising=False)
    with pytest.warns(RuntimeWarning, match="fairseq_regattn doctor"):
        assert "numba.cuda" in _kernels.cuda_problem()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert _kernels.cuda_problem()
    _kernels.cuda_problem.cache_clear()
    scores, mask = rows(torch.float64)
    out, labels = torch.empty_like(scores), torch.empty(scores.shape, dtype=torch.int32)
    kernel = KERNELS["fusedmax_row"]
    _kernels._through_host(kernel, scores, mask, 1.0, 0.1, out, labels, None)
    expected, groups = torch.empty_like(out), torch.empty_like(labels)
    kernel(scores, mask, 1.0, 0.1, expected, groups)
    torch.testing.assert_close(out, expected, rtol=0, atol=0, equal_nan=True)
    assert torch.equal(labels, groups)


gpu = pytest.mark.gpu
no_gpu = pytest.mark.skipif(not torch.cuda.is_available(), reason="no CUDA device")


def ask_on(device, question):
    """As `answer`, on a device, and back."""
    moved = {k: v.to(device) if isinstance(v, torch.Tensor) else v for k, v in question.items()}
    moved["params"] = {
        name: torch.as_tensor(v, dtype=question["scores"].dtype).to(device)
        for name, v in question["params"].items()
    }
    return {name: tensor.cpu() for name, tensor in answer(moved).items()}


@gpu
@no_gpu
@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize("case", ALL, ids=ids)
def test_gpu_agrees_with_the_cpu(case, dtype):
    assert _kernels.cuda_problem() is None
    for question in questions(case, dtype):
        expected = answer(question)
        for name, found in ask_on("cuda", question).items():
            scale = expected[name].nan_to_num(0, 0, 0).abs().amax().clamp(min=1)
            found, wanted = found / scale, expected[name] / scale
            atol = TOLERANCE[dtype]
            torch.testing.assert_close(found, wanted, rtol=0, atol=atol, equal_nan=True)


@gpu
@no_gpu
@pytest.mark.parametrize("case", ALL, ids=ids)
def test_gpu_never_waits(case):
    """Forward and backward on a stream of one's own, and nothing is copied to the host."""
    scores = torch.randn(70, 50, device="cuda", requires_grad=True)
    mask = torch.arange(50, device="cuda") > torch.randint(10, 50, (70, 1), device="cuda")
    gamma = torch.ones(70, 1, device="cuda", requires_grad=True)
    case(scores, padding_mask=mask, gamma=gamma).sum().backward()  # compiles
    expected = case(scores.detach().cpu(), padding_mask=mask.cpu())
    stream = torch.cuda.Stream()
    stream.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(stream):
        torch.cuda.set_sync_debug_mode("error")
        try:
            weights = case(scores, padding_mask=mask, gamma=gamma)
            weights.square().sum().backward()
        finally:
            torch.cuda.set_sync_debug_mode("default")
    stream.synchronize()
    torch.testing.assert_close(weights.detach().cpu(), expected, rtol=0, atol=1e-6)


@gpu
@no_gpu
@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16], ids=str)
@pytest.mark.parametrize("case", ALL, ids=ids)
def test_gpu_half_precision(case, dtype):
    scores = torch.randn(70, 50, device="cuda").to(dtype)
    found = case(scores)
    assert found.dtype == dtype
    torch.testing.assert_close(found.cpu(), case(scores.cpu()), rtol=0, atol=2e-3)


@gpu
@no_gpu
@pytest.mark.parametrize("case", ALL, ids=ids)
def test_gpu_parameter_out_of_range_is_nan(case):
    """Looking at it would stall the device; on the CPU it is refused by name."""
    gamma = torch.tensor([[1.0], [-1.0]], device="cuda")
    weights = case(torch.randn(2, 5, device="cuda"), gamma=gamma)
    assert torch.isfinite(weights[0]).all()
    assert weights[1].isnan().all()
