"""Tokens and length limits exactly as ROUGE-1.5.5 has them."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import NamedTuple

from fairseq_regattn.scoring.rouge.stemmer import stem

_TOKEN = re.compile(rb"<<unk>>|[a-z0-9]+")
_SPACE = re.compile(rb"\s+")


class Limit(NamedTuple):
    """``-b 75`` (bytes of the untouched text) or ``-l 10`` (words between white space)."""

    unit: str
    size: int

    def __str__(self) -> str:
        return f"{self.size} {self.unit}"


class Text(NamedTuple):
    """A document.

    Attributes:
        tokens: all of them.
        sentences: tokens by sentence, for ROUGE-Lsum and ROUGE-W.
    """

    tokens: list[bytes]
    sentences: list[list[bytes]]


def read_text(text: str, stemmed: bool, limit: Limit | None) -> Text:
    """Tokens of a document: runs of ASCII letters and digits, in lower case.

    Letters outside ASCII end a token, as they do in ROUGE-1.5.5, so other scripts have no tokens.
    ``<<unk>>``, which fairseq prints for an unknown word of a reference, is one token that differs
    from the ``<unk>`` of a hypothesis: else two unknown words would match.

    Args:
        text: a sentence a line; lines end with a line feed.
        stemmed: by :func:`~fairseq_regattn.scoring.rouge.stemmer.stem`.
        limit: cut the text before anything else is done.
    """
    lines = [line for line in text.encode("utf-8", "surrogateescape").lower().split(b"\n") if line]
    tokens_of = _stems if stemmed else _tokens
    if limit is None:
        sentences = [tokens_of(line) for line in lines]
        return Text([token for sentence in sentences for token in sentence], sentences)
    together = _cut(lines, limit)
    # for these, 1.5.5 forgets to count bytes: each sentence has all of them
    apart = _cut(lines, limit, forgetful=limit.unit == "bytes")
    return Text(tokens_of(b" ".join(together)), [tokens_of(line) for line in apart])


def _cut(lines: list[bytes], limit: Limit, forgetful: bool = False) -> list[bytes]:
    """Lines up to the one that reaches the limit; `forgetful`: what came before does not count."""
    measure, cut = _UNITS[limit.unit]
    kept: list[bytes] = []
    left = limit.size
    for line in lines:
        length = measure(line)
        if length >= left:
            return [*kept, cut(line, left)]
        kept.append(line)
        left -= 0 if forgetful else length
    return kept


def _tokens(line: bytes) -> list[bytes]:
    return _TOKEN.findall(line)


def _stems(line: bytes) -> list[bytes]:
    return [stem(token) for token in _TOKEN.findall(line)]


def _words(line: bytes) -> list[bytes]:
    """As Perl splits: white space at the start makes an empty word, at the end none."""
    words = _SPACE.split(line)
    while words and not words[-1]:
        words.pop()
    return words


_UNITS: dict[str, tuple[Callable[[bytes], int], Callable[[bytes, int], bytes]]] = {
    "bytes": (len, lambda line, size: line[:size]),
    "words": (lambda line: len(_words(line)), lambda line, size: b" ".join(_words(line)[:size])),
}
