"""fairseq tasks; importing this registers them."""

from fairseq_regattn.tasks import summarization, text_classification, vqa  # noqa: F401
