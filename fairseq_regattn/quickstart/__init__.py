"""From the embedded corpus to trained models, translations, scores and pictures.

``scripts/quickstart.sh`` runs it. The stages: corpus and subwords (``corpus``), training and
translation in processes side by side (``models``, ``jobs``, ``progress``), scores and pictures
(``report``). Each stage is skipped when its output is there (``stages``).
"""
