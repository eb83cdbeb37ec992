"""Texts, fairseq-generate's output and DUC's folders as they are read, and what is refused."""

import gzip

import pytest

from fairseq_regattn.errors import UsageError
from fairseq_regattn.scoring.rouge.files import read_duc, read_generated, read_texts

GENERATED = """\
2026-11-30 12:00:00 | INFO | fairseq_cli.generate | loading model(s) from best.pt
S-2\tun chat
T-2\ta <<unk>> cat
H-2\t-0.5\ta c@@ at
D-2\t-0.5\ta cat
P-2\t-0.1 -0.2 -0.3 -0.1
A-2\t0-0 1-1
H-2\t-0.9\tthe c@@ at
D-2\t-0.9\tthe cat
S-0\tle chien
T-0\tthe dog
H-0\t-0.5\tdog
D-0\t-0.5\tdog
S-1\t
T-1\t
H-1\t-3.5\t
D-1\t-3.5\t
Generate test with beam=5: BLEU4 = 27.30, 58.4/33.1/21.1/13.9 (BP=1.000)
"""

DOCUMENTS = ("D30001.P.10.T.APW19981016.0240", "D30002.P.10.T.NYT19981003.0083")


def named(document, author):
    *before, day, number = document.split(".")
    return ".".join([*before, author, day, number])


PACKED = gzip.compress(b"a\nb\n", mtime=0)  # of the same name in all workers of pytest


@pytest.fixture
def duc(tmp_path):
    """Two documents with four models each, by five people, and two systems."""
    models, peers = tmp_path / "models", tmp_path / "peers"
    for folder, authors in ((models, ("ABCD", "ABCE")), (peers, (("9", "17"), ("9", "17")))):
        folder.mkdir()
        for document, some in zip(DOCUMENTS, authors):
            for author in some:
                (folder / named(document, author)).write_text(f"{author} on {document[:6]}\n")
    return str(peers), str(models)


@pytest.fixture
def in_tmp_path(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_a_line_is_a_document(in_tmp_path):
    (in_tmp_path / "h").write_bytes("\ufeff a b\r\n\nc\x0bd\u2028e".encode())
    (in_tmp_path / "r1.gz").write_bytes(gzip.compress(b"a\n.\nc\n"))
    (in_tmp_path / "r2").write_bytes("b\n日本語\n\n".encode())
    (in_tmp_path / "other").write_bytes(b"x\ny\nz\n")
    corpus = read_texts(["h", "other"], ["r1.gz", "r2"])
    # only a line feed ends a line, and what else there is counts for --bytes
    assert corpus.systems == {"h": [" a b\r", "", "c\x0bd\u2028e"], "other": ["x", "y", "z"]}
    assert corpus.references == [["a", "b"], [".", "日本語"], ["c", ""]]
    assert corpus.names is None


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("r", b"a\nb\nc\n", "h has 2 lines, r 3: line n of each"),
        ("r", b"a\n", "h has 2 lines, r 1"),
        ("r", b"", "r is empty"),
        ("r", b"a\nb\xe9\n", r"r:2: not UTF-8 \(byte 2\)"),
        ("r", PACKED, "r:1: not UTF-8"),
        ("r", b"a\nb@@ c\n", r"r:2 still has subwords \('@@'\)"),
        ("r", "▁a\nb\n".encode(), "r:1 still has subwords"),
        ("r.gz", b"a\nb\n", r"r\.gz: not a whole gzip file"),
        ("r.gz", PACKED[:-9], r"r\.gz: not a whole gzip file"),
    ],
)
@pytest.mark.parametrize("second", [False, True])
def test_texts_that_cannot_be_scored(in_tmp_path, name, content, message, second):
    (in_tmp_path / "h").write_text("a\nb\n")
    (in_tmp_path / name).write_bytes(content)
    with pytest.raises(UsageError, match=message):
        read_texts(["h", name], ["h"]) if second else read_texts(["h"], ["h", name])


def test_what_fairseq_would_score_of_its_output(in_tmp_path):
    (in_tmp_path / "out").write_text(GENERATED)
    corpus = read_generated(["out"])
    assert corpus.systems == {"out": ["dog", "", "a cat"]}
    assert corpus.references == [["the dog"], [""], ["a <<unk>> cat"]]
    # without detokenised lines, those of the model
    whole = [line for line in GENERATED.splitlines() if not line.startswith("D-")]
    (in_tmp_path / "other").write_text("\n".join(whole).replace("c@@ at", "dog"))
    assert read_generated(["out", "other"]).systems["other"] == ["dog", "", "a dog"]


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("T-0\tthe dog\n", "", "no reference T-0 before H-0"),
        ("-0\t", "-7\t", "out has 3 samples up to 7, but not sample 0: cut short"),
        ("D-2\t-0.5\ta cat\n", "", r"out: D-2 still has subwords \('@@'\)"),
        ("T-0\tthe", "T-0\t▁the", "out: T-0 still has subwords"),
        ("H-0\t-0.5", "H-0\tx", "out: could not convert"),
        ("H-0\t-0.5\tdog\n", "", "out: line D-0 does not follow its H-0"),
        (GENERATED, GENERATED * 2, "out has sample 2 twice"),
        ("T-1\t\n", "T-1\t\nT-1\t\n", "out has sample 1 twice"),
        ("T-1\t\n", "T-1\t\nT-3\tx\n", "out has T-3, but no H-3 or D-3: cut short"),
        (GENERATED, "a\nb\n", "out has no hypotheses"),
        (GENERATED, "", "out has no hypotheses"),
    ],
)
def test_output_that_cannot_be_scored(in_tmp_path, old, new, message):
    assert old in GENERATED
    (in_tmp_path / "out").write_text(GENERATED.replace(old, new))
    with pytest.raises(UsageError, match=message):
        read_generated(["out"])


def test_two_outputs_have_the_same_references(in_tmp_path):
    (in_tmp_path / "out").write_text(GENERATED)
    (in_tmp_path / "other").write_text(GENERATED.replace("the dog", "the hound"))
    with pytest.raises(UsageError, match=r"other has other references .* than out"):
        read_generated(["out", "other"])


def test_models_of_a_document_differ_in_their_author(duc, tmp_path):
    (tmp_path / "peers" / ".DS_Store").write_text("")
    corpus = read_duc(*duc)
    assert corpus.names == list(DOCUMENTS)
    assert corpus.systems == {  # in the order of their numbers
        "9": ["9 on D30001\n", "9 on D30002\n"],
        "17": ["17 on D30001\n", "17 on D30002\n"],
    }
    assert corpus.references == [
        [f"{person} on {document[:6]}\n" for person in people]
        for document, people in zip(DOCUMENTS, ("ABCD", "ABCE"))
    ]
    assert list(read_duc(*duc, ["17"]).systems) == ["17"]


def test_a_document_of_several_texts_has_no_name_of_its_own(tmp_path):
    for name in ("models/D30001.M.100.T.A", "peers/D30001.M.100.T.17"):
        path = tmp_path / name
        path.parent.mkdir()
        path.write_text("one\ntwo\n")
    corpus = read_duc(str(tmp_path / "peers"), str(tmp_path / "models"))
    assert corpus.names == ["D30001.M.100.T"]
    assert corpus.references == [["one\ntwo\n"]] == [corpus.systems["17"]]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (b"one\n\ntwo \xe9", "one\n\ntwo \udce9"),  # bytes, as for ROUGE-1.5.5
        (b"", ""),
        (
            b"<html>\n<head><title>no</title></head>\n<body>\n"
            b'<a name="1">[1]</a> <a href="#1" id=1>One, two.</a>\n'
            b'<a size="9" name="2">[2]</a>\t<a href="#2" id=2>Three &amp; four</a> five\n'
            b' <a name="3">[3]</a> <a href="#3" id=3>is not at the start of a line</a>\n'
            b"</body>\n</html>\n",
            "One, two.\nThree &amp; four",
        ),
        (b'<a name="1">[1]</a> <a href="#1" id=1>alone', "alone"),
        (b" <HTML><body>\n</body></HTML>\n", ""),
        (b"<unk> is no markup", "<unk> is no markup"),
    ],
)
def test_plain_text_and_html(duc, tmp_path, text, expected):
    (tmp_path / "peers" / named(DOCUMENTS[1], "9")).write_bytes(text)
    assert read_duc(*duc).systems["9"][1] == expected


def test_folders_that_cannot_be_scored(duc, tmp_path):
    peers, models = tmp_path / "peers", tmp_path / "models"
    other = named("D30009.P.10.T.APW19981016.0001", "9")

    def refused(path, text=None):
        """The message when there is another file, or when one is missing."""
        before = path.read_bytes() if path.exists() else None
        path.unlink() if text is None else path.write_bytes(text)
        with pytest.raises(UsageError) as error:
            read_duc(*duc)
        path.unlink() if before is None else path.write_bytes(before)
        read_duc(*duc)
        return str(error.value)

    # ROUGE-1.5.5 would average over one document
    message = refused(peers / named(DOCUMENTS[0], "17"))
    assert message == f"peer 17 lacks 1 of 2 documents, the first is {DOCUMENTS[0]}"
    message = refused(peers / other, b"a")
    assert message == f"{peers / other} is of a document without a model, one of 1"
    message = refused(peers / "README.txt", b"a")
    assert message.startswith(f"{peers / 'README.txt'} is no file with a name such as D30001.P")
    message = refused(models / named(DOCUMENTS[0], "17"), b"a")
    assert message.endswith("is by system 17, but models are by people: letters")
    message = refused(peers / named(DOCUMENTS[0], "9"), b'\n<SUM DOCSET="D30001">a</SUM>')
    assert message.endswith(".9.APW19981016.0240:1: is neither plain text nor SEE's HTML")
    message = refused(models / named(DOCUMENTS[0], "B"), b"a\nb@@\nc")
    assert message.endswith(
        ".B.APW19981016.0240:2 still has subwords ('@@'): join them first, "
        "with --bpe or --post-process of fairseq-generate"
    )
    for document in DOCUMENTS:
        (peers / named(document, "A")).write_text("A")
    with pytest.raises(UsageError, match=r"peer A also wrote models, such as .*models.D30001"):
        read_duc(*duc)
    read_duc(*duc, ["9"])
    with pytest.raises(UsageError, match="has no peer 3, only 9, A, 17"):
        read_duc(*duc, ["3"])
    (peers / "more").mkdir()
    with pytest.raises(UsageError, match="more is no file with a name"):
        read_duc(*duc)
    (tmp_path / "none").mkdir()
    with pytest.raises(UsageError, match="none has no summaries"):
        read_duc(duc[0], str(tmp_path / "none"))
    with pytest.raises(FileNotFoundError):
        read_duc(str(tmp_path / "missing"), duc[1])
