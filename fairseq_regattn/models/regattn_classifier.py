"""``--arch regattn_classifier``: attention over the words of a document."""

from typing import Any, Optional, Tuple

import torch
from fairseq.models import register_model
from torch import Tensor, nn

from fairseq_regattn.models.classification import AttentionClassifier
from fairseq_regattn.models.config import ClassifierConfig
from fairseq_regattn.models.packed_lstm import PackedLSTM


@register_model("regattn_classifier", dataclass=ClassifierConfig)
class RegAttnClassifierModel(AttentionClassifier):
    """A bidirectional LSTM, attention with a learned query, and an output layer on the context.

    Paper B's text model. With ``--attention-score mlp`` the scores are its additive
    self-attention, ``v' tanh(W states + b)``: all that the query adds there is a part of ``b``.
    """

    arch = "regattn_classifier"
    config = ClassifierConfig

    def __init__(self, cfg: Any, task: Any):
        units = 2 * cfg.hidden_size
        super().__init__(cfg, task, features=units, query_dim=cfg.attention_dim, value_dim=units)
        self.encoder = PackedLSTM(
            cfg.embed_dim, cfg.hidden_size, batch_first=True, bidirectional=True
        )
        self.query = nn.Parameter(torch.empty(1, cfg.attention_dim))

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
        query = self.query.expand(len(states), -1)
        context, weights = self.read(query, states, src_lengths)
        return self.dropout(context), weights
