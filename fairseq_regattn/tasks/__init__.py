"""fairseq tasks; importing this registers them."""

from fairseq_regattn.tasks import summarization  # noqa: F401
