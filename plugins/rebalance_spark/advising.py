"""The strategy for each group: the one that runs today, or one that is better without being worse.

A group stands for any subject of a decision: several scenarios, or one.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from coordinator_core.errors import InputError
from coordinator_core.reading.suggestions import one_of
from rebalance_lab.verdicts.rule import TIE
from rebalance_lab.verdicts.words import listed_names
from rebalance_spark.groups import DRAW, REPAIRS
from rebalance_spark.paired import Difference, difference, gains
from rebalance_spark.parts import Subjects
from rebalance_spark.stored import NO_ROW, Figures2D, Scored, encoded

BY_COUNT, BY_RATE = "imbalance", "weighted_imbalance"

RULE = (
    "A {subject} switches to a strategy that is better in {metrics}{over}. Of several, it is the one that is"
    " best in {first}; of those that are equal in it, the best in the next metric, and so on through the"
    " table. Figures that differ by at most {tie:g} % of the larger one are equal. All other {subjects} stay."
)

SWITCH, STAY, UNKNOWN = "switch", "stay", "no figures"
"""Reasons: another strategy is better; none is; the strategy of today has no figures for the group."""


@dataclass(frozen=True, slots=True, eq=False)
class Advice:
    """The number of the advised strategy for each subject, and how many scenarios it rests on.

    ``metrics`` decide. ``scenarios`` has the number of those that decide for each subject, and ``agree`` the
    share of them in which the rule advises the same for the scenario alone, NaN for fewer than two.
    ``changes`` maps the metrics, those that decide first, to the mean change of each subject, NaN without
    figures. ``differences`` maps an advised strategy and a metric to the mean change over the subjects that
    switch to it. ``worse`` maps the strategy to the other metrics that become worse in these. ``counted`` are
    the subjects without rates: `BY_COUNT` decides about them in place of `BY_RATE`.
    """

    baseline: str
    metrics: Sequence[str]
    strategies: Sequence[str]
    subjects: Subjects
    chosen: npt.NDArray[np.int64]
    scenarios: npt.NDArray[np.int64]
    agree: npt.NDArray[np.float64]
    changes: Mapping[str, npt.NDArray[np.float64]]
    differences: Mapping[tuple[str, str], Difference]
    worse: Mapping[str, Sequence[str]]
    counted: Sequence[str] = ()

    @property
    def known(self) -> npt.NDArray[np.bool_]:
        """Whether today's strategy has figures for each subject."""
        return np.asarray(self.scenarios > 0)

    @property
    def switches(self) -> list[tuple[str, int]]:
        """The strategies to switch to, with the number of subjects, the most first."""
        counts = np.bincount(self.chosen, minlength=len(self.strategies))
        found = [(name, int(count)) for name, count in zip(self.strategies, counts, strict=True) if count]
        return sorted((f for f in found if f[0] != self.baseline), key=lambda each: -each[1])

    @property
    def decisive(self) -> list[str]:
        """The metrics that decide, with that of the subjects without rates."""
        return list(dict.fromkeys([*self.metrics, *([BY_COUNT] if self.counted else [])]))

    @property
    def rule(self) -> str:
        """The rule in words."""
        listed = listed_names(self.metrics, len(self.metrics))
        several = f"at least one of {listed} and worse in none of them"
        return RULE.format(
            metrics=listed if len(self.metrics) == 1 else several,
            first=self.metrics[0],
            tie=100 * TIE,
            subject=self.subjects.singular,
            subjects=self.subjects.plural,
            over="" if self.subjects.are_scenarios else ", in the mean over its scenarios",
        )


def advise(
    scored: Scored,
    baseline: str,
    subjects: Subjects,
    figures: Mapping[str, Figures2D],
    deciding: Sequence[str],
    higher: Mapping[str, bool],
    counts: Figures2D | None = None,
) -> Advice:
    """Return the advice for scores. ``figures`` has the deciding metrics, and others whose change is shown.

    ``counts`` are the figures of `BY_COUNT`. They decide about subjects without rates if `BY_RATE` decides.

    Of each subject the scenarios count in which today's strategy has the deciding figures, and only those
    that are scored under all strategies, if there are any. A strategy without figures in one of them is not
    advised.

    Raises:
        InputError: if the baseline has no scores.
    """
    today = place_of(baseline, scored)
    figures = {metric: figures[metric] for metric in (*deciding, *figures)}
    counted = np.zeros(len(subjects.names), dtype=np.bool_)
    if counts is not None and BY_RATE in deciding:
        counted = _without_rates(subjects, figures[BY_RATE][:, today], counts[:, today])
        figures[BY_RATE] = np.where(counted[subjects.numbers][:, None], counts, figures[BY_RATE])
    known = ~np.isnan([figures[metric][:, today] for metric in deciding]).any(axis=0)
    scored_by_all = known & (scored.status != NO_ROW).all(axis=1)
    has_such = np.bincount(subjects.numbers[scored_by_all], minlength=len(subjects.names)) > 0
    rows = np.where(has_such[subjects.numbers], scored_by_all, known)
    means = {m: subjects.means(grid, rows & ~np.isnan(grid[:, today])) for m, grid in figures.items()}
    chosen = _chosen(means, today, deciding, higher)
    numbers = subjects.numbers[rows]
    scenarios = np.bincount(numbers, minlength=len(chosen))
    alone = _chosen({m: grid[rows] for m, grid in figures.items()}, today, deciding, higher)
    agreeing = np.bincount(numbers, alone == chosen[numbers], len(chosen))
    changes = {
        m: grid[np.arange(len(grid)), chosen] - grid[:, today]
        for m, grid in means.items()
        if m in deciding or not np.isnan(grid).all()
    }
    decisive = {*deciding, *([BY_COUNT] if counted.any() else [])}
    if counted.any():
        by_count = changes.get(BY_COUNT, np.full(len(counted), np.nan))
        changes[BY_COUNT] = np.where(counted, changes[BY_RATE], by_count)
        changes[BY_RATE] = np.where(counted, np.nan, changes[BY_RATE])
    differences: dict[tuple[str, str], Difference] = {}
    worse: dict[str, list[str]] = {}
    for number, name in enumerate(scored.strategies):
        switched = chosen == number
        if number != today and switched.any():
            for metric, change in changes.items():
                having = switched & ~np.isnan(change)
                found = differences[name, metric] = difference(change[having])
                if metric in decisive or (found.has_interval and not found.is_clear):
                    continue
                if _is_worse(means[metric][having, today], found, higher[metric]):
                    worse.setdefault(name, []).append(metric)
    return Advice(
        baseline,
        list(deciding),
        scored.strategies,
        subjects,
        chosen,
        scenarios,
        np.where(scenarios > 1, agreeing / np.maximum(scenarios, 1), np.nan),
        changes,
        differences,
        worse,
        [name for name, is_counted in zip(subjects.names, counted, strict=True) if is_counted],
    )


def _without_rates(
    subjects: Subjects, by_rate: npt.NDArray[np.float64], by_count: npt.NDArray[np.float64]
) -> npt.NDArray[np.bool_]:
    """Return whether each subject has figures by partitions and none by rates."""
    size = len(subjects.names)
    weighed = np.bincount(subjects.numbers, ~np.isnan(by_rate), size)
    counted = np.bincount(subjects.numbers, ~np.isnan(by_count), size)
    return np.asarray((counted > 0) & (weighed == 0))


def place_of(baseline: str, scored: Scored) -> int:
    """Return the place of today's strategy among those that have scores.

    Raises:
        InputError: if it has none.
    """
    if baseline not in scored.strategies:
        raise InputError("--baseline", repr(baseline), one_of(baseline, scored.strategies))
    return scored.strategies.index(baseline)


def _is_worse(before: npt.NDArray[np.float64], change: Difference, higher: bool) -> bool:
    base = np.asarray(before.mean())
    return bool(gains(base, base + change.mean, higher, TIE) < 0)


def _chosen(
    figures: Mapping[str, Figures2D], today: int, deciding: Sequence[str], higher: Mapping[str, bool]
) -> npt.NDArray[np.int64]:
    """Return the strategy of each row of figures (rows x strategies) by the rule."""
    gain = [gains(figures[m][:, [today]], figures[m], higher[m], TIE) for m in deciding]
    possible = np.any([each > 0 for each in gain], axis=0) & np.all([each >= 0 for each in gain], axis=0)
    switching = possible.any(axis=1)
    for metric, grid in figures.items():
        values = np.where(possible & ~np.isnan(grid), -grid if higher[metric] else grid, np.inf)
        least = values.min(axis=1, keepdims=True)
        with np.errstate(invalid="ignore"):
            best = np.isfinite(values) & (gains(least, values, higher=False, tie=TIE) >= 0)
        possible = np.where(best.any(axis=1, keepdims=True), best, possible)
    return np.where(switching, possible.argmax(axis=1), today)


def as_file(table: pa.Table, ending: str) -> bytes:
    """Return a table as CSV or Parquet."""
    from pyarrow import csv, parquet

    sink = pa.BufferOutputStream()
    writers: dict[str, Any] = {".csv": csv.write_csv, ".parquet": parquet.write_table}
    writers[ending](table, sink)
    return bytes(sink.getvalue().to_pybytes())


def check_ending(path: Path) -> None:
    """Check the name of a file for advice.

    Raises:
        InputError: if it does not end with .csv or .parquet.
    """
    if path.suffix not in (".csv", ".parquet"):
        raise InputError("--advice", str(path), "a file that ends with .csv or .parquet")


def advice_table(scored: Scored, advice: Advice) -> pa.Table:
    """Return the advice as a table, a row per subject.

    The columns that the scores have from the workload follow its name, if they have one value for each. The
    repaired rows of its scenarios are summed.
    """
    subjects = advice.subjects
    today = place_of(advice.baseline, scored)
    names = np.array(scored.strategies, dtype=object)
    reason = np.where(advice.chosen != today, SWITCH, np.where(advice.known, STAY, UNKNOWN))
    columns: dict[str, Any] = {subjects.column: subjects.names}
    if not subjects.are_scenarios:
        columns["scenarios"] = np.bincount(subjects.numbers, minlength=len(subjects.names))
        columns["agree"] = pa.array(advice.agree, from_pandas=True)
    columns |= _carried(scored, subjects)
    columns |= {
        "today": [advice.baseline] * len(subjects.names),
        "strategy": names[advice.chosen].tolist(),
        "reason": reason.tolist(),
    }
    for metric, change in advice.changes.items():
        columns[f"{metric}_change"] = pa.array(change, from_pandas=True)
    return pa.table(columns)


def first_draws(scored: Scored) -> npt.NDArray[np.bool_]:
    """Return whether each scenario is the first of the draws of a group under its keys."""
    if DRAW not in scored.others:
        return np.ones(len(scored.scenarios), dtype=np.bool_)
    return np.array([draw in (None, 0) for draw in scored.values(DRAW)], dtype=np.bool_)


def _carried(scored: Scored, subjects: Subjects) -> dict[str, list[Any]]:
    """Return the sums of repairs, and the columns that are the same in all scenarios of each subject."""
    first = np.unique(subjects.numbers, return_index=True)[1]
    found: dict[str, list[Any]] = {}
    for name in scored.others:
        values = scored.values(name)
        if name == REPAIRS:
            counts = np.array([value or 0 for value in values]) * first_draws(scored)
            sums = np.bincount(subjects.numbers, counts, len(first))
            found[name] = sums.astype(np.int64).tolist()
            continue
        if all(value is None for value in values):
            continue
        codes = encoded(pa.array([str(value) for value in values], pa.string()))[0]
        if name != subjects.column and np.array_equal(codes, codes[first][subjects.numbers]):
            found[name] = [values[row] for row in first]
    return found
