"""Tables of many runs, as text, Markdown, CSV and JSON."""

from __future__ import annotations

import csv
import io
import json
from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any, NamedTuple

from fairseq_regattn.analysis.measures import Measure
from fairseq_regattn.analysis.records import LINKS, Group, Record, read_records
from fairseq_regattn.analysis.significance import read_comparisons
from fairseq_regattn.analysis.sweep import CLOSE, Sweep
from fairseq_regattn.analysis.tables import Rows, markdown_rows, text_rows
from fairseq_regattn.recipes.stages import rewrite
from fairseq_regattn.scoring.classification import ClassScores


class Section(NamedTuple):
    """A table with what its numbers mean."""

    title: str
    rows: Rows
    note: str


def read_sweep(folder: Path) -> Sweep:
    """All runs of a folder of records, with the p values that are known.

    Raises:
        UsageError: there are none, or a file cannot be read.
    """
    records = read_records(folder)
    return Sweep(records, read_comparisons(folder, records))


def write_results(records_folder: Path, out_folder: Path) -> list[Path]:
    """Write ``results.md``, ``results.csv`` (a row a run) and ``results.json`` (everything).

    Raises:
        UsageError: as for :func:`read_sweep`.
    """
    sweep = read_sweep(records_folder)
    contents = {"md": markdown(sweep), "csv": csv_text(sweep), "json": json_text(sweep)}
    paths = []
    for ending, content in contents.items():
        paths.append(out_folder / f"results.{ending}")
        rewrite(paths[-1], content.encode())
    return paths


def text(sweep: Sweep) -> str:
    """For a terminal."""
    parts = [f"{s.title}\n{text_rows(s.rows)}\n{s.note}" for s in sections(sweep)]
    return "\n\n".join((*parts, "\n".join(notes(sweep))))


def markdown(sweep: Sweep) -> str:
    """For GitHub."""
    parts = [f"## {s.title}\n\n{markdown_rows(s.rows)}\n\n{s.note}" for s in sections(sweep)]
    listed = "\n".join(f"- {note}" for note in notes(sweep))
    return "\n\n".join(("# Results", listed, *parts)) + "\n"


def sections(sweep: Sweep) -> list[Section]:
    """Of translations a table a measure, a row a direction; of others a table a test set.

    There are few test sets of other kinds, and many measures.
    """
    kinds = {group: sweep.kind(group) for group in sweep.rows}
    translated = [group for group, kind in kinds.items() if kind == "translations"]
    tables = [
        _section(sweep, measure, translated)
        for measure in sweep.measures
        if translated and _has(sweep, measure, translated)
    ]
    for group, kind in kinds.items():
        if kind != "translations":
            tables.append(_test_set(sweep, group))
        if kind == "classifications":
            tables.append(_confusion(sweep, group))
    return tables


def _has(sweep: Sweep, measure: Measure, groups: Sequence[Group]) -> bool:
    return any(
        sweep.kind(group) in measure.kinds and sweep.values(measure, sweep.of(group))
        for group in groups
    )


def _test_set(sweep: Sweep, group: Group) -> Section:
    """All measures of one test set, a row each."""
    measures = [measure for measure in sweep.measures if _has(sweep, measure, [group])]
    columns = [column for column in sweep.columns if sweep.runs(group, column)]
    rows = [["measure", *columns]]
    meaning: dict[str, list[str]] = {}
    for measure in measures:
        rows.append([measure.title, *(sweep.cell(measure, group, column) for column in columns)])
        meaning.setdefault(measure.note, []).append(measure.title)
    told = (f"- {', '.join(titles)}: {note}" for note, titles in meaning.items())
    return Section(sweep.rows[group], rows, "\n".join(told))


def _confusion(sweep: Sweep, group: Group) -> Section:
    """Of one test set, the matrices of all mappings below each other."""
    made = [record.classes for record in sweep.of(group) if record.classes is not None]
    labels = list(dict.fromkeys(label for classes in made for label in classes.labels))
    rows = [["mapping: label", *(f"taken for {label}" for label in labels)]]
    for column in sweep.columns:
        counts: Counter[tuple[str, str]] = Counter()
        for record in sweep.runs(group, column):
            if (classes := record.classes) is not None:
                for gold, numbers in zip(classes.labels, classes.confusion):
                    counts.update({(gold, found): n for found, n in zip(classes.labels, numbers)})
        if counts:
            for gold in labels:
                cells = [f"{counts[gold, found]:,}" for found in labels]
                rows.append([f"{column}: {gold}", *cells])
    note = "Texts of each label by the label that they were given, all seeds together."
    return Section(f"Confusion, {sweep.rows[group]}", rows, note)


def _section(sweep: Sweep, measure: Measure, groups: Sequence[Group]) -> Section:
    rows = [["test set", *sweep.columns]]
    for group in groups:
        cells = (sweep.cell(measure, group, column) for column in sweep.columns)
        rows.append([sweep.rows[group], *cells])
    note = measure.note
    if measure.key == "bleu":
        verdicts = [sweep.verdict(group) for group in groups]
        rows[0].append(f"all within {CLOSE:g} BLEU of the best")
        for row, verdict in zip(rows[1:], verdicts):
            row.append(verdict)
        note += f" {_claim(verdicts)}"
    return Section(measure.title, rows, note)


def _claim(verdicts: Sequence[str]) -> str:
    """How often the paper's claim held."""
    counts = Counter(verdicts)
    held = f"All mappings are within {CLOSE:g} BLEU of the best in {counts['yes']} of "
    held += f"{len(verdicts)} rows"
    for verdict, words in (
        ("yes, so far", "so far in {} where runs are missing"),
        ("no", "not in {}"),
        ("-", "with nothing to compare in {}"),
    ):
        if counts[verdict]:
            held += f", {words.format(counts[verdict])}"
    return held + "."


def notes(sweep: Sweep) -> list[str]:
    """What the numbers were made with, and what is missing."""
    records = sweep.records
    dates = sorted({record.date for record in records})
    seeds = {group: sorted({r.seed for r in records if r.group == group}) for group in sweep.rows}
    every = sorted({record.seed for record in records})
    # of accuracies the interval tells
    single = [
        sweep.rows[group]
        for group in sweep.rows
        if len(seeds[group]) == 1 and sweep.kind(group) in ("translations", "summaries")
    ]
    found = [
        f"{len(records)} runs, {' to '.join(dict.fromkeys((dates[0], dates[-1])))}. "
        "A cell is the mean over seeds ± their standard deviation, - where there is no run.",
        f"Seeds: {', '.join(map(str, every))}.",
    ]
    if single:
        where = "" if len(single) == len(sweep.rows) else f" in {'; '.join(single)}"
        found.append(f"One seed{where}: differences of about one point are noise.")
    found += [f"Machine: {machine}." for machine in sorted({r.machine for r in records})]
    for name in sorted({name for record in records for name in record.signatures}):
        each = sorted({r.signatures[name] for r in records if name in r.signatures})
        found.append(
            f"{name}: {'; '.join(each)}" + (" (differ: compare with care)" * (len(each) > 1))
        )
    tests: dict[str, dict[str, None]] = {}
    for scores in sweep.comparisons.values():
        for name, score in sorted(scores.items()):
            tests.setdefault(score.signature, {})[name] = None
    found += [f"p of {', '.join(compared)}: {signature}" for signature, compared in tests.items()]
    uncompared = [
        record
        for record in records
        if sweep.baseline(record) not in (None, record) and record.path not in sweep.comparisons
    ]
    if uncompared:
        found.append(f"p is not computed yet for {len(uncompared)} runs.")
    missing = [
        f"{sweep.rows[group]}: {column}, seed {seed}" for group, column, seed in sweep.missing()
    ]
    if missing:
        found.append(f"{len(missing)} runs missing: {'; '.join(missing)}.")
    return found


def csv_text(sweep: Sweep) -> str:
    """A row a run, with all of its numbers."""
    rows = [_flat(sweep, record) for record in sweep.records]
    out = io.StringIO()
    columns = dict.fromkeys(column for row in rows for column in row)
    writer = csv.DictWriter(out, columns, lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    return out.getvalue()


def _flat(sweep: Sweep, record: Record) -> dict[str, Any]:
    row = asdict(record)
    for name in ("signatures", "versions", "command"):
        del row[name]
    row.update(row.pop("alignments"))
    links = row.pop("links") or {}
    row.update({name: links.get(name) for name in LINKS})
    summary = row.pop("summary") or {}
    for name, scores in summary.pop("scores", {}).items():
        row.update(zip((name, f"{name} low", f"{name} high"), scores))
    row.update(summary)
    for name in ("classes", "answers"):
        del row[name]
    if record.accuracy is not None:
        row.update(zip(("accuracy", "accuracy low", "accuracy high"), record.accuracy))
    if record.classes is not None:
        row.update(_flat_classes(record.classes))
    if record.answers is not None:
        row["vqa_accuracy"] = record.answers.vqa
        for name, (right, questions) in record.answers.types.items():
            row.update({f"right {name}": right, f"questions {name}": questions})
    return {**row, **_against_softmax(sweep, record)}


def _flat_classes(classes: ClassScores) -> dict[str, Any]:
    row: dict[str, Any] = {"macro_f1": classes.macro_f1}
    for name in ("recall", "precision", "f1"):
        row.update({f"{name} {label}": v for label, v in getattr(classes, name).items()})
    for gold, counts in zip(classes.labels, classes.confusion):
        row.update({f"{gold} as {found}": n for found, n in zip(classes.labels, counts)})
    return row


def _against_softmax(sweep: Sweep, record: Record) -> dict[str, float | None]:
    against: dict[str, float | None] = {}
    for measure in sweep.measures:
        if measure.compared:
            against[f"{measure.key}_difference"] = sweep.difference(measure, record)
            against[f"{measure.key}_p"] = sweep.p(measure, record)
        elif measure.key == "training_time_ratio":
            against[measure.key] = measure.of(record, sweep.baseline(record))
    return against


def json_text(sweep: Sweep) -> str:
    """Everything: the tables as printed and their notes, and the runs by row."""
    content = {
        "notes": notes(sweep),
        "tables": [section._asdict() for section in sections(sweep)],
        "rows": [
            {
                "title": title,
                "verdict": sweep.verdict(group),
                "runs": [
                    {**asdict(record), "against_softmax": _against_softmax(sweep, record)}
                    for record in sweep.records
                    if record.group == group
                ],
            }
            for group, title in sweep.rows.items()
        ],
        "missing": [
            {"row": sweep.rows[group], "attention": column, "seed": seed}
            for group, column, seed in sweep.missing()
        ],
    }
    return json.dumps(content, indent=2, ensure_ascii=False) + "\n"
