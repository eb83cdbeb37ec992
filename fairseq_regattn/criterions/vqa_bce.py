"""``--criterion vqa_bce``: a probability of its own for each answer, trained on soft scores."""

from typing import Any, Tuple

import torch
import torch.nn.functional as F
from fairseq.criterions import register_criterion
from fairseq.criterions.sentence_prediction import (
    SentencePredictionConfig,
    SentencePredictionCriterion,
)
from fairseq.logging import metrics

from fairseq_regattn.vqa.answers import ENOUGH, PEOPLE


@register_criterion("vqa_bce", dataclass=SentencePredictionConfig)
class VQABinaryCrossEntropy(SentencePredictionCriterion):
    """Binary cross entropy, summed over the answers, with ``min(people who gave it / 3, 1)``.

    What models of VQA-v2, those of paper B too, are trained with. For ``--task vqa``; logs the
    accuracy (of the most common answer) and VQA's, in percent. Where only one answer to a question
    is known, all ten people are taken to have given it.
    """

    def forward(self, model: Any, sample: Any, reduce: bool = True) -> Tuple[Any, int, Any]:
        """
        Args:
            sample: of ``VQADataset``.
        """
        logits, _ = model(
            **sample["net_input"], classification_head_name=self.classification_head_name
        )
        counts = sample["counts"].to(logits.device, torch.float)  # bsz x answers
        scores = (counts / ENOUGH).clamp(max=1)
        loss = F.binary_cross_entropy_with_logits(logits.float(), scores, reduction="sum")
        best = logits.argmax(1)
        given = counts.gather(1, best.unsqueeze(1)).squeeze(1)
        size = len(best)
        return (
            loss,
            size,
            {
                "loss": loss.data,
                "ntokens": sample["ntokens"],
                "nsentences": size,
                "sample_size": size,
                "ncorrect": (best == sample["target"]).sum(),
                "vqa_correct": vqa_accuracy(given).sum(),
            },
        )

    @staticmethod
    def reduce_metrics(logging_outputs: Any) -> None:
        SentencePredictionCriterion.reduce_metrics(logging_outputs)
        size = sum(log.get("nsentences", 0) for log in logging_outputs)
        right = sum(log.get("vqa_correct", 0) for log in logging_outputs)
        if size:
            metrics.log_scalar("vqa_accuracy", 100.0 * right / size, size, round=2)


def vqa_accuracy(counts: torch.Tensor) -> torch.Tensor:
    """``answers.accuracy`` of counts, of any shape."""
    others, all_of_them = ((counts - out).div(ENOUGH).clamp(max=1) for out in (1, 0))
    return (counts * others + (PEOPLE - counts) * all_of_them) / PEOPLE
