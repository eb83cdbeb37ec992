"""From VQA-v2's files to answers and pictures, by the commands of the docs."""

import json
import math

import numpy as np
import pytest
import torch
from fairseq import options, tasks
from fairseq.dataclass.utils import convert_namespace_to_omegaconf
from vqa.conftest import made, sources  # noqa: F401  fixtures of the folder tests/vqa

from fairseq_regattn.criterions.vqa_bce import VQABinaryCrossEntropy
from fairseq_regattn.models.classification import HEAD
from fairseq_regattn.vqa.__main__ import main
from fairseq_regattn.vqa.predict import Answerer
from fairseq_regattn.vqa.predictions import read_predictions
from fairseq_regattn.vqa.questions import read_lines

from . import commands

CONTINUOUS = ("continuous_softmax", "continuous_sparsemax")
TINY = """--task vqa --arch regattn_vqa --optimizer adam --lr 0.01 --cpu --num-workers 0 --seed 7
    --batch-size 16 --no-progress-bar --log-format none --no-epoch-checkpoints
    --required-batch-size-multiple 1 --embed-dim 8 --hidden-size 12 --stem 4 --dropout 0
    --best-checkpoint-metric accuracy --maximize-best-checkpoint-metric"""


@pytest.fixture(scope="module")
def data(sources, tmp_path_factory):  # noqa: F811
    out = tmp_path_factory.mktemp("prepared") / "bin"
    assert main(["prepare", *sources, f"--out={out}", "--answers=4"]) == 0
    return out


@pytest.fixture(scope="module")
def trained(data, tmp_path_factory):
    """``trained(attention, criterion, epochs)``: checkpoint of a small model."""
    known = {}

    def get(attention, criterion="sentence_prediction", epochs=2):
        key = attention, criterion, epochs
        if key not in known:
            out = tmp_path_factory.mktemp("models")
            flags = ["--attention", attention, "--criterion", criterion, "--max-epoch", epochs]
            commands.train(data, out, *flags, base=TINY)
            known[key] = out / "checkpoint_best.pt"
        return known[key]

    return get


def predict(data, checkpoint, out, *flags, status=0):
    given = [str(data), f"--path={checkpoint}", f"--out={out}", "--cpu", *map(str, flags)]
    assert main(["predict", *given]) == status
    return out.read_text(encoding="utf-8") if status == 0 else None


@pytest.mark.parametrize("attention", ["softmax", "sparsemax", *CONTINUOUS])
def test_the_batch_size_changes_no_digit(attention, data, trained, tmp_path):
    checkpoint = trained(attention)
    alone, together = (
        predict(data, checkpoint, tmp_path / f"{size}.jsonl", f"--batch-size={size}")
        for size in (1, 64)
    )
    assert alone == together
    found = list(read_predictions(tmp_path / "1.jsonl"))
    asked = list(read_lines(data / "test.jsonl"))
    assert [(one.id, one.question, one.gold) for one in found] == [
        (one.id, one.text, one.gold) for one in asked
    ]
    for one in found:
        weights = np.array(one.weights)
        assert weights.shape == (4, 4)
        assert abs(weights.sum() - 1) < 1e-4
        assert 0 < one.probability <= 1
        assert (one.mean is not None) == (attention in CONTINUOUS)
        assert one.attention.startswith(f"{attention}(")
    assert len({one.answer for one in found}) > 1
    assert {one.score for one in found} - {None}  # some have ten answers
    assert any(one.score is None for one in found)


@pytest.mark.slow
@pytest.mark.parametrize("criterion", ["sentence_prediction", "vqa_bce"])
@pytest.mark.parametrize("attention", CONTINUOUS)
def test_it_learns_and_tells_how_well(attention, criterion, data, trained, capsys, tmp_path):
    checkpoint = trained(attention, criterion, 40)
    predict(data, checkpoint, tmp_path / "x.jsonl")
    printed = capsys.readouterr().err
    found = list(read_predictions(tmp_path / "x.jsonl"))
    right = sum(one.answer == one.gold for one in found)
    assert right > 20  # of 36; 16 without the image, and 32 at most: one answer is not known
    [line] = [line for line in printed.splitlines() if line.startswith("all ")]
    assert line.split()[1:4] == ["36", str(right), f"{100 * right / 36:.2f}"]
    assert "answer type other" in printed
    assert "question type what color" in printed


def test_predictions_go_to_standard_output(data, trained, capsys):
    assert main(["predict", str(data), f"--path={trained('softmax')}", "--split=valid"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == 30
    assert json.loads(lines[0])["id"] == 1090


def test_soft_scores(data, trained):
    """``vqa_bce``, question by question and answer by answer."""
    parser = options.get_training_parser()
    given = [str(data), *TINY.split(), "--criterion", "vqa_bce"]
    cfg = convert_namespace_to_omegaconf(options.parse_args_and_arch(parser, given))
    task = tasks.setup_task(cfg.task)
    criterion = task.build_criterion(cfg.criterion)
    assert isinstance(criterion, VQABinaryCrossEntropy)
    model = Answerer(data, str(trained("softmax")), cpu=True).model
    dataset = task.load_dataset("test")
    sample = dataset.collater([dataset[number] for number in range(len(dataset))])
    loss, size, logged = criterion(model, sample)
    logits, _ = model(**sample["net_input"], classification_head_name=HEAD)
    wanted, vqa, right = 0.0, 0.0, 0
    for question, row in zip(read_lines(data / "test.jsonl"), logits.tolist()):
        given = question.answers or {question.gold: 10}
        for answer, logit in zip(task.labels, row):
            score = min(given.get(answer, 0) / 3, 1)
            p = 1 / (1 + math.exp(-logit))
            wanted -= score * math.log(p) + (1 - score) * math.log(1 - p)
        best = task.labels[row.index(max(row))]
        count = given.get(best, 0)
        vqa += (count * min((count - 1) / 3, 1) + (10 - count) * min(count / 3, 1)) / 10
        right += best == question.gold
    assert loss.item() == pytest.approx(wanted, rel=1e-5)
    assert size == logged["nsentences"] == 36
    assert logged["vqa_correct"].item() == pytest.approx(vqa, rel=1e-5)
    assert logged["ncorrect"].item() == right
    assert (sample["target"] == -100).any()  # unanswerable ones are in the sums


@pytest.mark.parametrize(
    ("flags", "message"),
    [
        (["--path=nothing.pt"], "--path nothing.pt: no such file"),
        (["--batch-size=0"], "--batch-size must be at least 1, got 0"),
        (["--split=other"], "other.jsonl: no such file"),
    ],
)
def test_wrong_use_is_told_in_a_line(flags, message, data, trained, capsys, tmp_path):
    predict(data, trained("softmax"), tmp_path / "x.jsonl", *flags, status=2)
    error = capsys.readouterr().err
    assert message in error
    assert len(error.splitlines()) == 1
    assert not (tmp_path / "x.jsonl").exists()


def test_other_models_are_refused(data, tmp_path, capsys, trained):
    saved = commands.state(trained("softmax"))
    saved["cfg"]["model"]["attention"] = "sparsemax"
    torch.save(saved, tmp_path / "x.pt")
    predict(data, tmp_path / "x.pt", tmp_path / "x.jsonl", status=2)
    assert "trained with attention softmax" in capsys.readouterr().err


def plot(*given, status=0):
    assert main(["plot", *map(str, given)]) == status


def test_pictures(data, trained, capsys, tmp_path):
    pytest.importorskip("matplotlib")
    runs = []
    for attention in ("sparsemax", *CONTINUOUS):
        predict(data, trained(attention), tmp_path / f"{attention}.jsonl")
        runs.append(f"{attention}={tmp_path / attention}.jsonl")
    out = tmp_path / "x.png"
    plot(*runs, f"--data={data}", f"--out={out}", "--questions=1125,1120")
    assert f"Written: {out}" in capsys.readouterr().out
    from matplotlib.image import imread

    height, width = imread(out).shape[:2]
    assert width / 3 < height / 2 + 100  # three beside each other, two below
    for flags, message in (
        (["--questions=3"], "has no question 3"),
        (["--split=other"], "no features of other"),
    ):
        plot(*runs, f"--data={data}", f"--out={out}", *flags, status=2)
        assert message in capsys.readouterr().err
    plot(runs[0], f"--images={tmp_path}", f"--out={out}", status=2)
    assert "no picture of image" in capsys.readouterr().err
    plot(runs[0], runs[0], f"--data={data}", f"--out={out}", status=2)
    assert "each name once" in capsys.readouterr().err
    predict(data, trained("softmax"), tmp_path / "valid.jsonl", "--split=valid")
    plot(
        runs[0],
        f"other={tmp_path}/valid.jsonl",
        f"--data={data}",
        f"--out={tmp_path}/y.png",
        status=2,
    )
    assert "other is not of the same questions as sparsemax" in capsys.readouterr().err
