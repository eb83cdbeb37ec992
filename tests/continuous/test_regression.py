"""Ridge regression of values, against least squares solved directly."""

import copy
import math
import pickle
import threading

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from fairseq_regattn.continuous import LineBasis, PlaneBasis, RidgeRegression, positions
from fairseq_regattn.continuous import regression as regression_module
from fairseq_regattn.errors import ArgumentError

CHEAP = settings(deadline=None, max_examples=40, derandomize=True)


def line(penalty=0.01, margin=False, size=6):
    return RidgeRegression(LineBasis.spread(size, [0.1, 0.3]).double(), penalty, margin)


def least_squares(design, values, penalty):
    """Coefficients ``N x dim``: rows for the penalty below those of the points."""
    n = design.shape[1]
    rows = np.concatenate([design, math.sqrt(penalty) * np.eye(n)])
    targets = np.concatenate([values, np.zeros((n, values.shape[1]))])
    return np.linalg.lstsq(rows, targets, rcond=None)[0]


@given(st.integers(0, 40))
def test_positions(length):
    """The middles of equal bins."""
    expected = [(2 * number + 1) / (2 * length) for number in range(length)]
    assert positions(length).tolist() == pytest.approx(expected, abs=1e-15)


@given(st.integers(1, 40))
def test_positions_with_margins(length):
    """The same steps, and all that lie inside (-1/2, 3/2), no more and no fewer."""
    found = positions(length, margin=True)
    assert len(found) == (2 * length if length % 2 == 0 else 2 * length - 1)
    every = [(2 * number + 1) / (2 * length) for number in range(-2 * length, 3 * length)]
    inside = [t for t in every if -0.5 + 1e-9 < t < 1.5 - 1e-9]
    assert found.tolist() == pytest.approx(inside, abs=1e-12)


def test_no_positions():
    assert positions(0).shape == positions(0, margin=True).shape == (0,)


@CHEAP
@given(st.integers(1, 30), st.booleans(), st.floats(-3, 1).map(lambda power: 10**power))
def test_direct_solve(length, margin, penalty):
    regression = line(penalty, margin)
    values = torch.randn(1, length, 3, dtype=torch.float64)
    mask = torch.zeros(1, length, dtype=torch.bool)
    design = regression.basis(positions(length, margin)).numpy()
    targets = np.zeros((len(design), 3))
    before = length // 2 if margin else 0
    targets[before : before + length] = values[0]
    expected = least_squares(design, targets, penalty)
    np.testing.assert_allclose(regression.coefficients(values, mask)[0], expected, atol=1e-9)


@pytest.mark.parametrize("margin", [False, True])
@pytest.mark.parametrize(("height", "width"), [(4, 4), (5, 3), (2, 7), (1, 1)])
def test_direct_solve_of_a_grid(height, width, margin):
    regression = RidgeRegression(PlaneBasis.grid(3, 0.05).double(), 0.01, margin)
    values = torch.randn(height, width, 2, dtype=torch.float64)
    down, right = positions(height, margin), positions(width, margin)
    points = torch.stack(torch.meshgrid(down, right, indexing="ij"), -1)
    targets = torch.zeros(*points.shape[:2], 2, dtype=torch.float64)
    above, left = (height // 2, width // 2) if margin else (0, 0)
    targets[above : above + height, left : left + width] = values
    design = regression.basis(points).flatten(0, 1).numpy()
    expected = least_squares(design, targets.flatten(0, 1).numpy(), 0.01)
    found = regression.matrix(height, width).T @ values.flatten(0, 1)
    np.testing.assert_allclose(found, expected, atol=1e-9)


def test_the_first_axis_goes_down():
    """What is bright at the top is so where the first coordinate is small."""
    regression = RidgeRegression(PlaneBasis.grid(5, 0.02))
    image = torch.zeros(6, 6)
    image[0] = 1
    coefficients = regression.matrix(6, 6).T @ image.flatten()
    top, bottom, left = (
        regression.basis(torch.tensor(place)) @ coefficients
        for place in ([0.1, 0.5], [0.9, 0.5], [0.5, 0.1])
    )
    assert top > 0.8
    assert max(abs(bottom), abs(left)) < 0.2


def test_a_margin_lets_values_fall_to_zero():
    values = torch.ones(1, 20, 1, dtype=torch.float64)
    mask = torch.zeros(1, 20, dtype=torch.bool)
    centres = torch.linspace(-0.5, 1.5, 41, dtype=torch.float64)
    basis = LineBasis(centres, torch.full_like(centres, 0.05))
    outside = basis(torch.tensor([-0.3, 1.3], dtype=torch.float64))
    coefficients = RidgeRegression(basis, 0.01, margin=True).coefficients(values, mask)[0]
    assert (outside @ coefficients).abs().max() < 0.1
    inside = basis(torch.linspace(0.1, 0.9, 9, dtype=torch.float64)) @ coefficients
    assert inside.flatten().tolist() == pytest.approx([1] * 9, abs=0.1)


@CHEAP
@given(st.data())
def test_padding_changes_nothing(data):
    """Wherever it is, of whatever length, whatever is in it."""
    lengths = data.draw(st.lists(st.integers(0, 7), min_size=1, max_size=4))
    total = max(lengths) + data.draw(st.integers(0, 3))
    regression = line(margin=data.draw(st.booleans()))
    values = torch.randn(len(lengths), total, 2, dtype=torch.float64)
    mask = torch.ones(len(lengths), total, dtype=torch.bool)
    for row, length in enumerate(lengths):
        mask[row, data.draw(st.permutations(range(total)))[:length]] = False
    together = regression.coefficients(values, mask)
    for row, length in enumerate(lengths):
        alone = values[row, ~mask[row]].unsqueeze(0)
        expected = regression.coefficients(alone, torch.zeros(1, length, dtype=torch.bool))
        torch.testing.assert_close(together[row], expected[0], rtol=0, atol=1e-12)
    moved = values + mask.unsqueeze(-1) * 100
    assert torch.equal(regression.coefficients(moved, mask), together)


def test_gradient_of_values():
    mask = torch.tensor([[False, True, False, False]])
    values = torch.randn(1, 4, 2, dtype=torch.float64, requires_grad=True)
    assert torch.autograd.gradcheck(lambda given: line().coefficients(given, mask), values)


@pytest.mark.parametrize("length", [0, 4])
def test_nothing_but_padding(length):
    mask = torch.ones(2, length, dtype=torch.bool)
    found = line().coefficients(torch.randn(2, length, 3, dtype=torch.float64), mask)
    assert torch.equal(found, torch.zeros(2, 6, 3, dtype=torch.float64))


def test_once_a_length(monkeypatch):
    regression = line()
    solved = []
    solve = regression._solve
    monkeypatch.setattr(regression, "_solve", lambda size: solved.append(size) or solve(size))
    mask = torch.tensor([[False] * 5, [False] * 3 + [True] * 2, [True] * 2 + [False] * 3])
    for _ in range(3):
        regression.coefficients(torch.randn(3, 5, 2), mask)
    assert sorted(solved) == [(3,), (5,)]


def test_what_is_kept_is_bounded(monkeypatch):
    """The sizes used last are kept, and results do not depend on it."""
    monkeypatch.setattr(regression_module, "KEPT", 6 * 20)
    regression = line()
    expected = line().matrix(8)
    for length in range(1, 40):
        torch.testing.assert_close(regression.matrix(8), expected, rtol=0, atol=0)
        assert regression.matrix(length).shape == (length, 6)
        kept = sum(matrix.numel() for matrix in regression._matrices.values())
        assert kept <= 6 * max(20, length)
        assert length > 12 or (8,) in regression._matrices


def test_another_precision_is_another_matrix():
    """A basis that was rounded on the way keeps no matrix of what it was before."""
    regression = line()
    regression.matrix(5)
    rounded = regression.half().double()
    fresh = RidgeRegression(copy.deepcopy(rounded.basis))
    assert torch.equal(rounded.matrix(5), fresh.matrix(5))
    assert regression.float().matrix(5).dtype == torch.float32
    assert regression.half().matrix(5).dtype == torch.float16


def test_computed_in_float64():
    """And rounded once, at the end."""
    basis = LineBasis.spread(60, [0.01, 0.3])
    found = RidgeRegression(basis).matrix(50)
    assert found.dtype == torch.float32
    assert torch.equal(found, RidgeRegression(basis.double_precision()).matrix(50).float())


def test_default_dtype():
    torch.set_default_dtype(torch.float64)
    try:
        regression = RidgeRegression(LineBasis.spread(4, [0.1]))
        assert regression.matrix(3).dtype == torch.float64
        PlaneBasis.grid(2, 0.1)
    finally:
        torch.set_default_dtype(torch.float32)


def test_inference_before_training():
    """What inference kept serves training."""
    regression = line()
    with torch.inference_mode():
        regression.matrix(4)
    assert not regression.matrix(4).is_inference()
    values = torch.randn(4, 2, dtype=torch.float64, requires_grad=True)
    (regression.matrix(4).T @ values).sum().backward()
    assert values.grad is not None


def test_copies():
    regression = line()
    expected = regression.matrix(4)
    for other in (copy.deepcopy(regression), pickle.loads(pickle.dumps(regression))):
        assert torch.equal(other.matrix(4), expected)
        assert torch.equal(other.matrix(5), regression.matrix(5))


def test_threads(monkeypatch):
    """They share what is kept, and evict from under each other."""
    monkeypatch.setattr(regression_module, "KEPT", 100)
    regression, failures = line(), []
    expected = [line().matrix(length) for length in range(9)]

    def work(seed):
        try:
            for length in np.random.default_rng(seed).integers(0, 9, 200):
                assert torch.equal(regression.matrix(int(length)), expected[length])
        except Exception as error:
            failures.append(error)

    threads = [threading.Thread(target=work, args=(seed,)) for seed in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failures


@pytest.mark.parametrize("penalty", [0, -1.0, math.nan, math.inf])
def test_wrong_penalty(penalty):
    with pytest.raises(ArgumentError, match=f"penalty must be a finite number > 0, got {penalty}"):
        line(penalty)


def test_copies_and_files_hold_no_matrices():
    regression = RidgeRegression(LineBasis.spread(4, [0.1]))
    empty, expected = len(pickle.dumps(regression)), regression.matrix(20)
    for length in range(100, 200):
        regression.matrix(length)
    assert len(pickle.dumps(regression)) == empty
    for copied in (pickle.loads(pickle.dumps(regression)), copy.deepcopy(regression)):
        assert torch.equal(copied.matrix(20), expected)
    assert regression.matrix(20) is expected
