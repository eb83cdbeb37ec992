"""Query and encoder states -> context and weights; the ``--attention`` registry."""

from fairseq_regattn.attention.attention import Attention, Memory
from fairseq_regattn.attention.continuous import (
    LineAttention,
    PlaneAttention,
    build_attention,
    build_plane_attention,
)
from fairseq_regattn.attention.registry import (
    ATTENTIONS,
    CONTINUOUS,
    build_mapping,
    register_attention,
)
from fairseq_regattn.attention.scores import SCORES

__all__ = [
    "ATTENTIONS",
    "CONTINUOUS",
    "SCORES",
    "Attention",
    "LineAttention",
    "Memory",
    "PlaneAttention",
    "build_attention",
    "build_mapping",
    "build_plane_attention",
    "register_attention",
]
