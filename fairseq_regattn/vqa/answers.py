"""Answers of people, and how an answer is scored by them."""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import lru_cache

PEOPLE = 10
"""How many have answered each question of VQA."""

ENOUGH = 3
"""An answer that so many have given is wholly right."""

DIGITS = ("zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten")
NUMBERS = {"none": 0, **{word: number for number, word in enumerate(DIGITS)}}
ARTICLES = {"a", "an", "the"}
PUNCTUATION = re.compile(r"[;/\[\]\"{}()=+\\_\-><@`?!]")
POINT = re.compile(r"(?<!\d)\.(?!\d)")
COMMA_IN_NUMBER = re.compile(r"(?<=\d),(?=\d)")


@lru_cache(maxsize=1 << 16)
def normalise(answer: str) -> str:
    """As answers are compared: lower case, digits, no articles, little punctuation.

    After the evaluation of VQA, but for its list of contractions (``dont`` is not ``don't`` here).
    """
    text = COMMA_IN_NUMBER.sub("", answer.lower())
    text = POINT.sub("", PUNCTUATION.sub(" ", text)).replace(",", " ")
    words = [str(NUMBERS.get(word, word)) for word in text.split() if word not in ARTICLES]
    return " ".join(words) or " ".join(answer.lower().split())


def soft_score(count: float) -> float:
    """What a model learns to say of an answer that `count` people gave: ``min(count / 3, 1)``."""
    return min(count / ENOUGH, 1.0)


def accuracy(count: int, people: int = PEOPLE) -> float:
    """VQA's accuracy of an answer that `count` of the people gave.

    ``min(n / 3, 1)``, averaged over all ways to leave one of them out, where n of the others gave
    it: ten choose nine.
    """
    without = count * soft_score(count - 1) + (people - count) * soft_score(count)
    return without / people


def votes(gold: str, answers: Mapping[str, int] | None) -> Mapping[str, int]:
    """How many gave each answer; where only one answer is known, all are taken to have given it."""
    return {gold: PEOPLE} if answers is None else answers
