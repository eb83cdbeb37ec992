"""``--attention-density predicted`` of the classifier, against its definition."""

from types import SimpleNamespace

import pytest
import torch
from torch.nn.functional import pad, softplus

from fairseq_regattn.attention import CONTINUOUS
from fairseq_regattn.attention.continuous import LINE_DENSITIES, PredictedLineAttention
from fairseq_regattn.attention.continuous import build_regression as regression
from fairseq_regattn.continuous import positions
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


@pytest.mark.parametrize("name", CONTINUOUS)
def test_one_text_step_by_step(name):
    model = build(ARCH, name, **PREDICTED)
    attention = model.attention
    states = states_of(model, 0)
    padded = torch.cat([torch.zeros(1, 10), states, torch.zeros(1, 10)]).double()
    kernel, bias = attention.convolution.weight, attention.convolution.bias
    assert kernel.shape == (7, 10, 3)  # --attention-dim
    windows = [padded[i : i + 3] for i in range(len(states))]
    outputs = torch.stack([(kernel * w.T).sum((1, 2)) + bias for w in windows])
    mu, sigma2 = attention.output(outputs.relu().amax(0))
    density = LINE_DENSITIES[name](mu.sigmoid(), softplus(sigma2))
    basis = attention.regression.basis
    design = basis(positions(len(states), margin=True))
    ridge = design.T @ design + 0.01 * torch.eye(8, dtype=torch.double)
    beyond = len(states) // 2
    fitted = pad(states, (0, 0, beyond, beyond))  # with zeros
    coefficients = torch.linalg.solve(ridge, design.T @ fitted)
    [head] = model.classification_heads.values()
    logits, _ = run(model, ARCH, [0])
    expected = head(density.expectation(basis) @ coefficients)
    torch.testing.assert_close(logits[0], expected.detach(), atol=1e-5, rtol=0)


def alone(name, size=4, hidden=6):
    torch.manual_seed(3)
    return PredictedLineAttention(size, hidden, LINE_DENSITIES[name], regression(8, "0.1,0.5"))


@pytest.mark.parametrize("name", CONTINUOUS)
@pytest.mark.parametrize("start", [0, 2, 5])
def test_whatever_is_in_the_padding_and_wherever_it_is(name, start):
    attention = alone(name).double()
    states = torch.randn(3, 6, 4, dtype=torch.double)
    context, weights = attention(states, torch.zeros(3, 6, dtype=torch.bool))
    padded = 9 * torch.randn(3, 11, 4, dtype=torch.double)
    mask = torch.ones(3, 11, dtype=torch.bool)
    mask[:2, start : start + 6] = False  # the last row is all padding
    padded[:, start : start + 6] = states
    found, shown = attention(padded, mask)
    torch.testing.assert_close(found[:2], context[:2])
    torch.testing.assert_close(shown[:2, start : start + 6], weights[:2])
    assert (found[2] == 0).all()
    assert (shown[mask] == 0).all()


@pytest.mark.parametrize("name", CONTINUOUS)
@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float32, torch.float64])
@pytest.mark.parametrize("bias", [-1000.0, -20.0, 1e4, 1e9])
def test_no_variance_is_too_small_or_too_big(name, dtype, bias):
    attention = alone(name).to(dtype)
    with torch.no_grad():
        attention.output.bias[1] = bias
    states = torch.randn(2, 50, 4, dtype=dtype, requires_grad=True)
    context, weights = attention(states, torch.zeros(2, 50, dtype=torch.bool))
    assert context.dtype == weights.dtype == dtype
    context.float().square().sum().backward()
    for part in (context, weights, states.grad, attention.output.weight.grad):
        assert part.isfinite().all()
    torch.testing.assert_close(weights.double().sum(1), torch.ones(2).double(), atol=0.02, rtol=0)
    if bias >= 1e4:  # all but uniform
        assert weights.std(1).max() < 1e-3


def test_half_precision_computes_densities_in_single():
    """Else a mean near 1 has three digits."""
    attention = alone("continuous_softmax")
    states = torch.randn(8, 300, 4).bfloat16()
    mask = torch.zeros(8, 300, dtype=torch.bool)
    seen = []
    read = attention.density.from_score
    attention.density = SimpleNamespace(
        from_score=lambda *given: seen.extend(given) or read(*given)
    )
    attention.bfloat16()(states, mask)
    assert [part.dtype for part in seen] == [torch.float32] * 2


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
    settings = "density=predicted, basis=8, widths=0.1,0.5, margin=0.5"
    told = rf"trained with attention continuous_softmax\({settings}\)"
    with pytest.raises(UsageError, match=told):
        build(ARCH, **options).load_state_dict(trained)
    build(ARCH, attention_swap=True, **options).load_state_dict(trained)


def test_a_checkpoint_without_a_name_is_loaded():
    model = build(ARCH, "continuous_softmax", **PREDICTED)
    trained = model.state_dict()
    del trained["attention.mapping_version"]
    model.load_state_dict(trained)
