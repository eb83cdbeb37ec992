"""The command line, refused in one line where it is wrong."""

import subprocess
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fairseq_regattn.attention import CONTINUOUS
from fairseq_regattn.mappings.registry import MAPPINGS as REGISTERED
from fairseq_regattn.recipes import options
from fairseq_regattn.recipes.options import (
    Attention,
    parse_quickstart,
    parse_reproduce,
    recipe_attentions,
)


def test_mappings_and_defaults_are_those_of_the_package():
    assert all(options.MAPPINGS[name] == {"basis": None} for name in CONTINUOUS)
    for name in REGISTERED:
        parameters = options.MAPPINGS[name]
        defaults = dict(REGISTERED[name].function.__kwdefaults__)
        del defaults["padding_mask"], defaults["gamma"]
        assert parameters == {"lambda" if k == "lam" else k: v for k, v in defaults.items()}
    assert set(options.MAPPINGS) == {*REGISTERED, *CONTINUOUS}


def test_softmax_and_fusedmax_unless_told_otherwise(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    chosen = parse_quickstart([])
    names = [attention.name for attention in chosen.attentions]
    assert names == ["softmax", "fusedmax-lambda0.1"]
    assert chosen.output == tmp_path / "quickstart-out"
    assert chosen.overrides == ()


def test_another_mapping_is_shown_beside_softmax():
    arguments = "--attention oscarmax --attention-lambda 0.02 --attention-gamma 0.5"
    softmax, oscarmax = parse_quickstart(arguments.split()).attentions
    assert softmax == Attention("softmax")
    assert oscarmax.name == "oscarmax-lambda0.02-gamma0.5"
    assert oscarmax.title == "oscarmax, lambda 0.02, gamma 0.5"
    assert oscarmax.settings == {
        "attention": "oscarmax",
        "attention_gamma": 0.5,
        "attention_lambda": 0.02,
    }


def test_basis_functions_are_told_where_they_are_given():
    given = [["--attention=continuous_softmax", *more] for more in ([], ["--attention-basis=32"])]
    (_, usual), (_, other) = (parse_quickstart(arguments).attentions for arguments in given)
    assert (usual.name, other.name) == ("continuous_softmax", "continuous_softmax-basis32")
    assert "attention_basis" not in usual.settings
    assert other.settings["attention_basis"] == 32
    assert isinstance(other.settings["attention_basis"], int)


def test_the_score_is_a_setting_of_all():
    chosen = parse_quickstart(["--attention=entmax", "--attention-score", "general"])
    assert chosen.overrides == ("model.attention_score=general",)
    assert [a.name for a in chosen.attentions] == ["softmax", "entmax-alpha1.5"]


@given(
    st.sampled_from(sorted(options.MAPPINGS)),
    *[st.floats(1e-9, 1e9)] * 2,
)
def test_a_name_tells_everything(mapping, gamma, value):
    attention = Attention(mapping, gamma, tuple((k, value) for k in options.MAPPINGS[mapping]))
    assert Attention.from_name(attention.name) == attention


def test_softmax_alone_and_settings():
    chosen = parse_quickstart(["--attention", "softmax", "optimization.max_update=2"])
    assert chosen.attentions == (Attention("softmax"),)
    assert chosen.overrides == ("optimization.max_update=2",)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--attention", "fusedmax2"], ["--attention", "'fusedmax2'", "oscarmax_prox"]),
        (["--attention-lambda", "-1"], ["--attention-lambda", ">= 0", "'-1'"]),
        (["--attention-lambda", "many"], ["--attention-lambda", "'many'"]),
        (["--attention-gamma", "0"], ["--attention-gamma", "> 0", "'0'"]),
        (["--attention-gamma", "inf"], ["--attention-gamma", "'inf'"]),
        (["--attention=pnormmax", "--attention-p", "3"], ["--attention-p", "<= 2", "'3'"]),
        (["--attention=entmax", "--attention-alpha", "1"], ["--attention-alpha", "> 1", "'1'"]),
        (["--attention=entmax", "--attention-lambda", "1"], ["belongs to fusedmax", "entmax"]),
        (["--attention-basis=1.5"], ["--attention-basis", "a whole number >= 1", "'1.5'"]),
        (["--attention-score", "sum"], ["--attention-score", "'sum'", "mlp"]),
        (["--atention", "softmax"], ["--atention"]),
        (["--output", ""], ["--output must not be empty"]),
        (["nonsense"], ["section.key=value", "'nonsense'"]),
    ],
)
def test_wrong_use_is_one_line(arguments, words, capsys):
    with pytest.raises(SystemExit) as ended:
        parse_quickstart(arguments)
    out, err = capsys.readouterr()
    assert ended.value.code == 2
    assert out == ""
    assert err.count("\n") == 1
    assert err.startswith("quickstart.sh: error: ")
    for word in words:
        assert word in err


def test_the_options_need_no_package():
    """``quickstart.sh`` checks them before anything is installed: -S hides site-packages."""
    for arguments, status in ([], 0), (["--help"], 0), (["--attention", "x"], 2):
        command = [sys.executable, "-I", "-S", options.__file__, "quickstart", *arguments]
        assert subprocess.run(command, capture_output=True, check=False).returncode == status


@pytest.fixture
def recipe(tmp_path):
    path = tmp_path / "some.yaml"
    path.write_text("title: x\n", encoding="utf-8")
    return str(path)


def test_reproduce(recipe, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    arguments = [recipe, "--attention", "softmax,fusedmax", "--attention-lambda=0.2"]
    arguments += ["--seed", "3,1", "--direction=ro-en,en-ro", "generate.beam=2", "--jobs=4"]
    chosen = parse_reproduce(arguments)
    assert [a.name for a in chosen.attentions] == ["softmax", "fusedmax-lambda0.2"]
    assert chosen.seeds == (3, 1)
    assert chosen.directions == ("ro-en", "en-ro")
    assert chosen.overrides == ("generate.beam=2",)
    assert (chosen.jobs, chosen.stage, chosen.dry_run, chosen.data) == (4, "report", False, None)
    assert (chosen.output, chosen.records) == (tmp_path / "runs", tmp_path / "runs" / "records")
    assert str(chosen.recipes[0]) == recipe


def test_parameters_are_for_the_mappings_of_the_recipe_too(recipe):
    chosen = parse_reproduce([recipe, "--attention-p", "1.2", "--attention-gamma", "2"])
    assert chosen.attentions == ()
    found = recipe_attentions(["pnormmax", "fusedmax"], chosen.parameters)
    assert [a.name for a in found] == ["pnormmax-p1.2-gamma2", "fusedmax-lambda0.1-gamma2"]
    assert len(recipe_attentions(["softmax", "softmax"], ())) == 1
    with pytest.raises(ValueError, match=r"attention must be of softmax, .*, got 'maxout'"):
        recipe_attentions(["softmax", "maxout"], ())


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ([], ["name a recipe"]),
        (["--seed", "x"], ["--seed", "'x'", ">= 1"]),
        (["--seed", str(2**32)], ["--seed", "< 2**32"]),
        (["--seed", ","], ["--seed must not be empty"]),
        (["--attention", ","], ["--attention must not be empty"]),
        (["--output", ""], ["--output must not be empty"]),
        (["--data", ""], ["--data must not be empty"]),
        (["--records", ""], ["--records must not be empty"]),
        (["--jobs", "0"], ["--jobs", "'0'", ">= 1"]),
        (["--stage", "training"], ["--stage", "'training'", "generate"]),
        (["--data", "nowhere"], ["--data nowhere", "no such folder"]),
        (["--attention", "softmax,sparse"], ["--attention", "'sparse'", "oscarmax_prox"]),
        (["--attention=entmax", "--attention-p=1.5"], ["--attention-p belongs to pnormmax"]),
        (["other.yaml"], ["other.yaml", "no such recipe"]),
        (["a b=c"], ["section.key=value", "'a b=c'"]),
    ],
)
def test_wrong_use_of_reproduce(recipe, arguments, words, capsys):
    with pytest.raises(SystemExit) as ended:
        parse_reproduce([*([recipe] if arguments else []), *arguments])
    err = capsys.readouterr().err
    assert ended.value.code == 2
    assert err.count("\n") == 1
    assert err.startswith("reproduce.sh: error: ")
    for word in words:
        assert word in err
