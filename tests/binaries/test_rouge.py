"""ROUGE of what ``fairseq-generate`` writes, and in validation while ``fairseq-train`` runs."""

import json
import logging
import re

import pytest

from fairseq_regattn.errors import UsageError
from fairseq_regattn.scoring.rouge import Limit, Rouge
from fairseq_regattn.scoring.rouge.__main__ import main

from . import commands, processes
from .test_machines import free_port
from .test_wrong_use import one_line

SCORING = ("--scoring=rouge", "--rouge-types=1,2,L")
LIKE_GENERATE = '{"beam": 3, "min_len": 5, "max_len_b": 12}'
EVAL = ["--task", "summarization", "--eval-rouge", "--eval-rouge-args", LIKE_GENERATE]
EVAL += ["--valid-subset", "test", "--batch-size-valid", "7"]
BEST = ["--best-checkpoint-metric", "rougeL", "--maximize-best-checkpoint-metric"]
VALIDATING = commands.TINY.replace("--disable-validation", "")


def printed(output):
    """The lines of the scores, and that of the signature."""
    return re.split(r"^Generate test with beam=\d: \n", output, flags=re.MULTILINE)[1].splitlines()


def unchanged(checkpoint):
    """Flags of a training that only validates."""
    return ["--finetune-from-model", checkpoint, "--lr", 0, "--max-update", 1]


def from_files(output, rouge):
    """The same from lines T and the first D of each sentence, in the order of the corpus."""
    references, found = commands.lines(output, "T"), {}
    for number, rest in re.findall(r"^D-(\d+)\t(.*)$", output, re.MULTILINE):
        found.setdefault(int(number), rest.split("\t")[1])
    order = sorted(references)
    return rouge.system([found[n] for n in order], [[references[n]] for n in order])


OPTIONS = {
    "": Rouge(),
    "--rouge-types=L,1,Lsum --rouge-stem": Rouge(("L", "1", "Lsum"), stem=True),
    "--rouge-words=4": Rouge(limit=Limit("words", 4)),
    "--task=summarization --rouge-bytes=9": Rouge(limit=Limit("bytes", 9)),
    "--nbest=3": Rouge(),
    "--min-len=0": Rouge(),
}


@pytest.mark.parametrize("flags", OPTIONS)
def test_any_batch_size_and_the_files_agree(data, trained, tmp_path, flags):
    path, found = trained("fusedmax"), []
    for size in (1, 64):
        asked = ["--scoring=rouge", f"--batch-size={size}", *flags.split()]
        output, scorer = commands.generate(data, path, tmp_path, *asked)
        found.append((printed(output), scorer.score()))
        system = from_files(output, OPTIONS[flags])
        assert len(system.documents) == 64
        assert found[-1][0] == system.lines()
    assert found[0] == found[1]
    assert found[0][1] > 1
    assert by_the_command_for_files(output, flags, tmp_path) == found[0][0]
    hypotheses = re.findall(r"^D-\d+\t[^\t]*\t(.*)$", output, re.MULTILINE)
    assert ("" in hypotheses) == (flags == "--min-len=0")
    assert len(hypotheses) == (192 if "nbest" in flags else 64)


def by_the_command_for_files(output, flags, folder):
    """Its JSON in the form in which fairseq-generate prints the scores."""
    (folder / "generate.txt").write_text(output, encoding="utf-8")
    options = [f"--{flag[8:]}" for flag in flags.split() if flag.startswith("--rouge-")]
    out = folder / "scores.json"
    assert main(["--generate", str(folder / "generate.txt"), "--json", str(out), *options]) == 0
    result = json.loads(out.read_text(encoding="utf-8"))
    [system] = result["systems"].values()
    lines = []
    for kind, scores in system["means"].items():
        told = (
            "{value:.2f} ({low:.2f}-{high:.2f})".format(
                **{k: 100 * v for k, v in scores[name].items()}
            )
            for name in ("recall", "precision", "f1")
        )
        lines.append("ROUGE-{}  R {}  P {}  F1 {}".format(kind, *told))
    return [*lines, result["signature"]]


def test_quiet_and_in_shards(data, trained, tmp_path):
    path = trained("fusedmax")
    whole, scorer = commands.generate(data, path, tmp_path / "whole", *SCORING)
    quiet, _ = commands.generate(data, path, tmp_path / "quiet", *SCORING, "--quiet")
    assert printed(quiet) == printed(whole)
    assert not commands.lines(quiet, "D")
    shards = []
    for shard in (0, 1):
        asked = ["--distributed-world-size=2", f"--distributed-rank={shard}", "--batch-size=4"]
        output, part = commands.generate(data, path, tmp_path / f"{shard}", *SCORING, *asked)
        assert printed(output) == from_files(output, Rouge()).lines()
        shards.append(part)
    assert sum(len(part.pred) for part in shards) == 64
    assert sum(part.score() for part in shards) / 2 == pytest.approx(scorer.score())


def test_best_checkpoint(data, tmp_path):
    """The epoch of the best ROUGE-L, whose number fairseq-generate prints again."""
    base = VALIDATING.replace("--no-epoch-checkpoints", "")
    flags = [*EVAL, *BEST, "--attention", "sparsemax", "--max-epoch", 4]
    flags += ["--criterion", "label_smoothed_cross_entropy"]
    out = commands.train(data, tmp_path / "out", *flags, base=base)
    scores = {}
    for epoch in (1, 2, 3, 4):
        path = out / f"checkpoint{epoch}.pt"
        scores[epoch] = commands.state(path)["extra_state"]["val_loss"]
        _, scorer = commands.generate(data, path, tmp_path / "generated", *SCORING)
        assert scores[epoch] == pytest.approx(scorer.score(), abs=0.006)
    assert len(set(scores.values())) > 1
    assert min(scores.values()) > 0
    best = commands.state(out / "checkpoint_best.pt")["extra_state"]
    assert best["val_loss"] == best["best"] == max(scores.values())


@pytest.fixture(scope="module")
def subwords(text, tmp_path_factory):
    """The corpus with words cut in two, and words that only the test split has."""
    folder = tmp_path_factory.mktemp("subwords") / "text"
    folder.mkdir()
    for path in text.iterdir():
        cut = re.sub(r"y(\d)(\d)", r"y\1@@ \2", path.read_text(encoding="utf-8"))
        if path.name == "test.yy":
            cut = re.sub(r"\by?7\b", "unknown", cut)
        (folder / path.name).write_text(cut, encoding="utf-8")
    return commands.preprocess(folder, folder.parent / "bin")


@pytest.mark.parametrize("types", ["1,2,L", "Lsum"])
def test_subwords_and_unknown_words(subwords, tmp_path, caplog, types):
    """Validation joins and undoes what fairseq-generate joins and undoes."""
    caplog.set_level(logging.INFO)  # whatever other tests have switched off
    commands.train(subwords, tmp_path, "--max-update", 1)
    path = tmp_path / "checkpoint_last.pt"
    commands.enlarge(path)
    rouge = [f"--rouge-types={types}", "--rouge-words=12", "--rouge-stem"]
    best = ["--best-checkpoint-metric", f"rouge{types.split(',')[-1]}"]
    undone = ["--eval-rouge-detok", "moses", "--eval-rouge-remove-bpe"]
    undone += ["--eval-rouge-detok-args", '{"target_lang": "en"}', "--eval-rouge-print-samples"]
    flags = [*EVAL, *rouge, *best, *undone, *unchanged(path)]
    out = commands.train(subwords, tmp_path / "out", *flags, base=VALIDATING)
    score = commands.state(out / "checkpoint_last.pt")["extra_state"]["val_loss"]

    undo = ["--post-process", "subword_nmt", "--tokenizer=moses", "-s=xx", "-t=yy"]
    asked = [*SCORING[:1], *undo, *rouge]
    output, scorer = commands.generate(subwords, path, tmp_path / "generated", *asked)
    references, summaries = commands.lines(output, "T"), commands.lines(output, "D")
    assert any("<<unk>>" in line for line in references.values())
    assert not any("@@" in line for line in [*references.values(), *summaries.values()])
    assert len(set(summaries.values())) > 20
    assert score > 0.5
    assert score == pytest.approx(scorer.score(), abs=0.006)
    samples = [r.getMessage() for r in caplog.records if r.name.endswith("summarization")]
    for kind, known in (("summary", summaries), ("reference", references)):
        shown = [line.partition(f"{kind}: ")[2] for line in samples if f"{kind}: " in line]
        assert len(shown) == 10  # batches of 7
        assert set(shown) <= set(known.values())


def test_the_checkpoint_under_either_task(data, tmp_path, capsys):
    """No option of validation is needed, or in the way, when translating."""
    flags = [*EVAL, *BEST, "--max-epoch", 1]
    out = commands.train(data, tmp_path / "out", *flags, base=VALIDATING)
    path, found = out / "checkpoint_best.pt", {}
    for task in ("translation", "summarization"):
        output, _ = commands.generate(data, path, tmp_path / task, *SCORING, f"--task={task}")
        found[task] = (commands.lines(output, "H"), printed(output))
        text = "x1 x2 x3\nx4\n"
        spoken = commands.interactive(data, path, text, capsys, f"--task={task}")
        found[task] += (commands.lines(spoken, "H"),)
        assert len(found[task][-1]) == 2
    assert found["translation"] == found["summarization"]


@pytest.mark.parametrize("metric", ["bleu", "rougeL"])
def test_bleu_too(data, trained, tmp_path, metric):
    """Either generator has its own options."""
    bleu = ["--eval-bleu", "--eval-bleu-args", '{"beam": 1, "max_len_b": 7}']
    alone = [*EVAL[:2], *EVAL[-4:], *bleu] if metric == "bleu" else EVAL
    flags, scores = [*unchanged(trained("softmax")), *BEST, "--best-checkpoint-metric", metric], []
    for asked in ([*EVAL, *bleu], alone):
        out = commands.train(data, tmp_path / f"{len(scores)}", *asked, *flags, base=VALIDATING)
        scores.append(commands.state(out / "checkpoint_last.pt")["extra_state"]["val_loss"])
    assert scores[0] == scores[1] > 0


@pytest.mark.slow
def test_two_processes(data, tmp_path):
    """Five batches for two: one gets a batch that must not count."""
    flags = [*VALIDATING.split(), *EVAL, *BEST, "--max-epoch=1", "--batch-size-valid=13"]
    flags += ["--distributed-backend=gloo", "--ddp-backend=legacy_ddp", "--distributed-no-spawn"]
    flags += [f"--distributed-init-method=tcp://localhost:{free_port()}"]
    flags += ["--distributed-world-size=2", f"--save-dir={tmp_path}"]
    started = [
        processes.start("fairseq-train", data, *flags, f"--distributed-rank={rank}")
        for rank in range(2)
    ]
    for process in started:
        status, out, err = processes.finish(process)
        assert status == 0, out + err
    path = tmp_path / "checkpoint_best.pt"
    _, scorer = commands.generate(data, path, tmp_path / "generated", *SCORING)
    score = commands.state(path)["extra_state"]["val_loss"]
    assert score == pytest.approx(scorer.score(), abs=0.006)


WRONG = {
    "--rouge-types 1,LL": ("--rouge-types", "'1,LL'"),
    "--rouge-bytes 0": ("--rouge-bytes", "0"),
    "--eval-rouge-args [1]": ("--eval-rouge-args", "'[1]'"),
    "--eval-rouge-args {beam:1}": ("--eval-rouge-args", "'{beam:1}'"),
    '--eval-rouge-args {"bem":1}': ("--eval-rouge-args", "'bem'"),
    '--eval-rouge-args {"beam":"x"}': ("--eval-rouge-args", "'x'", "beam"),
    '--eval-rouge-args {"max_len_b":null}': ("--eval-rouge-args", "max_len_b"),
    '--eval-rouge-args {"beam":0}': ("--eval-rouge-args: beam must be at least 1, got 0",),
    "--eval-rouge-detok mose": ("--eval-rouge-detok", "moses", "'mose'"),
    "--eval-rouge-detok-args x": ("--eval-rouge-detok-args", "'x'"),
}


@pytest.mark.parametrize("flags", WRONG)
def test_wrong_values(data, tmp_path, flags):
    with pytest.raises(UsageError) as error:
        commands.train(data, tmp_path, *EVAL, "--max-update", 1, *flags.split())
    assert all(part in str(error.value) for part in WRONG[flags])
    assert "\n" not in str(error.value)


@pytest.mark.slow
def test_wrong_values_are_one_line(data, trained, tmp_path):
    flags = [*VALIDATING.split(), *EVAL, "--max-update=1", f"--save-dir={tmp_path}"]
    process = processes.start("fairseq-train", data, *flags, "--rouge-words=0")
    assert "--rouge-words must be at least 1, got 0" in one_line(process, "fairseq-train")
    flags = [f"--path={trained('softmax')}", "--cpu", *SCORING[:1], "--rouge-types=X"]
    process = processes.start("fairseq-generate", data, *flags)
    assert "--rouge-types must be 1 to 9, L" in one_line(process, "fairseq-generate")
