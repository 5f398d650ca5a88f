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
from rebalance_spark.groups import REPAIRS
from rebalance_spark.paired import Difference, difference, gains
from rebalance_spark.parts import Subjects
from rebalance_spark.stored import NO_ROW, Figures2D, Scored, encoded

RULE = (
    "A {subject} switches to a strategy that is better in at least one of {metrics} and worse in none of"
    " them{over}. Of several, it is the one that is best in {first}, and then in the next. Of equals, it is"
    " the one that makes fewer of the other metrics worse, in the {subject} and then in all. All other"
    " {subjects} stay."
)

SWITCH, STAY, UNKNOWN = "switch", "stay", "no figures"
"""Reasons: another strategy is better; none is; the strategy of today has no figures for the group."""


@dataclass(frozen=True, slots=True, eq=False)
class Advice:
    """The number of the advised strategy for each subject, and whether today's strategy has figures.

    ``metrics`` decide. ``changes`` maps them to the mean change of each subject, NaN without figures.
    ``differences`` maps an advised strategy and a metric to the mean change over the subjects that switch
    to it.
    """

    baseline: str
    metrics: Sequence[str]
    strategies: Sequence[str]
    subjects: Subjects
    chosen: npt.NDArray[np.int64]
    known: npt.NDArray[np.bool_]
    changes: Mapping[str, npt.NDArray[np.float64]]
    differences: Mapping[tuple[str, str], Difference]

    @property
    def switches(self) -> list[tuple[str, int]]:
        """The strategies to switch to, with the number of subjects, the most first."""
        counts = np.bincount(self.chosen, minlength=len(self.strategies))
        found = [(name, int(count)) for name, count in zip(self.strategies, counts, strict=True) if count]
        return sorted((f for f in found if f[0] != self.baseline), key=lambda each: -each[1])

    @property
    def rule(self) -> str:
        """The rule in words."""
        return RULE.format(
            metrics=" and ".join(self.metrics),
            first=self.metrics[0],
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
) -> Advice:
    """Return the advice for scores. ``figures`` has the deciding metrics, and others whose change is shown.

    Of each subject the scenarios count in which today's strategy has the deciding figures, and only those
    that are scored under all strategies, if there are any. A strategy without figures in one of them is not
    advised.

    Raises:
        InputError: if the baseline has no scores.
    """
    if baseline not in scored.strategies:
        raise InputError("--baseline", repr(baseline), one_of(baseline, scored.strategies))
    today = scored.strategies.index(baseline)
    known = ~np.isnan([figures[metric][:, today] for metric in deciding]).any(axis=0)
    scored_by_all = known & (scored.status != NO_ROW).all(axis=1)
    has_such = np.bincount(subjects.numbers[scored_by_all], minlength=len(subjects.names)) > 0
    rows = np.where(has_such[subjects.numbers], scored_by_all, known)
    means = {m: subjects.means(grid, rows & ~np.isnan(grid[:, today])) for m, grid in figures.items()}
    gain = {m: gains(grid[:, [today]], grid, higher[m]) for m, grid in means.items()}
    better = np.any([gain[metric] > 0 for metric in deciding], axis=0)
    possible = better & np.all([gain[metric] >= 0 for metric in deciding], axis=0)
    for metric in deciding:
        values = np.where(possible, -means[metric] if higher[metric] else means[metric], np.inf)
        least = values.min(axis=1, keepdims=True)
        with np.errstate(invalid="ignore"):
            possible &= gains(least, values, higher=False) >= 0
    others = [gain[metric] for metric in figures if metric not in deciding]
    chosen = np.where(possible.any(axis=1), _least_harm(possible, others), today)
    changes = {m: grid[np.arange(len(grid)), chosen] - grid[:, today] for m, grid in means.items()}
    differences = {}
    for number, name in enumerate(scored.strategies):
        switched = chosen == number
        if number != today and switched.any():
            for metric, change in changes.items():
                differences[name, metric] = difference(change[switched & ~np.isnan(change)])
    return Advice(
        baseline,
        list(deciding),
        scored.strategies,
        subjects,
        chosen,
        np.asarray(~np.isnan(means[deciding[0]][:, today])),
        {metric: changes[metric] for metric in deciding},
        differences,
    )


def _least_harm(possible: npt.NDArray[np.bool_], others: Sequence[Figures2D]) -> npt.NDArray[np.int64]:
    """Return the possible strategy of each subject with the fewest of the other metrics worse.

    ``others`` are the gains in these metrics. Of several strategies, it is the one with fewer metrics worse
    in the sum over all subjects, so that equals have one answer, and then the first.
    """
    worse = np.zeros(possible.shape)
    for gain in others:
        worse += (gain < 0) + (np.nansum(gain, axis=0) < 0) / (len(others) + 1)
    return np.asarray(np.where(possible, worse, np.inf).argmin(axis=1))


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
    today = scored.strategies.index(advice.baseline)
    names = np.array(scored.strategies, dtype=object)
    reason = np.where(advice.chosen != today, SWITCH, np.where(advice.known, STAY, UNKNOWN))
    columns: dict[str, Any] = {subjects.column: subjects.names}
    if not subjects.are_scenarios:
        columns["scenarios"] = np.bincount(subjects.numbers, minlength=len(subjects.names))
    columns |= _carried(scored, subjects)
    columns |= {
        "today": [advice.baseline] * len(subjects.names),
        "strategy": names[advice.chosen].tolist(),
        "reason": reason.tolist(),
    }
    for metric, change in advice.changes.items():
        columns[f"{metric}_change"] = pa.array(change, from_pandas=True)
    return pa.table(columns)


def _carried(scored: Scored, subjects: Subjects) -> dict[str, list[Any]]:
    """Return the sums of repairs, and the columns that are the same in all scenarios of each subject."""
    first = np.unique(subjects.numbers, return_index=True)[1]
    found: dict[str, list[Any]] = {}
    for name in scored.others:
        values = scored.values(name)
        if name == REPAIRS:
            sums = np.bincount(subjects.numbers, [value or 0 for value in values], len(first))
            found[name] = sums.astype(np.int64).tolist()
            continue
        codes = encoded(pa.array([str(value) for value in values], pa.string()))[0]
        if name != subjects.column and np.array_equal(codes, codes[first][subjects.numbers]):
            found[name] = [values[row] for row in first]
    return found
