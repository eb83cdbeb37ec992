"""What a recurrence computes step by step, with the weights' gradients computed all at once."""

from typing import Any, List, Sequence, Tuple

import torch
from torch import Tensor
from torch.autograd import Function
from torch.autograd.function import once_differentiable


def lstm_step(gates: Tensor, cell: Tensor) -> Tuple[Tensor, Tensor]:
    """New hidden and cell from summed gates ``bsz x 4 hidden`` (torch's order: i, f, g, o)."""
    into, forget, candidate, out = gates.chunk(4, 1)
    cell = torch.sigmoid(forget) * cell + torch.sigmoid(into) * torch.tanh(candidate)
    return torch.sigmoid(out) * torch.tanh(cell), cell


class StepwiseLinear:
    """``start_t + sum_k inputs_tk weight_k'``, for inputs that are known only at step t.

    Plain autograd would add up one gradient a step for each weight: products too small to be
    fast, and one more pass over a matrix of the weight's size. Here the steps multiply by
    detached weights, and each weight's gradient is one product over all steps. Differentiable
    once.

    Args:
        starts: ``rows x out``, what the products are added to, step after step.
        sizes: how many rows each step has.
        weights: ``out x in_k`` each.
    """

    def __init__(self, starts: Tensor, sizes: Sequence[int], *weights: Tensor):
        self.inputs: List[List[Any]] = [[None] * len(sizes) for _ in weights]
        self.starts = _WeightGradients.apply(starts, self.inputs, *weights).split(sizes)
        self.transposed = [weight.detach().t() for weight in weights]

    def __call__(self, step: int, *inputs: Tensor) -> Tensor:
        """``size x in_k`` each -> ``size x out``; called once for each step, in any order."""
        total = self.starts[step]
        for given, values, weight in zip(inputs, self.inputs, self.transposed):
            total = torch.addmm(total, given, weight)
            values[step] = given.detach()
        return total


class _WeightGradients(Function):
    """The identity on ``starts``, whose gradient is that of every step's sum."""

    @staticmethod
    def forward(ctx: Any, starts: Tensor, inputs: List[List[Tensor]], *weights: Tensor) -> Tensor:
        ctx.inputs = inputs  # which the steps fill in; detached, or the graph would hold itself
        return starts.view_as(starts)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad: Tensor) -> Tuple[Any, ...]:
        weights = [grad.t() @ torch.cat(values).to(grad.dtype) for values in ctx.inputs]
        return (grad, None, *weights)
