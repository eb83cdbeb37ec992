"""Tokens and limits; test_original.py compares them with ROUGE-1.5.5 where there is perl."""

import re
from itertools import chain

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from fairseq_regattn.scoring.rouge.text import Limit, Text, read_text

from .texts import CHEAP

# without the white space of Perl, which is that of ASCII
WORD = st.text("abC1-.é日\xa0\x85\u2028\x1c", min_size=1, max_size=6)
LINES = st.lists(st.lists(WORD, max_size=5), max_size=4)


def tokens(text, stemmed=False, limit=None):
    return [token.decode() for token in read_text(text, stemmed, limit).tokens]


def sentences(text, limit=None):
    return [[t.decode() for t in sentence] for sentence in read_text(text, False, limit).sentences]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("The U.S. isn't co-operating, 3.5 %", "the u s isn t co operating 3 5"),
        ("a\tb\x0bc\xa0d\u2028e", "a b c d e"),
        ("naïve café Œuvre", "na ve caf uvre"),
        ("\u212aelvin \u0130ce", "elvin ce"),  # of these Python makes k and i
        ("snake_case $5 -x", "snake case 5 x"),
        ("Ελλάδα 日本 ١٢", ""),
        (" . ... \n\n ", ""),
        ("", ""),
        ("<unk> <<unk>> <<UNK>>", "unk <<unk>> <<unk>>"),
        ("x<<unk>>y <<<unk>>> <<unk>", "x <<unk>> y <<unk>> unk"),
        ("a\udcffb", "a b"),  # a byte that was not UTF-8
    ],
)
def test_tokens(text, expected):
    assert tokens(text) == expected.split()


@CHEAP
@given(st.text("aBzZ09 \n\t.-_<éÉ日\u212a\u0130\u0661\xa0\x00"))
def test_tokens_are_runs_of_ascii(text):
    lowered = "".join(c.lower() if c.isascii() else c for c in text)
    assert tokens(text) == [run for run in re.split("[^a-z0-9]+", lowered) if run]


def test_stemmed():
    assert tokens("Geese were. Running was!", stemmed=True) == ["goose", "be", "run", "was"]


def test_sentences():
    """Empty lines are none; a line without tokens is one."""
    assert sentences("a b\n\n.\nc\r\n") == [["a", "b"], [], ["c"]]
    assert sentences("") == []
    assert sentences("a\u2028b\x85c\x0cd\re") == [["a", "b", "c", "d", "e"]]


@CHEAP
@given(LINES)
def test_sentences_have_all_tokens(lines):
    text = read_text("\n".join(map(" ".join, lines)), False, None)
    assert list(chain.from_iterable(text.sentences)) == text.tokens


@CHEAP
@given(LINES, st.integers(1, 12))
@example([["a"], ["b", "c"]], 2)
@example([["a"], ["b", "c"]], 1)
def test_limit_of_words(lines, size):
    """The first words, wherever lines end; words have any number of tokens."""
    limited = read_text("\n".join(map(" ".join, lines)), False, Limit("words", size))
    first = " ".join([word for line in lines for word in line][:size])
    assert limited.tokens == read_text(first, False, None).tokens
    assert list(chain.from_iterable(limited.sentences)) == limited.tokens


@CHEAP
@given(LINES, st.integers(1, 30))
@example([["ab", "cd"], ["efg"]], 5)
@example([["ab", "cd"], ["efg"]], 7)
def test_limit_of_bytes(lines, size):
    """Line ends are not counted, and end a token."""
    encoded = [" ".join(line).encode() for line in lines]
    limited = read_text("\n".join(map(" ".join, lines)), False, Limit("bytes", size))
    kept, left = [], size
    for line in encoded:
        kept.append(line[:left])
        left -= len(kept[-1])
    together = b" ".join(kept).decode("utf-8", "surrogateescape")
    assert limited.tokens == read_text(together, False, None).tokens


@pytest.mark.parametrize(
    ("text", "limit", "together", "apart"),
    [
        ("abc def", Limit("bytes", 5), ["abc", "d"], [["abc", "d"]]),
        ("abc def", Limit("bytes", 7), ["abc", "def"], [["abc", "def"]]),
        ("éé a", Limit("bytes", 5), [], [[]]),
        ("éé a", Limit("bytes", 6), ["a"], [["a"]]),
        # ROUGE-1.5.5 counts no bytes by sentence: each has all, up to the first that fills them
        (
            "ab cd\nefgh\nij",
            Limit("bytes", 7),
            ["ab", "cd", "ef"],
            [["ab", "cd"], ["efgh"], ["ij"]],
        ),
        ("ab cd\nefgh\nij", Limit("bytes", 4), ["ab", "c"], [["ab", "c"]]),
        ("ab\ncdef\ngh", Limit("bytes", 4), ["ab", "cd"], [["ab"], ["cdef"]]),
        ("ab\ncd\nef", Limit("words", 2), ["ab", "cd"], [["ab"], ["cd"]]),
        ("ab cd-e f\nef", Limit("words", 2), ["ab", "cd", "e"], [["ab", "cd", "e"]]),
        # white space at the start makes a word, at the end none
        (" ab cd", Limit("words", 2), ["ab"], [["ab"]]),
        ("ab \t\ncd ef", Limit("words", 2), ["ab", "cd"], [["ab"], ["cd"]]),
        ("\t \nab cd", Limit("words", 1), ["ab"], [[], ["ab"]]),
        # not for Perl
        ("ab\xa0cd ef", Limit("words", 1), ["ab", "cd"], [["ab", "cd"]]),
        ("ab\x1ccd ef", Limit("words", 1), ["ab", "cd"], [["ab", "cd"]]),
    ],
)
def test_limits(text, limit, together, apart):
    assert tokens(text, limit=limit) == together
    assert sentences(text, limit) == apart


@CHEAP
@given(LINES, st.sampled_from(["bytes", "words"]))
def test_a_limit_that_is_not_reached(lines, unit):
    text = "\n".join(map(" ".join, lines))
    size = len(text.encode()) + 1
    assert read_text(text, False, Limit(unit, size)) == read_text(text, False, None)


def test_a_limit_comes_before_stemming():
    limit = Limit("bytes", 6)
    assert tokens("running", limit=limit) == ["runnin"]
    assert tokens("running", stemmed=True, limit=limit) == ["runnin"]
    assert read_text("geese\nwere", True, Limit("words", 1)) == Text([b"goose"], [[b"goose"]])


def test_names_of_limits():
    assert str(Limit("bytes", 75)) == "75 bytes"
    assert str(Limit("words", 10)) == "10 words"
