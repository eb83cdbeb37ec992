"""Query and encoder states -> context and weights; the ``--attention`` registry."""

from fairseq_regattn.attention.attention import Attention, Memory
from fairseq_regattn.attention.registry import ATTENTIONS, build_mapping, register_attention
from fairseq_regattn.attention.scores import SCORES

__all__ = [
    "ATTENTIONS",
    "SCORES",
    "Attention",
    "Memory",
    "build_mapping",
    "register_attention",
]
