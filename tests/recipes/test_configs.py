"""Every file under ``configs/`` loads, resolves, and dry-runs."""

import re
import shlex
import sys
from pathlib import Path

import pytest
from fairseq import options
from fairseq.dataclass.utils import convert_namespace_to_omegaconf
from omegaconf import OmegaConf

import fairseq_regattn  # noqa: F401  registers the models
from fairseq_regattn.recipes.__main__ import planned, reproduce
from fairseq_regattn.recipes.commands import train_command
from fairseq_regattn.recipes.load import CONFIGS, PROFILES, load_recipe
from fairseq_regattn.recipes.options import parse_reproduce

FILES = sorted(CONFIGS.rglob("*.yaml"))
RECIPES = [path for path in FILES if path.parent != PROFILES]


def reference(profile):
    """The recipe that tells of a profile."""
    if profile == "nli":
        return CONFIGS / "entailment" / "snli.yaml"
    folder = {"classifier": "classification", "vqa": "vqa"}.get(profile, "translation")
    return CONFIGS / folder / "base.yaml"


def name(path):
    return str(path.relative_to(CONFIGS))


def test_all_directions_of_the_paper_have_a_recipe():
    names = {path.stem for path in RECIPES}
    for other in ("cs", "de", "fi", "ro", "ru"):
        assert {f"wmt16.{other}-en", f"wmt16.en-{other}"} <= names


@pytest.mark.parametrize(
    "path", [path for path in RECIPES if path.stem.startswith("wmt16.")], ids=name
)
def test_recipes_of_the_paper_are_tested_on_newstest2016(path):
    data = load_recipe(path).data
    pair = f"{data.source}{data.target}"
    [test], [valid] = data.mtdata["test"], data.mtdata["valid"]
    assert test.startswith(f"Statmt-newstest_{pair}-2016-")
    assert valid.startswith((f"Statmt-newstest_{pair}-2015-", "Statmt-newsdev"))
    assert not {test, valid} & set(data.mtdata["train"])


@pytest.mark.parametrize("path", FILES, ids=name)
def test_it_tells_what_it_is(path):
    lines = path.read_text(encoding="utf-8").splitlines()
    comment = "\n".join(line for line in lines[:20] if line.startswith("#"))
    assert len(comment.splitlines()) >= 2
    if path.parent != PROFILES and path.stem != "base":
        for word in ("data ", "command ", "expect"):
            assert word in comment


@pytest.mark.parametrize("path", RECIPES, ids=name)
def test_recipe_dry_runs(path, capsys, tmp_path):
    arguments = [str(path), "--dry-run", "--output", str(tmp_path / "out")]
    recipe = load_recipe(path)
    if not recipe.directions():
        arguments += ["--direction", "xx-yy"]
    assert reproduce(parse_reproduce(arguments), "") == 0
    lines = capsys.readouterr().out.splitlines()
    programs = ["fairseq-preprocess", "fairseq-hydra-train", "fairseq-train", "fairseq-generate"]
    if recipe.classification is not None:
        programs[-1] = f"{Path(sys.executable).name} -m fairseq_regattn.classification predict"
    if recipe.questions is not None:
        programs = [*programs[1:3], f"{Path(sys.executable).name} -m fairseq_regattn.vqa predict"]
    for program in programs:
        assert any(f" && {program} " in line for line in lines)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    "path", [path for path in RECIPES if path.parent.name == "translation"], ids=name
)
def test_name_says_the_direction(path):
    recipe = load_recipe(path)
    if recipe.data.source:
        assert recipe.name.endswith(f".{recipe.direction}")


@pytest.mark.parametrize(
    "change", ["summary.bytes=60", "generate.beam=9", "data.references=[title1]", "data.original=x"]
)
def test_what_duc_does_with_outputs_leaves_the_models_alone(change):
    arguments = [str(CONFIGS / "summarization" / "duc2004.yaml"), "--dry-run"]
    plain, changed = (planned(parse_reproduce([*arguments, *more])) for more in ([], [change]))
    assert [run.workspace.key for run in plain][:1] == [run.workspace.key for run in changed][:1]
    assert plain[-1].workspace.key != changed[-1].workspace.key


def test_duc_is_decoded_by_models_of_gigaword(capsys, tmp_path):
    """Which are trained in the same command, once, and its dictionaries are used."""
    paths = [str(CONFIGS / "summarization" / f"duc{year}.yaml") for year in (2003, 2004)]
    arguments = [*paths, "--dry-run", "--output", str(tmp_path / "out"), "--attention=fusedmax"]
    assert reproduce(parse_reproduce(arguments), "") == 0
    lines = capsys.readouterr().out.splitlines()
    assert sum(" && fairseq-hydra-train " in line for line in lines) == 1
    tests = [line for line in lines if " && fairseq-preprocess " in line]
    assert [line.count("pref ") for line in tests] == [3, 1, 1]
    assert all("--srcdict " in line and "--nwordssrc" not in line for line in tests[1:])
    generated = [line for line in lines if " && fairseq-generate " in line]
    model = r"--path \S*gigaword/article-title/settings-\w+/models/\S*/checkpoint_best.pt "
    assert len(generated) == 3
    assert all(re.search(model, line) for line in generated[1:])


@pytest.mark.parametrize("path", sorted(PROFILES.glob("*.yaml")), ids=lambda path: path.stem)
def test_profiles_have_what_runs_rely_on(path):
    train = load_recipe(reference(path.stem), [f"profile={path.stem}"]).train
    assert train["common"]["log_format"] == "json"  # is read
    assert train["dataset"]["required_batch_size_multiple"] == 1  # no sentence is left out
    assert train["dataset"]["update_epoch_batch_itr"] is True  # resumed is uninterrupted
    assert train["checkpoint"]["no_epoch_checkpoints"] is True  # the disk stays small


@pytest.mark.parametrize("path", sorted(PROFILES.glob("*.yaml")), ids=lambda path: path.stem)
def test_flags_and_hydra_say_the_same(path, tmp_path):
    """What ``fairseq-train`` makes of the flags is what ``fairseq-hydra-train`` reads."""
    changes = [f"profile={path.stem}", "optimization.lr=[0.5,0.25]"]
    recipe = load_recipe(reference(path.stem), changes)
    settings = dict(recipe.train)
    settings["task"] = {**settings["task"], "data": "bin"}
    if recipe.translates:
        settings["task"].update(source_lang="a", target_lang="b")
    words = train_command(settings)[1:]
    given = [word for word in words if word.startswith("--")]
    assert len(given) == len(set(given))
    parser = options.get_training_parser()
    read = convert_namespace_to_omegaconf(options.parse_args_and_arch(parser, words))
    for section, values in settings.items():
        for key, value in values.items():
            if value is None or (section, key) == ("task", "data"):
                continue
            if settings["optimizer"]["_name"] == "sgd" and section == "optimizer":
                continue  # has no section of its own: it reads the flags themselves
            found = OmegaConf.select(read, f"{section}.{key}")
            if key == "_name" or isinstance(value, str):
                assert str(found) == value, (section, key)
            else:
                assert found == value, (section, key)


def test_a_hydra_sweep_reads_a_profile(run_python, package_dir):
    """As the comment of base.yaml says; ``--cfg`` prints the first job and trains nothing."""
    code = "import sys; from fairseq_cli.hydra_train import cli_main; sys.exit(cli_main())"
    arguments = f"--config-dir {shlex.quote(str(PROFILES))} --config-name paper --cfg job"
    arguments += " model.attention=fusedmax task.data=bin task.source_lang=ro task.target_lang=en"
    arguments += f" common.user_dir={package_dir}"
    printed = run_python("-c", code, *shlex.split(arguments), path=[package_dir.parent]).stdout
    assert "attention: fusedmax" in printed
    assert "max_epoch: 13" in printed
    assert Path(package_dir).exists()
