"""``register_attention`` and what ``build_mapping`` makes of the flags."""

import functools
import importlib
import logging
import sys

import pytest
import torch

from fairseq_regattn import mappings
from fairseq_regattn.attention import ATTENTIONS, build_mapping, register_attention
from fairseq_regattn.errors import UsageError

FLAGS = {
    "gamma": "--attention-gamma",
    "lam": "--attention-lambda",
    "p": "--attention-p",
    "alpha": "--attention-alpha",
}
TAKES = {"pnormmax": "p", "fusedmax": "lam", "oscarmax": "lam", "oscarmax_prox": "lam"}
TAKES["entmax"] = "alpha"
GIVEN = {"lam": 0.7, "p": 1.2, "alpha": 1.8}


def halves(scores, dim=-1, *, padding_mask=None, gamma=1.0):
    return mappings.softmax(scores, dim, padding_mask=padding_mask, gamma=gamma / 2)


def test_every_mapping_of_the_design_is_there():
    names = "softmax sparsemax pnormmax fusedmax oscarmax oscarmax_prox entmax"
    assert set(ATTENTIONS) >= set(names.split())
    for name in names.split():
        assert ATTENTIONS[name] is getattr(mappings, name)


def test_register(registry):
    assert register_attention("halves")(halves) is halves
    assert registry["halves"] is halves
    scores = torch.randn(3, 5)
    weights = build_mapping("halves", gamma=3.0)(scores, None)
    torch.testing.assert_close(weights, torch.softmax(scores / 1.5, -1))


def test_register_the_same_function_again(registry):
    register_attention("halves")(halves)
    register_attention("halves")(halves)
    assert registry["halves"] is halves


def test_register_after_the_module_is_loaded_anew(registry, tmp_path, monkeypatch):
    """As when a folder is imported by name and by --user-dir: a new function, the same code."""
    (tmp_path / "third_party_attention.py").write_text(
        "from fairseq_regattn.attention import register_attention\n"
        "@register_attention('third')\n"
        "def third(scores, dim=-1, *, padding_mask=None):\n"
        "    return scores\n"
    )
    monkeypatch.syspath_prepend(tmp_path)
    module = importlib.import_module("third_party_attention")
    first = registry["third"]
    importlib.reload(module)
    assert registry["third"] is module.third is not first
    del sys.modules["third_party_attention"]


@pytest.mark.parametrize(
    "other",
    [
        lambda scores, dim=-1: scores,
        functools.partial(halves),
        functools.partial(mappings.fusedmax, lam=5.0),
    ],
)
def test_a_taken_name_is_refused(registry, other):
    with pytest.raises(UsageError, match=r"'fusedmax' is registered already, by fairseq_regattn"):
        register_attention("fusedmax")(other)
    assert registry["fusedmax"] is mappings.fusedmax


def test_a_partial_is_a_mapping_too(registry):
    register_attention("strong")(functools.partial(mappings.fusedmax, lam=5.0))
    scores = torch.randn(2, 6)
    assert str(build_mapping("strong")) == "strong(gamma=1.0, lam=5.0)"
    torch.testing.assert_close(
        build_mapping("strong")(scores, None), mappings.fusedmax(scores, lam=5.0)
    )
    with pytest.raises(UsageError, match="'strong' is registered already"):
        register_attention("strong")(halves)


def test_an_unknown_name_lists_the_known():
    with pytest.raises(UsageError) as error:
        build_mapping("fusedmax2")
    assert str(error.value).startswith("--attention 'fusedmax2' is not registered; choose from ")
    assert all(name in str(error.value) for name in ATTENTIONS)
    assert "\n" not in str(error.value)


@pytest.mark.parametrize("name", sorted(TAKES))
def test_flags_reach_the_mapping(name):
    key = TAKES[name]
    scores = 2 * torch.randn(4, 7, dtype=torch.float64)
    mask = torch.zeros(4, 7, dtype=torch.bool)
    mask[1, 4:] = True
    bound = build_mapping(name, gamma=0.6, **{key: GIVEN[key]})
    params = {"gamma": 0.6, key: GIVEN[key]}
    assert bound.params == params
    expected = getattr(mappings, name)(scores, padding_mask=mask, **params)
    assert torch.equal(bound(scores, mask), expected)
    default = getattr(mappings, name)(scores, padding_mask=mask, gamma=0.6)
    assert not torch.allclose(expected, default)


@pytest.mark.parametrize("name", sorted(TAKES))
def test_without_flags_the_defaults_of_the_mapping(name):
    function = getattr(mappings, name)
    bound = build_mapping(name, lam=None, p=None, alpha=None)
    defaults = {k: v for k, v in function.__kwdefaults__.items() if k != "padding_mask"}
    assert bound.params == defaults
    key = TAKES[name]
    assert str(bound) == f"{name}(gamma=1.0, {key}={defaults[key]})"


@pytest.mark.parametrize("name", ["softmax", "sparsemax", *sorted(TAKES)])
@pytest.mark.parametrize("key", sorted(GIVEN))
def test_flags_without_effect_are_warned_of(name, key, caplog):
    with caplog.at_level(logging.WARNING):
        bound = build_mapping(name, **{key: GIVEN[key]})
    taken = TAKES.get(name) == key
    assert (key in bound.params) == taken
    messages = [record.getMessage() for record in caplog.records]
    if taken:
        assert messages == []
    else:
        assert messages == [f"{FLAGS[key]} {GIVEN[key]} has no effect: {name} does not take it"]


@pytest.mark.parametrize("name", ["softmax", "fusedmax", "entmax", "pnormmax"])
@pytest.mark.parametrize(
    ("key", "value"),
    [
        *(("gamma", value) for value in (0.0, -1.0, float("nan"))),
        *(("lam", value) for value in (-1.0, float("inf"))),
        *(("p", value) for value in (3.0, 1.0)),
        ("alpha", 1.0),
    ],
)
def test_a_value_out_of_range_names_flag_and_value(name, key, value):
    """Also where the mapping would not take it: it is a mistake all the same."""
    with pytest.raises(UsageError) as error:
        build_mapping(name, **{key: value})
    assert str(error.value).startswith(f"{FLAGS[key]} must be ")
    assert repr(value) in str(error.value)
    assert "tensor" not in str(error.value)  # nobody types a tensor on a command line


def test_a_parameter_without_default_must_be_given(registry):
    def needs(scores, dim=-1, *, padding_mask=None, lam):
        return scores * lam

    register_attention("needs")(needs)
    with pytest.raises(UsageError, match="--attention-lambda must be given: needs has no default"):
        build_mapping("needs")
    assert build_mapping("needs", lam=0.5).params == {"lam": 0.5}
