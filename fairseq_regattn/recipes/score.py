"""The last step of a run: its output against the references, its alignments, its record."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

import numpy as np

from fairseq_regattn.analysis import Hypothesis, alignment_statistics
from fairseq_regattn.analysis.links import read_links, write_links
from fairseq_regattn.analysis.machine import machine, versions
from fairseq_regattn.analysis.matrices import write_matrices
from fairseq_regattn.analysis.records import LINKS, Record, collect, test_key, text_key
from fairseq_regattn.analysis.words import hard_links, join_subwords, word_weights
from fairseq_regattn.recipes.commands import on_cpu
from fairseq_regattn.recipes.encode import tokenise
from fairseq_regattn.recipes.recipe import Summary
from fairseq_regattn.recipes.stages import StageError, rewrite
from fairseq_regattn.recipes.workspace import Run, forced_hypotheses, read_lines
from fairseq_regattn.scoring.alignment import alignment_scores
from fairseq_regattn.scoring.classification import score_labels
from fairseq_regattn.scoring.summaries import finish, score_summaries
from fairseq_regattn.scoring.translation import bleu, chrf, tokenised_bleu
from fairseq_regattn.vqa.accuracy import Accuracy


def score(run: Run, records: Path, command: str) -> None:
    """Against the untouched references; writes alignments, and the record last.

    Raises:
        StageError: the output is incomplete, or does not fit ``data.original``.
        UsageError: it cannot be scored: subwords are left, lines are missing.
    """
    recipe = run.workspace.recipe
    if not recipe.translates:
        known = _classified if recipe.classification is not None else _answered
        _collect(run, records, command, *known(run))
        return
    workspace, found = run.workspace, run.hypotheses()
    scores: dict[str, Any]
    if recipe.summary is None:
        texts = [hypothesis.text for hypothesis in found]
        scores = _translation(run, found, texts)
    else:
        texts = summaries(run, found, recipe.summary)
        rewrite(run.folder / "summaries.txt", "".join(f"{text}\n" for text in texts).encode())
        scores = _summary(run, texts, recipe.summary)
    write_matrices(run.folder / "alignments.npz", found)
    subwords = bool(recipe.preprocess.subwords)
    links = [hard_links(word_weights(hypothesis, subwords)[2]) for hypothesis in found]
    write_links(run.folder / "alignments.links", links)
    agreement = None
    if workspace.gold is not None:
        forced = [hard_links(word_weights(h, subwords)[2]) for h in forced_hypotheses(run)]
        write_links(run.folder / "forced.links", forced)
        scored = alignment_scores(forced, read_links(workspace.gold))
        agreement = {name: getattr(scored, name) for name in LINKS}
    weights = [hypothesis.weights for hypothesis in found if hypothesis.weights is not None]
    _collect(run, records, command, texts, {**scores, "links": agreement}, weights)


def _collect(
    run: Run,
    records: Path,
    command: str,
    texts: Sequence[str],
    scores: Mapping[str, Any],
    weights: Sequence[np.ndarray],
) -> None:
    """Write the record: what is the same whatever the model does.

    Args:
        texts: its output, a line a sentence.
        scores: fields of the record.
        weights: matrices, one a sentence.
    """
    workspace, recipe = run.workspace, run.workspace.recipe
    log = run.log()
    record = Record(
        recipe=recipe.name,
        direction=recipe.direction,
        settings=workspace.key,
        name=run.attention.name,
        attention=run.attention.title,
        mapping=run.attention.mapping,
        seed=run.seed,
        **scores,
        valid_ppl=log.best_ppl,
        updates=log.updates,
        training_seconds=log.seconds,
        processor_seconds=log.processor_seconds if on_cpu(recipe) else None,
        tokens_per_second=sum(log.speeds) / max(len(log.speeds), 1),
        alignments=alignment_statistics(weights),
        sentences=len(texts),
        test_key=test_key(workspace.all_references),
        hypotheses_key=text_key(texts),
        date=datetime.now(timezone.utc).strftime("%Y-%m-%d"),
        machine=machine(),
        versions=versions(),
        command=command,
    )
    collect(records, record, texts)


def _classified(run: Run) -> tuple[list[str], dict[str, Any], list[np.ndarray]]:
    """Labels, their scores, and the weights of each text as a matrix of one row."""
    found = run.predictions()
    labels = [prediction.label for prediction in found]
    classes = score_labels(labels, run.workspace.references, list(found[0].probabilities))
    scores: dict[str, Any] = {**NO_TRANSLATION, "links": None, "classes": classes, "signatures": {}}
    return labels, scores, [np.array([prediction.weights]) for prediction in found]


def _answered(run: Run) -> tuple[list[str], dict[str, Any], list[np.ndarray]]:
    """Answers, their scores, and the weights of the cells of each image in one row."""
    found = run.answers()
    right = Accuracy()
    for one in found:
        right.add(one)
    scores: dict[str, Any] = {
        **NO_TRANSLATION,
        "links": None,
        "answers": right.scores(),
        "signatures": {},
    }
    weights = [np.array(one.weights).reshape(1, -1) for one in found]
    return [one.answer for one in found], scores, weights


NO_TRANSLATION = {"bleu": None, "chrf": None, "tokenised_bleu": None}


def _translation(run: Run, found: list[Hypothesis], texts: list[str]) -> dict[str, Any]:
    references = run.workspace.references
    scores = {
        "bleu": bleu(texts, references),
        "chrf": chrf(texts, references),
        "tokenised_bleu": tokenised_bleu(*_tokenised(run, found)),
    }
    return {
        **{name: score.value for name, score in scores.items()},
        "signatures": {name: score.signature for name, score in scores.items()},
    }


def _tokenised(run: Run, found: list[Hypothesis]) -> tuple[list[str], list[str]]:
    """Hypotheses and references in Moses' tokens, as the model made them where it works on them."""
    recipe = run.workspace.recipe
    target = str(recipe.data.target)
    if recipe.preprocess.tokenizer != "moses":
        texts = [hypothesis.text for hypothesis in found]
        return tokenise(texts, target), tokenise(run.workspace.references, target)
    made = [" ".join(hypothesis.target) for hypothesis in found]
    references = read_lines(run.workspace.tokens / f"test.{target}")
    if not recipe.preprocess.subwords:
        return made, references
    return join_subwords(made), join_subwords(references)


def summaries(run: Run, found: Sequence[Hypothesis], options: Summary) -> list[str]:
    """Outputs with digits, unknown words and brackets as the recipe wants them.

    Raises:
        StageError: an input has another number of words than before its digits were masked.
    """
    workspace, data = run.workspace, run.workspace.recipe.data
    inputs = read_lines(workspace.text / f"test.{data.original or data.source}")
    texts = []
    for number, (hypothesis, line) in enumerate(zip(found, inputs), start=1):
        source, target, weights = word_weights(
            hypothesis, bool(workspace.recipe.preprocess.subwords)
        )
        try:
            words = finish(
                target,
                source,
                weights,
                line.split() if data.original else None,
                options.replace_unknown,
                options.brackets,
            )
        except ValueError as error:
            raise StageError(f"test.{data.original}:{number}: {error}") from None
        texts.append(" ".join(words))
    return texts


def _summary(run: Run, texts: Sequence[str], options: Summary) -> dict[str, Any]:
    found, signatures = score_summaries(
        texts, run.workspace.all_references, options.stem, options.bytes
    )
    return {**NO_TRANSLATION, "summary": found, "signatures": signatures}
