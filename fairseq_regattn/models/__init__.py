"""fairseq models; importing this registers them and their architectures."""

from fairseq_regattn.models import regattn_lstm  # noqa: F401
