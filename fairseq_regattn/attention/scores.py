"""How decoder and encoder states become scores (Luong et al. 2015; Bahdanau et al. 2015)."""

from typing import Dict, Type

import torch
from torch import Tensor, nn

from fairseq_regattn.errors import UsageError


class Score(nn.Module):
    """Scores of queries against the keys of their source sentence.

    `keys` does once a sentence what need not be done once a step.
    """

    def keys(self, values: Tensor) -> Tensor:
        """Encoder states ``bsz x src_len x value_dim`` -> ``bsz x src_len x key_dim``."""
        raise NotImplementedError

    def forward(self, queries: Tensor, keys: Tensor) -> Tensor:
        """``bsz x n x query_dim``, ``bsz x src_len x key_dim`` -> ``bsz x n x src_len``."""
        # queries first: with n = 1 the product the other way round is ten times slower
        return torch.bmm(queries, keys.transpose(1, 2))


class GeneralScore(Score):
    """``values' W query``."""

    def __init__(self, query_dim: int, value_dim: int):
        super().__init__()
        self.key_projection = nn.Linear(value_dim, query_dim, bias=False)

    def keys(self, values: Tensor) -> Tensor:
        return self.key_projection(values)


class DotScore(Score):
    """``values' query``; both must have one size."""

    def __init__(self, query_dim: int, value_dim: int):
        super().__init__()
        if query_dim != value_dim:
            raise UsageError(
                f"--attention-score dot needs encoder and decoder states of one size, got"
                f" {value_dim} (encoder) and {query_dim} (decoder); use general"
            )

    def keys(self, values: Tensor) -> Tensor:
        return values


class MLPScore(Score):
    """``v' tanh(W_v values + W_q query + b)``, hidden size that of the query."""

    def __init__(self, query_dim: int, value_dim: int):
        super().__init__()
        self.key_projection = nn.Linear(value_dim, query_dim)
        self.query_projection = nn.Linear(query_dim, query_dim, bias=False)
        self.output = nn.Linear(query_dim, 1, bias=False)

    def keys(self, values: Tensor) -> Tensor:
        return self.key_projection(values)

    def forward(self, queries: Tensor, keys: Tensor) -> Tensor:
        projected = self.query_projection(queries)
        hidden = torch.tanh(keys.unsqueeze(1) + projected.unsqueeze(2))
        return self.output(hidden).squeeze(3)  # of bsz x n x src_len x query_dim


SCORES: Dict[str, Type[Score]] = {"general": GeneralScore, "dot": DotScore, "mlp": MLPScore}


def check_score(name: str) -> None:
    """
    Raises:
        UsageError: there is no such score.
    """
    if name not in SCORES:
        raise UsageError(f"--attention-score must be one of {', '.join(SCORES)}, got {name!r}")
