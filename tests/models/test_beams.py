"""Beam search reads one memory a sentence, and finds what it finds with one a row."""

import pytest
import torch
from fairseq.search import BeamSearch
from fairseq.sequence_generator import SequenceGenerator

from fairseq_regattn.attention import Attention, Memory

from . import toy

BEAMS = 4
SOURCES = toy.sentences([7, 3, 12, 5, 9], seed=1)
ENDS = torch.tensor([6, 3, 4, 6, 9])  # the step at which all beams of a sentence end
SHAPES = {
    "bidirectional": {"encoder_bidirectional": True},
    "two-layers": {"encoder_layers": 2, "decoder_layers": 2, "attention_score": "mlp"},
    "no-input-feeding": {"no_input_feeding": True},
}


class EndingSearch(BeamSearch):
    """Beam search in which sentences leave the batch when `ENDS` says."""

    def step(self, step, lprobs, scores, previous, sentences):
        ends = ENDS[sentences].view(-1, 1, 1)
        eos = torch.arange(lprobs.size(2)) == toy.EOS
        allowed = torch.where(ends == step, eos, ~eos)
        return super().step(step, lprobs.masked_fill(~allowed, -torch.inf), scores)


def one_a_row(memory, sentences):
    return Memory(*(part.index_select(0, sentences) for part in memory))


@pytest.fixture
def translate(monkeypatch):
    """``translate(models, within)``: all beams, and how many entries each attention read."""

    def run(models, within):
        entries = []
        attend = Attention.forward

        def counted(self, queries, memory):
            entries.append((len(queries), len(memory.keys)))
            return attend(self, queries, memory)

        tokens, lengths = toy.pad(SOURCES)
        sample = {"net_input": {"src_tokens": tokens, "src_lengths": lengths}}
        words = within.target_dictionary
        generator = SequenceGenerator(
            models, words, BEAMS, max_len_b=20, search_strategy=EndingSearch(words)
        )
        with monkeypatch.context() as patch, torch.no_grad():
            patch.setattr(Attention, "forward", counted)
            return generator.generate(models, sample), entries

    return run


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("names", [["fusedmax"], ["softmax", "sparsemax"]], ids=["one", "ensemble"])
@torch.no_grad()
def test_as_with_one_memory_a_row(build, translate, monkeypatch, names, shape):
    within = toy.task()
    models = [build(name, within=within, seed=i, **SHAPES[shape]) for i, name in enumerate(names)]
    shared, entries = translate(models, within)
    assert all(rows == BEAMS * memories for rows, memories in entries)
    steps = [memories for _, memories in entries[:: len(models)]]
    assert steps == [int((step <= ENDS).sum()) for step in range(10)]
    monkeypatch.setattr(Memory, "for_rows", one_a_row)
    copied, entries = translate(models, within)
    assert all(rows == memories for rows, memories in entries)
    for ours, theirs in zip(shared, copied):
        assert [beam["tokens"].tolist() for beam in ours] == [
            beam["tokens"].tolist() for beam in theirs
        ]
        for one, other in zip(ours, theirs):
            torch.testing.assert_close(one["score"], other["score"])
            torch.testing.assert_close(one["attention"], other["attention"])


@pytest.mark.parametrize(
    "orders",
    [
        [[0, 0, 1, 1, 2, 2], [1, 0, 3, 3, 4, 5], [2, 3, 5, 5]],  # as fairseq's generator asks
        [[0, 0, 1, 1, 2, 2], [0, 4, 1], [2, 2, 1, 1, 0, 0]],  # beams mixed, and parted again
        [[0, 0, 1, 1, 1, 2], [5, 5, 0]],
        [[2, 1]],
    ],
    ids=str,
)
@torch.no_grad()
def test_any_order_of_rows(build, orders):
    """Reordered at every step, and before the first: as the picked rows read from scratch."""
    model = build("fusedmax", **SHAPES["bidirectional"])
    tokens, lengths = toy.pad(SOURCES[:3])
    encoded = model.encoder(tokens, src_lengths=lengths)
    rows = torch.arange(3)
    previous = torch.full((3, 1), toy.EOS)
    state = {}
    for order in map(torch.tensor, orders):
        rows = rows[order]
        previous = previous[order]
        model.decoder.reorder_incremental_state_scripting(state, order)
        encoded = model.encoder.reorder_encoder_out(encoded, order)
        logits, extra = model.decoder(previous, encoder_out=encoded, incremental_state=state)
        again = model.encoder(tokens[rows], src_lengths=lengths[rows])
        expected, attn = model.decoder(previous, encoder_out=again)
        torch.testing.assert_close(logits[:, -1], expected[:, -1])
        torch.testing.assert_close(extra["attn"][0][:, -1], attn["attn"][0][:, -1])
        whole, _ = model.decoder(previous, encoder_out=encoded)  # teacher forcing of the rows
        torch.testing.assert_close(whole, expected)
        words = torch.randint(4, 21, (len(rows), 1))
        previous = torch.cat([previous, words], 1)


@torch.no_grad()
def test_no_rows_at_all(build):
    """A search that has nothing left may still reorder."""
    model = build("fusedmax")
    tokens, lengths = toy.pad(SOURCES[:2])
    encoded = model.encoder(tokens, src_lengths=lengths)
    state = {}
    model.decoder(torch.full((2, 1), toy.EOS), encoder_out=encoded, incremental_state=state)
    nobody = torch.zeros(0, dtype=torch.long)
    for _ in range(2):
        model.decoder.reorder_incremental_state_scripting(state, nobody)
    assert len(model.decoder.get_incremental_state(state, "state")["keys"]) == 0
