"""``--arch regattn_classifier``: attention over the words of a document."""

from typing import Any, Optional, Tuple

import torch
from fairseq.models import register_model
from torch import Tensor, nn

from fairseq_regattn.attention.continuous import (
    PredictedLineAttention,
    build_predicted_attention,
)
from fairseq_regattn.errors import UsageError
from fairseq_regattn.models.classification import AttentionClassifier
from fairseq_regattn.models.config import ClassifierConfig, attention_of
from fairseq_regattn.models.packed_lstm import PackedLSTM


@register_model("regattn_classifier", dataclass=ClassifierConfig)
class RegAttnClassifierModel(AttentionClassifier):
    """A bidirectional LSTM, attention with a learned query, and an output layer on the context.

    Paper B's text model. With ``--attention-score mlp`` the scores are its additive
    self-attention, ``v' tanh(W states + b)``: all that the query adds there is a part of ``b``.
    With ``--attention-density predicted`` there is no query: the states themselves say where a
    density is.
    """

    arch = "regattn_classifier"
    config = ClassifierConfig

    def __init__(self, cfg: Any, task: Any):
        units = 2 * cfg.hidden_size
        super().__init__(cfg, task, features=units, query_dim=cfg.attention_dim, value_dim=units)
        self.encoder = PackedLSTM(
            cfg.embed_dim, cfg.hidden_size, batch_first=True, bidirectional=True
        )
        if not isinstance(self.attention, PredictedLineAttention):
            self.query = nn.Parameter(torch.empty(1, cfg.attention_dim))

    @staticmethod
    def build_attention(cfg: Any, query_dim: int, value_dim: int) -> nn.Module:
        """As ``--attention-density`` says.

        Raises:
            UsageError: an unknown one, or one that ``--attention`` cannot have.
        """
        kind = cfg.attention_density
        if kind not in ("moments", "predicted"):
            raise UsageError(f"--attention-density must be moments or predicted, got {kind!r}")
        if kind == "moments":
            return attention_of(cfg, query_dim, value_dim)
        return attention_of(cfg, query_dim, value_dim, build_predicted_attention)

    def attend(
        self,
        src_tokens: Tensor,
        src_lengths: Tensor,
        pair_tokens: Optional[Tensor],
        pair_lengths: Optional[Tensor],
    ) -> Tuple[Tensor, Tensor]:
        inputs = self.dropout(self.words(src_tokens))
        start = inputs.new_zeros(2, len(inputs), self.encoder.hidden_size)
        states, _ = self.encode(self.encoder, inputs, src_lengths, (start, start))
        if isinstance(self.attention, PredictedLineAttention):
            context, weights = self.attention(states, self.padding_mask(states, src_lengths))
        else:
            context, weights = self.read(self.query.expand(len(states), -1), states, src_lengths)
        return self.dropout(context), weights
