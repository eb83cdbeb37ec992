"""Table, heat maps and page for runs that differ in the mapping, and the seed, alone."""

from __future__ import annotations

import json
import os
import re
import shutil
from collections.abc import Sequence
from pathlib import Path
from textwrap import wrap
from typing import TypeVar

from fairseq_regattn.analysis import Hypothesis, markdown_table, text_table
from fairseq_regattn.analysis.heatmap import draw_alignments
from fairseq_regattn.analysis.html import Sentence, html_table, page
from fairseq_regattn.analysis.records import Record
from fairseq_regattn.analysis.statistics import longest_segment
from fairseq_regattn.analysis.tables import table
from fairseq_regattn.classification.page import page as classified_page
from fairseq_regattn.classification.predictions import Prediction
from fairseq_regattn.recipes.stages import partial_of
from fairseq_regattn.recipes.workspace import Run, Workspace, read_lines
from fairseq_regattn.vqa.data import Preparation
from fairseq_regattn.vqa.plot import PICTURES
from fairseq_regattn.vqa.plot import draw as draw_answers
from fairseq_regattn.vqa.predictions import Prediction as Answer

Found = TypeVar("Found", Sentence, Answer)

SENTENCES = 8
LENGTHS = range(6, 15)
"""Pictures are of sentences with this many source tokens: more do not fit side by side."""
SUMMARY_LENGTHS = range(10, 41)
"""Of summaries, whose sources are longer: panels are drawn one above the other."""
SPANS = 4
QUESTIONS = 6
"""About images, that are drawn."""
LONGEST = 30
"""And of translations with no more tokens than this."""


SUMMARY_NOTE = (
    "ROUGE is F1 of whole outputs, and recall where only their first bytes are scored; 95 % "
    "intervals, precision and p values are in results.md of all runs."
)


WEIGHTS_NOTE = (
    "Non-zero weights: share of the positions of a test text, mean over all steps (words of "
    "the output; a classifier has one step a text); weights below 0.0000005 count as zero. "
    "Segments: runs of equal, non-zero neighbours in a step."
)

ACCURACY_NOTE = (
    "Accuracy with its 95 % interval (Wilson), of the whole test split; p by McNemar's test is in "
    "results.md of all runs."
)


CELLS_NOTE = (
    "Accuracy with its 95 % interval (Wilson), against the most common answer; by kind of "
    "question, and p by McNemar's test, in results.md of all runs. Non-zero weights: share of the "
    "cells of an image; weights below 0.0000005 count as zero."
)


def write(workspace: Workspace, finished: Sequence[Run], records: Path) -> bool:
    """Write ``report/`` in the workspace, unless it shows just these runs already.

    It holds ``index.html`` (every sentence, mappings side by side), ``results.md``,
    ``results.txt`` and, of translations, ``alignment-*.png`` and ``.pdf``; of questions about
    images no page, but ``attention.png`` where features are pixels. Pictures and the page show
    the first seed of each mapping, the table shows all.

    Args:
        finished: runs of this workspace, from left to right.
        records: folder of their records.

    Returns:
        Whether it had to be written.
    """
    read = [Record.read(run.record(records)) for run in finished]
    inputs = json.dumps([[record.name, record.seed, record.hypotheses_key] for record in read])
    folder = workspace.folder / "report"
    stamp = folder / "inputs.json"
    if stamp.exists() and stamp.read_text(encoding="utf-8") == inputs:
        return False
    partial = partial_of(folder)
    shutil.rmtree(partial, ignore_errors=True)
    partial.mkdir(parents=True)
    if workspace.recipe.translates:
        fill = _fill
    else:
        fill = _fill_classified if workspace.recipe.classification is not None else _fill_answered
    fill(partial, workspace, finished, read)
    (partial / "inputs.json").write_text(inputs, encoding="utf-8")
    shutil.rmtree(folder, ignore_errors=True)
    os.replace(partial, folder)
    return True


def _fill(
    folder: Path, workspace: Workspace, finished: Sequence[Run], read: Sequence[Record]
) -> None:
    shown: dict[str, list[Hypothesis]] = {}
    for run in finished:
        if run.attention.title not in shown:
            shown[run.attention.title] = run.hypotheses()
    sentences = all_sentences(workspace, shown)
    chosen = _chosen(workspace, sentences)
    pictures = {"alignment": chosen}
    if workspace.recipe.summary is not None:
        pictures["span"] = longest_spans(sentences)
    for kind, some in pictures.items():
        for number, sentence in enumerate(some, 1):
            name = re.sub(r"[^A-Za-z0-9.]+", "_", sentence.name)[:60]
            told = f"{sentence.name}: {sentence.source}", f"reference: {sentence.reference}"
            for ending in ("png", "pdf"):
                draw_alignments(
                    list(sentence.hypotheses.items()),
                    folder / f"{kind}-{number}-{name}.{ending}",
                    heading="\n".join(line for text in told for line in wrap(text, 110)),
                    spans=kind == "span",
                )
    notes = _notes(read, bool(chosen))
    _write_table(folder, read, notes)
    html = page(
        title=f"fairseq-regattn: {workspace.recipe.title}, {workspace.recipe.direction}",
        table=html_table(*_cells(read)),
        sentences=sentences,
        introduction=_introduction(workspace, list(shown)),
        notes=notes,
    )
    (folder / "index.html").write_text(html, encoding="utf-8")


def _fill_classified(
    folder: Path, workspace: Workspace, finished: Sequence[Run], read: Sequence[Record]
) -> None:
    shown: dict[str, list[Prediction]] = {}
    for run in finished:
        if run.attention.title not in shown:
            shown[run.attention.title] = run.predictions()
    notes = [ACCURACY_NOTE, WEIGHTS_NOTE, *_made(read)]
    _write_table(folder, read, notes)
    counts = [
        f"{len(read_lines(workspace.text / f'{split}.label')):,} texts for {what}"
        for split, what in (("train", "training"), ("test", "the test"))
    ]
    html = classified_page(
        title=f"fairseq-regattn: {workspace.recipe.title}",
        table_html=html_table(*_cells(read)),
        runs=shown,
        introduction=f"{workspace.recipe.title}: {', '.join(counts)}. {_differ(list(shown))}",
        notes=notes,
    )
    (folder / "index.html").write_text(html, encoding="utf-8")


def _fill_answered(
    folder: Path, workspace: Workspace, finished: Sequence[Run], read: Sequence[Record]
) -> None:
    notes = [CELLS_NOTE, *_made(read)]
    how = Preparation.read(workspace.binary)
    if how.shape[2] in PICTURES:
        shown: dict[str, list[Answer]] = {}
        for run in finished:
            if run.attention.title not in shown:
                shown[run.attention.title] = _spread(run.answers(), QUESTIONS)
        images = how.open_features(workspace.recipe.scored)
        draw_answers(shown, images, folder / "attention.png")
    else:
        notes.append(
            "No pictures: features are no images. python -m fairseq_regattn.vqa plot draws "
            f"answers.jsonl of each model, of split {workspace.recipe.scored}, over --images."
        )
    _write_table(folder, read, notes)


def _spread(found: Sequence[Found], number: int) -> list[Found]:
    """So many at even distances, whatever is in them."""
    step = max(len(found) / number, 1)
    return [found[int(step * i)] for i in range(min(number, len(found)))]


def _cells(read: Sequence[Record]) -> tuple[Sequence[str], Sequence[Sequence[str]]]:
    header, *body = table(read)
    return header, body


def _write_table(folder: Path, read: Sequence[Record], notes: Sequence[str]) -> None:
    text = "\n".join((text_table(read), "", *notes)) + "\n"
    (folder / "results.txt").write_text(text, encoding="utf-8")
    markdown = "\n\n".join((markdown_table(read), *notes)) + "\n"
    (folder / "results.md").write_text(markdown, encoding="utf-8")


def all_sentences(workspace: Workspace, shown: dict[str, list[Hypothesis]]) -> list[Sentence]:
    """The test split in its order, with what each mapping made of it."""
    sources = read_lines(workspace.text / f"test.{workspace.recipe.data.source}")
    names = [f"sentence {number}" for number in range(1, len(sources) + 1)]
    if (workspace.text / "test.names").exists():
        names = read_lines(workspace.text / "test.names")
    return [
        Sentence(name, source, reference, {title: found[i] for title, found in shown.items()})
        for i, (name, source, reference) in enumerate(zip(names, sources, workspace.references))
    ]


def _chosen(workspace: Workspace, sentences: Sequence[Sentence]) -> list[Sentence]:
    """At even distances among those that are short enough to be drawn.

    Chosen by length and position alone, so that good and bad ones have the same chance.
    """
    lengths = LENGTHS if workspace.recipe.summary is None else SUMMARY_LENGTHS
    short = [
        sentence
        for sentence, line in zip(sentences, workspace.sources)
        if len(line.split()) in lengths
        and all(len(found.target) <= LONGEST for found in sentence.hypotheses.values())
    ]
    return _spread(short, SENTENCES)


def longest_spans(sentences: Sequence[Sentence]) -> list[Sentence]:
    """Those where one output word has the longest run of equal, non-zero weights in some model.

    Chosen for what the paper shows of summaries, so not typical; longer inputs than pictures hold
    are left out.
    """
    spans = []
    for sentence in sentences:
        found = list(sentence.hypotheses.values())
        if all(len(h.source) in SUMMARY_LENGTHS and len(h.target) <= LONGEST for h in found):
            matrices = (h.weights for h in found if h.weights is not None)
            spans.append((max(int(longest_segment(w).max()) for w in matrices), sentence))
    spans.sort(key=lambda pair: -pair[0])
    return [sentence for longest, sentence in spans[:SPANS] if longest > 1]


def _introduction(workspace: Workspace, titles: Sequence[str]) -> str:
    recipe = workspace.recipe
    train, test = (
        len(read_lines(where.text / f"{split}.{where.recipe.data.target}"))
        for split, where in (("train", workspace.trained or workspace), ("test", workspace))
    )
    return (
        f"{recipe.title}, {recipe.direction}: {train:,} sentences for training, {test:,} for the "
        f"test, beam {recipe.generate.get('beam', 5)}. {_differ(titles)}"
    )


def _differ(titles: Sequence[str]) -> str:
    return (
        "The models differ in the mapping from attention scores to weights and in nothing else: "
        f"{'; '.join(titles)}."
    )


def _notes(read: Sequence[Record], pictures: bool) -> list[str]:
    seeds = sorted({record.seed for record in read})
    noise = "One seed: differences of about one point are noise."
    signatures = read[0].signatures
    scores = [f"ROUGE: {text}" for name, text in signatures.items() if name.startswith("rouge")]
    if "bleu" in signatures:
        scores = [f"BLEU: {signatures['bleu']} (sacreBLEU {read[0].versions['sacrebleu']})"]
    notes = [
        f"{'; '.join(scores)}, against the untouched reference text.",
        *([SUMMARY_NOTE] if read[0].summary is not None else []),
        *([noise] if len(seeds) == 1 else []),
        WEIGHTS_NOTE,
        *_made(read),
    ]
    if not pictures:
        notes.append(
            "No heat maps: no test sentence is short enough to be drawn, with translations of at "
            f"most {LONGEST} tokens."
        )
    if read[0].links is not None:
        notes.append(
            "Alignment error rate: of hard alignments taken from the attention weights while the "
            "model makes the reference, against alignments made by hand."
        )
    return notes


def _made(read: Sequence[Record]) -> list[str]:
    """How long it took, where, and by what."""
    return [
        "Training: wall time, one thread a model; models that were trained side by side shared "
        f"the machine ({read[0].machine}; {read[0].date}).",
        *(f"Command: {command}" for command in dict.fromkeys(record.command for record in read)),
    ]
