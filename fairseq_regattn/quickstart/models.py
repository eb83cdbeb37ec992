"""Training and translating with one mapping, and what came out of it."""

from __future__ import annotations

import json
import os
import shutil
import zipfile
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

import fairseq_regattn
from fairseq_regattn.analysis import (
    AlignmentStatistics,
    Hypothesis,
    Result,
    alignment_statistics,
    read_generate_output,
)
from fairseq_regattn.quickstart.corpus import SOURCE, TARGET, read_lines
from fairseq_regattn.quickstart.options import Attention
from fairseq_regattn.recipes.jobs import Job, command, run
from fairseq_regattn.recipes.progress import State, Tail, TrainingLog
from fairseq_regattn.recipes.stages import StageError, partial_of

USER_DIR = str(Path(fairseq_regattn.__file__).parent)
CONFIG = Path(USER_DIR).parent / "configs" / "quickstart.yaml"
BEAM = 5


@dataclass(frozen=True)
class Workspace:
    """Where things lie that were made with the same settings, whatever the mapping.

    Commands run in the folder of their model and get relative paths: fairseq and Hydra give
    some characters a meaning, and a user's own folders may have them in their names.

    Attributes:
        folder: everything is in here.
        overrides: changes of ``configs/quickstart.yaml``.
        max_update: updates of training, from the settings.
    """

    folder: Path
    overrides: tuple[str, ...]
    max_update: int

    @property
    def text(self) -> Path:
        return self.folder / "text"

    @property
    def pieces(self) -> Path:
        return self.folder / "pieces"

    @property
    def binary(self) -> Path:
        return self.folder / "bin"

    def model(self, attention: Attention) -> Path:
        """Exists once the model is trained; until then its folder ends in ``.partial``."""
        return self.folder / "models" / attention.name


def train(workspace: Workspace, attentions: Sequence[Attention], lock: int) -> list[Attention]:
    """Train those that are not trained yet, side by side; go on where a killed run stopped.

    Returns:
        The ones that were trained.
    """
    pending = [attention for attention in attentions if not workspace.model(attention).exists()]
    jobs = []
    for attention in pending:
        folder = partial_of(workspace.model(attention))
        folder.mkdir(parents=True, exist_ok=True)
        record = json.dumps(asdict(attention)) + "\n"
        (folder / "attention.json").write_text(record, encoding="utf-8")
        _mend_last_checkpoint(folder)
        log = TrainingLog(folder / "train.log", workspace.max_update)
        log.read()  # what runs before this one did, so that the display starts there
        jobs.append(
            Job(
                title=attention.title,
                command=training_command(workspace, attention, folder),
                log=log.path,
                folder=folder,
                state=log.state,
            )
        )
    if jobs:
        run(jobs, lock)
    for attention in pending:
        target = workspace.model(attention)
        if not (partial_of(target) / "checkpoint_best.pt").exists():
            log_path = partial_of(target) / "train.log"
            raise StageError(f"training ended without a checkpoint: see {log_path}")
        os.replace(partial_of(target), target)
    return pending


def training_command(workspace: Workspace, attention: Attention, folder: Path) -> list[str]:
    """What a user would type; the settings are in ``configs/quickstart.yaml``."""
    return command(
        "fairseq-hydra-train",
        "--config-dir",
        str(CONFIG.parent),
        "--config-name",
        CONFIG.stem,
        f"common.user_dir={_quoted(USER_DIR)}",
        f"task.data={os.path.relpath(workspace.binary, folder)}",
        "checkpoint.save_dir=.",
        "hydra.run.dir=.",
        "hydra.output_subdir=null",
        *attention.overrides,
        *workspace.overrides,
    )


def translate(workspace: Workspace, attentions: Sequence[Attention], lock: int) -> list[Attention]:
    """Translate the test split and score it, with those that have not done so yet.

    Returns:
        The ones that had to translate.
    """
    pending = [a for a in attentions if not (workspace.model(a) / "results.json").exists()]
    sentences = len(read_lines(workspace.text / f"test.{SOURCE}"))
    jobs = []
    for attention in pending:
        folder = workspace.model(attention)
        output = partial_of(folder / "generate.txt")
        output.unlink(missing_ok=True)
        counter = _Counter(output, sentences)
        jobs.append(
            Job(
                title=attention.title,
                command=translation_command(workspace, folder),
                log=folder / "generate.log",
                folder=folder,
                state=counter.state,
                output=output,
            )
        )
    if jobs:
        run(jobs, lock)
    for attention in pending:
        folder = workspace.model(attention)
        os.replace(partial_of(folder / "generate.txt"), folder / "generate.txt")
        result = score(workspace, attention)
        partial = partial_of(folder / "results.json")
        partial.write_text(json.dumps(asdict(result), indent=2) + "\n", encoding="utf-8")
        os.replace(partial, folder / "results.json")
    return pending


def translation_command(workspace: Workspace, folder: Path) -> list[str]:
    """Beam search over the test split, with the attention weights printed."""
    return command(
        "fairseq-generate",
        os.path.relpath(workspace.binary, folder),
        "--user-dir",
        USER_DIR,
        *("--source-lang", SOURCE, "--target-lang", TARGET, "--gen-subset", "test"),
        *("--path", "checkpoint_best.pt"),
        *("--beam", str(BEAM), "--batch-size", "64"),
        # fairseq's last main drops the last batch where its size is no multiple of 8.
        *("--required-batch-size-multiple", "1"),
        *("--bpe", "sentencepiece"),
        *("--sentencepiece-model", os.path.relpath(workspace.pieces / "spm.model", folder)),
        *("--scoring", "sacrebleu", "--print-alignment", "soft"),
        "--cpu",
        "--no-progress-bar",
    )


def hypotheses(workspace: Workspace, attention: Attention) -> list[Hypothesis]:
    """Translations of the test split, in the order of the corpus, with their alignments."""
    sources = read_lines(workspace.pieces / f"test.{SOURCE}")
    with open(workspace.model(attention) / "generate.txt", encoding="utf-8", newline="\n") as lines:
        read = read_generate_output(lines, sources)
    if sorted(hypothesis.sample_id for hypothesis in read) != list(range(len(sources))):
        raise StageError(
            f"{workspace.model(attention) / 'generate.txt'} has {len(read)} translations of "
            f"{len(sources)} sentences"
        )
    return sorted(read, key=lambda hypothesis: hypothesis.sample_id)


def bleu_metric():
    """sacreBLEU with its defaults: 13a tokenisation, mixed case."""
    from sacrebleu.metrics import BLEU

    return BLEU()


def score(workspace: Workspace, attention: Attention) -> Result:
    """Against the untouched reference text, not against what subwords make of it."""
    from sacrebleu.metrics import CHRF

    translated = hypotheses(workspace, attention)
    texts = [hypothesis.text for hypothesis in translated]
    references = [read_lines(workspace.text / f"test.{TARGET}")]
    log = TrainingLog(workspace.model(attention) / "train.log", workspace.max_update)
    log.read()
    return Result(
        name=attention.title,
        bleu=bleu_metric().corpus_score(texts, references).score,
        chrf=CHRF().corpus_score(texts, references).score,
        valid_ppl=log.best_ppl or float("nan"),
        training_seconds=log.seconds,
        tokens_per_second=sum(log.speeds) / max(len(log.speeds), 1),
        alignments=alignment_statistics(
            hypothesis.weights for hypothesis in translated if hypothesis.weights is not None
        ),
    )


def read_result(folder: Path) -> Result:
    """What ``translate`` left in the folder of a model."""
    content = json.loads((folder / "results.json").read_text(encoding="utf-8"))
    content["alignments"] = AlignmentStatistics(**content["alignments"])
    return Result(**content)


def _quoted(path: str | Path) -> str:
    """A value in Hydra's grammar, whatever characters are in it."""
    escaped = str(path).replace("\\", "\\\\").replace("'", "\\'")
    return f"'{escaped}'"


class _Counter:
    """How many sentences are translated, from the lines of ``fairseq-generate``."""

    def __init__(self, output: Path, sentences: int):
        self.tail = Tail(output)
        self.sentences = sentences
        self.done = 0

    def state(self) -> State:
        self.done += sum(line.startswith("H-") for line in self.tail.lines())
        text = f"{self.done} of {self.sentences} sentences"
        return State(self.done / max(self.sentences, 1), text)


def _mend_last_checkpoint(folder: Path) -> None:
    """Replace a ``checkpoint_last.pt`` that a killed run left half-written.

    fairseq writes the first checkpoint of an epoch under another name and renames it, but then
    copies it in place: where there is a new best one, the last one is that copy.
    """
    last, best = folder / "checkpoint_last.pt", folder / "checkpoint_best.pt"
    if last.exists() and not zipfile.is_zipfile(last):
        last.unlink()
    if best.exists() and not last.exists():
        shutil.copyfile(best, partial_of(last))
        os.replace(partial_of(last), last)
