"""Settings that only fairseq knows, looked at before the work begins and not at its end."""

from __future__ import annotations

import contextlib
import io
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from fairseq import options
from fairseq.dataclass.configs import FairseqConfig
from fairseq.models import ARCH_MODEL_NAME_REGISTRY, ARCH_MODEL_REGISTRY, MODEL_DATACLASS_REGISTRY
from fairseq.registry import REGISTRIES
from omegaconf import OmegaConf
from omegaconf.errors import OmegaConfBaseException

import fairseq_regattn  # noqa: F401  registers the models
from fairseq_regattn.errors import ArgumentError, UsageError, setting_error
from fairseq_regattn.recipes.commands import RUNS_OWN, flags

CHOSEN = ("criterion", "optimizer", "lr_scheduler")
"""Sections whose ``_name`` chooses one of several."""

READS = {
    "sentences": "translates or summarizes",
    "texts": "reads one text",
    "pairs": "reads pairs",
    "questions": "answers questions about images",
}
"""What models do, by what they read."""

AT_LEAST_1 = {
    "dataset": ("max_tokens", "batch_size", "max_tokens_valid", "batch_size_valid"),
    "lr_scheduler": ("total_num_update",),
}
"""Sizes, by section: with less fairseq dies, but not before it trains."""

LIMITS = ("max_update", "max_epoch")
"""Of ``optimization``; 0 is no limit to fairseq."""


def check_train(train: Mapping[str, Any], path: Path, reads: str) -> None:
    """Refuse what ``fairseq-hydra-train`` would not understand.

    Args:
        train: settings, by section.
        path: of the recipe, for messages.
        reads: what the model has to read, :attr:`Recipe.reads`.

    Raises:
        UsageError: unknown sections, keys and names, values of a wrong type, sizes and limits of
            training that cannot be, a model for other data.
    """
    _fits(FairseqConfig, train, f"{path}: train")
    for section in ("common", "task", "model", *CHOSEN):
        values = train.get(section)
        if not isinstance(values, dict) or not (section == "common" or "_name" in values):
            raise UsageError(f"{path}: train.{section} must be a section with its _name")
    name = train["model"]["_name"]
    models = sorted(known for known in ARCH_MODEL_NAME_REGISTRY if known.startswith("regattn"))
    if name not in models:
        raise UsageError(
            f"{path}: train.model._name must be one of {', '.join(models)}, got {name!r}"
        )
    _fits(MODEL_DATACLASS_REGISTRY[name], train["model"], f"{path}: train.model")
    own = getattr(ARCH_MODEL_REGISTRY[name], "reads", "sentences")
    if own != reads:
        raise UsageError(
            f"{path}: {name} {READS[own]}, and the recipe needs a model that {READS[reads]};"
            " see profile"
        )
    for section in CHOSEN:
        name, registry = train[section]["_name"], REGISTRIES[section]
        if name not in registry["registry"]:
            known = ", ".join(sorted(registry["registry"]))
            raise UsageError(f"{path}: train.{section}._name must be one of {known}, got {name!r}")
        if name in registry["dataclass_registry"]:  # some are older than dataclasses
            made = registry["dataclass_registry"][name]
            _fits(made, train[section], f"{path}: train.{section}")
    _check_sizes(train, path)


def _check_sizes(train: Mapping[str, Any], path: Path) -> None:
    """
    Raises:
        UsageError: a batch of nothing, or a training of no end or none.
    """
    for section, names in AT_LEAST_1.items():
        for name in names:
            value = train.get(section, {}).get(name)
            if value is not None and float(value) < 1:
                raise ArgumentError(f"{path}: {section}.{name}", value, "at least 1")
    if not any(train.get("dataset", {}).get(name) for name in ("max_tokens", "batch_size")):
        raise UsageError(f"{path}: dataset.max_tokens or dataset.batch_size must be given")
    limits = {name: train.get("optimization", {}).get(name, 0) for name in LIMITS}
    for name, value in limits.items():
        if int(value) < 0:
            allowed = "at least 1, or 0 for no limit"
            raise ArgumentError(f"{path}: optimization.{name}", value, allowed)
    if not any(map(int, limits.values())):
        raise UsageError(
            f"{path}: optimization.max_update or optimization.max_epoch must be at least 1: "
            "without either the training would not end"
        )


def _fits(dataclass: Any, values: Mapping[str, Any], place: str) -> None:
    try:
        OmegaConf.merge(OmegaConf.structured(dataclass), dict(values))
    except OmegaConfBaseException as error:
        raise UsageError(f"{place}: {setting_error(error)}") from error


def check_generate(generate: Mapping[str, Any], path: Path) -> None:
    """Refuse what ``fairseq-generate`` would not understand, and what would change its output.

    Raises:
        UsageError: unknown flags, values of a wrong type, flags that are the run's own.
    """
    for name in generate:
        if name in RUNS_OWN:
            raise UsageError(f"{path}: generate.{name} is not for recipes to set")
    parser = options.get_generation_parser()
    parser.allow_abbrev = False  # nor an abbreviation of what was refused above
    printed = io.StringIO()
    try:
        with contextlib.redirect_stderr(printed):
            _, unknown = parser.parse_known_args(["--path=x", *flags(generate)])
    except SystemExit:
        told = printed.getvalue().strip().splitlines()[-1].rpartition("error: ")[2]
        raise UsageError(f"{path}: generate: {told}") from None
    if unknown:
        raise UsageError(f"{path}: generate: {unknown[0]} is no flag of fairseq-generate")
