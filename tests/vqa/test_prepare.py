"""From VQA-v2's files to a data folder."""

import json
from argparse import Namespace
from pathlib import Path

import numpy as np
import pytest
import torch
from fairseq.data import Dictionary

from fairseq_regattn.errors import UsageError
from fairseq_regattn.tasks.vqa import VQATask
from fairseq_regattn.vqa.__main__ import main
from fairseq_regattn.vqa.data import Preparation, read_answers
from fairseq_regattn.vqa.dataset import UNKNOWN, VQADataset
from fairseq_regattn.vqa.features import Features
from fairseq_regattn.vqa.questions import Question, read_lines

from .conftest import entry, picture, write_files


def prepare(given, out, capsys, *flags, status=0):
    """Standard output, or the standard error where it fails."""
    assert main(["prepare", *given, f"--out={out}", *flags]) == status
    printed = capsys.readouterr()
    if status:
        assert "Traceback" not in printed.err
        assert not out.exists()
    return printed.err if status else printed.out


def test_a_data_folder(sources, capsys, tmp_path):
    out = tmp_path / "bin"
    printed = prepare(sources, out, capsys, "--answers=4")
    assert "train: " in printed
    assert "of 90 questions; " in printed
    assert "dropped: the answer is none of the most common" in printed
    assert "unanswerable: the answer is none of the most common (kept)" in printed
    assert "4 answers; 156 images of 16 x 16 x 3" in printed
    answers = read_answers(out)
    assert len(answers) == 4
    train, test = (list(read_lines(out / f"{split}.jsonl")) for split in ("train", "test"))
    assert {question.gold for question in train} == set(answers)
    assert len(test) == 36
    words = Dictionary.load(str(out / "dict.txt")).symbols[4:]
    assert words[0] == "?"
    assert set(words) == {word for question in train for word in question.text.split()}
    assert sorted(path.name for path in tmp_path.iterdir()) == ["bin"]


def test_words_that_are_rare_are_unknown(sources, capsys, tmp_path):
    prepare(sources, tmp_path / "bin", capsys, "--min-count=50")
    found = set(Dictionary.load(str(tmp_path / "bin/dict.txt")).symbols[4:])
    assert {"?", "is"} <= found
    assert "square" not in found


def test_features_that_are_missing(sources, made, capsys, tmp_path):
    images = tmp_path / "images"
    images.mkdir()
    for path in (made / "images").iterdir():
        (images / path.name).symlink_to(path)
    (images / "COCO_train2014_000000000003.npz").unlink()
    other = images / "COCO_test2014_000000000125.npz"
    other.unlink()
    np.savez(other, x=np.zeros((8, 8, 3), dtype=np.uint8))
    given = [str(images) if word == str(made / "images") else word for word in sources]
    error = prepare(given, tmp_path / "a", capsys, status=2)
    assert f"{images}, image 3: features: no grid of features" in error
    assert f"{other}: features: shape (8, 8, 3), and (16, 16, 3) of others" in error
    printed = prepare(given, tmp_path / "b", capsys, "--malformed=skip")
    assert "dropped: no features of the image" in printed
    assert "35 of 36 questions" in printed


@pytest.mark.parametrize(
    ("flags", "message"),
    [
        (["--answers=0"], "--answers must be at least 1, got 0"),
        (["--min-count=0"], "--min-count must be at least 1, got 0"),
        (["--test", "nowhere", "-", "nowhere"], "nowhere: no such file"),
    ],
)
def test_wrong_use_is_told_in_a_line(flags, message, sources, capsys, tmp_path):
    error = prepare([*sources[:8], *flags], tmp_path / "bin", capsys, status=2)
    assert error == f"python -m fairseq_regattn.vqa prepare: error: {message}\n"


def test_a_folder_that_is_there_stays(sources, capsys, tmp_path):
    out = tmp_path / "bin"
    out.mkdir()
    assert main(["prepare", *sources, f"--out={out}"]) == 2
    assert "is there already" in capsys.readouterr().err
    assert list(out.iterdir()) == []


def test_without_known_answers(sources, made, capsys, tmp_path):
    given = [*sources[:8], "--test", str(made / "test_questions.json"), "-", str(made / "images")]
    printed = prepare(given, tmp_path / "bin", capsys)
    assert "36 of 36 questions; 36 without a known answer (kept)" in printed
    unknown = [*sources]
    unknown[2] = "-"
    assert "nothing is left of train: 0 of 90" in prepare(
        unknown, tmp_path / "other", capsys, status=2
    )


@pytest.fixture
def task(sources, capsys, tmp_path):
    prepare(sources, tmp_path / "bin", capsys, "--answers=4")
    return VQATask.setup_task(Namespace(data=str(tmp_path / "bin"), seed=1))


def test_a_batch(task, made):
    dataset = task.load_dataset("test")
    questions = list(read_lines(Path(task.cfg.data) / "test.jsonl"))
    rows = [5, 0, 17, 6]
    batch = dataset.collater([dataset[row] for row in rows])
    for place, row in enumerate(rows):
        question = questions[row]
        tokens = batch["net_input"]["src_tokens"][place]
        length = batch["net_input"]["src_lengths"][place]
        assert task.dictionary.string(tokens[:length]) == question.text
        assert (tokens[length:] == task.dictionary.pad()).all()
        grid = batch["net_input"]["grid"][place]
        with np.load(made / "images" / f"COCO_test2014_{question.image:012d}.npz") as file:
            np.testing.assert_array_equal(grid.numpy(), file["x"])
        known = question.gold in task.labels
        wanted = task.labels.index(question.gold) if known else UNKNOWN
        assert batch["target"][place] == wanted
        given = question.answers or {question.gold: 10}
        counts = [given.get(answer, 0) for answer in task.labels]
        assert batch["counts"][place].tolist() == counts
    assert UNKNOWN in dataset.targets
    assert len(set(batch["net_input"]["src_lengths"].tolist())) > 1


def test_order_is_by_length_and_holds_all(task):
    dataset = task.load_dataset("train")
    order = dataset.ordered_indices()
    assert sorted(order.tolist()) == list(range(len(dataset)))
    assert (np.diff(dataset.sizes[order]) >= 0).all()
    assert (order == dataset.ordered_indices()).all()


def test_a_grid_that_has_changed_since_is_refused(task, tmp_path):
    words, shape = task.dictionary, task.grid_shape
    np.save(tmp_path / "1.npy", np.zeros((3, 3, 3), dtype=np.float32))
    dataset = VQADataset([Question(1, 1, "is")], Features.open(tmp_path), shape, words, ["a"])
    with pytest.raises(UsageError, match=r"1\.npy: shape \(3, 3, 3\), and \(16, 16, 3\) when"):
        dataset[0]


def test_floats_stay_what_they_are(task, tmp_path):
    np.save(tmp_path / "1.npy", np.full(task.grid_shape, 3, dtype=np.float16))
    asked = [Question(1, 1, "is"), Question(2, 1, "red")]
    dataset = VQADataset(asked, Features.open(tmp_path), task.grid_shape, task.dictionary, ["a"])
    batch = dataset.collater([dataset[0], dataset[1]])
    assert batch["net_input"]["grid"].dtype == torch.float16
    assert (batch["target"] == UNKNOWN).all()
    assert not batch["counts"].any()


def test_folders_that_are_no_data(tmp_path):
    with pytest.raises(UsageError, match=r"preparation\.json is missing; see python -m"):
        VQATask.setup_task(Namespace(data=str(tmp_path), seed=1))
    (tmp_path / "preparation.json").write_text(json.dumps({"shape": [1, 2]}))
    with pytest.raises(UsageError, match="not the preparation of a data folder"):
        Preparation.read(tmp_path)


def test_splits_that_are_not_there(task):
    with pytest.raises(FileNotFoundError, match="Dataset not found: other"):
        task.load_dataset("other")
    with pytest.raises(UsageError, match="no features of other, only of train, valid, test"):
        task.dataset_of([], "other")


def test_features_that_have_moved(task):
    task.preparation.features["test"] = "nowhere"
    with pytest.raises(UsageError, match=r"features of test are not at nowhere any more: write"):
        task.load_dataset("test")


def test_nothing_is_left(capsys, tmp_path):
    (tmp_path / "images").mkdir()
    np.save(tmp_path / "images" / "1.npy", np.zeros((2, 2, 3), dtype=np.float32))
    given = []
    for split, image in (("train", 1), ("valid", 2)):
        paths = write_files(tmp_path, split, [entry(image, image)])
        given += [f"--{split}", *map(str, paths), str(tmp_path / "images")]
    error = prepare(given, tmp_path / "bin", capsys, "--malformed=skip", status=2)
    assert "nothing is left of valid: 0 of 1 questions; 1 malformed: features" in error


def swapped(sources, made, folder, **grids):
    """The arguments with a folder of links to the images, some of them others: ``grids``."""
    folder.mkdir()
    for path in (made / "images").iterdir():
        (folder / path.name).symlink_to(path)
    for name, grid in grids.items():
        path = folder / f"COCO_{name[:-2]}2014_{int(name[-2:]):012d}.npz"
        path.unlink()
        np.savez(path, x=grid)
    return [str(folder) if word == str(made / "images") else word for word in sources]


def test_bytes_and_numbers_do_not_mix(sources, made, capsys, tmp_path):
    pixels, _ = picture(95)
    given = swapped(sources, made, tmp_path / "images", valid95=pixels.astype(np.float32))
    error = prepare(given, tmp_path / "bin", capsys, status=2)
    assert "valid2014_000000000095.npz: features: floating point numbers, and bytes of o" in error


def one_image(task, folder, grid):
    np.save(folder / "1.npy", grid)
    features = Features.open(folder)
    return VQADataset([Question(1, 1, "is")], features, task.grid_shape, task.dictionary, ["a"])


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
def test_features_that_are_not_finite_are_refused(value, task, tmp_path):
    grid = np.zeros(task.grid_shape, dtype=np.float16)
    grid[3, 4, 1] = value
    with pytest.raises(UsageError, match=r"1\.npy: its features are not all finite"):
        one_image(task, tmp_path, grid)[0]


@pytest.mark.parametrize("dtype", ["<f4", ">f4", ">f8", ">f2"])
def test_numbers_of_other_machines(dtype, task, tmp_path):
    grid = np.arange(np.prod(task.grid_shape), dtype=dtype).reshape(task.grid_shape)
    found = one_image(task, tmp_path, grid)[0]["grid"].numpy()
    np.testing.assert_array_equal(found, grid)


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        (
            "preparation.json",
            {"shape": [0, 1, 1], "features": {}, "channels_first": False},
            "not the preparation",
        ),
        (
            "preparation.json",
            {"shape": [1, 1, 1], "features": [], "channels_first": False},
            "not the preparation",
        ),
        (
            "preparation.json",
            {"shape": [1, 1, 1], "features": {"a": 1}, "channels_first": False},
            "not the preparation",
        ),
        ("preparation.json", b"[" * 100_000, "not the preparation"),
        ("preparation.json", b"\xff", "not the preparation"),
        ("answers.txt", b"", "an answer a line was expected"),
        ("answers.txt", b"a\nb\na\n", "an answer a line was expected, none twice"),
        ("answers.txt", b"a\n\nb\n", "an answer a line was expected, none twice, none empty"),
        ("answers.txt", b"\xff\n", "can't decode byte 0xff"),
    ],
)
def test_damaged_folders(name, content, message, task):
    if isinstance(content, dict):
        content = json.dumps(content).encode()
    (Path(task.cfg.data) / name).write_bytes(content)
    with pytest.raises(UsageError, match=rf"{name}: .*{message}"):
        VQATask.setup_task(task.cfg)


def test_answers_without_a_last_end_of_line(task):
    path = Path(task.cfg.data) / "answers.txt"
    path.write_bytes(path.read_bytes()[:-1])
    assert read_answers(path.parent) == task.labels


def test_features_are_looked_for_once(task, monkeypatch):
    opened = []
    monkeypatch.setattr(Features, "open", lambda *given: opened.append(given))
    for _ in range(3):
        task.dataset_of([], "test")
        task.dataset_of([], "valid")
    assert len(opened) == 2
