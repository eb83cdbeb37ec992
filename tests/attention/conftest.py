"""A registry that a test may write to."""

import pytest

from fairseq_regattn.attention import ATTENTIONS


@pytest.fixture
def registry(monkeypatch):
    """``ATTENTIONS`` as it is, put back afterwards."""
    before = dict(ATTENTIONS)
    yield ATTENTIONS
    ATTENTIONS.clear()
    ATTENTIONS.update(before)
