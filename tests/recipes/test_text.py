"""Parallel text is checked, and nothing of it is lost without a word."""

import gzip
import json
import re

import pytest

from fairseq_regattn.errors import UsageError
from fairseq_regattn.recipes.text import find_folder, take

FILES = {"train": "train", "valid": "valid", "test": "test"}
CORPUS = {
    "train.ro": "unu\ndoi\ntrei\n",
    "train.en": "one\ntwo\nthree\n",
    "valid.ro": "patru\n",
    "valid.en": "four\n",
    "test.ro": "cinci\nșase\n",
    "test.en": "five\nsix\n",
}


@pytest.fixture
def corpus(tmp_path):
    """Writes a corpus with changes; ``corpus.take()`` takes it from Romanian to English."""

    class Corpus:
        folder = tmp_path / "raw"
        out = tmp_path / "text"

        def __init__(self, **changes):
            self.folder.mkdir()
            contents = {**CORPUS, **{k.replace("_", "."): v for k, v in changes.items()}}
            for name, text in contents.items():
                if text is not None:
                    raw = text if isinstance(text, bytes) else text.encode()
                    (self.folder / name).write_bytes(raw)

        def take(self, **options):
            return take(self.folder, self.out, "ro", "en", FILES, **options)

        def read(self, name):
            return (self.out / name).read_text(encoding="utf-8")

    return Corpus


def test_a_clean_corpus_is_copied(corpus, capsys):
    clean = corpus()
    counts = clean.take()
    for name, text in CORPUS.items():
        assert clean.read(name) == text
    assert counts["train"]["kept"] == counts["train"]["read"] == 3
    assert json.loads(clean.read("counts.json"))["test"] == {"read": 2, "kept": 2}
    assert "      train: 3 of 3 pairs\n" in capsys.readouterr().out


def test_gzip_and_other_names(corpus):
    given = corpus(test_en=None, valid_ro=None)
    (given.folder / "test.en.gz").write_bytes(gzip.compress(b"five\nsix\n"))
    (given.folder / "val.ro.gz").write_bytes(gzip.compress(b"patru\n"))
    (given.folder / "valid.en").rename(given.folder / "val.en")
    take(given.folder, given.out, "ro", "en", {**FILES, "valid": "val"})
    assert given.read("test.en") == "five\nsix\n"
    assert given.read("valid.ro") == "patru\n"


def test_all_missing_files_are_named_together(corpus):
    with pytest.raises(UsageError) as error:
        corpus(train_ro=None, test_en=None).take(gold="links.txt")
    lines = str(error.value).splitlines()
    assert [line.partition(": ")[0].rpartition("/")[2] for line in lines] == [
        "train.ro",
        "test.en",
        "links.txt",
    ]
    assert "no such file, nor train.ro.gz" in lines[0]


def test_all_faults_are_told_at_once_with_file_and_line(corpus):
    faulty = corpus(
        train_ro=b"unu\nd\xffoi\ntrei\n", valid_en="four\nfive\n", test_ro="\n \n", test_en="x\ny\n"
    )
    with pytest.raises(UsageError) as error:
        faulty.take()
    message = str(error.value)
    assert f"{faulty.folder / 'train.ro'}:2: not UTF-8 (byte 2)" in message
    assert "valid.ro has 1 lines, " in message
    assert "valid.en 2" in message
    assert "test.ro:1: empty line in the test set" in message
    assert "test.ro:2: empty line" in message
    assert "nothing is left of test" in message
    assert not (faulty.out / "counts.json").exists()


def test_ten_faults_are_shown_and_the_others_counted(corpus):
    lines = b"\xff\n" * 25
    with pytest.raises(UsageError) as error:
        corpus(train_ro=lines, train_en="x\n" * 25).take()
    shown = str(error.value).splitlines()
    assert len(shown) == 11
    assert shown[-1] == "and 15 more"


def test_a_cut_gzip_file_is_a_fault(corpus):
    cut = corpus(test_en=None)
    (cut.folder / "test.en.gz").write_bytes(gzip.compress(b"five\nsix\n" * 999)[:-12])
    with pytest.raises(UsageError, match=r"test\.en\.gz: not a whole gzip file"):
        cut.take()


def test_only_a_line_feed_ends_a_line(corpus):
    """What Python takes for other line ends becomes a space, control characters too."""
    odd = corpus(
        train_ro=b"\xef\xbb\xbfunu\r\n" + "do\u2028i\r\ntr\rei\x0bx\r\n".encode(),
        train_en="one\n t\x00wo\t!\nth\xa0ree\n",
    )
    counts = odd.take()
    assert odd.read("train.ro") == "unu\ndo i\ntr ei x\n"
    assert odd.read("train.en") == "one\nt wo\t!\nth\xa0ree\n"
    assert counts["train"]["lines with line separators inside (now spaces)"] == 2
    assert counts["train"]["lines with control characters (now spaces)"] == 1


def test_what_is_dropped_and_what_is_only_counted(corpus):
    repeating = corpus(
        train_ro="unu\npatru\n\nunu\nșase\npatru\n  cinci\ncinci!\n",
        train_en="one\nfour\nempty\none\nanother six\nquatre\nfive\nfive\n",
        valid_ro="patru\n \n",
        valid_en="four\nx\n",
    )
    counts = repeating.take()
    assert repeating.read("train.en") == "one\none\nquatre\nfive\n"
    assert repeating.read("train.ro") == "unu\nunu\npatru\ncinci!\n"
    assert counts["train"] == {
        "read": 8,
        "kept": 4,
        "dropped: empty line on a side": 1,
        "dropped: also in the validation or test set": 2,
        "dropped: source sentence also in the test set": 1,
        "repeat another training pair (kept)": 1,
    }
    assert counts["valid"] == {"read": 2, "kept": 1, "dropped: empty line on a side": 1}


def test_gold_alignments_and_names_go_with_the_test_set(corpus):
    aligned = corpus(links_txt="0-0\n\n", test_names="a\nb\n")
    aligned.take(gold="links.txt")
    assert aligned.read("test.links") == "0-0\n\n"
    assert aligned.read("test.names") == "a\nb\n"


def test_gold_alignments_of_another_length(corpus):
    with pytest.raises(UsageError, match=r"links\.txt has 1 lines, test 2"):
        corpus(links_txt="0-0\n").take(gold="links.txt")


def test_nothing_left_and_one_language_twice(corpus, tmp_path):
    nothing = corpus(train_ro="\n", train_en="x\n")
    with pytest.raises(UsageError, match="nothing is left of train"):
        nothing.take()
    with pytest.raises(UsageError, match="two languages, got 'ro' for both"):
        take(nothing.folder, tmp_path / "other", "ro", "ro", FILES)


@pytest.mark.parametrize("inner", ["", "ro-en", "en-ro"])
def test_find_folder(tmp_path, inner):
    (tmp_path / inner).mkdir(exist_ok=True)
    (tmp_path / inner / "valid.en.gz").touch()
    assert find_folder(tmp_path, "ro", "en", FILES) == tmp_path / inner


def test_find_folder_tells_what_it_looked_for(tmp_path):
    (tmp_path / "en-de").mkdir()
    with pytest.raises(UsageError) as error:
        find_folder(tmp_path, "ro", "en", {**FILES, "valid": "val"})
    for name in ("train.ro", "val.en", "test.en", "ro-en", "en-ro", str(tmp_path)):
        assert name in str(error.value)


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("a <pad> b", "word that fairseq has another use for in the test set: '<pad>'"),
        ("</s>", "word that fairseq has another use for in the test set: '</s>'"),
        ("one@@ two", "subword in the test set: '@@'"),
        ("\u2581one", "subword in the test set: '\u2581'"),
    ],
)
@pytest.mark.parametrize("side", ["ro", "en"])
def test_what_the_test_set_cannot_hold(corpus, line, words, side):
    given = corpus(**{f"test_{side}": f"five\n{line}\n"})
    with pytest.raises(UsageError) as error:
        given.take()
    place = given.folder / f"test.{side}"
    assert str(error.value).splitlines()[0] == f"{place}:2: a {words}"


WITH_ANOTHER_USE = "dropped: a word that fairseq has another use for, such as <pad>"
MARKED = "dropped: a mark of subwords, @@ or \u2581"


@pytest.mark.parametrize("split", ["train", "valid"])
@pytest.mark.parametrize("side", ["ro", "en"])
@pytest.mark.parametrize(
    ("line", "told"),
    [
        *((word, WITH_ANOTHER_USE) for word in ("<s>", "</s>", "<pad>", "<unk>")),
        *((f"a {word}\u00a0b", WITH_ANOTHER_USE) for word in ("<s>", "</s>", "<pad>", "<unk>")),
        *((word, MARKED) for word in ("a@@", "a@@ b", "@@", "\u2581a", "a\u2581")),
        *((word, None) for word in ("<b>", "a<pad>", "<pad>.", "@@a", "a@@a", "@", "_")),
    ],
)
def test_what_training_and_validation_cannot_hold_is_dropped(corpus, split, side, line, told):
    given = corpus()
    whole = given.folder / f"{split}.{side}"
    with open(whole, "a", encoding="utf-8") as file:
        file.write(f"{line}\n")
    other = given.folder / f"{split}.{'en' if side == 'ro' else 'ro'}"
    with open(other, "a", encoding="utf-8") as file:
        file.write("more\n")
    before = CORPUS[f"{split}.{side}"]
    tally = given.take()[split]
    assert {what: n for what, n in tally.items() if what.startswith("dropped") and n} == (
        {told: 1} if told else {}
    )
    assert given.read(f"{split}.{side}") == (before if told else f"{before}{line}\n")


@pytest.mark.parametrize(
    ("links", "words"),
    [
        ("0-0\n0-1\n", ":2: no link can be 0-1 between 1 and 1 words, counted from 0"),
        ("1-0\n\n", ":1: no link can be 1-0 between 1 and 1 words"),
        ("0-0 x\n\n", "'x'"),
    ],
)
def test_links_of_words_that_are_not_there(corpus, links, words):
    given = corpus(gold=links)
    with pytest.raises(UsageError, match=re.escape(words)):
        given.take(gold="gold")
