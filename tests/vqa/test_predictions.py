"""Predictions as lines, and what is drawn of them."""

import json
import math
from pathlib import Path

import numpy as np
import pytest
import torch

from fairseq_regattn.continuous import Paraboloid, PlaneGaussian
from fairseq_regattn.errors import UsageError
from fairseq_regattn.vqa.plot import draw, ellipses
from fairseq_regattn.vqa.predictions import Prediction, read_predictions

DISCRETE = Prediction(3, 7, "is it ?", "no", 0.25, "softmax(gamma=1.0)", [[0.5, 0.25], [0.25, 0.0]])
MEAN, COVARIANCE = [0.25, 0.5], [[0.02, 0.005], [0.005, 0.01]]
DENSE = Prediction(
    4,
    7,
    "is it ü ?",
    "no",
    0.25,
    "continuous_softmax(gamma=1.0)",
    [[0.5, 0.5]],
    MEAN,
    COVARIANCE,
    "yes",
    "is it",
    "yes/no",
    0.0,
)


def test_they_are_read_back(tmp_path):
    path = tmp_path / "x.jsonl"
    path.write_text("".join(f"{one.to_line()}\n" for one in (DISCRETE, DENSE)), encoding="utf-8")
    assert list(read_predictions(path)) == [DISCRETE, DENSE]
    assert '"score": 0.0' in DENSE.to_line()
    assert "gold" not in DISCRETE.to_line()
    assert "mean" not in DISCRETE.to_line()


def test_small_variances_survive(tmp_path):
    tiny = [[1.2345e-6, 1.1e-6], [1.1e-6, 1e-6]]
    path = tmp_path / "x.jsonl"
    found = Prediction(1, 1, "q", "a", 1 / 3, "x()", [[1.0]], [1 / 3, 0.5], tiny)
    path.write_text(found.to_line() + "\n")
    [read] = read_predictions(path)
    np.testing.assert_allclose(read.covariance, tiny, atol=1e-9)
    assert read.probability == 0.333333


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"id": "3"}, "id must be a whole number, got '3'"),
        ({"odd": 1}, "not a prediction"),
        ({"weights": [[1], [1, 2]]}, "weights must be rows of as many numbers"),
        ({"weights": []}, "weights must be rows"),
        ({"weights": [[math.nan]]}, "weights must be rows"),
        ({"probability": None}, "probability must be a number"),
        ({"mean": [1]}, "mean must be two numbers"),
        ({"mean": None}, "mean and covariance belong together"),
        ({"covariance": [[1, 2], [2, 1]]}, "covariance must be .* positive definite"),
        ({"covariance": [[1, 0.5], [0.4, 1]]}, "covariance must be .* symmetric"),
        ({"covariance": 3}, "covariance must be"),
        ({"weights": [[1.5, 0]]}, "weights must be rows of as many numbers from 0 to 1"),
        ({"weights": [[-0.5, 1]]}, "weights must be rows of as many numbers from 0 to 1"),
        ({"probability": 1.5}, "probability must be a number from 0 to 1"),
        ({"score": "1"}, "score must be a number from 0 to 1"),
        ({"gold": ["no"]}, "gold must be a text"),
        ({"type": None}, "type must be a text"),
        ({"answer_type": 3}, "answer_type must be a text"),
        ({"question": "\ud800"}, "half a surrogate pair"),
        ({"weights": json.loads("[" * 500 + "]" * 500)}, "weights must be rows"),
    ],
)
def test_malformed_lines(changes, message, tmp_path):
    path = tmp_path / "x.jsonl"
    content = {**json.loads(DENSE.to_line()), **changes}
    path.write_text(f"{DISCRETE.to_line()}\n{json.dumps(content)}\n")
    with pytest.raises(UsageError, match=rf"x\.jsonl:2: {message}"):
        list(read_predictions(path))


def test_no_predictions(tmp_path):
    with pytest.raises(UsageError, match="nowhere: no such file"):
        list(read_predictions(tmp_path / "nowhere"))
    (tmp_path / "x").write_bytes(b"\xff\n")
    with pytest.raises(UsageError, match="x:1: not a prediction"):
        list(read_predictions(tmp_path / "x"))


def test_nested_too_deeply(tmp_path):
    (tmp_path / "x").write_bytes(b"[" * 100_000)
    with pytest.raises(UsageError, match="x:1: not a prediction"):
        list(read_predictions(tmp_path / "x"))


def test_ellipses_are_those_of_the_density():
    mean, covariance = (torch.tensor(part).double() for part in (MEAN, COVARIANCE))
    assert ellipses(DISCRETE) == []
    one, two = ellipses(DENSE)
    gaussian = PlaneGaussian.from_moments(mean, covariance)
    for deviations, points in ((1, one), (2, two)):
        heights = gaussian.pdf(torch.from_numpy(points)) / gaussian.pdf(mean)
        wanted = torch.full_like(heights, math.exp(-(deviations**2) / 2))
        torch.testing.assert_close(heights, wanted, atol=1e-3, rtol=0)
    values = {**vars(DENSE), "attention": "continuous_sparsemax(gamma=1.0)"}
    [border] = ellipses(Prediction(**values))
    paraboloid = Paraboloid.from_moments(mean, covariance)
    outwards = torch.from_numpy(border) - mean
    assert (paraboloid.pdf(mean + 1.01 * outwards) == 0).all()
    assert (paraboloid.pdf(mean + 0.99 * outwards) > 0).all()


def panel(prediction, image, tmp_path):
    pytest.importorskip("matplotlib")
    draw({"a": [prediction], "b$": [prediction]}, {7: image}, tmp_path / "x.png")
    from matplotlib.image import imread

    return imread(tmp_path / "x.png")


def test_pictures_show_where_the_weight_is(tmp_path):
    """A green cell among white ones: the only one that is not darkened."""
    image = np.full((4, 4, 3), 255, dtype=np.uint8)
    image[:2, 2:] = (0, 255, 0)
    looking = Prediction(1, 7, "q", "a", 1.0, "softmax()", [[0.0, 1.0], [0.0, 0.0]])
    drawn = panel(looking, image, tmp_path)[..., :3]
    green = (drawn[..., 1] > 0.9) & (drawn[..., 0] < 0.1) & (drawn[..., 2] < 0.1)
    assert green.sum() > 1000
    elsewhere = Prediction(1, 7, "q", "a", 1.0, "softmax()", [[0.0, 0.0], [1.0, 0.0]])
    drawn = panel(elsewhere, image, tmp_path)[..., :3]
    green = (drawn[..., 1] > 0.9) & (drawn[..., 0] < 0.1) & (drawn[..., 2] < 0.1)
    assert not green.any()


def test_half_a_picture_has_no_name(tmp_path, monkeypatch):
    figure = pytest.importorskip("matplotlib.figure")
    image = np.zeros((4, 4, 3))
    (tmp_path / "x.png").write_bytes(b"what was there")

    def killed(self, path, **_):
        Path(path).write_bytes(b"half")
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(figure.Figure, "savefig", killed)
        with pytest.raises(KeyboardInterrupt):
            panel(DENSE, image, tmp_path)
    assert (tmp_path / "x.png").read_bytes() == b"what was there"
    draw({"a": [DENSE]}, {7: image}, tmp_path / "new" / "folder" / "x.png")
    assert [path.name for path in (tmp_path / "new" / "folder").iterdir()] == ["x.png"]


@pytest.mark.parametrize("shape", [(4, 4), (4, 6, 1), (4, 4, 4)])
def test_other_images(shape, tmp_path):
    panel(DENSE, np.zeros(shape), tmp_path)


def test_features_are_no_picture(tmp_path):
    with pytest.raises(UsageError, match=r"image 7 of shape \(2, 2, 9\) is no picture: give --im"):
        panel(DENSE, np.zeros((2, 2, 9)), tmp_path)
