"""Word embeddings of which some are given and stay as they are."""

import torch
import torch.nn.functional as F
from torch import Tensor, nn


class Words(nn.Module):
    """Embeddings ``vocabulary x dim``; rows that have pretrained vectors are not trained.

    Both tables have a row for each word, so that a checkpoint can be loaded where the file of
    vectors is not.

    Args:
        vocabulary, dim: size of the table.
        padding: index of the padding symbol, whose embedding is zero.
        pretrained: there will be vectors (:meth:`set_vectors`).
    """

    def __init__(self, vocabulary: int, dim: int, padding: int, pretrained: bool):
        super().__init__()
        self.padding = padding
        self.weight = nn.Parameter(torch.empty(vocabulary, dim).uniform_(-0.05, 0.05))
        nn.init.zeros_(self.weight[padding].detach())
        self.pretrained = pretrained
        if pretrained:
            self.register_buffer("vectors", torch.zeros(vocabulary, dim))
            self.register_buffer("given", torch.zeros(vocabulary, dtype=torch.bool))

    def set_vectors(self, indices: Tensor, vectors: Tensor) -> None:
        """Give words ``n`` their vectors ``n x dim``, which are theirs from now on."""
        self.given[indices] = True
        self.vectors[indices] = vectors.to(self.vectors)

    def forward(self, tokens: Tensor) -> Tensor:
        """``...`` -> ``... x dim``."""
        trained = F.embedding(tokens, self.weight, self.padding)
        if not self.pretrained:
            return trained
        given = self.given[tokens].unsqueeze(-1)
        return torch.where(given, F.embedding(tokens, self.vectors), trained)
