"""The module twins: the functions, with parameters that are kept, learned and saved."""

import copy
import io
import pickle

import pytest
import torch
from torch import nn

from .cases import ALL, ids

every_module = pytest.mark.parametrize("case", ALL, ids=ids)


def scores():
    generator = torch.Generator().manual_seed(0)
    return torch.randn(3, 7, generator=generator, dtype=torch.float64)


MASK = torch.tensor([[False] * 7, [False] * 5 + [True] * 2, [True] * 3 + [False] * 4])


def names(case):
    return ("gamma", *case.params)


def learned(case):
    """Every parameter as an nn.Parameter, away from its default."""
    values = [0.8, *(v[0] * 1.1 for v in case.params.values())]
    tensors = (nn.Parameter(torch.tensor(v, dtype=torch.float64)) for v in values)
    return dict(zip(names(case), tensors))


@every_module
def test_equals_the_function(case):
    x = scores()
    defaults = case.twin()
    assert torch.equal(defaults(x), case(x))
    assert torch.equal(defaults(x, MASK), case(x, padding_mask=MASK))
    assert torch.equal(defaults(x, padding_mask=MASK), case(x, padding_mask=MASK))
    for setting in case.settings():
        module = case.twin(dim=0, **setting)
        assert torch.equal(module(x.T, MASK.T), case(x.T, 0, padding_mask=MASK.T, **setting))
    positional = case.twin(-1, *case.settings()[-1].values())
    assert torch.equal(positional(x), case(x, **case.settings()[-1]))


@every_module
def test_numbers_are_not_state(case):
    module = case.twin(**case.settings()[-1])
    assert list(module.parameters()) == []
    assert len(module.state_dict()) == 0


@every_module
def test_learned_parameters(case):
    module = case.twin(**learned(case))
    assert {name for name, _ in module.named_parameters()} == set(names(case))
    assert set(module.state_dict()) == set(names(case))
    (module(scores(), MASK) * scores()).sum().backward()
    for name, parameter in module.named_parameters():
        assert parameter.grad.abs() > 1e-6, name
    before = {name: p.item() for name, p in module.named_parameters()}
    torch.optim.SGD(module.parameters(), lr=1e-3).step()
    assert all(p.item() != before[name] for name, p in module.named_parameters())


@every_module
def test_state_dict(case):
    module, other = case.twin(**learned(case)), case.twin(**learned(case))
    with torch.no_grad():
        for parameter in module.parameters():
            parameter.add_(0.05)
    assert not torch.equal(module(scores()), other(scores()))
    other.load_state_dict(module.state_dict())
    assert torch.equal(module(scores()), other(scores()))


@every_module
@pytest.mark.parametrize("learn", [False, True], ids=["numbers", "learned"])
def test_copies(case, learn):
    """deepcopy, pickle and torch.save, as fairseq does with models and configurations."""
    module = case.twin(**(learned(case) if learn else case.settings()[-1]))
    buffer = io.BytesIO()
    torch.save(module, buffer)
    buffer.seek(0)
    for twin in (
        copy.deepcopy(module),
        pickle.loads(pickle.dumps(module)),
        torch.load(buffer, weights_only=False),
    ):
        assert torch.equal(twin(scores(), MASK), module(scores(), MASK))
        assert not {id(p) for p in twin.parameters()} & {id(p) for p in module.parameters()}


@every_module
def test_repr(case):
    setting = case.settings()[-1]
    shown = repr(case.twin(dim=1, **setting))
    assert shown.startswith(case.module)
    assert "dim=1" in shown
    for name, value in setting.items():
        assert f"{name}={value}" in shown


@every_module
def test_one_value_a_head(case):
    """A tensor of shape (heads, 1) serves scores of batch x heads x length."""
    x = torch.stack([scores(), scores().flip(1)])
    wiggle = torch.tensor([[1.0], [1.1], [1.2]], dtype=torch.float64)
    setting = {name: wiggle * v for name, v in case.settings()[0].items()}
    weights = case.twin(**setting)(x)
    for head in range(3):
        one = {name: value[head].item() for name, value in setting.items()}
        torch.testing.assert_close(weights[:, head], case(x[:, head], **one))


@every_module
def test_follows_dtype(case):
    """.half() on the model reaches learned parameters; the weights follow the scores."""
    module = case.twin(**learned(case)).float()
    assert all(p.dtype == torch.float32 for p in module.parameters())
    assert module(scores().float()).dtype == torch.float32
    assert module.to(torch.bfloat16)(scores().bfloat16()).dtype == torch.bfloat16


@every_module
def test_bad_values_are_refused_at_once(case):
    for name in names(case):
        with pytest.raises(ValueError, match=name):
            case.twin(**{name: -1.0})
