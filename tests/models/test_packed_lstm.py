"""`PackedLSTM` is ``nn.LSTM``, to the last gradient."""

import pytest
import torch
from torch import nn
from torch.nn.utils.rnn import pack_padded_sequence

from fairseq_regattn.models.packed_lstm import PackedLSTM

SIZE, HIDDEN = 3, 4


@pytest.mark.parametrize("lengths", [[5, 5, 4, 1], [2, 5, 1, 3], [3], [1, 1]], ids=str)
@pytest.mark.parametrize("bidirectional", [False, True], ids=["one-way", "both-ways"])
@pytest.mark.parametrize("layers", [1, 3])
def test_outputs_states_and_gradients(layers, bidirectional, lengths):
    torch.manual_seed(0)
    theirs = nn.LSTM(SIZE, HIDDEN, layers, bidirectional=bidirectional).double()
    ours = PackedLSTM(SIZE, HIDDEN, layers, bidirectional=bidirectional).double()
    ours.load_state_dict(theirs.state_dict())
    values = torch.randn(max(lengths), len(lengths), SIZE, dtype=torch.float64)
    states = torch.randn(2, layers * (1 + bidirectional), len(lengths), HIDDEN).double()
    weighed = []
    for lstm in (ours, theirs):
        given = [tensor.clone().requires_grad_() for tensor in (values, *states)]
        packed = pack_padded_sequence(given[0], torch.tensor(lengths), enforce_sorted=False)
        output, (hiddens, cells) = lstm(packed, tuple(given[1:]))
        assert torch.equal(output.batch_sizes, packed.batch_sizes)
        torch.manual_seed(1)
        total = sum((part * torch.randn_like(part)).sum() for part in (output.data, hiddens, cells))
        total.backward()
        gradients = [tensor.grad for tensor in (*given, *lstm.parameters())]
        weighed.append([output.data, hiddens, cells, *gradients])
    for ours_said, theirs_said in zip(*weighed):
        torch.testing.assert_close(ours_said, theirs_said, atol=1e-12, rtol=0)


@pytest.mark.parametrize("layers", [1, 2])
def test_dropout_acts_between_layers_in_training(layers):
    lstm = PackedLSTM(SIZE, HIDDEN, layers, dropout=0.5 if layers > 1 else 0)
    packed = pack_padded_sequence(torch.randn(5, 2, SIZE), torch.tensor([5, 3]))
    state = (torch.zeros(layers, 2, HIDDEN),) * 2
    in_training = [lstm(packed, state)[0].data for _ in range(2)]
    lstm.eval()
    in_eval = [lstm(packed, state)[0].data for _ in range(2)]
    assert torch.equal(*in_training) == (layers == 1)
    assert torch.equal(*in_eval)
