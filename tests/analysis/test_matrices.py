"""Attention matrices of a run in one file."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fairseq_regattn.analysis import Hypothesis
from fairseq_regattn.analysis.matrices import read_matrices, write_matrices
from fairseq_regattn.errors import UsageError

TOKENS = st.lists(st.text(st.characters(exclude_categories=["C", "Z"]), min_size=1), max_size=4)


def hypothesis(sample_id=0, source=("a",), target=("b",), text="b", score=-0.5):
    weights = np.arange((len(target) + 1) * (len(source) + 1)) / 1000
    weights = weights.reshape(len(target) + 1, len(source) + 1)
    return Hypothesis(sample_id, [*source], [*target], None, text, score, weights=weights)


@given(st.dictionaries(st.integers(0, 10**6), st.tuples(TOKENS, TOKENS), max_size=4))
def test_round_trip_in_the_order_given(tmp_path_factory, sentences):
    path = tmp_path_factory.mktemp("matrices") / "matrices.npz"
    written = [
        hypothesis(number, source, target, text=" ".join(target), score=-number / 7)
        for number, (source, target) in sentences.items()
    ]
    write_matrices(path, written)
    read = read_matrices(path)
    assert len(read) == len(written)
    for ours, theirs in zip(read, written):
        assert ours.weights.dtype == np.float32
        assert ours.weights.shape == theirs.weights.shape
        np.testing.assert_array_equal(ours.weights, theirs.weights.astype(np.float32))
        for field in ("sample_id", "source", "target", "text", "score", "reference"):
            assert getattr(ours, field) == getattr(theirs, field)
            assert type(getattr(ours, field)) is type(getattr(theirs, field))


def test_numpy_alone_reads_it(tmp_path):
    path = tmp_path / "softmax.matrices"  # numpy must not add .npz
    write_matrices(path, [hypothesis(3, ["▁Ein", "s"], ["▁one"])])
    with np.load(path, allow_pickle=False) as arrays:
        assert sorted(arrays) == [
            "scores", "sentences", "source_3", "target_3", "texts", "weights_3"
        ]  # fmt: skip
        assert arrays["source_3"].tolist() == ["▁Ein", "s"]
        assert arrays["weights_3"].shape == (2, 3)
    assert [entry.name for entry in tmp_path.iterdir()] == ["softmax.matrices"]
    again = tmp_path / "again"
    write_matrices(again, [hypothesis(3, ["▁Ein", "s"], ["▁one"])])
    assert again.read_bytes() == path.read_bytes()


def test_what_cannot_be_written_is_refused(tmp_path):
    bare = hypothesis(4)
    bare.weights = None
    with pytest.raises(UsageError, match="sentence 4 has no weights"):
        write_matrices(tmp_path / "m.npz", [bare])
    with pytest.raises(UsageError, match="sentence 4 has two hypotheses"):
        write_matrices(tmp_path / "m.npz", [hypothesis(4), hypothesis(4)])
    assert not list(tmp_path.iterdir())


def test_other_files_are_refused(tmp_path):
    path = tmp_path / "m.npz"
    write_matrices(path, [hypothesis()])
    whole = path.read_bytes()
    np.savez(tmp_path / "other.npz", weights=np.ones(2))
    np.save(tmp_path / "one.npy", np.ones(2))
    (tmp_path / "text").write_text("0-0\n")
    (tmp_path / "empty").write_bytes(b"")
    (tmp_path / "half").write_bytes(whole[: len(whole) // 2])
    for name in ("other.npz", "one.npy", "text", "empty", "half"):
        with pytest.raises(UsageError, match=f"{name} holds no attention matrices"):
            read_matrices(tmp_path / name)
    with pytest.raises(FileNotFoundError):
        read_matrices(tmp_path / "missing")
