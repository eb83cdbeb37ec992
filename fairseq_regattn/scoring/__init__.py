"""Scores of translations, summaries and alignments; only ``scorer`` imports fairseq."""
