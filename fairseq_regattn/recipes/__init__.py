"""From a recipe (``configs/**.yaml``) and raw text to trained models, scores and a report."""
