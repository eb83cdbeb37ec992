"""The stages before training where texts are classified."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from pathlib import Path

from fairseq_regattn.classification import corpus
from fairseq_regattn.classification.rows import Preparation
from fairseq_regattn.classification.vectors import read_vectors, write_vectors
from fairseq_regattn.errors import UsageError
from fairseq_regattn.recipes.recipe import Classification, Recipe
from fairseq_regattn.recipes.stages import produce
from fairseq_regattn.recipes.workspace import Workspace


def sources(recipe: Recipe, data: Path) -> dict[str, Path]:
    """Files and folders of the splits that have one.

    Raises:
        UsageError: one is missing.
    """
    found = {split: data / name for split, name in recipe.data.names.items()}
    missing = [str(path) for path in found.values() if not path.exists()]
    vectors = vectors_file(recipe, data)
    if vectors is not None and not vectors.exists():
        missing.append(str(vectors))
    if missing:
        raise UsageError(f"{', '.join(missing)}: no such file (see data.files in the recipe)")
    return found


def vectors_file(recipe: Recipe, data: Path) -> Path | None:
    """Of pretrained vectors, where the recipe has some."""
    return None if recipe.vectors is None else data / recipe.vectors


def fingerprint(recipe: Recipe, data: Path) -> bytes:
    """Of the contents of all that is read.

    Raises:
        UsageError: a file is missing.
    """
    digest = hashlib.sha256()
    vectors = vectors_file(recipe, data)
    for path in [*sources(recipe, data).values(), *([vectors] if vectors is not None else [])]:
        digest.update(corpus.fingerprint(path))
    return digest.digest()


def prepare(workspace: Workspace, data: Path) -> list[str]:
    """Checked texts, and the vectors of their words; returns what had to be made."""
    recipe, classes = workspace.recipe, _classes(workspace.recipe)
    vectors = vectors_file(recipe, data)
    how = Preparation(
        inputs=classes.inputs,
        labels=tuple(classes.labels) or None,
        tokenizer=recipe.preprocess.tokenizer,
        lowercase=classes.lowercase,
    )

    def make(out: Path) -> None:
        corpus.take(sources(recipe, data), out, how, classes.held_out, classes.malformed)
        if vectors is not None:
            words = corpus.count_words(out)
            write_vectors(out / corpus.VECTORS, *read_vectors(vectors, words.keys()))

    return ["text"] if produce(workspace.text, make) else []


def preprocess(workspace: Workspace, locks: Sequence[int]) -> list[str]:
    """fairseq's binary format; returns what had to be made."""
    classes = _classes(workspace.recipe)
    vectors = workspace.text / corpus.VECTORS if classes.vectors is not None else None

    def make(out: Path) -> None:
        corpus.binarise(workspace.text, out, vectors, classes.min_count, locks)

    return ["bin"] if produce(workspace.binary, make) else []


def preprocess_commands(workspace: Workspace) -> list[list[str]]:
    """What ``preprocess`` runs."""
    inputs = _classes(workspace.recipe).inputs
    return corpus.preprocess_commands(workspace.text, workspace.binary, inputs)


def _classes(recipe: Recipe) -> Classification:
    assert recipe.classification is not None  # for the type checker
    return recipe.classification
