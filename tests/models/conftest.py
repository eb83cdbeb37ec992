"""Models small enough to be checked sentence by sentence."""

import pytest

from . import toy


@pytest.fixture
def build():
    """``build(seed=..., flag=value, ...)``: see :func:`toy.build`."""
    return toy.build
