"""From labelled texts to predictions, by the commands of the README."""

import json
import math

import pytest
import torch
from fairseq import checkpoint_utils, options, tasks
from fairseq.dataclass.utils import convert_namespace_to_omegaconf

from fairseq_regattn.classification.__main__ import main
from fairseq_regattn.classification.predict import Classifier
from fairseq_regattn.models.classification import HEAD

from . import commands

FAST = ("softmax", "fusedmax")
MAPPINGS = [*FAST, "sparsemax", "pnormmax", "oscarmax", "oscarmax_prox", "entmax"]
TINY = """--task text_classification --criterion sentence_prediction --optimizer adam --lr 0.01
    --cpu --num-workers 0 --seed 7 --batch-size 16 --no-progress-bar --log-format none
    --no-epoch-checkpoints --required-batch-size-multiple 1 --embed-dim 8 --hidden-size 6
    --best-checkpoint-metric accuracy --maximize-best-checkpoint-metric"""


@pytest.fixture(scope="module", params=["regattn_nli", "regattn_classifier"])
def trained(request, tmp_path_factory, write_rows):
    """Data folder and checkpoint of a small model, and the folder of both."""
    arch, folder = request.param, tmp_path_factory.mktemp(request.param)
    inputs = 2 if arch == "regattn_nli" else 1
    rows = write_rows(folder / "train.tsv", 240, inputs)
    assert main(["prepare", f"--train={rows}", f"--out={folder}", f"--inputs={inputs}"]) == 0
    flags = ["--arch", arch, "--max-epoch=8"]
    commands.train(folder / "bin", folder / "models", *flags, base=TINY)
    return folder, inputs


def with_attention(folder, name, tmp_path):
    """The checkpoint with another mapping: what it has learnt does not matter here."""
    saved = commands.state(folder / "models" / "checkpoint_best.pt")
    saved["cfg"]["model"]["attention"] = name
    saved["cfg"]["model"]["attention_swap"] = True
    torch.save(saved, tmp_path / f"{name}.pt")
    return tmp_path / f"{name}.pt"


def predict(folder, checkpoint, out, *flags, source=None, status=0):
    source = source or folder / "text" / "test"
    given = [str(folder / "bin"), str(source), f"--path={checkpoint}", f"--out={out}", "--cpu"]
    assert main(["predict", *given, *map(str, flags)]) == status
    return out.read_text(encoding="utf-8") if status == 0 else None


@pytest.mark.parametrize(
    "attention",
    [pytest.param(name, marks=[] if name in FAST else pytest.mark.slow) for name in MAPPINGS],
)
def test_the_batch_size_changes_no_digit(trained, attention, tmp_path):
    folder, inputs = trained
    checkpoint = with_attention(folder, attention, tmp_path)
    alone, together = (
        predict(folder, checkpoint, tmp_path / f"{size}.jsonl", f"--batch-size={size}")
        for size in (1, 64)
    )
    assert alone == together
    found = [json.loads(line) for line in alone.splitlines()]
    lines = (folder / "text" / "test.input0").read_text(encoding="utf-8").splitlines()
    assert [one["id"] for one in found] == list(range(1, len(lines) + 1))
    assert [" ".join(one["tokens"]) for one in found] == lines
    assert all(len(one["weights"]) == len(one["tokens"]) for one in found)
    assert all(abs(sum(one["weights"]) - 1) < 1e-4 for one in found)
    assert any(("hypothesis" in one) == (inputs == 2) for one in found)
    if attention != "softmax":
        assert any(0 in one["weights"] for one in found)


def test_it_learns_and_tells_how_well(trained, capsys, tmp_path):
    folder, _ = trained
    checkpoint = folder / "models" / "checkpoint_best.pt"
    found = [json.loads(x) for x in predict(folder, checkpoint, tmp_path / "x").splitlines()]
    right = sum(one["label"] == one["gold"] for one in found) / len(found)
    assert right > 0.6  # by chance a third
    told = capsys.readouterr().err
    assert f"{100 * right:.2f}" in told
    assert all(label in told for label in ("yes", "no", "maybe"))


def test_fairseq_says_the_same_of_the_same_texts(trained, tmp_path):
    """Its own iterator and criterion, in single precision."""
    folder, _ = trained
    checkpoint = folder / "models" / "checkpoint_best.pt"
    [model], _, task = checkpoint_utils.load_model_ensemble_and_task([str(checkpoint)])
    model.eval()
    dataset = task.load_dataset("test")
    batch = dataset.collater([dataset[i] for i in range(len(dataset))])
    with torch.no_grad():
        logits, _ = model(**batch["net_input"], classification_head_name=HEAD)
    gold = [task.labels[i] for i in batch["target"].view(-1)]
    found = [json.loads(x) for x in predict(folder, checkpoint, tmp_path / "x").splitlines()]
    assert gold == [one["gold"] for one in found]
    values = torch.tensor([list(one["probabilities"].values()) for one in found])
    torch.testing.assert_close(logits.softmax(1), values, atol=1e-5, rtol=0)


def test_lines_of_a_user(trained, tmp_path):
    """In order, with or without labels; words that nobody knows are no error."""
    folder, inputs = trained
    texts = ["unheard of", "good dog", "a band plays music here"]
    rows = ["\t".join([one, "cat sleeps"][:inputs]) for one in texts]
    (tmp_path / "in").write_text(f"{rows[0]}\n{rows[1]}\nyes\t{rows[2]}\n", encoding="utf-8")
    checkpoint = folder / "models" / "checkpoint_best.pt"
    out = predict(folder, checkpoint, tmp_path / "out", source=tmp_path / "in")
    found = [json.loads(line) for line in out.splitlines()]
    assert [" ".join(one["tokens"]) for one in found] == texts
    assert ["gold" in one for one in found] == [False, False, True]
    assert [one["id"] for one in found] == [1, 2, 3]


@pytest.mark.parametrize("how", ["error", "skip"])
def test_a_malformed_line_is_named(trained, how, capsys, tmp_path):
    folder, inputs = trained
    row = "\t".join(["a dog", "a cat"][:inputs])
    (tmp_path / "in").write_text(f"{row}\nstrange\t{row}\n\n{row}\n", encoding="utf-8")
    checkpoint = folder / "models" / "checkpoint_best.pt"
    flags = [f"--malformed={how}"]
    status = 2 if how == "error" else 0
    out = predict(
        folder, checkpoint, tmp_path / "out", *flags, source=tmp_path / "in", status=status
    )
    told = capsys.readouterr().err
    for number in (2, 3):
        assert f"{tmp_path / 'in'}:{number}: " in told
    assert "'strange' is none of maybe, no, yes" in told
    if how == "error":
        assert not (tmp_path / "out").exists()
    else:
        assert [json.loads(line)["id"] for line in out.splitlines()] == [1, 4]
        assert "1 lines left out, malformed: unknown label" in told


@pytest.mark.parametrize(
    ("flags", "message"),
    [
        (["--batch-size=0"], "--batch-size must be at least 1, got 0"),
        (["--path=nothing.pt"], "--path nothing.pt: no such file"),
    ],
)
def test_wrong_arguments(trained, flags, message, capsys, tmp_path):
    folder, _ = trained
    checkpoint = folder / "models" / "checkpoint_best.pt"
    predict(folder, checkpoint, tmp_path / "out", *flags, status=2)
    assert message in capsys.readouterr().err


def test_a_model_of_other_data_is_refused(trained, write_rows, capsys, tmp_path):
    folder, inputs = trained
    rows = write_rows(tmp_path / "train.tsv", 90, inputs)
    given = [f"--train={rows}", f"--out={tmp_path}", f"--inputs={inputs}"]
    assert main(["prepare", *given]) == 0
    checkpoint = folder / "models" / "checkpoint_best.pt"
    predict(tmp_path, checkpoint, tmp_path / "out", status=2)
    assert f"--path {checkpoint} does not fit {tmp_path / 'bin'}: " in capsys.readouterr().err
    assert not (tmp_path / "out").exists()


@pytest.mark.slow
def test_a_reader_that_leaves_is_no_error(trained, run_python, package_dir):
    """As ``predict ... | head -1``; the pipe is closed before anything is written."""
    folder, _ = trained
    checkpoint = folder / "models" / "checkpoint_best.pt"
    code = f"""
import subprocess, sys
command = [sys.executable, "-m", "fairseq_regattn.classification", "predict"]
command += [{str(folder / "bin")!r}, {str(folder / "text" / "test")!r}]
command += ["--path", {str(checkpoint)!r}, "--cpu"]
process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
process.stdout.close()
told = process.stderr.read()
print(process.wait(), "BrokenPipe" in told, "Traceback" in told)
"""
    found = run_python("-c", code, path=[package_dir.parent]).stdout
    assert found.split() == ["1", "False", "False"]


def test_no_data_folder(capsys, tmp_path):
    assert main(["predict", str(tmp_path), "-", "--path=x"]) == 2
    assert "preparation.json is missing" in capsys.readouterr().err


def task_of(data):
    parser = options.get_training_parser()
    words = [str(data), *TINY.split(), "--arch=regattn_nli"]
    config = convert_namespace_to_omegaconf(options.parse_args_and_arch(parser, words))
    return tasks.setup_task(config.task), config


def test_a_folder_without_labels_is_refused(tmp_path):
    with pytest.raises(ValueError, match=r"input0/dict\.txt is missing; see"):
        task_of(tmp_path)


def test_vectors_are_read_in_training_and_are_in_the_checkpoint(write_rows, tmp_path):
    """So that it loads where the file is not; the words keep them."""
    rows = write_rows(tmp_path / "train.tsv", 60, 1)
    numbers = " ".join(["0.5"] * 8)
    vectors = tmp_path / "vectors.txt"
    vectors.write_text(f"good {numbers}\nelsewhere {numbers}\n", encoding="utf-8")
    given = [f"--train={rows}", f"--out={tmp_path}", "--inputs=1", f"--vectors={vectors}"]
    assert main(["prepare", *given, "--hold-out=valid=0.2,test=0.2"]) == 0
    flags = ["--arch=regattn_classifier", "--max-epoch=1", f"--embed-path={vectors}"]
    commands.train(tmp_path / "bin", tmp_path / "models", *flags, base=TINY)
    vectors.unlink()
    classifier = Classifier(tmp_path / "bin", str(tmp_path / "models" / "checkpoint_last.pt"), True)
    words = classifier.task.dictionary
    found = classifier.model.words(torch.tensor([words.index("good"), words.index("bad")]))
    assert (found[0] == 0.5).all()
    assert not (found[1] == 0.5).any()


def test_l2_is_added_to_the_loss_in_training(write_rows, tmp_path):
    rows = write_rows(tmp_path / "train.tsv", 60, 2)
    assert main(["prepare", f"--train={rows}", f"--out={tmp_path}"]) == 0
    task, config = task_of(tmp_path / "bin")
    model = task.build_model(config.model).eval()
    dataset = task.load_dataset("train")
    batch = dataset.collater([dataset[i] for i in range(5)])
    from fairseq_regattn.criterions.sentence_prediction_l2 import (
        L2SentencePrediction,
        L2SentencePredictionConfig,
    )

    def loss(l2):
        cfg = L2SentencePredictionConfig(l2=l2)
        return L2SentencePrediction.build_criterion(cfg, task)(model, batch)[0].item()

    plain = loss(0.0)
    assert loss(0.5) == plain  # validation logs the loss alone
    model.train()
    for module in model.modules():
        if isinstance(module, torch.nn.Dropout):
            module.p = 0.0
    matrices = {n: p for n, p in model.named_parameters() if n.startswith("words") or p.dim() > 1}
    del matrices["words.weight"]
    squares = sum(parameter.square().sum().item() for parameter in matrices.values())
    assert math.isclose(loss(0.5) - plain, 5 * 0.25 * squares, rel_tol=1e-4)
    with pytest.raises(ValueError, match="--l2 must be a finite number >= 0, got -1"):
        loss(-1)
