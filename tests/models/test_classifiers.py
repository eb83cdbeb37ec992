"""The models that classify texts, against slow versions of what their papers say."""

from argparse import Namespace

import pytest
import torch
from fairseq import models

from fairseq_regattn.errors import UsageError

from . import toy

FIRST = [[4, 5, 6, 7, 8, 9, 10], [11, 12, 13], [5], [6, 4, 14, 9]]
SECOND = [[7, 4], [9, 9, 12, 5, 6], [13], [4, 8, 10]]
SMALL = {"embed_dim": 6, "hidden_size": 5}
LABELS = ["yes", "no", "maybe"]
ARCHS = ["regattn_nli", "regattn_classifier"]


def task(pairs):
    words = toy.dictionary()
    return Namespace(source_dictionary=words, labels=LABELS, pairs=pairs)


def build(arch, attention="softmax", seed=1, **flags):
    """In double precision and eval mode; large weights, so that attention is not uniform."""
    torch.manual_seed(seed)
    if arch == "regattn_classifier":
        flags = {"attention_dim": 7, **flags}
    args = Namespace(arch=arch, attention=attention, **{**SMALL, **flags})
    model = models.build_model(args, task(arch == "regattn_nli")).double().eval()
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.add_(0.7 * torch.randn_like(parameter))
    return model


def inputs(arch, rows, extra=0):
    tokens, lengths = toy.pad([torch.tensor(FIRST[i]) for i in rows], "right", extra)
    given = {"src_tokens": tokens, "src_lengths": lengths}
    if arch == "regattn_nli":
        pairs = [torch.tensor([0, *SECOND[i]]) for i in rows]
        given["pair_tokens"], given["pair_lengths"] = toy.pad(pairs, "right", extra)
    return given


def run(model, arch, rows, extra=0):
    with torch.no_grad():
        logits, other = model(**inputs(arch, rows, extra))
    return logits, other["attn"][0]


@pytest.mark.parametrize("attention", toy.MAPPINGS)
@pytest.mark.parametrize("arch", ARCHS)
def test_batch_and_padding_change_nothing(arch, attention):
    model = build(arch, attention)
    together, weights = run(model, arch, [2, 0, 3, 1], extra=3)
    assert weights.shape == (4, 10)
    for place, row in enumerate([2, 0, 3, 1]):
        logits, alone = run(model, arch, [row])
        torch.testing.assert_close(together[place], logits[0], atol=1e-12, rtol=0)
        length = len(FIRST[row])
        torch.testing.assert_close(weights[place, :length], alone[0], atol=1e-12, rtol=0)
        assert (weights[place, length:] == 0).all()
    assert together.std(0).max() > 0.01
    assert weights[1, : len(FIRST[0])].std() > 0.01


@pytest.mark.parametrize("arch", ARCHS)
@pytest.mark.parametrize("score", ["general", "mlp", "dot"])
def test_every_score(arch, score):
    flags = {"attention_dim": 10} if arch == "regattn_classifier" else {}
    logits, weights = run(build(arch, attention_score=score, **flags), arch, [0, 1])
    assert logits.shape == (2, 3)
    torch.testing.assert_close(weights.sum(1), torch.ones(2).double())


def gru(cell, inputs, state):
    """One step at a time, by the formulas."""
    states = []
    for x in inputs:
        ih = cell.weight_ih_l0 @ x + cell.bias_ih_l0
        hh = cell.weight_hh_l0 @ state + cell.bias_hh_l0
        (r, z, n), (hr, hz, hn) = ih.chunk(3), hh.chunk(3)
        r, z = torch.sigmoid(r + hr), torch.sigmoid(z + hz)
        state = (1 - z) * torch.tanh(n + r * hn) + z * state
        states.append(state)
    return torch.stack(states), state


def test_entailment_is_what_the_paper_describes():
    """papers.md 1.6, one pair, without a batch."""
    model = build("regattn_nli", "sparsemax")
    words = model.words.weight
    project = model.projection
    premise = [project(words[token]) for token in FIRST[0]]
    hypothesis = [project(words[token]) for token in [0, *SECOND[0]]]
    states, last = gru(model.premise, premise, model.start)
    _, last = gru(model.hypothesis, hypothesis, last)
    score = model.attention.score
    hidden = torch.tanh(score.key_projection(states) + score.query_projection(last))
    scores = score.output(hidden).squeeze(1)
    from fairseq_regattn.mappings import sparsemax

    weights = sparsemax(scores)
    features = torch.tanh(model.combination(torch.cat([weights @ states, last])))
    [head] = model.classification_heads.values()
    logits, found = run(model, "regattn_nli", [0])
    torch.testing.assert_close(found[0], weights.detach())
    torch.testing.assert_close(logits[0], head(features).detach())
    assert 1 < (weights > 0).sum() < len(weights)  # else the test would see little


@pytest.mark.parametrize(
    ("arch", "shapes"),
    [("regattn_nli", [(2, 7, 6), (2, 6, 6), (2, 5)]), ("regattn_classifier", [(2, 7, 6), (2, 10)])],
)
def test_dropout_is_on_embeddings_and_on_what_is_classified(arch, shapes):
    model = build(arch)
    seen = []
    model.dropout.register_forward_hook(lambda _, given, __: seen.append(tuple(given[0].shape)))
    run(model, arch, [0, 1])
    assert seen == shapes
    model.train()
    model.dropout.p = 1 - 1e-9
    logits, _ = run(model, arch, [0, 1])
    if arch == "regattn_classifier":  # nothing is left but the bias
        [head] = model.classification_heads.values()
        torch.testing.assert_close(logits[0], head.bias.detach())


def test_classifier_attends_with_a_learned_query():
    model = build("regattn_classifier", "softmax")
    tokens = torch.tensor([FIRST[0]])
    reference = torch.nn.LSTM(6, 5, batch_first=True, bidirectional=True).double()
    reference.load_state_dict(model.encoder.state_dict())
    states, _ = reference(model.words.weight[tokens])
    score = model.attention.score
    bias = score.query_projection(model.query[0])
    hidden = torch.tanh(score.key_projection(states[0]) + bias)
    weights = score.output(hidden).squeeze(1).softmax(0)
    [head] = model.classification_heads.values()
    logits, found = run(model, "regattn_classifier", [0])
    torch.testing.assert_close(found[0], weights.detach())
    torch.testing.assert_close(logits[0], head(weights @ states[0]).detach())


@pytest.mark.parametrize("arch", ARCHS)
def test_every_parameter_learns(arch):
    """And training does not read what stands on padding."""
    model = build(arch, "softmax", dropout=0.0).train()
    logits, _ = model(**inputs(arch, [0, 1, 2, 3], extra=2))
    torch.nn.functional.cross_entropy(logits, torch.tensor([0, 1, 2, 0])).backward()
    for name, parameter in model.named_parameters():
        assert parameter.grad is not None, name
        assert parameter.grad.abs().max() > 0, name
    assert (model.words.weight.grad[toy.PAD] == 0).all()


def test_dropout_acts_in_training_alone():
    for arch in ARCHS:
        model = build(arch, dropout=0.5)
        assert torch.equal(run(model, arch, [0])[0], run(model, arch, [0])[0])
        model.train()
        assert not torch.equal(run(model, arch, [0])[0], run(model, arch, [0])[0])


def test_words_with_vectors_stay_as_they_are():
    model = build("regattn_classifier", embed_path="vectors.txt")
    given = torch.tensor([5, 9])
    model.words.set_vectors(given, torch.full((2, 6), 0.25))
    optimizer = torch.optim.AdamW(model.parameters(), lr=0.1, weight_decay=0.5)
    before = model.words(torch.arange(12)).detach().clone()
    for _ in range(3):
        optimizer.zero_grad()
        logits, _ = model(**inputs("regattn_classifier", [0, 1]))
        logits.square().sum().backward()
        optimizer.step()
    after = model.words(torch.arange(12)).detach()
    assert torch.equal(after[given], before[given])
    assert (after[given] == 0.25).all()
    assert not torch.equal(after[4], before[4])


@pytest.mark.parametrize("arch", ARCHS)
def test_parameters_are_drawn_by_glorot_gate_by_gate(arch):
    torch.manual_seed(0)
    args = Namespace(arch=arch, hidden_size=40, embed_dim=30)
    model = models.build_model(args, task(arch == "regattn_nli"))
    recurrent = model.premise if arch == "regattn_nli" else model.encoder
    weight = recurrent.weight_hh_l0  # gates x 40
    limit = (6 / 80) ** 0.5
    assert 0.98 * limit < weight.abs().max() <= limit
    assert (recurrent.bias_hh_l0 == 0).all()
    assert 0.045 < model.words.weight.abs().max() <= 0.05


@pytest.mark.parametrize(
    ("arch", "flags", "message"),
    [
        ("regattn_nli", {"hidden_size": 0}, "--hidden-size must be at least 1, got 0"),
        ("regattn_classifier", {"dropout": 1.0}, "--dropout must be a number with 0 <= value < 1"),
        ("regattn_classifier", {"attention": "nothing"}, "--attention 'nothing'"),
        ("regattn_classifier", {"attention_score": "dot"}, "--attention-score dot needs"),
    ],
)
def test_wrong_options_are_named(arch, flags, message):
    with pytest.raises(UsageError, match=message.replace("(", r"\(")):
        build(arch, **flags)


@pytest.mark.parametrize("arch", ARCHS)
def test_data_of_another_kind_are_refused(arch):
    args = Namespace(arch=arch)
    with pytest.raises(UsageError, match=f"--arch {arch} reads"):
        models.build_model(args, task(arch != "regattn_nli"))
    with pytest.raises(UsageError, match="needs --task text_classification"):
        models.build_model(args, toy.task())


@pytest.mark.parametrize("arch", ARCHS)
def test_a_checkpoint_of_other_labels(arch, monkeypatch):
    saved = build(arch).state_dict()
    build(arch).load_state_dict(saved)
    build(arch).load_state_dict({k: v for k, v in saved.items() if k != "data_version"})
    monkeypatch.setitem(globals(), "LABELS", LABELS[::-1])
    with pytest.raises(UsageError, match="trained on data with other words or labels"):
        build(arch).load_state_dict(saved)
