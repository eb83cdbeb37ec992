"""Reading what ``fairseq-generate`` wrote: alignments, their statistics, pictures, tables.

Needs numpy only; ``heatmap`` needs matplotlib (``pip install fairseq-regattn[plot]``).
"""

from fairseq_regattn.analysis.alignments import Hypothesis, read_generate_output
from fairseq_regattn.analysis.statistics import AlignmentStatistics, alignment_statistics
from fairseq_regattn.analysis.tables import Result, markdown_table, text_table

__all__ = [
    "AlignmentStatistics",
    "Hypothesis",
    "Result",
    "alignment_statistics",
    "markdown_table",
    "read_generate_output",
    "text_table",
]
