"""Answers to questions about images as they are scored."""

from __future__ import annotations

from dataclasses import dataclass

from fairseq_regattn.errors import ArgumentError


@dataclass(frozen=True)
class AnswerScores:
    """How many answers are right.

    Attributes:
        accuracy: against the most common answer, 0 to 100, with its 95 % confidence interval
            (Wilson's): three numbers.
        vqa: VQA's accuracy, 0 to 100, where ten people have answered each question.
        types: right answers and questions, two numbers, by kind of question or of answer.

    Raises:
        ArgumentError: these are no shares of a hundred, or no counts.
    """

    accuracy: list[float]
    vqa: float | None
    types: dict[str, list[int]]

    def __post_init__(self) -> None:
        check_interval("accuracy", self.accuracy)
        if self.vqa is not None and not 0 <= self.vqa <= 100:
            raise ArgumentError("vqa", self.vqa, "a number from 0 to 100, or null")
        for name, counts in self.types.items():
            if len(counts) != 2 or not 0 <= counts[0] <= counts[1] or counts[1] == 0:
                raise ArgumentError(f"types: {name}", counts, "right answers, and questions")


def check_interval(name: str, value: list[float]) -> None:
    """
    Raises:
        ArgumentError: no number with an interval around it.
    """
    if len(value) != 3 or not 0 <= value[1] <= value[0] <= value[2] <= 100:
        wanted = "a number from 0 to 100 and the interval around it, three numbers"
        raise ArgumentError(name, value, wanted)
