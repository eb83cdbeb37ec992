"""Texts for hypothesis: of few words, so that many are shared."""

from hypothesis import settings
from hypothesis import strategies as st

CHEAP = settings(deadline=None, max_examples=40, derandomize=True)

WORD = st.sampled_from(["a", "b", "c", "The", "cat", "U2", "isn't", "x-y", ".", "--", "8"])
LINE = st.lists(WORD, max_size=8).map(" ".join)
TEXT = st.lists(LINE, min_size=1, max_size=3).map("\n".join)
