"""The data folder that task ``vqa`` reads, and how it is made.

``preparation.json``, ``dict.txt`` (words of questions), ``answers.txt`` (one a line, most frequent
first) and for each split ``train.jsonl`` (``questions.Question`` a line). Features stay where they
are.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

import numpy as np

from fairseq_regattn.classification.corpus import write_dictionary
from fairseq_regattn.classification.malformed import Malformed
from fairseq_regattn.errors import ArgumentError, UsageError
from fairseq_regattn.recipes.progress import with_progress
from fairseq_regattn.recipes.stages import rewrite
from fairseq_regattn.recipes.text import report, told
from fairseq_regattn.vqa.features import FeatureError, Features, Shape
from fairseq_regattn.vqa.questions import Question, read_vqa

PREPARATION = "preparation.json"
DICTIONARY = "dict.txt"
ANSWERS = "answers.txt"


class Source(NamedTuple):
    """Of one split: VQA-v2's two files (no second one: answers are not known), and features."""

    questions: Path
    annotations: Path | None
    features: Path


@dataclass(frozen=True)
class Preparation:
    """What a data folder was made of.

    Attributes:
        shape: height, width and channels of every grid.
        features: of each split, a folder or an HDF5 file.
        channels_first: that is how grids are stored.
    """

    shape: Shape
    features: dict[str, str] = field(default_factory=dict)
    channels_first: bool = False

    @classmethod
    def read(cls, data: Path) -> Preparation:
        """
        Raises:
            UsageError: not such a folder.
        """
        path = data / PREPARATION
        if not path.is_file():
            raise UsageError(
                f"{data} holds no questions about images: {path} is missing; see"
                " python -m fairseq_regattn.vqa prepare"
            )
        try:
            given = json.loads(path.read_text(encoding="utf-8"))
            height, width, channels = given["shape"]
            shape = int(height), int(width), int(channels)
            if min(shape) < 1:
                raise ValueError(f"shape {shape}")
            features = {split: str(Path(where)) for split, where in given["features"].items()}
            return cls(shape, features, bool(given["channels_first"]))
        except (ValueError, TypeError, KeyError, AttributeError, RecursionError) as error:
            raise UsageError(f"{path}: not the preparation of a data folder: {error}") from None

    def write(self, data: Path) -> None:
        rewrite(data / PREPARATION, (json.dumps(vars(self), ensure_ascii=False) + "\n").encode())

    def open_features(self, split: str) -> Features:
        """
        Raises:
            UsageError: there are none any more.
        """
        if split not in self.features:
            known = ", ".join(self.features)
            raise UsageError(f"there are no features of {split}, only of {known}")
        path = Path(self.features[split])
        if not path.exists():
            raise UsageError(
                f"features of {split} are not at {path} any more: write where they are into"
                f" {PREPARATION} of the data folder"
            )
        return Features.open(path, self.channels_first)


def read_answers(data: Path) -> list[str]:
    """In the order of the classes.

    Raises:
        UsageError: no such file, or it is not one of different answers.
    """
    path = data / ANSWERS
    try:
        text = path.read_bytes().decode()
    except UnicodeDecodeError as error:
        raise UsageError(f"{path}: {error}") from None
    answers = text.removesuffix("\n").split("\n")
    if "" in answers or len(set(answers)) < len(answers):
        raise UsageError(f"{path}: an answer a line was expected, none twice, none empty")
    return answers


def take(
    sources: Mapping[str, Source],
    out: Path,
    answers: int,
    min_count: int = 1,
    malformed: str = "error",
    channels_first: bool = False,
) -> dict[str, Counter]:
    """Check questions, answers and features, and make the data folder.

    Args:
        sources: of train, valid and others.
        out: is made.
        answers: size of the answer vocabulary: the most common answers of train, in which a
            question counts once. Questions of train with another answer are dropped, those of
            other splits are kept, and no model has them right.
        min_count: words that are less frequent in train are unknown.
        malformed: ``"error"`` or ``"skip"`` (``Malformed``).
        channels_first: of the features.

    Returns:
        For each split what became of its questions. Printed, too.

    Raises:
        UsageError: malformed entries that are not to be skipped, grids of several shapes, or
            nothing left of a split. All faults are found before it is raised.
    """
    for name, value in (("--answers", answers), ("--min-count", min_count)):
        if value < 1:
            raise ArgumentError(name, value, "at least 1")
    wrong = Malformed(malformed)
    counts = {split: Counter({"read": 0, "kept": 0}) for split in sources}
    images = _Images(wrong, channels_first)
    vocabulary: list[str] = []
    out.mkdir()
    for split, source in sources.items():
        tally = counts[split]
        found = [
            question
            for question in with_progress(
                read_vqa(source.questions, source.annotations, wrong, tally), split
            )
            if images.fits(source.features, question, tally)
        ]
        if split == "train":
            vocabulary = _most_common(found, answers)
            words = Counter(word for question in found for word in question.text.split())
            kept = {word: n for word, n in words.most_common() if n >= min_count}
            order = sorted(kept, key=lambda word: (-kept[word], word))
            write_dictionary(out / DICTIONARY, {word: kept[word] for word in order})
        with open(out / f"{split}.jsonl", "w", encoding="utf-8", newline="\n") as file:
            for question in _kept(found, split, set(vocabulary), tally):
                file.write(question.to_line() + "\n")
    wrong.check()
    for split, tally in counts.items():
        if not tally["kept"]:
            left = f"nothing is left of {split}: {told(tally, 'questions')}"
            raise UsageError(f"{sources[split].questions}: {left}")
    report(out, counts, "questions")
    print(f"      {len(vocabulary):,} answers; {images}", flush=True)
    (out / ANSWERS).write_text("".join(f"{answer}\n" for answer in vocabulary), encoding="utf-8")
    assert images.shape is not None  # a question is left
    places = {split: str(source.features.resolve()) for split, source in sources.items()}
    Preparation(images.shape, places, channels_first).write(out)
    return counts


def _most_common(questions: Sequence[Question], size: int) -> list[str]:
    golds = Counter(question.gold for question in questions if question.gold is not None)
    return sorted(golds, key=lambda gold: (-golds[gold], gold))[:size]


def _kept(
    questions: Sequence[Question], split: str, vocabulary: set[str], tally: Counter
) -> Iterator[Question]:
    for question in questions:
        if question.gold is None:
            if split == "train":
                tally["dropped: no answer is known"] += 1
                continue
            tally["without a known answer (kept)"] += 1
        elif question.gold not in vocabulary:
            if split == "train":
                tally["dropped: the answer is none of the most common"] += 1
                continue
            tally["unanswerable: the answer is none of the most common (kept)"] += 1
        tally["kept"] += 1
        yield question


class _Images:
    """Looks at each image once.

    Attributes:
        shape: that of the first grid; all others must have it.
        pixels: whether the first grid is of bytes, which the model scales; all others must be.
    """

    def __init__(self, wrong: Malformed, channels_first: bool):
        self.wrong = wrong
        self.channels_first = channels_first
        self.shape: Shape | None = None
        self.pixels: bool | None = None
        self.opened: dict[Path, Features] = {}
        self.known: dict[tuple[Path, int], bool] = {}

    def __str__(self) -> str:
        shape = " x ".join(map(str, self.shape or ()))
        return f"{sum(self.known.values()):,} images of {shape}"

    def fits(self, path: Path, question: Question, tally: Counter) -> bool:
        """Whether the image of a question has a grid of the right shape; tells why not, once."""
        key = path, question.image
        if key not in self.known:
            if path not in self.opened:
                self.opened[path] = Features.open(path, self.channels_first)
            self.known[key] = self._look(self.opened[path], question.image, tally)
        if not self.known[key]:
            tally["dropped: no features of the image"] += 1
        return self.known[key]

    def _look(self, features: Features, number: int, tally: Counter) -> bool:
        try:
            shape, dtype = features.describe(number)
            if self.shape is not None and shape != self.shape:
                raise FeatureError(f"shape {shape}, and {self.shape} of others")
            pixels = dtype == np.uint8
            if self.pixels is not None and pixels != self.pixels:
                kinds = "floating point numbers", "bytes"
                found, before = (kinds[kind] for kind in (pixels, self.pixels))
                raise FeatureError(f"{found}, and {before} of others")
        except FeatureError as error:
            self.wrong.add("features", features.place(number), str(error), tally)
            return False
        self.shape, self.pixels = shape, pixels
        return True
