"""torch.compile, torch.export, torch.func and fake tensors see through every mapping."""

import pytest
import torch
from torch import nn
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.fx.experimental.proxy_tensor import make_fx

from .cases import ALL, ids

F64 = torch.float64
GAMMA = 0.8

# The default backend, inductor, needs a C++ compiler on the CPU; what it is handed is the same.
BACKEND = "aot_eager"


def batch(*shape, seed=0):
    generator = torch.Generator().manual_seed(seed)
    return 0.6 * torch.randn(*shape, generator=generator, dtype=F64)


MASK = torch.zeros(4, 9, dtype=torch.bool)
MASK[1, 6:] = MASK[2, :3] = MASK[3] = True


class Attend(nn.Module):
    """Scores, a mapping with parameters of its own, a context: what users compile."""

    def __init__(self, case, learned):
        super().__init__()
        self.keys = nn.Linear(3, 9, bias=False, dtype=F64)
        params = {"gamma": GAMMA, **{name: values[0] for name, values in case.params.items()}}
        if learned:
            params = {k: nn.Parameter(torch.tensor(v, dtype=F64)) for k, v in params.items()}
        self.mapping = case.twin(**params)

    def forward(self, query, mask):
        weights = self.mapping(self.keys(query), mask)
        return weights @ torch.arange(9, dtype=F64), weights


def run(module, query, call):
    """Context, weights, and gradients of the query and of all parameters."""
    query = query.clone().requires_grad_()
    context, weights = call(query, MASK)
    loss = context.square().sum() + weights.pow(3).sum()
    return context, weights, *torch.autograd.grad(loss, [query, *module.parameters()])


operators = pytest.mark.skipif(
    not hasattr(torch.library, "register_vmap"), reason="operators need torch >= 2.5"
)


@pytest.fixture(autouse=True)
def fresh_compiler():
    if hasattr(torch, "_dynamo"):
        torch._dynamo.reset()


@operators
@pytest.mark.parametrize("learned", [False, True], ids=["numbers", "learned"])
@pytest.mark.parametrize("case", ALL, ids=ids)
def test_compile(case, learned):
    """One graph; values and gradients, of parameters too, as in eager mode."""
    torch.manual_seed(0)
    module = Attend(case, learned)
    compiled = torch.compile(module, fullgraph=True, backend=BACKEND)
    for query in (batch(4, 3), batch(4, 3, seed=1)):
        found = run(module, query, compiled)
        expected = run(module, query, module)
        assert len(found) == len(expected) == 4 + (learned and 1 + len(case.params))
        for one, other in zip(found, expected):
            torch.testing.assert_close(one, other, rtol=1e-10, atol=1e-12)


@operators
@pytest.mark.parametrize("case", ALL, ids=ids)
def test_compile_with_shapes_that_vary(case):
    """Any dim and any size, without a graph for each."""
    graphs = []

    def backend(graph, inputs):
        graphs.append(graph)
        return graph

    compiled = torch.compile(
        lambda x: case(x, 1, gamma=GAMMA), fullgraph=True, backend=backend, dynamic=True
    )
    for shape in ((2, 5, 3), (3, 7, 4), (5, 11, 6)):
        x = batch(*shape)
        torch.testing.assert_close(compiled(x), case(x, 1, gamma=GAMMA), rtol=0, atol=1e-12)
    assert len(graphs) == 1


@operators
@pytest.mark.parametrize("case", ALL, ids=ids)
def test_compile_half_precision(case):
    x = batch(4, 9).half()
    compiled = torch.compile(lambda x: case(x), fullgraph=True, backend=BACKEND)
    assert torch.equal(compiled(x), case(x))


@operators
@pytest.mark.parametrize("case", ALL, ids=ids)
def test_compile_refuses_by_name(case):
    compiled = torch.compile(lambda x: case(x, gamma=-1.0), backend=BACKEND)
    with pytest.raises(Exception, match="gamma must be a finite number > 0"):
        compiled(batch(4, 9))


@operators
@pytest.mark.parametrize("case", ALL, ids=ids)
def test_export(case):
    module = Attend(case, learned=False)
    sizes = {0: torch.export.Dim("rows")}
    exported = torch.export.export(
        module, (batch(4, 3), MASK), dynamic_shapes={"query": sizes, "mask": sizes}
    )
    query, mask = batch(6, 3, seed=1), torch.zeros(6, 9, dtype=torch.bool)
    for one, other in zip(exported.module()(query, mask), module(query, mask)):
        torch.testing.assert_close(one, other)


@operators
@pytest.mark.parametrize("case", ALL, ids=ids)
def test_fake_tensors(case):
    """Shapes without values, for those who plan memory."""
    with FakeTensorMode():
        x = torch.empty(4, 9, requires_grad=True)
        weights = case(x)
        assert weights.shape == (4, 9)
        assert torch.autograd.grad(weights.sum(), x)[0].shape == (4, 9)


@pytest.mark.parametrize("case", ALL, ids=ids)
def test_vmap(case):
    x = batch(3, 4, 9)
    gamma = torch.tensor([0.7, 1.0, 2.0], dtype=F64)
    masks = torch.stack([MASK, ~MASK, MASK.flip(0)])
    rows = torch.func.vmap(lambda x: case(x, gamma=GAMMA))(x)
    torch.testing.assert_close(rows, case(x, gamma=GAMMA))
    columns = torch.func.vmap(lambda x: case(x, gamma=GAMMA), in_dims=2, out_dims=2)(x)
    torch.testing.assert_close(columns, case(x, 1, gamma=GAMMA))
    found = torch.func.vmap(lambda x, m, g: case(x, padding_mask=m, gamma=g))(x, masks, gamma)
    expected = case(x, padding_mask=masks, gamma=gamma.reshape(3, 1, 1))
    torch.testing.assert_close(found, expected)
    one_x = torch.func.vmap(lambda g: case(x[0], gamma=g))(gamma)
    torch.testing.assert_close(one_x, torch.stack([case(x[0], gamma=g) for g in gamma]))


@pytest.mark.parametrize("case", ALL, ids=ids)
def test_functional_derivatives(case):
    """grad, jacrev, both twice, and batched: in the scores and in every parameter."""
    names = ("gamma", *case.params)
    values = [torch.tensor(v, dtype=F64) for v in (GAMMA, *(v[0] for v in case.params.values()))]
    upstream = batch(4, 9, seed=2)

    def loss(x, *values):
        weights = case(x, padding_mask=MASK, **dict(zip(names, values)))
        return (weights * upstream).sum()

    x = batch(4, 9)
    inputs = tuple(t.clone().requires_grad_() for t in (x, *values))
    expected = torch.autograd.grad(loss(*inputs), inputs)
    argnums = tuple(range(len(inputs)))
    for found in (
        torch.func.grad(loss, argnums)(x, *values),
        torch.func.jacrev(loss, argnums)(x, *values),
    ):
        for one, other in zip(found, expected):
            torch.testing.assert_close(one, other)
    batched = torch.func.vmap(torch.func.grad(loss), in_dims=(0, *(None for _ in values)))
    torch.testing.assert_close(batched(torch.stack([x, x + 1e-3]), *values)[0], expected[0])
    twice = torch.func.jacrev(torch.func.jacrev(loss))(x, *values)
    hessian = torch.autograd.functional.hessian(lambda x: loss(x, *values), x)
    torch.testing.assert_close(twice, hessian)


@pytest.mark.parametrize("case", ALL, ids=ids)
def test_unreadable_parameters_out_of_range_give_nan(case):
    """Where values cannot be looked at there is no error, and no nonsense either."""
    gamma = torch.tensor([1.0, 0.0, -1.0, float("inf"), float("nan")], dtype=F64)
    x = batch(9)
    weights = torch.func.vmap(lambda g: case(x, gamma=g))(gamma)
    assert torch.isfinite(weights[0]).all()
    assert weights[1:].isnan().all()
    bad = {"lam": -1.0, "p": 3.0, "alpha": 1.0}
    for name in case.params:
        values = torch.tensor([case.params[name][0], bad[name], float("nan")], dtype=F64)
        weights = torch.func.vmap(lambda v, name=name: case(x, **{name: v}))(values)
        assert torch.isfinite(weights[0]).all()
        assert weights[1:].isnan().all(), name


@operators
@pytest.mark.parametrize("case", ALL, ids=ids)
def test_tensors_without_memory(case):
    """Meta tensors have shapes only, whoever made them; nothing is read at address 0."""
    x = torch.empty(3, 5, device="meta", requires_grad=True)
    weights = case(x)
    assert weights.shape == (3, 5)
    assert weights.is_meta
    assert torch.autograd.grad(weights.sum(), x)[0].is_meta
    with torch.device("meta"):
        assert nn.Sequential(nn.Linear(5, 5), case.twin())(torch.empty(3, 5)).is_meta
    with pytest.raises(ValueError, match="padding_mask must be on cpu"):
        case(batch(3, 5), padding_mask=torch.ones(3, 5, dtype=torch.bool, device="meta"))
    with FakeTensorMode(allow_non_fake_inputs=True):
        assert case(batch_outside).shape == (3, 5)


batch_outside = batch(3, 5)


@pytest.mark.parametrize("case", ALL, ids=ids)
def test_negated_views(case):
    """Their memory holds the opposite sign."""
    x = batch(3, 5).requires_grad_()
    torch.testing.assert_close(case(torch._neg_view(x)), case(-x))
    found, expected = (
        torch.autograd.grad(case(x), x, upstream)[0]
        for upstream in (torch._neg_view(batch(3, 5, seed=1)), -batch(3, 5, seed=1))
    )
    torch.testing.assert_close(found, expected)


@operators
@pytest.mark.parametrize("case", ALL, ids=ids)
def test_recorded_graphs_hold_the_mapping(case):
    """Not what it gave while they were recorded."""
    one, other = batch(3, 5), batch(3, 5, seed=1)
    graph = make_fx(lambda x: case(x, gamma=GAMMA))(one)
    torch.testing.assert_close(graph(other), case(other, gamma=GAMMA))
    traced = torch.jit.trace(lambda x: case(x, gamma=GAMMA), (one,))
    torch.testing.assert_close(traced(other), case(other, gamma=GAMMA))


@operators
@pytest.mark.filterwarnings("ignore:There is a performance drop")
@pytest.mark.parametrize("case", ALL, ids=ids)
def test_batched_gradients(case):
    x = batch(3, 5).requires_grad_()
    weights, upstream = case(x, gamma=GAMMA), batch(4, 3, 5, seed=1)
    (found,) = torch.autograd.grad(weights, x, upstream, retain_graph=True, is_grads_batched=True)
    one_by_one = [torch.autograd.grad(weights, x, u, retain_graph=True)[0] for u in upstream]
    torch.testing.assert_close(found, torch.stack(one_by_one))


@pytest.mark.parametrize("case", [case for case in ALL if case.params], ids=ids)
def test_gradient_of_a_batch_of_parameters(case):
    """vmap inside grad: the mapping cannot see that its parameter is to be differentiated."""
    name, (value, *_) = next(iter(case.params.items()))
    x, values = batch(4, 3, 6), torch.full((4,), value, dtype=F64)

    def loss(values):
        each = torch.func.vmap(lambda x, v: case(x, **{name: v}).square().sum())
        return each(x, values).sum()

    leaf = values.clone().requires_grad_()
    weights = torch.stack([case(x_one, **{name: v}) for x_one, v in zip(x, leaf)])
    (expected,) = torch.autograd.grad(weights.square().sum(), leaf)
    torch.testing.assert_close(torch.func.grad(loss)(values), expected)
