"""Reading ``configs/**.yaml`` with what it names (base, profile) and the user's changes."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from omegaconf import DictConfig, OmegaConf
from omegaconf.errors import OmegaConfBaseException

import fairseq_regattn
from fairseq_regattn.errors import ArgumentError, UsageError, setting_error
from fairseq_regattn.recipes.options import RANGES
from fairseq_regattn.recipes.recipe import Classification, Questions, Recipe

CONFIGS = Path(fairseq_regattn.__file__).parent.parent / "configs"
PROFILES = CONFIGS / "train"

TOKENIZERS: dict[str, tuple[str, ...]] = {
    "sentences": ("moses", "none"),
    "texts": ("wordpunct", "none"),
    "pairs": ("wordpunct", "none"),
    "questions": ("none",),
}
"""By what is read."""

SET_BY_RUN = ("common.user_dir", "task.data", "task.source_lang", "task.target_lang")

RESERVED = {
    "train.model.attention": "--attention",
    **{f"train.model.attention_{name}": f"--attention-{name}" for name in RANGES},
    "train.common.seed": "--seed",
    "train.common.user_dir": "the recipe's own plugin",
    "train.common.log_format": "the run, which reads times and perplexity from its log",
    "train.checkpoint.save_dir": "--output",
    "train.checkpoint.no_save": "the run, which goes on from checkpoints",
    "train.dataset.disable_validation": "the run, which translates with the best checkpoint",
    "train.task": "the direction",
    "train.model.embed_path": "classification.vectors or questions.vectors",
}
"""What a recipe cannot set, and what does."""

OURS = ("attention", "base", "name")
"""Keys of a recipe that are not for the command line."""


def load_recipe(path: Path, changes: Sequence[str] = ()) -> Recipe:
    """Read a recipe.

    Args:
        path: a YAML file.
        changes: ``key=value``; a key that does not begin with a section of recipes is one of
            ``fairseq-hydra-train`` (``optimization.max_epoch=3``).

    Raises:
        UsageError: unreadable, unknown keys, values of a wrong type or range; names the file, or
            the change.
    """
    recipe = _merge(path, OmegaConf.structured(Recipe), _with_base(path))
    for change in changes:
        recipe = _merge(change, recipe, _parsed(change))
    for key, instead in RESERVED.items():
        if OmegaConf.select(recipe, key) is not None:
            raise UsageError(f"{path}: {key.removeprefix('train.')} is set by {instead}")
    profile = _profile(recipe.profile, path)
    train = _merge(f"{path}: train", profile, recipe.train)
    try:
        usual = OmegaConf.to_container(profile, resolve=True)
        recipe.train = alike(OmegaConf.to_container(train, resolve=True), usual)
        recipe.generate = alike(OmegaConf.to_container(recipe.generate, resolve=True))
        made: Recipe = OmegaConf.to_object(recipe)
        json.dumps([made.train, made.generate], sort_keys=True)
    except OmegaConfBaseException as error:
        raise UsageError(f"{path}: {setting_error(error)}") from error
    except TypeError as error:
        raise UsageError(
            f"{path}: train and generate hold names and plain values: {error}"
        ) from None
    made.name = path.stem
    if made.classification is not None:
        made.data.source, made.data.target = "input0", "label"  # endings of the prepared text
    elif made.questions is not None:
        made.data.source, made.data.target = "question", "answer"
    _check(made, path)
    return made


def _merge(place: object, *configs: Any) -> DictConfig:
    try:
        return OmegaConf.merge(*configs)
    except OmegaConfBaseException as error:
        raise UsageError(f"{place}: {setting_error(error)}") from error


def _parsed(change: str) -> DictConfig:
    """A change of the command line, where it belongs."""
    key, equals, _ = change.partition("=")
    if not equals or not key:
        raise UsageError(f"settings are given as section.key=value, got {change!r}")
    section = key.partition(".")[0]
    if section in OURS:
        raise UsageError(f"{section} cannot be changed on the command line, got {change!r}")
    whole = change if section in Recipe.__dataclass_fields__ else f"train.{change}"
    try:
        return OmegaConf.from_dotlist([whole])
    except Exception as error:  # the parser of YAML has exceptions of its own
        raise UsageError(f"{change!r}: {' '.join(str(error).split())}") from error


def _with_base(path: Path, above: tuple[Path, ...] = ()) -> DictConfig:
    """The file over its base."""
    if path.resolve() in above:
        raise UsageError(f"{path}: base leads back to the file itself")
    own = _read(path)
    base = own.get("base")
    if base is None:
        return own
    if not isinstance(base, str):
        raise UsageError(f"{path}: base must be the name of a file, got {base!r}")
    under = _with_base(path.parent / base, (*above, path.resolve()))
    return _merge(path, under, own)


def alike(value: Any, usual: Any = None) -> Any:
    """Settings with each number in one form, as 1 and 1.0 must not be two settings.

    Args:
        value: with dictionaries and lists in it.
        usual: the same of the profile: where it has ``1.0`` a whole number is a float, and
            elsewhere an integer. Of a list the first element speaks for all.
    """
    if isinstance(value, dict):
        known = usual if isinstance(usual, dict) else {}
        return {key: alike(inner, known.get(key)) for key, inner in value.items()}
    if isinstance(value, list):
        first = usual[0] if isinstance(usual, list) and usual else None
        return [alike(inner, first) for inner in value]
    if isinstance(value, bool) or not isinstance(value, (int, float)) or value % 1 != 0:
        return value
    return float(value) if isinstance(usual, float) else int(value)


def _profile(name: str, recipe: Path) -> DictConfig:
    """Training settings, a root of their own as they refer to one another."""
    path = PROFILES / f"{name}.yaml"
    if not path.exists():
        names = sorted(found.stem for found in PROFILES.glob("*.yaml"))
        raise ArgumentError(f"{recipe}: profile", name, ", ".join(names))
    settings = _read(path)
    for key in SET_BY_RUN:
        section, _, name = key.partition(".")
        if name in list(settings.get(section, {})):  # also one that is "???"
            OmegaConf.update(settings, key, None)
    return settings


def _read(path: Path) -> DictConfig:
    try:
        read = OmegaConf.load(path)
    except FileNotFoundError:
        raise UsageError(f"{path}: no such recipe") from None
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(f"{path} cannot be read: {error}") from error
    except Exception as error:  # the parser of YAML has exceptions of its own, with the line
        raise UsageError(f"{path} is not YAML: {' '.join(str(error).split())}") from error
    if not isinstance(read, DictConfig):
        raise UsageError(f"{path} must hold keys and values, not a list or one value")
    return read


def _check(recipe: Recipe, path: Path) -> None:
    """What types do not tell."""
    from fairseq_regattn.recipes.fairseq_settings import check_generate, check_train

    steps, data = recipe.preprocess, recipe.data
    wrong: list[tuple[str, object, str]] = []
    known = TOKENIZERS[recipe.reads]
    if steps.tokenizer not in known:
        wrong.append(("preprocess.tokenizer", steps.tokenizer, " or ".join(known)))
    if steps.subwords < 0:
        wrong.append(("preprocess.subwords", steps.subwords, "a number of subwords, 0 for words"))
    if steps.vocabulary < 1:
        wrong.append(("preprocess.vocabulary", steps.vocabulary, "at least 1"))
    if steps.max_words is not None and steps.max_words < 1:
        wrong.append(("preprocess.max_words", steps.max_words, "at least 1, or null"))
    if set(data.files) != {"train", "valid", "test"}:
        wrong.append(("data.files", dict(data.files), "given for train, valid and test"))
    elif recipe.classification is not None:
        wrong += _wrong_classes(recipe, recipe.classification)
    elif recipe.questions is not None:
        wrong += _wrong_questions(recipe, recipe.questions)
    elif None in data.files.values():
        wrong.append(("data.files", dict(data.files), "names"))
    if (data.source is None) != (data.target is None):
        wrong.append(("data.source and data.target", (data.source, data.target), "given both"))
    elif data.source and data.source == data.target:
        wrong.append(("data.target", data.target, "another language than data.source"))
    if data.gold and steps.tokenizer != "none":
        why = "none where there is data.gold, which counts the words of the text as it is"
        wrong.append(("preprocess.tokenizer", steps.tokenizer, why))
    if recipe.summary is None and (data.references or data.original):
        named = ("data.references and data.original", (data.references, data.original))
        wrong.append((*named, "given for summaries only (summary)"))
    own = [ending for ending in (data.source, data.target, "names", "links") if ending]
    if {*own}.intersection(data.beside) or len({*data.beside}) < len(data.beside):
        named = ("data.references and data.original", (data.references, data.original))
        wrong.append((*named, f"other endings than {', '.join(own)}, each once"))
    if recipe.summary is not None and steps.tokenizer != "none":
        wrong.append(("preprocess.tokenizer", steps.tokenizer, "none for summaries"))
    if recipe.summary is not None and recipe.summary.bytes is not None and recipe.summary.bytes < 1:
        wrong.append(("summary.bytes", recipe.summary.bytes, "at least 1, or null"))
    if not recipe.attention:
        wrong.append(("attention", recipe.attention, "at least one mapping"))
    if wrong:
        told = (f"{key} must be {allowed}, got {value!r}" for key, value, allowed in wrong)
        raise UsageError(f"{path}: {'; '.join(told)}")
    check_train(recipe.train, path, recipe.reads)
    check_generate(recipe.generate, path)


def _wrong_classes(recipe: Recipe, classes: Classification) -> list[tuple[str, object, str]]:
    """What is wrong with a recipe that classifies: keys, values and what they must be."""
    wrong: list[tuple[str, object, str]] = []
    files = recipe.data.files
    if classes.inputs not in (1, 2):
        wrong.append(("classification.inputs", classes.inputs, "1 or 2"))
    if classes.malformed not in ("error", "skip"):
        wrong.append(("classification.malformed", classes.malformed, "error or skip"))
    if classes.min_count < 1:
        wrong.append(("classification.min_count", classes.min_count, "at least 1"))
    if files["train"] is None:
        wrong.append(("data.files.train", None, "given"))
    missing = [split for split in ("valid", "test") if files[split] is None]
    if set(classes.held_out) != set(missing):
        named = ", ".join(missing) or "none"
        allowed = f"given for the splits that are null in data.files ({named})"
        wrong.append(("classification.held_out", dict(classes.held_out), allowed))
    if not all(0 < share < 1 for share in classes.held_out.values()) or (
        sum(classes.held_out.values()) >= 1
    ):
        allowed = "shares above 0 whose sum is below 1"
        wrong.append(("classification.held_out", dict(classes.held_out), allowed))
    return wrong + _for_translations(recipe, "classification")


def _wrong_questions(recipe: Recipe, asked: Questions) -> list[tuple[str, object, str]]:
    """The same of one that answers questions about images."""
    wrong: list[tuple[str, object, str]] = []
    for split, names in recipe.data.files.items():
        if split != "test" and names is None:
            wrong.append((f"data.files.{split}", None, "given"))
        elif names is not None and len(names.split()) != 3:
            allowed = "the names of questions, annotations and features with spaces between them"
            wrong.append((f"data.files.{split}", names, allowed))
    if asked.malformed not in ("error", "skip"):
        wrong.append(("questions.malformed", asked.malformed, "error or skip"))
    for name in ("answers", "min_count"):
        if getattr(asked, name) < 1:
            wrong.append((f"questions.{name}", getattr(asked, name), "at least 1"))
    return wrong + _for_translations(recipe, "questions")


def _for_translations(recipe: Recipe, section: str) -> list[tuple[str, object, str]]:
    """What has no meaning beside a section."""
    wrong: list[tuple[str, object, str]] = []
    steps = recipe.preprocess
    for key, value, usual in (
        ("preprocess.subwords", steps.subwords, 0),
        ("preprocess.max_words", steps.max_words, None),
        ("data.gold", recipe.data.gold, None),
        ("data.mtdata", dict(recipe.data.mtdata), {}),
        ("summary", recipe.summary, None),
        ("decodes", recipe.decodes, None),
        ("generate", recipe.generate, {}),
    ):
        if value != usual:
            wrong.append((key, value, f"{usual!r} where there is {section}"))
    if recipe.classification is not None and recipe.questions is not None:
        wrong.append(("questions", "a section", "left out where there is classification"))
    return wrong
