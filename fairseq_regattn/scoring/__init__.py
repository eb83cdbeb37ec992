"""Scores of translations and of alignments; nothing here imports fairseq."""
