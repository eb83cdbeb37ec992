"""Predictions as JSON lines."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fairseq_regattn.classification.predictions import Prediction, read_predictions
from fairseq_regattn.errors import UsageError

BAND = Prediction(
    id=3,
    label="neutral",
    gold="neutral",
    probabilities={"entailment": 0.25, "neutral": 0.75},
    tokens=["a", "band", "–"],
    weights=[0.0, 0.5, 0.5],
    hypothesis=["people"],
)


def test_the_line_is_the_documented_one():
    assert BAND.to_line() == (
        '{"id": 3, "label": "neutral", "gold": "neutral", '
        '"probabilities": {"entailment": 0.25, "neutral": 0.75}, '
        '"tokens": ["a", "band", "–"], "weights": [0.0, 0.5, 0.5], "hypothesis": ["people"]}'
    )
    bare = Prediction(1, "x", None, {"x": 1}, ["a", "b"], [-0.0, 1.00000049])
    assert bare.to_line() == (
        '{"id": 1, "label": "x", "probabilities": {"x": 1.0}, "tokens": ["a", "b"], '
        '"weights": [0.0, 1.0]}'
    )


words = st.lists(st.text(st.characters(exclude_categories=["Cs"])), max_size=5)


@given(words, st.none() | words, st.sampled_from([None, "a", "ă\n"]), st.data())
def test_what_is_written_is_read(tokens, hypothesis, gold, data):
    share = st.integers(0, 10**6).map(lambda n: n / 10**6)
    weights = [data.draw(share) for _ in tokens]
    p = data.draw(share)
    probabilities = {"a": p, "ă\n": round(1 - p, 6)}
    made = Prediction(1, "a", gold, probabilities, tokens, weights, hypothesis)
    assert "\n" not in made.to_line()
    assert list(read_predictions([made.to_line(), made.to_line() + "\n"])) == [made, made]


def test_a_file_is_read_a_line_at_a_time(tmp_path):
    path = tmp_path / "p.jsonl"
    odd = Prediction(4, "x", None, {"x": 1.0}, ["\u2028", "\x85"], [0.5, 0.5])
    path.write_bytes(f"{BAND.to_line()}\n{odd.to_line()}\n{{\n".encode())
    read = read_predictions(path)
    assert [next(read), next(read)] == [BAND, odd]
    with pytest.raises(UsageError, match=r"p\.jsonl:3: no JSON"):
        next(read)
    path.write_bytes(BAND.to_line().encode() + b"\n\xff\n")
    with pytest.raises(UsageError, match=r"p\.jsonl:2: not UTF-8 \(byte 1\)"):
        list(read_predictions(path))


@pytest.mark.parametrize("key", ["id", "label", "probabilities", "tokens", "weights"])
def test_missing_keys(key):
    content = json.loads(BAND.to_line())
    del content[key]
    with pytest.raises(UsageError, match=f"line 1 lacks key {key}$"):
        list(read_predictions([json.dumps(content)]))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"labels": 1}, "line 1 has the unknown key labels"),
        ({"id": 0}, "id must be a whole number > 0, got 0"),
        ({"id": True}, "id must be"),
        ({"id": "3"}, "id must be"),
        ({"label": None}, "label must be a text"),
        ({"label": "so"}, "label must be one of entailment, neutral, got 'so'"),
        ({"gold": None}, "gold must be a text"),
        ({"gold": "-"}, "gold must be one of entailment, neutral, got '-'"),
        ({"probabilities": {}}, "probabilities must be numbers from 0 to 1 by label"),
        ({"probabilities": [1.0]}, "probabilities must be numbers"),
        ({"probabilities": {"neutral": "1"}}, "probabilities must be numbers"),
        ({"probabilities": {"neutral": 1.5, "x": -0.5}}, "probabilities must be numbers"),
        (
            {"probabilities": {"neutral": 0.5, "x": 0.4}},
            "probabilities must have the sum 1, got 0.9",
        ),
        ({"tokens": "abc"}, "tokens must be a list of texts"),
        ({"tokens": ["a", 1, "b"]}, "tokens must be"),
        ({"weights": [0.5, 0.5]}, "2 weights for 3 tokens"),
        ({"weights": [0.5, 0.5, float("nan")]}, "weights must be numbers from 0 to 1, got"),
        ({"weights": [0.5, 0.5, -0.1]}, "weights must be"),
        ({"weights": [0.5, 0.5, 1.1]}, "weights must be"),
        ({"weights": [0.5, 0.5, True]}, "weights must be"),
        ({"weights": {"a": 1}}, "weights must be"),
        ({"hypothesis": None}, "hypothesis must be a list of texts"),
    ],
)
def test_wrong_values(change, message):
    content = {**json.loads(BAND.to_line()), **change}
    with pytest.raises(UsageError, match=message):
        list(read_predictions([json.dumps(content)]))


@pytest.mark.parametrize("change", [{"tokens": ["a", "\ud800", "b"]}, {"label": "\udfff"}])
def test_what_no_file_can_hold(change):
    content = {**json.loads(BAND.to_line()), **change}
    with pytest.raises(UsageError, match="line 1: half a surrogate pair"):
        list(read_predictions([json.dumps(content)]))


@pytest.mark.parametrize("line", ["", "[]", "1", "{", "[" * 100_000])
def test_what_is_no_object(line):
    with pytest.raises(UsageError, match=r"^line 2: "):
        list(read_predictions([BAND.to_line(), line]))
