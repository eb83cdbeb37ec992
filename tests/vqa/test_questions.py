"""VQA-v2's files, and everything that can be wrong with them."""

import json

import pytest

from fairseq_regattn.errors import UsageError
from fairseq_regattn.vqa.questions import Question, read_lines, read_vqa

from .conftest import entry, write_files


def test_questions_and_answers(read, tmp_path):
    ten = ["Two."] * 5 + ["2"] * 3 + ["a dog", "the dog"]
    entries = [entry(7, 42, "2", "How MANY dogs, then?", ten), entry(8, 42, "no")]
    [first, second], tally, _ = read(write_files(tmp_path, "train", entries))
    assert first == Question(
        7, 42, "how many dogs , then ?", "what color", "other", "2", {"2": 8, "dog": 2}
    )
    assert second.gold == "no"
    assert second.answers is None  # one answer is not ten
    assert tally == {"read": 2}


def test_without_annotations(tmp_path):
    paths = write_files(tmp_path, "test", [entry(7, 42)])
    from fairseq_regattn.classification.malformed import Malformed

    [found] = read_vqa(paths[0], None, Malformed(), {"read": 0})
    assert (found.gold, found.answers, found.type) == (None, None, "")


def test_lines_are_read_back(tmp_path):
    asked = [Question(1, 2, "ü ?"), Question(2, 3, "a", "t", "other", "b", {"b": 10})]
    path = tmp_path / "train.jsonl"
    path.write_text("".join(f"{one.to_line()}\n" for one in asked), encoding="utf-8")
    assert list(read_lines(path)) == asked
    path.write_text('{"id": 1}\n')
    with pytest.raises(UsageError, match=r"train\.jsonl:1: not a prepared question"):
        list(read_lines(path))
    with pytest.raises(UsageError, match=r"nowhere: no such file"):
        list(read_lines(tmp_path / "nowhere"))


def spoiled(question=None, annotation=None):
    """An entry with other values; None removes a key."""
    made = entry(7, 42)
    for part, changes in zip(made, (question or {}, annotation or {})):
        for key, value in changes.items():
            part[key] = value
            if value is None:
                del part[key]
    return made


BAD = [
    (spoiled({"question_id": None}), r"questions\[0\]: missing key: question_id"),
    (spoiled({"question_id": "7"}), r"questions\[0\]: wrong type: question_id must be a whole"),
    (spoiled({"question_id": True}), r"questions\[0\]: wrong type: question_id must be a whole"),
    (spoiled({"image_id": None}), r"questions\[0\]: missing key: image_id"),
    (spoiled({"image_id": -1}), r"questions\[0\]: wrong type: image_id must be at least 0"),
    (spoiled({"question": 3}), r"questions\[0\]: wrong type: question must be a text, got 3"),
    (spoiled({"question": " "}), r"questions\[0\]: empty question: it has no words"),
    (("text", entry(7, 42)[1]), r"questions\[0\]: wrong type: str instead of an object"),
    (spoiled({}, {"question_id": 8}), r"questions\[0\]: no annotation: .* has none of question 7"),
    (spoiled({}, {"question_id": 8}), r"annotations\[0\]: no question: .* has no question 8"),
    (spoiled({}, {"image_id": 43}), r"annotations\[0\]: another image: 43, and 42 in the question"),
    (spoiled({}, {"multiple_choice_answer": None}), r"annotations\[0\]: missing key: multiple_ch"),
    (spoiled({}, {"multiple_choice_answer": ""}), r"annotations\[0\]: empty answer"),
    (spoiled({}, {"answers": "red"}), r"annotations\[0\]: wrong type: answers must be a list"),
    (spoiled({}, {"answers": [{}]}), r"annotations\[0\]: missing key: answer"),
    (spoiled({}, {"answers": [{"answer": "a"}] * 11}), r"too many answers: 11 instead of 10"),
    (spoiled({"image_id": 1 << 63}), r"image_id must be at most 9223372036854775807, got 92"),
    (spoiled({"question": "\ud800"}), r"questions\[0\]: half a surrogate pair: question"),
    (spoiled({}, {"multiple_choice_answer": "\ud800"}), r"annotations\[0\]: half a surrogate pair"),
    (spoiled({}, {"answers": [{"answer": "\ud800"}]}), r"half a surrogate pair: answer"),
    (spoiled({}, {"answers": [{"answer": "\ud800", "answer_id": 1}]}), r"pair: answer"),
    (spoiled({}, {"answer_type": "\ud800"}), r"half a surrogate pair: answer_type"),
    (spoiled({}, {"question_type": 3}), r"annotations\[0\]: wrong type: question_type must be a"),
]


@pytest.mark.parametrize(("bad", "message"), BAD, ids=range(len(BAD)))
def test_malformed_entries_are_told_or_left_out(bad, message, read, tmp_path):
    paths = write_files(tmp_path, "train", [bad, entry(9, 1)])
    with pytest.raises(UsageError, match=message):
        read(paths)
    found, tally, _ = read(paths, "skip")
    assert [one.id for one in found] == [9]
    assert sum(n for what, n in tally.items() if what.startswith("malformed")) >= 1


def test_a_number_twice(read, tmp_path):
    paths = write_files(tmp_path, "train", [entry(7, 42), entry(7, 43)])
    _, _, messages = read(paths, check=False)
    assert [message.partition(": ")[2] for message in messages] == [
        "annotations[1]: twice: question_id 7 is there already",
        "questions[1]: twice: question_id 7 is there already",
    ]


@pytest.mark.parametrize("content", ["[]", "{}", '{"questions": {}}', "{", ""])
def test_other_files(content, read, tmp_path):
    paths = write_files(tmp_path, "train", [entry(7, 42)])
    paths[0].write_text(content)
    wanted = "an object with a list 'questions'" if content[-1:] in ("]", "}") else "not JSON"
    with pytest.raises(UsageError, match=rf"train_questions\.json: {wanted}"):
        read(paths)


def test_no_file(read, tmp_path):
    paths = write_files(tmp_path, "train", [entry(7, 42)])
    paths[1].unlink()
    with pytest.raises(UsageError, match=r"train_annotations\.json: no such file"):
        read(paths)


def test_faults_of_all_entries_are_told_together(read, tmp_path):
    paths = write_files(tmp_path, "train", [spoiled({"question": 3}), spoiled({"image_id": None})])
    broken = json.loads(paths[0].read_text())
    broken["questions"][1]["question_id"] = 8
    paths[0].write_text(json.dumps(broken))
    with pytest.raises(UsageError) as raised:
        read(paths)
    assert len(str(raised.value).splitlines()) == 3  # and the annotation of 7, twice


LINE = {"id": 1, "image": 2, "text": "is it ?", "gold": "no", "answers": {"no": 9, "yes": 1}}
"""A prepared question."""

BAD_LINES = [
    ({"id": "1"}, "id must be a whole number"),
    ({"id": True}, "id must be a whole number"),
    ({"image": 2.0}, "image must be a whole number from 0 to 9223372036854775807, got 2.0"),
    ({"image": -2}, "image must be a whole number from 0"),
    ({"image": 1 << 63}, "image must be a whole number from 0"),
    ({"text": ""}, "text must be words with spaces between them, got ''"),
    ({"text": None}, "text must be words"),
    ({"type": 3}, "type must be a text"),
    ({"answer_type": None}, "answer_type must be a text"),
    ({"gold": 3}, "gold must be a text"),
    ({"gold": ""}, "gold must be a text"),
    ({"answers": ["no"]}, "answers must be how many of ten people gave which, got"),
    ({"answers": {"no": 11}}, "answers must be how many"),
    ({"answers": {"no": "10"}}, "answers must be how many"),
    ({"answers": {"no": 11, "yes": -1}}, "answers must be how many"),
    ({"gold": None}, "answers without gold"),
    ({"other": 3}, "not a prepared question"),
    (b"\xff", "not a prepared question"),
    (b"null", "not a prepared question"),
    (b"[" * 100_000, "not a prepared question"),
    (rb'{"id": 1, "image": 2, "text": "\ud800"}', "half a surrogate pair"),
]


@pytest.mark.parametrize(("bad", "message"), BAD_LINES, ids=range(len(BAD_LINES)))
def test_lines_that_are_no_questions(bad, message, tmp_path):
    path = tmp_path / "valid.jsonl"
    line = bad if isinstance(bad, bytes) else json.dumps({**LINE, **bad}).encode()
    path.write_bytes(json.dumps(LINE).encode() + b"\n" + line + b"\n")
    with pytest.raises(UsageError, match=rf"valid\.jsonl:2: {message}"):
        list(read_lines(path))
