"""A run: train, translate, score, one job after the other, each only if it is not done."""

from __future__ import annotations

import os
import shutil
import zipfile
from collections.abc import Iterator
from datetime import datetime, timezone
from pathlib import Path

import torch
from omegaconf import OmegaConf

from fairseq_regattn.analysis import Hypothesis, alignment_statistics
from fairseq_regattn.analysis.links import read_links, write_links
from fairseq_regattn.analysis.machine import machine, versions
from fairseq_regattn.analysis.matrices import write_matrices
from fairseq_regattn.analysis.records import LINKS, Record, collect, text_key
from fairseq_regattn.analysis.words import hard_links, join_subwords, word_weights
from fairseq_regattn.recipes.commands import (
    generate_command,
    hydra_command,
    relative,
    training_settings,
)
from fairseq_regattn.recipes.encode import tokenise
from fairseq_regattn.recipes.jobs import Job
from fairseq_regattn.recipes.progress import State, Tail
from fairseq_regattn.recipes.stages import StageError, partial_of
from fairseq_regattn.recipes.workspace import Run, forced_hypotheses, read_lines
from fairseq_regattn.scoring.alignment import alignment_scores
from fairseq_regattn.scoring.translation import bleu, chrf, tokenised_bleu


def jobs(run: Run, records: Path, command: str, until: str = "score") -> Iterator[Job]:
    """What is missing of a run, up to a stage.

    Args:
        records: folder for the record, which is made last.
        command: kept in the record.
        until: train, generate or score.

    Raises:
        StageError: training left no checkpoint, or translations are incomplete.
    """
    if not run.folder.exists():
        yield _training(run)
        partial = partial_of(run.folder)
        if not (partial / "checkpoint_best.pt").exists():
            raise StageError(f"training ended without a checkpoint: see {partial / 'train.log'}")
        os.replace(partial, run.folder)
    if until == "train":
        return
    outputs = {"generate.txt": False}
    if run.workspace.gold is not None:
        outputs["forced.txt"] = True
    for name, forced in outputs.items():
        output = run.folder / name
        if not output.exists():
            partial_of(output).unlink(missing_ok=True)
            yield _generating(run, partial_of(output), forced)
            os.replace(partial_of(output), output)
    if until == "score" and not run.record(records).exists():
        score(run, records, command)


def reached(run: Run, until: str) -> bool:
    """Whether a stage before scoring is done."""
    outputs = ["generate.txt"] + (["forced.txt"] if run.workspace.gold is not None else [])
    if until == "train":
        return run.folder.exists()
    return all((run.folder / name).exists() for name in outputs)


def on_cpu(run: Run) -> bool:
    """As the recipe says, or where there is nothing else."""
    return bool(run.workspace.recipe.train["common"].get("cpu")) or not torch.cuda.is_available()


def write_training_settings(run: Run, folder: Path) -> dict:
    """``train.yaml`` for a folder in which the model is to be trained."""
    settings = training_settings(
        run.workspace.recipe,
        run.attention.settings,
        run.seed,
        relative(run.workspace.binary, folder),
        on_cpu(run),
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


def _generating(run: Run, output: Path, forced: bool) -> Job:
    workspace = run.workspace
    model = workspace.subword_model
    what = "aligned" if forced else "translated"
    return Job(
        command=generate_command(
            workspace.recipe,
            relative(workspace.binary, run.folder),
            relative(model, run.folder) if model is not None else None,
            on_cpu(run),
            forced,
        ),
        log=run.folder / "generate.log",
        folder=run.folder,
        state=_Counter(what, output, len(workspace.sources)).state,
        output=output,
    )


def score(run: Run, records: Path, command: str) -> None:
    """Against the untouched reference; writes alignments, and the record last."""
    workspace, recipe = run.workspace, run.workspace.recipe
    found = run.hypotheses()
    texts = [hypothesis.text for hypothesis in found]
    scores = {
        "bleu": bleu(texts, workspace.references),
        "chrf": chrf(texts, workspace.references),
        "tokenised_bleu": tokenised_bleu(*_tokenised(run, found)),
    }
    write_matrices(run.folder / "alignments.npz", found)
    subwords = bool(recipe.preprocess.subwords)
    links = [hard_links(word_weights(hypothesis, subwords)[2]) for hypothesis in found]
    write_links(run.folder / "alignments.links", links)
    agreement = None
    if workspace.gold is not None:
        forced = [hard_links(word_weights(h, subwords)[2]) for h in forced_hypotheses(run)]
        write_links(run.folder / "forced.links", forced)
        scored = alignment_scores(forced, read_links(workspace.gold))
        agreement = {name: getattr(scored, name) for name in LINKS}
    log = run.log()
    record = Record(
        recipe=recipe.name,
        direction=recipe.direction,
        settings=workspace.key,
        name=run.attention.name,
        attention=run.attention.title,
        mapping=run.attention.mapping,
        seed=run.seed,
        bleu=scores["bleu"].value,
        chrf=scores["chrf"].value,
        tokenised_bleu=scores["tokenised_bleu"].value,
        signatures={name: score.signature for name, score in scores.items()},
        valid_ppl=log.best_ppl,
        updates=log.updates,
        training_seconds=log.seconds,
        processor_seconds=log.processor_seconds if on_cpu(run) else None,
        tokens_per_second=sum(log.speeds) / max(len(log.speeds), 1),
        alignments=alignment_statistics(h.weights for h in found if h.weights is not None),
        links=agreement,
        sentences=len(found),
        test_key=text_key(workspace.references),
        hypotheses_key=text_key(texts),
        date=datetime.now(timezone.utc).strftime("%Y-%m-%d"),
        machine=machine(),
        versions=versions(),
        command=command,
    )
    collect(records, record, texts)


def _tokenised(run: Run, found: list[Hypothesis]) -> tuple[list[str], list[str]]:
    """Hypotheses and references in Moses' tokens, as the model made them where it works on them."""
    recipe = run.workspace.recipe
    target = str(recipe.data.target)
    if recipe.preprocess.tokenizer != "moses":
        texts = [hypothesis.text for hypothesis in found]
        return tokenise(texts, target), tokenise(run.workspace.references, target)
    made = [" ".join(hypothesis.target) for hypothesis in found]
    references = read_lines(run.workspace.tokens / f"test.{target}")
    if not recipe.preprocess.subwords:
        return made, references
    return join_subwords(made), join_subwords(references)


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
    """How many sentences are translated, from the lines of ``fairseq-generate``."""

    def __init__(self, what: str, output: Path, sentences: int):
        self.what = what
        self.tail = Tail(output)
        self.sentences = sentences
        self.done = 0

    def state(self) -> State:
        self.done += sum(line.startswith("H-") for line in self.tail.lines())
        text = f"{self.what} {self.done} of {self.sentences} sentences"
        return State(self.done / max(self.sentences, 1), text)
