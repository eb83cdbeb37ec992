"""What fairseq trains on: questions with the grids of their images."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from fairseq.data import Dictionary, FairseqDataset, data_utils

from fairseq_regattn.errors import UsageError
from fairseq_regattn.vqa.answers import votes
from fairseq_regattn.vqa.features import Features, Shape
from fairseq_regattn.vqa.questions import Question

UNKNOWN = -100
"""The class of an answer that is no class: torch's losses pass over it, and nothing equals it."""


class VQADataset(FairseqDataset):
    """Questions by number; a grid is read when its question is.

    Tokens and answers of all questions are held as arrays, a few dozen bytes a question.

    Args:
        questions: one after the other.
        features: of their images.
        shape: of every grid.
        dictionary: of words.
        answers: in the order of the classes.
        seed: of the order among questions of one length.
    """

    def __init__(
        self,
        questions: Any,
        features: Features,
        shape: Shape,
        dictionary: Dictionary,
        answers: Sequence[str],
        seed: int = 1,
    ):
        self.features = features
        self.shape = shape
        self.padding = dictionary.pad()
        self.answers = len(answers)
        self.seed = seed
        classes = {answer: number for number, answer in enumerate(answers)}
        tokens, images, targets = [], [], []
        rows: list[int] = []
        columns, given = [], []
        for number, question in enumerate(questions):
            tokens.append(encode(question, dictionary))
            images.append(question.image)
            targets.append(classes.get(question.gold, UNKNOWN))
            if question.gold is not None:
                for answer, count in votes(question.gold, question.answers).items():
                    if answer in classes:
                        rows.append(number)
                        columns.append(classes[answer])
                        given.append(count)
        self.sizes = np.array([len(words) for words in tokens], dtype=np.int64)
        self.tokens = np.concatenate(tokens) if tokens else np.zeros(0, dtype=np.int64)
        self.ends = self.sizes.cumsum()
        self.images = np.array(images, dtype=np.int64)
        self.targets = np.array(targets, dtype=np.int64)
        # sparse counts of answers; those of question i are between starts[i] and starts[i + 1]
        self.starts = np.cumsum([0, *np.bincount(np.array(rows, dtype=int), minlength=len(tokens))])
        self.columns = np.array(columns, dtype=np.int64)
        self.given = np.array(given, dtype=np.int64)

    def __len__(self) -> int:
        return len(self.sizes)

    def __getitem__(self, index: int) -> dict[str, Any]:
        end = int(self.ends[index])
        image = int(self.images[index])
        grid = self.features[image]
        if grid.shape != self.shape:
            place = self.features.place(image)
            raise UsageError(f"{place}: shape {grid.shape}, and {self.shape} when it was prepared")
        grid = np.array(grid, dtype=grid.dtype.newbyteorder("="))  # torch's
        if grid.dtype != np.uint8 and not np.isfinite(grid).all():
            raise UsageError(f"{self.features.place(image)}: its features are not all finite")
        return {
            "id": index,
            "tokens": torch.from_numpy(self.tokens[end - self.size(index) : end]),
            "grid": torch.from_numpy(grid),
        }

    def collater(self, samples: Sequence[dict[str, Any]]) -> dict[str, Any]:
        """A batch: ``target`` are classes, ``counts``, bsz x answers, tell how many gave which."""
        if not samples:
            return {}
        ids = [sample["id"] for sample in samples]
        lengths = torch.tensor([len(sample["tokens"]) for sample in samples])
        counts = torch.zeros(len(ids), self.answers, dtype=torch.long)
        for row, index in enumerate(ids):
            found = slice(*self.starts[index : index + 2].tolist())
            counts[row, self.columns[found]] = torch.from_numpy(self.given[found])
        return {
            "id": torch.tensor(ids),
            "net_input": {
                "src_tokens": data_utils.collate_tokens(
                    [sample["tokens"] for sample in samples], self.padding
                ),
                "src_lengths": lengths,
                "grid": torch.stack([sample["grid"] for sample in samples]),
            },
            "target": torch.from_numpy(self.targets[ids]),
            "counts": counts,
            "nsentences": len(ids),
            "ntokens": int(lengths.sum()),
        }

    def num_tokens(self, index: int) -> int:
        return int(self.sizes[index])

    def size(self, index: int) -> int:
        return int(self.sizes[index])

    def ordered_indices(self) -> np.ndarray:
        """By length, so that batches have little padding."""
        with data_utils.numpy_seed(self.seed):
            shuffled = np.random.permutation(len(self))
        return shuffled[np.argsort(self.sizes[shuffled], kind="stable")]


def encode(question: Question, dictionary: Dictionary) -> np.ndarray:
    """Words as numbers."""
    return np.array([dictionary.index(word) for word in question.text.split()], dtype=np.int64)
