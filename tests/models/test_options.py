"""What each option of the model does, and the combinations that are refused."""

import pytest
import torch
from fairseq.models import MODEL_REGISTRY
from fairseq.modules import FairseqDropout

from fairseq_regattn.errors import UsageError

from . import toy

DEEP = {"encoder_layers": 2, "decoder_layers": 2, "encoder_bidirectional": True}
JOINED = toy.dictionary()
SHARED = {"share_all_embeddings": True, "encoder_embed_dim": 7, "decoder_out_embed_dim": None}
VARIANTS = {
    "plain": {},
    "deep": DEEP,
    "no-input-feeding": {"no_input_feeding": True, **DEEP},
    "mlp": {"attention_score": "mlp"},
    "dot": {"attention_score": "dot", "encoder_hidden_size": 4, **DEEP},
    "output-shared": {"share_decoder_input_output_embed": True, "decoder_out_embed_dim": None},
    "all-shared": SHARED,
}


def loss(model):
    tokens, lengths = toy.pad(toy.sentences([7, 3, 5]))
    targets = toy.sentences([6, 4, 2], words=17, seed=3)
    logits, _ = model(tokens, lengths, toy.shifted(targets))
    gold = toy.pad(targets, "right")[0]
    return torch.nn.functional.cross_entropy(
        logits.float().transpose(1, 2), gold, ignore_index=toy.PAD
    )


def make(build, attention="softmax", **flags):
    joined = toy.task(JOINED, JOINED) if flags.get("share_all_embeddings") else None
    return build(attention, within=joined, **flags)


@pytest.mark.parametrize("variant", VARIANTS)
def test_every_parameter_learns(build, variant):
    model = make(build, **VARIANTS[variant])
    loss(model).backward()
    for name, parameter in model.named_parameters():
        assert parameter.grad is not None, name
        assert parameter.grad.any(), name
        assert parameter.grad.isfinite().all(), name


@pytest.mark.parametrize("attention", toy.MAPPINGS)
def test_gradients_are_those_of_the_loss(build, attention):
    """Along a random direction, for the whole model, against a central difference."""
    model = build(attention, encoder_bidirectional=True)
    loss(model).backward()
    parameters = list(model.parameters())
    directions = [torch.randn_like(p) for p in parameters]
    slope = sum((p.grad * d).sum().item() for p, d in zip(parameters, directions))
    sides = []
    with torch.no_grad():
        for sign in (1, -2):
            for p, d in zip(parameters, directions):
                p.add_(d, alpha=sign * 1e-4)
            sides.append(loss(model).item())
    # logits are compared in float32 by the loss
    assert slope == pytest.approx((sides[0] - sides[1]) / 2e-4, rel=2e-2, abs=2e-3)


@pytest.mark.parametrize("attention", toy.MAPPINGS)
def test_training_lowers_the_loss(build, attention):
    model = build(attention, encoder_bidirectional=True).train()
    optimizer = torch.optim.Adam(model.parameters(), lr=0.02)
    start = loss(model).item()
    for _ in range(30):
        optimizer.zero_grad()
        loss(model).backward()
        optimizer.step()
    assert loss(model).item() < start / 2


@pytest.mark.parametrize("precision", [torch.bfloat16, torch.float16])
@pytest.mark.parametrize("attention", toy.MAPPINGS)
def test_half_precision(build, attention, precision):
    try:
        torch.nn.LSTM(2, 2).to(precision)(torch.ones(1, 1, 2, dtype=precision))
    except RuntimeError as error:  # torch 2.0: "addmm_impl_cpu_" not implemented for 'Half'
        pytest.skip(f"this torch has no {precision} LSTM on the CPU: {error}")
    model = build(attention, sharp=False, **DEEP)
    expected = loss(model).item()
    model = model.to(precision)
    value = loss(model)
    value.backward()
    assert value.item() == pytest.approx(expected, rel=0.02)
    for name, parameter in model.named_parameters():
        assert parameter.grad.dtype == precision
        assert parameter.grad.isfinite().all(), name


def test_input_feeding_matters(build):
    fed, unfed = build(), build(no_input_feeding=True)
    assert fed.decoder.layers[0].input_size == 7 + 8
    assert unfed.decoder.layers[0].input_size == 7
    assert unfed.decoder.input_feeding is False


def test_no_input_feeding_is_feeding_with_weights_of_zero(build):
    fed, unfed = build("fusedmax", **DEEP), build("fusedmax", no_input_feeding=True, **DEEP)
    state = fed.state_dict()
    weight = state["decoder.layers.0.weight_ih"]
    weight[:, 7:] = 0
    unfed.load_state_dict({**state, "decoder.layers.0.weight_ih": weight[:, :7]})
    tokens, lengths = toy.pad(toy.sentences([7, 3, 5]))
    previous = toy.shifted(toy.sentences([6, 4, 2], words=17))
    (logits, extra), (expected, attn) = (model(tokens, lengths, previous) for model in (fed, unfed))
    torch.testing.assert_close(logits, expected)
    torch.testing.assert_close(extra["attn"][0], attn["attn"][0])


def test_shared_embeddings_are_one_tensor(build):
    model = make(build, **SHARED)
    assert model.encoder.embed_tokens is model.decoder.embed_tokens
    assert model.decoder.output_layer_module is None
    features = torch.randn(2, 7, dtype=torch.float64)
    torch.testing.assert_close(
        model.decoder.output_layer(features), features @ model.encoder.embed_tokens.weight.t()
    )
    model = make(build, **VARIANTS["output-shared"])
    assert model.encoder.embed_tokens is not model.decoder.embed_tokens
    assert model.decoder.output_layer_module is None


@pytest.fixture
def vectors(tmp_path):
    """A file of embeddings for some words."""
    path = tmp_path / "vectors.txt"
    path.write_text("2 6\nw3 " + " ".join("123456") + "\nw5 " + " ".join("654321") + "\n")
    return path


def test_pretrained_embeddings(build, vectors):
    model = build(encoder_embed_path=str(vectors), sharp=False)
    weight = model.encoder.embed_tokens.weight
    expected = torch.tensor([6.0, 5, 4, 3, 2, 1], dtype=weight.dtype)
    assert torch.equal(weight[JOINED.index("w5")], expected)
    assert weight[JOINED.index("w4")].abs().max() <= 0.1
    assert not weight[toy.PAD].any()


@pytest.mark.parametrize("side", ["encoder", "decoder"])
def test_pretrained_embeddings_of_another_size_name_both(build, vectors, side):
    flags = {f"{side}_embed_path": str(vectors), f"{side}_embed_dim": 9}
    with pytest.raises(
        UsageError, match=rf"--{side}-embed-path .* size 6, and --{side}-embed-dim is 9"
    ):
        build(**flags)


@pytest.mark.parametrize("side", ["encoder", "decoder"])
def test_frozen_embeddings(build, side):
    model = build(**{f"{side}_freeze_embed": True})
    loss(model).backward()
    for name, parameter in model.named_parameters():
        frozen = name == f"{side}.embed_tokens.weight"
        assert parameter.requires_grad != frozen
        assert (parameter.grad is None) == frozen, name


@pytest.mark.parametrize("side", ["encoder", "decoder"])
def test_frozen_shared_embeddings(build, side):
    model = make(build, **SHARED, **{f"{side}_freeze_embed": True})
    assert not model.encoder.embed_tokens.weight.requires_grad


@pytest.mark.parametrize(
    ("flags", "message"),
    [
        ({"encoder_layers": 2}, r"--encoder-layers 2 and --decoder-layers 1 must be equal"),
        (
            {"share_decoder_input_output_embed": True},
            r"--decoder-embed-dim 7 and --decoder-out-embed-dim 9 must be equal",
        ),
        (
            {**SHARED, "encoder_embed_dim": 6},
            r"--encoder-embed-dim 6 and --decoder-embed-dim 7 must be equal",
        ),
        (
            {**SHARED, "encoder_embed_path": "a", "decoder_embed_path": "b"},
            r"--encoder-embed-path a and --decoder-embed-path b must be equal",
        ),
        ({"attention_score": "dot"}, r"got 5 \(encoder\) and 8 \(decoder\)"),
        ({"attention_score": "cosine"}, r"--attention-score must be one of .*, got 'cosine'"),
        ({"attention_gamma": 0.0}, r"--attention-gamma must be .*, got 0.0"),
        ({"attention_p": 3.0}, r"--attention-p must be .*, got 3.0"),
        ({"attention_lambda": -1.0}, r"--attention-lambda must be .*, got -1.0"),
        ({"attention_alpha": 1.0}, r"--attention-alpha must be .*, got 1.0"),
        ({"attention": "fusedmax2"}, r"--attention 'fusedmax2' is not registered"),
        ({"encoder_layers": 0, "decoder_layers": 0}, r"--encoder-layers must be .*, got 0"),
        ({"dropout": 1.5}, r"--dropout must be .*, got 1.5"),
        ({"decoder_hidden_size": -3}, r"--decoder-hidden-size must be .*, got -3"),
    ],
)
def test_contradictions_are_refused_by_name(build, flags, message):
    with pytest.raises(UsageError, match=message):
        make(build, **flags)


def test_shared_embeddings_want_one_dictionary(build):
    with pytest.raises(UsageError, match="--joined-dictionary"):
        build(**SHARED)


def test_architectures():
    for name in ("", "_opennmt", "_iwslt", "_small"):
        assert f"regattn_lstm{name}" in MODEL_REGISTRY


def test_opennmt_defaults(build):
    """500 wide, 2 layers each; dropout 0.3 between layers and on the attentional output only."""
    model = build(arch="regattn_lstm_opennmt", sharp=False)
    encoder, decoder = model.encoder, model.decoder
    assert encoder.embed_tokens.embedding_dim == decoder.embed_tokens.embedding_dim == 500
    assert encoder.lstm.hidden_size == decoder.hidden_size == 500
    assert encoder.lstm.num_layers == len(decoder.layers) == 2
    assert not encoder.lstm.bidirectional
    assert decoder.input_feeding
    assert encoder.lstm.dropout == decoder.dropout_module.p == decoder.dropout_out_module.p == 0.3
    assert encoder.dropout_in_module.p == encoder.dropout_out_module.p == 0
    assert decoder.dropout_in_module.p == 0


def test_flags_win_over_the_architecture(build):
    model = build(arch="regattn_lstm_opennmt", encoder_embed_dim=6, dropout=0.1, sharp=False)
    assert model.encoder.embed_tokens.embedding_dim == 6
    assert model.decoder.embed_tokens.embedding_dim == 500
    assert model.decoder.dropout_out_module.p == 0.1
    assert model.decoder.dropout_in_module.p == 0


@pytest.mark.parametrize(("arch", "width"), [("small", 192), ("iwslt", 256)])
def test_bidirectional_architectures(build, arch, width):
    model = build(arch=f"regattn_lstm_{arch}", sharp=False)
    assert model.encoder.embed_tokens.embedding_dim == model.decoder.hidden_size == width
    assert model.encoder.lstm.bidirectional
    assert {m.p for m in model.modules() if isinstance(m, FairseqDropout)} == {0.2}


@pytest.mark.parametrize("variant", VARIANTS)
def test_initial_values(build, variant):
    """Uniform in [-0.1, 0.1], as paper A has it; 0 for the padding symbol."""
    model = make(build, **VARIANTS[variant], sharp=False)
    assert not model.encoder.embed_tokens.weight[toy.PAD].any()
    assert not model.decoder.embed_tokens.weight[toy.PAD].any()
    for name, parameter in model.named_parameters():
        size = parameter.detach().abs()
        assert size.max() <= 0.1, name
        if size.numel() >= 30:  # so many that a narrower range would be seen
            assert size.max() > 0.08, name
            assert size.mean().item() == pytest.approx(0.05, abs=0.02), name


def test_the_same_seed_makes_the_same_model(build):
    one, two = build(**DEEP).state_dict(), build(**DEEP).state_dict()
    assert all(torch.equal(one[name], two[name]) for name in one)


def test_dropout_of_zero_is_off(build):
    model = build(dropout=0.0, **DEEP)
    expected = loss(model).item()
    assert loss(model.train()).item() == pytest.approx(expected, rel=1e-6)


@pytest.mark.parametrize(
    "place", [f"{side}_dropout_{end}" for side in ("encoder", "decoder") for end in ("in", "out")]
)
def test_each_dropout_acts_in_training_only(build, place):
    model = build(dropout=0.0, **{place: 0.5}, **DEEP)
    still = loss(model).item()
    assert loss(model).item() == still
    assert loss(model.train()).item() != pytest.approx(still, rel=1e-6)


@pytest.mark.parametrize("layers", [1, 2])
def test_dropout_itself_acts_between_layers_only(build, layers):
    ends = (f"{side}_dropout_{end}" for side in ("encoder", "decoder") for end in ("in", "out"))
    flags = {**dict.fromkeys(ends, 0.0), "encoder_layers": layers, "decoder_layers": layers}
    model = build(dropout=0.5, **flags)
    still = loss(model).item()
    changed = loss(model.train()).item() != pytest.approx(still, rel=1e-6)
    assert changed == (layers > 1)
