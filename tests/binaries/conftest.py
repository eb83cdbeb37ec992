"""One corpus, and one trained model a mapping, for all tests here."""

import pytest

from . import commands


@pytest.fixture(scope="session")
def text(tmp_path_factory):
    """Folder of a parallel corpus as text: ``train.xx``, ``train.yy`` and so on."""
    return commands.write_corpus(tmp_path_factory.mktemp("corpus") / "text")


@pytest.fixture(scope="session")
def data(text, tmp_path_factory):
    """The corpus preprocessed."""
    return commands.preprocess(text, tmp_path_factory.mktemp("corpus") / "bin")


@pytest.fixture(scope="session")
def trained(data, tmp_path_factory):
    """``trained(name)``: checkpoint of a model trained with a mapping, then given large weights.

    What can be learned in a second attends to one place, random weights to all of them.
    """
    known = {}

    def get(name):
        if name not in known:
            out = tmp_path_factory.mktemp(name)
            commands.train(data, out, "--attention", name, "--max-epoch", 1)
            known[name] = out / "checkpoint_last.pt"
            commands.enlarge(known[name])
        return known[name]

    return get
