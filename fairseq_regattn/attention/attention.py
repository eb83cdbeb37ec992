"""The attention module: scores -> mapping -> weights -> context."""

from typing import Any, NamedTuple, Optional, Tuple

import torch
from torch import Tensor, nn

from fairseq_regattn.attention.registry import BoundMapping
from fairseq_regattn.attention.scores import SCORES, check_score
from fairseq_regattn.errors import UsageError

_VERSION_SIZE = 256


class Memory(NamedTuple):
    """What is attended to: the encoder states of a batch, all in source coordinates.

    The last two are what continuous attention reads, without any elements elsewhere.
    """

    keys: Tensor  # bsz x src_len x key_dim
    values: Tensor  # bsz x src_len x value_dim
    padding_mask: Tensor  # bsz x src_len, True = ignore
    places: Tensor  # bsz x src_len x axes
    coefficients: Tensor  # bsz x basis functions x value_dim

    def for_rows(self, sentences: Tensor) -> "Memory":
        """The memory of rows that read these `sentences`, numbers from 0 to bsz - 1.

        Beams of one sentence share its entry, if every sentence has equally many; row r reads
        entry ``r // (rows / entries)``.
        """
        kept, beams = torch.unique_consecutive(sentences, return_counts=True)
        if bool((beams != beams[:1]).any()):
            kept = sentences
        if torch.equal(kept, torch.arange(len(self.keys), device=kept.device)):
            return self
        return Memory(*(part.index_select(0, kept) for part in self))


class Named(nn.Module):
    """Its name and parameters travel with its weights, so that a checkpoint is not silently used
    with a mapping it was not trained with.

    In the buffer `mapping_version`: text as integers, which survive fp16 and checkpoint averaging;
    fairseq's EMA leaves alone what is called a version.

    Args:
        name: what it is called in checkpoints, with parameters in parentheses.
        allow_swap: load checkpoints trained with another mapping all the same.

    Raises:
        UsageError: (on loading) another mapping.
    """

    def __init__(self, name: str, allow_swap: bool = False):
        super().__init__()
        self.allow_swap = allow_swap
        self.name = name
        text = self.name.encode()[:_VERSION_SIZE]
        padded = list(text.ljust(_VERSION_SIZE, b"\0"))
        self.register_buffer("mapping_version", torch.tensor(padded, dtype=torch.long))

    def _load_from_state_dict(self, state_dict: Any, prefix: str, *rest: Any) -> None:
        key = prefix + "mapping_version"
        if key in state_dict:
            trained = _text(state_dict[key])
            if trained != _text(self.mapping_version) and not self.allow_swap:
                raise UsageError(
                    f"the checkpoint was trained with attention {trained}, not {self.name};"
                    " to exchange the mapping on purpose, add --attention-swap when training,"
                    " 'attention_swap': True to --model-overrides otherwise"
                )
            state_dict = {**state_dict, key: self.mapping_version}  # it is this model's from now on
        super()._load_from_state_dict(state_dict, prefix, *rest)


class Attention(Named):
    """Attend to a memory with any registered mapping.

    Args:
        query_dim, value_dim: sizes of decoder and encoder states.
        mapping: from :func:`build_mapping`.
        score: general, dot or mlp.
        allow_swap: load checkpoints trained with another mapping all the same.
        name: what it is called in checkpoints, with parameters in parentheses (default: the
            mapping).

    Raises:
        UsageError: unknown score, sizes that do not fit it, or (on loading) another mapping.
    """

    def __init__(
        self,
        query_dim: int,
        value_dim: int,
        mapping: BoundMapping,
        score: str = "general",
        allow_swap: bool = False,
        name: Optional[str] = None,
    ):
        super().__init__(str(mapping) if name is None else name, allow_swap)
        check_score(score)
        self.score = SCORES[score](query_dim, value_dim)
        self.mapping = mapping

    def remember(self, values: Tensor, padding_mask: Tensor) -> Memory:
        """Prepare encoder states ``bsz x src_len x value_dim``, once a batch."""
        keys = self.score.keys(values)
        return Memory(keys, values, padding_mask, values[..., :0], values[:, :0])

    def remember_grid(self, grid: Tensor) -> Memory:
        """Prepare features ``bsz x height x width x value_dim``; cells are read row by row."""
        values = grid.flatten(1, 2)
        return self.remember(values, values.new_zeros(values.shape[:2], dtype=torch.bool))

    def forward(self, queries: Tensor, memory: Memory) -> Tuple[Tensor, Tensor]:
        """Attend to each sentence with any number of queries: steps, beams.

        Args:
            queries: ``rows x n x query_dim``, rows a multiple of bsz.
            memory: of bsz sentences; neighbouring rows read the same (:meth:`Memory.for_rows`).

        Returns:
            Context ``rows x n x value_dim`` and weights ``rows x n x src_len``.
        """
        rows, n = queries.shape[:2]
        bsz = len(memory.keys)
        queries = queries.reshape(bsz, rows * n // max(1, bsz), queries.size(2))
        context, weights = self.read(self.weigh(queries, memory), memory)
        return (
            context.view(rows, n, context.size(2)),
            weights.reshape(rows, n, weights.size(2)),
        )

    def weigh(self, queries: Tensor, memory: Memory) -> Tensor:
        """The mapping's weights ``bsz x n x src_len`` for queries ``bsz x n x query_dim``."""
        scores = self.score(queries, memory.keys)
        mask = memory.padding_mask.unsqueeze(1).expand_as(scores)
        # mappings that users register are handed a matrix, and a mask of its shape
        return self.mapping(scores.flatten(0, 1), mask.flatten(0, 1)).view_as(scores)

    def read(self, weights: Tensor, memory: Memory) -> Tuple[Tensor, Tensor]:
        """The context of `weights` ``bsz x n x src_len``, and the weights that are shown."""
        return torch.bmm(weights, memory.values), weights


def _text(version: Tensor) -> str:
    text = bytes(version.tolist()).rstrip(b"\0").decode(errors="replace")
    return text if text.isprintable() and text.endswith(")") else "mappings that differ, averaged"
