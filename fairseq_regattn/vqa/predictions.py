"""What a model answered and where it looked: JSON lines.

One object a line: ``id``, ``image``, ``question``, ``answer`` and its ``probability``; ``gold``,
``type``, ``answer_type`` and ``score`` (VQA's accuracy, by ten people) where they are known;
``attention``, ``weights`` of the cells, row by row; of continuous attention the density's ``mean``
and ``covariance``, in the unit square: the first axis goes down, the second to the right.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from fairseq_regattn.classification.rows import is_text
from fairseq_regattn.errors import UsageError

DECIMALS = 6
MOMENT_DECIMALS = 9
"""Variances are small."""


@dataclass(frozen=True)
class Prediction:
    """Of one question.

    Attributes:
        weights: rows x columns, from 0 to 1.
        mean, covariance: 2 numbers, and 2 x 2; None: attention is discrete.
    """

    id: int
    image: int
    question: str
    answer: str
    probability: float
    attention: str
    weights: list[list[float]]
    mean: list[float] | None = None
    covariance: list[list[float]] | None = None
    gold: str | None = None
    type: str = ""
    answer_type: str = ""
    score: float | None = None

    def to_line(self) -> str:
        """As JSON, without the end of the line and what is not known; numbers are rounded."""
        known = {name: value for name, value in vars(self).items() if value not in ("", None)}
        for name, value in known.items():
            moment = name in ("mean", "covariance")
            known[name] = _rounded(value, MOMENT_DECIMALS if moment else DECIMALS)
        return json.dumps(known, ensure_ascii=False)


def read_predictions(path: Path) -> Iterator[Prediction]:
    """What :meth:`Prediction.to_line` made, a line at a time.

    Raises:
        UsageError: no such file, or a malformed line; names it.
    """
    if not path.is_file():
        raise UsageError(f"{path}: no such file")
    with open(path, "rb") as lines:
        for number, line in enumerate(lines, start=1):
            place = f"{path}:{number}"
            try:
                found = Prediction(**json.loads(line))
            except (ValueError, TypeError, RecursionError) as error:
                raise UsageError(f"{place}: not a prediction ({error})") from None
            for name, (fits, wanted) in CHECKS.items():
                if not fits(getattr(found, name)):
                    value = getattr(found, name)
                    raise UsageError(f"{place}: {name} must be {wanted}, got {value!r:.100}")
            if (found.mean is None) != (found.covariance is None):
                raise UsageError(f"{place}: mean and covariance belong together")
            if b"\\u" in line and not is_text(found.to_line()):
                raise UsageError(f"{place}: half a surrogate pair, which no file can hold")
            yield found


def _is_number(value: Any) -> bool:
    return type(value) in (int, float) and math.isfinite(value)


def _is_share(value: Any) -> bool:
    return _is_number(value) and 0 <= value <= 1


def _are_shares(value: Any) -> bool:
    return _is_table(value) and all(_is_share(number) for row in value for number in row)


def _is_table(value: Any) -> bool:
    return (
        isinstance(value, list)
        and len(value) > 0
        and all(isinstance(row, list) and len(row) == len(value[0]) > 0 for row in value)
        and all(_is_number(number) for row in value for number in row)
    )


def _is_mean(value: Any) -> bool:
    return value is None or (_is_table([value]) and len(value) == 2)


def _is_covariance(value: Any) -> bool:
    if value is None:
        return True
    if not _is_table(value) or [len(value), len(value[0])] != [2, 2]:
        return False
    (a, b), (c, d) = value
    return a > 0 and d > 0 and b == c and a * d > b * b


def _is_word(value: Any) -> bool:
    return isinstance(value, str)


def _is_whole(value: Any) -> bool:
    return type(value) is int


CHECKS: dict[str, tuple[Callable[[Any], bool], str]] = {
    "id": (_is_whole, "a whole number"),
    "image": (_is_whole, "a whole number"),
    "question": (_is_word, "a text"),
    "answer": (_is_word, "a text"),
    "attention": (_is_word, "a text"),
    "probability": (_is_share, "a number from 0 to 1"),
    "weights": (_are_shares, "rows of as many numbers from 0 to 1"),
    "mean": (_is_mean, "two numbers"),
    "covariance": (_is_covariance, "two rows of two numbers, symmetric and positive definite"),
    "gold": (lambda value: value is None or _is_word(value), "a text"),
    "type": (_is_word, "a text"),
    "answer_type": (_is_word, "a text"),
    "score": (lambda value: value is None or _is_share(value), "a number from 0 to 1"),
}
"""What a key may have, and how that is told."""


def _rounded(value: Any, decimals: int) -> Any:
    if isinstance(value, list):
        return [_rounded(one, decimals) for one in value]
    # + 0.0: no minus zero
    return round(value, decimals) + 0.0 if isinstance(value, float) else value
