"""Texts and pairs of texts to labels: reading them, predicting, and showing what was attended."""
