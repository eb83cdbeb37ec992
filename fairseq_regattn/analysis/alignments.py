"""The lines that ``fairseq-generate --print-alignment soft`` prints, as records."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

EOS = "</s>"
"""Label of the end of a sentence: the last source position, and the last target step."""

LINE = re.compile(r"([STHDPA])-(\d+)\t(.*)", re.DOTALL)


@dataclass
class Hypothesis:
    """One translation of one sentence, with the weights that its decoder gave to the source.

    Attributes:
        sample_id: the line of the sentence in the file that was translated, from 0.
        source: tokens, without the end of sentence (as ``weights`` has them, where known).
        target: tokens of the translation, without the end of sentence.
        reference: the reference translation as printed, None where there was none.
        text: the translation with subwords and tokenisation undone.
        score: log2-probability, normalised by length as the search did.
        token_scores: log2-probability of each token and of the end.
        weights: (len(target) + 1) x (len(source) + 1), one row a target step in order, the end
            last; columns are source positions, the end last. Rounded to six decimals by fairseq.
            None where no alignment was printed.
    """

    sample_id: int
    source: list[str]
    target: list[str]
    reference: str | None
    text: str
    score: float
    token_scores: list[float] = field(default_factory=list)
    weights: np.ndarray | None = None


def read_generate_output(
    lines: Iterable[str], sources: Sequence[str] | Mapping[int, str] | None = None
) -> list[Hypothesis]:
    """Read the output of ``fairseq-generate``, in the order in which it was printed.

    Args:
        lines: the file; lines other than S-, T-, H-, D-, P- and A- are passed over.
        sources: tokenised source sentences by sample id. Needed for alignments made with
            ``--bpe``, which prints the source with its subwords already joined, while the
            weights are over subwords.

    Raises:
        ValueError: an alignment does not fit its tokens, is a hard one, or cannot be read; a
            line of a hypothesis comes before its hypothesis.
    """
    printed_sources: dict[int, str] = {}
    references: dict[int, str] = {}
    hypotheses: list[Hypothesis] = []
    for line in lines:
        match = LINE.fullmatch(line.rstrip("\r\n"))
        if match is None:
            continue
        kind, sample_id, content = match[1], int(match[2]), match[3]
        if kind == "S":
            printed_sources[sample_id] = content
        elif kind == "T":
            references[sample_id] = content
        elif kind == "H":
            source = printed_sources.get(sample_id, "") if sources is None else sources[sample_id]
            score, _, text = content.partition("\t")
            hypotheses.append(
                Hypothesis(
                    sample_id=sample_id,
                    source=source.split(),
                    target=text.split(),
                    reference=references.get(sample_id),
                    text=text,
                    score=float(score),
                )
            )
        else:
            if not hypotheses or hypotheses[-1].sample_id != sample_id:
                raise ValueError(f"line {kind}-{sample_id} does not follow its H-{sample_id}")
            _add(hypotheses[-1], kind, content)
    return hypotheses


def _add(hypothesis: Hypothesis, kind: str, content: str) -> None:
    """Complete a hypothesis with one of the lines that follow its H line."""
    if kind == "D":
        hypothesis.text = content.partition("\t")[2]
    elif kind == "P":
        hypothesis.token_scores = [float(score) for score in content.split()]
    else:
        hypothesis.weights = _weights(hypothesis, content)


def _weights(hypothesis: Hypothesis, content: str) -> np.ndarray:
    """Rows separated by spaces, weights in a row by commas."""
    name = f"A-{hypothesis.sample_id}"
    try:
        rows = [[float(weight) for weight in row.split(",")] for row in content.split()]
    except ValueError:
        raise ValueError(
            f"{name} holds no soft alignment: generate with --print-alignment soft"
        ) from None
    expected = len(hypothesis.target) + 1, len(hypothesis.source) + 1
    found = len(rows), len(rows[0]) if rows else 0
    if found != expected or any(len(row) != found[1] for row in rows):
        raise ValueError(
            f"{name} is {found[0]} x {found[1]} weights, but its sentence has {expected[0]} target "
            f"and {expected[1]} source tokens with their ends: subwords joined in one of them? "
            "Generate without --post-process, or with --bpe and `sources` given in subwords"
        )
    return np.array(rows)


def display(token: str) -> str:
    """A subword as people read it: a sentencepiece word start is a space, shown as ``·``."""
    return "·" + token[1:] if token.startswith("▁") else token
