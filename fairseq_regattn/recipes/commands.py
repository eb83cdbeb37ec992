"""The fairseq commands of a recipe, exactly as a person would type them."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch

import fairseq_regattn
from fairseq_regattn.classification.corpus import VECTORS
from fairseq_regattn.recipes.jobs import command
from fairseq_regattn.recipes.recipe import Recipe

USER_DIR = str(Path(fairseq_regattn.__file__).parent)

NAMED = {
    "task": "--task",
    "model": "--arch",
    "criterion": "--criterion",
    "optimizer": "--optimizer",
    "lr_scheduler": "--lr-scheduler",
}
"""Sections whose ``_name`` is a flag of ``fairseq-train``."""

SAYS_TRUE = {"update_epoch_batch_itr"}
"""Settings that are true or false, or what another one is: their flags take a word."""

RUNS_OWN = {
    *("path", "user_dir", "task", "source_lang", "target_lang", "gen_subset", "results_path"),
    *("print_alignment", "score_reference", "nbest", "quiet", "post_process", "remove_bpe"),
    *("bpe", "sentencepiece_model", "tokenizer", "required_batch_size_multiple", "cpu"),
    *("prefix_size", "print_step", "sacrebleu", "model_overrides", "replace_unk"),
}
"""Flags of ``fairseq-generate`` on which the reading of its output relies."""


def on_cpu(recipe: Recipe) -> bool:
    """As the recipe says, or where there is nothing else."""
    return bool(recipe.train["common"].get("cpu")) or not torch.cuda.is_available()


def flags(values: Mapping[str, Any]) -> list[str]:
    """``{"max_len_b": 100, "cpu": True, "lr": [1, 0.5]}`` as flags; None and False give none."""
    words: list[str] = []
    for name, value in values.items():
        flag = f"--{name.replace('_', '-')}"
        if value is True:
            words += [flag, "True"] if name in SAYS_TRUE else [flag]
        elif isinstance(value, (list, tuple)):
            words += [flag, ",".join(map(str, value))]
        elif value is not None and value is not False:
            words += [flag, str(value)]
    return words


def training_settings(
    recipe: Recipe, attention: Mapping[str, Any], seed: int, binary: str, cpu: bool
) -> dict[str, Any]:
    """All that ``fairseq-hydra-train`` needs to know.

    Args:
        attention: keys of the model.
        binary: data folder, as seen from the folder of the run.
        cpu: there is no GPU.
    """
    languages = {"source_lang": recipe.data.source, "target_lang": recipe.data.target}
    train = {
        section: dict(values) if isinstance(values, dict) else values
        for section, values in recipe.train.items()
    }
    train["common"] |= {"user_dir": USER_DIR, "seed": seed}
    if cpu:
        train["common"]["cpu"] = True
    train["task"] |= {"data": binary, **(languages if recipe.translates else {})}
    train["model"].update(attention)
    if recipe.vectors is not None:
        train["model"]["embed_path"] = os.path.join(binary, VECTORS)
    train.setdefault("checkpoint", {})["save_dir"] = "."
    return train


def hydra_command(folder: Path) -> list[str]:
    """Training in a folder that holds its ``train.yaml``."""
    return command(
        "fairseq-hydra-train",
        *("--config-dir", str(folder), "--config-name", "train"),
        *("hydra.run.dir=.", "hydra.output_subdir=null"),
    )


def train_command(settings: Mapping[str, Any]) -> list[str]:
    """The same with the flags of ``fairseq-train``."""
    words = [settings["task"]["data"]]
    for section, values in settings.items():
        if not isinstance(values, dict):
            continue
        named = {k: v for k, v in values.items() if not (section == "task" and k == "data")}
        name = named.pop("_name", None)
        if name is not None and section in NAMED:
            words += [NAMED[section], name]
        # fairseq's sgd has a learning rate of its own, which is the same flag
        words += flags({k: v for k, v in named.items() if (section, k) != ("optimizer", "lr")})
    return command("fairseq-train", *words)


def generate_command(
    recipe: Recipe,
    binary: str,
    checkpoint: str,
    subword_model: str | None,
    cpu: bool,
    forced: bool = False,
) -> list[str]:
    """Translate the test split with the best checkpoint, attention weights included.

    Args:
        binary: data folder, as seen from the folder of the run.
        checkpoint: the model, seen from there.
        subword_model: sentencepiece model of the target language.
        forced: make the reference instead of translating, for its attention weights.
    """
    source, target = recipe.data.source, recipe.data.target
    undo: dict[str, Any] = {}
    if subword_model is not None:
        undo = {"bpe": "sentencepiece", "sentencepiece_model": subword_model}
    if recipe.preprocess.tokenizer == "moses":
        undo["tokenizer"] = "moses"
    words = flags(
        {
            "user_dir": USER_DIR,
            "source_lang": source,
            "target_lang": target,
            "gen_subset": "test",
            "path": checkpoint,
            # fairseq's last main drops the last batch where its size is no multiple of 8
            "required_batch_size_multiple": 1,
            "print_alignment": "soft",
            "score_reference": forced,
            "cpu": cpu,
            "no_progress_bar": True,
            **undo,
            **recipe.generate,
        }
    )
    return command("fairseq-generate", binary, *words)


def predict_command(binary: str, text: str, checkpoint: str, cpu: bool) -> list[str]:
    """Classify the test split with the best checkpoint, attention weights included.

    Args:
        binary, checkpoint: as for :func:`generate_command`.
        text: prefix of the prepared text.
    """
    words = [sys.executable, "-m", "fairseq_regattn.classification", "predict", binary, text]
    return [*words, *flags({"path": checkpoint, "cpu": cpu})]


def answer_command(recipe: Recipe, data: str, checkpoint: str, cpu: bool) -> list[str]:
    """Answer the questions with the best checkpoint, attention weights included.

    Args:
        data, checkpoint: as for :func:`generate_command`.
    """
    words = [sys.executable, "-m", "fairseq_regattn.vqa", "predict", data]
    return [*words, *flags({"split": recipe.scored, "path": checkpoint, "cpu": cpu})]


def relative(path: Path, folder: Path) -> str:
    """As seen from a folder: fairseq and Hydra give some characters of a path a meaning, and a
    user's own folders may have them in their names."""
    return os.path.relpath(path, folder)
