"""The strategy for each group: the one that runs today, or one that is known to be better and not worse.

A group stands for any subject of a decision. The pairs of the one rule of better (`verdicts.rule`) are its
scenarios: its hours, and its draws.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from pyarrow import csv, parquet

from coordinator_core.errors import InputError
from coordinator_core.reading.suggestions import one_of
from rebalance_lab.verdicts.rule import FEWEST_PAIRS, TIE, Order, differences, ends, medians, order
from rebalance_lab.verdicts.words import listed_names
from rebalance_spark.groups import DRAW, REPAIRS
from rebalance_spark.parts import Subjects
from rebalance_spark.stored import NO_ROW, Figures2D, Scored, encoded

BY_COUNT, BY_RATE = "imbalance", "weighted_imbalance"

RULE = (
    "A {subject} switches to a strategy that is known to be better in {metrics}, from {pairs} scenarios on"
    " (sign test of its scenarios, 5 %; by more than {tie:g} % is better, within it is as good). Of several,"
    " it is the one with the best median of {first}; of those that are equal in it, the best in the next"
    " metric, and so on through the table. All other {subjects} stay."
)

SWITCH, STAY, UNKNOWN = "switch", "stay", "no figures"
"""Reasons: another strategy is known to be better; none is; that of today has no figures for the group."""

FEW = f"not enough data: {{}} of {FEWEST_PAIRS} scenarios"
"""The reason of a group with figures in fewer scenarios than show an order."""

_WRITERS: Mapping[str, Callable[..., None]] = {".csv": csv.write_csv, ".parquet": parquet.write_table}
"""How a table is written to a file, by the ending of its name."""


@dataclass(frozen=True, slots=True, eq=False)
class Advice:
    """The number of the advised strategy for each subject, and how many scenarios it rests on.

    ``metrics`` decide. ``scenarios`` has the number of those that decide for each subject, and ``agree`` the
    share of them in which the figures of the scenario alone advise the same, NaN for a subject without enough
    scenarios. ``changes`` maps the metrics, those that decide first, to the change of the median of each
    subject, NaN without figures. ``worse`` maps an advised strategy to the other metrics that are worse in
    the scenarios of the subjects that switch to it. ``counted`` are the subjects without rates: `BY_COUNT`
    decides about them in place of `BY_RATE`.
    """

    baseline: str
    metrics: Sequence[str]
    strategies: Sequence[str]
    subjects: Subjects
    chosen: npt.NDArray[np.int64]
    scenarios: npt.NDArray[np.int64]
    agree: npt.NDArray[np.float64]
    changes: Mapping[str, npt.NDArray[np.float64]]
    worse: Mapping[str, Sequence[str]]
    counted: Sequence[str] = ()

    @property
    def switches(self) -> list[tuple[str, int]]:
        """The strategies to switch to, with the number of subjects, the most first."""
        counts = np.bincount(self.chosen, minlength=len(self.strategies))
        found = [(name, int(count)) for name, count in zip(self.strategies, counts, strict=True) if count]
        return sorted((f for f in found if f[0] != self.baseline), key=lambda each: -each[1])

    def change(self, strategy: str, metric: str) -> float:
        """Return the mean change over the subjects that switch to a strategy, NaN without figures."""
        changes = self.changes[metric][self.chosen == self.strategies.index(strategy)]
        known = changes[~np.isnan(changes)]
        return float(known.mean()) if len(known) else np.nan

    @property
    def decisive(self) -> list[str]:
        """The metrics that decide, with that of the subjects without rates."""
        return list(dict.fromkeys([*self.metrics, *([BY_COUNT] if self.counted else [])]))

    @property
    def reasons(self) -> list[str]:
        """The reason for the strategy of each subject."""
        today = self.strategies.index(self.baseline)
        return [
            UNKNOWN if not count else FEW.format(count) if count < FEWEST_PAIRS else (STAY, SWITCH)[switches]
            for count, switches in zip(self.scenarios.tolist(), (self.chosen != today).tolist(), strict=True)
        ]

    @property
    def rule(self) -> str:
        """The rule in words."""
        listed = listed_names(self.metrics, len(self.metrics))
        several = f"at least one of {listed} and as good in the others"
        return RULE.format(
            metrics=listed if len(self.metrics) == 1 else several,
            first=self.metrics[0],
            pairs=FEWEST_PAIRS,
            tie=100 * TIE,
            subject=self.subjects.singular,
            subjects=self.subjects.plural,
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
    today, size, numbers = place_of(baseline, scored), len(subjects.names), subjects.numbers
    figures = {metric: figures[metric] for metric in (*deciding, *figures)}
    counted = np.zeros(size, dtype=np.bool_)
    if counts is not None and BY_RATE in deciding:
        counted = _without_rates(subjects, figures[BY_RATE][:, today], counts[:, today])
        figures[BY_RATE] = np.where(counted[numbers][:, None], counts, figures[BY_RATE])
    known = ~np.isnan([figures[metric][:, today] for metric in deciding]).any(axis=0)
    scored_by_all = known & (scored.status != NO_ROW).all(axis=1)
    has_such = np.bincount(numbers[scored_by_all], minlength=size) > 0
    rows = np.where(has_such[numbers], scored_by_all, known)
    signs = {metric: -1.0 if higher[metric] else 1.0 for metric in figures}
    costs = {m: _complete(signs[m] * grid, today, rows, subjects) for m, grid in figures.items()}
    typical = {m: _by_strategy(grid, lambda cost: medians(cost, numbers, size)) for m, grid in costs.items()}
    most = {m: _most(costs[m], today, numbers) for m in deciding}
    chosen = _chosen(most, typical, today)
    alone = {m: differences(costs[m], costs[m][:, [today]]) for m in deciding}
    agree = rows & (_chosen(alone, costs, today) == chosen[numbers])
    scenarios = np.bincount(numbers[rows], minlength=size)
    few = scenarios < FEWEST_PAIRS
    changes = {
        m: signs[m] * (grid[np.arange(size), chosen] - grid[:, today])
        for m, grid in typical.items()
        if m in deciding or not np.isnan(grid).all()
    }
    if counted.any():
        by_count = changes.get(BY_COUNT, np.full(size, np.nan))
        changes[BY_COUNT] = np.where(counted, changes[BY_RATE], by_count)
        changes[BY_RATE] = np.where(counted, np.nan, changes[BY_RATE])
    decisive = {*deciding, *([BY_COUNT] if counted.any() else [])}
    worse: dict[str, list[str]] = {}
    for number in np.unique(chosen[chosen != today]).tolist():
        switched = chosen[numbers] == number
        pairs = {m: costs[m][switched] for m in changes if m not in decisive}
        worse[scored.strategies[number]] = [
            m for m, cost in pairs.items() if order(cost[:, number], cost[:, today]) is Order.WORSE
        ]
    return Advice(
        baseline,
        list(deciding),
        scored.strategies,
        subjects,
        chosen,
        scenarios,
        np.where(few, np.nan, np.bincount(numbers, agree, size) / np.maximum(scenarios, 1)),
        changes,
        worse,
        [name for name, is_counted in zip(subjects.names, counted, strict=True) if is_counted],
    )


def _complete(figures: Figures2D, today: int, rows: npt.NDArray[np.bool_], subjects: Subjects) -> Figures2D:
    """Return the figures of the rows in which today's strategy has one.

    A strategy that lacks one of them has none for the whole subject.
    """
    known = ~np.isnan(figures)
    pairs = (rows & known[:, today])[:, None]
    gaps = _by_strategy(pairs & ~known, lambda gap: np.bincount(subjects.numbers, gap, len(subjects.names)))
    return np.where(pairs & (gaps == 0)[subjects.numbers], figures, np.nan)


def _most(costs: Figures2D, today: int, numbers: npt.NDArray[np.int64]) -> Figures2D:
    """Return the greatest difference to today's strategy that the scenarios of each subject allow."""
    return _by_strategy(costs, lambda cost: ends(cost, costs[:, today], numbers)[1])


def _by_strategy(grid: npt.NDArray[Any], call: Callable[[Any], npt.NDArray[Any]]) -> npt.NDArray[Any]:
    """Return what a function makes of the column of each strategy."""
    return np.stack([call(column) for column in grid.T], axis=1)


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


def dominates(most: npt.ArrayLike) -> npt.NDArray[np.bool_]:
    """Return whether something is better in at least one of several metrics, and as good in the others.

    ``most`` are the greatest differences that are possible, the upper ends of `rule.ends` (metrics x ...).
    """
    bounds = np.asarray(most)
    return np.asarray((bounds < -TIE).any(axis=0) & (bounds <= TIE).all(axis=0))


def _chosen(
    most: Mapping[str, Figures2D], costs: Mapping[str, Figures2D], today: int
) -> npt.NDArray[np.int64]:
    """Return the strategy of each row by the rule (rows x strategies).

    ``most`` has the greatest difference to today's strategy that is possible, for the metrics that decide.
    Of several strategies that are better, that with the least cost is chosen, metric by metric.
    """
    possible = dominates(list(most.values()))
    switching = np.any(possible, axis=1)
    for cost in costs.values():
        least = np.where(possible & ~np.isnan(cost), cost, np.inf).min(axis=1, keepdims=True)
        best = possible & (differences(cost, least) <= TIE)
        possible = np.where(best.any(axis=1, keepdims=True), best, possible)
    return np.where(switching, possible.argmax(axis=1), today)


def as_file(table: pa.Table, ending: str) -> bytes:
    """Return a table as CSV or Parquet."""
    sink = pa.BufferOutputStream()
    _WRITERS[ending](table, sink)
    return bytes(sink.getvalue().to_pybytes())


def check_ending(path: Path) -> None:
    """Check the name of a file for advice.

    Raises:
        InputError: if it does not end with .csv or .parquet.
    """
    if path.suffix not in _WRITERS:
        raise InputError("--advice", str(path), "a file that ends with .csv or .parquet")


def advice_table(scored: Scored, advice: Advice) -> pa.Table:
    """Return the advice as a table, a row per subject.

    The columns that the scores have from the workload follow its name, if they have one value for each. The
    repaired rows of its scenarios are summed.
    """
    subjects = advice.subjects
    names = np.array(scored.strategies, dtype=object)
    columns: dict[str, Any] = {subjects.column: subjects.names}
    if not subjects.are_scenarios:
        columns["scenarios"] = np.bincount(subjects.numbers, minlength=len(subjects.names))
        columns["agree"] = pa.array(advice.agree, from_pandas=True)
    columns |= _carried(scored, subjects)
    columns |= {
        "today": [advice.baseline] * len(subjects.names),
        "strategy": names[advice.chosen].tolist(),
        "reason": advice.reasons,
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
