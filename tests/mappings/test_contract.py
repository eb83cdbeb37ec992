"""The edge-case contract: one table of situations, the same for every mapping.

What a batch must give is derived row by row: the positions that take part are handed to
the oracle as a row of their own, everything else is exactly zero. The gradient must be
that of those rows alone.
"""

from dataclasses import dataclass
from typing import Callable, Optional, Tuple

import numpy as np
import pytest
import torch

from .cases import ALL, WITH_OMEGA, ids

F64 = torch.float64
INF, NAN = float("inf"), float("nan")


def noise(*shape, scale=1.0, seed=0):
    generator = torch.Generator().manual_seed(seed)
    return scale * torch.randn(*shape, generator=generator, dtype=F64)


def with_values(scores, **places):
    """A copy with ``rIcJ=value`` written in."""
    scores = scores.clone()
    for place, value in places.items():
        row, column = place[1:].split("c")
        scores[int(row), int(column)] = value
    return scores


def mask_of(*rows):
    """``"..xx"``: x is masked."""
    return torch.tensor([[c == "x" for c in row] for row in rows])


def ramp(*shape):
    return torch.arange(np.prod(shape), dtype=F64).reshape(shape) / 10


@dataclass(frozen=True)
class Situation:
    name: str
    scores: torch.Tensor
    mask: Optional[torch.Tensor] = None
    dim: int = -1
    view: Callable[[torch.Tensor], torch.Tensor] = lambda t: t

    def mask_like(self, scores):
        mask = torch.zeros((), dtype=torch.bool) if self.mask is None else self.mask
        return mask.expand(scores.shape) | (scores == -INF)

    def rows(self, scores) -> Tuple[torch.Tensor, torch.Tensor]:
        """(scores, ignored) as rows x length."""
        length = scores.size(self.dim)
        count = scores.numel() // length if length else 0
        pair = (scores, self.mask_like(scores))
        return tuple(t.movedim(self.dim, -1).reshape(count, length) for t in pair)


MASK = mask_of("......", "....xx", "xx....", ".x.x..")
BAD_MASKED = with_values(noise(4, 6), r1c4=NAN, r1c5=INF, r2c0=-INF, r2c1=NAN, r3c1=INF, r3c3=1e300)
ONE_ALIVE = mask_of("xxxxxx", "xx.xxx", "xxxxxx", "......")

SITUATIONS = [
    Situation("plain", noise(4, 6)),
    Situation("one dimension", noise(6)),
    Situation("masked", noise(4, 6), MASK),
    Situation("masked nan and inf", BAD_MASKED, MASK),
    Situation("mask of one row", noise(4, 6), MASK[3]),
    Situation("mask of one column", noise(4, 6), mask_of(".", "x", ".", ".")),
    Situation("mask expanded", noise(4, 6), MASK[2:3].expand(4, 6)),
    Situation("mask nothing", noise(4, 6), torch.zeros(4, 6, dtype=torch.bool)),
    Situation("minus inf", with_values(noise(4, 6), r0c0=-INF, r2c3=-INF, r2c5=-INF)),
    Situation("minus inf and masked", with_values(noise(4, 6), r1c0=-INF, r3c1=-INF), MASK),
    Situation("rows fully masked", noise(4, 6), ONE_ALIVE),
    Situation("nan in a fully masked row", with_values(noise(4, 6), r0c2=NAN), ONE_ALIVE),
    Situation("everything masked", noise(4, 6), torch.ones((), dtype=torch.bool)),
    Situation("row of minus inf", torch.stack([noise(6), torch.full((6,), -INF, dtype=F64)])),
    Situation("nan", with_values(noise(4, 6), r1c2=NAN)),
    Situation("nan first and last", with_values(noise(4, 6), r0c0=NAN, r3c5=NAN)),
    Situation("row of nan", torch.stack([torch.full((6,), NAN, dtype=F64), noise(6)])),
    Situation("nan and masked", with_values(noise(4, 6), r1c2=NAN, r3c0=NAN), MASK),
    Situation("plus inf", with_values(noise(4, 6), r2c1=INF)),
    Situation("two plus inf", with_values(noise(4, 6), r0c1=INF, r0c4=INF)),
    Situation("plus and minus inf", with_values(noise(4, 6), r0c1=INF, r0c2=-INF)),
    Situation("row of plus inf", torch.stack([torch.full((6,), INF, dtype=F64), noise(6)])),
    Situation("nan and inf", with_values(noise(4, 6), r0c1=INF, r0c2=NAN, r0c3=-INF)),
    Situation("length one", noise(4, 1)),
    Situation("length one, some masked", noise(4, 1), mask_of(".", "x", ".", "x")),
    Situation("length two", noise(4, 2), mask_of("..", ".x", "x.", "xx")),
    Situation("length zero", noise(4, 0)),
    Situation("length zero, masked", noise(4, 0), torch.zeros(4, 0, dtype=torch.bool)),
    Situation("one dimension of length zero", noise(0)),
    Situation("empty batch", noise(0, 6), torch.zeros(0, 6, dtype=torch.bool)),
    Situation("empty batch of length zero", noise(2, 0, 0)),
    Situation("all tied", torch.ones(4, 6, dtype=F64), MASK),
    Situation("all zero", torch.zeros(4, 6, dtype=F64), MASK),
    Situation("signed zeros", with_values(torch.zeros(2, 6, dtype=F64), r0c0=-0.0, r1c4=-0.0)),
    Situation("ties", noise(4, 6).mul(2).round() / 2, MASK),
    Situation("opposite ties", torch.tensor([[1.0, -1, 0, 0.5, -0.5, 0]], dtype=F64) / 4),
    Situation("steps", ramp(4, 6), MASK),
    Situation("steps down", -ramp(4, 6), MASK),
    Situation("magnitude 1e6", noise(4, 6, scale=1e6), MASK),
    Situation("magnitude 1e6, close", 1e6 + noise(4, 6, scale=0.3).mul(64).round() / 64, MASK),
    Situation("magnitude -1e6, close", -1e6 + noise(4, 6, scale=0.3).mul(64).round() / 64, MASK),
    Situation("magnitude 1e-6", noise(4, 6, scale=1e-6), MASK),
    Situation("both magnitudes", with_values(noise(4, 6, scale=1e-6), r0c2=1e6, r1c3=-1e6)),
    Situation("subnormal", noise(4, 6, scale=1e-310), MASK),
    Situation("lowest finite as padding", with_values(noise(2, 6), r0c5=-1e30, r1c0=-1e30)),
    Situation("dim 0", noise(6, 4), MASK.T, dim=0),
    Situation("dim 1", noise(2, 6, 2), MASK.reshape(2, 2, 6).transpose(1, 2), dim=1),
    Situation("dim -2", noise(2, 6, 3, seed=4), dim=-2),
    Situation("dim 0 of three", noise(6, 2, 3, seed=5), dim=0),
    Situation("four dimensions", noise(2, 3, 2, 5), noise(2, 1, 1, 5, seed=1) > 1.0),
    Situation("transposed", noise(6, 4), MASK, view=lambda t: t.t()),
    Situation("strided", noise(8, 12), MASK, view=lambda t: t[::2, 1::2]),
    Situation("flipped", noise(4, 6), MASK, view=lambda t: t.flip(1)),
    Situation("expanded", noise(1, 6), MASK, view=lambda t: t.expand(4, 6)),
    Situation("expanded length", noise(4, 1), MASK, view=lambda t: t.expand(4, 6)),
    Situation("long", noise(2, 700)),
]
CASES = [
    pytest.param(case, situation, id=f"{case.name}-{situation.name}")
    for case in ALL
    for situation in SITUATIONS
]


def taking_part(situation, scores):
    """(row, places of its scores that take part, whether those are all numbers)."""
    matrix, ignored = situation.rows(scores)
    for row, (x, gone) in enumerate(zip(matrix, ignored)):
        kept = (~gone).nonzero().squeeze(-1)
        yield row, kept, bool(torch.isfinite(x[kept]).all())


def as_rows(situation, tensor):
    return situation.rows(tensor)[0]


@pytest.mark.parametrize(("case", "situation"), CASES)
def test_forward(case, situation):
    leaf = situation.scores.clone()
    scores = situation.view(leaf)
    setting = {name: values[0] for name, values in case.params.items()}
    weights = case(scores, situation.dim, padding_mask=situation.mask, **setting)
    assert weights.shape == scores.shape
    assert weights.dtype == scores.dtype
    assert torch.equal(leaf.nan_to_num(7), situation.scores.nan_to_num(7)), "scores changed"
    found = as_rows(situation, weights)
    matrix = as_rows(situation, scores)
    for row, kept, finite in taking_part(situation, scores):
        expected = torch.zeros(matrix.size(1), dtype=F64)
        if len(kept):
            expected[kept] = case.expected(matrix[row, kept], **setting) if finite else NAN
        torch.testing.assert_close(found[row], expected, rtol=0, atol=1e-8, equal_nan=True)
        gone = torch.ones_like(expected, dtype=torch.bool)
        gone[kept] = False
        assert (found[row][gone] == 0).all()


@pytest.mark.parametrize(("case", "situation"), CASES)
def test_backward(case, situation):
    leaf = situation.scores.clone().requires_grad_()
    scores = situation.view(leaf)
    setting = {"gamma": 0.8, **{name: values[0] for name, values in case.params.items()}}
    tensors = {k: torch.tensor(v, dtype=F64, requires_grad=True) for k, v in setting.items()}
    weights = case(scores, situation.dim, padding_mask=situation.mask, **tensors)
    upstream = noise(*weights.shape, seed=11)
    inputs = [scores, leaf, *tensors.values()]
    grad, at_leaf, *to_params = torch.autograd.grad(weights, inputs, upstream, create_graph=True)
    assert at_leaf.shape == leaf.shape
    found, above = as_rows(situation, grad.detach()), as_rows(situation, upstream)
    matrix = as_rows(situation, scores.detach())
    finite_rows = True
    for row, kept, finite in taking_part(situation, scores):
        gone = torch.ones(matrix.size(1), dtype=torch.bool)
        gone[kept] = False
        assert (found[row][gone] == 0).all()
        finite_rows &= finite
        if not finite:
            continue
        alone = matrix[row, kept].clone().requires_grad_()
        (expected,) = torch.autograd.grad(case(alone, **setting), alone, above[row, kept])
        assert torch.isfinite(expected).all()
        torch.testing.assert_close(found[row, kept], expected, rtol=1e-7, atol=1e-9)
        if case.shift_invariant:
            assert found[row].sum().abs() < 1e-8 * max(1, found[row].abs().max())
    for parameter in to_params:
        assert parameter.shape == ()
        assert not finite_rows or torch.isfinite(parameter)
    # double backward runs, and stays where the first one was
    twice = torch.autograd.grad(
        (grad * noise(*grad.shape, seed=12)).sum(), [scores, *tensors.values()], allow_unused=True
    )
    if twice[0] is not None:
        second = as_rows(situation, twice[0])
        for row, kept, finite in taking_part(situation, scores):
            gone = torch.ones(matrix.size(1), dtype=torch.bool)
            gone[kept] = False
            assert (second[row][gone] == 0).all()
            assert not finite or torch.isfinite(second[row]).all()


@pytest.mark.parametrize(
    ("case", "situation"),
    [p for p in CASES if p.values[0] in WITH_OMEGA],
)
def test_value(case, situation):
    """max_Omega of each row, 0 where nothing takes part; its gradient is the weights."""
    leaf = situation.scores.clone().requires_grad_()
    scores = situation.view(leaf)
    setting = {name: values[0] for name, values in case.params.items()}
    mask, dim = situation.mask, situation.dim
    value = case.value(scores, dim, padding_mask=mask, **setting)
    shape = list(scores.shape)
    del shape[dim]
    assert list(value.shape) == shape
    (grad,) = torch.autograd.grad(value.sum(), scores)
    weights = as_rows(situation, case(scores, dim, padding_mask=mask, **setting))
    found = value.reshape(-1)
    if scores.size(dim) == 0:
        assert (found == 0).all()
    for row, kept, finite in taking_part(situation, scores):
        if not len(kept):
            assert found[row] == 0
        elif finite:
            x = as_rows(situation, scores)[row, kept].detach().numpy()
            y = case.oracle(x, **setting)
            expected = x @ y - case.omega(y, **setting)
            assert found[row].item() == pytest.approx(expected, rel=1e-9, abs=1e-9)
        else:
            assert found[row].isnan()
            continue
        torch.testing.assert_close(as_rows(situation, grad)[row], weights[row], rtol=0, atol=1e-8)


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16], ids=str)
@pytest.mark.parametrize("case", ALL, ids=ids)
def test_half_precision(case, dtype):
    """Computed in float32 and returned in kind, forward and backward."""
    setting = {name: values[0] for name, values in case.params.items()}
    scores = noise(4, 6).to(dtype).requires_grad_()
    wide = scores.detach().float().requires_grad_()
    weights = case(scores, padding_mask=MASK, gamma=0.8, **setting)
    expected = case(wide, padding_mask=MASK, gamma=0.8, **setting)
    assert weights.dtype == dtype
    assert torch.equal(weights, expected.to(dtype))
    upstream = noise(4, 6, seed=1).to(dtype)
    (grad,) = torch.autograd.grad(weights, scores, upstream)
    (expected,) = torch.autograd.grad(expected, wide, upstream.float())
    assert grad.dtype == dtype
    assert torch.equal(grad, expected.to(dtype))
    assert (grad[MASK] == 0).all()
    assert grad.abs().max() > 0


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float32], ids=str)
@pytest.mark.parametrize("case", ALL, ids=ids)
def test_lowest_finite_score(case, dtype):
    """Scores at the ends of the dtype's range overflow nothing."""
    low, high = torch.finfo(dtype).min, torch.finfo(dtype).max
    scores = torch.tensor([[0.0, low, 1.0], [high, 0.0, low], [low, low, low]], dtype=dtype)
    weights = case(scores.requires_grad_())
    assert torch.isfinite(weights).all()
    torch.testing.assert_close(
        weights.float().sum(-1), torch.ones(3), rtol=0, atol=2 * torch.finfo(dtype).eps
    )
    (grad,) = torch.autograd.grad(weights[:, 0].sum(), scores)
    assert torch.isfinite(grad).all()


@pytest.mark.parametrize("case", ALL, ids=ids)
def test_parameter_gradients_skip_dead_rows(case):
    """A fully masked or empty row adds nothing, a masked NaN does not poison gamma."""
    scores = with_values(noise(4, 6), r1c4=NAN, r2c0=INF)
    mask = MASK.clone()
    mask[3] = True
    names = ("gamma", *case.params)
    values = [0.8, *(v[0] for v in case.params.values())]

    def grads(scores, mask):
        tensors = [torch.tensor(v, dtype=F64, requires_grad=True) for v in values]
        weights = case(scores, padding_mask=mask, **dict(zip(names, tensors)))
        return torch.autograd.grad((weights * noise(4, 6, seed=2)[: len(scores)]).sum(), tensors)

    for found, expected in zip(grads(scores, mask), grads(noise(4, 6)[:3], MASK[:3])):
        torch.testing.assert_close(found, expected)
        assert expected.abs() > 1e-6


@pytest.mark.parametrize("case", ALL, ids=ids)
def test_no_gradient_needed(case):
    """Works under no_grad and inference_mode, and does not ask for a graph."""
    with torch.inference_mode():
        assert not case(noise(2, 3)).requires_grad
    with torch.no_grad():
        assert not case(noise(2, 3).requires_grad_()).requires_grad
    assert case(noise(2, 3).requires_grad_()).requires_grad
