"""The command, from a file to what fairseq trains on."""

import json
import re
from argparse import Namespace
from pathlib import Path

import pytest

from fairseq_regattn.classification import prepare
from fairseq_regattn.classification.__main__ import main
from fairseq_regattn.classification.vectors import read_vectors

PAIRS = [
    (label, f"premise {number} a, dog", f"{label} {number}")
    for number in range(40)
    for label in ("yes", "no", "maybe")
]
SPLITS = ("train", "valid", "test")


@pytest.fixture(scope="module")
def prepared(write, tmp_path_factory):
    """A folder that the command has made, and its arguments."""
    folder = tmp_path_factory.mktemp("a, b")
    train = write(folder / "pairs.tsv.gz", PAIRS)
    vectors = folder / "glove.txt"
    vectors.write_text("dog 1 2 3\nyes 4 5 6\nunicorn 7 8 9\n")
    arguments = ["prepare", "--train", str(train), "--out", str(folder / "out"), "--lowercase"]
    arguments += ["--labels", "yes,no,maybe", "--hold-out", "valid=0.2,test=0.2"]
    arguments += ["--vectors", str(vectors), "--tokenizer", "wordpunct"]
    assert main(arguments) == 0
    return folder / "out", arguments


@pytest.mark.slow
def test_fairseq_loads_what_is_made(prepared):
    from fairseq.tasks.sentence_prediction import SentencePredictionConfig, SentencePredictionTask

    out, _ = prepared
    cfg = SentencePredictionConfig(data=str(out / "bin"), num_classes=3)
    cfg.regression_target, cfg.seed = False, 1
    task = SentencePredictionTask.setup_task(cfg)
    labels = ["yes", "no", "maybe"]
    assert [task.label_dictionary[task.label_dictionary.nspecial + n] for n in range(3)] == labels
    for split in SPLITS:
        dataset = task.load_dataset(split) or task.datasets[split]
        texts = [
            (out / "text" / f"{split}.{column}").read_text().split("\n")[:-1]
            for column in ("label", "input0", "input1")
        ]
        assert len(dataset) == len(texts[0]) > 0
        known = set(task.source_dictionary.symbols)
        for number, (label, *inputs) in enumerate(zip(*texts)):
            words = [[word if word in known else "<unk>" for word in t.split()] for t in inputs]
            tokens = dataset[number]["net_input.src_tokens"].tolist()
            symbols = [task.source_dictionary[token] for token in tokens]
            assert symbols == [*words[0], "</s>", *words[1], "</s>"]
            assert int(dataset[number]["target"]) == labels.index(label)
    assert ", dog" in texts[1][0]


@pytest.mark.slow
def test_what_lies_beside_the_data(prepared):
    out, _ = prepared
    assert json.loads((out / "bin" / "preparation.json").read_text()) == {
        "inputs": 2,
        "labels": ["yes", "no", "maybe"],
        "tokenizer": "wordpunct",
        "lowercase": True,
    }
    words, vectors = read_vectors(out / "bin" / "vectors.txt", ["dog", "yes", "unicorn"])
    assert (words, vectors.tolist()) == (["dog", "yes"], [[1, 2, 3], [4, 5, 6]])
    dictionaries = [(out / "bin" / f"input{n}" / "dict.txt").read_bytes() for n in range(2)]
    assert dictionaries[0] == dictionaries[1]
    assert {path.name for path in out.iterdir()} == {"text", "bin", "settings.json", ".lock"}


@pytest.mark.slow
def test_what_is_there_is_kept(prepared, capsys):
    out, arguments = prepared
    before = (out / "bin" / "input0" / "train.bin").stat().st_mtime_ns
    assert main(arguments) == 0
    assert capsys.readouterr().out == f"kept: {out / 'text'}\nkept: {out / 'bin'}\n"
    assert (out / "bin" / "input0" / "train.bin").stat().st_mtime_ns == before


@pytest.mark.slow
@pytest.mark.parametrize(
    ("more", "stage", "name"),
    [
        (["--tokenizer", "none"], "text", "tokenizer"),
        (["--labels", "no,yes,maybe"], "text", "labels"),
        (["--min-count", "3"], "bin", "min_count"),
    ],
)
def test_a_folder_of_other_settings(more, stage, name, prepared, capsys):
    out, arguments = prepared
    assert main([*arguments, *more]) == 2
    message = f"{out / stage} was made with other settings ({name}): name another folder"
    assert message in capsys.readouterr().err


@pytest.fixture
def without_fairseq(monkeypatch):
    """Its commands do nothing."""
    monkeypatch.setattr("fairseq_regattn.classification.corpus.run", lambda chains, locks: {})


@pytest.mark.usefixtures("without_fairseq")
def test_malformed_rows_stop_it_or_are_skipped(write, tmp_path, capsys):
    train = write(tmp_path / "x.tsv", [*PAIRS, ("yes", "no hypothesis")])
    arguments = ["prepare", "--train", str(train), "--out", str(tmp_path / "out")]
    assert main(arguments) == 2
    program = "python -m fairseq_regattn.classification prepare"
    told = f"{train}:121: missing column: 2 instead of label, premise, hypothesis"
    assert capsys.readouterr().err == f"{program}: error: {told}\n"
    assert not (tmp_path / "out" / "text").exists()
    # nothing had been made, so the same folder serves
    assert main([*arguments, "--malformed", "skip"]) == 0
    printed = capsys.readouterr()
    assert printed.err == f"      skipped: {told}\n"
    assert "1 malformed: missing column" in printed.out


@pytest.mark.usefixtures("without_fairseq")
def test_other_vectors_do_where_the_first_were_malformed(write, tmp_path, capsys):
    train, vectors = write(tmp_path / "x.tsv", PAIRS), tmp_path / "v.txt"
    vectors.write_text("dog 1 2\nyes 1\n")
    arguments = ["prepare", "--train", str(train), "--out", str(tmp_path / "out")]
    arguments += ["--vectors", str(vectors)]
    assert main(arguments) == 2
    assert "v.txt:2: 2 columns instead of a word and 2 numbers" in capsys.readouterr().err
    vectors.write_text("dog 1 2\n")
    assert main(arguments) == 0
    assert f"kept: {tmp_path / 'out' / 'text'}" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("more", "message"),
    [
        (["--train", "nowhere"], "nowhere: no such file or folder"),
        (["--vectors", "nowhere"], "nowhere: no such file"),
        (["--labels", "yes"], "labels must be two different words"),
        (["--inputs", "1"], "too many columns"),
    ],
)
def test_wrong_use_is_one_message(more, message, write, tmp_path, capsys):
    train = write(tmp_path / "x.tsv", PAIRS[:1])
    assert main(["prepare", "--train", str(train), "--out", str(tmp_path / "o"), *more]) == 2
    assert message in capsys.readouterr().err.splitlines()[0]


@pytest.mark.parametrize("value", ["valid", "valid=x", "valid:0.1"])
def test_parts_that_are_none(value, capsys):
    with pytest.raises(SystemExit) as status:
        main(["prepare", "--train", "x", "--out", "y", "--hold-out", value])
    assert status.value.code == 2
    assert "must be such as valid=0.1,test=0.2" in capsys.readouterr().err


def test_settings_name_no_places(write, tmp_path):
    """The same corpus elsewhere is the same corpus."""
    given = dict.fromkeys(("labels", "hold_out", "vectors", "min_count", "format"))
    given = Namespace(**given, inputs=2, malformed="error", tokenizer="none", lowercase=False)
    (tmp_path / "a").mkdir()
    settings = [
        prepare._settings(given, {"train": write(folder / "x.tsv", PAIRS)})
        for folder in (tmp_path, tmp_path / "a")
    ]
    assert settings[0] == settings[1]
    assert not re.search(re.escape(str(Path(tmp_path))), json.dumps(settings))
