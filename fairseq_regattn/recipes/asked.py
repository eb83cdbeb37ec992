"""The stages before training where questions about images are answered."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from pathlib import Path

from fairseq_regattn.classification.corpus import VECTORS
from fairseq_regattn.classification.vectors import read_vectors, write_vectors
from fairseq_regattn.errors import UsageError
from fairseq_regattn.recipes import labelled
from fairseq_regattn.recipes.recipe import Questions, Recipe
from fairseq_regattn.recipes.stages import fingerprint as fingerprint_of
from fairseq_regattn.recipes.stages import produce
from fairseq_regattn.recipes.workspace import Workspace, read_lines
from fairseq_regattn.vqa.data import DICTIONARY, Source, take


def sources(recipe: Recipe, data: Path) -> dict[str, Source]:
    """Files and features of the splits that there are.

    Raises:
        UsageError: one is missing.
    """
    found = {
        split: Source(*(data / word for word in names.split()))
        for split, names in recipe.data.names.items()
    }
    paths = [path for source in found.values() for path in source if path is not None]
    vectors = labelled.vectors_file(recipe, data)
    missing = [path for path in (*paths, vectors) if path is not None and not path.exists()]
    if missing:
        listed = ", ".join(dict.fromkeys(map(str, missing)))
        raise UsageError(f"{listed}: no such file (see data.files in the recipe)")
    return found


def fingerprint(recipe: Recipe, data: Path) -> bytes:
    """Of the contents of files, and of features, which may be too many to read, names and sizes.

    Raises:
        UsageError: a file is missing.
    """
    read: list[Path] = []
    features: list[Path] = []
    for source in sources(recipe, data).values():
        read += [path for path in source[:2] if path is not None]
        features.append(source.features)
    vectors = labelled.vectors_file(recipe, data)
    digest = hashlib.sha256(fingerprint_of([*read, *([vectors] if vectors is not None else [])]))
    for place in dict.fromkeys(features):
        for path in sorted(place.iterdir()) if place.is_dir() else [place]:
            digest.update(f"{path.name} {path.stat().st_size}\n".encode())
    return digest.digest()


def prepare(workspace: Workspace, data: Path) -> list[str]:
    """What fairseq reads, and the vectors of its words; returns what had to be made."""
    recipe, how = workspace.recipe, _questions(workspace.recipe)
    vectors = labelled.vectors_file(recipe, data)

    def make(out: Path) -> None:
        take(
            sources(recipe, data),
            out,
            how.answers,
            how.min_count,
            how.malformed,
            how.channels_first,
        )
        if vectors is not None:
            words = [line.split(" ")[0] for line in read_lines(out / DICTIONARY)]
            write_vectors(out / VECTORS, *read_vectors(vectors, words))

    return ["data"] if produce(workspace.text, make) else []


def preprocess(workspace: Workspace, locks: Sequence[int]) -> list[str]:
    """Nothing more is made."""
    return []


def preprocess_commands(workspace: Workspace) -> list[list[str]]:
    """None."""
    return []


def _questions(recipe: Recipe) -> Questions:
    assert recipe.questions is not None  # for the type checker
    return recipe.questions
