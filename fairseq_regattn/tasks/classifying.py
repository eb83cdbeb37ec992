"""What tasks have in common whose models choose one of several classes."""

import logging
from pathlib import Path
from typing import Any, List, Tuple

import torch
from fairseq.criterions.sentence_prediction import SentencePredictionCriterion
from fairseq.data import Dictionary
from fairseq.tasks import FairseqTask

from fairseq_regattn.classification.vectors import read_vectors
from fairseq_regattn.errors import UsageError

logger = logging.getLogger(__name__)


class ClassifyingTask(FairseqTask):
    """A class for a text, of which words may have pretrained vectors.

    Args:
        cfg: with `data`.
        dictionary: of words.
        labels: in the order of the classes.
    """

    name = ""
    criteria: Tuple[str, ...] = ()
    """Names of those that fit, for messages."""

    def __init__(self, cfg: Any, dictionary: Dictionary, labels: List[str]):
        super().__init__(cfg)
        self.dictionary = dictionary
        self.labels = labels

    def build_model(self, cfg: Any, from_checkpoint: bool = False) -> Any:
        """Build it, with pretrained vectors unless it is loaded from a checkpoint, which has them.

        Raises:
            UsageError: the file of vectors cannot be read, or has none of these words.
        """
        model = super().build_model(cfg, from_checkpoint)
        if not from_checkpoint and getattr(cfg, "embed_path", None) is not None:
            self._set_pretrained(model, cfg)
        return model

    def _set_pretrained(self, model: Any, cfg: Any) -> None:
        known = set(self.dictionary.symbols)
        try:
            words, vectors = read_vectors(Path(cfg.embed_path), known, cfg.embed_dim)
        except UsageError as error:
            size = f" (--embed-dim is {cfg.embed_dim})"
            raise UsageError(f"--embed-path {error}{size}") from None
        if not words:
            raise UsageError(f"--embed-path {cfg.embed_path} has no word of {self.cfg.data}")
        indices = torch.tensor([self.dictionary.index(word) for word in words])
        model.words.set_vectors(indices, torch.from_numpy(vectors))
        logger.info("vectors of %d of %d words", len(words), len(self.dictionary))

    def build_criterion(self, cfg: Any, *rest: Any, **more: Any) -> Any:
        """Build it; what else is passed depends on the version of fairseq.

        Raises:
            UsageError: the criterion does not classify, such as fairseq's default.
        """
        criterion = super().build_criterion(cfg, *rest, **more)
        if not isinstance(criterion, SentencePredictionCriterion):
            fit = " or ".join(self.criteria)
            raise UsageError(f"--task {self.name} needs --criterion {fit}, got {cfg._name}")
        return criterion

    def max_positions(self) -> None:
        """No limit but the model's."""

    @property
    def source_dictionary(self) -> Dictionary:
        return self.dictionary
