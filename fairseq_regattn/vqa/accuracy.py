"""Accuracy of answers, overall and by kind of question."""

from __future__ import annotations

from collections import defaultdict

from fairseq_regattn.analysis.tables import text_rows
from fairseq_regattn.errors import UsageError
from fairseq_regattn.scoring.answers import AnswerScores
from fairseq_regattn.scoring.classification import interval
from fairseq_regattn.vqa.predictions import Prediction


class Accuracy:
    """Counts questions with a known answer, as they come."""

    def __init__(self) -> None:
        self.tally: dict[tuple[str, str], list[float]] = defaultdict(lambda: [0, 0, 0, 0.0])

    def add(self, found: Prediction) -> None:
        if found.gold is None:
            return
        for group in (("", "all"), ("answer", found.answer_type), ("question", found.type)):
            if group[1]:
                counts = self.tally[group]
                counts[0] += 1
                counts[1] += found.answer == found.gold
                if found.score is not None:
                    counts[2] += 1
                    counts[3] += found.score

    def scores(self) -> AnswerScores:
        """All of it.

        Raises:
            UsageError: no answer is known.
        """
        if not self.tally:
            raise UsageError("there are no questions with a known answer to score")
        questions, right, scored, score = self.tally["", "all"]
        return AnswerScores(
            accuracy=interval(int(right), int(questions)),
            vqa=100 * score / scored if scored == questions else None,
            types={
                f"{kind} type {name}": [int(counts[1]), int(counts[0])]
                for (kind, name), counts in self._sorted()
                if kind
            },
        )

    def text(self) -> str:
        """A row a kind of question; empty where no answer is known.

        ``accuracy`` is against the most common answer, with Wilson's 95 % interval; ``VQA`` is
        VQA's, where ten people have answered each of the questions.
        """
        if not self.tally:
            return ""
        rows = [("questions", "number", "right", "accuracy (%)", "VQA (%)")]
        for (kind, name), counts in self._sorted():
            questions, right, scored, score = counts
            value, low, high = interval(int(right), int(questions))
            title = f"{kind} type {name}" if kind else name
            vqa = f"{100 * score / scored:.2f}" if scored == questions else "-"
            accuracy = f"{value:.2f} [{low:.2f}, {high:.2f}]"
            rows.append((title, f"{questions:,}", f"{right:,}", accuracy, vqa))
        return text_rows(rows)

    def _sorted(self) -> list[tuple[tuple[str, str], list[float]]]:
        order = {"": 0, "answer": 1, "question": 2}
        return sorted(self.tally.items(), key=lambda item: (order[item[0][0]], item[0][1]))
