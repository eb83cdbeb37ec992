"""What is kept of a finished run: one small JSON file, and its outputs beside it.

``FOLDER/<recipe>/<direction>/<name>-seed<seed>-<settings>.json`` and ``.txt.gz``. The settings are
part of the name so that a run never replaces one that was made with others.
"""

from __future__ import annotations

import gzip
import hashlib
import io
import json
from collections.abc import Iterable, Sequence
from dataclasses import MISSING, asdict, dataclass, fields
from pathlib import Path
from typing import Any

from fairseq_regattn.analysis.statistics import AlignmentStatistics
from fairseq_regattn.errors import ArgumentError, UsageError
from fairseq_regattn.recipes.stages import rewrite
from fairseq_regattn.scoring.answers import AnswerScores
from fairseq_regattn.scoring.classification import ClassScores
from fairseq_regattn.scoring.summaries import SummaryScores

Group = tuple[str, str, str, str]
"""Recipe, direction, settings and test set: runs of one group can be compared."""

LINKS = ("aer", "precision", "recall", "f1")


@dataclass(frozen=True)
class Record:
    """Everything about one finished run.

    Attributes:
        recipe: name of its recipe.
        direction: languages, e.g. ``ro-en``.
        settings: short key of everything but the mapping and the seed.
        attention: for people, e.g. ``fusedmax, lambda 0.1``.
        name: the same for file names, e.g. ``fusedmax-lambda0.1``.
        mapping: e.g. ``fusedmax``.
        seed: of the training.
        bleu, chrf: of the detokenised test split, 0 to 100; None for other outputs.
        tokenised_bleu: what Moses' multi-bleu gives, None where nothing is tokenised.
        signatures: sacreBLEU's, by the name of the score.
        valid_ppl: the lowest perplexity on the validation split while it trained, None where none
            was taken. The best checkpoint has another where it was chosen by something else.
        updates: of training.
        training_seconds: wall time of training.
        processor_seconds: processor time of training, start and validation included, of which
            other work on the machine changes less; None where a part of the training was killed.
        tokens_per_second: target tokens trained on a second.
        alignments: statistics of the attention weights on the test split.
        links: ``aer``, ``precision``, ``recall`` and ``f1`` against alignments made by hand, from
            0 to 1, None where there are none.
        sentences: of the test split.
        test_key: :func:`text_key` of the reference text; scores of other test sets are apart.
        hypotheses_key: :func:`text_key` of the outputs: translations, summaries or labels.
        date: when it was scored, ``2026-11-30``.
        machine: :func:`fairseq_regattn.analysis.machine.machine`; times of others are apart.
        versions: of the libraries, by name.
        command: what trained it.
        summary: ROUGE, of summaries.
        classes: accuracy and confusion, of labels.
        answers: accuracy, of answers to questions about images.
    """

    recipe: str
    direction: str
    settings: str
    attention: str
    name: str
    mapping: str
    seed: int
    bleu: float | None
    chrf: float | None
    tokenised_bleu: float | None
    signatures: dict[str, str]
    valid_ppl: float | None
    updates: int
    training_seconds: float
    processor_seconds: float | None
    tokens_per_second: float
    alignments: AlignmentStatistics
    links: dict[str, float] | None
    sentences: int
    test_key: str
    hypotheses_key: str
    date: str
    machine: str
    versions: dict[str, str]
    command: str
    summary: SummaryScores | None = None
    classes: ClassScores | None = None
    answers: AnswerScores | None = None

    @property
    def path(self) -> Path:
        """In the folder of records."""
        file = f"{self.name}-seed{self.seed}-{self.settings}.json"
        return Path(self.recipe, self.direction, file)

    @property
    def group(self) -> Group:
        """Runs of one group differ in the mapping and the seed, and in nothing else."""
        return self.recipe, self.direction, self.settings, self.test_key

    @property
    def kind(self) -> str:
        """``translations``, ``summaries``, ``classifications`` or ``answers``."""
        if self.answers is not None:
            return "answers"
        if self.classes is not None:
            return "classifications"
        return "translations" if self.summary is None else "summaries"

    @property
    def accuracy(self) -> list[float] | None:
        """Percent with its confidence interval, of labels and of answers."""
        scored = self.classes or self.answers
        return None if scored is None else scored.accuracy

    def rouge(self, name: str) -> list[float] | None:
        """Value and confidence interval of a score of summaries, where there is one."""
        return None if self.summary is None else self.summary.scores.get(name)

    def write(self, path: Path) -> None:
        """As JSON."""
        rewrite(path, (json.dumps(asdict(self), indent=2, ensure_ascii=False) + "\n").encode())

    @classmethod
    def read(cls, path: Path) -> Record:
        """What :meth:`write` wrote.

        Raises:
            UsageError: it is no JSON, or a key is missing, unknown or of the wrong type.
        """
        content = _object_of(cls, read_json(path), str(path))
        content["alignments"] = AlignmentStatistics(
            **_object_of(AlignmentStatistics, content["alignments"], f"{path}: alignments")
        )
        if content.get("summary") is not None:
            summary = _object_of(SummaryScores, content["summary"], f"{path}: summary")
            for name, score in summary["scores"].items():
                if len(score) != 3 or not all(_is_of(number, (int, float)) for number in score):
                    wanted = "a number and its interval, three numbers"
                    raise ArgumentError(f"{path}: summary: {name}", score, wanted)
            content["summary"] = SummaryScores(**summary)
        for key, kind in (("classes", ClassScores), ("answers", AnswerScores)):
            if content.get(key) is not None:
                place = f"{path}: {key}"
                scores = _object_of(kind, content[key], place)
                try:
                    content[key] = kind(**scores)
                except ArgumentError as error:
                    raise UsageError(f"{place}: {error}") from None
        if content["links"] is not None and set(content["links"]) != set(LINKS):
            found = ", ".join(content["links"])
            raise UsageError(f"{path}: links must have the keys {', '.join(LINKS)}, got {found}")
        return cls(**content)


KINDS: dict[str, tuple[type, ...]] = {
    "str": (str,),
    "int": (int,),
    "float": (int, float),
    "float | None": (int, float, type(None)),
    "dict[str, str]": (dict,),
    "dict[str, float] | None": (dict, type(None)),
    "dict[str, list[float]]": (dict,),
    "dict[str, list[int]]": (dict,),
    "int | None": (int, type(None)),
    "bool": (bool,),
    "AlignmentStatistics": (dict,),
    "SummaryScores | None": (dict, type(None)),
    "ClassScores | None": (dict, type(None)),
    "AnswerScores | None": (dict, type(None)),
    "list[str]": (list,),
    "list[float]": (list,),
    "list[list[int]]": (list,),
}
"""What JSON has for the types of the fields, as they are spelled above."""

VALUES: dict[str, tuple[type, ...]] = {
    "dict[str, str]": (str,),
    "dict[str, float] | None": (int, float),
    "dict[str, list[float]]": (list,),
    "dict[str, list[int]]": (list,),
    "list[str]": (str,),
    "list[float]": (int, float),
    "list[list[int]]": (list,),
}
"""The same for what is in dictionaries and lists."""

COUNTED = ("dict[str, list[int]]", "list[list[int]]")
"""Of these what is in the lists is counts."""


def _object_of(kind: Any, content: Any, place: str) -> dict[str, Any]:
    """The values of a dataclass, checked."""
    if not isinstance(content, dict):
        raise UsageError(f"{place}: a JSON object was expected, got {content!r}")
    expected = {field.name: str(field.type) for field in fields(kind)}
    needed = [field.name for field in fields(kind) if field.default is MISSING]
    for problem, keys in (
        ("lacks", [key for key in needed if key not in content]),
        ("has the unknown", [key for key in content if key not in expected]),
    ):
        if keys:
            raise UsageError(f"{place} {problem} key {', '.join(keys)}: from another version?")
    for key, value in content.items():
        right = _is_of(value, KINDS[expected[key]])
        if right and isinstance(value, (dict, list)) and expected[key] in VALUES:
            inside = list(value.values()) if isinstance(value, dict) else value
            right = all(_is_of(inner, VALUES[expected[key]]) for inner in inside)
            if right and expected[key] in COUNTED:
                right = all(_is_of(number, (int,)) for row in inside for number in row)
        if not right:
            raise UsageError(f"{place}: {key} must be of type {expected[key]}, got {value!r}")
    return content


def _is_of(value: Any, kinds: tuple[type, ...]) -> bool:
    """Python takes True for an integer, JSON does not."""
    return isinstance(value, kinds) and (bool in kinds or not isinstance(value, bool))


def read_json(path: Path) -> Any:
    """Raises UsageError, with the file and the line, where it is none."""
    try:
        return json.loads(path.read_bytes())
    except ValueError as error:  # also what is no UTF-8
        raise UsageError(f"{path} is no JSON: {error}") from None


def text_key(lines: Iterable[str]) -> str:
    """Tells one text from another: the start of its SHA-256."""
    return hashlib.sha256(_bytes(lines)).hexdigest()[:16]


def test_key(references: Sequence[Sequence[str]]) -> str:
    """Tells one test set from another, by all of its references."""
    return text_key(line for column in zip(*references) for line in column)


def _bytes(lines: Iterable[str]) -> bytes:
    return "".join(f"{line}\n" for line in lines).encode()


def collect(folder: Path, record: Record, hypotheses: Sequence[str]) -> Path:
    """Add a run to a folder of records; the same run is replaced.

    Args:
        folder: of all records.
        record: of the run.
        hypotheses: its detokenised translations, summaries or labels, in the order of the
            test split.

    Returns:
        The file of the record.

    Raises:
        UsageError: these are not the hypotheses of the record.
    """
    path = folder / record.path
    if text_key(hypotheses) != record.hypotheses_key:
        raise UsageError(f"{path} is not the record of these {len(hypotheses)} hypotheses")
    packed = io.BytesIO()
    with gzip.GzipFile("", "wb", 9, packed, mtime=0) as file:  # the same bytes every time
        file.write(_bytes(hypotheses))
    rewrite(texts_of(path), packed.getvalue())
    record.write(path)
    return path


def texts_of(path: Path) -> Path:
    """The file of outputs that belongs to a record."""
    return path.with_name(f"{path.stem}.txt.gz")


def read_hypotheses(folder: Path, record: Record) -> list[str]:
    """The translations, summaries or labels of a run.

    Raises:
        UsageError: they are missing, cannot be read, or are those of another run.
    """
    path = texts_of(folder / record.path)
    try:
        lines = gzip.decompress(path.read_bytes()).decode().split("\n")[:-1]
    except (OSError, EOFError, ValueError) as error:
        raise UsageError(f"{path} cannot be read: {error}") from None
    if text_key(lines) != record.hypotheses_key:
        raise UsageError(f"{path} does not hold the outputs of {folder / record.path}")
    return lines


def read_records(folder: Path) -> list[Record]:
    """All records of a folder, by recipe, direction and name.

    Raises:
        UsageError: there are none, or one cannot be read or is not where its content says.
    """
    records = []
    for path in sorted(folder.rglob("*-seed*.json")):
        record = Record.read(path)
        if folder / record.path != path:
            raise UsageError(f"{path} holds the record of {folder / record.path}")
        records.append(record)
    if not records:
        raise UsageError(f"no records (RECIPE/DIRECTION/NAME-seedN-SETTINGS.json) in {folder}")
    return records


def baselines(records: Iterable[Record]) -> dict[tuple[Group, int], Record]:
    """The softmax that others are compared with, by group and seed.

    Where a group has several (of other gammas), it is the one with the shortest name for all.
    """
    softmax = [record for record in records if record.mapping == "softmax"]
    names: dict[Group, str] = {}
    for record in sorted(softmax, key=lambda record: (len(record.name), record.name)):
        names.setdefault(record.group, record.name)
    return {(r.group, r.seed): r for r in softmax if r.name == names[r.group]}
