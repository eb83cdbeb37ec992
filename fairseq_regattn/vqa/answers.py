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
PUNCTUATION = ';/[]"{}()=+\\_-><@`,?!'
POINT = re.compile(r"\.(?!\d)")
COMMA_IN_NUMBER = re.compile(r"\d,\d")


@lru_cache(maxsize=1 << 16)
def normalise(answer: str) -> str:
    """As answers are compared: lower case, digits, no articles, no punctuation.

    What VQA's evaluation does, to the letter: a mark beside a space is left out, one between two
    letters becomes a space, but where the answer has a comma in a number all marks are left out.
    Only its list of contractions is missing (``dont`` is not ``don't`` here), and an answer of
    which nothing would be left (``the``) stays as it is.
    """
    given = answer.replace("\n", " ").replace("\t", " ").strip()
    in_number = COMMA_IN_NUMBER.search(given)
    text = given
    for mark in PUNCTUATION:
        alone = f"{mark} " in given or f" {mark}" in given
        text = text.replace(mark, "" if alone or in_number else " ")
    words = [NUMBERS.get(word, word) for word in POINT.sub("", text).lower().split()]
    return " ".join(str(word) for word in words if word not in ARTICLES) or (
        " ".join(answer.lower().split())
    )


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
