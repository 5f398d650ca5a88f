"""The strategy for each group: the one that runs today, or one that is better without being worse."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from coordinator_core.errors import InputError
from rebalance_spark.paired import Difference, difference, gains
from rebalance_spark.stored import Figures2D, Scored

RULE = (
    "A group switches to a strategy that is better in at least one of {metrics} and worse in none of them."
    " Of several, it is the one that is best in {first}, and then in the next. All other groups stay."
)

SWITCH, STAY, UNKNOWN = "switch", "stay", "no figures"
"""Reasons: another strategy is better; none is; the strategy of today has no figures for the group."""


@dataclass(frozen=True, slots=True, eq=False)
class Advice:
    """The number of the advised strategy for each scenario, and whether today's strategy has figures.

    ``metrics`` decide. ``differences`` maps an advised strategy and a metric to the mean change over the
    groups that switch to it.
    """

    baseline: str
    metrics: Sequence[str]
    strategies: Sequence[str]
    chosen: npt.NDArray[np.int64]
    known: npt.NDArray[np.bool_]
    differences: Mapping[tuple[str, str], Difference]

    @property
    def switches(self) -> list[tuple[str, int]]:
        """The strategies to switch to, with the number of groups, the most first."""
        counts = np.bincount(self.chosen, minlength=len(self.strategies))
        found = [(name, int(count)) for name, count in zip(self.strategies, counts, strict=True) if count]
        return sorted((f for f in found if f[0] != self.baseline), key=lambda each: -each[1])

    @property
    def rule(self) -> str:
        """The rule in words."""
        return RULE.format(metrics=" and ".join(self.metrics), first=self.metrics[0])


def advise(
    scored: Scored,
    baseline: str,
    figures: Mapping[str, Figures2D],
    deciding: Sequence[str],
    higher: Mapping[str, bool],
) -> Advice:
    """Return the advice for scores. ``figures`` has the deciding metrics, and others whose change is shown.

    Raises:
        InputError: if the baseline has no scores.
    """
    if baseline not in scored.strategies:
        raise InputError("--baseline", repr(baseline), f"one of {', '.join(scored.strategies)}")
    today = scored.strategies.index(baseline)
    known = np.ones(len(scored.scenarios), dtype=np.bool_)
    better = np.zeros(scored.status.shape, dtype=np.bool_)
    possible = np.ones_like(better)
    for metric in deciding:
        grid = figures[metric]
        known &= ~np.isnan(grid[:, today])
        gain = gains(grid[:, [today]], grid, higher[metric])
        better |= gain > 0
        possible &= gain >= 0
    possible &= better & known[:, None]
    for metric in deciding:
        values = np.where(possible, -figures[metric] if higher[metric] else figures[metric], np.inf)
        least = values.min(axis=1, keepdims=True)
        with np.errstate(invalid="ignore"):
            possible &= gains(least, values, higher=False) >= 0
    chosen = np.where(possible.any(axis=1), possible.argmax(axis=1), today)
    differences = {}
    for number, name in enumerate(scored.strategies):
        switched = chosen == number
        if number != today and switched.any():
            for metric, grid in figures.items():
                change = grid[switched, number] - grid[switched, today]
                differences[name, metric] = difference(change[~np.isnan(change)])
    return Advice(baseline, list(deciding), scored.strategies, chosen, known, differences)


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


def advice_table(scored: Scored, advice: Advice, figures: Mapping[str, Figures2D]) -> pa.Table:
    """Return the advice as a table, with the columns that the scores have from the workload."""
    today = scored.strategies.index(advice.baseline)
    names = np.array(scored.strategies, dtype=object)
    reason = np.where(advice.chosen != today, SWITCH, np.where(advice.known, STAY, UNKNOWN))
    columns: dict[str, Any] = {"scenario_id": scored.scenarios}
    columns |= {name: scored.values(name) for name in scored.others}
    columns |= {
        "today": [advice.baseline] * len(scored.scenarios),
        "strategy": names[advice.chosen].tolist(),
        "reason": reason.tolist(),
    }
    rows = np.arange(len(scored.scenarios))
    for metric in advice.metrics:
        grid = figures[metric]
        change = grid[rows, advice.chosen] - grid[:, today]
        columns[f"{metric}_change"] = pa.array(change, from_pandas=True)
    return pa.table(columns)
