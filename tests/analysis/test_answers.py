"""Records and tables of answers to questions about images."""

import csv
import json
from dataclasses import asdict

import pytest

from fairseq_regattn.analysis.records import Record, collect, text_key
from fairseq_regattn.analysis.results import csv_text, sections
from fairseq_regattn.analysis.significance import significance
from fairseq_regattn.analysis.sweep import Sweep
from fairseq_regattn.analysis.tables import table
from fairseq_regattn.errors import UsageError
from fairseq_regattn.scoring import Score
from fairseq_regattn.scoring.answers import AnswerScores
from fairseq_regattn.scoring.classification import interval
from fairseq_regattn.vqa.accuracy import Accuracy
from fairseq_regattn.vqa.predictions import Prediction

UNSCORED = dict.fromkeys(("bleu", "chrf", "tokenised_bleu", "valid_ppl"))


@pytest.fixture
def answered(record):
    """``answered({"answer type other": [3, 4]}, "sparsemax", vqa=50.0)``: a run, by its counts."""

    def make(types, name="softmax", vqa=None, **changes):
        accuracy = interval(*map(sum, zip(*types.values())))
        about = {"recipe": "squares", "direction": "squares", "signatures": {}, **UNSCORED}
        return record(name, answers=AnswerScores(accuracy, vqa, types), **{**about, **changes})

    return make


OTHER, YES = "answer type other", "answer type yes/no"
TYPES = {OTHER: [3, 4], YES: [4, 6]}


def test_a_record(tmp_path, record, answered):
    path = tmp_path / "x.json"
    written = answered(TYPES, vqa=50.0)
    written.write(path)
    assert Record.read(path) == written
    assert written.kind == "answers"
    assert written.accuracy == interval(7, 10)
    assert record().accuracy is None
    content = asdict(record())
    del content["answers"]  # from before there were any
    path.write_text(json.dumps(content))
    assert Record.read(path) == record()


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"accuracy": [50.0, 60.0, 70.0]}, "accuracy must be a number .* three numbers"),
        ({"vqa": 101.0}, "vqa must be a number from 0 to 100, or null, got 101.0"),
        ({"vqa": -0.5}, "vqa must be a number from 0 to 100, or null"),
        ({"vqa": "50"}, "vqa must be of type"),
        ({"types": {"a": [3, 2]}}, "types: a must be right answers, and questions"),
        ({"types": {"a": [-1, 2]}}, "types: a must be right answers, and questions"),
        ({"types": {"a": [0, 0]}}, "types: a must be right answers, and questions"),
        ({"types": {"a": [1]}}, "types: a must be right answers, and questions"),
        ({"types": {"a": [1, 2.5]}}, "types must be of type"),
        ({"types": {"a": 1}}, "types must be of type"),
        ({"types": [1, 2]}, "types must be of type"),
        ({"accurate": 1}, "has the unknown key accurate"),
    ],
)
def test_what_are_no_scores_is_refused(tmp_path, answered, change, message):
    content = asdict(answered(TYPES))
    content["answers"].update(change)
    path = tmp_path / "x.json"
    path.write_text(json.dumps(content))
    with pytest.raises(UsageError, match=rf"x\.json: answers:? {message}"):
        Record.read(path)


def test_tables(answered, classified):
    sparse = answered({OTHER: [4, 4], YES: [5, 6]}, "sparsemax", vqa=62.5)
    known = {sparse.path: {"accuracy": Score(0.25, "test:mcnemar")}}
    sweep = Sweep([answered(TYPES, vqa=50.0), sparse, classified([[3, 1], [2, 4]])], known)
    found = {section.title: section for section in sections(sweep)}
    assert list(found) == ["snli", "Confusion, snli", "squares"]
    rows = {name: cells for name, *cells in found["squares"].rows}
    assert rows["measure"] == ["softmax", "sparsemax"]
    expected = "90.00 [59.58, 98.21] (+20.0, p 0.250)"
    assert rows["Accuracy (%)"] == ["70.00 [39.68, 89.22]", expected]
    assert rows["VQA accuracy (%)"] == ["50.00", "62.50"]
    assert rows["Accuracy, answer type other (%)"] == ["75.00", "100.00"]
    assert rows["Accuracy, answer type yes/no (%)"] == ["66.67", "83.33"]
    # cells of an image have no order, and answers no matrix
    assert not {"Segments", "Macro F1 (%)", "Accuracy of neutral (%)"} & set(rows)
    assert "VQA accuracy (%)" not in [name for name, *_ in found["snli"].rows]


def test_one_table(answered):
    header, softmax, other = table([answered(TYPES, vqa=0.0), answered(TYPES, "fusedmax")])
    assert header[:4] == ("mapping", "accuracy (%)", "VQA accuracy (%)", "non-zero weights")
    assert "segments" not in header
    assert softmax[1:3] == ("70.00 [39.68, 89.22]", "0.00")
    assert other[2] == "-"
    assert len({*map(len, (header, softmax, other))}) == 1
    assert "VQA accuracy (%)" not in table([answered(TYPES)])[0]


def test_all_numbers_are_in_the_file(answered, record):
    row, translated = csv.DictReader(
        csv_text(Sweep([answered(TYPES, vqa=50.0), record()], {})).splitlines()
    )
    assert [row[key] for key in ("accuracy", "vqa_accuracy", f"right {OTHER}")] == [
        *("70.0", "50.0", "3")
    ]
    assert row[f"questions {YES}"] == "6"
    assert (translated["accuracy"], row["bleu"]) == ("", "")


def test_answers_are_compared_by_mcnemars_test(tmp_path, answered):
    gold = ["red"] * 6 + ["no"] * 4
    made = {"softmax": ["blue"] * 6 + gold[6:], "sparsemax": gold}
    for name, lines in made.items():
        right = sum(a == b for a, b in zip(lines, gold))
        keys = {"test_key": text_key(gold), "hypotheses_key": text_key(lines)}
        collect(tmp_path, answered({OTHER: [right, 10]}, name, **keys), lines)
    assert significance(tmp_path, [[[one] for one in gold]]) == (1, 0, 0)
    [comparison] = json.loads((tmp_path / "comparisons.json").read_text()).values()
    assert comparison["accuracy"]["value"] == pytest.approx(2 * 0.5**6)


def test_scores_of_predictions():
    def prediction(answer, gold, kind, score):
        known = {"gold": gold, "type": kind, "answer_type": kind, "score": score}
        return Prediction(1, 1, "what ?", answer, 0.5, "softmax", [[1.0]], **known)

    accuracy = Accuracy()
    accuracy.add(prediction("red", None, "other", None))
    with pytest.raises(UsageError, match="no questions with a known answer"):
        accuracy.scores()
    accuracy.add(prediction("red", "red", "other", 1.0))
    accuracy.add(prediction("no", "yes", "yes/no", 0.3))
    found = accuracy.scores()
    assert found.accuracy == interval(1, 2)
    assert found.vqa == pytest.approx(65)
    assert found.types == {
        **{f"{what} type other": [1, 1] for what in ("answer", "question")},
        **{f"{what} type yes/no": [0, 1] for what in ("answer", "question")},
    }
    accuracy.add(prediction("no", "yes", "", None))
    assert accuracy.scores().vqa is None
    assert accuracy.scores().accuracy == interval(1, 3)
    assert list(accuracy.scores().types) == list(found.types)
