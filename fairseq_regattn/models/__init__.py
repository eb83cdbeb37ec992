"""fairseq models; importing this registers them and their architectures."""

from fairseq_regattn.models import (  # noqa: F401
    regattn_classifier,
    regattn_lstm,
    regattn_nli,
    regattn_vqa,
)
