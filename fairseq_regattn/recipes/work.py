"""All stages of all runs, each thing only if it is missing."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from pathlib import Path

import torch

from fairseq_regattn.analysis.results import read_sweep, text, write_results
from fairseq_regattn.analysis.significance import significance
from fairseq_regattn.errors import UsageError
from fairseq_regattn.recipes import report, runs
from fairseq_regattn.recipes.jobs import Chain, run
from fairseq_regattn.recipes.options import STAGES, Reproduction
from fairseq_regattn.recipes.prepare import prepare, preprocess
from fairseq_regattn.recipes.stages import StageError
from fairseq_regattn.recipes.workspace import Run, Workspace, finished_runs


class Work:
    """One call of ``reproduce.sh``.

    Attributes:
        locks: file descriptors that hold the workspaces; processes inherit them.
        made: titles of what was not there before.
        failures: what went wrong, by title.
        written: files that a person would look at.
    """

    def __init__(self, options: Reproduction, wanted: Sequence[Run], command: str):
        self.options = options
        self.wanted = list(wanted)
        self.command = command
        self.locks: list[int] = []
        self.made: list[str] = []
        self.failures: dict[str, Exception] = {}
        self.written: list[Path] = []

    def all_stages(self) -> None:
        """Up to ``--stage``."""
        last = STAGES.index(self.options.stage)
        # A record may come from another machine: then nothing of its run need be here.
        pending = [one for one in self.wanted if not one.record(self.options.records).exists()]
        decoded = {one.checkpoint for one in pending}
        pending = [
            one
            for one in self.wanted
            if one in pending or (one.checkpoint in decoded and not one.checkpoint.exists())
        ]
        finished = len(self.wanted) - len(pending)
        if finished:
            print(f"{finished} of {len(self.wanted)} runs are finished already")
        needed: dict[Path, Workspace] = {}
        for one in pending:
            # A model is decoded with its dictionaries and subwords, which may be gone since.
            for workspace in (one.trained.workspace, one.workspace):
                needed.setdefault(workspace.folder, workspace)
        workspaces = [*needed.values()]
        workspaces = self._corpora(0, "get and check the text", workspaces, self._prepare)
        if last >= STAGES.index("preprocess"):
            what = "tokens, and fairseq's binary format"
            workspaces = self._corpora(
                1, what, workspaces, lambda workspace: preprocess(workspace, self.locks)
            )
        if last >= STAGES.index("train"):
            self._models([one for one in pending if one.workspace in workspaces], last)
        if last >= STAGES.index("report"):
            self._announce(5, "tables, pictures, pages")
            try:
                self._report()
            except (StageError, UsageError, OSError) as error:
                self.failures["report"] = error

    def _prepare(self, workspace: Workspace) -> list[str]:
        return prepare(workspace, self.options.output, self.options.data)

    def _corpora(
        self,
        number: int,
        what: str,
        workspaces: Sequence[Workspace],
        make: Callable[[Workspace], list[str]],
    ) -> list[Workspace]:
        """A stage of every workspace; returns those that did not fail."""
        self._announce(number, what)
        good = []
        for workspace in workspaces:
            title = f"{workspace.recipe.name} {workspace.recipe.direction}"
            try:
                made = make(workspace)
            except (StageError, UsageError, OSError) as error:
                self.failures[title] = error
                continue
            self.made += [f"{title} {part}" for part in made]
            told = f"made {', '.join(made)}" if made else "already there"
            print(f"      {title}: {told}: {os.path.relpath(workspace.folder)}", flush=True)
            good.append(workspace)
        return good

    def _models(self, pending: Sequence[Run], last: int) -> None:
        """Train, translate and score: one run after the other, several side by side."""
        until = STAGES[min(last, STAGES.index("score"))]
        stages = ", ".join(STAGES[2 : STAGES.index(until) + 1])
        self._announce(2, f"{stages} of {len(pending)} runs")
        # What decodes a model of another run waits for all of these.
        for own in (True, False):
            self._chains([one for one in pending if (one.trained == one) is own], until)

    def _chains(self, pending: Sequence[Run], until: str) -> None:
        """Runs side by side."""
        chains = []
        for one in pending:
            if until != "score" and runs.reached(one, until):
                continue
            self.made.append(one.title)
            jobs = runs.jobs(one, self.options.records, self.command, until)
            chains.append(Chain(one.title, jobs))
        if not chains:
            return
        # One training uses all GPUs by itself, but only one core.
        gpus = torch.cuda.device_count()
        at_once = self.options.jobs or (1 if gpus else None)
        self.failures.update(
            run(chains, self.locks, at_once=at_once, keep_going=True, devices=gpus)
        )

    def _report(self) -> None:
        records = self.options.records
        if not any(one.record(records).exists() for one in self.wanted):
            return
        wanted = list(dict.fromkeys(one.workspace for one in self.wanted))
        counts = significance(records, [w.all_references for w in wanted if w.text.exists()])
        if counts.left:
            print(f"      p values of {counts.left} runs wait for the text of their test sets")
        for workspace in wanted:
            finished = finished_runs(workspace, records)
            mine = [one for one in self.wanted if one.workspace == workspace]
            elsewhere = [one for one in mine if one.record(records).exists()]
            elsewhere = [one for one in elsewhere if not one.folder.exists()]
            if elsewhere:
                names = ", ".join(one.name for one in elsewhere)
                print(f"      no pictures of runs that were made elsewhere: {names}")
            if finished and report.write(workspace, finished, records):
                self.made.append(f"{workspace.recipe.name} {workspace.recipe.direction} report")
            if finished:
                folder = workspace.folder / "report"
                page = folder / "index.html"
                self.written.append(page if page.exists() else folder / "results.md")
                if len(wanted) == 1:  # else there are too many to be read
                    self.written += sorted(folder.glob("*.png"))
                    self.written += [one.folder / "checkpoint_best.pt" for one in finished]
        tables = write_results(records, self.options.output / "results")
        alone = wanted[0].folder / "report" / "results.txt"
        if len(wanted) == 1 and alone.exists():
            print("\n" + alone.read_text(encoding="utf-8"))
        if len(wanted) > 1 or len(self.options.seeds) > 1 or not alone.exists():
            print("\n" + text(read_sweep(records)))
        self.written += tables

    def _announce(self, number: int, what: str) -> None:
        print(f"[{number + 1}/{len(STAGES)}] {STAGES[number]}: {what}", flush=True)
