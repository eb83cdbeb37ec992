"""BLEU, chrF and how far two translations of one test set differ by chance, by sacreBLEU."""

from __future__ import annotations

import logging
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager

from sacrebleu.metrics import BLEU, CHRF
from sacrebleu.significance import PairedTest

from fairseq_regattn.errors import ArgumentError, UsageError
from fairseq_regattn.scoring import Score

SUBWORD = re.compile(r"@@(?= |$)|▁")
"""What subword-nmt leaves at the end of a piece, and sentencepiece at the start of a word."""


def bleu(hypotheses: Sequence[str], references: Sequence[str]) -> Score:
    """sacreBLEU with its defaults (13a tokenisation, mixed case), 0 to 100.

    Args:
        hypotheses: detokenised translations, one a sentence.
        references: untouched reference text, in the same order.

    Raises:
        UsageError: there is nothing to score, the numbers of lines differ, or subwords are not
            joined.
    """
    return _score(BLEU(), hypotheses, references)


def chrf(hypotheses: Sequence[str], references: Sequence[str]) -> Score:
    """chrF2 with sacreBLEU's defaults, 0 to 100; arguments and errors as for :func:`bleu`."""
    return _score(CHRF(), hypotheses, references)


def tokenised_bleu(hypotheses: Sequence[str], references: Sequence[str]) -> Score:
    """What Moses' ``multi-bleu.perl`` prints, for comparison with papers of its time.

    It depends on the tokenisation, so compare it only where that was the same. Arguments are
    tokenised; errors as for :func:`bleu`.
    """
    # force: sacreBLEU warns of tokenised text, which is meant here
    metric = BLEU(tokenize="none", smooth_method="none", force=True)
    return _score(metric, hypotheses, references)


def compare(
    baseline: Sequence[str],
    systems: Mapping[str, Sequence[str]],
    references: Sequence[str],
    test: str = "bs",
) -> dict[str, dict[str, Score]]:
    """p values of BLEU and chrF of each system against the baseline, by sacreBLEU's paired tests.

    A p value is the chance of a difference at least as large between two systems that are
    equally good. Sampling is seeded by sacreBLEU, so the same text gives the same value.

    Args:
        baseline: detokenised translations.
        systems: the translations of the others, by name.
        references: untouched reference text.
        test: ``bs``, paired bootstrap of 1,000 samples, or ``ar``, approximate randomisation
            with 10,000 trials (sacreBLEU does not count ties, so its p is too small where only
            a few sentences differ).

    Returns:
        By the name of the system, p under ``bleu`` and ``chrf`` with the signature of the test.

    Raises:
        UsageError: as for :func:`bleu`, or there is no such test.
    """
    if test not in ("bs", "ar"):
        raise ArgumentError("test", test, "'bs' or 'ar'")
    for texts in (baseline, *systems.values()):
        _check(texts, references)
    metrics = {"bleu": BLEU(), "chrf": CHRF()}
    with _silenced("sacrebleu"):
        paired = PairedTest([("", baseline), *systems.items()], metrics, [references], test)
        signatures, results = paired()
    p_values: dict[str, dict[str, Score]] = {name: {} for name in systems}
    # sacreBLEU goes by names of its own (BLEU, chrF2), in the order of the metrics
    for metric, title in zip(metrics, signatures):
        for (name, texts), result in zip(systems.items(), results[title][1:]):
            # where there is no difference the tests answer with the smallest p there is
            same = list(texts) == list(baseline) or result.score == results[title][0].score
            value = 1.0 if same else float(result.p_value)
            p_values[name][metric] = Score(value, str(signatures[title]))
    return p_values


def _score(metric, hypotheses: Sequence[str], references: Sequence[str]) -> Score:
    _check(hypotheses, references)
    score = metric.corpus_score(hypotheses, [references])
    return Score(float(score.score), str(metric.get_signature()))


def _check(hypotheses: Sequence[str], references: Sequence[str]) -> None:
    if len(hypotheses) != len(references):
        raise UsageError(
            f"{len(hypotheses)} hypotheses do not fit {len(references)} references: "
            "one line of each a sentence, in the same order"
        )
    if not hypotheses:
        raise UsageError("there are no hypotheses to score")
    for name, lines in (("hypotheses", hypotheses), ("references", references)):
        for number, line in enumerate(lines, 1):
            mark = SUBWORD.search(line)
            if mark:
                raise UsageError(
                    f"line {number} of the {name} still has subwords ({mark[0]!r} in {line!r}): "
                    "join them first, with --bpe or --post-process of fairseq-generate"
                )


@contextmanager
def _silenced(name: str) -> Iterator[None]:
    """Progress that a library logs is not for the user."""
    logger = logging.getLogger(name)
    level = logger.level
    logger.setLevel(logging.ERROR)
    try:
        yield
    finally:
        logger.setLevel(level)
