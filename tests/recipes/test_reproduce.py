"""``reproduce.sh`` as a whole, on a toy language."""

import json
import os
import re
import shlex
import signal
import subprocess
import sys
import time
import zipfile
from pathlib import Path

import pytest
import sacrebleu
import torch
from omegaconf import OmegaConf

from fairseq_regattn.analysis.links import read_links
from fairseq_regattn.analysis.matrices import read_matrices
from fairseq_regattn.analysis.records import read_hypotheses, read_records
from fairseq_regattn.analysis.words import word_weights
from fairseq_regattn.errors import UsageError
from fairseq_regattn.recipes import report
from fairseq_regattn.recipes.__main__ import planned, reproduce
from fairseq_regattn.recipes.load import CONFIGS
from fairseq_regattn.recipes.options import parse_reproduce
from fairseq_regattn.recipes.runs import write_training_settings
from fairseq_regattn.recipes.workspace import forced_hypotheses

pytest.importorskip("matplotlib", reason="matplotlib draws the heat maps")

PLAIN = str(CONFIGS / "translation" / "plain.yaml")
TINY = ["preprocess.subwords=24", "optimization.max_update=6", "dataset.max_tokens=400"]
TINY += ["lr_scheduler.warmup_updates=2", "model.encoder_embed_dim=16", "model.dropout=0.1"]
TINY += ["generate.max_len_b=12", "model.encoder_hidden_size=8", "model.decoder_embed_dim=16"]


def options(text, out, *arguments):
    given = [PLAIN, "--data", str(text), "--output", str(out), "--direction", "es-en"]
    return parse_reproduce([*given, *TINY, *arguments])


def states(folder):
    """Every file with the time of its last change; looking at it changes neither."""
    return {p: p.stat().st_mtime_ns for p in folder.rglob("*") if p.is_file()}


def weights_of(run):
    """Parameters and buffers of the model that translates."""
    return torch.load(run.folder / "checkpoint_best.pt", weights_only=False)["model"]


@pytest.mark.slow
def test_from_text_to_a_table_twice_and_then_more(tmp_path, capsys, write_text, monkeypatch):
    monkeypatch.setattr(report, "LENGTHS", range(1, 100))
    monkeypatch.setattr(report, "LONGEST", 200)
    text, out = write_text(tmp_path / "text"), tmp_path / "a folder, with 'signs'"
    (text / "test.links").write_text("0-0 1-1\n0-0\n1-1\n2-1\n", encoding="utf-8")
    chosen = options(text, out, "data.gold=test.links")
    assert reproduce(chosen, "the command") == 0
    printed = capsys.readouterr().out
    assert "fusedmax, lambda 0.1" in printed
    assert "nrefs:1|case:mixed|eff:no|tok:13a" in printed
    assert not list(out.rglob("*.partial"))

    softmax, fusedmax = planned(chosen)
    folder = softmax.workspace.folder / "report"
    for ending in ("png", "pdf"):
        assert len(list(folder.glob(f"*.{ending}"))) == 4  # as many as test sentences
    page = (folder / "index.html").read_text(encoding="utf-8")
    assert all(f'["sentence {number}"' in page for number in (1, 2, 3, 4))
    for ending in ("md", "csv", "json"):
        assert (out / "results" / f"results.{ending}").stat().st_size > 100

    # Scores are sacrebleu's on what was printed, and fairseq agrees.
    records = {record.name: record for record in read_records(chosen.records)}
    for run in (softmax, fusedmax):
        signature = bytes(weights_of(run)["decoder.attention.mapping_version"].tolist())
        assert signature.startswith(f"{run.attention.mapping}(".encode())
        assert " --path checkpoint_best.pt " in (run.folder / "generate.log").read_text("utf-8")
    record = records["softmax"]
    found = softmax.hypotheses()
    texts = [hypothesis.text for hypothesis in found]
    references = [softmax.workspace.references]
    assert record.bleu == pytest.approx(sacrebleu.corpus_bleu(texts, references).score)
    assert texts == read_hypotheses(chosen.records, record)
    assert record.alignments.nonzero > 0.99
    assert record.training_seconds > 0
    assert record.processor_seconds > 1
    assert record.updates == 6
    assert (record.direction, record.seed, record.command) == ("es-en", 1, "the command")
    assert 0 <= record.links["aer"] <= 1
    matrices = read_matrices(softmax.folder / "alignments.npz")
    assert [m.target for m in matrices] == [h.target for h in found]
    for name in ("alignments.links", "forced.links"):
        assert len(read_links(softmax.folder / name)) == 4
    # Forced: the words of the reference, though some of their pieces are unknown to the model.
    assert "<unk>" in (fusedmax.folder / "forced.txt").read_text(encoding="utf-8")
    words = [word_weights(hypothesis, True)[1] for hypothesis in forced_hypotheses(fusedmax)]
    assert [" ".join(line) for line in words] == references[0]

    before = states(out)
    assert reproduce(chosen, "the command") == 0
    assert "Nothing to do" in capsys.readouterr().out
    assert states(out) == before

    more = options(text, out, "data.gold=test.links", "--attention=sparsemax", "--seed=1,2")
    assert reproduce(more, "another command") == 0
    capsys.readouterr()
    kept = {path for path in before if "report" not in path.parts and "results" not in path.parts}
    assert {path: states(out)[path] for path in kept} == {path: before[path] for path in kept}
    rows = (folder / "results.md").read_text(encoding="utf-8").splitlines()[2:6]
    names = [row.split(" | ")[0] for row in rows]
    assert names == ["| softmax", "| fusedmax, lambda 0.1", "| sparsemax", "| sparsemax"]
    one, two = (weights_of(run)["decoder.embed_tokens.weight"] for run in planned(more))
    assert not torch.equal(one, two)  # of another seed
    content = json.loads((out / "results" / "results.json").read_text(encoding="utf-8"))
    assert "sparsemax" in json.dumps(content)


@pytest.mark.slow
def test_killed_and_continued_equals_uninterrupted(tmp_path, capsys, write_text, package_dir):
    text = write_text(tmp_path / "text", train=120)
    changes = ["--attention=fusedmax", "optimization.max_update=120"]
    whole, killed = (options(text, tmp_path / name, *changes) for name in ("whole", "killed"))
    assert reproduce(whole, "") == 0

    arguments = [PLAIN, "--data", str(text), "--output", str(killed.output), "--direction=es-en"]
    command = [sys.executable, "-m", "fairseq_regattn.recipes", *arguments, *TINY, *changes]
    environment = {**os.environ, "PYTHONPATH": str(package_dir.parent)}
    [run] = planned(killed)
    training = run.folder.with_name(f"{run.name}.partial")
    with open(tmp_path / "killed.log", "w") as log:
        process = subprocess.Popen(command, env=environment, stdout=log, stderr=log)
        try:
            end = time.monotonic() + 120
            while not (training / "checkpoint_last.pt").exists():
                assert process.poll() is None, (tmp_path / "killed.log").read_text()
                assert time.monotonic() < end
                time.sleep(0.02)
        finally:
            process.send_signal(signal.SIGKILL)
            process.wait()
    assert not run.folder.exists()
    time.sleep(1)  # the training dies with its parent
    assert reproduce(killed, "") == 0
    log = (run.folder / "train.log").read_text(encoding="utf-8")
    assert log.count("$ cd ") == 2
    assert "Loaded checkpoint" in log  # it did not begin anew
    [other] = planned(whole)
    for name in ("checkpoint_best.pt", "checkpoint_last.pt"):
        models = [torch.load(r.folder / name, weights_only=False)["model"] for r in (run, other)]
        assert models[0].keys() == models[1].keys()
        for key, value in models[0].items():
            assert torch.equal(value, models[1][key]), key
    assert run.hypotheses()[0].text == other.hypotheses()[0].text


@pytest.mark.slow
def test_others_go_on_when_one_run_fails(tmp_path, capsys, write_text):
    """A mapping whose training dies is named at the end; the same command tries it again."""
    text, out = write_text(tmp_path / "text"), tmp_path / "out"
    chosen = options(text, out, "--attention=softmax,fusedmax")
    fails = planned(chosen)[1]
    foreign = fails.folder.with_name(f"{fails.name}.partial") / "checkpoint_last.pt"
    foreign.parent.mkdir(parents=True)
    with zipfile.ZipFile(foreign, "w") as file:  # as torch's files are, but none of them
        file.writestr("content", "something else")
    assert reproduce(chosen, "") == 1
    told = capsys.readouterr()
    assert re.search(r"failed: plain es-en fusedmax, lambda 0.1 seed 1: .*train\.log", told.err)
    assert [record.name for record in read_records(chosen.records)] == ["softmax"]
    foreign.unlink()
    assert reproduce(chosen, "") == 0
    assert len(read_records(chosen.records)) == 2


@pytest.mark.slow
def test_a_dry_run_is_a_script_that_runs(tmp_path, capsys, write_text):
    """What it makes by hand is what the command itself then takes for made."""
    text, out = write_text(tmp_path / "text"), tmp_path / "it's out"
    (text / "test.links").write_text("0-0\n" * 4, encoding="utf-8")
    same = ["--attention=sparsemax", "data.gold=test.links", 'title="two\\nlines"']
    assert reproduce(options(text, out, *same, "--stage=preprocess"), "") == 0
    capsys.readouterr()
    assert reproduce(options(text, out, *same, "--dry-run"), "reproduce.sh --dry-run") == 0
    script = capsys.readouterr().out
    done = subprocess.run(["bash", "-c", script], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    [run] = planned(options(text, out, *same))
    before = states(run.folder)
    assert {"checkpoint_best.pt", "generate.txt", "forced.txt"} <= {p.name for p in before}
    assert reproduce(options(text, out, *same), "") == 0
    assert {path: states(run.folder)[path] for path in before} == before
    [record] = read_records(out / "records")
    assert record.updates == 6
    assert record.training_seconds > 0
    assert record.processor_seconds is None
    # The line of flags trains the same model.
    [flags] = re.findall(r"^# \((cd .* && fairseq-train .*)\)$", script, re.MULTILINE)
    elsewhere = run.folder.with_name("by-flags")
    elsewhere.mkdir()
    flags = flags.replace(flags[: flags.index(" && ")], f"cd {shlex.quote(str(elsewhere))}")
    path = os.pathsep.join((str(Path(sys.executable).parent), os.environ["PATH"]))
    environment = {**os.environ, "PATH": path, "OMP_NUM_THREADS": "1"}
    done = subprocess.run(
        ["bash", "-c", flags], capture_output=True, text=True, env=environment, check=False
    )
    assert done.returncode == 0, done.stderr
    one, two = (
        torch.load(folder / "checkpoint_last.pt", weights_only=False)["model"]
        for folder in (run.folder, elsewhere)
    )
    assert all(torch.equal(value, two[name]) for name, value in one.items())


@pytest.mark.slow
def test_a_record_from_elsewhere_is_not_made_again(tmp_path, capsys, write_text):
    text = write_text(tmp_path / "text")
    records = tmp_path / "records"
    arguments = ["--attention=softmax", "--records", str(records)]
    assert reproduce(options(text, tmp_path / "one", *arguments), "") == 0
    capsys.readouterr()
    assert reproduce(options(text, tmp_path / "two", *arguments), "") == 0
    assert "1 of 1 runs are finished already" in capsys.readouterr().out
    assert not list((tmp_path / "two").rglob("*.pt"))


@pytest.mark.slow
def test_words_and_tokens_as_in_paper_a(tmp_path, capsys, write_text):
    """Its whole set-up, but for two updates."""
    text = write_text(tmp_path / "text")
    arguments = [str(CONFIGS / "translation" / "base.yaml"), "--data", str(text)]
    arguments += ["--direction=es-en", "--attention=oscarmax", "generate.max_len_b=9"]
    arguments += ["--output", str(tmp_path / "out"), "optimization.max_update=2"]
    chosen = parse_reproduce(arguments)
    assert reproduce(chosen, "") == 0, capsys.readouterr()
    [record] = read_records(chosen.records)
    assert record.updates == 2
    assert record.tokenised_bleu is not None
    assert record.valid_ppl is not None


def test_runs_differ_in_the_mapping_and_the_seed_and_in_nothing_else(tmp_path, write_text):
    """What ``fairseq-hydra-train`` reads of each."""
    given = ["--attention=softmax,fusedmax", "--attention-lambda=0.3", "--seed=1,7"]
    chosen = options(write_text(tmp_path / "text"), tmp_path / "out", *given)
    told, others = [], []
    for run in planned(chosen):
        settings = write_training_settings(run, run.folder)
        assert OmegaConf.load(run.folder / "train.yaml") == settings
        model = settings["model"]
        told.append((model["attention"], model["attention_lambda"], settings["common"].pop("seed")))
        for name in ("attention", "attention_lambda"):
            del model[name]
        others.append(settings)
    assert all(settings == others[0] for settings in others)
    assert told == [
        ("softmax", None, 1),
        ("fusedmax", 0.3, 1),
        ("softmax", None, 7),
        ("fusedmax", 0.3, 7),
    ]


def test_stages_stop_where_they_are_told(tmp_path, capsys, write_text):
    chosen = options(write_text(tmp_path / "text"), tmp_path / "out", "--stage=prepare")
    assert reproduce(chosen, "") == 0
    workspace = planned(chosen)[0].workspace
    assert sorted(p.name for p in workspace.folder.iterdir()) == [".lock", "text"]
    assert "[2/6]" not in capsys.readouterr().out


@pytest.mark.parametrize("module", ["recipes", "quickstart"])
def test_ctrl_c_during_the_imports_is_one_line(tmp_path, run_python, package_dir, module):
    """They take seconds; here torch is imported just when the key is pressed."""
    (tmp_path / "early").mkdir()
    (tmp_path / "early" / "torch.py").write_text("raise KeyboardInterrupt")
    arguments = [PLAIN, "--direction=es-en", "--dry-run"] if module == "recipes" else []
    path = [tmp_path / "early", package_dir.parent]
    done = run_python("-m", f"fairseq_regattn.{module}", *arguments, path=path, expected=130)
    script = {"recipes": "reproduce", "quickstart": "quickstart"}[module]
    assert done.stderr == f"\n{script}.sh: stopped; the same command goes on from here\n"


def test_two_recipes_of_one_name_share_a_folder(tmp_path, write_text):
    """They differ in the mappings only."""
    paths = [tmp_path / name / "same.yaml" for name in ("one", "two")]
    for path, mappings in zip(paths, ("softmax, entmax", "softmax, sparsemax")):
        path.parent.mkdir()
        path.write_text(f"profile: small\nattention: [{mappings}]\n")
    given = [*map(str, paths), "--data", str(write_text(tmp_path / "text")), "--direction=es-en"]
    chosen = parse_reproduce([*given, "--output", str(tmp_path / "out"), "--stage=prepare"])
    wanted = planned(chosen)
    assert [one.attention.mapping for one in wanted] == ["softmax", "entmax", "sparsemax"]
    assert len({one.workspace for one in wanted}) == 1
    assert reproduce(chosen, "") == 0


def test_no_text_is_told_before_anything_is_made(tmp_path):
    (tmp_path / "empty").mkdir()
    with pytest.raises(UsageError, match=r"has no text for es-en: looked for train\.es"):
        reproduce(options(tmp_path / "empty", tmp_path / "out"), "")
    with pytest.raises(UsageError, match=r"plain fetches no corpus: .* --data"):
        reproduce(parse_reproduce([PLAIN, "--direction", "es-en"]), "")
    with pytest.raises(UsageError, match=r"any pair of languages: give --direction"):
        reproduce(parse_reproduce([PLAIN]), "")
    with pytest.raises(UsageError, match=r"plain\.yaml: --direction must be .*, got 'es'"):
        reproduce(parse_reproduce([PLAIN, "--direction", "es"]), "")
    assert not (tmp_path / "out").exists()
