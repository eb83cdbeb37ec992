"""p values of the recorded runs against softmax, kept beside the records.

References may not be ours to pass on, so what needs them is computed where they are, once, and
``comparisons.json`` goes with the records.
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from fairseq_regattn.analysis.records import (
    Record,
    baselines,
    read_hypotheses,
    read_json,
    read_records,
    test_key,
)
from fairseq_regattn.errors import UsageError
from fairseq_regattn.recipes.stages import rewrite
from fairseq_regattn.scoring import Score
from fairseq_regattn.scoring.classification import compare_labels
from fairseq_regattn.scoring.summaries import compare_summaries
from fairseq_regattn.scoring.translation import compare

FILE = "comparisons.json"

"""Scores that have a p value."""


class Counts(NamedTuple):
    """Comparisons computed now, known from before, and left out for want of references."""

    made: int
    kept: int
    left: int


def significance(folder: Path, test_sets: Iterable[Sequence[Sequence[str]]]) -> Counts:
    """Compare each run with softmax of the same group and seed, unless that is known already.

    Translations by paired bootstrap, about a second a run and thousand sentences; summaries by
    paired approximate randomisation; labels and answers by McNemar's exact test.

    Args:
        folder: of records; gets ``comparisons.json``. What is in there of runs that are gone or
            have been made anew is dropped.
        test_sets: of each sentence the references, untouched; each run finds its own.

    Raises:
        UsageError: there are no records, or a file cannot be read or is not what was written.
    """
    references = {test_key(some): some for some in test_sets}
    known = _read(folder)
    kept, left = {}, 0
    missing: dict[Path, list[tuple[Record, Record]]] = defaultdict(list)
    for record, baseline in pairs(read_records(folder)):
        key = _key(record, baseline)
        if key in known:
            kept[key] = known[key]
        elif record.test_key in references:
            missing[baseline.path].append((record, baseline))
        else:
            left += 1
    made = {}
    for tested in missing.values():
        baseline = tested[0][1]
        systems = {_key(record, baseline): read_hypotheses(folder, record) for record, _ in tested}
        there, softmax = references[baseline.test_key], read_hypotheses(folder, baseline)
        if baseline.accuracy is not None:
            found = compare_labels(softmax, systems, [some[0] for some in there])
        elif (summary := baseline.summary) is None:
            found = compare(softmax, systems, [some[0] for some in there])
        else:
            found = compare_summaries(softmax, systems, there, summary.stem, summary.bytes)
        for record, _ in tested:
            scores = found[_key(record, baseline)]
            made[_key(record, baseline)] = {
                "run": str(record.path.with_suffix("")),
                **{name: score._asdict() for name, score in scores.items()},
            }
    comparisons = sorted({**kept, **made}.items(), key=lambda item: (item[1]["run"], item[0]))
    rewrite(folder / FILE, (json.dumps(dict(comparisons), indent=2) + "\n").encode())
    return Counts(len(made), len(kept), left)


def read_comparisons(folder: Path, records: Sequence[Record]) -> dict[Path, dict[str, Score]]:
    """p values by :attr:`Record.path` and the name of the score, of those that are known.

    Raises:
        UsageError: the file is not what was written.
    """
    known = _read(folder)
    return {
        record.path: _scores(known[key])
        for record, baseline in pairs(records)
        for key in [_key(record, baseline)]
        if key in known
    }


def pairs(records: Sequence[Record]) -> Iterator[tuple[Record, Record]]:
    """Each run but softmax, with the softmax that it is compared with, where there is one."""
    softmax = baselines(records)
    for record in records:
        baseline = softmax.get((record.group, record.seed))
        if baseline is not None and baseline is not record:
            yield record, baseline


def _key(record: Record, baseline: Record) -> str:
    """All that a p value depends on: three texts, of what kind, and how summaries are scored."""
    texts = f"{record.test_key}-{baseline.hypotheses_key}-{record.hypotheses_key}"
    if baseline.accuracy is not None:
        return f"{texts}-labels"
    if (summary := baseline.summary) is None:
        return texts
    stem, size = "stem" if summary.stem else "no stem", summary.bytes
    return f"{texts}-rouge, {stem}" + ("" if size is None else f", {size} bytes")


def _read(folder: Path) -> dict:
    path = folder / FILE
    if not path.exists():
        return {}
    content = read_json(path)
    wrong = f"{path} is not what was written: remove it, and compare again where references are"
    if not isinstance(content, dict) or not all(map(_is_comparison, content.values())):
        raise UsageError(wrong)
    return content


def _is_comparison(entry: Any) -> bool:
    """Whether it is what ``significance`` writes of a run."""
    try:
        scores = _scores(entry).values()
        return (
            len(scores) > 0
            and isinstance(entry["run"], str)
            and all(
                isinstance(score.value, (int, float)) and isinstance(score.signature, str)
                for score in scores
            )
        )
    except (AttributeError, KeyError, TypeError):
        return False


def _scores(entry: dict[str, Any]) -> dict[str, Score]:
    return {name: Score(**score) for name, score in entry.items() if name != "run"}
