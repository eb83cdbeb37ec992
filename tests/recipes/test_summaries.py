"""Recipes for summaries: what they prepare from, and two of them as a whole on a toy corpus."""

import gzip
import re
import subprocess
import sys
from pathlib import Path

import pytest

from fairseq_regattn.analysis.records import Record, read_hypotheses, read_records
from fairseq_regattn.errors import UsageError
from fairseq_regattn.recipes import report, work
from fairseq_regattn.recipes.__main__ import planned, reproduce
from fairseq_regattn.recipes.load import CONFIGS, load_recipe
from fairseq_regattn.recipes.options import parse_reproduce
from fairseq_regattn.scoring.rouge import Limit, Rouge

pytest.importorskip("matplotlib", reason="matplotlib draws the heat maps")

ROOT = Path(__file__).resolve().parents[2]
SCRIPTS = ROOT / "scripts" / "prepare"
HEADLINES = ROOT.parent / "shared" / "data" / "headlines"
SUMMARIES = CONFIGS / "summarization"

NOUNS = ["police", "storm", "minister", "bank", "team", "court", "army", "river"]
FUSED = "fusedmax-lambda0.1"
VERBS = ["warns", "hits", "sues", "leaves", "wins", "rises"]
TINY = ["profile=small", "optimization.max_update=8", "dataset.max_tokens=300"]
TINY += ["lr_scheduler.warmup_updates=2", "model.encoder_embed_dim=16", "generate.max_len_b=8"]
TINY += ["model.encoder_hidden_size=8", "model.decoder_embed_dim=16"]


def prepare(script, *arguments, status=0):
    result = subprocess.run(
        [sys.executable, SCRIPTS / script, *arguments], capture_output=True, text=True, check=False
    )
    assert result.returncode == status, result.stderr
    return result


def write(path, lines):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")


@pytest.fixture
def sumdata(tmp_path):
    """Gigaword's folder in small: one of the DUC sets, and one file packed."""

    def article(number):
        noun, verb = NOUNS[number % 8], VERBS[number % 6]
        return f"the {noun} of <unk> {verb} {NOUNS[(number + 3) % 8]} {number // 3 + 10} times ."

    folder = tmp_path / "sumdata"
    masked = [re.sub(r"\d", "#", article(n)) for n in range(60)]
    titles = [f"{NOUNS[n % 8]} {VERBS[n % 6]} {NOUNS[(n + 3) % 8]} ##" for n in range(60)]
    write(folder / "train" / "train.article.txt", masked[:40])
    write(folder / "train" / "train.title.txt", titles[:40])
    write(folder / "train" / "valid.article.filter.txt", masked[40:46])
    write(folder / "train" / "valid.title.filter.txt", titles[40:46])
    write(folder / "Giga" / "input.txt", [line.replace("<unk>", "UNK") for line in masked[46:50]])
    with gzip.open(folder / "Giga" / "task1_ref0.txt.gz", "wt", encoding="utf-8") as file:
        file.writelines(f"{title}\n" for title in titles[46:50])
    write(folder / "DUC2004" / "input.txt", [f"The {article(n)[4:-1]}( x )" for n in range(50, 55)])
    for number in range(4):
        lines = [f"{t.capitalize()} (model {number})" for t in titles[50:55]]
        write(folder / "DUC2004" / f"task1_ref{number}.txt", lines)
    return folder


def test_gigaword_is_made_of_its_folder(sumdata, tmp_path):
    out = tmp_path / "gigaword"
    printed = prepare("gigaword.py", sumdata, out).stdout
    assert "train: 40 inputs (the set that others report on has 3,803,957)" in printed
    assert "duc2003: left out" in printed
    read = {path.name: path.read_text(encoding="utf-8").splitlines() for path in out.iterdir()}
    assert {name.partition(".")[0] for name in read} == {"train", "valid", "test", "duc2004"}
    assert "<unk>" in read["test.article"][0]
    assert "UNK" not in read["test.article"][0]
    first = "the minister of <unk> sues court 26 times -lrb- x -rrb-"
    assert read["duc2004.original"][0] == first
    assert read["duc2004.article"][0] == first.replace("26", "##")
    assert read["duc2004.title3"][0] == "Minister sues court ## (model 3)"
    assert sorted(n for n in read if n.startswith("duc2004.title")) == [
        *("duc2004.title", "duc2004.title1", "duc2004.title2", "duc2004.title3")
    ]


def test_all_that_is_missing_of_gigaword_is_told(sumdata, tmp_path):
    (sumdata / "train" / "train.title.txt").unlink()
    (sumdata / "DUC2004" / "task1_ref2.txt").unlink()
    told = prepare("gigaword.py", sumdata, tmp_path / "out", status=1).stderr
    assert "train/train.title.txt\n" in told
    assert "DUC2004/task1_ref2.txt\n" in told
    assert "DUC2003" not in told
    assert not (tmp_path / "out").exists()


def test_gigaword_of_unequal_lines_is_refused(sumdata, tmp_path):
    write(sumdata / "Giga" / "input.txt", ["one"])
    told = prepare("gigaword.py", sumdata, tmp_path / "out", status=1).stderr
    assert "unequal numbers of lines: Giga/input.txt 1, Giga/task1_ref0.txt 4" in told


def test_headlines_in_lower_case(tmp_path):
    raw = tmp_path / "raw"
    raw.mkdir()
    for split in ("train", "valid", "test"):
        with gzip.open(raw / f"{split}.tsv.gz", "wt", encoding="utf-8") as file:
            file.write(f"A  Tool ({split})\tÉcole tool\nno synopsis\t \n")
    printed = prepare("headlines.py", raw, tmp_path / "out").stdout
    assert printed.count("1  dropped, a side is empty") == 3
    made = {p.name: p.read_text(encoding="utf-8") for p in (tmp_path / "out").iterdir()}
    assert len(made) == 6
    assert made["train.paragraph"] == "a tool (train)\n"
    assert made["train.synopsis"] == "école tool\n"


FAULTS = {
    "not a whole gzip file": gzip.compress(b"a tool\tTool\n" * 9)[:-9],
    "not a whole gzip file (Not a gzipped file": b"a tool\tTool\n",
    ":2: not UTF-8": gzip.compress(b"a tool\tTool\ncaf\xe9\tx\n"),
}


def told_in_one_line(result, script, *parts):
    assert result.stderr.startswith(f"{script}: error: ")
    assert result.stderr.count("\n") == 1
    assert all(part in result.stderr for part in parts), result.stderr


@pytest.mark.parametrize(
    ("fault", "content"),
    [
        *FAULTS.items(),
        ("nothing is left of 1 lines", gzip.compress(b"no synopsis\n")),
        ("No such file", None),
    ],
)
def test_headlines_that_cannot_be_read(tmp_path, fault, content):
    """What was there stays whole, so that no split is of another corpus than the others."""
    raw, out = tmp_path / "raw", tmp_path / "out"
    raw.mkdir()
    for split in ("train", "valid", "test"):
        (raw / f"{split}.tsv.gz").write_bytes(gzip.compress(b"a tool\tTool\n"))
    prepare("headlines.py", raw, out)
    before = {path.name: path.read_bytes() for path in out.iterdir()}
    (raw / "train.tsv.gz").write_bytes(gzip.compress(b"another\tOther\n"))
    path = raw / "valid.tsv.gz"
    path.unlink()
    if content is not None:
        path.write_bytes(content)
    result = prepare("headlines.py", raw, out, status=1)
    told_in_one_line(result, "headlines.py", str(path), fault)
    assert {path.name: path.read_bytes() for path in out.iterdir()} == before


@pytest.mark.parametrize(("fault", "content"), FAULTS.items())
def test_gigaword_that_cannot_be_read(sumdata, tmp_path, fault, content):
    path = sumdata / "Giga" / "task1_ref0.txt.gz"
    path.write_bytes(content)
    result = prepare("gigaword.py", sumdata, tmp_path / "out", status=1)
    told_in_one_line(result, "gigaword.py", str(path), fault)
    assert not (tmp_path / "out" / "test.title").exists()


@pytest.mark.skipif(not HEADLINES.exists(), reason=f"needs {HEADLINES}")
def test_headlines_of_the_corpus_at_hand(tmp_path):
    printed = prepare("headlines.py", HEADLINES, tmp_path / "out").stdout.split()
    assert printed[-2:] == ["1305", "kept"]


@pytest.mark.slow
def test_duc_by_the_models_of_gigaword(sumdata, tmp_path, capsys, monkeypatch):
    """Four references, 75 bytes, digits, brackets; nothing is trained or made twice."""
    monkeypatch.setattr(report, "SUMMARY_LENGTHS", range(1, 100))
    prepare("gigaword.py", sumdata, tmp_path / "data")
    out = tmp_path / "out"
    arguments = [str(SUMMARIES / "duc2004.yaml"), "--data", str(tmp_path / "data"), *TINY]
    arguments += ["--output", str(out), "--attention=softmax,fusedmax"]
    chosen = parse_reproduce(arguments)
    assert reproduce(chosen, "the command") == 0, capsys.readouterr().err
    printed = capsys.readouterr().out
    assert "ROUGE-L recall, 75 bytes" in printed
    records = read_records(chosen.records)
    assert {(record.recipe, record.name) for record in records} == {
        (recipe, name) for recipe in ("gigaword", "duc2004") for name in ("softmax", FUSED)
    }
    assert len(list(out.rglob("checkpoint_best.pt"))) == 2
    runs = {(run.workspace.recipe.name, run.attention.name): run for run in planned(chosen)}
    for record in records:
        run = runs[record.recipe, record.name]
        texts = read_hypotheses(chosen.records, record)
        assert (run.folder / "summaries.txt").read_text(encoding="utf-8").splitlines() == texts
        assert record.bleu is None
        assert record.updates == 8
        references = run.workspace.all_references
        assert len(references[0]) == (4 if record.recipe == "duc2004" else 1)
        limits = {"": None, ", 75 bytes": Limit("bytes", 75)}
        for ending in limits if record.recipe == "duc2004" else [""]:
            rouge = Rouge(stem=True, limit=limits[ending])
            expected = rouge.system(texts, references).averages()["L"].recall
            found = record.summary.scores[f"rougeL recall{ending}"]
            assert found == pytest.approx([100 * value for value in expected])
        assert Record.read(chosen.records / record.path) == record
    inputs = runs["duc2004", FUSED].workspace
    lines = (inputs.text / "test.original").read_text(encoding="utf-8").splitlines()
    assert [re.sub(r"\d", "#", line) for line in lines] == inputs.sources
    pictures = sorted(path.name for path in inputs.folder.rglob("*.png"))
    assert any(name.startswith("span-") for name in pictures)
    assert any(name.startswith("alignment-") for name in pictures)
    results = (out / "results" / "results.md").read_text(encoding="utf-8")
    assert "\n| ROUGE-1 recall, 75 bytes |" in results
    assert "BLEU" not in results
    assert "p of rouge1 f1" in results

    before = {path: path.stat().st_mtime_ns for path in out.rglob("*")}
    assert reproduce(chosen, "the command") == 0
    assert "Nothing to do" in capsys.readouterr().out
    assert {path: path.stat().st_mtime_ns for path in out.rglob("*")} == before


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ("preprocess.tokenizer=moses", "preprocess.tokenizer must be none for summaries"),
        ("summary.bytes=0", "summary.bytes must be at least 1, or null, got 0"),
        ("summary.bytes=x", "summary.bytes"),
        ("summary.steam=true", "steam"),
    ],
)
def test_settings_that_summaries_cannot_have(change, message):
    with pytest.raises(UsageError, match=message):
        load_recipe(SUMMARIES / "headlines.yaml", [change])


@pytest.mark.parametrize(
    "change",
    ["references=[synopsis]", "references=[a,a]", "references=[names]", "original=paragraph"],
)
def test_references_are_each_of_another_file(change):
    """The target would count twice, and a file of the test set be replaced by another."""
    told = r"data\.original must be other endings than paragraph, synopsis, names, links, each once"
    with pytest.raises(UsageError, match=told):
        load_recipe(SUMMARIES / "headlines.yaml", [f"data.{change}"])
    load_recipe(SUMMARIES / "headlines.yaml", ["data.references=[a,b]", "data.original=c"])


def test_references_are_for_summaries():
    with pytest.raises(UsageError, match=r"data\.references .* given for summaries only"):
        load_recipe(CONFIGS / "translation" / "plain.yaml", ["data.references=[x]"])


def test_a_recipe_that_decodes_trains_nothing_else(tmp_path):
    """What is trained is said in the other recipe, so that one command cannot mean two models."""
    path = tmp_path / "mine.yaml"
    path.write_text(
        f"base: {SUMMARIES / 'gigaword.yaml'}\ndecodes: {SUMMARIES / 'gigaword.yaml'}\n"
        "train: {optimization: {max_epoch: 1}}\n"
    )
    chosen = parse_reproduce([str(path), "--dry-run"])
    with pytest.raises(UsageError, match=r"train must be that of .*gigaword\.yaml"):
        planned(chosen)


def test_a_missing_reference_or_original_is_told(sumdata, tmp_path, capsys):
    prepare("gigaword.py", sumdata, tmp_path / "data")
    (tmp_path / "data" / "duc2004.title2").unlink()
    (tmp_path / "data" / "duc2004.original").write_text("too short\n")
    arguments = [str(SUMMARIES / "duc2004.yaml"), "--data", str(tmp_path / "data"), *TINY]
    arguments += ["--output", str(tmp_path / "out"), "--stage=prepare", "--attention=softmax"]
    assert reproduce(parse_reproduce(arguments), "") == 1
    assert "duc2004.title2: no such file" in capsys.readouterr().err
    (tmp_path / "data" / "duc2004.title2").write_text("a\n\nc\nd\ne\n")
    assert reproduce(parse_reproduce(arguments), "") == 1
    told = capsys.readouterr().err
    assert "duc2004.title2:2: empty line in the test set" in told
    assert "duc2004.original has 1 lines, test 5" in told
    (tmp_path / "data" / "duc2004.title2").write_text("a\nb\nc\nd\ne\n")
    lines = (tmp_path / "data" / "duc2004.article").read_text().splitlines()
    lines[3] = f"{lines[3]} more"
    write(tmp_path / "data" / "duc2004.original", lines)
    assert reproduce(parse_reproduce(arguments), "") == 1
    told = capsys.readouterr().err
    assert "duc2004.original:4 has 12 words, " in told
    assert "duc2004.article:4 11: one for each of them is needed" in told
    assert told.count("duc2004.original:") == 1


def test_dictionaries_that_were_removed_are_made_again(sumdata, tmp_path, monkeypatch):
    """Of a recipe whose runs are finished, where another one decodes its models."""
    prepare("gigaword.py", sumdata, tmp_path / "data")
    arguments = [str(SUMMARIES / "duc2004.yaml"), "--data", str(tmp_path / "data"), *TINY]
    arguments += ["--output", str(tmp_path / "out"), "--stage=preprocess", "--attention=softmax"]
    chosen = parse_reproduce(arguments)
    trained, decoding = planned(chosen)
    for path in (trained.checkpoint, trained.record(chosen.records)):
        path.parent.mkdir(parents=True, exist_ok=True)
        path.touch()
    made = []
    for stage in ("prepare", "preprocess"):
        monkeypatch.setattr(
            work,
            stage,
            lambda workspace, *_, stage=stage: made.append((stage, workspace.key)) or [],
        )
    assert reproduce(chosen, "") == 0
    keys = [run.workspace.key for run in (trained, decoding)]
    assert made == [(stage, key) for stage in ("prepare", "preprocess") for key in keys]


def test_keys_of_translation_recipes_stay():
    """Committed records of finished runs have them in their names."""
    recipe = load_recipe(CONFIGS / "translation" / "tatoeba.yaml").towards("cs-en")
    assert recipe.key(b"corpus") == "04ab5149"
