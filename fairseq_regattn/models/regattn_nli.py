"""``--arch regattn_nli``: the hypothesis attends to the premise."""

from typing import Any, Optional, Tuple

import torch
from fairseq.models import register_model
from torch import Tensor, nn

from fairseq_regattn.models.classification import AttentionClassifier
from fairseq_regattn.models.config import NLIConfig


@register_model("regattn_nli", dataclass=NLIConfig)
class RegAttnNLIModel(AttentionClassifier):
    """The GRU model of paper A's 4.1, after Rocktaschel et al. (2016), with any mapping.

    Words of both texts are projected by one linear layer to the hidden size. A GRU reads the
    premise, from a learned state; another one goes on from its last state with ``<s>`` and the
    hypothesis. With the last state ``h`` of that, the model attends to the premise (the additive
    scores of ``--attention-score mlp`` are the paper's), and ``tanh(W [context; h] + b)`` is
    classified.

    GRUs are torch's, whose candidate is ``tanh(W x + b + r * (U h + c))``: the paper's code has
    the reset gate inside of the product, ``U (r * h)``. Dropout acts on embeddings and on ``h``.
    """

    arch = "regattn_nli"
    config = NLIConfig
    reads = "pairs"

    def __init__(self, cfg: Any, task: Any):
        hidden = cfg.hidden_size
        super().__init__(cfg, task, features=hidden, query_dim=hidden, value_dim=hidden)
        self.projection = nn.Linear(cfg.embed_dim, hidden)
        self.premise = nn.GRU(hidden, hidden, batch_first=True)
        self.hypothesis = nn.GRU(hidden, hidden, batch_first=True)
        self.start = nn.Parameter(torch.zeros(hidden))
        self.combination = nn.Linear(2 * hidden, hidden)

    def attend(
        self,
        src_tokens: Tensor,
        src_lengths: Tensor,
        pair_tokens: Optional[Tensor],
        pair_lengths: Optional[Tensor],
    ) -> Tuple[Tensor, Tensor]:
        assert pair_tokens is not None  # for the type checker: the task gives them
        assert pair_lengths is not None
        start = self.start.expand(1, len(src_tokens), -1).contiguous()
        premise, last = self.encode(self.premise, self._embed(src_tokens), src_lengths, start)
        _, last = self.encode(self.hypothesis, self._embed(pair_tokens), pair_lengths, last)
        state = self.dropout(last.squeeze(0))  # bsz x hidden
        context, weights = self.read(state, premise, src_lengths)
        return torch.tanh(self.combination(torch.cat([context, state], 1))), weights

    def _embed(self, tokens: Tensor) -> Tensor:
        return self.projection(self.dropout(self.words(tokens)))
