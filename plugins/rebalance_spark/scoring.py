"""Scores of strategies on every scenario of a workload, as a DataFrame."""

from collections.abc import Sequence
from functools import partial, reduce
from operator import add
from typing import TYPE_CHECKING, Any, NamedTuple

from coordinator_core.errors import InputError
from coordinator_core.reading.checks import whole
from coordinator_core.reading.suggestions import one_of
from coordinator_core.registry.registry import Registry
from rebalance_lab.scenarios.fields import LAST_SEED
from rebalance_lab.scenarios.variants import expanded, variants
from rebalance_lab.simulation.planning.counting import counting
from rebalance_lab.simulation.planning.planned_run import check_planned
from rebalance_spark.choices import DEFAULT_TIMEOUT, Fidelity
from rebalance_spark.identity import identified
from rebalance_spark.rows import ALL, Job, registry_with
from rebalance_spark.schema import RESERVED, arrow_schema, carried_schema, score_columns, spark_schema
from rebalance_spark.sizes import estimated_cost, with_sizes
from rebalance_spark.sweeps import label_of, parted
from rebalance_spark.worker import COST, UNIT_COLUMNS, ReportDone, score_batches

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame
    from pyspark.sql.types import StructType

TASK_MS = 5_000
"""The estimated cost of a task. Starting a task costs about 50 ms."""

FEWEST_TASKS = 8
MOST_TASKS = 2_000

_LARGE_SHARE = 0.25
"""A row that costs at least this share of a task becomes a task of its own."""


def score(
    workloads: "DataFrame",
    strategies: Sequence[str],
    *,
    fidelity: str = Fidelity.PROTOCOL,
    timeout: float = DEFAULT_TIMEOUT,
    seed: int | None = None,
    plugins: Sequence[str] = (),
    settings: Sequence[str] = (),
    metrics: Sequence[str] = (),
    start: str = "",
    tasks: int | None = None,
) -> "DataFrame":
    """Return the scores: a row per scenario and strategy, with the columns of `schema.score_columns`.

    `workloads` has the columns ``scenario_id`` and ``scenario`` and may have ``members``, ``partitions`` and
    ``events``. `fidelity`: ``protocol`` simulates every message, ``plan`` computes the assignments only.
    `timeout`: seconds for one scenario under one strategy (0: no limit). `seed`: replaces the seeds of the
    scenarios. `plugins`: modules to register that are not installed as plugins but can be imported by the
    workers. `settings`: texts ``NAME=VALUE,VALUE``; every strategy is scored with every combination of the
    values in place of those of the scenarios. `metrics`: those to compute, by default all. `start`: an
    assignor; running groups start with the assignment that it gives to them, in place of their owners, and
    other groups as they do without it. `tasks`: the number of tasks for small rows; by default the estimated
    cost determines it. All other columns are carried through to the scores, after the metrics.

    Every row gets its scores, with a status. The result is lazy, except for a small aggregation that
    estimates the cost of the tasks.

    Raises:
        InputError: if a strategy is unknown, or if a column or an option is missing or invalid.
    """
    job = checked_job(strategies, fidelity, timeout, seed, plugins, settings, metrics, start)
    return scored(units(workloads), job, tasks=tasks)


def checked_job(
    strategies: Sequence[str],
    fidelity: str,
    timeout: float,
    seed: int | None,
    plugins: Sequence[str],
    settings: Sequence[str] = (),
    metrics: Sequence[str] = (),
    start: str = "",
) -> Job:
    """Return the job for every scenario.

    Raises:
        InputError: if a strategy, a metric or the assignor of the start is unknown, or has no plan at the
            fidelity ``plan``, or if an option is invalid.
    """
    names = [known.value for known in Fidelity]
    if fidelity not in names:
        raise InputError("fidelity", repr(fidelity), one_of(fidelity, names))
    if isinstance(strategies, str) or not strategies:
        raise InputError("strategies", repr(strategies), "a list of at least one strategy")
    if not timeout >= 0:
        raise InputError("timeout", f"{timeout}", "seconds, 0 for ever")
    if seed is not None:
        whole(seed, "seed", low=0, high=LAST_SEED)
    registry = registry_with(plugins)
    names = _labels(strategies, settings, registry)
    if fidelity == Fidelity.PLAN.value:
        for name in names:
            check_planned(registry.strategy(parted(name)[0]), registry)
    planned = fidelity == Fidelity.PLAN.value
    known = [name for name, metric in registry.metrics().items() if metric.planned or not planned]
    for name in metrics:
        if name not in known:
            raise InputError("metrics", repr(name), one_of(name, known))
    if start:
        registry.assignor(start)
    job = Job(
        tuple(names), Fidelity(fidelity), timeout, seed, tuple(plugins), metrics=tuple(metrics), start=start
    )
    return identified(job)


def _labels(strategies: Sequence[str], settings: Sequence[str], registry: Registry) -> list[str]:
    """Return the names of all strategies of a sweep. A strategy may have settings in its name already."""
    named = [parted(name) for name in expanded(strategies)]
    plain = [text for text, own in named if not own]
    found = variants(plain, settings, {}, registry) if plain else []
    for text, own in named:
        if own:
            found += variants([text], [*own, *settings], {}, registry)
    return list(dict.fromkeys(label_of(variant) for variant in found))


def units(workloads: "DataFrame") -> "DataFrame":
    """Return each row with its size and with ``which``, which selects all strategies.

    Raises:
        InputError: if a column is missing.
    """
    from pyspark.sql import functions as sf

    for name in UNIT_COLUMNS[:2]:
        if name not in workloads.columns:
            found = f"the columns {', '.join(workloads.columns)}"
            raise InputError("workload", found, f"{name!r} among them")
    _check_names(workloads.columns, RESERVED)
    return with_sizes(workloads).withColumn("which", sf.lit(ALL))


def scored(
    units: "DataFrame", job: Job, *, tasks: int | None = None, done: ReportDone | None = None
) -> "DataFrame":
    """Return the scores of units, each under the strategies that its ``which`` selects."""
    schema = scored_schema(units, job)
    columns = score_columns(registry_with(job.plugins))
    score_rows = partial(score_batches, job=job, schema=arrow_schema(columns), done=done)
    return spread(units, job, tasks).mapInArrow(score_rows, schema)


def scored_schema(units: "DataFrame", job: Job) -> "StructType":
    """Return the columns of the scores of units.

    Raises:
        InputError: if a column of the workload has the name of a column of scores.
    """
    columns = score_columns(registry_with(job.plugins))
    carried = [field for field in units.schema if field.name not in UNIT_COLUMNS]
    _check_names([field.name for field in carried], [column.name for column in columns])
    schema = spark_schema(columns)
    for field in carried_schema(carried):
        schema.add(field)
    return schema


def _check_names(carried: Sequence[str], own: Sequence[str]) -> None:
    """Check that a column of a workload has no name that a column of scores, or a folder of them, has."""
    taken = {name.lower() for name in own}
    for name in carried:
        if name.lower() in taken:
            raise InputError("workload", f"a column {name!r}", "another name: scores have such a column")


class _Load(NamedTuple):
    """The total cost, the cost from which on a row is large, and the number of large rows."""

    total: float
    large_from: float
    large: int


def cost_of(job: Job) -> "Column":
    """Return the approximate cost of a unit under the strategies that it selects, in milliseconds."""
    from pyspark.sql import functions as sf

    registry = registry_with(job.plugins)
    strategies = [registry.strategy(parted(name)[0]) for name in job.strategies]
    costs = [
        estimated_cost(job.fidelity, each.assignor, counts=counting(each, registry) is not None)
        for each in strategies
    ]
    which = sf.col("which")
    return sf.when(which == ALL, reduce(add, costs)).otherwise(sf.get(sf.array(*costs), which))


def spread(units: "DataFrame", job: Job, tasks: int | None = None) -> "DataFrame":
    """Return the units in tasks that keep all cores busy to the end, with their estimated cost as `COST`.

    The costs of rows differ by a factor of a thousand. A large row becomes a task per strategy, and the
    largest come first. The tasks of small rows follow; a hash of the id selects the task.
    """
    from pyspark.sql import Window
    from pyspark.sql import functions as sf

    strategies = len(job.strategies)
    sized = units.withColumn(COST, cost_of(job))
    histogram = _histogram(sized)
    count = tasks or _tasks(histogram)
    load = _load(histogram, count)
    id_hash = sf.xxhash64("scenario_id", "which")
    small = sized.where(sf.col(COST) < load.large_from)
    placed = small.withColumn(
        "_task", (sf.pmod(id_hash, sf.lit(count)) + load.large * strategies).cast("int")
    )
    columns = [sf.col(f"`{name}`") for name in sized.columns]
    if not load.large:
        return _in_tasks(placed, count).select(*columns)
    numbers: Column = sf.when(sf.col("which") == ALL, sf.sequence(sf.lit(0), sf.lit(strategies - 1)))
    numbers = numbers.otherwise(sf.array("which"))
    large = sized.where(sf.col(COST) >= load.large_from).withColumn("which", sf.explode(numbers))
    large = large.withColumn(COST, cost_of(job))
    order = Window.orderBy(sf.desc(COST), "scenario_id", "which")
    large = large.withColumn("_task", sf.row_number().over(order) - 1)
    together = large.unionByName(placed)
    return _in_tasks(together, load.large * strategies + count).select(*columns)


def _in_tasks(units: "DataFrame", count: int) -> "DataFrame":
    """Return units in the tasks that ``_task`` numbers. Spark 4.0 spreads these by hashes of the numbers."""
    if hasattr(units, "repartitionById"):
        return units.repartitionById(count, "_task")
    return units.repartition(count, "_task")


def _histogram(sized: "DataFrame") -> list[Any]:
    """Return (power of two, number of rows of at least that cost, their total cost) for each power."""
    from pyspark.sql import functions as sf

    power = sf.floor(sf.log2(COST)).cast("int")
    return sized.groupBy(power.alias("power")).agg(sf.count("*"), sf.sum(COST)).collect()


def _tasks(histogram: list[Any]) -> int:
    """Return the default number of tasks for small rows.

    It depends on the cost alone, because the number of cores may change while the job runs.
    """
    total: float = sum(cost for _, _, cost in histogram)
    return min(MOST_TASKS, max(FEWEST_TASKS, round(total / TASK_MS)))


def _load(histogram: list[Any], tasks: int) -> _Load:
    total = sum(cost for _, _, cost in histogram)
    limit = _LARGE_SHARE * total / tasks
    large = [(power, count) for power, count, _ in histogram if 2.0**power >= limit]
    if not large:
        return _Load(total, float("inf"), 0)
    return _Load(total, 2.0 ** min(power for power, _ in large), sum(count for _, count in large))
