"""Gradients gathered over all steps are those of plain autograd, which gathers them one by one."""

import weakref

import pytest
import torch

from fairseq_regattn.models import lstm_decoder, packed_lstm
from fairseq_regattn.models.stepwise import StepwiseLinear

from . import toy
from .test_options import DEEP, SHARED, loss, make

SIZES = [3, 3, 2, 1]
WIDE = {"encoder_hidden_size": 8}  # no bridge between encoder and decoder
VARIANTS = {
    "one-layer": {},
    "three-layers": {"encoder_layers": 3, "decoder_layers": 3, **WIDE},
    "bidirectional": DEEP,
    "no-input-feeding": {"no_input_feeding": True, **DEEP},
    "shared": SHARED,
    "output-shared": {"share_decoder_input_output_embed": True, "decoder_out_embed_dim": 7},
    "frozen": {"decoder_freeze_embed": True, "encoder_freeze_embed": True, **WIDE},
    "mlp": {"attention_score": "mlp", "decoder_out_embed_dim": 8},
}


class Plain:
    """`StepwiseLinear` without its gradients."""

    def __init__(self, starts, sizes, *weights):
        self.starts = starts.split(sizes)
        self.weights = weights

    def __call__(self, step, *inputs):
        return self.starts[step] + sum(x @ w.t() for x, w in zip(inputs, self.weights))


def problem():
    torch.manual_seed(0)
    sizes = {"starts": (sum(SIZES), 4), "first": (3, 2), "weight": (4, 4), "other": (4, 2)}
    return {
        name: torch.randn(*size, dtype=torch.float64, requires_grad=True)
        for name, size in sizes.items()
    }


def recur(linear, starts, first, weight, other, steps=(0, 1, 2, 3)):
    """A recurrence over steps of fewer and fewer rows; the sum of what the `steps` say."""
    product = linear(starts, SIZES, weight, other)
    hidden = starts[:3]
    said = []
    for step, size in enumerate(SIZES):
        hidden = torch.tanh(product(step, hidden[:size], first[:size] * (step + 1)))
        said.append(hidden.sum())
    return sum(said[step] for step in steps)


@pytest.mark.parametrize("frozen", [(), ("weight",), ("starts", "first"), ("weight", "other")])
@pytest.mark.parametrize("steps", [[0, 1, 2, 3], [3], [0, 2]], ids=str)
def test_of_a_recurrence(steps, frozen):
    gradients = []
    for linear in (StepwiseLinear, Plain):
        given = problem()
        for name in frozen:
            given[name].requires_grad = False
        recur(linear, **given, steps=steps).backward()
        gradients.append({name: tensor.grad for name, tensor in given.items()})
    for name, expected in gradients[1].items():
        assert (expected is None) == (name in frozen)
        torch.testing.assert_close(gradients[0][name], expected, atol=1e-12, rtol=0)


@pytest.mark.parametrize("variant", VARIANTS)
def test_of_the_model(build, monkeypatch, variant):
    model = make(build, "fusedmax", **VARIANTS[variant])
    value = loss(model)
    value.backward()
    gradients = {name: p.grad for name, p in model.named_parameters()}
    model.zero_grad()
    for module in (lstm_decoder, packed_lstm):
        monkeypatch.setattr(module, "StepwiseLinear", Plain)
    expected = loss(model)
    expected.backward()
    torch.testing.assert_close(value, expected)
    for name, parameter in model.named_parameters():
        torch.testing.assert_close(gradients[name], parameter.grad, atol=1e-7, rtol=1e-6, msg=name)


def test_backward_twice_and_over_two_forwards():
    given = problem()
    once = torch.autograd.grad(recur(StepwiseLinear, **given), list(given.values()))
    first, second = recur(StepwiseLinear, **given), recur(StepwiseLinear, **given)
    first.backward(retain_graph=True)
    first.backward()
    second.backward()
    for tensor, gradient in zip(given.values(), once):
        torch.testing.assert_close(tensor.grad, 3 * gradient)


def test_a_second_derivative_is_refused():
    """Rather than one without the weights' share."""
    given = problem()
    inputs = list(given.values())
    (slope, *_) = torch.autograd.grad(recur(StepwiseLinear, **given), inputs, create_graph=True)
    with pytest.raises(RuntimeError, match="once_differentiable"):
        slope.sum().backward()


@pytest.mark.parametrize("backward", [True, False])
def test_nothing_outlives_the_graph(backward):
    """A graph that held itself would not even be found by the garbage collector."""
    given = problem()
    product = StepwiseLinear(given["starts"], [3, 6], given["weight"])
    total = product(1, product(0, given["starts"][:3]).repeat(2, 1)).sum()
    alive = weakref.ref(product.inputs[0][1])
    if backward:
        total.backward()
    del product, total
    assert alive() is None


@pytest.mark.parametrize("variant", ["bidirectional", "no-input-feeding"])
def test_under_autocast(build, variant):
    """What ``fairseq-train --amp`` does: parameters and gradients in float32."""
    model = build(sharp=False, **VARIANTS[variant]).float()
    loss(model).backward()
    exact = {name: p.grad for name, p in model.named_parameters()}
    model.zero_grad()
    with torch.autocast("cpu", torch.bfloat16):
        value = loss(model)
    value.backward()
    for name, parameter in model.named_parameters():
        assert parameter.grad.dtype == torch.float32
        error = (parameter.grad - exact[name]).norm() / exact[name].norm()
        assert error < 0.1, name


def test_in_inference_mode(build):
    model = build(**DEEP)
    tokens, lengths = toy.pad(toy.sentences([7, 3, 5]))
    previous = toy.shifted(toy.sentences([4, 6, 2], words=17))
    expected, _ = model(tokens, lengths, previous)
    with torch.inference_mode():
        torch.testing.assert_close(model(tokens, lengths, previous)[0], expected)
