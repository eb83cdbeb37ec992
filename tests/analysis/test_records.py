"""Records of runs on the disk, and the p values that are kept beside them."""

import json
import subprocess
import sys
from dataclasses import asdict

import pytest

from fairseq_regattn.analysis import Record
from fairseq_regattn.analysis.machine import machine, versions
from fairseq_regattn.analysis.records import (
    LINKS,
    baselines,
    collect,
    read_hypotheses,
    read_records,
    text_key,
    texts_of,
)
from fairseq_regattn.analysis.significance import FILE, read_comparisons, significance
from fairseq_regattn.errors import UsageError
from fairseq_regattn.scoring.translation import compare

REFERENCES = [f"this is line {number} of the text" for number in range(12)]
TEST_SET = [[line] for line in REFERENCES]
GOOD = [f"this is line {number} of a text" for number in range(12)]
BAD = [f"line {number} is this" for number in range(12)]


@pytest.fixture
def add(tmp_path, record):
    """Collect a run of these hypotheses."""

    def add(hypotheses, name="softmax", **changes):
        keys = {"test_key": text_key(REFERENCES), "hypotheses_key": text_key(hypotheses)}
        made = record(name, **{**keys, **changes})
        collect(tmp_path, made, hypotheses)
        return made

    return add


def test_a_record_is_read_as_it_was_written(tmp_path, record):
    links = dict.fromkeys(LINKS, 0.5)
    for number, written in enumerate((record(), record(links=links, tokenised_bleu=21.5))):
        path = tmp_path / "deep" / f"{number}.json"
        written.write(path)
        assert Record.read(path) == written
    assert not list(tmp_path.rglob("*.partial"))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda c: c.pop("bleu"), "lacks key bleu"),
        (lambda c: c.update(blue=1), "has the unknown key blue"),
        (lambda c: c["alignments"].pop("steps"), "alignments lacks key steps"),
        (lambda c: c.update(bleu="20"), "bleu must be of type float . None, got '20'"),
        (lambda c: c.update(seed=True), "seed must be of type int, got True"),
        (lambda c: c.update(links={"aer": 1}), "links must have the keys aer, precision"),
        (lambda c: c.update(links=dict.fromkeys(LINKS, "0.5")), "links must be of type .*'0.5'"),
        (lambda c: c.update(links=dict.fromkeys(LINKS)), "links must be of type .*None"),
        (lambda c: c["signatures"].update(bleu=1), r"signatures must be of type dict\[str, str\]"),
        (lambda c: c["versions"].update(torch=[2]), "versions must be of type"),
    ],
)
def test_a_record_that_is_none_is_refused(tmp_path, record, change, message):
    content = asdict(record())
    change(content)
    path = tmp_path / "x.json"
    path.write_text(json.dumps(content))
    with pytest.raises(UsageError, match=rf"x\.json.*{message}"):
        Record.read(path)


@pytest.mark.parametrize("score", [[], [1.0], ["1", "2", "3"], [1, True, 2], [1, 2, None]])
def test_scores_of_summaries_are_a_number_and_its_interval(tmp_path, record, score):
    content = asdict(record())
    content["summary"] = {"stem": True, "bytes": None, "words": 1.0, "reference_words": 1.0}
    content["summary"] |= {"unknown": 0, "masked": 0, "scores": {"rouge1 f1": [1, 0.5, 2.0]}}
    path = tmp_path / "x.json"
    path.write_text(json.dumps(content))
    assert Record.read(path).rouge("rouge1 f1") == [1, 0.5, 2.0]
    content["summary"]["scores"]["rouge1 f1"] = score
    path.write_text(json.dumps(content))
    with pytest.raises(UsageError, match=r"x\.json: summary: rouge1 f1 must be .* three numbers"):
        Record.read(path)


def test_a_record_of_a_classifier(tmp_path, record, classified):
    path = tmp_path / "x.json"
    written = classified([[3, 1], [0, 2]])
    written.write(path)
    assert Record.read(path) == written
    assert (written.kind, record().kind) == ("classifications", "translations")
    content = asdict(record())
    del content["classes"]  # from before there were any
    path.write_text(json.dumps(content))
    assert Record.read(path) == record()


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"labels": None}, "labels must be of type .*None"),
        ({"labels": "ab"}, "labels must be of type"),
        ({"labels": ["a", 1]}, "labels must be of type"),
        ({"labels": ["a", "a"]}, "labels must be one or more, all different"),
        ({"labels": ["a", "b", "c"]}, "confusion must be 3 rows of 3 counts"),
        ({"confusion": [[3, 1], [0]]}, "confusion must be 2 rows of 2 counts"),
        ({"confusion": [[3, 1]]}, "confusion must be 2 rows of 2 counts"),
        ({"confusion": [[3, 1], [0, -2]]}, "confusion must be counts >= 0"),
        ({"confusion": [[0, 0], [0, 0]]}, "confusion must be counts >= 0 that are not all 0"),
        ({"confusion": [[3, 1], [0, 2.0]]}, "confusion must be of type"),
        ({"confusion": [[3, 1], [0, True]]}, "confusion must be of type"),
        ({"confusion": [3, 1]}, "confusion must be of type"),
        ({"accuracy": [50.0]}, "accuracy must be a number .* three numbers"),
        ({"accuracy": [50.0, 60.0, 70.0]}, "accuracy must be a number"),
        ({"accuracy": [50.0, 40.0, 101.0]}, "accuracy must be a number"),
        ({"accuracy": [50.0, float("nan"), 70.0]}, "accuracy must be a number"),
        ({"accuracy": [50.0, "40", 60.0]}, "accuracy must be of type"),
        ({"accurate": 1}, "has the unknown key accurate"),
    ],
)
def test_classes_that_are_none_are_refused(tmp_path, classified, change, message):
    content = asdict(classified([[3, 1], [0, 2]], labels=["a", "b"]))
    content["classes"].update(change)
    path = tmp_path / "x.json"
    path.write_text(json.dumps(content))
    with pytest.raises(UsageError, match=rf"x\.json: classes:? {message}"):
        Record.read(path)
    content["classes"] = [1]
    path.write_text(json.dumps(content))
    with pytest.raises(UsageError, match=r"x\.json: classes must be of type"):
        Record.read(path)


@pytest.mark.parametrize("content", [b'{"bleu": 1', b"\xff", b"[1]"])
def test_what_is_no_json_object_is_refused(tmp_path, content):
    (tmp_path / "x.json").write_bytes(content)
    with pytest.raises(UsageError, match=r"x\.json"):
        Record.read(tmp_path / "x.json")


def test_collected_hypotheses(tmp_path, add):
    lines = ["", "ă\u2028b\r", *GOOD]
    made = add(lines, "fusedmax-lambda0.1")
    path = tmp_path / "toy" / "ro-en" / "fusedmax-lambda0.1-seed1-0f0f0f0f.json"
    assert path.exists()
    assert read_records(tmp_path) == [made]
    assert read_hypotheses(tmp_path, made) == lines
    before = texts_of(path).read_bytes()
    assert before[4:8] == bytes(4)  # no time of writing: the same bytes every time
    with pytest.raises(UsageError, match="is not the record of these 12 hypotheses"):
        collect(tmp_path, made, GOOD)
    texts_of(path).write_bytes(before[:-9])
    with pytest.raises(UsageError, match=r"seed1-0f0f0f0f\.txt\.gz cannot be read"):
        read_hypotheses(tmp_path, made)
    other = add(GOOD, "fusedmax-lambda0.1", settings="other")
    texts_of(path).write_bytes(texts_of(tmp_path / other.path).read_bytes())
    with pytest.raises(UsageError, match="does not hold the outputs"):
        read_hypotheses(tmp_path, made)


def test_a_folder_of_records(tmp_path, add):
    with pytest.raises(UsageError, match="no records"):
        read_records(tmp_path)
    made = add(GOOD)
    add(GOOD, seed=2)
    add(GOOD, settings="other")
    assert len(read_records(tmp_path)) == 3  # none has replaced another
    made.write(tmp_path / "toy" / "ro-en" / "softmax-seed9-x.json")
    with pytest.raises(UsageError, match=r"softmax-seed9-x\.json holds the record of .*seed1-0f"):
        read_records(tmp_path)


def test_the_softmax_to_compare_with(record):
    plain, cold = record(), record("softmax-gamma0.5")
    second, third = record("softmax-gamma0.5", seed=2), record("softmax-gamma2", settings="s")
    found = baselines([record("sparsemax"), cold, plain, second, third])
    assert found == {(plain.group, 1): plain, (third.group, 1): third}


def test_p_values_are_those_of_the_texts_and_computed_once(tmp_path, add, monkeypatch):
    softmax = add(GOOD)
    fused = add(BAD, "fusedmax-lambda0.1")
    add(BAD, "fusedmax-lambda0.1", seed=2)  # no softmax of its seed
    add(BAD, "fusedmax-lambda0.1", settings="other")  # nor of its settings
    lines = [line.upper() for line in REFERENCES]
    german = add(BAD, "sparsemax", direction="ro-de", test_key=text_key(lines))
    add(GOOD, direction="ro-de", test_key=text_key(lines))

    assert significance(tmp_path, [TEST_SET]) == (1, 0, 1)
    found = read_comparisons(tmp_path, read_records(tmp_path))
    assert found == {fused.path: compare(GOOD, {"x": BAD}, REFERENCES)["x"]}
    assert found[fused.path]["bleu"].value < 0.01

    def fail(*_):
        raise AssertionError("computed again")

    with monkeypatch.context() as patched:
        patched.setattr("fairseq_regattn.analysis.significance.compare", fail)
        before = (tmp_path / FILE).read_bytes()
        assert significance(tmp_path, [[[line] for line in GOOD]]) == (0, 1, 1)
        assert (tmp_path / FILE).read_bytes() == before

    assert significance(tmp_path, [[[line] for line in lines]]) == (1, 1, 0)
    assert set(read_comparisons(tmp_path, read_records(tmp_path))) == {fused.path, german.path}

    # softmax is trained anew: what is known of the old one is no longer shown, then dropped
    assert add([*GOOD[:-1], "end"]).path == softmax.path
    assert set(read_comparisons(tmp_path, read_records(tmp_path))) == {german.path}
    assert significance(tmp_path, [[[line] for line in GOOD]]) == (0, 1, 1)
    assert len(json.loads((tmp_path / FILE).read_bytes())) == 1


def test_labels_are_compared_by_mcnemars_test(tmp_path, classified):
    gold = ["entailment"] * 9
    outputs = {"softmax": ["neutral"] * 5 + gold[:4], "sparsemax": gold}
    key = text_key(gold)
    for name, lines in outputs.items():
        confusion = [[lines.count("entailment"), lines.count("neutral")], [0, 0]]
        keys = {"test_key": key, "hypotheses_key": text_key(lines)}
        collect(tmp_path, classified(confusion, name, **keys), lines)
    assert significance(tmp_path, [[[line] for line in gold]]) == (1, 0, 0)
    ((path, scores),) = read_comparisons(tmp_path, read_records(tmp_path)).items()
    assert path.name.startswith("sparsemax")
    assert list(scores) == ["accuracy"]
    assert scores["accuracy"].value == pytest.approx(2 / 32)
    assert all(key.endswith("-labels") for key in json.loads((tmp_path / FILE).read_bytes()))


def comparison(**changes):
    """What the file holds of a run, as text."""
    score = {"value": 0.5, "signature": "bs:1000"}
    return json.dumps({"a": {"run": "toy", "bleu": score, "chrf": score, **changes}})


@pytest.mark.parametrize(
    "content",
    [
        "[]",
        "{",
        '{"a": {}}',
        '{"a": 5}',
        '{"a": {"bleu": 1}}',
        comparison(run=None),
        comparison(bleu={"value": 0.5}),
        comparison(bleu={"value": "0.5", "signature": "bs:1000"}),
        comparison(chrf={"value": None, "signature": "bs:1000"}),
        comparison(chrf={"value": 0.5, "signature": 1}),
    ],
)
def test_a_spoilt_file_of_p_values_is_refused(tmp_path, add, content):
    records = [add(GOOD), add(BAD, "sparsemax")]
    (tmp_path / FILE).write_text(comparison())
    assert read_comparisons(tmp_path, records) == {}  # sound, but of no run here
    (tmp_path / FILE).write_text(content)
    with pytest.raises(UsageError, match=r"comparisons\.json is"):
        read_comparisons(tmp_path, records)


def test_machine_and_versions():
    assert " cores, " in machine()
    assert machine() == machine()
    assert {"python", "fairseq-regattn", "torch", "sacrebleu"} <= set(versions())


def test_scores_and_records_do_without_fairseq(package_dir):
    code = (
        "import sys, fairseq_regattn.analysis.significance\n"
        "sys.exit(bool({'fairseq', 'torch', 'matplotlib'} & set(sys.modules)))"
    )
    subprocess.run([sys.executable, "-c", code], cwd=package_dir.parent, check=True)
