"""``--task vqa``: answers to questions about images."""

import logging
import os
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Dict, List

from fairseq.data import Dictionary
from fairseq.dataclass import FairseqDataclass
from fairseq.tasks import register_task
from omegaconf import II, MISSING

from fairseq_regattn.tasks.classifying import ClassifyingTask
from fairseq_regattn.vqa.data import DICTIONARY, Preparation, read_answers
from fairseq_regattn.vqa.dataset import VQADataset
from fairseq_regattn.vqa.features import Features
from fairseq_regattn.vqa.questions import read_lines

logger = logging.getLogger(__name__)


@dataclass
class VQATaskConfig(FairseqDataclass):
    """Flags and YAML keys."""

    data: str = field(
        default=MISSING,
        metadata={"help": "data folder, made by python -m fairseq_regattn.vqa prepare"},
    )
    seed: int = II("common.seed")


@register_task("vqa", dataclass=VQATaskConfig)
class VQATask(ClassifyingTask):
    """One of the most common answers to each question about an image.

    For ``--criterion sentence_prediction`` (the most common answer) or ``vqa_bce`` (all that people
    gave); both log the accuracy in percent: ``--best-checkpoint-metric accuracy
    --maximize-best-checkpoint-metric``.

    Attributes:
        labels: answers, in the order of the classes.
        grid_shape: height, width and channels of an image.
    """

    name = "vqa"
    criteria = ("sentence_prediction", "vqa_bce")

    def __init__(self, cfg: Any, dictionary: Dictionary, answers: List[str], how: Preparation):
        super().__init__(cfg, dictionary, answers)
        self.preparation = how
        self.grid_shape = how.shape
        self.label_dictionary = None  # criteria of fairseq ask for it
        self.features: Dict[str, Features] = {}

    @classmethod
    def setup_task(cls, cfg: Any, **_unused: Any) -> "VQATask":
        """Read the dictionary and the answers.

        Raises:
            UsageError: `data` has none.
        """
        data = Path(cfg.data)
        how = Preparation.read(data)
        dictionary = Dictionary.load(str(data / DICTIONARY))
        task = cls(cfg, dictionary, read_answers(data), how)
        shape = " x ".join(map(str, how.shape))
        logger.info("%d words, %d answers, %s", len(dictionary), len(task.labels), shape)
        return task

    def load_dataset(self, split: str, combine: bool = False, **_unused: Any) -> VQADataset:
        """Load train, valid, test, ...

        Raises:
            FileNotFoundError: there is no such split.
            UsageError: its features are not where they were.
        """
        path = Path(self.cfg.data, f"{split}.jsonl")
        if not os.path.exists(path):
            raise FileNotFoundError(f"Dataset not found: {split} ({path})")
        self.datasets[split] = self.dataset_of(read_lines(path), split)
        return self.datasets[split]

    def dataset_of(self, questions: Any, split: str) -> VQADataset:
        """Of any questions about the images of a split."""
        if split not in self.features:
            self.features[split] = self.preparation.open_features(split)
        return VQADataset(
            questions,
            self.features[split],
            self.preparation.shape,
            self.dictionary,
            self.labels,
            self.cfg.seed,
        )

    @property
    def target_dictionary(self) -> None:
        """None: answers are no words of a fairseq dictionary."""
