"""Recipes that classify, from rows to tables on toy corpora."""

import json
import re
import zipfile

import pytest

from fairseq_regattn.analysis.records import read_hypotheses, read_records
from fairseq_regattn.errors import UsageError
from fairseq_regattn.recipes.__main__ import planned
from fairseq_regattn.recipes.load import CONFIGS, load_recipe
from fairseq_regattn.recipes.options import parse_reproduce

pytest.importorskip("matplotlib", reason="reproduce.sh asks for matplotlib")

BASE = CONFIGS / "classification" / "base.yaml"
TINY = ["model.embed_dim=8", "model.hidden_size=6", "optimization.max_epoch=2"]
HELD_OUT = ["data.files.valid=null", "data.files.test=null"]
HELD_OUT += ["classification.held_out={valid: 0.2, test: 0.3}"]


@pytest.mark.slow
def test_from_pairs_to_a_table_twice(write_rows, tmp_path, run, everything):
    data, out = tmp_path / "data", tmp_path / "out"
    data.mkdir()
    write_rows(data / "train.tsv", 120, 2)
    recipe = ["profile=nli", "classification.inputs=2", *TINY, *HELD_OUT]
    arguments = [BASE, *recipe, "--data", data, "--output", out, "--seed=1,2"]
    arguments += ["--attention=softmax,fusedmax"]
    printed = run(arguments).out
    records = read_records(out / "records")
    assert [(r.mapping, r.seed) for r in records] == [
        *(("fusedmax", 1), ("fusedmax", 2), ("softmax", 1), ("softmax", 2))
    ]
    for record in records:
        [workspace] = (out / "base" / "base").iterdir()
        name = workspace / "models" / f"{record.name}-seed{record.seed}" / "predictions.jsonl"
        found = [json.loads(line) for line in name.read_text(encoding="utf-8").splitlines()]
        labels = [one["label"] for one in found]
        assert read_hypotheses(out / "records", record) == labels
        right = sum(one["label"] == one["gold"] for one in found)
        assert record.classes.accuracy[0] == pytest.approx(100 * right / len(found), abs=0.01)
        assert sum(map(sum, record.classes.confusion)) == record.sentences == len(found)
        assert record.bleu is None
    comparisons = json.loads((out / "records" / "comparisons.json").read_text(encoding="utf-8"))
    assert len(comparisons) == 2
    assert all("accuracy" in entry for entry in comparisons.values())
    assert "Accuracy" in printed
    report = workspace / "report"
    assert {path.name for path in report.iterdir()} == {
        *("index.html", "inputs.json", "results.md", "results.txt")
    }
    page = (report / "index.html").read_text(encoding="utf-8")
    assert "fusedmax, lambda 0.1" in page
    assert "texts for training" in page
    before = everything(tmp_path)
    assert "Nothing to do" in run(arguments).out
    assert everything(tmp_path) == before


@pytest.mark.slow
def test_one_text_with_vectors_that_are_kept(write_rows, tmp_path, run):
    data, out = tmp_path / "data", tmp_path / "out"
    data.mkdir()
    write_rows(data / "train.tsv", 60, 1)
    numbers = " ".join(["0.5"] * 8)
    with zipfile.ZipFile(data / "vectors.zip", "w") as archive:
        archive.writestr("v.8d.txt", f"good {numbers}\nbad {numbers}\nelsewhere {numbers}\n")
    recipe = [*TINY, *HELD_OUT, "classification.vectors=vectors.zip", "optimization.max_epoch=1"]
    arguments = [BASE, *recipe, "--data", data, "--output", out, "--attention=sparsemax"]
    printed = run(arguments).out
    [workspace] = (out / "base" / "base").iterdir()
    vectors = (workspace / "bin" / "vectors.txt").read_text(encoding="utf-8").splitlines()
    assert [line.partition(" ")[0] for line in vectors] == ["good", "bad"]
    [model] = (workspace / "models").iterdir()
    log = (model / "train.log").read_text(encoding="utf-8")
    assert re.search(r"vectors of 2 of \d+ words", log)
    assert "valid accuracy" in printed


def test_malformed_rows_stop_or_are_counted(write_rows, tmp_path, run):
    data = tmp_path / "data"
    data.mkdir()
    write_rows(data / "train.tsv", 60, 1)
    with open(data / "train.tsv", "a", encoding="utf-8") as file:
        file.write("yes\n")
    recipe = [BASE, *TINY, *HELD_OUT, "--data", data, "--attention=softmax", "--stage=preprocess"]
    told = run([*recipe, "--output", tmp_path / "a"], status=1).err
    assert f"{data / 'train.tsv'}:61: missing column" in told
    skipping = [*recipe, "classification.malformed=skip", "--output", tmp_path / "b"]
    assert "1 malformed: missing column" in run(skipping).out


def test_settings_of_the_text_reach_it(run, tmp_path):
    """Each of them, by what becomes of the same few rows."""
    rows = [
        f"{label}\tGOOD film{number}, here." for number in range(200) for label in ("pos", "neg")
    ]
    (tmp_path / "train.tsv").write_text("".join(f"{row}\n" for row in rows), encoding="utf-8")
    recipe = ["classification.labels=[pos,neg]", "classification.lowercase=true", *TINY, *HELD_OUT]
    recipe += ["preprocess.tokenizer=wordpunct", "classification.min_count=4"]
    arguments = [BASE, *recipe, "--data", tmp_path, "--output", tmp_path / "out"]
    run([*arguments, "--attention=softmax", "--stage=preprocess"])
    [workspace] = (tmp_path / "out" / "base" / "base").iterdir()
    how = json.loads((workspace / "text" / "preparation.json").read_text(encoding="utf-8"))
    assert how["labels"] == ["pos", "neg"]  # sorted, they would be the other way round
    texts = {name: workspace / "text" / f"{name}.input0" for name in ("train", "valid", "test")}
    lines = {name: path.read_text(encoding="utf-8").splitlines() for name, path in texts.items()}
    assert all(
        re.fullmatch(r"good film\d+ , here \.", line) for part in lines.values() for line in part
    )
    assert 55 < len(lines["valid"]) < 92 < len(lines["test"]) < 150
    known = (workspace / "bin" / "input0" / "dict.txt").read_text(encoding="utf-8").split()[::2]
    assert sorted(known)[:4] == [",", ".", "good", "here"]
    assert not any(word.startswith("film") for word in known)  # twice each


def test_vectors_are_read_and_their_contents_count(write_rows, tmp_path):
    write_rows(tmp_path / "train.tsv", 30, 1)
    words = [BASE, *HELD_OUT, "--data", tmp_path, "--attention=softmax"]

    def key(*more):
        [run] = planned(parse_reproduce([str(word) for word in (*words, *more)]))
        return run.workspace.key

    (tmp_path / "v.txt").write_text("good 1 2\n")
    first, without = key("classification.vectors=v.txt"), key()
    assert first == key("classification.vectors=v.txt") != without
    (tmp_path / "v.txt").write_text("good 1 22\n")
    assert key("classification.vectors=v.txt") != first
    assert key() == without
    (tmp_path / "v.txt").unlink()
    with pytest.raises(UsageError, match=r"v\.txt: no such file"):
        key("classification.vectors=v.txt")


def test_text_of_other_files_is_other_settings(write_rows, tmp_path):
    def key(name):
        data = tmp_path / name
        data.mkdir()
        write_rows(data / "train.tsv", 30 + len(name), 1)
        arguments = [BASE, *HELD_OUT, "--data", data, "--attention=softmax"]
        [run] = planned(parse_reproduce([str(word) for word in arguments]))
        return run.workspace.key

    assert key("a") == key("b") != key("long")


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        (["classification.inputs=3"], "classification.inputs must be 1 or 2, got 3"),
        (["classification.malformed=drop"], "classification.malformed must be error or skip"),
        (["classification.held_out={test: 0.1}"], "classification.held_out must be given for"),
        (["data.files.test=null"], "for the splits that are null in data.files (test)"),
        (["classification.inputs=2"], "regattn_classifier reads one text, and the recipe needs"),
        (["profile=small"], "regattn_lstm_iwslt translates or summarizes, and the recipe needs"),
        ([*HELD_OUT, "classification.held_out.test=0.9"], "shares above 0 whose sum is below 1"),
        (["data.files.train=null"], "data.files.train must be given, got None"),
        (["preprocess.tokenizer=moses"], "preprocess.tokenizer must be wordpunct or none"),
        (
            ["preprocess.subwords=100"],
            "preprocess.subwords must be 0 where there is classification",
        ),
        (["generate.beam=3"], "generate must be {} where there is classification"),
        (["model.embed_path=x"], "model.embed_path is set by classification.vectors"),
        (["model.hidden=3"], "hidden"),
    ],
)
def test_wrong_settings_are_named(changes, message):
    with pytest.raises(UsageError) as caught:
        load_recipe(BASE, changes)
    assert message in str(caught.value)


def test_translation_has_no_missing_files():
    with pytest.raises(UsageError, match=r"data\.files must be names"):
        load_recipe(CONFIGS / "translation" / "plain.yaml", ["data.files.valid=null"])


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--direction=a-b"], "base has no --direction, got 'a-b'"),
        (["--data={data}"], "train.tsv, "),
        ([], "give its folder with --data"),
    ],
)
def test_wrong_commands_are_named(arguments, message, tmp_path):
    words = [str(BASE), *(word.format(data=tmp_path) for word in arguments)]
    with pytest.raises(UsageError) as caught:
        planned(parse_reproduce(words))
    assert message in str(caught.value)
