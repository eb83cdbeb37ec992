"""ROUGE with the digits of ROUGE-1.5.5; nothing here imports fairseq or torch."""

from fairseq_regattn.scoring.rouge.resampling import Interval
from fairseq_regattn.scoring.rouge.score import Average, Rouge, Score, System
from fairseq_regattn.scoring.rouge.text import Limit

__all__ = ["Average", "Interval", "Limit", "Rouge", "Score", "System"]
