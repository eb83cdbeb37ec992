"""The recipe ``configs/quickstart.yaml`` on the corpus inside the package.

``scripts/quickstart.sh`` runs it; the stages are those of every recipe (``recipes/``).
"""
