"""Scores to weights to context, and the mapping's name that travels with the weights."""

import pytest
import torch

from fairseq_regattn.attention import ATTENTIONS, Attention, build_attention, build_mapping
from fairseq_regattn.errors import UsageError

BSZ, LENGTH, QUERY, VALUE = 3, 6, 4, 5
BEAMS, STEPS = 2, 3


def attention(name="fusedmax", score="general", allow_swap=False, **params):
    torch.manual_seed(0)
    mapping = build_mapping(name, **params)
    return Attention(QUERY, VALUE, mapping, score, allow_swap).double()


def batch():
    values = torch.randn(BSZ, LENGTH, VALUE, dtype=torch.float64)
    queries = torch.randn(BSZ * BEAMS, STEPS, QUERY, dtype=torch.float64)
    mask = torch.zeros(BSZ, LENGTH, dtype=torch.bool)
    mask[1, 4:] = True
    mask[2, :3] = True
    return queries, values, mask


@pytest.mark.parametrize("score", ["general", "mlp"])
@pytest.mark.parametrize("name", sorted(ATTENTIONS))
def test_context_is_the_weighted_sum(name, score):
    module = attention(name, score)
    queries, values, mask = batch()
    context, weights = module(queries, module.remember(values, mask))
    assert weights.shape == (BSZ * BEAMS, STEPS, LENGTH)
    assert context.shape == (BSZ * BEAMS, STEPS, VALUE)
    for row in range(BSZ * BEAMS):
        sentence = row // BEAMS
        keep = ~mask[sentence]
        keys = module.score.keys(values[sentence : sentence + 1, keep])
        for step in range(STEPS):
            scores = module.score(queries[row, step].view(1, 1, -1), keys).flatten()
            alone = ATTENTIONS[name](scores)
            torch.testing.assert_close(weights[row, step, keep], alone)
            torch.testing.assert_close(context[row, step], alone @ values[sentence, keep])
            assert (weights[row, step, ~keep] == 0).all()


@pytest.mark.parametrize("name", ["fusedmax", "continuous_softmax", "continuous_sparsemax"])
def test_nothing_to_attend_to(name):
    """A batch of no sentences, and one of sentences without queries."""
    module = build_attention(name, QUERY, VALUE).double()
    queries, values, mask = batch()
    for rows, steps in ((0, STEPS), (BSZ, 0)):
        memory = module.remember(values[:rows], mask[:rows])
        context, weights = module(queries[:rows, :steps], memory)
        assert context.shape == (rows, steps, VALUE)
        assert weights.shape == (rows, steps, LENGTH)


def test_a_mapping_is_handed_a_matrix_and_a_mask_of_its_shape(registry):
    """Whatever the number of beams and steps."""
    seen = []

    def mine(scores, dim=-1, *, padding_mask=None):
        seen.append((dim, scores.shape, padding_mask.shape))
        return registry["softmax"](scores, dim, padding_mask=padding_mask)

    registry["mine"] = mine
    module = attention("mine")
    queries, values, mask = batch()
    module(queries, module.remember(values, mask))
    size = (BSZ * BEAMS * STEPS, LENGTH)
    assert seen == [(-1, size, size)]


def test_version_is_the_mapping():
    text = bytes(attention("entmax", alpha=1.25).mapping_version.tolist()).rstrip(b"\0").decode()
    assert text == "entmax(gamma=1.0, alpha=1.25)"


def test_the_same_mapping_loads():
    module = attention(lam=0.3)
    state = attention(lam=0.3).state_dict()
    for value in state.values():
        if value.is_floating_point():
            value.add_(1)
    module.load_state_dict(state)
    assert torch.equal(module.score.key_projection.weight, state["score.key_projection.weight"])


@pytest.mark.parametrize("precision", [torch.float16, torch.bfloat16])
def test_version_survives_lower_precision(precision):
    module = attention().to(precision)
    assert torch.equal(module.mapping_version, attention().mapping_version)
    attention().load_state_dict(module.state_dict())


def test_version_survives_averaging():
    """As fairseq's scripts/average_checkpoints.py does it."""
    states = [attention(lam=0.3).state_dict() for _ in range(3)]
    averaged = {}
    for state in states:
        for name, value in state.items():
            averaged[name] = averaged[name] + value if name in averaged else value.clone()
    for value in averaged.values():
        if value.is_floating_point():
            value.div_(len(states))
        else:
            value //= len(states)
    attention(lam=0.3).load_state_dict(averaged)


@pytest.mark.parametrize(
    ("other", "params", "trained"),
    [
        ("softmax", {}, r"softmax\(gamma=1.0\)"),
        ("fusedmax", {"lam": 0.5}, r"fusedmax\(gamma=1.0, lam=0.5\)"),
        ("fusedmax", {"gamma": 2.0}, r"fusedmax\(gamma=2.0, lam=0.1\)"),
    ],
)
def test_another_mapping_is_refused(other, params, trained):
    state = attention(other, **params).state_dict()
    module = attention("fusedmax")
    before = module.score.key_projection.weight.clone()
    state["score.key_projection.weight"] = before + 1
    with pytest.raises(
        UsageError, match=rf"trained with attention {trained}, not fusedmax\(gamma=1.0, lam=0.1\)"
    ) as error:
        module.load_state_dict(state)
    assert "--attention-swap" in str(error.value)
    assert torch.equal(module.score.key_projection.weight, before)


def test_allow_swap():
    """The weights come over; the mapping and its name stay this module's."""
    state = attention("softmax").state_dict()
    kept = {name: value.clone() for name, value in state.items()}
    module = attention("fusedmax", allow_swap=True)
    module.load_state_dict(state)
    assert module.mapping.name == "fusedmax"
    assert torch.equal(module.mapping_version, attention("fusedmax").mapping_version)
    assert all(torch.equal(state[name], kept[name]) for name in kept)


def test_a_checkpoint_without_version_is_noticed():
    state = attention().state_dict()
    del state["mapping_version"]
    with pytest.raises(RuntimeError, match="mapping_version"):
        attention().load_state_dict(state)


def test_a_long_name_fits(registry):
    registry["x" * 300] = registry["softmax"]
    module = attention("x" * 300)
    module.load_state_dict(module.state_dict())


def test_an_average_of_different_mappings_is_refused():
    state = attention("fusedmax").state_dict()
    other = attention("sparsemax").state_dict()
    mixed = {name: (value + other[name]) // 2 for name, value in state.items()}
    with pytest.raises(UsageError, match="with attention mappings that differ, averaged"):
        attention("fusedmax").load_state_dict(mixed)
