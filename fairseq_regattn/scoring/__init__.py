"""Scores of translations, summaries, labels and alignments; only ``scorer`` imports fairseq."""

from typing import NamedTuple


class Score(NamedTuple):
    """A number with what is needed to make it again: a signature such as sacreBLEU's."""

    value: float
    signature: str
