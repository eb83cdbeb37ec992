"""A question attends to an image: against slow versions, alone and in a batch."""

from argparse import Namespace

import pytest
import torch
from fairseq import models

from fairseq_regattn.attention import ATTENTIONS as DISCRETE
from fairseq_regattn.attention import PlaneAttention, build_plane_attention
from fairseq_regattn.errors import UsageError

from . import toy

QUESTIONS = [[4, 5, 6, 7, 8], [11, 12], [5], [6, 4, 14, 9]]
CONTINUOUS = ["continuous_softmax", "continuous_sparsemax"]
ATTENTIONS = [*sorted(DISCRETE), *CONTINUOUS]
SHAPE = (6, 5, 4)


def task(shape=SHAPE):
    words = toy.dictionary()
    return Namespace(source_dictionary=words, labels=["yes", "no", "2", "red"], grid_shape=shape)


def build(attention="softmax", shape=SHAPE, **flags):
    """In double precision and eval mode; large weights, so that attention is not uniform."""
    torch.manual_seed(1)
    given = {"embed_dim": 6, "hidden_size": 7, **flags}
    args = Namespace(arch="regattn_vqa", attention=attention, **given)
    model = models.build_model(args, task(shape)).double().eval()
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.add_(0.5 * torch.randn_like(parameter))
    return model


def inputs(rows, extra=0, shape=SHAPE):
    tokens, lengths = toy.pad([torch.tensor(QUESTIONS[i]) for i in rows], "right", extra)
    generator = torch.Generator().manual_seed(3)
    grids = torch.randn(len(QUESTIONS), *shape, generator=generator).double()
    return {"src_tokens": tokens, "src_lengths": lengths, "grid": grids[rows]}


def run(model, rows, extra=0, shape=SHAPE):
    with torch.no_grad():
        logits, other = model(**inputs(rows, extra, shape))
    return [logits, *other["attn"], *other["moments"]]


@pytest.mark.parametrize("stem", [0, 3])
@pytest.mark.parametrize("attention", ATTENTIONS)
def test_alone_and_in_a_batch(attention, stem):
    shape = (12, 8, 3) if stem else SHAPE
    model = build(attention, shape, stem=stem)
    rows = [2, 0, 3, 1]
    together = run(model, rows, extra=3, shape=shape)
    assert together[1].shape == (4, 3, 2) if stem else (4, 6, 5)
    assert len(together) == (4 if attention in CONTINUOUS else 2)
    for place, row in enumerate(rows):
        for batched, [alone] in zip(together, run(model, [row], shape=shape)):
            torch.testing.assert_close(batched[place], alone, atol=1e-12, rtol=0)
    torch.testing.assert_close(together[1].sum((1, 2)), torch.ones(4).double())
    assert together[0].std(0).max() > 0.01
    assert together[1].flatten(1).std(1).max() > 0.01


@pytest.mark.parametrize("attention", ["sparsemax", "continuous_softmax"])
def test_it_is_what_it_says(attention):
    """One question, word by word and cell by cell."""
    model = build(attention)
    given = inputs([0])
    reference = torch.nn.LSTM(6, 7, batch_first=True).double()
    reference.load_state_dict(model.encoder.state_dict())
    _, (last, _) = reference(model.words.weight[given["src_tokens"]])
    question = last[0, 0]
    grid = given["grid"][0]
    cells = torch.stack([torch.relu(model.cells(cell)) for row in grid for cell in row])
    scores = model.attention.score(question[None, None], model.attention.score.keys(cells[None]))
    weights = model.attention.mapping(scores[0], torch.zeros(1, len(cells), dtype=torch.bool))[0]
    if attention == "sparsemax":
        context = weights @ cells
        assert 1 < (weights > 0).sum() < len(cells)  # else the test would see little
    else:
        # the middle of cell (i, j) is ((i + 1/2) / 6, (j + 1/2) / 5)
        places = [((i + 0.5) / 6, (j + 0.5) / 5) for i in range(6) for j in range(5)]
        places = torch.tensor(places).double()
        mean = weights @ places
        spread = sum(w * torch.outer(t - mean, t - mean) for w, t in zip(weights, places))
        spread = spread + 1e-6 * torch.eye(2).double()
        found = run(model, [0])
        torch.testing.assert_close(found[2][0], mean.detach(), atol=1e-6, rtol=0)
        torch.testing.assert_close(found[3][0], spread.detach(), atol=1e-6, rtol=0)
        basis = model.attention.regression.basis.double_precision()
        normal = torch.distributions.MultivariateNormal
        centres, widths = basis.centres, basis.covariances
        expected = torch.stack(
            [normal(c, spread + w).log_prob(mean).exp() for c, w in zip(centres, widths)]
        )
        context = expected @ model.attention.regression.matrix(6, 5).double().T @ cells
    joined = torch.relu(model.from_context(context)) * torch.relu(model.from_question(question))
    [head] = model.classification_heads.values()
    torch.testing.assert_close(run(model, [0])[0][0], head(joined).detach(), atol=1e-5, rtol=1e-5)


@pytest.mark.parametrize("attention", CONTINUOUS)
def test_gradients_pass_through_the_moments(attention):
    """Of a context that depends on the question by the density only, and on cells by it, too."""
    shape = (16, 12, 3)
    model = build(attention, shape, stem=3).train()
    given = inputs([0, 1], shape=shape)
    question = model.read_question(given["src_tokens"], given["src_lengths"])
    cells = model.see(given["grid"])
    memory = model.attention.remember_grid(cells)
    weights = model.attention.weigh(question.unsqueeze(1), memory)
    density = model.attention.density_of(weights, memory)
    # the values as they are: what is left is the way through scores, weights and moments
    fixed = memory._replace(coefficients=memory.coefficients.detach())
    context, _ = model.attention.read_density(density, fixed)
    context.square().sum().backward()
    reached = [model.words.weight, model.encoder.weight_ih_l0, model.encoder.weight_hh_l0]
    reached += [model.cells.weight, *model.stem.parameters()]
    for parameter in reached:
        assert parameter.grad is not None
        assert parameter.grad.abs().max() > 0


@pytest.mark.parametrize("attention", CONTINUOUS)
def test_gradients_are_those_of_differences(attention):
    model = build(attention)
    given = inputs([0, 3])

    def loss(weight):
        changed = {**dict(model.named_parameters()), "encoder.weight_hh_l0": weight}
        logits, _ = torch.func.functional_call(model, changed, (), given)
        return logits.square().sum()

    weight = model.encoder.weight_hh_l0.detach().clone().requires_grad_()
    assert torch.autograd.gradcheck(loss, weight, eps=1e-6, atol=1e-6)


def test_bytes_are_pixels():
    model = build(shape=(8, 8, 3), stem=2)
    pixels = torch.randint(0, 256, (1, 8, 8, 3), dtype=torch.uint8)
    torch.testing.assert_close(model.see(pixels), model.see(2 * pixels.double() / 255 - 1))


def test_a_large_score_looks_at_its_cell():
    """Rows go down and columns to the right, in weights and in moments."""
    for attention in CONTINUOUS:
        model = build(attention)
        memory = model.attention.remember_grid(torch.zeros(1, 6, 5, 7).double())
        weights = torch.zeros(1, 1, 6, 5).double()
        weights[0, 0, 4, 1] = 1
        density = model.attention.density_of(weights.flatten(2), memory)
        wanted = torch.tensor([[[4.5 / 6, 1.5 / 5]]]).double()
        torch.testing.assert_close(density.mean, wanted, atol=1e-6, rtol=0)
        _, shown = model.attention.read_density(density, memory)
        assert shown.view(6, 5)[4, 1] == shown.max()


def test_attention_of_papers():
    made = build_plane_attention("continuous_sparsemax", 3, 3)
    assert isinstance(made, PlaneAttention)
    assert len(made.regression.basis) == 100
    assert torch.equal(made.regression.basis.covariances[0], 0.001 * torch.eye(2))
    assert (made.regression.penalty, made.regression.margin) == (0.01, True)
    assert made.name == "continuous_sparsemax(gamma=1.0, side=10, variance=0.001)"


@pytest.mark.parametrize(
    ("flags", "message"),
    [
        ({"attention": "continuous_biweight"}, "'continuous_biweight' is for texts; for images"),
        ({"attention": "odd"}, "--attention 'odd' is not registered"),
        ({"stem": -1}, "--stem must be at least 0, got -1"),
        ({"hidden_size": 0}, "--hidden-size must be at least 1, got 0"),
        ({"dropout": 1.0}, "--dropout must be a number with 0 <= value < 1"),
        ({"attention_gamma": 0.0}, "--attention-gamma must be"),
    ],
)
def test_wrong_options(flags, message):
    with pytest.raises(UsageError, match=message):
        build(**flags)


def test_other_tasks_are_refused():
    with pytest.raises(UsageError, match="--arch regattn_vqa needs --task vqa"):
        models.build_model(Namespace(arch="regattn_vqa"), toy.task())
