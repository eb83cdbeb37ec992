"""Recipes about images, from VQA-v2's files to tables on small squares."""

import json
import shutil

import pytest
from vqa.conftest import made  # noqa: F401  a fixture of the folder tests/vqa

from fairseq_regattn.analysis.records import read_hypotheses, read_records
from fairseq_regattn.errors import UsageError
from fairseq_regattn.recipes.__main__ import planned
from fairseq_regattn.recipes.load import CONFIGS, load_recipe
from fairseq_regattn.recipes.options import parse_reproduce
from fairseq_regattn.vqa.answers import accuracy

pytest.importorskip("matplotlib", reason="reproduce.sh asks for matplotlib")

BASE = CONFIGS / "vqa" / "base.yaml"
TINY = ["model.embed_dim=8", "model.hidden_size=12", "model.dropout=0", "questions.answers=4"]
TINY += ["optimization.max_epoch=2", "optimization.lr=[0.01]", "dataset.num_workers=0"]
NO_TEST = "data.files.test=null"


@pytest.mark.slow
def test_from_images_to_a_table_twice(made, tmp_path, run, everything):  # noqa: F811
    out = tmp_path / "out"
    arguments = [BASE, *TINY, "model.stem=4", "--data", made, "--output", out]
    arguments += ["--attention=softmax,continuous_sparsemax"]
    printed = run(arguments).out
    records = read_records(out / "records")
    assert [record.mapping for record in records] == ["continuous_sparsemax", "softmax"]
    [workspace] = (out / "base" / "base").iterdir()
    asked = [json.loads(line) for line in (workspace / "text" / "test.jsonl").open()]
    for record in records:
        path = workspace / "models" / f"{record.name}-seed1" / "answers.jsonl"
        found = [json.loads(line) for line in path.open(encoding="utf-8")]
        assert [one["id"] for one in found] == [one["id"] for one in asked]
        answers = [one["answer"] for one in found]
        assert read_hypotheses(out / "records", record) == answers
        right = [one["answer"] == question["gold"] for one, question in zip(found, asked)]
        assert record.accuracy[0] == pytest.approx(100 * sum(right) / len(asked))
        kinds = {question["answer_type"] for question in asked}
        for kind in kinds:
            of = [r for r, question in zip(right, asked) if question["answer_type"] == kind]
            assert record.answers.types[f"answer type {kind}"] == [sum(of), len(of)]
        assert record.answers.vqa is None  # of half the questions one answer is known
        assert record.sentences == len(asked) == 36
        assert record.alignments.steps == 36
    [comparison] = json.loads((out / "records" / "comparisons.json").read_text()).values()
    assert comparison["run"] == str(records[0].path.with_suffix(""))
    assert "accuracy" in comparison
    assert "segments" not in printed
    report = workspace / "report"
    names = {"attention.png", "inputs.json", "results.md", "results.txt"}
    assert {path.name for path in report.iterdir()} == names
    assert (report / "attention.png").stat().st_size > 10_000
    tables = (out / "results" / "results.md").read_text(encoding="utf-8")
    assert "| Accuracy, answer type other (%) |" in tables
    before = everything(tmp_path)
    assert "Nothing to do" in run(arguments).out
    assert everything(tmp_path) == before


@pytest.mark.slow
def test_features_with_vectors_scored_on_valid(made, tmp_path, run):  # noqa: F811
    """As VQA-v2 is: ten answers, no test, grids that are no pictures, vectors of words."""
    import numpy as np

    data, out = tmp_path / "data", tmp_path / "out"
    (data / "grids").mkdir(parents=True)
    generator = np.random.default_rng(1)
    for split in ("train", "valid"):
        for kind in ("questions", "annotations"):
            content = json.loads((made / f"{split}_{kind}.json").read_text())
            for entry in content[kind] if kind == "annotations" else ():
                some = [{"answer": entry["multiple_choice_answer"], "answer_id": n} for n in (1, 2)]
                entry["answers"] = some * 3 + [{"answer": "odd", "answer_id": n} for n in range(4)]
            (data / f"{split}_{kind}.json").write_text(json.dumps(content))
        for path in (made / "images").glob(f"*{split}*"):
            grid = generator.normal(size=(5, 3, 4)).astype("float32")
            np.savez(data / "grids" / path.name, x=grid)
    (data / "glove.txt").write_text("color 1 2 3 4 5 6 7 8\nelsewhere 0 0 0 0 0 0 0 0\n")
    files = {s: f"{s}_questions.json {s}_annotations.json grids" for s in ("train", "valid")}
    changes = [f"data.files.{split}={names}" for split, names in files.items()]
    changes += [NO_TEST, "questions.vectors=glove.txt", "questions.channels_first=true"]
    changes += ["questions.min_count=31"]
    arguments = [BASE, *TINY, *changes, "--data", data, "--output", out, "--attention=sparsemax"]
    printed = run(arguments).out
    [record] = read_records(out / "records")
    assert record.sentences == 30
    [workspace] = (out / "base" / "base").iterdir()
    text = workspace / "text"
    assert (text / "vectors.txt").read_text().startswith("color 1")
    assert json.loads((text / "preparation.json").read_text())["shape"] == [3, 4, 5]
    words = [line.split()[0] for line in (text / "dict.txt").read_text().splitlines()]
    assert set(words) == {"what", "color", "is", "it", "the", "?"}  # others stand there 30 times
    [model] = (workspace / "models").iterdir()
    assert "vectors of 1 of" in (model / "train.log").read_text(encoding="utf-8")
    found = [json.loads(line) for line in (model / "answers.jsonl").open()]
    given = [4 if one["answer"] == "odd" else 6 * (one["answer"] == one["gold"]) for one in found]
    scores = [accuracy(count) for count in given]
    assert record.answers.vqa == pytest.approx(100 * sum(scores) / 30)
    report = {path.name for path in (workspace / "report").iterdir()}
    assert report == {"inputs.json", "results.md", "results.txt"}
    assert "No pictures: features are no images" in printed
    assert f"{record.answers.vqa:.2f}" in printed


def test_what_it_is_made_of_are_other_settings(made, tmp_path):  # noqa: F811
    def key(data, *changes):
        arguments = [BASE, *changes, "--data", data, "--attention=softmax"]
        [run] = planned(parse_reproduce([str(word) for word in arguments]))
        return run.workspace.key

    first = key(made)
    other = tmp_path / "other"
    shutil.copytree(made, other)
    assert key(other) == first
    assert key(other, "questions.min_count=2") != first
    annotations = other / "test_annotations.json"
    annotations.write_text(annotations.read_text().replace('"green"', '"blue"', 1))
    second = key(other)
    assert second != first
    image = next((other / "images").iterdir())
    image.write_bytes(image.read_bytes() + b"0")
    third = key(other)
    assert third not in (first, second)
    (other / "v.txt").write_text("red 1 2\n")
    fourth = key(other, "questions.vectors=v.txt")
    (other / "v.txt").write_text("red 1 3\n")
    assert key(other, "questions.vectors=v.txt") not in (third, fourth)


def test_missing_files_are_named(made, tmp_path):  # noqa: F811
    arguments = [str(BASE), f"--data={tmp_path}"]
    with pytest.raises(UsageError) as caught:
        planned(parse_reproduce(arguments))
    for name in ("train_questions.json", "test_annotations.json", "images"):
        assert str(tmp_path / name) in str(caught.value)
    assert str(caught.value).count(str(tmp_path / "images")) == 1


def test_malformed_entries_stop_or_are_counted(made, tmp_path, run):  # noqa: F811
    data = tmp_path / "data"
    shutil.copytree(made, data)
    path = data / "train_questions.json"
    content = json.loads(path.read_text())
    content["questions"][3]["question"] = ""
    path.write_text(json.dumps(content))
    arguments = [BASE, *TINY, "--data", data, "--stage=preprocess", "--attention=softmax"]
    told = run([*arguments, f"--output={tmp_path / 'a'}"], status=1).err
    assert f"{path}: questions[3]: empty question" in told
    assert not list((tmp_path / "a").rglob("text"))
    skipping = [*arguments, f"--output={tmp_path / 'b'}", "questions.malformed=skip"]
    assert "1 malformed: empty question" in run(skipping).out


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        (["questions.answers=0"], "questions.answers must be at least 1, got 0"),
        (["questions.min_count=0"], "questions.min_count must be at least 1, got 0"),
        (["questions.malformed=drop"], "questions.malformed must be error or skip, got 'drop'"),
        (["data.files.valid=null"], "data.files.valid must be given, got None"),
        (["data.files.test=a b"], "data.files.test must be the names of questions, annotations"),
        (["profile=small"], "regattn_lstm_iwslt translates or summarizes, and the recipe needs"),
        (["classification.inputs=1"], "questions must be left out where there is classification"),
        (["generate.beam=3"], "generate must be {} where there is questions"),
        (["preprocess.tokenizer=wordpunct"], "preprocess.tokenizer must be none, got 'wordpunct'"),
        (["model.embed_path=x"], "model.embed_path is set by classification.vectors or questions."),
    ],
)
def test_wrong_settings_are_named(changes, message):
    with pytest.raises(UsageError) as caught:
        load_recipe(BASE, changes)
    assert message in str(caught.value)


def test_it_has_no_direction():
    with pytest.raises(UsageError, match="base has no --direction, got 'de-en'"):
        planned(parse_reproduce([str(BASE), "--direction=de-en", "--dry-run"]))
