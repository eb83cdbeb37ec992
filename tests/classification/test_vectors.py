"""Word vectors are read by streaming, whatever they are packed in."""

import gzip
import re
import zipfile

import numpy as np
import pytest

from fairseq_regattn.classification.vectors import coverage, read_vectors, write_vectors
from fairseq_regattn.errors import UsageError

GLOVE = """\
, 0.5 -1 2e-3
the 0.1 0.2 0.3
. . . 9 9 9
dog 1 2 3
the 7 7 7
é 4 5 6
. 0 0 1
"""


@pytest.fixture
def write(tmp_path):
    def write(ending, text=GLOVE, **others):
        raw = text if isinstance(text, bytes) else text.encode()
        path = tmp_path / f"glove.{ending}"
        if ending == "zip":
            with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
                for name, content in {"glove.300d.txt": raw, **others}.items():
                    archive.writestr(name, content)
        else:
            path.write_bytes(gzip.compress(raw) if ending.endswith("gz") else raw)
        return path

    return write


@pytest.mark.parametrize("ending", ["txt", "vec", "txt.gz", "zip"])
@pytest.mark.parametrize("header", ["", "7 3\n"])
@pytest.mark.parametrize("dim", [None, 3])
def test_wanted_words_are_found(ending, header, dim, write):
    path = write(ending, header + GLOVE)
    words, vectors = read_vectors(path, {"dog", "the", ".", "é", "cat"}, dim)
    assert words == ["the", "dog", "é", "."]  # the first `the`, and not `. . .`
    assert vectors.dtype == np.float32
    expected = np.array([[0.1, 0.2, 0.3], [1, 2, 3], [4, 5, 6], [0, 0, 1]], dtype=np.float32)
    np.testing.assert_array_equal(vectors, expected)


def test_a_first_word_with_spaces(write):
    words, vectors = read_vectors(write("txt", ". . 9 9\n" + "a 1 2\nb 3 4\n"), ["b"])
    assert (words, vectors.tolist()) == (["b"], [[3, 4]])


def test_spaces_at_the_end_and_other_line_ends(write):
    words, vectors = read_vectors(write("vec", "2 2\na 1 2 \r\nb 3 4 \r\n"), ["a", "b"])
    assert (words, vectors.tolist()) == (["a", "b"], [[1, 2], [3, 4]])


def test_numbers_alone_are_no_header(write):
    words, _ = read_vectors(write("txt", "5 1\nx 2\n"), ["x"])
    assert words == ["x"]
    words, _ = read_vectors(write("txt", "5 9 9\nx 2 1\n"), ["5", "x"])
    assert words == ["5", "x"]


@pytest.mark.parametrize("ending", ["txt", "txt.gz", "zip"])
@pytest.mark.parametrize(
    ("line", "message"),
    [
        (b"dog 1 2", "3 columns instead of a word and 3 numbers"),
        (b"other 1 2", "3 columns instead of a word and 3 numbers"),
        (b"", "0 columns instead"),
        (b"cat 1 x\xff 2", "is not a finite number"),
        (b"cat 1 nan 2", "'nan' is not a finite number"),
        (b"cat 1 2 inf", "'inf' is not a finite number"),
    ],
)
def test_malformed_lines(ending, line, message, write):
    path = write(ending, GLOVE.encode() + line + b"\n")
    with pytest.raises(UsageError, match=rf"{re.escape(str(path))}\S*:8: .*{message}"):
        read_vectors(path, ["dog", "cat"])


def test_words_that_are_not_utf8_are_not_wanted(write):
    words, _ = read_vectors(write("txt", b"\xff 1 2\na 1 2\n"), ["a", "\ufffd"])
    assert words == ["a"]


def test_files_that_cannot_be_unpacked(write, tmp_path):
    for ending in ("txt.gz", "zip"):
        path = write(ending, GLOVE * 50)
        path.write_bytes(path.read_bytes()[:-30])
        with pytest.raises(UsageError, match=r":\d+: the file cannot be unpacked"):
            read_vectors(path, ["dog"])
    with pytest.raises(UsageError, match="nowhere: no such file"):
        read_vectors(tmp_path / "nowhere", ["dog"])
    with pytest.raises(UsageError, match="txt:1: no line of a word and its numbers"):
        read_vectors(write("txt", "\n"), ["dog"])


def test_a_zip_with_a_password(write):
    path = write("zip")
    raw = bytearray(path.read_bytes())
    raw[6] |= 1  # the flags of the file, here and in the directory
    raw[raw.rindex(b"PK\x01\x02") + 8] |= 1
    path.write_bytes(raw)
    with pytest.raises(UsageError, match=r"zip:1: the file cannot be unpacked \(.*password"):
        read_vectors(path, ["dog"])


@pytest.mark.parametrize("offset", [0, 40, 60])
def test_a_damaged_zip_of_vectors(offset, tmp_path):
    """Its header, or what is packed."""
    path = tmp_path / "x.zip"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_LZMA) as archive:
        archive.writestr("glove.300d.txt", GLOVE * 50)
    raw = bytearray(path.read_bytes())
    raw[offset] ^= 255
    path.write_bytes(raw)
    with pytest.raises(UsageError, match=r"x\.zip.*:1: the file cannot be unpacked"):
        read_vectors(path, ["dog"])


def test_one_of_several_files_in_a_zip(write):
    small = {"glove.50d.txt": "dog 1\n"}
    assert read_vectors(write("zip", **small), ["dog"])[1].tolist() == [[1, 2, 3]]
    both = write("zip", **{"b300d.txt": "dog 1\n"})
    with pytest.raises(UsageError, match=r"one whose name ends in 300d\.txt, got glove\.300d"):
        read_vectors(both, ["dog"])


def test_what_is_written_is_read_again(tmp_path):
    vectors = np.random.default_rng(1).normal(size=(50, 7)).astype(np.float32)
    vectors[0] = [0.1, 0.25, -3, 1e-20, 123456, 0.333333, 0]
    words = [f"w{number}" for number in range(50)]
    write_vectors(tmp_path / "v.txt", words, vectors)
    assert (tmp_path / "v.txt").read_text().startswith("w0 0.1 0.25 -3 1e-20 123456 0.333333 0\n")
    again = read_vectors(tmp_path / "v.txt", words)
    assert again[0] == words
    np.testing.assert_array_equal(again[1], vectors)
    assert [path.name for path in tmp_path.iterdir()] == ["v.txt"]


def test_no_word_is_found(write):
    words, vectors = read_vectors(write("txt"), ["cat"])
    assert (words, vectors.shape) == ([], (0, 3))


def test_coverage():
    counts = {"the": 970, "dog": 3, "zyx": 27}
    told = coverage({"the", "dog", "cat"}, counts)
    assert told == "vectors: 2 of 3 words (97.3 % of the tokens)"
