"""With softmax and general scores the model is fairseq's own ``--arch lstm``."""

from argparse import Namespace

import pytest
import torch
from fairseq.models import ARCH_CONFIG_REGISTRY, build_model

from . import toy

NAMES = {  # ours -> theirs
    "decoder.attention.score.key_projection.weight": "decoder.attention.input_proj.weight",
    "decoder.output_projection.": "decoder.attention.output_proj.",
    "decoder.hidden_bridge.": "decoder.encoder_hidden_proj.",
    "decoder.cell_bridge.": "decoder.encoder_cell_proj.",
    "decoder.narrow.": "decoder.additional_fc.",
    "decoder.output_layer_module.": "decoder.fc_out.",
}


def theirs(name, tensor):
    """What fairseq calls one of our parameters, and the way it is laid out there."""
    for ours, other in NAMES.items():
        name = name.replace(ours, other)
    return name, tensor.t() if name.endswith("input_proj.weight") else tensor


@pytest.mark.parametrize("bidirectional", [False, True], ids=["one-way", "both-ways"])
@pytest.mark.parametrize("layers", [1, 2])
def test_logits_and_gradients(build, layers, bidirectional):
    flags = {"encoder_layers": layers, "decoder_layers": layers}
    flags.update(encoder_bidirectional=bidirectional, dropout=0.0)
    ours = build(**flags, sharp=False)
    args = Namespace(arch="lstm", criterion="cross_entropy", **toy.SMALL, **flags)
    ARCH_CONFIG_REGISTRY["lstm"](args)
    lstm = build_model(args, toy.task()).double().eval()
    state = dict(theirs(name, tensor) for name, tensor in ours.named_parameters())
    assert state.keys() == dict(lstm.named_parameters()).keys()
    lstm.load_state_dict(state)
    tokens, lengths = toy.pad(toy.sentences([7, 6, 2]))  # the longest first, as fairseq wants it
    previous = toy.shifted(toy.sentences([4, 6, 2], words=17))
    logits, expected = (model(tokens, lengths, previous)[0] for model in (ours, lstm))
    torch.testing.assert_close(logits, expected, atol=1e-6, rtol=0)  # it attends in float32
    direction = torch.randn_like(logits)
    logits.backward(direction)
    expected.backward(direction)
    gradients = dict(theirs(name, tensor.grad) for name, tensor in ours.named_parameters())
    for name, parameter in lstm.named_parameters():
        torch.testing.assert_close(gradients[name], parameter.grad, atol=1e-5, rtol=1e-5, msg=name)
