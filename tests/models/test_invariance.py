"""What a model says of a sentence does not depend on what else is in its batch."""

import pytest
import torch

from . import toy

SOURCES = toy.sentences([7, 3, 12, 1, 7, 4], seed=1)
TARGETS = toy.sentences([5, 9, 2, 6, 1, 5], words=17, seed=2)
SHAPES = {
    "two-layers": {"encoder_layers": 2, "decoder_layers": 2},
    "bidirectional": {"encoder_bidirectional": True, "encoder_layers": 2, "decoder_layers": 2},
    "mlp": {"attention_score": "mlp", "encoder_bidirectional": True},
    "no-input-feeding": {"no_input_feeding": True, "encoder_bidirectional": True},
}


def alone(model, source, target):
    """Logits and weights of one sentence, with no padding anywhere."""
    logits, extra = model(source[None], torch.tensor([len(source)]), toy.shifted([target]))
    return logits[0], extra["attn"][0][0]


def check(model, order, side, extra):
    sources = [SOURCES[i] for i in order]
    targets = [TARGETS[i] for i in order]
    tokens, lengths = toy.pad(sources, side, extra)
    logits, attn = model(tokens, lengths, toy.shifted(targets))
    attn = attn["attn"][0]
    assert attn.shape == (len(order), logits.size(1), tokens.size(1))
    for row, (source, target) in enumerate(zip(sources, targets)):
        words = tokens[row] != toy.PAD
        said, seen = alone(model, source, target)
        steps = slice(len(target))
        torch.testing.assert_close(logits[row, steps], said, atol=1e-9, rtol=0)
        torch.testing.assert_close(attn[row, steps][:, words], seen, atol=1e-9, rtol=0)
        assert (attn[row, :, ~words] == 0).all()
    total = torch.ones(attn.shape[:2], dtype=attn.dtype)
    torch.testing.assert_close(attn.sum(-1), total, atol=1e-9, rtol=0)


@pytest.mark.parametrize("extra", [0, 4], ids=["padded-to-longest", "padded-further"])
@pytest.mark.parametrize("side", ["left", "right"])
@pytest.mark.parametrize("attention", toy.MAPPINGS)
def test_batch_padding_and_order(build, attention, side, extra):
    model = build(attention, encoder_bidirectional=True)
    with torch.no_grad():
        check(model, [2, 0, 1], side, extra)  # longest first would be fairseq's usual order
        check(model, [3, 1, 0, 5, 4, 2], side, extra)
        check(model, [3], side, extra)


@pytest.mark.parametrize("side", ["left", "right"])
@pytest.mark.parametrize("shape", SHAPES)
def test_shapes(build, shape, side):
    with torch.no_grad():
        check(build("fusedmax", **SHAPES[shape]), [3, 1, 0, 5, 4, 2], side, 0)


def test_the_checks_could_fail(build):
    """Sentences differ, and attention is neither uniform nor the same at every step."""
    with torch.no_grad():
        said, seen = alone(build("softmax", encoder_bidirectional=True), SOURCES[0], TARGETS[0])
        other, _ = alone(build("softmax", encoder_bidirectional=True), SOURCES[4], TARGETS[0])
    assert (said - other).abs().max() > 0.1
    assert seen.std(-1).max() > 0.05
    assert (seen[0] - seen[-1]).abs().max() > 0.05


@pytest.mark.parametrize("side", ["left", "right"])
@pytest.mark.parametrize("attention", toy.MAPPINGS)
def test_nothing_leaks_from_padding(build, attention, side):
    """Neither forward nor backward, whatever stands where padding is."""
    model = build(attention, encoder_bidirectional=True)
    tokens, lengths = toy.pad(SOURCES, side)
    previous = toy.shifted(TARGETS)
    kept = previous != toy.PAD
    words = tokens != toy.PAD

    def run():
        model.zero_grad()
        encoded = model.encoder(tokens, src_lengths=lengths)
        encoded.values.retain_grad()
        logits, extra = model.decoder(previous, encoder_out=encoded)
        logits[kept].pow(2).sum().backward()
        gradients = {name: p.grad for name, p in model.named_parameters() if p.grad is not None}
        return encoded, logits[kept], extra["attn"][0][kept], gradients

    encoded, logits, attn, gradients = run()
    assert (encoded.values[~words] == 0).all()
    assert (encoded.values.grad[~words] == 0).all()
    with torch.no_grad():
        model.encoder.embed_tokens.weight[toy.PAD] = float("nan")
    _, same_logits, same_attn, same_gradients = run()
    assert torch.equal(logits, same_logits)
    assert torch.equal(attn, same_attn)
    for name, gradient in gradients.items():
        assert torch.equal(gradient, same_gradients[name]), name
    assert not model.encoder.embed_tokens.weight.grad[toy.PAD].any()
    filled = encoded._replace(values=encoded.values.masked_fill(~words[:, :, None], 1e6))
    with torch.no_grad():
        other, _ = model.decoder(previous, encoder_out=filled)
    torch.testing.assert_close(other[kept], logits, atol=1e-9, rtol=0)
