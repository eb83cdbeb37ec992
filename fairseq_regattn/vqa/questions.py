"""Questions, and what people answered: VQA-v2's own files, and the lines that are made of them."""

from __future__ import annotations

import json
import sys
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from fairseq_regattn.classification.malformed import Malformed
from fairseq_regattn.classification.rows import is_text, tokenise
from fairseq_regattn.errors import UsageError
from fairseq_regattn.recipes.text import SPECIAL
from fairseq_regattn.vqa.answers import PEOPLE, normalise

LAST = (1 << 63) - 1
"""The highest number of an image."""


@dataclass(frozen=True)
class Question:
    """About one image.

    Attributes:
        id: VQA's ``question_id``.
        image: the number of its image.
        text: tokens between single spaces, in lower case.
        type, answer_type: such as ``what color is the`` and ``other``; empty where not known.
        gold: the most common answer; None: not known.
        answers: how many people gave which, of ten; None: only `gold` is known.
    """

    id: int
    image: int
    text: str
    type: str = ""
    answer_type: str = ""
    gold: str | None = None
    answers: dict[str, int] | None = None

    def to_line(self) -> str:
        """As JSON, without the end of the line and what is not known."""
        known = {name: value for name, value in vars(self).items() if value not in ("", None)}
        return json.dumps(known, ensure_ascii=False)


def read_lines(path: Path) -> Iterator[Question]:
    """What :meth:`Question.to_line` made.

    Raises:
        UsageError: no such file, or a line that is not one of these; names it.
    """
    if not path.is_file():
        raise UsageError(f"{path}: no such file")
    with open(path, "rb") as lines:  # only a line feed ends a line
        for number, line in enumerate(lines, start=1):
            place = f"{path}:{number}"
            try:
                found = Question(**json.loads(line.decode()))
            except (ValueError, TypeError, RecursionError) as error:
                raise UsageError(f"{place}: not a prepared question ({error})") from None
            for name, (fits, wanted) in CHECKS.items():
                value = getattr(found, name)
                if not fits(value):
                    raise UsageError(f"{place}: {name} must be {wanted}, got {value!r:.100}")
            if found.gold is None and found.answers is not None:
                raise UsageError(f"{place}: answers without gold, the most common one")
            if b"\\u" in line and not is_text(found.to_line()):
                raise UsageError(f"{place}: {HALF[0]}, {HALF[1]}")
            yield found


def _is_text(value: Any) -> bool:
    return isinstance(value, str)


def _is_whole(value: Any) -> bool:
    return type(value) is int


def _is_image(value: Any) -> bool:
    return _is_whole(value) and 0 <= value <= LAST


def _are_words(value: Any) -> bool:
    return _is_text(value) and len(value) > 0 and " ".join(value.split()) == value


def _is_answer(value: Any) -> bool:
    return value is None or (_is_text(value) and len(value) > 0)


def _are_answers(value: Any) -> bool:
    if value is None:
        return True
    counts: list[Any] = list(value.values()) if isinstance(value, dict) else [None]
    return all(_is_whole(count) and count > 0 for count in counts) and sum(counts) == PEOPLE


CHECKS: dict[str, tuple[Callable[[Any], bool], str]] = {
    "id": (_is_whole, "a whole number"),
    "image": (_is_image, f"a whole number from 0 to {LAST}"),
    "text": (_are_words, "words with spaces between them"),
    "type": (_is_text, "a text"),
    "answer_type": (_is_text, "a text"),
    "gold": (_is_answer, "a text"),
    "answers": (_are_answers, "how many of ten people gave which"),
}
"""What a key of a line may have, and how that is told."""

HALF = "half a surrogate pair", "which no file can hold"


def read_vqa(
    questions: Path, annotations: Path | None, malformed: Malformed, tally: Counter
) -> Iterator[Question]:
    """Questions of VQA-v2's files, in their order.

    Args:
        questions: ``v2_OpenEnded_mscoco_train2014_questions.json``, ...
        annotations: ``v2_mscoco_train2014_annotations.json``, ...; None: answers are not known.
        malformed: is told of each entry that is not what it should be; the caller has to
            ``check()`` it in the end.
        tally: counts entries that are read, and malformed ones.

    Raises:
        UsageError: no such file, or it has no list of entries.
    """
    answered: dict[int, tuple[str, dict]] = {}
    if annotations is not None:
        for place, entry in _entries(annotations, "annotations"):
            try:
                number = _get(entry, "question_id", int)
                _new(number, answered)
            except _EntryError as error:
                malformed.add(error.kind, place, error.detail, tally)
            else:
                answered[number] = place, entry
    known: set[int] = set()
    for place, entry in _entries(questions, "questions"):
        tally["read"] += 1
        try:
            number = _get(entry, "question_id", int)
            _new(number, known)
            known.add(number)
            if annotations is None:
                yield _question(entry, None)
            elif number not in answered:
                raise _EntryError("no annotation", f"{annotations} has none of question {number}")
            else:
                yield _question(entry, answered[number])
        except _EntryError as error:
            malformed.add(error.kind, error.place or place, error.detail, tally)
    for number, (place, _) in answered.items():
        if number not in known:
            malformed.add("no question", place, f"{questions} has no question {number}", tally)


class _EntryError(Exception):
    """Why an entry is malformed; `place` where it is another entry's."""

    def __init__(self, kind: str, detail: str, place: str = ""):
        super().__init__(kind, detail)
        self.kind, self.detail, self.place = kind, detail, place


def _entries(path: Path, name: str) -> Iterator[tuple[str, Any]]:
    """The list `name` of a file, with the place of each entry."""
    try:
        with open(path, "rb") as file:
            content = json.load(file, object_hook=_answer_alone)
    except FileNotFoundError:
        raise UsageError(f"{path}: no such file") from None
    except (ValueError, RecursionError) as error:
        raise UsageError(f"{path}: not JSON ({error})") from None
    found = content.get(name) if isinstance(content, dict) else None
    if not isinstance(found, list):
        raise UsageError(f"{path}: an object with a list {name!r} was expected, as VQA-v2 has it")
    for number, entry in enumerate(found):
        yield f"{path}: {name}[{number}]", entry


def _answer_alone(entry: dict) -> Any:
    """What one of the ten people said: VQA-v2 has millions of these, most of the memory."""
    answer = entry.get("answer")
    return sys.intern(answer) if type(answer) is str and "answer_id" in entry else entry


def _get(entry: Any, key: str, kind: type) -> Any:
    if not isinstance(entry, dict):
        raise _EntryError("wrong type", f"{type(entry).__name__} instead of an object")
    if key not in entry:
        raise _EntryError("missing key", key)
    value = entry[key]
    if not isinstance(value, kind) or isinstance(value, bool):
        what = {int: "a whole number", str: "a text", list: "a list"}[kind]
        raise _EntryError("wrong type", f"{key} must be {what}, got {value!r:.80}")
    if kind is str:
        _check_text(key, value)
    return value


def _check_text(key: str, text: Any) -> None:
    if not is_text(text):
        kind, why = HALF
        raise _EntryError(kind, f"{key} {text!r:.80}, {why}")


def _new(number: int, known: Any) -> None:
    if number in known:
        raise _EntryError("twice", f"question_id {number} is there already")


def _question(entry: Any, annotation: tuple[str, dict] | None) -> Question:
    number, image = entry["question_id"], _get(entry, "image_id", int)
    text = " ".join(tokenise(_get(entry, "question", str), "wordpunct", lowercase=True))
    if not text:
        raise _EntryError("empty question", "it has no words")
    if not 0 <= image <= LAST:
        allowed = "least 0" if image < 0 else f"most {LAST}"
        raise _EntryError("wrong type", f"image_id must be at {allowed}, got {image}")
    special = SPECIAL.search(text)
    if special:
        raise _EntryError("a word that fairseq has another use for", repr(special[0]))
    if annotation is None:
        return Question(number, image, text)
    place, found = annotation
    try:
        if _get(found, "image_id", int) != image:
            raise _EntryError("another image", f"{found['image_id']}, and {image} in the question")
        gold = normalise(_get(found, "multiple_choice_answer", str))
        if not gold:
            raise _EntryError("empty answer", "multiple_choice_answer has no words")
        answers = _answers(_get(found, "answers", list)) if "answers" in found else None
        kinds = [
            " ".join(_get(found, name, str).split()) if name in found else ""
            for name in ("question_type", "answer_type")
        ]
    except _EntryError as error:
        raise _EntryError(error.kind, error.detail, place) from None
    return Question(number, image, text, kinds[0], kinds[1], gold, answers)


def _answers(given: Sequence[Any]) -> dict[str, int] | None:
    """How many gave which; None where it is not all ten that are known."""
    texts = [one if isinstance(one, str) else _get(one, "answer", str) for one in given]
    for text in texts:
        _check_text("answer", text)
    found = Counter(map(normalise, texts))
    if len(given) > PEOPLE:
        raise _EntryError("too many answers", f"{len(given)} instead of {PEOPLE}")
    return dict(found) if len(given) == PEOPLE else None
