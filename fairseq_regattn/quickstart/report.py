"""Table, heat maps and page for all models that were trained with the same settings."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from pathlib import Path

import sacrebleu

from fairseq_regattn.analysis import Hypothesis, Result, markdown_table, text_table
from fairseq_regattn.analysis.heatmap import draw_alignments
from fairseq_regattn.analysis.html import Sentence, page
from fairseq_regattn.quickstart.corpus import SOURCE, TARGET, read_lines
from fairseq_regattn.quickstart.models import (
    BEAM,
    Workspace,
    bleu_metric,
    hypotheses,
    read_result,
)
from fairseq_regattn.quickstart.options import Attention

SENTENCES = 8
LENGTHS = range(6, 15)
"""Pictures are of sentences with this many source pieces: more do not fit side by side."""


def bleu_signature() -> str:
    """sacreBLEU's own, so that the number can be made again."""
    metric = bleu_metric()
    metric.corpus_score(["a"], [["a"]])  # it learns the number of references by scoring
    return str(metric.get_signature())


def write_report(workspace: Workspace, attentions: Sequence[Attention], folder: Path) -> None:
    """Write ``index.html``, ``results.md``, ``results.txt`` and ``alignment-*.png``.

    Args:
        workspace: with trained models that have translated the test split.
        attentions: those to show, from left to right.
        folder: does not exist yet.
    """
    results = [read_result(workspace.model(attention)) for attention in attentions]
    translated = {a.title: hypotheses(workspace, a) for a in attentions}
    sentences = chosen_sentences(workspace, translated)
    notes = _notes(workspace)
    folder.mkdir()
    text = "\n".join((text_table(results), "", *notes)) + "\n"
    (folder / "results.txt").write_text(text, encoding="utf-8")
    markdown = "\n\n".join((markdown_table(results), *notes)) + "\n"
    (folder / "results.md").write_text(markdown, encoding="utf-8")
    for number, sentence in enumerate(sentences, 1):
        draw_alignments(
            list(sentence.hypotheses.items()),
            folder / f"alignment-{number}-{re.sub(r'[^A-Za-z0-9.]+', '_', sentence.name)}.png",
            heading=f"{sentence.name}: {sentence.source}\nreference: {sentence.reference}",
        )
    html = page(
        title="fairseq-regattn: quick start",
        results=results,
        sentences=sentences,
        introduction=_introduction(workspace, results),
        notes=notes,
    )
    (folder / "index.html").write_text(html, encoding="utf-8")


def chosen_sentences(
    workspace: Workspace, translated: dict[str, list[Hypothesis]]
) -> list[Sentence]:
    """Test sentences at even distances among those that are short enough to be drawn.

    Chosen by length and position alone, so that good and bad ones have the same chance.
    """
    pieces = read_lines(workspace.pieces / f"test.{SOURCE}")
    names = read_lines(workspace.text / "test.names")
    sources = read_lines(workspace.text / f"test.{SOURCE}")
    references = read_lines(workspace.text / f"test.{TARGET}")
    short = [number for number, line in enumerate(pieces) if len(line.split()) in LENGTHS]
    step = max(len(short) / SENTENCES, 1)
    picked = [short[int(step * i)] for i in range(min(SENTENCES, len(short)))]
    return [
        Sentence(
            name=names[number],
            source=sources[number],
            reference=references[number],
            hypotheses={title: found[number] for title, found in translated.items()},
        )
        for number in picked
    ]


def _introduction(workspace: Workspace, results: Sequence[Result]) -> str:
    train, test = (
        len(read_lines(workspace.text / f"{split}.{TARGET}")) for split in ("train", "test")
    )
    names = "; ".join(result.name for result in results)
    return (
        f"Spanish to English, {train:,} short verses for training, {test:,} verses of other "
        f"chapters for the test, beam {BEAM}. The models differ in the mapping from attention "
        f"scores to weights and in nothing else: {names}."
    )


def _notes(workspace: Workspace) -> list[str]:
    changed = " ".join(workspace.overrides) or "none"
    return [
        f"BLEU: {bleu_signature()} (sacreBLEU {sacrebleu.__version__}), against the untouched "
        "reference text. One seed: differences of about one BLEU are noise.",
        "Non-zero weights: share of source positions, mean over the steps of all test "
        "translations; weights below 0.0000005 count as zero. Segments: runs of equal, non-zero "
        "neighbours in a step.",
        "Training: wall time, one thread a model; models that were trained side by side shared "
        "the machine.",
        f"Settings changed from configs/quickstart.yaml: {changed}.",
    ]


def finished_attentions(workspace: Workspace) -> list[Attention]:
    """All models of the workspace that have been scored, softmax first, then by name."""
    found = []
    for record in (workspace.folder / "models").glob("*/attention.json"):
        if (record.parent / "results.json").exists():
            content = json.loads(record.read_text(encoding="utf-8"))
            content["parameters"] = tuple((name, value) for name, value in content["parameters"])
            found.append(Attention(**content))
    return sorted(found, key=lambda attention: (attention.mapping != "softmax", attention.name))
