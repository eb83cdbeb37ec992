"""``predict``: from a model and texts to labels, probabilities and weights, as JSON lines."""

from __future__ import annotations

import argparse
import sys
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING

from fairseq_regattn.checkpoint import add_arguments as add_model_arguments
from fairseq_regattn.checkpoint import check_output, load, write_lines
from fairseq_regattn.classification.malformed import HOW, Malformed
from fairseq_regattn.classification.predictions import Prediction
from fairseq_regattn.classification.rows import (
    Preparation,
    Row,
    read_inputs,
    read_prepared,
)
from fairseq_regattn.errors import UsageError

if TYPE_CHECKING:
    import torch

BATCHES = 32
"""So many are sorted by length together: what is held in memory."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Of the command ``predict``."""
    parser.add_argument("data", type=Path, metavar="DATA", help="data folder of the training")
    parser.add_argument(
        "input",
        metavar="INPUT",
        help="a text a line, a tab between the two of a pair, and a label and a tab before them if "
        "it is known; SNLI's own .txt or .jsonl; - for standard input; or the prefix of prepared "
        "text, such as DIR/text/test",
    )
    parser.add_argument(
        "--malformed",
        choices=HOW,
        default=HOW[0],
        help="what to do about lines that cannot be read: end, or leave them out and count them "
        f"(default: {HOW[0]})",
    )
    add_model_arguments(parser)


def run(given: argparse.Namespace) -> int:
    """Write predictions; accuracy goes to standard error where labels are known.

    Raises:
        UsageError: wrong arguments, a file that cannot be read, malformed lines.
    """
    check_output(given)
    if given.input == "-" and sys.stdin is None:
        raise UsageError("standard input is closed: name a file to read")
    classifier = Classifier(given.data, given.path, given.cpu, given.user_dir)
    known: list[tuple[str, str]] = []
    malformed = Malformed(given.malformed)
    tally: Counter[str] = Counter()

    def lines() -> Iterator[str]:
        rows = classifier.rows(given.input, malformed, tally)
        for prediction in classifier.predict(rows, given.batch_size):
            yield prediction.to_line()
            if prediction.gold is not None:
                known.append((prediction.label, prediction.gold))

    write_lines(lines(), given.out, "texts")
    for what, count in tally.items():
        if what.startswith(("malformed", "dropped")):
            print(f"{count:,} lines left out, {what}", file=sys.stderr)
    if classifier.unknown:
        seen = f"{classifier.unknown:,} of {classifier.words:,}"
        print(f"{seen} words are none that the model knows", file=sys.stderr)
    if known:
        from fairseq_regattn.scoring.classification import score_labels, text

        predicted, gold = zip(*known)
        print(text(score_labels(predicted, gold, classifier.labels)), file=sys.stderr)
    return 0


class Classifier:
    """A trained model with all that it takes to read raw text.

    Args:
        data: the folder that it was trained on.
        checkpoint: its file.
        cpu: do not use a GPU.
        user_dir: folder of a plugin of the user's own.

    Raises:
        UsageError: no such folder or checkpoint, or one of another kind of model.
    """

    def __init__(self, data: Path, checkpoint: str, cpu: bool = False, user_dir: str | None = None):
        how = data / "preparation.json"
        if not how.is_file():
            raise UsageError(f"{data} is no data folder of texts with labels: {how} is missing")
        self.preparation = Preparation.read(how)
        self.model, self.task, _, self.device = load(
            checkpoint, data, "AttentionClassifier", cpu, user_dir
        )
        self.labels: list[str] = self.task.labels
        self.words = self.unknown = 0  # so far

    def rows(self, source: str, malformed: Malformed, tally: Counter) -> Iterator[Row]:
        """Of a file, standard input (``-``), or the prefix of prepared text.

        Raises:
            UsageError: no such file, or malformed lines that are not to be skipped.
        """
        if Path(f"{source}.input0").exists():
            yield from read_prepared(source, self.preparation, malformed, tally)
        else:
            file = sys.stdin.buffer if source == "-" else Path(source)
            yield from read_inputs(file, self.preparation, malformed, tally)
        malformed.check()

    def predict(self, rows: Iterable[Row], batch_size: int = 64) -> Iterator[Prediction]:
        """In the order of the rows."""
        rows = iter(rows)
        while chunk := list(islice(rows, BATCHES * batch_size)):
            texts = [[text.split() for text in row.inputs] for row in chunk]
            order = sorted(range(len(chunk)), key=lambda i: len(texts[i][0]))
            found: dict[int, Prediction] = {}
            for start in range(0, len(chunk), batch_size):
                some = order[start : start + batch_size]
                batch = self._batch([chunk[i] for i in some], [texts[i] for i in some])
                found.update(zip(some, batch))
            yield from (found[i] for i in range(len(chunk)))

    def _batch(
        self, rows: Sequence[Row], texts: Sequence[Sequence[Sequence[str]]]
    ) -> list[Prediction]:
        import torch
        from fairseq import utils

        encoded = [[self._encode(words) for words in some] for some in texts]
        first, *second = zip(*encoded)
        dataset = self.task.build_dataset_for_inference(
            list(first), [len(text) for text in first], pair_tokens=list(*second) or None
        )
        sample = dataset.collater([dataset[i] for i in range(len(rows))])
        if self.device.type == "cuda":
            sample = utils.move_to_cuda(sample)
        with torch.no_grad():
            logits, extra = self.model(**sample["net_input"])
        probabilities = logits.softmax(1).tolist()
        weights = extra["attn"][0].tolist()
        return [self._one(*parts) for parts in zip(rows, texts, probabilities, weights)]

    def _encode(self, words: Sequence[str]) -> torch.Tensor:
        import torch

        indices = [self.task.dictionary.index(word) for word in words]
        self.words += len(indices)
        self.unknown += indices.count(self.task.dictionary.unk())
        return torch.tensor(indices)

    def _one(
        self,
        row: Row,
        texts: Sequence[Sequence[str]],
        probabilities: Sequence[float],
        weights: Sequence[float],
    ) -> Prediction:
        best = max(range(len(self.labels)), key=lambda i: probabilities[i])
        return Prediction(
            id=int(row.place.rpartition(":")[2]),
            label=self.labels[best],
            gold=row.label,
            probabilities={
                label: round(value, 6) for label, value in zip(self.labels, probabilities)
            },
            tokens=list(texts[0]),
            weights=[round(weight, 6) for weight in weights[: len(texts[0])]],
            hypothesis=list(texts[1]) if len(texts) == 2 else None,
        )
