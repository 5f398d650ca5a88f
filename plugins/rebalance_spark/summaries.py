"""Summaries of a data frame of scores, as small data frames.

Each function brings the scores to this process once, with 8 bytes for each figure. ``rebalance-lab report``
reads one metric at a time from the files of more scores than that.
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from rebalance_spark.choices import Status
from rebalance_spark.findings import (
    MOVES,
    Figures,
    Question,
    balance_of,
    found_in,
    front_of,
    known_metrics,
    wins_of,
)
from rebalance_spark.paired import comparable, completed_by_all
from rebalance_spark.report_tables import advice_table
from rebalance_spark.stored import Scored, check_paired, collected_scores

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

_TEXT, _COUNT, _FIGURE = pa.string(), pa.int64(), pa.float64()
_NAMES = {"strategy": _TEXT, "metric": _TEXT}


def summary(scores: "DataFrame") -> "DataFrame":
    """Return a row per strategy and metric: number of rows, mean, p50, p95, p99, the worst, and its scenario.

    The figures are over the scenarios that every strategy completed (but those that completed none), and
    that have a figure under every strategy that has the metric. Percentiles are exact.
    """
    found = found_in(collected_scores(scores), Question(balance=""), pairs=False)
    columns = dict.fromkeys(Figures._fields[:7], _FIGURE) | {"rows": _COUNT, "worst_scenario": _TEXT}
    rows = [(strategy, metric, *each[:7]) for (metric, strategy), each in found.figures.items()]
    return _frame(scores, _NAMES | columns, rows)


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
        for (name, strategy, other), counts in wins_of(scored, metric.name).items()
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
    at = np.linspace(0, 100, points + 1)
    rows: list[Any] = []
    for metric in scored.metrics:
        grid = scored.figures(metric.name)
        known = grid[comparable(grid, common)]
        rows += [
            (strategy, metric.name, np.percentile(values, at).tolist())
            for strategy, values in zip(scored.strategies, known.T, strict=True)
            if len(values) and not np.isnan(values).any()
        ]
    return _frame(scores, {**_NAMES, "values": pa.list_(_FIGURE)}, rows)


def differences(scores: "DataFrame", baseline: str, *, per: str = "") -> "DataFrame":
    """Return a row per other strategy and metric: the mean difference to a strategy in the same scenarios.

    ``low`` and ``high`` are the ends of its 95 % interval (`paired.difference`) over groups, which are those
    of `advice`. They are null if there is one group.
    """
    found = found_in(collected_scores(scores), Question("", baseline, per=per), pairs=False)
    rows = [
        (strategy, metric, each.change.mean, each.change.low, each.change.high)
        for (metric, strategy), each in found.figures.items()
        if each.change is not None
    ]
    return _frame(scores, _NAMES | dict.fromkeys(("mean", "low", "high"), _FIGURE), rows)


def advice(
    scores: "DataFrame", baseline: str, metrics: Sequence[str] | None = None, *, per: str = ""
) -> "DataFrame":
    """Return a row per group with the strategy of today, the advised one, and the changes.

    A group switches to a strategy that is known to be better in at least one of the metrics and as good in
    the others, from six scenarios on (`verdicts.rule`). Of several, it is the one with the best median of the
    first metric, then of the next, and then of the other headline metrics. Figures that differ by at most 1 %
    of the larger one are equal. `metrics` are by default ``stopped_partition_seconds``, if it is measured,
    and the moves and the balance of `pareto`. `per` names the column with the groups. By default they are the
    ids of the scenarios without the keys before them. ``agree`` is the share of the scenarios of a group of
    which each alone has figures that advise the same.

    Raises:
        InputError: if the scores lack the baseline, a metric or the column.
    """
    scored = collected_scores(scores)
    known_metrics(scored, "advice", metrics or ())
    found = found_in(scored, Question(None, baseline, metrics or (), per), everything=False, pairs=False)
    assert found.advice is not None
    made: DataFrame = scores.sparkSession.createDataFrame(advice_table(scored, found.advice))
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
