"""What a classifier said of each text and where it looked: JSON lines.

One object a line, keys in this order: ``id``, ``label``, ``gold`` where it is known,
``probabilities``, ``tokens``, ``weights`` and, of pairs, ``hypothesis``.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from fairseq_regattn.classification.rows import is_text
from fairseq_regattn.errors import UsageError

DECIMALS = 6
"""As many as fairseq prints of attention weights."""

SLACK = 1e-3
"""By which probabilities may miss a sum of 1: half precision, and rounding of each."""

NEEDED = ("id", "label", "probabilities", "tokens", "weights")
KEYS = ("id", "label", "gold", "probabilities", "tokens", "weights", "hypothesis")


@dataclass(frozen=True)
class Prediction:
    """Of one text, or one pair.

    Attributes:
        id: line of the input, or row of the test split, from 1.
        label: the most probable one.
        gold: the true one; None: not known.
        probabilities: of all labels.
        tokens: what is attended to: the text, or the premise.
        weights: of the tokens, from 0 to 1.
        hypothesis: tokens; None: the text is no pair.
    """

    id: int
    label: str
    gold: str | None
    probabilities: dict[str, float]
    tokens: list[str]
    weights: list[float]
    hypothesis: list[str] | None = None

    def to_line(self) -> str:
        """As JSON, without the end of the line; numbers are rounded."""
        content: dict[str, Any] = {"id": self.id, "label": self.label}
        if self.gold is not None:
            content["gold"] = self.gold
        content["probabilities"] = {k: _rounded(p) for k, p in self.probabilities.items()}
        content["tokens"] = self.tokens
        content["weights"] = [_rounded(weight) for weight in self.weights]
        if self.hypothesis is not None:
            content["hypothesis"] = self.hypothesis
        return json.dumps(content, ensure_ascii=False)


def read_predictions(source: Path | Iterable[str]) -> Iterator[Prediction]:
    """What :meth:`Prediction.to_line` made, a line at a time: files may be of gigabytes.

    Args:
        source: a file, or lines.

    Raises:
        UsageError: a line is malformed; names the file and the line.
    """
    if isinstance(source, Path):
        with open(source, "rb") as file:  # only a line feed ends a line
            for number, raw in enumerate(file, start=1):
                try:
                    line = raw.decode()
                except UnicodeDecodeError as error:
                    place = f"{source}:{number}"
                    raise UsageError(f"{place}: not UTF-8 (byte {error.start + 1})") from None
                yield _read(line, f"{source}:{number}")
    else:
        for number, line in enumerate(source, start=1):
            yield _read(line, f"line {number}")


def _read(line: str, place: str) -> Prediction:
    try:
        content = json.loads(line)
    except (ValueError, RecursionError) as error:
        raise UsageError(f"{place}: no JSON: {error}") from None
    if "\\ud" in line.lower() and not is_text(json.dumps(content, ensure_ascii=False)):
        raise UsageError(f"{place}: half a surrogate pair, which no file can hold")
    if not isinstance(content, dict):
        raise UsageError(f"{place}: a JSON object was expected, got {content!r:.100}")
    for problem, keys in (
        ("lacks", [key for key in NEEDED if key not in content]),
        ("has the unknown", [key for key in content if key not in KEYS]),
    ):
        if keys:
            raise UsageError(f"{place} {problem} key {', '.join(keys)}")
    for key, value in content.items():
        fits, wanted = CHECKS[key]
        if not fits(value):
            raise UsageError(f"{place}: {key} must be {wanted}, got {value!r:.100}")
    labels, tokens, weights = (content[key] for key in ("probabilities", "tokens", "weights"))
    if abs(sum(labels.values()) - 1) > SLACK:
        total = sum(labels.values())
        raise UsageError(f"{place}: probabilities must have the sum 1, got {total:g}")
    for key in ("label", "gold"):
        if key in content and content[key] not in labels:
            known = ", ".join(labels)
            raise UsageError(f"{place}: {key} must be one of {known}, got {content[key]!r}")
    if len(weights) != len(tokens):
        raise UsageError(f"{place}: {len(weights)} weights for {len(tokens)} tokens")
    return Prediction(**{"gold": None, **content})


def _is_share(value: Any) -> bool:
    """Not NaN, which JSON of Python has; rounding may pass 1 by a little."""
    return isinstance(value, (int, float)) and not isinstance(value, bool) and 0 <= value <= 1.00001


def _is_words(value: Any) -> bool:
    return isinstance(value, list) and all(isinstance(word, str) for word in value)


def _is_weights(value: Any) -> bool:
    return isinstance(value, list) and all(map(_is_share, value))


def _is_probabilities(value: Any) -> bool:
    return isinstance(value, dict) and len(value) > 0 and all(map(_is_share, value.values()))


def _is_position(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value > 0


def _is_label(value: Any) -> bool:
    return isinstance(value, str)


CHECKS: dict[str, tuple[Callable[[Any], bool], str]] = {
    "id": (_is_position, "a whole number > 0"),
    "label": (_is_label, "a text"),
    "gold": (_is_label, "a text"),
    "probabilities": (_is_probabilities, "numbers from 0 to 1 by label"),
    "tokens": (_is_words, "a list of texts"),
    "weights": (_is_weights, "numbers from 0 to 1"),
    "hypothesis": (_is_words, "a list of texts"),
}
"""What each key may have, and how that is told."""


def _rounded(number: float) -> float:
    return round(float(number), DECIMALS) + 0.0  # + 0.0: no minus zero
