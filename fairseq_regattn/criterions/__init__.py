"""fairseq criteria; importing this registers them."""

from fairseq_regattn.criterions import sentence_prediction_l2, vqa_bce  # noqa: F401
