"""``--criterion sentence_prediction_l2``: with a penalty on the weights."""

from dataclasses import dataclass, field
from typing import Any, Tuple

from fairseq.criterions import register_criterion
from fairseq.criterions.sentence_prediction import (
    SentencePredictionConfig,
    SentencePredictionCriterion,
)

from fairseq_regattn.errors import ArgumentError


@dataclass
class L2SentencePredictionConfig(SentencePredictionConfig):
    """Flags and YAML keys."""

    l2: float = field(
        default=0.0, metadata={"help": ">= 0; l2/2 times the squared weights are added to the loss"}
    )


@register_criterion("sentence_prediction_l2", dataclass=L2SentencePredictionConfig)
class L2SentencePrediction(SentencePredictionCriterion):
    """fairseq's ``sentence_prediction`` plus ``l2 / 2 * ||W||^2`` for each example, in training.

    ``W`` are all matrices but embeddings: no biases. ``--weight-decay`` of fairseq's Adam is not
    this, but decay apart from the gradient (AdamW). Validation logs the loss without the penalty.

    Raises:
        UsageError: l2 < 0.
    """

    l2 = 0.0

    @classmethod
    def build_criterion(cls, cfg: Any, task: Any) -> "L2SentencePrediction":
        if not 0 <= cfg.l2 < float("inf"):
            raise ArgumentError("--l2", cfg.l2, "a finite number >= 0")
        criterion = super().build_criterion(cfg, task)
        criterion.l2 = cfg.l2
        return criterion

    def forward(self, model: Any, sample: Any, reduce: bool = True) -> Tuple[Any, int, Any]:
        loss, sample_size, logging_output = super().forward(model, sample, reduce)
        if self.l2 and model.training:
            squares = [
                parameter.square().sum()
                for name, parameter in model.named_parameters()
                if parameter.dim() > 1 and "words." not in name
            ]
            # fairseq divides by the number of examples
            loss = loss + 0.5 * self.l2 * sample_size * sum(squares)
        return loss, sample_size, logging_output
