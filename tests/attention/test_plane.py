"""Attention by densities over a grid: contexts, weights of cells, precision."""

import numpy as np
import pytest
import torch

from fairseq_regattn.attention import build_mapping
from fairseq_regattn.attention.continuous import PLANE_DENSITIES, PlaneAttention
from fairseq_regattn.continuous import PlaneBasis, RidgeRegression, positions

QUERY, VALUE = 4, 5
BEAMS, STEPS = 2, 3
F64 = torch.float64

every_plane = pytest.mark.parametrize("name", PLANE_DENSITIES)


def plane(name="continuous_softmax", dtype=F64):
    torch.manual_seed(0)
    regression = RidgeRegression(PlaneBasis.grid(4, 0.02))
    mapping = build_mapping("softmax")
    return PlaneAttention(QUERY, VALUE, mapping, PLANE_DENSITIES[name], regression).to(dtype)


@every_plane
@pytest.mark.parametrize("size", [(4, 5), (1, 3), (1, 1)], ids=str)
def test_plane_by_definition(name, size):
    module = plane(name)
    grid = torch.randn(2, *size, VALUE, dtype=F64)
    queries = torch.randn(4, STEPS, QUERY, dtype=F64)
    memory = module.remember_grid(grid)
    context, weights = module(queries, memory)
    cells = torch.stack(torch.meshgrid(*map(positions, size), indexing="ij"), -1).flatten(0, 1)
    for row, step in np.ndindex(4, STEPS):
        values = grid[row // BEAMS].flatten(0, 1)
        keys = module.score.keys(values.unsqueeze(0))
        discrete = module.score(queries[row, step].view(1, 1, -1), keys).softmax(-1).flatten()
        mean = discrete @ cells
        offsets = cells - mean
        covariance = torch.einsum("l,la,lb->ab", discrete, offsets, offsets)
        density = PLANE_DENSITIES[name].from_moments(mean, covariance)
        expected = density.expectation(module.regression.basis)
        expected = expected @ module.regression.matrix(*size).T @ values
        torch.testing.assert_close(context[row, step], expected)
        heights = density.pdf(cells)
        torch.testing.assert_close(weights[row, step], heights / heights.sum())
        assert weights[row, step].sum().item() == pytest.approx(1, abs=1e-12)


@every_plane
@pytest.mark.parametrize("dtype", [torch.float32, torch.float16, torch.bfloat16])
@pytest.mark.parametrize("sharpness", [1.0, 1000.0])
def test_plane_in_lower_precision(name, dtype, sharpness):
    """Weights of one cell, of two, of all: cells' weights sum to one."""
    module = plane(name)
    grid = torch.randn(2, 14, 14, VALUE, dtype=F64)
    queries = sharpness * torch.randn(2, 20, QUERY, dtype=F64)
    module = module.to(dtype)
    given = grid.to(dtype).requires_grad_()
    context, weights = module(queries.to(dtype), module.remember_grid(given))
    assert context.dtype == weights.dtype == dtype
    assert (weights >= 0).all()
    total = weights.double().sum(-1)
    torch.testing.assert_close(total, torch.ones_like(total), rtol=0, atol=0.05)
    (context.sum() + weights.square().sum()).backward()
    assert given.grad.isfinite().all()


@every_plane
def test_two_cells_keep_their_weight(name):
    """A density between two cells, along a side or the diagonal, is never lost between all."""
    module = plane(name, torch.float32)
    memory = module.remember_grid(torch.randn(1, 14, 14, VALUE))
    weights = torch.zeros(1, 3, 196)
    for row, (one, other) in enumerate([(0, 1), (0, 15), (0, 195)]):
        weights[0, row, one], weights[0, row, other] = 0.5, 0.5
    context, shown = module.read(weights, memory)
    assert context.isfinite().all()
    assert shown.sum(-1).flatten().tolist() == pytest.approx([1] * 3, abs=1e-5)


@every_plane
def test_gradients_of_the_plane(name):
    module = plane(name)
    grid = torch.randn(1, 2, 3, VALUE, dtype=F64, requires_grad=True)
    queries = torch.randn(2, 1, QUERY, dtype=F64, requires_grad=True)

    def attend(queries, grid):
        return module(queries, module.remember_grid(grid))

    assert torch.autograd.gradcheck(attend, (queries, grid))


@every_plane
def test_inference_before_training_of_the_plane(name):
    module = plane(name)
    grid, queries = torch.randn(1, 2, 3, VALUE, dtype=F64), torch.randn(2, 1, QUERY, dtype=F64)
    with torch.inference_mode():
        expected = module(queries, module.remember_grid(grid))
    context, weights = module(queries, module.remember_grid(grid.requires_grad_()))
    context.sum().backward()
    torch.testing.assert_close((context, weights), expected)


@every_plane
def test_autocast_of_the_plane(name):
    module = plane(name, torch.float32)
    memory = module.remember_grid(torch.randn(2, 4, 5, VALUE))
    weights = torch.rand(2, 3, 20).softmax(-1)
    context, precise = module.read(weights, memory)
    with torch.autocast("cpu", torch.bfloat16):
        low, shown = module.read(weights, memory)
    torch.testing.assert_close(shown, precise)
    torch.testing.assert_close(low.float(), context, rtol=0, atol=0.02 * context.abs().max())
