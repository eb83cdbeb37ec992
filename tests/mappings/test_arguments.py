"""Wrong arguments are answered by name and value, as ValueError, before any work."""

import pytest
import torch

from fairseq_regattn import mappings
from fairseq_regattn.errors import ArgumentError

from .cases import ALL, BAD, WITH_OMEGA, WITH_PARAMS, ids

X = torch.tensor([[0.1, 0.3, -0.2], [0.5, 0.0, 0.2]], dtype=torch.float64)
TARGET = torch.tensor([0, 2])

every_mapping = pytest.mark.parametrize("case", ALL, ids=ids)
BAD_PARAMS = [
    pytest.param(case, name, value, id=f"{case.name}-{name}-{value}")
    for case, name in WITH_PARAMS
    for value in BAD[name]
]


def refuses(call, name, value):
    """One line, which names the argument and shows the value."""
    with pytest.raises(ValueError, match=rf"\b{name}\b") as error:
        call()
    assert isinstance(error.value, ArgumentError)
    assert str(value) in str(error.value)
    assert error.value.argument == name


@pytest.mark.parametrize(("case", "name", "value"), BAD_PARAMS)
def test_parameter_out_of_range(case, name, value):
    refuses(lambda: case(X, **{name: value}), name, value)
    refuses(lambda: case.twin(**{name: value}), name, value)
    for tensor in (torch.tensor(value), torch.full((2, 1), value)):
        with pytest.raises(ValueError, match=rf"\b{name}\b"):
            case(X, **{name: tensor})
    one_bad = torch.tensor([[1.5], [value]])
    with pytest.raises(ValueError, match=rf"\b{name}\b"):
        case(X, **{name: one_bad})
    if case in WITH_OMEGA:
        refuses(lambda: case.value(X, **{name: value}), name, value)
        refuses(lambda: case.loss(X, TARGET, **{name: value}), name, value)


@pytest.mark.parametrize(("case", "name"), WITH_PARAMS, ids=ids)
@pytest.mark.parametrize("value", ["1.5", None, True, [1.5]], ids=repr)
def test_parameter_of_the_wrong_type(case, name, value):
    refuses(lambda: case(X, **{name: value}), name, value)


@pytest.mark.parametrize(("case", "name"), WITH_PARAMS, ids=ids)
@pytest.mark.parametrize("shape", [(3, 1), (2, 3), (3,), (1, 2, 1)], ids=str)
def test_parameter_of_the_wrong_shape(case, name, shape):
    """Size 1 along dim, and no more dimensions than the scores."""
    refuses(lambda: case(X, **{name: torch.full(shape, 1.5)}), name, shape)


@every_mapping
@pytest.mark.parametrize("shape", [(3, 3), (2, 4), (2,), (1, 2, 3)], ids=str)
def test_mask_of_the_wrong_shape(case, shape):
    mask = torch.zeros(shape, dtype=torch.bool)
    refuses(lambda: case(X, padding_mask=mask), "padding_mask", shape)
    if case in WITH_OMEGA:
        refuses(lambda: case.value(X, padding_mask=mask), "padding_mask", shape)
        refuses(lambda: case.loss(X, TARGET, padding_mask=mask), "padding_mask", shape)


@every_mapping
@pytest.mark.parametrize("dtype", [torch.float32, torch.int64, torch.uint8], ids=str)
def test_mask_of_the_wrong_dtype(case, dtype):
    """0/1 masks are refused: multiplicative and additive masks mean opposite things."""
    refuses(lambda: case(X, padding_mask=torch.zeros(2, 3, dtype=dtype)), "padding_mask", dtype)


@every_mapping
def test_mask_that_is_no_tensor(case):
    with pytest.raises(ValueError, match="padding_mask"):
        case(X, padding_mask=[[False] * 3] * 2)


@every_mapping
@pytest.mark.parametrize("dtype", [torch.int64, torch.int32, torch.bool, torch.complex64], ids=str)
def test_scores_of_the_wrong_dtype(case, dtype):
    refuses(lambda: case(X.to(dtype)), "scores", dtype)
    if case in WITH_OMEGA:
        refuses(lambda: case.value(X.to(dtype)), "scores", dtype)


@every_mapping
def test_scores_that_are_no_vector(case):
    with pytest.raises(ValueError, match="scores"):
        case(torch.tensor(1.0))
    with pytest.raises(ValueError, match="scores"):
        case([0.1, 0.2])


@every_mapping
@pytest.mark.parametrize("dim", [2, -3, 1.0, None])
def test_dim(case, dim):
    refuses(lambda: case(X, dim), "dim", dim)


@every_mapping
def test_only_the_first_two_are_positional(case):
    with pytest.raises(TypeError):
        getattr(mappings, case.name)(X, -1, None)


@pytest.mark.parametrize("case", WITH_OMEGA, ids=ids)
def test_targets(case):
    refuses(lambda: case.loss(X, torch.tensor([0, 3])), "target", 3)
    refuses(lambda: case.loss(X, torch.tensor([-1, 0])), "target", -1)
    refuses(lambda: case.loss(X, torch.tensor([0, 1, 2])), "target", (3,))
    refuses(lambda: case.loss(X, torch.full((2, 4), 0.25)), "target", (2, 4))
    mask = torch.tensor([[True, False, False], [False] * 3])
    with pytest.raises(ValueError, match="target"):  # class 0 of row 0 cannot be reached
        case.loss(X, TARGET, padding_mask=mask)


def test_unknown_names():
    with pytest.raises(ValueError, match="softmaxx"):
        mappings.regularized_max(X, "softmaxx")
    with pytest.raises(ValueError, match="mapping"):
        mappings.regularized_max(X, torch.sigmoid)
    with pytest.raises(ValueError, match="oscarmax_prox"):
        mappings.regularized_max(X, mappings.oscarmax_prox)


def test_parameter_of_another_mapping():
    with pytest.raises(TypeError, match="lam"):
        mappings.softmax(X, lam=0.1)
    with pytest.raises(ValueError, match="parameter must be one of gamma, got 'lam'"):
        mappings.regularized_max(X, "softmax", lam=0.1)
