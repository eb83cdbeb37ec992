"""A recipe: one experiment but for the mapping and the seed."""

from __future__ import annotations

import json
import re
from dataclasses import asdict, dataclass, field, replace
from typing import Any, Dict, List, Optional

import fairseq_regattn
from fairseq_regattn.errors import ArgumentError, UsageError
from fairseq_regattn.recipes.options import RANGES
from fairseq_regattn.recipes.stages import settings_key

DIRECTION = re.compile(r"(\w+)-(\w+)")


@dataclass
class Data:
    """Where the text comes from; explained in ``configs/translation/base.yaml``."""

    source: Optional[str] = None
    target: Optional[str] = None
    directions: List[str] = field(default_factory=list)
    mtdata: Dict[str, List[str]] = field(default_factory=dict)
    files: Dict[str, Optional[str]] = field(
        default_factory=lambda: {"train": "train", "valid": "valid", "test": "test"}
    )
    gold: Optional[str] = None
    references: List[str] = field(default_factory=list)
    original: Optional[str] = None

    @property
    def names(self) -> Dict[str, str]:
        """`files` of those splits that have one."""
        return {split: name for split, name in self.files.items() if name is not None}

    @property
    def beside(self) -> List[str]:
        """Endings of more files of the test set."""
        return [*self.references, *([self.original] if self.original else [])]


@dataclass
class Preprocess:
    """From text to fairseq's binary format."""

    tokenizer: str = "none"
    subwords: int = 0
    joined: bool = False
    vocabulary: int = 50000
    max_words: Optional[int] = None


@dataclass
class Summary:
    """How summaries are finished and scored; explained in ``configs/summarization/base.yaml``."""

    stem: bool = True
    bytes: Optional[int] = None
    brackets: bool = False
    replace_unknown: bool = False


@dataclass
class Classification:
    """Texts with labels, or pairs of texts; explained in ``configs/classification/base.yaml``."""

    inputs: int = 1
    labels: List[str] = field(default_factory=list)
    held_out: Dict[str, float] = field(default_factory=dict)
    malformed: str = "error"
    lowercase: bool = False
    vectors: Optional[str] = None
    min_count: int = 1


@dataclass
class Questions:
    """Questions about images; explained in ``configs/vqa/base.yaml``."""

    answers: int = 3129
    malformed: str = "error"
    vectors: Optional[str] = None
    min_count: int = 1
    channels_first: bool = False


@dataclass
class Recipe:
    """One experiment but for the attention mapping and the seed.

    Attributes:
        title: for people.
        profile: file of ``configs/train`` that `train` was read from.
        train: what ``fairseq-hydra-train`` reads.
        generate: flags of ``fairseq-generate``, with underscores.
        attention: mappings that are compared unless ``--attention`` says otherwise.
        summary: scores are ROUGE instead of BLEU where this is given.
        classification: models classify texts instead of translating them.
        questions: models answer questions about images.
        decodes: file, beside this one, of a recipe whose models are used: only the test set and
            what is done with the output are this one's. Changes of the rest are for both.
        name: of the file, without ``.yaml``.
    """

    title: str = ""
    base: Optional[str] = None
    profile: str = "paper"
    data: Data = field(default_factory=Data)
    preprocess: Preprocess = field(default_factory=Preprocess)
    train: Dict[str, Any] = field(default_factory=dict)
    generate: Dict[str, Any] = field(default_factory=dict)
    attention: List[str] = field(default_factory=lambda: ["softmax", "fusedmax"])
    summary: Optional[Summary] = None
    classification: Optional[Classification] = None
    questions: Optional[Questions] = None
    decodes: Optional[str] = None
    name: str = ""

    @property
    def translates(self) -> bool:
        """From one language to another, or to a summary: the output is text."""
        return self.classification is None and self.questions is None

    @property
    def reads(self) -> str:
        """What a model of it reads: ``sentences``, ``texts``, ``pairs`` or ``questions``."""
        if self.questions is not None:
            return "questions"
        if self.classification is None:
            return "sentences"
        return "texts" if self.classification.inputs == 1 else "pairs"

    @property
    def vectors(self) -> Optional[str]:
        """File with pretrained vectors, where models have some."""
        section = self.classification or self.questions
        return None if section is None else section.vectors

    @property
    def scored(self) -> str:
        """The split that is: test, where there is one."""
        return "test" if self.questions is None or self.data.files["test"] else "valid"

    @property
    def direction(self) -> str:
        """Languages; the name once more where there are none."""
        if not self.translates:
            return self.name
        return f"{self.data.source}-{self.data.target}"

    def directions(self) -> list[Recipe]:
        """One recipe for each direction."""
        if self.data.source and self.data.target:
            return [self]
        return [self.towards(direction) for direction in self.data.directions]

    def towards(self, direction: str) -> Recipe:
        """The same for one direction, such as ``ro-en``.

        Raises:
            UsageError: the recipe is not for it.
        """
        if not self.translates:
            raise UsageError(f"{self.name} has no --direction, got {direction!r}")
        known = self.data.directions
        if self.data.source:
            known = [self.direction]
        languages = DIRECTION.fullmatch(direction)
        if languages is None or languages[1] == languages[2] or (known and direction not in known):
            raise ArgumentError("--direction", direction, ", ".join(known) or "such as ro-en")
        source, target = languages.groups()
        return replace(self, data=replace(self.data, source=source, target=target, directions=[]))

    def key(self, *contents: bytes) -> str:
        """Short name of all that results depend on, but the mapping and the seed.

        Args:
            contents: the rest of it: the corpus.
        """
        settings = asdict(self)
        for name in ("title", "base", "profile", "attention", "name", "decodes"):
            del settings[name]
        # Younger than the first records, whose keys stay as they are.
        later = [
            (settings, "summary"),
            (settings, "classification"),
            (settings, "questions"),
            *((settings["data"], n) for n in ("references", "original")),
        ]
        for section, name in later:
            if not section[name]:
                del section[name]
        train = settings["train"]
        for section, names in (("model", COMPARED), ("common", PASSING)):
            train[section] = {k: v for k, v in train[section].items() if k not in names}
        text = json.dumps(settings, sort_keys=True)
        return settings_key(fairseq_regattn.__version__.encode(), text.encode(), *contents)


COMPARED = ("attention", *(f"attention_{name}" for name in RANGES))
"""Keys of the model that are the run's own."""

PASSING = (
    *("seed", "user_dir", "cpu", "no_progress_bar", "log_format", "log_interval", "log_file"),
    *("aim_repo", "aim_run_hash", "tensorboard_logdir", "wandb_project", "azureml_logging"),
)
"""Settings of fairseq's ``common`` that are the run's own, or change no result."""
