"""Reading recipes, and what tells two of them apart."""

import json

import pytest

from fairseq_regattn.errors import UsageError
from fairseq_regattn.recipes.load import CONFIGS, load_recipe
from fairseq_regattn.recipes.prepare import open_workspace

PLAIN = CONFIGS / "translation" / "plain.yaml"


@pytest.fixture
def write(tmp_path):
    def _write(text, name="some.yaml"):
        path = tmp_path / name
        path.write_text(text, encoding="utf-8")
        return path

    return _write


def test_base_profile_and_changes(write):
    write("title: Base\nprofile: small\ngenerate: {beam: 3, lenpen: 2}\n", "base.yaml")
    path = write("base: base.yaml\ntrain: {model: {dropout: 0.4}}\ngenerate: {beam: 4}\n")
    recipe = load_recipe(path, ["optimization.max_update=7", "generate.lenpen=0.5"])
    assert (recipe.name, recipe.title) == ("some", "Base")
    assert recipe.generate == {"beam": 4, "lenpen": 0.5}
    assert recipe.train["model"]["dropout"] == 0.4
    assert recipe.train["model"]["_name"] == "regattn_lstm_iwslt"
    assert recipe.train["optimization"]["max_update"] == 7
    assert recipe.train["lr_scheduler"]["total_num_update"] == 7  # the profile refers to it
    assert load_recipe(path, ["profile=paper"]).train["optimization"]["max_epoch"] == 13


@pytest.mark.parametrize(
    ("text", "changes", "words"),
    [
        ("tilte: x", [], ["some.yaml", "'tilte'"]),
        ("data: {soruce: ro}", [], ["some.yaml", "'soruce'"]),
        ("preprocess: {subwords: many}", [], ["some.yaml", "many"]),
        ("preprocess: {subwords: -1}", [], ["preprocess.subwords", "-1"]),
        ("preprocess: {tokenizer: mosses}", [], ["preprocess.tokenizer", "moses or none"]),
        ("preprocess: {max_words: 0}", [], ["preprocess.max_words", "at least 1"]),
        ("data: {source: ro, target: ro}", [], ["data.target", "another language"]),
        ("data: {files: {dev: x}}", [], ["data.files", "train, valid and test", "dev"]),
        ("profile: papre", [], ["some.yaml", "profile", "'papre'", "modern, nli, paper"]),
        ("base: none.yaml", [], ["none.yaml", "no such recipe"]),
        ("a: [", [], ["some.yaml", "not YAML", "line 1"]),
        ("- a", [], ["some.yaml", "keys and values"]),
        ("title: x", ["optimization.max_update"], ["section.key=value"]),
        ("title: x", ["model.attention=softmax"], ["model.attention", "--attention"]),
        ("title: x", ["common.seed=3"], ["common.seed", "--seed"]),
        ("title: x", ["common={seed: 3}"], ["common.seed", "--seed"]),
        ("title: x", ["train={model: {attention_p: 2}}"], ["attention_p", "--attention-p"]),
        ("train: {model: {attention_lambda: 5}}", [], ["some.yaml", "--attention-lambda"]),
        ("train: {task: {_name: language_modeling}}", [], ["task", "the direction"]),
        ("title: x", ["base=plain.yaml"], ["base", "command line"]),
        ("title: x", ["attention=softmax"], ["attention", "command line"]),
        ("title: x", ["generate.beam=["], ["'generate.beam=['"]),
        ("title: x", ["title=@x"], ["'title=@x'"]),
        ("base: 5", [], ["base must be the name of a file", "5"]),
        ("base: some.yaml", [], ["some.yaml: base leads back to the file itself"]),
        ("data: {source: ro}", [], ["data.source and data.target", "given both"]),
        ("attention: []", [], ["attention", "at least one mapping"]),
        ("train: {model: {5: 1, a: 2}}", [], ["some.yaml"]),
        ("generate: {x: !!binary aGk=}", [], ["some.yaml"]),
        ("data: {gold: g}\npreprocess: {tokenizer: moses}", [], ["none where", "data.gold"]),
        ("title: x", ["generate.score_reference=true"], ["score_reference", "not for recipes"]),
        ("title: x", ["generate.nbest=2"], ["nbest", "not for recipes"]),
        ("title: x", ["generate.nbes=2"], ["--nbes", "no flag of fairseq-generate"]),
        ("title: x", ["generate.beem=3"], ["--beem", "no flag of fairseq-generate"]),
        ("title: x", ["generate.beam=many"], ["--beam", "many"]),
        ("title: x", ["model.foo=1"], ["foo"]),
        ("title: x", ["model.dropout=abc"], ["dropout", "abc"]),
        ("title: x", ["model._name=lstm"], ["model._name", "regattn_lstm_small", "'lstm'"]),
        ("title: x", ["criterion._name=foo"], ["criterion._name", "cross_entropy", "'foo'"]),
        ("title: x", ["optimizer._name=foo"], ["optimizer._name", "adam", "'foo'"]),
        ("title: x", ["lr_scheduler._name=foo"], ["lr_scheduler._name", "fixed", "'foo'"]),
        ("profile: small", ["lr_scheduler.warm=3"], ["lr_scheduler", "warm"]),
        ("title: x", ["optimization.lr=0.1"], ["train", "lr"]),
        ("profile: small", ["dataset.max_tokens=0"], ["dataset.max_tokens", "at least 1", "got 0"]),
        ("title: x", ["dataset.batch_size=null"], ["max_tokens or dataset.batch_size", "given"]),
        ("title: x", ["dataset.batch_size=-3"], ["dataset.batch_size", "at least 1", "got -3"]),
        ("title: x", ["optimization.max_update=-1"], ["max_update", "0 for no limit", "got -1"]),
        ("title: x", ["optimization.max_epoch=-1"], ["max_epoch", "0 for no limit", "got -1"]),
        ("title: x", ["optimization.max_epoch=0"], ["max_update or", "would not end"]),
        ("profile: small", ["optimization.max_update=0"], ["total_num_update", "got 0"]),
        ("title: x", ["checkpoint.save_dir=x"], ["checkpoint.save_dir", "--output"]),
        ("title: x", ["common.log_format=simple"], ["common.log_format", "from its log"]),
        ("title: x", ["checkpoint.no_save=true"], ["checkpoint.no_save", "from checkpoints"]),
        ("title: x", ["dataset.disable_validation=true"], ["disable_validation", "the best"]),
        ("title: x", ["optimisation.max_update=3"], ["optimisation"]),
        ("title: x", ["optimization.max_updates=3"], ["max_updates"]),
    ],
)
def test_wrong_recipes_are_refused(write, text, changes, words):
    with pytest.raises(UsageError) as refused:
        load_recipe(write(text), changes)
    message = str(refused.value)
    assert "\n" not in message
    for word in words:
        assert word in message


def test_directions(write):
    several = load_recipe(write("data: {directions: [ro-en, en-ro]}"))
    assert [one.direction for one in several.directions()] == ["ro-en", "en-ro"]
    assert several.towards("en-ro").data.source == "en"
    for wrong in ("ru-en", "ro", "-en", "ro-ro", "../x-en"):
        with pytest.raises(UsageError, match="--direction must be ro-en, en-ro, got"):
            several.towards(wrong)
    one = load_recipe(write("data: {source: ro, target: en}"))
    assert [found.direction for found in one.directions()] == ["ro-en"]
    with pytest.raises(UsageError, match="--direction must be ro-en, got 'en-ro'"):
        one.towards("en-ro")
    any_pair = load_recipe(write("title: x"))
    assert any_pair.directions() == []
    assert any_pair.towards("x-y").direction == "x-y"


def test_other_settings_have_another_folder(tmp_path, write_text):
    text = write_text(tmp_path / "text")

    def folder(*changes, data=text, direction="es-en"):
        recipe = load_recipe(PLAIN, changes).towards(direction)
        return open_workspace(recipe, tmp_path / "out", data).folder

    same = folder()
    # Models of other mappings and seeds, and of other titles, lie side by side.
    assert folder("title=other", "optimization.max_update=1500") == same
    others = [
        folder("optimization.max_update=9"),
        folder("model.attention_score=dot"),
        folder("preprocess.subwords=20"),
        folder("generate.beam=1"),
        folder(direction="en-es"),
        folder(data=write_text(tmp_path / "other", train=41)),
    ]
    (text / "test.names").write_text("a\nb\nc\nd\n", encoding="utf-8")
    others.append(folder())
    assert len({same, *others}) == 8


@pytest.mark.parametrize(
    ("key", "whole", "real"),
    [
        ("optimization.lr", "[1]", "[1.0]"),
        ("optimization.lr", "[1,0.5]", "[1.0,0.5]"),
        ("model.dropout", "0", "0.0"),
        ("model.encoder_dropout_in", "0", "0.0"),  # a key that the profile has not
        ("optimization.max_update", "1000", "1e3"),
        ("generate.lenpen", "2", "2.0"),
    ],
)
def test_one_number_is_one_setting_however_it_is_written(tmp_path, write_text, key, whole, real):
    text = write_text(tmp_path / "text")
    plain, one, other = (
        open_workspace(load_recipe(PLAIN, changes).towards("es-en"), tmp_path / "out", text).key
        for changes in ([], [f"{key}={whole}"], [f"{key}={real}"])
    )
    assert one == other != plain


def test_numbers_keep_the_form_that_keys_of_finished_runs_were_made_with():
    """``docs/translation/records`` has names with these keys."""
    train = load_recipe(CONFIGS / "translation" / "tatoeba.yaml").train
    assert (
        json.dumps(train["optimization"]) == '{"max_update": 1500, "lr": [0.004], "clip_norm": 1.0}'
    )
    assert json.dumps(train["lr_scheduler"]["total_num_update"]) == "1500"
