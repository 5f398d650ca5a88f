"""Summaries of a data frame of scores, as small data frames.

Each function brings the scores to this process once, with 8 bytes for each figure. ``rebalance-lab report``
reads one metric at a time from the files of more scores than that.
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from rebalance_spark import findings
from rebalance_spark.advising import advice_table, advise
from rebalance_spark.choices import Status
from rebalance_spark.findings import (
    MOVES,
    Question,
    balance_of,
    counts_beside,
    deciding_of,
    found_in,
    front_of,
    headlines_of,
    higher_is_better,
    known_metrics,
)
from rebalance_spark.paired import comparable, completed_by_all
from rebalance_spark.parts import subjects_of
from rebalance_spark.stored import Scored, check_paired, collected_scores

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

_TEXT, _COUNT, _FIGURE = pa.string(), pa.int64(), pa.float64()
_SUMMARY = {
    "strategy": _TEXT,
    "metric": _TEXT,
    "rows": _COUNT,
    "mean": _FIGURE,
    "p50": _FIGURE,
    "p95": _FIGURE,
    "p99": _FIGURE,
    "worst": _FIGURE,
    "worst_scenario": _TEXT,
}


def summary(scores: "DataFrame") -> "DataFrame":
    """Return a row per strategy and metric: number of rows, mean, p50, p95, p99, the worst, and its scenario.

    The figures are over the scenarios that every strategy completed (but those that completed none), and
    that have a figure under every strategy that has the metric. Percentiles are exact.
    """
    found = found_in(collected_scores(scores), Question(balance=""), plots=False)
    rows = [
        (strategy, metric, f.rows, f.mean, f.p50, f.p95, f.p99, f.worst, f.worst_scenario)
        for (metric, strategy), f in found.figures.items()
    ]
    return _frame(scores, _SUMMARY, rows)


def statuses(scores: "DataFrame") -> "DataFrame":
    """Return a row per strategy with the numbers of scenarios by their status. It is lazy."""
    from pyspark.sql import functions as sf

    counts = [sf.count_if(sf.col("status") == status.value).alias(status.value) for status in Status]
    return scores.groupBy("strategy").agg(*counts)


def wins(scores: "DataFrame") -> "DataFrame":
    """Return a row per metric and ordered pair of strategies: how often the first is better, even, or worse.

    Only scenarios count in which both strategies are ok and have the figure.
    """
    scored = _checked(scores)
    columns = {"strategy": _TEXT, "other": _TEXT, "metric": _TEXT}
    columns |= {"wins": _COUNT, "ties": _COUNT, "losses": _COUNT}
    rows = [
        (strategy, other, name, *counts)
        for metric in scored.metrics
        for (name, strategy, other), counts in findings.wins_of(scored, metric.name).items()
    ]
    return _frame(scores, columns, rows)


def pareto(scores: "DataFrame", moves: str = MOVES, balance: str | None = None) -> "DataFrame":
    """Return a row per strategy: the means of two metrics, and whether no other strategy is better in both.

    The means are over the scenarios of `summary` that have both figures; ``scenarios`` is their number. A
    strategy without figures is left out. Lower values of both metrics are better. `balance` is by default
    ``weighted_imbalance`` if the scores have it, that is if the groups have rates, else ``imbalance``.
    """
    scored = _checked(scores)
    balance = balance_of(scored) if balance is None else balance
    known_metrics(scored, "pareto", (moves, balance))
    count, points = front_of(scored, moves, balance)
    columns = {
        "strategy": _TEXT,
        "scenarios": _COUNT,
        moves: _FIGURE,
        balance: _FIGURE,
        "on_front": pa.bool_(),
    }
    return _frame(scores, columns, [(p.strategy, count, p.moves, p.balance, p.on_front) for p in points])


def quantiles(scores: "DataFrame", points: int = 100) -> "DataFrame":
    """Return a row per strategy and metric: the figures at `points` + 1 evenly spaced quantiles."""
    scored = _checked(scores)
    common = completed_by_all(scored)
    rows: list[Any] = []
    for metric in scored.metrics:
        grid = scored.figures(metric.name)
        curves = findings.curves_of(scored, metric.name, grid[comparable(grid, common)], points)
        rows += [(strategy, name, values) for (name, strategy), values in curves.items()]
    return _frame(scores, {"strategy": _TEXT, "metric": _TEXT, "values": pa.list_(_FIGURE)}, rows)


def differences(scores: "DataFrame", baseline: str, *, per: str = "") -> "DataFrame":
    """Return a row per other strategy and metric: the mean difference to a strategy in the same scenarios.

    ``low`` and ``high`` are the ends of its 95 % interval (`paired.difference`) over groups, which are those
    of `advice`. They are null if there is one group.
    """
    question = Question(balance="", baseline=baseline, per=per)
    found = found_in(collected_scores(scores), question, plots=False)
    columns = {"strategy": _TEXT, "metric": _TEXT, "mean": _FIGURE, "low": _FIGURE, "high": _FIGURE}
    rows = [
        (strategy, metric, change.mean, change.low, change.high)
        for (metric, strategy), change in found.differences.items()
    ]
    return _frame(scores, columns, rows)


def advice(
    scores: "DataFrame", baseline: str, metrics: Sequence[str] | None = None, *, per: str = ""
) -> "DataFrame":
    """Return a row per group with the strategy of today, the advised one, and the changes.

    A group switches to a strategy that is better in at least one of the metrics and worse in none, in the
    mean over its scenarios. Of several, it is the one that is best in the first metric, then in the next, and
    then in the other headline metrics. Figures that differ by at most 1 % of the larger one are equal.
    `metrics` are by default ``stopped_partition_seconds``, if it is measured, and the moves and the balance
    of `pareto`. `per` names the column with the groups. By default they are the ids of the scenarios without
    the keys before them. ``agree`` is the share of the scenarios of a group for which the rule advises the
    same.

    Raises:
        InputError: if the scores lack the baseline, a metric or the column.
    """
    scored = _checked(scores)
    metrics = deciding_of(scored, baseline, balance_of(scored)) if metrics is None else metrics
    names = known_metrics(scored, "advice", metrics)
    figures = {metric: scored.figures(metric) for metric in (*metrics, *headlines_of(names, ""))}
    higher = {metric: higher_is_better(metric) for metric in figures}
    counts = counts_beside(scored, metrics)
    advised = advise(scored, baseline, subjects_of(scored, per), figures, metrics, higher, counts)
    made: DataFrame = scores.sparkSession.createDataFrame(advice_table(scored, advised))
    return made


def _checked(scores: "DataFrame") -> Scored:
    """Return the scores of a data frame.

    Raises:
        InputError: if those of a scenario were made by different versions, fidelities or starts.
    """
    scored = collected_scores(scores)
    check_paired(scored)
    return scored


def _frame(
    scores: "DataFrame", columns: dict[str, pa.DataType], rows: Sequence[Sequence[Any]]
) -> "DataFrame":
    """Return rows as a data frame. NaN is null."""
    cells = list(zip(*rows, strict=True)) if rows else [()] * len(columns)
    arrays = [
        pa.array([None if isinstance(v, float) and np.isnan(v) else v for v in values], kind)
        for values, kind in zip(cells, columns.values(), strict=True)
    ]
    table = pa.Table.from_arrays(arrays, names=list(columns))
    made: DataFrame = scores.sparkSession.createDataFrame(table)
    return made
