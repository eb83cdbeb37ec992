"""The command line, refused in one line where it is wrong."""

import subprocess
import sys

import pytest

from fairseq_regattn.mappings.registry import MAPPINGS as REGISTERED
from fairseq_regattn.quickstart import options
from fairseq_regattn.quickstart.options import Attention, parse


def test_mappings_and_defaults_are_those_of_the_package():
    for name, parameters in options.MAPPINGS.items():
        defaults = dict(REGISTERED[name].function.__kwdefaults__)
        del defaults["padding_mask"], defaults["gamma"]
        assert parameters == {"lambda" if k == "lam" else k: v for k, v in defaults.items()}
    assert set(options.MAPPINGS) == set(REGISTERED)


def test_softmax_and_fusedmax_unless_told_otherwise(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    chosen = parse([])
    names = [attention.name for attention in chosen.attentions]
    assert names == ["softmax", "fusedmax-lambda0.1"]
    assert chosen.output == tmp_path / "quickstart-out"
    assert chosen.overrides == ()


def test_another_mapping_is_shown_beside_softmax():
    arguments = "--attention oscarmax --attention-lambda 0.02 --attention-gamma 0.5"
    softmax, oscarmax = parse(arguments.split()).attentions
    assert softmax == Attention("softmax")
    assert oscarmax.name == "oscarmax-lambda0.02-gamma0.5"
    assert oscarmax.title == "oscarmax, lambda 0.02, gamma 0.5"
    assert oscarmax.overrides == [
        "model.attention=oscarmax",
        "model.attention_score=mlp",
        "model.attention_gamma=0.5",
        "model.attention_lambda=0.02",
    ]


def test_the_score_is_the_same_for_both():
    softmax, entmax = parse(["--attention=entmax", "--attention-score", "general"]).attentions
    assert (softmax.name, entmax.name) == ("softmax-general", "entmax-alpha1.5-general")


def test_softmax_alone_and_settings():
    chosen = parse(["--attention", "softmax", "optimization.max_update=2"])
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
        (["--attention-score", "sum"], ["--attention-score", "'sum'", "mlp"]),
        (["--atention", "softmax"], ["--atention"]),
        (["nonsense"], ["section.key=value", "'nonsense'"]),
        (["model.attention=softmax"], ["model.attention", "set by the quick start"]),
    ],
)
def test_wrong_use_is_one_line(arguments, words, capsys):
    with pytest.raises(SystemExit) as ended:
        parse(arguments)
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
        command = [sys.executable, "-I", "-S", options.__file__, *arguments]
        assert subprocess.run(command, capture_output=True, check=False).returncode == status
