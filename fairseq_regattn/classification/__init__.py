"""Text and pairs of texts with labels: prepared for fairseq, predicted, and shown."""
