"""The stages before training: checked text, tokens, fairseq's binary format."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from types import ModuleType

from fairseq_regattn.errors import UsageError
from fairseq_regattn.recipes import asked, encode, fetch, labelled, stages, text
from fairseq_regattn.recipes.recipe import Recipe
from fairseq_regattn.recipes.stages import StageError, exclusive, produce, settings_key
from fairseq_regattn.recipes.text import SPLITS
from fairseq_regattn.recipes.workspace import Workspace


def open_workspace(
    recipe: Recipe,
    output: Path,
    data: Path | None,
    dry_run: bool = False,
    trained: Workspace | None = None,
) -> Workspace:
    """The folder for exactly these settings and this corpus; others live beside it.

    Args:
        recipe: of one direction.
        output: of the command line.
        data: folder of plain text, None where the recipe fetches its corpus.
        dry_run: it need not be there.
        trained: workspace of the recipe whose models this one decodes.

    Raises:
        UsageError: no corpus in `data`, or none named by the recipe.
    """
    splits = SPLITS if trained is None else ("test",)
    if data is not None and not recipe.translates:
        corpus = _stages(recipe).fingerprint(recipe, data)
    elif data is not None:
        corpus = fingerprint(recipe, data, splits)
    elif recipe.data.mtdata or dry_run:
        corpus = json.dumps(recipe.data.mtdata, sort_keys=True).encode()
    else:
        raise UsageError(f"{recipe.name} fetches no corpus: give its folder with --data")
    key = recipe.key(corpus) if trained is None else recipe.key(corpus, trained.key.encode())
    folder = output / recipe.name / recipe.direction / f"settings-{key}"
    return Workspace(recipe=recipe, folder=folder, key=key, trained=trained)


def fingerprint(recipe: Recipe, data: Path, splits: Sequence[str] = SPLITS) -> bytes:
    """Of the contents of all files of the corpus."""
    files, gold = recipe.data.names, recipe.data.gold
    source, target = _languages(recipe)
    folder = text.find_folder(data, source, target, files, splits)
    more = recipe.data.beside
    paths = text.corpus_files(folder, source, target, files, gold, more, splits)
    return stages.fingerprint(paths)


def prepare(workspace: Workspace, output: Path, data: Path | None) -> list[str]:
    """Get and check the text, unless it is there.

    Returns:
        What had to be made.
    """
    recipe, made = workspace.recipe, []
    source, target = _languages(recipe)
    if workspace.text.exists():
        return []
    if not recipe.translates and data is not None:
        return _stages(recipe).prepare(workspace, data)
    if data is None:
        # Both directions of a pair share what was fetched.
        key = settings_key(json.dumps([recipe.data.mtdata, *sorted((source, target))]).encode())
        data = output / "fetched" / f"{'-'.join(sorted((source, target)))}-{key}"
        with exclusive(data.parent):
            sets = recipe.data.mtdata
            if produce(data, lambda folder: fetch.fetch(sets, folder, source, target)):
                made.append("corpus")
    files, splits = recipe.data.names, workspace.splits
    folder = text.find_folder(data, source, target, files, splits)

    def take(out: Path) -> None:
        text.take(
            folder,
            out,
            source,
            target,
            files,
            recipe.data.gold,
            more=recipe.data.beside,
            splits=splits,
            unknown=recipe.summary is not None,
            original=recipe.data.original,
        )

    produce(workspace.text, take)
    return [*made, "text"]


def preprocess(workspace: Workspace, locks: Sequence[int]) -> list[str]:
    """Tokens and binary data, unless they are there; returns what had to be made."""
    recipe, made = workspace.recipe, []
    if not recipe.translates:
        return _stages(recipe).preprocess(workspace, locks)
    how = recipe.preprocess, *_languages(recipe)
    tokens, binary, splits = workspace.tokens, workspace.binary, workspace.splits
    models: list[Path] = []
    dictionaries = None
    if workspace.trained is not None:
        dictionaries = workspace.trained.binary
        models = workspace.subword_models if recipe.preprocess.subwords else []
        if not dictionaries.exists():
            raise StageError(f"{workspace.trained.recipe.name}, whose models it decodes, failed")
    if produce(
        tokens, lambda out: _discard(encode.encode(workspace.text, out, *how, splits, models))
    ):
        made.append("tokens")
    if produce(binary, lambda out: encode.binarise(tokens, out, *how, locks, splits, dictionaries)):
        made.append("bin")
    return made


def preprocess_commands(workspace: Workspace) -> list[list[str]]:
    """How the binary data is made, each to be run in the folder of the workspace."""
    recipe = workspace.recipe
    if not recipe.translates:
        return _stages(recipe).preprocess_commands(workspace)
    made = encode.preprocess_command(
        workspace.tokens,
        workspace.binary,
        recipe.preprocess,
        *_languages(recipe),
        workspace.splits,
        workspace.trained.binary if workspace.trained else None,
    )
    return [made]


def _stages(recipe: Recipe) -> ModuleType:
    """Those of recipes that do not translate."""
    return labelled if recipe.classification is not None else asked


def _languages(recipe: Recipe) -> tuple[str, str]:
    return str(recipe.data.source), str(recipe.data.target)


def _discard(_: object) -> None:
    """What was counted has been printed and written."""
