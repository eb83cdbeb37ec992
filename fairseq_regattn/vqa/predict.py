"""``predict``: from a model and questions to answers and where it looked, as JSON lines."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from pathlib import Path
from typing import Any

from fairseq_regattn.checkpoint import add_arguments as add_model_arguments
from fairseq_regattn.checkpoint import check_output, load, write_lines
from fairseq_regattn.vqa.accuracy import Accuracy
from fairseq_regattn.vqa.answers import accuracy
from fairseq_regattn.vqa.predictions import Prediction
from fairseq_regattn.vqa.questions import Question, read_lines


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Of the command ``predict``."""
    parser.add_argument("data", type=Path, metavar="DATA", help="data folder of the training")
    parser.add_argument(
        "--split", default="test", help="whose questions, such as valid (default: %(default)s)"
    )
    add_model_arguments(parser)


def run(given: argparse.Namespace) -> int:
    """Write predictions; accuracy goes to standard error where answers are known.

    Raises:
        UsageError: wrong arguments, or a file that cannot be read.
    """
    check_output(given)
    answerer = Answerer(given.data, given.path, given.cpu, given.user_dir)
    questions = read_lines(given.data / f"{given.split}.jsonl")
    known = Accuracy()

    def lines() -> Iterator[str]:
        for prediction in answerer.predict(questions, given.split, given.batch_size):
            known.add(prediction)
            yield prediction.to_line()

    write_lines(lines(), given.out, "questions")
    if known.tally:
        print(known.text(), file=sys.stderr)
    return 0


class Answerer:
    """A trained model.

    Args:
        data: the folder that it was trained on.
        checkpoint, cpu, user_dir: as for ``checkpoint.load``.

    Raises:
        UsageError: no such folder or checkpoint, or one of another kind of model.
    """

    def __init__(self, data: Path, checkpoint: str, cpu: bool = False, user_dir: str | None = None):
        from fairseq_regattn.vqa.data import Preparation

        Preparation.read(data)
        self.model, self.task, cfg, self.device = load(
            checkpoint, data, "RegAttnVQAModel", cpu, user_dir
        )
        self.independent = cfg.criterion._name == "vqa_bce"
        self.attention = str(self.model.attention.name)

    def predict(
        self, questions: Iterable[Question], split: str, batch_size: int = 64
    ) -> Iterator[Prediction]:
        """In the order of the questions, about images of a split."""
        questions = iter(questions)
        while some := list(islice(questions, batch_size)):
            yield from self._batch(some, split)

    def _batch(self, questions: Sequence[Question], split: str) -> Iterator[Prediction]:
        import torch
        from fairseq import utils

        dataset = self.task.dataset_of(questions, split)
        sample = dataset.collater([dataset[number] for number in range(len(questions))])
        if self.device.type == "cuda":
            sample = utils.move_to_cuda(sample)
        with torch.no_grad():
            logits, extra = self.model(**sample["net_input"])
        # vqa_bce trains a probability for each answer
        probabilities = logits.sigmoid() if self.independent else logits.softmax(1)
        best = probabilities.max(1)
        parts = [best.indices, best.values, extra["attn"][0]]
        for moment in extra["moments"]:
            parts.append((moment + moment.mT) / 2 if moment.dim() == 3 else moment)
        for question, *found in zip(questions, *(part.tolist() for part in parts)):
            yield self._one(question, *found)

    def _one(
        self,
        question: Question,
        best: int,
        probability: float,
        weights: list[list[float]],
        *moments: Any,
    ) -> Prediction:
        answer = self.task.labels[best]
        given = question.answers
        return Prediction(
            id=question.id,
            image=question.image,
            question=question.text,
            answer=answer,
            probability=probability,
            attention=self.attention,
            weights=weights,
            mean=moments[0] if moments else None,
            covariance=moments[1] if moments else None,
            gold=question.gold,
            type=question.type,
            answer_type=question.answer_type,
            score=None if given is None else accuracy(given.get(answer, 0)),
        )
