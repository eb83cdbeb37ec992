"""The stemmer of ROUGE-1.5.5: WordNet's irregular forms, then Porter's rules with a change.

Porter (1980), "An algorithm for suffix stripping", as in his own Perl version (with ``bli`` and
``logi``, which the paper has not); ROUGE-1.5.5 tries ``ement``, ``ment`` and ``ent`` one after the
other instead of the longest only. The stemmer of NLTK, which rouge-score uses, has neither that
nor the irregular forms.
"""

from __future__ import annotations

import gzip
import re
from functools import cache, lru_cache
from pathlib import Path

import fairseq_regattn

EXCEPTIONS = Path(fairseq_regattn.__file__).parent / "data" / "wordnet-exceptions.tsv.gz"
"""Irregular forms of WordNet 2.0 with their base forms (its licence is in the file)."""

# Y is a y at the start of a word, where it is a consonant; elsewhere y is a vowel after consonants.
_CONSONANTS = rb"[^aeiou][^aeiouy]*"
_VOWELS = rb"[aeiouy][aeiou]*"
_HAS_VOWEL = re.compile(rb"(?:%b)?[aeiouy]" % _CONSONANTS).match
_MEASURE_ABOVE_0 = re.compile(rb"(?:%b)?%b%b" % (_CONSONANTS, _VOWELS, _CONSONANTS)).match
_MEASURE_1 = re.compile(
    rb"(?:%b)?%b%b(?:%b)?$" % (_CONSONANTS, _VOWELS, _CONSONANTS, _VOWELS)
).match
_MEASURE_ABOVE_1 = re.compile(
    rb"(?:%b)?%b%b%b%b" % (_CONSONANTS, _VOWELS, _CONSONANTS, _VOWELS, _CONSONANTS)
).match
_SHORT = re.compile(rb"%b[aeiouy][^aeiouwxy]$" % _CONSONANTS).match
"""Consonants, a vowel, a consonant: such a stem keeps or gets a final e (hop-ing, hope)."""

_DOUBLE = re.compile(rb"([^aeiouylsz])\1$").search


def _rules(text: str) -> dict[bytes, bytes]:
    pairs = (rule.split(":") for rule in text.split())
    return {suffix.encode(): instead.encode() for suffix, instead in pairs}


_STEP_2 = _rules(
    "ational:ate tional:tion enci:ence anci:ance izer:ize bli:ble alli:al entli:ent eli:e "
    "ousli:ous ization:ize ation:ate ator:ate alism:al iveness:ive fulness:ful ousness:ous "
    "aliti:al iviti:ive biliti:ble logi:log"
)
_STEP_3 = _rules("icate:ic ative: alize:al iciti:ic ical:ic ful: ness:")
_STEP_4 = b"al ance ence er ic able ible ant ement ou ism ate iti ous ive ize".split()


@lru_cache(maxsize=1 << 17)
def stem(word: bytes) -> bytes:
    """What a word counts as with ``-m``: words of up to three letters as they are.

    Args:
        word: of ``a-z0-9``.
    """
    if len(word) <= 3:
        return word
    return _exceptions().get(word) or porter(word)


@cache
def _exceptions() -> dict[bytes, bytes]:
    lines = gzip.decompress(EXCEPTIONS.read_bytes()).splitlines()
    return dict(line.split(b"\t") for line in lines if not line.startswith(b"#"))


def porter(word: bytes) -> bytes:
    """Porter's rules alone, for words of three letters and more."""
    initial_y = word.startswith(b"y")
    if initial_y:
        word = b"Y" + word[1:]
    word = _plural(word)
    word = _participle(word)
    if word.endswith(b"y") and _HAS_VOWEL(word[:-1]):
        word = word[:-1] + b"i"
    for rules in (_STEP_2, _STEP_3):
        suffix = _suffix(word, rules)
        if suffix and _MEASURE_ABOVE_0(word[: -len(suffix)]):
            word = word[: -len(suffix)] + rules[suffix]
    word = _endings(word)
    if word.endswith(b"e"):
        start = word[:-1]
        if _MEASURE_ABOVE_1(start) or (_MEASURE_1(start) and not _SHORT(start)):
            word = start
    if word.endswith(b"ll") and _MEASURE_ABOVE_1(word):
        word = word[:-1]
    return b"y" + word[1:] if initial_y else word


def _plural(word: bytes) -> bytes:
    if word.endswith((b"sses", b"ies")):
        return word[:-2]
    if word.endswith(b"s") and not word.endswith(b"ss") and len(word) > 1:
        return word[:-1]
    return word


def _participle(word: bytes) -> bytes:
    if word.endswith(b"eed"):
        return word[:-1] if _MEASURE_ABOVE_0(word[:-3]) else word
    suffix = next((suffix for suffix in (b"ed", b"ing") if word.endswith(suffix)), None)
    if suffix is None or not _HAS_VOWEL(word[: -len(suffix)]):
        return word
    word = word[: -len(suffix)]
    if word.endswith((b"at", b"bl", b"iz")):
        return word + b"e"
    if _DOUBLE(word):
        return word[:-1]
    return word + b"e" if _SHORT(word) else word


def _endings(word: bytes) -> bytes:
    """Step 4 as ROUGE-1.5.5 has it: each rule sees what the one before it left."""

    def without(suffix: bytes) -> bytes:
        start = word[: -len(suffix)]
        return start if _MEASURE_ABOVE_1(start) else word

    suffix = _suffix(word, _STEP_4)
    if suffix:
        word = without(suffix)
    if word.endswith(b"ment"):
        word = without(b"ment")
    if word.endswith(b"ent"):
        word = without(b"ent")
    elif word.endswith((b"sion", b"tion")):
        word = without(b"ion")
    return word


def _suffix(word: bytes, suffixes) -> bytes | None:
    """The longest that the word ends in."""
    return max((s for s in suffixes if word.endswith(s)), key=len, default=None)
