"""Recipes: ``configs/**.yaml`` with what it names (base, profile) and the user's changes."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any, Dict, List, Optional

from fairseq.dataclass.configs import FairseqConfig
from omegaconf import DictConfig, OmegaConf
from omegaconf.errors import OmegaConfBaseException

import fairseq_regattn
from fairseq_regattn.errors import ArgumentError, UsageError
from fairseq_regattn.recipes.options import RANGES
from fairseq_regattn.recipes.stages import settings_key

CONFIGS = Path(fairseq_regattn.__file__).parent.parent / "configs"
PROFILES = CONFIGS / "train"

TOKENIZERS = ("moses", "none")


@dataclass
class Data:
    """Where the text comes from; explained in ``configs/translation/base.yaml``."""

    source: Optional[str] = None
    target: Optional[str] = None
    directions: List[str] = field(default_factory=list)
    mtdata: Dict[str, List[str]] = field(default_factory=dict)
    files: Dict[str, str] = field(
        default_factory=lambda: {"train": "train", "valid": "valid", "test": "test"}
    )
    gold: Optional[str] = None


@dataclass
class Preprocess:
    """From text to fairseq's binary format."""

    tokenizer: str = "none"
    subwords: int = 0
    joined: bool = False
    vocabulary: int = 50000
    max_words: Optional[int] = None


@dataclass
class Recipe:
    """One translation experiment but for the attention mapping and the seed.

    Attributes:
        title: for people.
        profile: file of ``configs/train`` that `train` was read from.
        train: what ``fairseq-hydra-train`` reads.
        generate: flags of ``fairseq-generate``, with underscores.
        attention: mappings that are compared unless ``--attention`` says otherwise.
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
    name: str = ""

    @property
    def direction(self) -> str:
        return f"{self.data.source}-{self.data.target}"

    def directions(self) -> list[Recipe]:
        """One recipe for each direction."""
        if self.data.source and self.data.target:
            return [self]
        return [self.towards(direction) for direction in self.data.directions]

    def towards(self, direction: str) -> Recipe:
        """The same for one direction, such as ``ro-en``.

        Raises:
            ArgumentError: the recipe is not for it.
        """
        known = self.data.directions
        if self.data.source:
            known = [self.direction]
        source, dash, target = direction.partition("-")
        if not (source and dash and target) or (known and direction not in known):
            raise ArgumentError("--direction", direction, ", ".join(known) or "such as ro-en")
        return replace(self, data=replace(self.data, source=source, target=target, directions=[]))

    def key(self, *contents: bytes) -> str:
        """Short name of all that results depend on, but the mapping and the seed.

        Args:
            contents: the rest of it: the corpus.
        """
        settings = asdict(self)
        for name in ("title", "base", "profile", "attention", "name"):
            del settings[name]
        train = settings["train"]
        train["model"] = {k: v for k, v in train["model"].items() if k not in COMPARED}
        train["common"] = {k: v for k, v in train["common"].items() if k in LASTING}
        text = json.dumps(settings, sort_keys=True)
        return settings_key(fairseq_regattn.__version__.encode(), text.encode(), *contents)


SET_BY_RUN = ("common.user_dir", "task.data", "task.source_lang", "task.target_lang")

COMPARED = ("attention", *(f"attention_{name}" for name in RANGES))
"""Keys of the model that are the run's own."""

LASTING = ("fp16", "bf16", "amp")
"""Settings of fairseq's ``common`` that results depend on; the others are about logs, devices and
the seed."""


def load_recipe(path: Path, changes: Sequence[str] = ()) -> Recipe:
    """Read a recipe.

    Args:
        path: a YAML file.
        changes: ``key=value``; a key that does not begin with a section of recipes is one of
            ``fairseq-hydra-train`` (``optimization.max_epoch=3``).

    Raises:
        UsageError: unreadable, unknown keys, values of a wrong type or range; names the file.
    """
    try:
        own = _merged(path)
        given = OmegaConf.from_dotlist([_in_recipe(change) for change in changes])
        recipe = OmegaConf.merge(OmegaConf.structured(Recipe), own, given)
        train = OmegaConf.merge(_profile(recipe.profile), recipe.train)
        recipe.train = OmegaConf.to_container(train, resolve=True)
        made: Recipe = OmegaConf.to_object(recipe)
    except OmegaConfBaseException as error:
        raise UsageError(f"{path}: {str(error).splitlines()[0]}") from error
    made.name = path.stem
    _check(made, path)
    return made


def _profile(name: str) -> DictConfig:
    """Training settings, a root of their own as they refer to one another."""
    path = PROFILES / f"{name}.yaml"
    if not path.exists():
        raise ArgumentError("profile", name, ", ".join(sorted(p.stem for p in PROFILES.glob("*"))))
    settings = _read(path)
    for key in SET_BY_RUN:
        OmegaConf.update(settings, key, None)
    return settings


def _merged(path: Path) -> DictConfig:
    """The file over its base."""
    own = _read(path)
    if own.get("base") is None:
        return own
    return OmegaConf.merge(_merged(path.parent / own.base), own)


def _read(path: Path) -> DictConfig:
    try:
        read = OmegaConf.load(path)
    except FileNotFoundError:
        raise UsageError(f"{path}: no such recipe") from None
    except (OSError, ValueError) as error:
        raise UsageError(f"{path} cannot be read: {error}") from error
    except Exception as error:  # the parser of YAML has exceptions of its own, with the line
        raise UsageError(f"{path} is not YAML: {' '.join(str(error).split())}") from error
    if not isinstance(read, DictConfig):
        raise UsageError(f"{path} must hold keys and values, not a list or one value")
    return read


def _in_recipe(change: str) -> str:
    """Where a change of the command line belongs."""
    key, equals, _ = change.partition("=")
    if not equals or not key:
        raise UsageError(f"settings are given as section.key=value, got {change!r}")
    section = key.partition(".")[0]
    whole = change if section in Recipe.__dataclass_fields__ else f"train.{change}"
    for start in RESERVED:
        if whole.startswith(start):
            raise UsageError(f"{key} is set by {RESERVED[start]}")
    return whole


RESERVED = {
    "train.model.attention=": "--attention",
    "train.model.attention_gamma": "--attention-gamma",
    "train.model.attention_lambda": "--attention-lambda",
    "train.model.attention_p": "--attention-p",
    "train.model.attention_alpha": "--attention-alpha",
    "train.common.seed": "--seed",
    "train.common.user_dir": "the recipe itself",
    "train.checkpoint.save_dir": "--output",
    "train.task": "the recipe itself",
    "attention": "--attention",
    "name": "the name of the file",
}


def _check(recipe: Recipe, path: Path) -> None:
    def refuse(key: str, value: Any, allowed: str) -> None:
        raise UsageError(f"{path}: {key} must be {allowed}, got {value!r}")

    steps = recipe.preprocess
    if steps.tokenizer not in TOKENIZERS:
        refuse("preprocess.tokenizer", steps.tokenizer, " or ".join(TOKENIZERS))
    if steps.subwords < 0:
        refuse("preprocess.subwords", steps.subwords, "a number of subwords, or 0 for words")
    if steps.vocabulary < 1:
        refuse("preprocess.vocabulary", steps.vocabulary, "at least 1")
    if steps.max_words is not None and steps.max_words < 1:
        refuse("preprocess.max_words", steps.max_words, "at least 1, or null")
    if set(recipe.data.files) != {"train", "valid", "test"}:
        refuse("data.files", dict(recipe.data.files), "given for train, valid and test")
    if recipe.data.source and recipe.data.source == recipe.data.target:
        refuse("data.target", recipe.data.target, "another language than data.source")
    # What fairseq does not know would only be found out by the training.
    known = OmegaConf.structured(FairseqConfig)
    try:
        OmegaConf.merge(known, recipe.train)
    except OmegaConfBaseException as error:
        raise UsageError(f"{path}: train: {str(error).splitlines()[0]}") from error
    for section in ("common", "model", "task"):
        if not isinstance(recipe.train.get(section), dict):
            refuse(f"train.{section}", recipe.train.get(section), "a section")
