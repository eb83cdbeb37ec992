"""Attention by densities: contexts, shown weights, padding, precision, and the flags' errors."""

import copy
import pickle

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from scipy.integrate import quad

from fairseq_regattn.attention import Attention, build_mapping
from fairseq_regattn.attention.continuous import (
    LINE_DENSITIES,
    LineAttention,
    build_attention,
)
from fairseq_regattn.attention.registry import CONTINUOUS
from fairseq_regattn.continuous import positions
from fairseq_regattn.errors import UsageError

BSZ, LENGTH, QUERY, VALUE = 3, 6, 4, 5
BEAMS, STEPS = 2, 3
F64 = torch.float64

every_line = pytest.mark.parametrize("name", LINE_DENSITIES)


def line(name="continuous_softmax", dtype=F64, **settings):
    torch.manual_seed(0)
    return build_attention(name, QUERY, VALUE, **settings).to(dtype)


def batch():
    """Padding on the right, on the left, and in the middle."""
    torch.manual_seed(1)
    values = torch.randn(BSZ + 1, LENGTH, VALUE, dtype=F64)
    queries = torch.randn((BSZ + 1) * BEAMS, STEPS, QUERY, dtype=F64)
    mask = torch.zeros(BSZ + 1, LENGTH, dtype=torch.bool)
    mask[1, 4:] = True
    mask[2, :3] = True
    mask[3, [1, 4]] = True
    return queries, values, mask


def test_the_registry_knows_the_names():
    """It names them without importing them."""
    assert tuple(LINE_DENSITIES) == CONTINUOUS


@every_line
@pytest.mark.parametrize("combine", ["sum", "replace"])
def test_alone_and_in_a_batch(name, combine):
    """Beams, steps and padding change nothing; everything by hand for one query."""
    module = line(name, combine=combine)
    queries, values, mask = batch()
    context, weights = module(queries, module.remember(values, mask))
    assert context.shape == (len(queries), STEPS, VALUE)
    assert weights.shape == (len(queries), STEPS, LENGTH)
    for row in range(len(queries)):
        keep = ~mask[row // BEAMS]
        states = values[row // BEAMS, keep].unsqueeze(0)
        memory = module.remember(states, torch.zeros(states.shape[:2], dtype=torch.bool))
        for step in range(STEPS):
            query = queries[row, step].view(1, 1, -1)
            alone, shown = module(query, memory)
            torch.testing.assert_close(context[row, step], alone[0, 0], rtol=0, atol=1e-12)
            torch.testing.assert_close(weights[row, step, keep], shown[0, 0], rtol=0, atol=1e-12)
            assert (weights[row, step, ~keep] == 0).all()
            assert weights[row, step].sum().item() == pytest.approx(1, abs=1e-12)


@every_line
@pytest.mark.parametrize("combine", ["sum", "replace"])
def test_by_definition(name, combine):
    """Moments of softmax, the density's mean of V, its masses in the bins."""
    module = line(name, combine=combine)
    queries, values, _ = batch()
    values, query = values[:1], queries[:1, :1]
    mask = torch.zeros(1, LENGTH, dtype=torch.bool)
    context, weights = module(query, module.remember(values, mask))
    discrete = module.score(query, module.score.keys(values)).softmax(-1).flatten()
    places = (torch.arange(LENGTH, dtype=F64) + 0.5) / LENGTH
    mean = discrete @ places
    variance = discrete @ (places - mean) ** 2
    density = LINE_DENSITIES[name].from_moments(mean, variance)
    basis = module.regression.basis
    design = basis(positions(LENGTH, margin=True))
    gram = design.T @ design + 0.01 * torch.eye(len(basis))
    fitted = F.pad(values[0], (0, 0, LENGTH // 2, LENGTH // 2))  # and zeros beyond the sentence
    coefficients = torch.linalg.solve(gram, design.T @ fitted)  # N x dim

    def function(t):
        t = torch.tensor(t, dtype=F64)
        return density.pdf(t) * (basis(t) @ coefficients)

    def mean_of(dim):
        reach = 8 * variance.sqrt().item()
        low, high = mean.item() - reach, mean.item() + reach
        points = np.linspace(low, high, 12)[1:-1]
        return quad(lambda t: function(t)[dim].item(), low, high, points=points, epsabs=1e-9)[0]

    expected = torch.tensor([mean_of(dim) for dim in range(VALUE)], dtype=F64)
    if combine == "sum":
        expected = expected + discrete @ values[0]
    torch.testing.assert_close(context.flatten(), expected, rtol=0, atol=1e-6)
    edges = density.cdf(torch.linspace(0, 1, LENGTH + 1, dtype=F64))
    masses = edges.diff() / (edges[-1] - edges[0])
    torch.testing.assert_close(weights.flatten(), masses, rtol=0, atol=1e-12)


@every_line
@pytest.mark.parametrize("length", [7, 60, 301])
@pytest.mark.parametrize("variance", [1 / 12, 1.0])
def test_a_broad_density_reads_the_sentence(name, length, variance):
    """Its mean, and not what a regression happens to be where there is nothing to fit."""
    module = build_attention(name, QUERY, 50, basis=64, widths="0.1,0.5").double()
    values = torch.randn(1, length, 50, dtype=F64)
    memory = module.remember(values, torch.zeros(1, length, dtype=torch.bool))
    middle, ends = torch.full((1, 1), 0.5, dtype=F64), torch.tensor([0.0, 1.0], dtype=F64)
    density = LINE_DENSITIES[name].from_moments(middle, torch.full_like(middle, variance))
    context, weights = module.read_density(density, memory)
    mean = (weights @ values).flatten() * density.mass(*ends).item()
    context = context.flatten()
    assert torch.cosine_similarity(context, mean, dim=0) > 0.95
    assert 0.7 < context.norm() / mean.norm() < 1.3


@every_line
def test_combined_contexts(name):
    """Of one set of weights: the sum is the discrete context and the density's."""
    queries, values, mask = batch()
    total, density = (line(name, combine=how) for how in ("sum", "replace"))
    discrete = Attention(QUERY, VALUE, build_mapping("softmax")).double()
    discrete.score = density.score = total.score
    contexts = [m(queries, m.remember(values, mask))[0] for m in (total, density, discrete)]
    torch.testing.assert_close(contexts[0], contexts[1] + contexts[2])


@every_line
def test_a_sharp_density_reads_the_value_function(name):
    """At its mean: V(mu) is B psi(mu)."""
    module = line(name, combine="replace")
    _, values, mask = batch()
    memory = module.remember(values, mask)
    mu = torch.rand(len(values), 7, dtype=F64)
    density = LINE_DENSITIES[name](mu, torch.full_like(mu, 1e-20))
    context, weights = module.read_density(density, memory)
    expected = module.regression.basis(mu) @ memory.coefficients
    torch.testing.assert_close(context, expected, rtol=0, atol=1e-3)
    for row, column in np.ndindex(*mu.shape):  # all of the weight is on the bin that holds mu
        count = (~mask[row]).sum()
        bin_of = int(mu[row, column] * count)
        place = (~mask[row]).nonzero().flatten()[bin_of]
        assert weights[row, column, place] == 1


@every_line
def test_padding_only(name):
    module = line(name)
    queries, values, _ = batch()
    values = values.requires_grad_()
    context, weights = module(queries, module.remember(values, torch.ones(4, 6, dtype=torch.bool)))
    assert (context == 0).all()
    assert (weights == 0).all()
    (context.sum() + weights.sum()).backward()
    assert (values.grad == 0).all()


@every_line
@pytest.mark.parametrize("length", [0, 1])
def test_short_sentences(name, length):
    module = line(name)
    queries, values, mask = batch()
    context, weights = module(queries, module.remember(values[:, :length], mask[:, :length]))
    assert context.isfinite().all()
    present = (~mask[:, :length]).double().repeat_interleave(BEAMS, 0).unsqueeze(1)
    torch.testing.assert_close(weights, present.expand_as(weights))


@every_line
def test_gradients(name):
    """Of queries and states through weights, moments, density and regression."""
    module = line(name)
    queries, values, mask = batch()
    queries, values = queries[:4, :1].requires_grad_(), values[1:3].requires_grad_()

    def attend(queries, values):
        return module(queries, module.remember(values, mask[1:3]))

    assert torch.autograd.gradcheck(attend, (queries, values))


@every_line
@pytest.mark.parametrize("dtype", [torch.float32, torch.float16, torch.bfloat16])
def test_lower_precision(name, dtype):
    """Outputs have the inputs' precision; moments and density have at least float32's."""
    module = line(name)
    queries, values, mask = batch()
    precise = module(queries, module.remember(values, mask))
    module = copy.deepcopy(module).to(dtype)
    given = values.to(dtype).requires_grad_()
    found = module(queries.to(dtype), module.remember(given, mask))
    eps = torch.finfo(dtype).eps
    for low, high in zip(found, precise):
        assert low.dtype == dtype
        torch.testing.assert_close(low.double(), high, rtol=0, atol=max(64 * eps, 1e-4))
    found[0].sum().backward()
    assert given.grad.isfinite().all()


@every_line
def test_autocast_rounds_no_variances(name):
    """Products are of low precision there, and offsets from a rounded mean no deviations."""
    module = line(name, torch.float32)
    _, values, mask = batch()
    memory = module.remember(values.float(), mask)
    weights = torch.rand(4, 2, LENGTH).masked_fill(mask.unsqueeze(1), 0)
    weights = weights / weights.sum(-1, keepdim=True)
    _, precise = module.read(weights, memory)
    with torch.autocast("cpu", torch.bfloat16):
        context, shown = module.read(weights, memory)
    torch.testing.assert_close(shown, precise)
    assert context.isfinite().all()


@every_line
@pytest.mark.parametrize("length", [3, 50, 2450])
def test_shown_weights_are_never_negative(name, length):
    """Differences of a rounded cdf can be, towards the ends of a support."""
    module = line(name, torch.float32)
    mask = torch.zeros(1, length, dtype=torch.bool)
    memory = module.remember(torch.zeros(1, length, VALUE), mask)
    deviation = torch.tensor([0.01, 0.1, 0.2, 0.3, 0.5])
    mean = torch.tensor([[0.1], [0.5], [0.73]])
    density = LINE_DENSITIES[name].from_moments(
        mean.expand(3, 5).reshape(1, -1), deviation.square().expand(3, 5).reshape(1, -1)
    )
    _, weights = module.read_density(density, memory)
    assert (weights >= 0).all()
    assert weights.sum(-1).flatten().tolist() == pytest.approx([1] * 15, abs=1e-4)


@every_line
def test_inference_before_training(name):
    module = line(name)
    queries, values, mask = batch()
    with torch.inference_mode():
        expected = module(queries, module.remember(values, mask))
    context, weights = module(queries, module.remember(values.requires_grad_(), mask))
    context.sum().backward()
    torch.testing.assert_close((context, weights), expected)


@every_line
def test_copies(name):
    module = line(name)
    queries, values, mask = batch()
    expected = module(queries, module.remember(values, mask))
    for other in (copy.deepcopy(module), pickle.loads(pickle.dumps(module))):
        torch.testing.assert_close(other(queries, other.remember(values, mask)), expected)


@every_line
def test_memory_of_rows(name):
    """Reordered beams read their own sentence's coefficients."""
    module = line(name)
    queries, values, mask = batch()
    memory = module.remember(values, mask)
    context, weights = module(queries, memory)
    order = torch.tensor([3, 3, 1, 1])
    rows = torch.tensor([6, 7, 2, 3])
    found = module(queries[rows], memory.for_rows(order))
    torch.testing.assert_close(found, (context[rows], weights[rows]))


def version(module):
    return bytes(module.mapping_version.tolist()).rstrip(b"\0").decode()


def test_version_is_density_and_settings():
    module = line("continuous_sparsemax", gamma=2.0, basis=64, widths="0.1,0.5", combine="replace")
    assert version(module) == (
        "continuous_sparsemax(gamma=2.0, combine=replace, basis=64, widths=0.1,0.5, margin=0.5)"
    )
    spaced = line("continuous_sparsemax", basis=64, widths="0.1, 0.5")
    assert version(spaced) == version(line("continuous_sparsemax", basis=64, widths="0.1,0.5"))


@pytest.mark.parametrize(
    "other",
    [
        {"name": "continuous_softmax"},
        {"combine": "replace"},
        {"basis": 60},
        {"widths": "0.1,0.2,0.5"},
        {"gamma": 2.0},
        {"name": "softmax"},
    ],
    ids=str,
)
def test_another_attention_is_refused(other):
    mine = {"name": "continuous_sparsemax"}
    module, trained = line(**mine), line(**{**mine, **other})
    with pytest.raises(UsageError, match="the checkpoint was trained with attention") as error:
        module.load_state_dict(trained.state_dict())
    assert version(trained) in str(error.value)
    line(**mine, allow_swap=True).load_state_dict(trained.state_dict())
    module.load_state_dict(line(**mine).state_dict())


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"name": "nope"}, r"--attention 'nope' is not registered; choose from .*continuous_softm"),
        ({"widths": "a,b"}, "--attention-basis-widths must be numbers > 0 .*, got 'a,b'"),
        ({"widths": ""}, "--attention-basis-widths must be numbers > 0 .*, got ''"),
        ({"widths": "0.1,,0.2"}, "--attention-basis-widths must be numbers > 0 .*, got '0.1,,0.2'"),
        ({"widths": "0.1,0"}, "--attention-basis-widths must be numbers > 0 .*, got '0.1,0'"),
        ({"widths": "-1"}, "--attention-basis-widths must be numbers > 0 .*, got '-1'"),
        ({"widths": "nan"}, "--attention-basis-widths must be numbers > 0 .*, got 'nan'"),
        ({"widths": "inf"}, "--attention-basis-widths must be numbers > 0 .*, got 'inf'"),
        ({"widths": "1e-60"}, "--attention-basis-widths must be numbers > 0 .*, got '1e-60'"),
        ({"widths": "1e60"}, "--attention-basis-widths must be numbers > 0 .*, got '1e60'"),
        ({"basis": 31}, "--attention-basis must be a multiple of 3, .*-widths, got 31"),
        ({"basis": 0}, "--attention-basis must be a multiple of 3, .*-widths, got 0"),
        ({"basis": -3}, "--attention-basis must be a multiple of 3, .*-widths, got -3"),
        ({"combine": "mean"}, "--attention-combine must be sum or replace, got 'mean'"),
        ({"gamma": 0.0}, r"--attention-gamma must be a finite number > 0, got 0\.0"),
        ({"score": "cosine"}, "--attention-score must be one of .*, got 'cosine'"),
    ],
    ids=str,
)
def test_wrong_settings(settings, message):
    with pytest.raises(UsageError, match=message) as error:
        line(**{"name": "continuous_sparsemax", **settings})
    assert "\n" not in str(error.value)


def test_discrete_names_build_discrete_attention():
    module = line("entmax", alpha=1.25)
    assert type(module) is Attention
    assert version(module) == "entmax(gamma=1.0, alpha=1.25)"
    assert type(line()) is LineAttention
