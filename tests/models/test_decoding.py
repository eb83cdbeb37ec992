"""One step at a time says what all steps at once say, also after beams were reordered."""

import pytest
import torch
from fairseq.sequence_generator import SequenceGenerator

from . import toy

SOURCES = toy.sentences([7, 3, 12, 5], seed=1)
TARGETS = toy.sentences([8, 8, 8, 8], words=17, seed=2)
SHAPES = {
    "input-feeding": {},
    "two-layers": {"encoder_layers": 2, "decoder_layers": 2, "encoder_bidirectional": True},
    "no-input-feeding": {"no_input_feeding": True},
    "mlp": {"attention_score": "mlp"},
    "narrow": {"share_decoder_input_output_embed": True, "decoder_out_embed_dim": 7},
}
CASES = [(mapping, "two-layers") for mapping in toy.MAPPINGS]
CASES += [("fusedmax", shape) for shape in SHAPES if shape != "two-layers"]


def step(model, previous, encoded, state):
    logits, extra = model.decoder(previous, encoder_out=encoded, incremental_state=state)
    assert logits.shape[:2] == (len(previous), 1)
    return logits[:, 0], extra["attn"][0][:, 0]


def close(left, right):
    torch.testing.assert_close(left, right, atol=1e-9, rtol=0)


@pytest.mark.parametrize(("attention", "shape"), CASES)
@torch.no_grad()
def test_incremental_equals_teacher_forcing(build, attention, shape):
    model = build(attention, **SHAPES[shape])
    tokens, lengths = toy.pad(SOURCES)
    previous = toy.shifted(TARGETS)
    encoded = model.encoder(tokens, src_lengths=lengths)
    logits, extra = model.decoder(previous, encoder_out=encoded)
    state = {}
    for t in range(previous.size(1)):
        said, seen = step(model, previous[:, : t + 1], encoded, state)
        close(said, logits[:, t])
        close(seen, extra["attn"][0][:, t])


@pytest.mark.parametrize("order", [[3, 0, 0, 2], [1, 2], [2, 2, 2, 1, 0]], ids=str)
@pytest.mark.parametrize(("attention", "shape"), CASES)
@torch.no_grad()
def test_reordering(build, attention, shape, order):
    """Beams exchanged, doubled, dropped: as if the picked prefixes had been read from scratch."""
    model = build(attention, **SHAPES[shape])
    order = torch.tensor(order)
    tokens, lengths = toy.pad(SOURCES)
    previous = toy.shifted(TARGETS)
    encoded = model.encoder(tokens, src_lengths=lengths)
    state = {}
    for t in range(3):
        step(model, previous[:, : t + 1], encoded, state)
    model.decoder.reorder_incremental_state_scripting(state, order)
    encoded = model.encoder.reorder_encoder_out(encoded, order)
    rest = torch.randint(4, 21, (len(order), 5))
    previous = torch.cat([previous[order, :3], rest], 1)
    again = model.encoder(tokens[order], src_lengths=lengths[order])
    logits, extra = model.decoder(previous, encoder_out=again)
    for t in range(3, previous.size(1)):
        said, seen = step(model, previous[:, : t + 1], encoded, state)
        close(said, logits[:, t])
        close(seen, extra["attn"][0][:, t])


@pytest.mark.parametrize("side", ["left", "right"])
@pytest.mark.parametrize("attention", toy.MAPPINGS)
@torch.no_grad()
def test_beam_search_alone_and_in_a_batch(build, attention, side):
    """Translations, scores and attention of beam 4, sentences finishing at different steps."""
    within = toy.task()
    model = build(attention, within=within, encoder_bidirectional=True)
    model.decoder.output_layer_module.bias[toy.EOS] += 3  # sentences end at many lengths
    generator = SequenceGenerator([model], within.target_dictionary, beam_size=4, max_len_b=20)

    def translate(rows):
        tokens, lengths = toy.pad(rows, side)
        sample = {"net_input": {"src_tokens": tokens, "src_lengths": lengths}}
        return tokens, generator.generate([model], sample)

    tokens, together = translate(SOURCES)
    assert len({len(beams[0]["tokens"]) for beams in together}) > 1
    for row, source in enumerate(SOURCES):
        _, (alone,) = translate([source])
        for ours, theirs in zip(together[row], alone):
            assert ours["tokens"].tolist() == theirs["tokens"].tolist()
            torch.testing.assert_close(ours["score"], theirs["score"])
            words = tokens[row] != toy.PAD
            seen = ours["attention"]  # src_len x tgt_len
            torch.testing.assert_close(seen[words], theirs["attention"])
            assert not seen[~words].any()


@torch.no_grad()
def test_weights_can_be_left_out(build):
    """make_generation_fast_ without need_attn collects none; with it, all."""
    model = build("sparsemax")
    tokens, lengths = toy.pad(SOURCES)
    previous = toy.shifted(TARGETS)
    logits, extra = model(tokens, lengths, previous)
    model.make_generation_fast_(need_attn=True)
    assert torch.equal(model(tokens, lengths, previous)[1]["attn"][0], extra["attn"][0])
    model = build("sparsemax")
    model.make_generation_fast_(need_attn=False)
    same, none = model(tokens, lengths, previous)
    assert none["attn"] == [None]
    assert torch.equal(same, logits)


def test_weights_come_in_training_too(build):
    model = build("sparsemax").train()
    tokens, lengths = toy.pad(SOURCES)
    _, extra = model(tokens, lengths, toy.shifted(TARGETS))
    assert extra["attn"][0].requires_grad
