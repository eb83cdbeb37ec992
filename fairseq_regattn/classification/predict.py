"""``predict``: from a model and texts to labels, probabilities and weights, as JSON lines."""

from __future__ import annotations

import argparse
import sys
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING

from tqdm import tqdm  # type: ignore[import-untyped]

from fairseq_regattn.classification.predictions import Prediction
from fairseq_regattn.classification.rows import (
    HOW,
    Malformed,
    Preparation,
    Row,
    read_inputs,
    read_prepared,
)
from fairseq_regattn.errors import ArgumentError, UsageError
from fairseq_regattn.recipes.stages import check_file, partial_of

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
    parser.add_argument("--path", required=True, metavar="FILE", help="checkpoint of the model")
    parser.add_argument(
        "--out", type=Path, metavar="FILE", help="where to write (default: standard output)"
    )
    parser.add_argument(
        "--malformed",
        choices=HOW,
        default=HOW[0],
        help="what to do about lines that cannot be read: end, or leave them out and count them "
        f"(default: {HOW[0]})",
    )
    parser.add_argument(
        "--batch-size", type=int, default=64, metavar="N", help="(default: 64); changes no number"
    )
    parser.add_argument("--cpu", action="store_true", help="do not use a GPU")
    parser.add_argument(
        "--user-dir", metavar="DIR", help="folder that registers an attention of yours"
    )


def run(given: argparse.Namespace) -> int:
    """Write predictions; accuracy goes to standard error where labels are known.

    Raises:
        UsageError: wrong arguments, a file that cannot be read, malformed lines.
    """
    if given.batch_size < 1:
        raise ArgumentError("--batch-size", given.batch_size, "at least 1")
    if given.out is not None:
        check_file(given.out)
    elif sys.stdout is None:
        raise UsageError("standard output is closed: name a file with --out")
    if given.input == "-" and sys.stdin is None:
        raise UsageError("standard input is closed: name a file to read")
    classifier = Classifier(given.data, given.path, given.cpu, given.user_dir)
    known: list[tuple[str, str]] = []
    with ExitStack() as stack:
        if given.out is None:
            output = sys.stdout
            output.reconfigure(encoding="utf-8")  # type: ignore[union-attr]  # as JSON has to be
        else:
            given.out.parent.mkdir(parents=True, exist_ok=True)
            output = stack.enter_context(open(partial_of(given.out), "w", encoding="utf-8"))
        malformed = Malformed(given.malformed)
        tally: Counter[str] = Counter()
        rows = classifier.rows(given.input, malformed, tally)
        found = classifier.predict(rows, given.batch_size)
        if given.out is not None:  # else lines on a terminal show how far it is
            found = tqdm(found, "texts", leave=False, disable=None, unit=" texts")
        for prediction in found:
            output.write(prediction.to_line() + "\n")
            if prediction.gold is not None:
                known.append((prediction.label, prediction.gold))
        output.flush()
    if given.out is not None:
        partial_of(given.out).replace(given.out)
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

    Everything is computed in double precision, so that the six decimals that are written do not
    depend on which texts share a batch.

    Args:
        data: the folder that it was trained on.
        checkpoint: its file.
        cpu: do not use a GPU.
        user_dir: folder of a plugin of the user's own.

    Raises:
        UsageError: no such folder or checkpoint, or one of another kind of model.
    """

    def __init__(self, data: Path, checkpoint: str, cpu: bool = False, user_dir: str | None = None):
        import torch
        from fairseq import checkpoint_utils, utils

        import fairseq_regattn  # noqa: F401  registers the models
        from fairseq_regattn.models.classification import AttentionClassifier

        how = data / "preparation.json"
        if not how.is_file():
            raise UsageError(f"{data} is no data folder of texts with labels: {how} is missing")
        self.preparation = Preparation.read(how)
        if user_dir is not None:
            utils.import_user_module(argparse.Namespace(user_dir=user_dir))
        if not Path(checkpoint).is_file():
            raise UsageError(f"--path {checkpoint}: no such file")
        try:
            [model], _, self.task = checkpoint_utils.load_model_ensemble_and_task(
                [checkpoint], arg_overrides={"data": str(data)}
            )
        except Exception as error:  # fairseq raises just that
            told = " ".join(str(error).split())
            raise UsageError(f"--path {checkpoint} does not fit {data}: {told}") from error
        if not isinstance(model, AttentionClassifier):
            raise UsageError(f"--path {checkpoint} holds no classifier, but {type(model).__name__}")
        self.device = torch.device("cuda" if torch.cuda.is_available() and not cpu else "cpu")
        self.model = model.to(self.device, torch.double).eval()
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
