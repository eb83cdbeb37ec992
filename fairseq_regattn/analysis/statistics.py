"""How sparse, how fused and how spread attention weights are."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True)
class AlignmentStatistics:
    """Means over all target steps of all sentences, each step counting once.

    A classifier has one step a text.

    Attributes:
        steps: how many target steps there were, ends of sentences included.
        nonzero: share of source positions whose weight is not zero (1 for softmax, up to the
            rounding of what was printed).
        segments: runs of neighbours that have the same non-zero weight.
        entropy: of the weights, in bits.
    """

    steps: int
    nonzero: float
    segments: float
    entropy: float


def alignment_statistics(alignments: Iterable[np.ndarray]) -> AlignmentStatistics:
    """Statistics of weight matrices, each tgt_len x src_len.

    Weights read from ``fairseq-generate`` have six decimals, so a weight below 5e-7 counts as
    zero, and neighbours that differ by less than 1e-6 as equal.

    Raises:
        ValueError: there is no row of weights at all.
    """
    nonzero, segments, entropy = [], [], []
    for weights in alignments:
        nonzero.append((weights != 0).mean(axis=1))
        segments.append(count_segments(weights))
        entropy.append(_entropy(weights))
    if not sum(map(len, nonzero)):
        raise ValueError("no alignments to take statistics of")
    return AlignmentStatistics(
        steps=sum(map(len, nonzero)),
        nonzero=float(np.concatenate(nonzero).mean()),
        segments=float(np.concatenate(segments).mean()),
        entropy=float(np.concatenate(entropy).mean()),
    )


def count_segments(weights: np.ndarray) -> np.ndarray:
    """Runs of equal non-zero neighbours in each row: tgt_len x src_len -> tgt_len."""
    starts = weights != 0  # tgt_len x src_len
    starts[:, 1:] &= weights[:, 1:] != weights[:, :-1]
    return starts.sum(axis=1)


def longest_segment(weights: np.ndarray) -> np.ndarray:
    """Length of the longest run of equal non-zero neighbours: tgt_len x src_len -> tgt_len."""
    longest = run = (weights[:, 0] != 0).astype(int)  # tgt_len
    for j in range(1, weights.shape[1]):
        same = (weights[:, j] == weights[:, j - 1]) & (weights[:, j] != 0)
        run = np.where(same, run + 1, weights[:, j] != 0)
        longest = np.maximum(longest, run)
    return longest


def _entropy(weights: np.ndarray) -> np.ndarray:
    """In bits, with 0 log 0 = 0: tgt_len x src_len -> tgt_len."""
    logs = np.log2(weights, where=weights > 0, out=np.zeros_like(weights))
    return -(weights * logs).sum(axis=1) + 0.0  # + 0.0: no minus zero
