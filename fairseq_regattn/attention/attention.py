"""The attention module: scores -> mapping -> weights -> context."""

from typing import Any, NamedTuple, Tuple

import torch
from torch import Tensor, nn

from fairseq_regattn.attention.registry import BoundMapping
from fairseq_regattn.attention.scores import SCORES
from fairseq_regattn.errors import UsageError

_VERSION_SIZE = 256


class Memory(NamedTuple):
    """What is attended to: the encoder states of a batch, all in source coordinates."""

    keys: Tensor  # bsz x src_len x key_dim
    values: Tensor  # bsz x src_len x value_dim
    padding_mask: Tensor  # bsz x src_len, True = ignore


class Attention(nn.Module):
    """Attend to a memory with any registered mapping.

    The mapping's name and parameters travel with the weights, in the buffer `mapping_version`
    (text as integers, which survive fp16 and checkpoint averaging; fairseq's EMA leaves alone
    what is called a version), so that a checkpoint is not silently used with a mapping it was
    not trained with.

    Args:
        query_dim, value_dim: sizes of decoder and encoder states.
        mapping: from :func:`build_mapping`.
        score: general, dot or mlp.
        allow_swap: load checkpoints trained with another mapping all the same.

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
    ):
        super().__init__()
        if score not in SCORES:
            raise UsageError(f"--attention-score must be one of {', '.join(SCORES)}, got {score!r}")
        self.score = SCORES[score](query_dim, value_dim)
        self.mapping = mapping
        self.allow_swap = allow_swap
        text = str(mapping).encode()[:_VERSION_SIZE]
        padded = list(text.ljust(_VERSION_SIZE, b"\0"))
        self.register_buffer("mapping_version", torch.tensor(padded, dtype=torch.long))

    def remember(self, values: Tensor, padding_mask: Tensor) -> Memory:
        """Prepare encoder states ``bsz x src_len x value_dim``, once a batch."""
        return Memory(self.score.keys(values), values, padding_mask)

    def forward(self, query: Tensor, memory: Memory) -> Tuple[Tensor, Tensor]:
        """``bsz x query_dim`` -> context ``bsz x value_dim``, weights ``bsz x src_len``."""
        scores = self.score(query, memory.keys)
        weights = self.mapping(scores, memory.padding_mask)
        context = torch.bmm(weights.unsqueeze(1), memory.values).squeeze(1)
        return context, weights

    def _load_from_state_dict(self, state_dict: Any, prefix: str, *rest: Any) -> None:
        key = prefix + "mapping_version"
        if key in state_dict:
            trained = _text(state_dict[key])
            if trained != _text(self.mapping_version) and not self.allow_swap:
                raise UsageError(
                    f"the checkpoint was trained with attention {trained}, not {self.mapping};"
                    " to exchange the mapping on purpose, add --attention-swap when training,"
                    " 'attention_swap': True to --model-overrides otherwise"
                )
            state_dict = {**state_dict, key: self.mapping_version}  # it is this model's from now on
        super()._load_from_state_dict(state_dict, prefix, *rest)


def _text(version: Tensor) -> str:
    text = bytes(version.tolist()).rstrip(b"\0").decode(errors="replace")
    return text if text.isprintable() and text.endswith(")") else "mappings that differ, averaged"
