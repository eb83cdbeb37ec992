"""Tokens and subwords: what fairseq is told to undo them by does undo them."""

import json
import os
import signal
import subprocess
import sys
import time
from collections import Counter

import pytest
from fairseq.data.encoders.moses_tokenizer import MosesTokenizer, MosesTokenizerConfig
from fairseq.data.encoders.sentencepiece_bpe import SentencepieceBPE, SentencepieceConfig

from fairseq_regattn.analysis.words import join_subwords
from fairseq_regattn.errors import UsageError
from fairseq_regattn.recipes import encode as module
from fairseq_regattn.recipes.encode import binarise, encode, preprocess_command
from fairseq_regattn.recipes.recipe import Preprocess
from fairseq_regattn.recipes.stages import StageError
from fairseq_regattn.recipes.text import SPLITS, write_pairs

PAIRS = [
    ("Das ist z.B. gut, oder?", "It's good, isn't it?"),
    ("Frau Müller-Lüdenscheid & „Söhne“ kamen um 10.30 Uhr.", 'They\'re "well-known" (to us).'),
    ("Hallo, Welt!", "Hello, world!"),
    ("Nein; ja: 3,5 von 1.000 €.", "No; yes: 3.5 of €1,000."),
    ("Ja, er bzw. Sie.", "The quick brown fox jumps over my lazy dog."),
]


@pytest.fixture
def text(tmp_path):
    folder = tmp_path / "text, raw"
    folder.mkdir()
    for split in SPLITS:
        write_pairs(folder, split, ("de", "en"), PAIRS * (50 if split == "train" else 1))
    return folder


def lines(path):
    return path.read_text(encoding="utf-8").split("\n")[:-1]


def test_moses_tokens_are_undone_by_fairseq(text, tmp_path):
    encode(text, tmp_path / "tokens", Preprocess(tokenizer="moses"), "de", "en")
    for side, language in enumerate(("de", "en")):
        undo = MosesTokenizer(MosesTokenizerConfig(source_lang="xx", target_lang=language))
        tokens = lines(tmp_path / "tokens" / f"test.{language}")
        assert [undo.decode(line) for line in tokens] == [pair[side] for pair in PAIRS]
    german, english = tokens_of(tmp_path / "tokens")
    assert german[4] == "Ja , er bzw. Sie ."  # abbreviations of the language
    assert "Müller @-@ Lüdenscheid & „ Söhne “" in german[1]  # nothing is escaped
    assert english[0] == "It 's good , isn 't it ?"


def tokens_of(folder):
    return lines(folder / "test.de"), lines(folder / "test.en")


def test_many_lines_are_tokenised_side_by_side_in_their_order(text, tmp_path, monkeypatch):
    preprocess = Preprocess(tokenizer="moses")
    encode(text, tmp_path / "at once", preprocess, "de", "en")
    monkeypatch.setattr(module, "BATCH", 70)
    monkeypatch.setattr(module, "CHUNK", 1)
    encode(text, tmp_path / "parts", preprocess, "de", "en")
    for name in ("train.de", "train.en"):
        assert lines(tmp_path / "parts" / name) == lines(tmp_path / "at once" / name)


SLOW = """\
import time
from fairseq_regattn.recipes import encode

def slow(lines, language):
    open(lines[0], "w").close()
    time.sleep(60)

encode.tokenise, encode.CHUNK, encode.cores = slow, 1, lambda: 2
encode._tokenise_all(["a", "b"], "en")
"""


def test_ctrl_c_is_for_the_main_process_alone(tmp_path, package_dir):
    """A terminal sends it to all; those that tokenise must not each print a traceback."""
    process = subprocess.Popen(
        [sys.executable, "-c", SLOW],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(package_dir.parent)},
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    end = time.monotonic() + 60
    while not ((tmp_path / "a").exists() and (tmp_path / "b").exists()):
        assert process.poll() is None
        assert time.monotonic() < end
        time.sleep(0.02)
    os.killpg(process.pid, signal.SIGINT)
    _, errors = process.communicate(timeout=60)
    assert "ForkPoolWorker" not in errors
    assert errors.count("Traceback") == 1, errors
    assert errors.endswith("KeyboardInterrupt\n")


def test_long_pairs_are_dropped_by_their_tokens_but_not_from_the_test_set(text, tmp_path, capsys):
    """The second pair has 14 German tokens and 8 German words."""
    preprocess = Preprocess(tokenizer="moses", max_words=12)
    counts = encode(text, tmp_path / "tokens", preprocess, "de", "en")
    dropped = "dropped: more than 12 words on a side"
    assert counts["train"] == Counter({"read": 250, "kept": 200, dropped: 50})
    assert counts["valid"] == Counter({"read": 5, "kept": 4, dropped: 1})
    assert counts["test"] == Counter({"read": 5, "kept": 5})
    assert len(lines(tmp_path / "tokens" / "train.en")) == 200
    assert len(lines(tmp_path / "tokens" / "test.de")) == 5
    assert f"      train: 200 of 250 pairs; 50 {dropped}\n" in capsys.readouterr().out
    assert json.loads((tmp_path / "tokens" / "counts.json").read_text())["train"]["kept"] == 200


def test_nothing_left(text, tmp_path):
    with pytest.raises(UsageError, match=r"nothing is left of train: .*more than 1 words"):
        encode(text, tmp_path / "tokens", Preprocess(max_words=1), "de", "en")


def test_a_language_that_sacremoses_does_not_know(text, tmp_path, capsys):
    for path in text.glob("*.de"):
        path.rename(path.with_suffix(".eo"))
    encode(text, tmp_path / "tokens", Preprocess(tokenizer="moses"), "eo", "en")
    assert "does not know 'eo'" in capsys.readouterr().out
    assert lines(tmp_path / "tokens" / "test.eo")[2] == "Hallo , Welt !"


@pytest.mark.parametrize("joined", [True, False])
def test_subwords_are_undone_by_the_model_of_the_target(text, tmp_path, joined):
    out = tmp_path / "tokens, joined"
    preprocess = Preprocess(tokenizer="moses", subwords=75 if joined else 56, joined=joined)
    encode(text, out, preprocess, "de", "en")
    models = {"spm.model"} if joined else {"spm.de.model", "spm.en.model"}
    assert {path.name for path in out.glob("*.model")} == models
    assert not (out / "words").exists()
    model = out / ("spm.model" if joined else "spm.en.model")
    pieces = SentencepieceBPE(SentencepieceConfig(sentencepiece_model=str(model)))
    words = MosesTokenizer(MosesTokenizerConfig(target_lang="en"))
    test = lines(out / "test.en")
    assert len(test[0].split()) > 10  # in pieces indeed
    assert [words.decode(pieces.decode(line)) for line in test] == [pair[1] for pair in PAIRS]
    assert len(lines(out / "train.de")) == 250


def test_subwords_are_learnt_from_a_spread_out_sample(text, tmp_path, monkeypatch):
    monkeypatch.setattr(module, "SAMPLE", 100)  # of 500 lines
    sampled = list(module._sample([text / "train.de", text / "train.en"]))
    assert sampled == [PAIRS[0][0]] * 50 + [PAIRS[0][1]] * 50
    monkeypatch.setattr(module, "SAMPLE", 500)
    assert len(list(module._sample([text / "train.de", text / "train.en"]))) == 500


@pytest.mark.parametrize(("size", "allowed"), [(5000, "at most "), (9, "at least ")])
def test_a_number_of_subwords_that_does_not_fit_the_text(text, tmp_path, size, allowed):
    with pytest.raises(UsageError) as error:
        encode(text, tmp_path / "tokens", Preprocess(subwords=size, joined=True), "de", "en")
    message = str(error.value)
    assert message.startswith(f"preprocess.subwords must be {allowed}")
    assert message.endswith(f"for the training text of de and en, got {size}")
    limit = int(message.removeprefix(f"preprocess.subwords must be {allowed}").split()[0])
    encode(text, tmp_path / "again", Preprocess(subwords=limit, joined=True), "de", "en")


def words_of(path):
    """Entries of a dictionary that were in the text."""
    return [line for line in lines(path) if not line.startswith("madeupword")]


def test_command(tmp_path):
    def command(**settings):
        preprocess = Preprocess(**settings)
        tokens, binary = tmp_path / "tokens", tmp_path / "bin"
        done = preprocess_command(tokens, binary, preprocess, "de", "en")
        return " ".join(done)

    assert "-s de -t en --destdir bin" in command()
    assert "--trainpref tokens/train --validpref tokens/valid --testpref tokens/test" in command()
    assert "--nwordssrc 104 --nwordstgt 104" in command(vocabulary=100)
    assert "--nwords" not in command(subwords=100)
    assert "--joined-dictionary" in command(joined=True)
    assert "--joined-dictionary" not in command()


@pytest.mark.slow
def test_binary_data_of_words(text, tmp_path):
    folder = tmp_path / "a,b:c"
    folder.mkdir()
    preprocess = Preprocess(vocabulary=10)
    encode(text, folder / "tokens", preprocess, "de", "en")
    binarise(folder / "tokens", folder / "bin", preprocess, "de", "en")
    for language in ("de", "en"):
        assert len(words_of(folder / "bin" / f"dict.{language}.txt")) == 10
        assert (folder / "bin" / f"test.de-en.{language}.idx").exists()


def test_a_failure_names_its_log(tmp_path, monkeypatch):
    fails = [sys.executable, "-c", "import sys; sys.exit('Error: no such prefix')"]
    monkeypatch.setattr(module, "command", lambda name, *arguments: fails)
    with pytest.raises(StageError, match=r"no such prefix \(see .*bin/binarise\.log\)"):
        binarise(tmp_path / "tokens", tmp_path / "bin", Preprocess(), "de", "en")
    assert "no such prefix" in (tmp_path / "bin" / "binarise.log").read_text()


GREEK = "\u03ba\u03b1\u03b8\u1fbd \u1f11\u03ba\u03ac\u03c3\u03c4\u03b7\u03bd"  # an elision


def test_subwords_keep_the_words_that_links_made_by_hand_count(text, tmp_path):
    """NFKC, sentencepiece's default, would make a space of the sign of elision."""
    for split in ("train", "valid", "test"):
        with open(text / f"{split}.de", "a", encoding="utf-8") as de:
            de.write(f"{GREEK}\n")
        with open(text / f"{split}.en", "a", encoding="utf-8") as en:
            en.write("every day\n")
    (text / "test.links").write_text("")
    encode(text, tmp_path / "out", Preprocess(subwords=90, joined=True), "de", "en")
    assert join_subwords(lines(tmp_path / "out" / "test.de"))[-1] == GREEK
    (text / "test.links").unlink()
    encode(text, tmp_path / "other", Preprocess(subwords=90, joined=True), "de", "en")
    assert join_subwords(lines(tmp_path / "other" / "test.de"))[-1] != GREEK


def test_subwords_that_make_other_words_are_refused(text, tmp_path, monkeypatch):
    (text / "test.links").write_text("")
    monkeypatch.setattr(module, "join_subwords", lambda lines: ["x"] * len(lines))
    with pytest.raises(UsageError, match=r"test\.de:1: subwords make other words of it \('x'\)"):
        encode(text, tmp_path / "out", Preprocess(subwords=85, joined=True), "de", "en")
