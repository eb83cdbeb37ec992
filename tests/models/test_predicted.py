"""``--attention-density predicted`` of the classifier, against what paper B's code does."""

import pytest
import torch
from torch.nn.functional import softplus

from fairseq_regattn.attention import CONTINUOUS
from fairseq_regattn.continuous import Parabola, positions
from fairseq_regattn.errors import UsageError

from .test_classifiers import FIRST, build, run

ARCH = "regattn_classifier"
PREDICTED = {"attention_density": "predicted", "attention_basis": 8}


@pytest.mark.parametrize("attention", CONTINUOUS)
def test_batch_and_padding_change_nothing(attention):
    model = build(ARCH, attention, **PREDICTED)
    together, weights = run(model, ARCH, [2, 0, 3, 1], extra=3)
    for place, row in enumerate([2, 0, 3, 1]):
        logits, alone = run(model, ARCH, [row])
        torch.testing.assert_close(together[place], logits[0], atol=1e-12, rtol=0)
        length = len(FIRST[row])
        torch.testing.assert_close(weights[place, :length], alone[0], atol=1e-12, rtol=0)
        assert (weights[place, length:] == 0).all()
    torch.testing.assert_close(weights.sum(1), torch.ones(4).double())
    assert together.std(0).max() > 0.01


def test_one_text_step_by_step():
    """The value function, at the mean of a narrow density, is what is classified."""
    model = build(ARCH, "continuous_sparsemax", **PREDICTED)
    attention = model.attention
    states = states_of(model, 0)
    padded = torch.cat([torch.zeros(1, 10), states, torch.zeros(1, 10)]).double()
    kernel, bias = attention.convolution.weight, attention.convolution.bias
    windows = [padded[i : i + 3] for i in range(len(states))]
    outputs = torch.stack([(kernel * w.T).sum((1, 2)) + bias for w in windows])
    mu, sigma2 = attention.output(outputs.relu().amax(0))
    density = Parabola(mu.sigmoid(), softplus(sigma2))
    basis = attention.regression.basis
    design = basis(positions(len(states)))
    ridge = design.T @ design + 0.01 * torch.eye(8, dtype=torch.double)
    coefficients = torch.linalg.solve(ridge, design.T @ states)
    [head] = model.classification_heads.values()
    logits, _ = run(model, ARCH, [0])
    expected = head(density.expectation(basis) @ coefficients)
    torch.testing.assert_close(logits[0], expected.detach(), atol=1e-5, rtol=0)


def states_of(model, row):
    tokens = torch.tensor([FIRST[row]])
    reference = torch.nn.LSTM(6, 5, batch_first=True, bidirectional=True).double()
    reference.load_state_dict(model.encoder.state_dict())
    return reference(model.words.weight[tokens])[0][0]


def test_all_parameters_learn():
    """None is left over, such as those of scores."""
    model = build(ARCH, "continuous_softmax", **PREDICTED)
    tokens = torch.tensor([FIRST[0]])
    logits, _ = model(tokens, torch.tensor([len(FIRST[0])]))
    logits.square().sum().backward()
    without = [name for name, p in model.named_parameters() if p.grad is None or not p.grad.any()]
    assert without == []


@pytest.mark.parametrize(
    ("attention", "density", "message"),
    [
        ("continuous_softmax", "guessed", "--attention-density must be moments or predicted"),
        ("fusedmax", "predicted", "belongs to continuous attention: .*; --attention is fusedmax"),
    ],
)
def test_wrong_flags(attention, density, message):
    with pytest.raises(UsageError, match=message):
        build(ARCH, attention, attention_density=density)


@pytest.mark.parametrize(
    ("flag", "value"),
    [
        ("basis", 3),
        ("basis_widths", "0"),
        ("combine", "product"),
        ("gamma", -1.0),
        ("lambda", -1.0),
        ("score", "guess"),
    ],
)
@pytest.mark.parametrize("density", ["moments", "predicted"])
def test_flags_without_effect_are_checked_all_the_same(flag, value, density):
    attention = "continuous_softmax" if density == "predicted" else "softmax"
    with pytest.raises(UsageError, match=f"--attention-{flag.replace('_', '-')} must be "):
        build(ARCH, attention, attention_density=density, **{f"attention_{flag}": value})


@pytest.mark.parametrize(
    "other",
    [
        {"attention": "continuous_sparsemax"},
        {"attention_basis": 16},
        {"attention_basis_widths": "0.1,0.3"},
    ],
)
def test_a_checkpoint_of_another_density_is_refused(other):
    trained = build(ARCH, "continuous_softmax", **PREDICTED).state_dict()
    options = {"attention": "continuous_softmax", **PREDICTED, **other}
    told = (
        r"trained with attention continuous_softmax\(density=predicted, basis=8, widths=0.1,0.5\)"
    )
    with pytest.raises(UsageError, match=told):
        build(ARCH, **options).load_state_dict(trained)
    build(ARCH, attention_swap=True, **options).load_state_dict(trained)


def test_a_checkpoint_without_a_name_is_loaded():
    model = build(ARCH, "continuous_softmax", **PREDICTED)
    trained = model.state_dict()
    del trained["attention.mapping_version"]
    model.load_state_dict(trained)
