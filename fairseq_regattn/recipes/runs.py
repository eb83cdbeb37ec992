"""A run: train, translate, score, one job after the other, each only if it is not done."""

from __future__ import annotations

import os
import shutil
import zipfile
from collections.abc import Iterator
from pathlib import Path

from omegaconf import OmegaConf

from fairseq_regattn.recipes.commands import (
    answer_command,
    generate_command,
    hydra_command,
    on_cpu,
    predict_command,
    relative,
    training_settings,
)
from fairseq_regattn.recipes.jobs import Job
from fairseq_regattn.recipes.progress import State, Tail
from fairseq_regattn.recipes.score import score
from fairseq_regattn.recipes.stages import StageError, partial_of
from fairseq_regattn.recipes.workspace import Run


def jobs(run: Run, records: Path, command: str, until: str = "score") -> Iterator[Job]:
    """What is missing of a run, up to a stage.

    Args:
        records: folder for the record, which is made last.
        command: kept in the record.
        until: train, generate or score.

    Raises:
        StageError: training left no checkpoint, or translations are incomplete.
    """
    if run.trained != run:
        if not run.checkpoint.exists():
            raise StageError(f"no model of {run.trained.title}: its training failed")
        run.folder.mkdir(parents=True, exist_ok=True)
    elif not run.folder.exists():
        yield _training(run)
        partial = partial_of(run.folder)
        if not (partial / "checkpoint_best.pt").exists():
            raise StageError(f"training ended without a checkpoint: see {partial / 'train.log'}")
        os.replace(partial, run.folder)
    if until == "train":
        return
    for name in run.workspace.outputs:
        output = run.folder / name
        if not output.exists():
            partial_of(output).unlink(missing_ok=True)
            yield _using(run, partial_of(output), name)
            os.replace(partial_of(output), output)
    if until == "score" and not run.record(records).exists():
        score(run, records, command)


def reached(run: Run, until: str) -> bool:
    """Whether a stage before scoring is done."""
    if until == "train":
        return run.trained != run or run.folder.exists()
    return all((run.folder / name).exists() for name in run.workspace.outputs)


def write_training_settings(run: Run, folder: Path) -> dict:
    """``train.yaml`` for a folder in which the model is to be trained."""
    settings = training_settings(
        run.workspace.recipe,
        run.attention.settings,
        run.seed,
        relative(run.workspace.binary, folder),
        on_cpu(run.workspace.recipe),
    )
    folder.mkdir(parents=True, exist_ok=True)
    partial = partial_of(folder / "train.yaml")
    OmegaConf.save(OmegaConf.create(settings), partial)
    os.replace(partial, folder / "train.yaml")
    return settings


def _training(run: Run) -> Job:
    """A new one, or one that goes on where a killed one stopped."""
    folder = partial_of(run.folder)
    write_training_settings(run, folder)
    _mend_checkpoints(folder)
    log = run.log(folder)  # what was done before, so that the display starts there
    return Job(hydra_command(folder), log.path, folder, log.state)


def output_command(run: Run, name: str) -> list[str]:
    """What makes one of the outputs of a run, in its folder, on standard output."""
    workspace, recipe = run.workspace, run.workspace.recipe
    binary, checkpoint = (relative(p, run.folder) for p in (workspace.binary, run.checkpoint))
    if recipe.questions is not None:
        return answer_command(recipe, binary, checkpoint, on_cpu(recipe))
    if recipe.classification is not None:
        text = relative(workspace.text / "test", run.folder)
        return predict_command(binary, text, checkpoint, on_cpu(recipe))
    model = workspace.subword_model
    subwords = relative(model, run.folder) if model is not None else None
    forced = name == "forced.txt"
    return generate_command(recipe, binary, checkpoint, subwords, on_cpu(recipe), forced)


def _using(run: Run, output: Path, name: str) -> Job:
    counted = {
        "generate.txt": ("translated", "sentences", "H-"),
        "forced.txt": ("aligned", "sentences", "H-"),
        "predictions.jsonl": ("classified", "texts", "{"),
        "answers.jsonl": ("answered", "questions", "{"),
    }
    counter = _Counter(*counted[name], output, len(run.workspace.references))
    return Job(
        command=output_command(run, name),
        log=run.folder / "generate.log",
        folder=run.folder,
        state=counter.state,
        output=output,
    )


def _mend_checkpoints(folder: Path) -> None:
    """Remove what a killed run left half-written, and replace ``checkpoint_last.pt``.

    fairseq writes the first checkpoint of an epoch under another name and renames it, but then
    copies it in place: where there is a new best one, the last one is that copy.
    """
    last, best = folder / "checkpoint_last.pt", folder / "checkpoint_best.pt"
    for path in (last, best):
        if path.exists() and not zipfile.is_zipfile(path):
            path.unlink()
    if best.exists() and not last.exists():
        shutil.copyfile(best, partial_of(last))
        os.replace(partial_of(last), last)


class _Counter:
    """How far an output is, from the lines in it.

    Args:
        what, of: for people: done what, with what.
        begins: a line that is counted.
        output: the file.
        wanted: how many there will be.
    """

    def __init__(self, what: str, of: str, begins: str, output: Path, wanted: int):
        self.what, self.of, self.begins = what, of, begins
        self.tail = Tail(output)
        self.wanted = wanted
        self.done = 0

    def state(self) -> State:
        self.done += sum(line.startswith(self.begins) for line in self.tail.lines())
        text = f"{self.what} {self.done} of {self.wanted} {self.of}"
        return State(self.done / max(self.wanted, 1), text)
