"""easy-VQA in the shape of VQA-v2."""

import importlib.util
import json
import sys
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

from fairseq_regattn.vqa.features import Features

image = pytest.importorskip("matplotlib.image")
PATH = Path(__file__).resolve().parents[2] / "scripts" / "prepare" / "easy_vqa.py"


@pytest.fixture
def script(monkeypatch):
    """The script as a module; it takes its folder out of the path."""
    spec = importlib.util.spec_from_file_location("prepare_easy_vqa", PATH)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    monkeypatch.setattr(sys, "path", [str(PATH.parent), *sys.path])
    return module


@pytest.mark.parametrize(
    ("question", "answer", "kinds"),
    [
        ("what is the blue shape?", "circle", ("shape", "other")),
        ("what color is the shape?", "red", ("colour", "other")),
        ("is there a red shape?", "no", ("yes/no", "yes/no")),
        ("is there not a red shape?", "yes", ("yes/no, negated", "yes/no")),
        ("is no circle present?", "yes", ("yes/no, negated", "yes/no")),
    ],
)
def test_types_of_questions(question, answer, kinds, script):
    assert script.question_type(question, answer) == kinds


def package(folder):
    """As much of easy_vqa as the script asks for."""
    paths = {}
    for number in range(40):
        paths[number] = folder / f"{number}.png"
        image.imsave(paths[number], np.full((4, 4, 3), number / 40))
    train = [(f"what is the {c} shape?", c, n) for n in range(40) for c in ("red", "blue")]
    return SimpleNamespace(
        get_train_questions=lambda: tuple(zip(*train)),
        get_test_questions=lambda: (["is there a circle?"], ["yes"], [0]),
        get_train_image_paths=lambda: paths,
        get_test_image_paths=lambda: {0: paths[7]},
    )


def test_images_are_on_one_side(script, monkeypatch, capsys, tmp_path):
    (tmp_path / "png").mkdir()
    monkeypatch.setitem(sys.modules, "easy_vqa", package(tmp_path / "png"))
    out = tmp_path / "out"
    monkeypatch.setattr(sys, "argv", ["easy_vqa.py", str(out), "--valid=0.3"])
    script.main()
    asked = {}
    for split in ("train", "valid", "test"):
        asked[split] = json.loads((out / f"{split}_questions.json").read_text())["questions"]
        found = json.loads((out / f"{split}_annotations.json").read_text())["annotations"]
        assert [one["question_id"] for one in found] == [one["question_id"] for one in asked[split]]
    images = {split: {one["image_id"] for one in some} for split, some in asked.items()}
    assert len(images["train"]) + len(images["valid"]) == 40
    assert not images["train"] & images["valid"]
    assert 4 < len(images["valid"]) < 20
    assert images["test"] == {10_000}
    assert sum(map(len, asked.values())) == 81
    features = Features.open(out / "images")
    np.testing.assert_array_equal(features[10_000], features[7])
    assert features[9].dtype == np.uint8
    assert (features[9] == round(255 * 9 / 40)).all()
    told = f"valid: {len(asked['valid'])} questions about {len(images['valid'])} images"
    assert told in capsys.readouterr().out
    assert not list(out.rglob("*.partial"))


def test_without_the_package(script, monkeypatch, tmp_path):
    monkeypatch.setitem(sys.modules, "easy_vqa", None)
    monkeypatch.setattr(sys, "argv", ["easy_vqa.py", str(tmp_path)])
    with pytest.raises(ValueError, match="easy_vqa is missing: pip install easy-vqa matplotlib"):
        script.main()


def test_a_share_that_is_none(script, monkeypatch, tmp_path):
    monkeypatch.setattr(sys, "argv", ["easy_vqa.py", str(tmp_path), "--valid=1"])
    with pytest.raises(ValueError, match=r"--valid must be between 0 and 1, got 1\.0"):
        script.main()
