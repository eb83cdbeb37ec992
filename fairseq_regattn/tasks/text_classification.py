"""``--task text_classification``: a label for a text, or for a pair of texts."""

import logging
import os
from dataclasses import dataclass, field
from typing import Any, Dict, List, Optional

import numpy as np
import torch
from fairseq.data import (
    Dictionary,
    FairseqDataset,
    IdDataset,
    NestedDictionaryDataset,
    NumelDataset,
    NumSamplesDataset,
    OffsetTokensDataset,
    PrependTokenDataset,
    RightPadDataset,
    SortDataset,
    StripTokenDataset,
    data_utils,
)
from fairseq.dataclass import FairseqDataclass
from fairseq.tasks import register_task
from omegaconf import II, MISSING

from fairseq_regattn.errors import UsageError
from fairseq_regattn.tasks.classifying import ClassifyingTask

logger = logging.getLogger(__name__)


@dataclass
class TextClassificationConfig(FairseqDataclass):
    """Flags and YAML keys."""

    data: str = field(
        default=MISSING,
        metadata={
            "help": "data folder, as of fairseq's sentence_prediction: input0, input1 for pairs,"
            " and label"
        },
    )
    seed: int = II("common.seed")


@register_task("text_classification", dataclass=TextClassificationConfig)
class TextClassificationTask(ClassifyingTask):
    """fairseq's ``sentence_prediction`` with the two texts of a pair apart.

    For ``--criterion sentence_prediction``, which logs the accuracy in percent:
    ``--best-checkpoint-metric accuracy --maximize-best-checkpoint-metric``. Texts are without
    their ends; the second one of a pair begins with ``<s>``.

    Attributes:
        labels: in the order of the classes.
        pairs: whether there are two texts to a label.
    """

    name = "text_classification"
    criteria = ("sentence_prediction", "sentence_prediction_l2")

    def __init__(self, cfg: Any, dictionary: Dictionary, label_dictionary: Dictionary):
        super().__init__(cfg, dictionary, label_dictionary.symbols[label_dictionary.nspecial :])
        self.label_dictionary = label_dictionary
        self.pairs = os.path.isdir(os.path.join(cfg.data, "input1"))

    @classmethod
    def setup_task(cls, cfg: Any, **_unused: Any) -> "TextClassificationTask":
        """Read the dictionaries.

        Raises:
            UsageError: `data` has none.
        """
        dictionaries = []
        for name in ("input0", "label"):
            path = os.path.join(cfg.data, name, "dict.txt")
            if not os.path.exists(path):
                raise UsageError(
                    f"{cfg.data} holds no texts with labels: {path} is missing; see"
                    " python -m fairseq_regattn.classification prepare"
                )
            dictionaries.append(Dictionary.load(path))
        task = cls(cfg, *dictionaries)
        logger.info(
            "%d words, %d labels: %s",
            len(task.dictionary),
            len(task.labels),
            ", ".join(task.labels),
        )
        return task

    def load_dataset(self, split: str, combine: bool = False, **_unused: Any) -> FairseqDataset:
        """Load train, valid, test, ...

        Raises:
            FileNotFoundError: there is no such split.
            UsageError: texts and labels are not equally many.
        """
        parts: Dict[str, Any] = {}
        for name in ("input0", "input1", "label") if self.pairs else ("input0", "label"):
            prefix = os.path.join(self.cfg.data, name, split)
            dictionary = self.label_dictionary if name == "label" else self.dictionary
            found = data_utils.load_indexed_dataset(prefix, dictionary, combine=combine)
            if found is None:
                raise FileNotFoundError(f"Dataset not found: {split} ({prefix})")
            parts[name] = _WithoutEnd(found, dictionary.eos())
        rows = {name: len(part) for name, part in parts.items()}
        if len(set(rows.values())) > 1:
            told = ", ".join(f"{count} of {name}" for name, count in rows.items())
            raise UsageError(f"{self.cfg.data}: rows of {split} must be equally many, got {told}")
        labels = OffsetTokensDataset(parts["label"], -self.label_dictionary.nspecial)
        dataset = self._nested(parts["input0"], parts.get("input1"), target=labels)
        with data_utils.numpy_seed(self.cfg.seed):
            shuffle = np.random.permutation(len(dataset))
        # by length, so that batches have little padding
        self.datasets[split] = SortDataset(dataset, sort_order=[shuffle, dataset.sizes[0]])
        return self.datasets[split]

    def build_dataset_for_inference(
        self, src_tokens: List[torch.Tensor], src_lengths: List[int], **kwargs: Any
    ) -> FairseqDataset:
        """Texts, without their ends, that have no labels.

        Args:
            src_tokens: one tensor a text.
            src_lengths: as many.
            pair_tokens: the second text of each.
        """
        pairs: Optional[List[torch.Tensor]] = kwargs.get("pair_tokens")
        return self._nested(_listed(src_tokens), None if pairs is None else _listed(pairs))

    def _nested(self, first: Any, second: Any, **more: Any) -> NestedDictionaryDataset:
        sizes = np.array(first.sizes)
        inputs = {"src": first}
        if second is not None:
            inputs["pair"] = PrependTokenDataset(second, self.dictionary.bos())
            sizes = np.maximum(sizes, np.array(second.sizes) + 1)
        net_input: Dict[str, Any] = {}
        for name, texts in inputs.items():
            net_input[f"{name}_tokens"] = RightPadDataset(texts, self.dictionary.pad())
            net_input[f"{name}_lengths"] = NumelDataset(texts)
        return NestedDictionaryDataset(
            {
                "id": IdDataset(),
                "net_input": net_input,
                "nsentences": NumSamplesDataset(),
                "ntokens": NumelDataset(first, reduce=True),
                **more,
            },
            sizes=[sizes],
        )

    @property
    def target_dictionary(self) -> Dictionary:
        """fairseq asks every task for one."""
        return self.label_dictionary


class _WithoutEnd(StripTokenDataset):
    """Sizes without the ends, too, which every text has."""

    @property
    def sizes(self) -> np.ndarray:
        return np.asarray(self.dataset.sizes) - 1


def _listed(texts: List[torch.Tensor]) -> Any:
    from fairseq.data import ListDataset

    return ListDataset(texts, sizes=np.array([len(text) for text in texts]))
