"""Summaries of scores in plain Spark SQL: by strategy and metric, pair by pair, and moves against balance."""

from typing import TYPE_CHECKING

from coordinator_core.errors import InputError
from coordinator_core.registry.registry import default_registry
from rebalance_spark.choices import Status
from rebalance_spark.schema import SCORE_COLUMNS, is_carried

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

TIE = 1e-9
"""Figures with a smaller relative difference are ties."""


def metric_names(scores: "DataFrame") -> list[str]:
    """Return the names of the metrics of scores, in their order.

    Raises:
        InputError: if the columns are not those of scores.
    """
    own = {column.name for column in SCORE_COLUMNS}
    doubles = [f for f in scores.schema if f.dataType.typeName() == "double" and not is_carried(f)]
    names = [f.name for f in doubles if f.name not in own]
    missing = [name for name in ("scenario_id", "strategy", "status") if name not in scores.columns]
    if missing or not names:
        found = f"the columns {', '.join(scores.columns)}"
        raise InputError("scores", found, "scenario_id, strategy, status and metrics among them")
    return names


def summary(scores: "DataFrame") -> "DataFrame":
    """Return a row per strategy and metric: number of rows, mean, p50, p95, p99, the worst, and its scenario.

    Rows that are not ok, or have no such figure, do not count. Percentiles are exact.
    """
    from pyspark.sql import functions as sf

    names = metric_names(scores)
    long = _long(scores, names)
    higher = [n for n in names if higher_is_better(n)]
    badness = sf.when(sf.col("metric").isin(higher), -sf.col("value")).otherwise(sf.col("value"))
    grouped = long.groupBy("strategy", "metric").agg(
        sf.count("value").alias("rows"),
        sf.avg("value").alias("mean"),
        sf.percentile("value", [0.5, 0.95, 0.99]).alias("percentiles"),
        sf.max_by(sf.struct("value", "scenario_id"), sf.struct(badness, "scenario_id")).alias("worst"),
    )
    return grouped.select(
        "strategy",
        "metric",
        "rows",
        "mean",
        sf.col("percentiles")[0].alias("p50"),
        sf.col("percentiles")[1].alias("p95"),
        sf.col("percentiles")[2].alias("p99"),
        sf.col("worst.value").alias("worst"),
        sf.col("worst.scenario_id").alias("worst_scenario"),
    )


def statuses(scores: "DataFrame") -> "DataFrame":
    """Return a row per strategy with the numbers of scenarios by their status."""
    from pyspark.sql import functions as sf

    counts = [sf.count_if(sf.col("status") == status.value).alias(status.value) for status in Status]
    return scores.groupBy("strategy").agg(*counts)


def wins(scores: "DataFrame") -> "DataFrame":
    """Return a row per metric and ordered pair of strategies: how often the first is better, even, or worse.

    Only scenarios count in which both strategies are ok and have the figure.
    """
    from pyspark.sql import functions as sf

    names = metric_names(scores)
    ok = scores.where(sf.col("status") == Status.OK.value)
    mine = ok.select("scenario_id", "strategy", *(sf.col(n).alias(f"mine_{n}") for n in names))
    other = ok.select(
        "scenario_id", sf.col("strategy").alias("other"), *(sf.col(n).alias(f"other_{n}") for n in names)
    )
    pairs = mine.join(other, "scenario_id").where(sf.col("strategy") != sf.col("other"))
    counted: list[Column] = []
    for name in names:
        difference = sf.col(f"other_{name}") - sf.col(f"mine_{name}")
        gain = -difference if higher_is_better(name) else difference
        even = sf.abs(difference) <= TIE * sf.greatest(sf.abs(f"mine_{name}"), sf.abs(f"other_{name}"))
        counts = [sf.count_if(~even & (gain > 0)), sf.count_if(even), sf.count_if(~even & (gain < 0))]
        columns = [c.alias(alias) for c, alias in zip(counts, ("wins", "ties", "losses"), strict=True)]
        counted.append(sf.struct(sf.lit(name).alias("metric"), *columns))
    grouped = pairs.groupBy("strategy", "other").agg(sf.array(*counted).alias("counts"))
    return grouped.select("strategy", "other", sf.inline("counts"))


def pareto(scores: "DataFrame", moves: str = "moved_partitions", balance: str = "imbalance") -> "DataFrame":
    """Return a row per strategy: the means of two metrics, and whether no other strategy is better in both.

    The means are over the scenarios for which every strategy has both figures; ``scenarios`` is their number.
    Lower values of both metrics are better.
    """
    from pyspark.sql import functions as sf

    known = metric_names(scores)
    for name in (moves, balance):
        if name not in known:
            raise InputError("pareto", repr(name), f"one of {', '.join(known)}")
    found = scores.where(sf.col(moves).isNotNull() & sf.col(balance).isNotNull())
    strategies = scores.agg(sf.count_distinct("strategy").alias("strategies"))
    complete = found.groupBy("scenario_id").agg(sf.count_distinct("strategy").alias("strategies"))
    common = complete.join(sf.broadcast(strategies), "strategies").select("scenario_id")
    means = (
        found.join(common, "scenario_id")
        .groupBy("strategy")
        .agg(sf.count("*").alias("scenarios"), sf.avg(moves).alias(moves), sf.avg(balance).alias(balance))
    )
    other = means.select(
        sf.col("strategy").alias("other"), sf.col(moves).alias("_moves"), sf.col(balance).alias("_balance")
    )
    no_worse = (sf.col("_moves") <= sf.col(moves)) & (sf.col("_balance") <= sf.col(balance))
    better = (sf.col("_moves") < sf.col(moves)) | (sf.col("_balance") < sf.col(balance))
    beaten = means.crossJoin(other).where(no_worse & better).select("strategy").distinct()
    flagged = means.join(beaten.withColumn("beaten", sf.lit(True)), "strategy", "left")
    return flagged.select(
        "strategy", "scenarios", moves, balance, sf.col("beaten").isNull().alias("on_front")
    )


def quantiles(scores: "DataFrame", points: int = 100) -> "DataFrame":
    """Return a row per strategy and metric: the figures at `points` + 1 evenly spaced quantiles."""
    from pyspark.sql import functions as sf

    long = _long(scores, metric_names(scores))
    at = [i / points for i in range(points + 1)]
    return long.groupBy("strategy", "metric").agg(sf.percentile("value", at).alias("values"))


def _long(scores: "DataFrame", names: list[str]) -> "DataFrame":
    """Return a row per scenario, strategy and metric that has a figure."""
    from pyspark.sql import functions as sf

    ok = scores.where(sf.col("status") == Status.OK.value)
    long = ok.unpivot(["scenario_id", "strategy"], [*names], "metric", "value")
    return long.where(sf.col("value").isNotNull())


def higher_is_better(name: str) -> bool:
    """Return whether higher values of a metric are better. They are not if the metric is not installed."""
    spec = default_registry().metrics().get(name)
    return spec is not None and spec.better == "higher"
