"""Where everything of a recipe lies: one folder for the same settings, whatever the mapping."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import TypeVar

from fairseq_regattn.analysis import Hypothesis, read_generate_output
from fairseq_regattn.classification.predictions import Prediction, read_predictions
from fairseq_regattn.errors import UsageError
from fairseq_regattn.recipes.options import Attention
from fairseq_regattn.recipes.progress import TrainingLog
from fairseq_regattn.recipes.recipe import Recipe
from fairseq_regattn.recipes.stages import StageError
from fairseq_regattn.recipes.text import SPLITS
from fairseq_regattn.vqa.predictions import Prediction as Answer
from fairseq_regattn.vqa.predictions import read_predictions as read_answers
from fairseq_regattn.vqa.questions import Question
from fairseq_regattn.vqa.questions import read_lines as read_questions

Found = TypeVar("Found", Prediction, Answer)


@dataclass(frozen=True, eq=False)
class Workspace:
    """The corpus of one recipe and direction, and the runs on it.

    Commands run in the folder of their run and get relative paths.

    Attributes:
        recipe: of one direction.
        folder: everything is in here.
        key: of the settings.
        trained: where the models come from, if they are not trained here.
    """

    recipe: Recipe
    folder: Path
    key: str
    trained: Workspace | None = None

    @property
    def text(self) -> Path:
        """``train.ro`` and so on, checked."""
        return self.folder / "text"

    @property
    def tokens(self) -> Path:
        """The same in tokens or subwords."""
        return self.folder / "tokens"

    @property
    def binary(self) -> Path:
        """For fairseq; questions about images need nothing more than to be checked."""
        return self.text if self.recipe.questions is not None else self.folder / "bin"

    @property
    def subword_model(self) -> Path | None:
        """That of the target language, None for words."""
        if not self.recipe.preprocess.subwords:
            return None
        return self.subword_models[-1]

    @property
    def subword_models(self) -> list[Path]:
        """Of the source and the target language; one for both where they are joined."""
        names = [f"spm.{self.recipe.data.source}", f"spm.{self.recipe.data.target}"]
        if self.recipe.preprocess.joined:
            names = ["spm"]
        folder = self.trained.tokens if self.trained else self.tokens
        return [folder / f"{name}.model" for name in names]

    @property
    def splits(self) -> tuple[str, ...]:
        """What is prepared here."""
        return ("test",) if self.trained else SPLITS

    @cached_property
    def sources(self) -> list[str]:
        """Source sentences of the test split, in tokens."""
        return read_lines(self.tokens / f"test.{self.recipe.data.source}")

    @cached_property
    def questions(self) -> list[Question]:
        """About images, of the split that is scored."""
        return list(read_questions(self.text / f"{self.recipe.scored}.jsonl"))

    @cached_property
    def references(self) -> list[str]:
        """Untouched; of questions the most common answers."""
        if self.recipe.questions is not None:
            return [str(question.gold) for question in self.questions]
        return read_lines(self.text / f"test.{self.recipe.data.target}")

    @cached_property
    def all_references(self) -> list[list[str]]:
        """For each test sentence, one or more, untouched."""
        others = [read_lines(self.text / f"test.{name}") for name in self.recipe.data.references]
        return [list(lines) for lines in zip(self.references, *others)]

    @property
    def outputs(self) -> tuple[str, ...]:
        """Files that a model is made to write, in the folder of its run; the first is scored."""
        if self.recipe.questions is not None:
            return ("answers.jsonl",)
        if self.recipe.classification is not None:
            return ("predictions.jsonl",)
        return ("generate.txt", "forced.txt") if self.gold is not None else ("generate.txt",)

    @property
    def gold(self) -> Path | None:
        """Hand alignments of the test split, where there are any."""
        return self.text / "test.links" if self.recipe.data.gold else None


@dataclass(frozen=True)
class Run:
    """One model: a mapping and a seed in a workspace."""

    workspace: Workspace
    attention: Attention
    seed: int

    @property
    def name(self) -> str:
        return f"{self.attention.name}-seed{self.seed}"

    @property
    def title(self) -> str:
        """In a list of several recipes, directions and seeds."""
        recipe = self.workspace.recipe
        return f"{recipe.name} {recipe.direction} {self.attention.title} seed {self.seed}"

    @property
    def folder(self) -> Path:
        """Exists once the model is trained; until then its folder ends in ``.partial``."""
        return self.workspace.folder / "models" / self.name

    @property
    def trained(self) -> Run:
        """The run whose model is used: itself, unless its recipe decodes those of another."""
        if self.workspace.trained is None:
            return self
        return replace(self, workspace=self.workspace.trained)

    @property
    def checkpoint(self) -> Path:
        """The best on the validation split."""
        return self.trained.folder / "checkpoint_best.pt"

    def record(self, records: Path) -> Path:
        """In a folder of records; exists once the run is finished."""
        recipe, name = self.workspace.recipe, f"{self.name}-{self.workspace.key}.json"
        return records / recipe.name / recipe.direction / name

    def log(self, folder: Path | None = None) -> TrainingLog:
        """Of the training, read to its end."""
        settings = self.workspace.recipe.train.get("optimization", {})
        log = TrainingLog(
            (folder or self.trained.folder) / "train.log",
            max_update=settings.get("max_update", 0),
            max_epoch=settings.get("max_epoch", 0),
        )
        log.read()
        return log

    def predictions(self) -> list[Prediction]:
        """Labels of the test split, in the order of the corpus, with their weights."""
        rows = range(1, len(self.workspace.references) + 1)
        return self._predicted(read_predictions, rows)

    def answers(self) -> list[Answer]:
        """To the questions that are scored, in their order, with the weights of the cells."""
        return self._predicted(read_answers, [one.id for one in self.workspace.questions])

    def _predicted(
        self, read: Callable[[Path], Iterator[Found]], wanted: Sequence[int]
    ) -> list[Found]:
        path = self.folder / self.workspace.outputs[0]
        again = "remove it to have it made again"
        try:
            found = list(read(path))
        except UsageError as error:
            raise StageError(f"{error}: {again}") from error
        if [one.id for one in found] != list(wanted):
            raise StageError(f"{path} has {len(found)} predictions of {len(wanted)} rows: {again}")
        return found

    def hypotheses(self, file: str = "generate.txt") -> list[Hypothesis]:
        """Translations of the test split, in the order of the corpus, with their alignments."""
        sources = self.workspace.sources
        path = self.folder / file
        again = "remove it to have it made again"
        with open(path, encoding="utf-8", newline="\n") as lines:
            try:
                read = read_generate_output(lines, sources)
            except (ValueError, LookupError) as error:
                raise StageError(f"{path} cannot be read ({error}): {again}") from error
        if sorted(hypothesis.sample_id for hypothesis in read) != list(range(len(sources))):
            raise StageError(
                f"{path} has {len(read)} translations of {len(sources)} sentences: {again}"
            )
        return sorted(read, key=lambda hypothesis: hypothesis.sample_id)


def forced_hypotheses(run: Run) -> list[Hypothesis]:
    """The references with the weights that the model gives while it makes them.

    fairseq prints ``<unk>`` for pieces that it does not know; here they are as they were, so that
    words begin where they do in the reference.
    """
    found = run.hypotheses("forced.txt")
    workspace = run.workspace
    targets = read_lines(workspace.tokens / f"test.{workspace.recipe.data.target}")
    for hypothesis, line in zip(found, targets):
        hypothesis.target = line.split()
    return found


def finished_runs(workspace: Workspace, records: Path) -> list[Run]:
    """All runs of a workspace that have a record and lie here, softmax first, then by name."""
    recipe = workspace.recipe
    found = []
    for path in (records / recipe.name / recipe.direction).glob(f"*-{workspace.key}.json"):
        name, _, rest = path.name.rpartition("-seed")
        run = Run(workspace, Attention.from_name(name), int(rest.partition("-")[0]))
        if (run.folder / workspace.outputs[0]).exists():
            found.append(run)
    return sorted(found, key=lambda run: (run.attention.mapping != "softmax", run.name))


def read_lines(path: Path) -> list[str]:
    """Lines without their ends; only a line feed ends a line."""
    return path.read_text(encoding="utf-8").split("\n")[:-1]
