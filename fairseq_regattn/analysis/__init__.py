"""Reading what ``fairseq-generate`` wrote: alignments, their statistics, pictures, tables.

``python -m fairseq_regattn.analysis RECORDS`` makes tables of many runs. Needs numpy only, but
for p values (sacrebleu) and ``heatmap``, which needs matplotlib (``fairseq-regattn[plot]``).
"""

from fairseq_regattn.analysis.alignments import Hypothesis, read_generate_output
from fairseq_regattn.analysis.records import Record
from fairseq_regattn.analysis.statistics import AlignmentStatistics, alignment_statistics
from fairseq_regattn.analysis.tables import markdown_table, text_table

__all__ = [
    "AlignmentStatistics",
    "Hypothesis",
    "Record",
    "alignment_statistics",
    "markdown_table",
    "read_generate_output",
    "text_table",
]
