"""``nn.LSTM`` with a faster backward for packed sequences on the CPU."""

from typing import Any, List, Tuple

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.nn.utils.rnn import PackedSequence

from fairseq_regattn.models.stepwise import StepwiseLinear, lstm_step


class PackedLSTM(nn.LSTM):
    """``nn.LSTM`` as fairseq's encoder uses it; on the CPU it is trained by a loop of its own.

    There torch cuts each step out of a tensor of all steps, and for the gradient of every cut
    fills a tensor of that size with zeros, which is quadratic in the length.
    """

    def forward(self, input: PackedSequence, hx: Tuple[Tensor, Tensor]) -> Any:
        """As ``nn.LSTM``: packed outputs, and the last hiddens and cells."""
        if input.data.is_cuda or not torch.is_grad_enabled():
            return super().forward(input, hx)
        hiddens, cells = self.permute_hidden(hx, input.sorted_indices)
        sizes = input.batch_sizes.tolist()
        directions = 2 if self.bidirectional else 1
        values = input.data  # words x input_size, step after step
        last: List[Tuple[Tensor, Tensor]] = []
        for layer in range(self.num_layers):
            if layer:
                values = F.dropout(values, self.dropout, self.training)
            outputs = []
            for direction in range(directions):
                number = layer * directions + direction
                steps = range(len(sizes))[:: -1 if direction else 1]
                state = hiddens[number], cells[number]
                output, state = _run(self.all_weights[number], values, sizes, steps, state)
                outputs.append(output)
                last.append(state)
            values = torch.cat(outputs, 1)
        state = torch.stack([hidden for hidden, _ in last]), torch.stack([cell for _, cell in last])
        return input._replace(data=values), self.permute_hidden(state, input.unsorted_indices)


def _run(
    parameters: List[Tensor],
    values: Tensor,
    sizes: List[int],
    steps: range,
    state: Tuple[Tensor, Tensor],
) -> Tuple[Tensor, Tuple[Tensor, Tensor]]:
    """One layer in one direction over ``words x size``: ``words x hidden``, and the state."""
    weight_ih, weight_hh, bias_ih, bias_hh = parameters
    gates = StepwiseLinear(F.linear(values, weight_ih, bias_ih + bias_hh), sizes, weight_hh)
    hidden, cell = state  # bsz x hidden
    outputs = [hidden] * len(sizes)
    for step in steps:
        size = sizes[step]
        outputs[step], advanced = lstm_step(gates(step, hidden[:size]), cell[:size])
        # the other sentences have ended, or, read backwards, not begun: their state stays
        hidden = torch.cat([outputs[step], hidden[size:]])
        cell = torch.cat([advanced, cell[size:]])
    return torch.cat(outputs), (hidden, cell)
