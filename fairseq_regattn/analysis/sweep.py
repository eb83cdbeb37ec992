"""Many runs by test set and mapping, and what is said of each: means, differences, ratios."""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from statistics import mean, stdev

from fairseq_regattn.analysis.measures import MEASURES, Measure, class_measures, rouge_measures
from fairseq_regattn.analysis.records import Group, Record, baselines
from fairseq_regattn.scoring import Score

CLOSE = 1.0
"""BLEU: the paper reports all of its mechanisms within this distance of the best."""


class Sweep:
    """Runs in rows of one test set and settings each, and columns of one attention each.

    Args:
        records: in any order.
        comparisons: p values by :attr:`Record.path`.

    Attributes:
        rows: titles by group; the settings and the test set are told where they differ within a
            recipe and direction.
        columns: titles, softmax first.
        measures: that some run may have.
    """

    def __init__(
        self, records: Sequence[Record], comparisons: Mapping[Path, Mapping[str, Score]]
    ) -> None:
        self.records = sorted(records, key=lambda record: (record.group, *_order(record)))
        self.comparisons = comparisons
        self.columns = [*dict.fromkeys(r.attention for r in sorted(records, key=_order))]
        groups = [*dict.fromkeys(record.group for record in self.records)]
        self.rows = {group: _title(group, groups) for group in groups}
        self.measures = [
            *rouge_measures(self.records),
            *class_measures(self.records),
            *MEASURES,
        ]
        self._baselines = baselines(self.records)

    def of(self, group: Group) -> list[Record]:
        """All runs of a row."""
        return [record for record in self.records if record.group == group]

    def kind(self, group: Group) -> str:
        """What its runs are: :attr:`Record.kind`."""
        return self.of(group)[0].kind

    def runs(self, group: Group, column: str) -> list[Record]:
        """Of one cell, by seed."""
        return [record for record in self.of(group) if record.attention == column]

    def baseline(self, record: Record) -> Record | None:
        """Softmax of the same group and seed; for softmax itself."""
        return self._baselines.get((record.group, record.seed))

    def values(self, measure: Measure, runs: Sequence[Record]) -> list[float]:
        """Of those runs that have it."""
        found = (measure.of(record, self.baseline(record)) for record in runs)
        return [value for value in found if value is not None]

    def difference(self, measure: Measure, record: Record) -> float | None:
        """To softmax; None for softmax itself and where there is none."""
        baseline = self.baseline(record)
        if baseline is None or baseline is record:
            return None
        value, base = measure.of(record, baseline), measure.of(baseline, baseline)
        return None if value is None or base is None else value - base

    def p(self, measure: Measure, record: Record) -> float | None:
        """Of this difference; None where it was not computed."""
        scores = self.comparisons.get(record.path, {})
        return scores[measure.key].value if measure.key in scores else None

    def cell(self, measure: Measure, group: Group, column: str) -> str:
        """For people."""
        runs = self.runs(group, column)
        values = self.values(measure, runs)
        if not values:
            return "-"
        text = measure.form.format(mean(values))
        interval = measure.interval(runs[0]) if measure.interval and len(runs) == 1 else None
        if interval is not None:
            text += f" [{', '.join(map(measure.form.format, interval))}]"
        if len(values) > 1:
            text += " ± " + measure.form.format(stdev(values))
        differences = [d for record in runs if (d := self.difference(measure, record)) is not None]
        if measure.compared and differences:
            p = sorted(p for record in runs if (p := self.p(measure, record)) is not None)
            shown = dict.fromkeys(map(_p, (p[0], p[-1]))) if p else ["-"]
            text += f" ({mean(differences):+.1f}, p {' to '.join(shown)})"
        return text

    def verdict(self, group: Group) -> str:
        """Whether all mappings are within one BLEU of the best: the claim of the paper."""
        means = [
            mean(v) for c in self.columns if (v := self.values(MEASURES[0], self.runs(group, c)))
        ]
        if len(means) < 2:
            return "-"
        if max(means) - min(means) > CLOSE:
            return "no"
        missing = any(of == group for of, _, _ in self.missing())
        return "yes, so far" if missing else "yes"

    def missing(self) -> Iterator[tuple[Group, str, int]]:
        """Cells without a run: of what its recipe has elsewhere, for each seed of its row."""
        for group in self.rows:
            there = {(r.attention, r.seed) for r in self.records if r.group == group}
            seeds = sorted({seed for _, seed in there})
            wanted = {r.attention for r in self.records if r.recipe == group[0]}
            for column, seed in itertools.product(self.columns, seeds):
                if column in wanted and (column, seed) not in there:
                    yield group, column, seed


def _p(value: float) -> str:
    """No test gives 0: the smallest values depend on how many samples were drawn."""
    return "<0.001" if value < 0.0005 else f"{value:.3f}"


def _order(record: Record) -> tuple:
    """Of columns, and of runs within a row."""
    name = re.split(r"(\d+\.?\d*)", record.name)  # 32 before 128
    name[1::2] = [f"{float(number):020.9f}" for number in name[1::2]]
    return record.mapping != "softmax", record.mapping, name, record.seed


def _title(group: Group, groups: Sequence[Group]) -> str:
    recipe, direction, settings, test_key = group
    alike = [other for other in groups if other[:2] == group[:2]]
    parts = [recipe if recipe.endswith(direction) else f"{recipe} {direction}"]
    if len({other[2] for other in alike}) > 1:
        parts.append(f"settings {settings}")
    if len({other[3] for other in alike}) > 1:
        parts.append(f"test set {test_key}")
    return ", ".join(parts)
