"""Scores of strategies on every scenario of a workload, as a DataFrame."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial, reduce
from operator import add
from typing import TYPE_CHECKING

from coordinator_core.errors import InputError
from coordinator_core.reading.checks import whole
from coordinator_core.reading.suggestions import one_of
from coordinator_core.registry.registry import Registry
from rebalance_lab.scenarios.fields import LAST_SEED
from rebalance_lab.scenarios.variants import expanded, variants
from rebalance_lab.scoring.labels import label_of, parted
from rebalance_lab.scoring.outcomes import DEFAULT_TIMEOUT, Fidelity
from rebalance_lab.scoring.rows import Job, computed_metrics, registry_with
from rebalance_lab.simulation.planning.counting import counting
from rebalance_lab.simulation.planning.planned_run import check_planned
from rebalance_spark.identity import identified
from rebalance_spark.schema import (
    CARRIED,
    RESERVED,
    SCORE_COLUMNS,
    STRATEGIES,
    arrow_schema,
    score_columns,
    spark_schema,
)
from rebalance_spark.sessions import check_pyspark
from rebalance_spark.sizes import SEARCHING, estimated_cost, with_sizes
from rebalance_spark.worker import UNIT_COLUMNS, score_batches

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame
    from pyspark.sql.types import StructType

LARGE_MS = 1_000.0
"""The estimated cost from which on the strategies of a row are scored apart from one another."""


@dataclass(frozen=True, slots=True)
class ScoreOptions:
    """What is to be computed for every scenario: the arguments of `score`."""

    strategies: Sequence[str]
    fidelity: str = Fidelity.PROTOCOL
    timeout: float = DEFAULT_TIMEOUT
    seed: int | None = None
    plugins: Sequence[str] = ()
    settings: Sequence[str] = ()
    metrics: Sequence[str] = ()
    start: str = ""


def score(
    workload: "DataFrame",
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
    """Return the scores: a row per scenario and strategy. No job runs before an action.

    `workload` has the columns ``scenario_id`` and ``scenario`` and may have ``members``, ``partitions`` and
    ``events``. The columns of scores are ``scenario_id``, all others of the workload but ``scenario``, and
    then those of `schema.score_columns`.

    `fidelity`: ``protocol`` simulates every message, ``plan`` computes the assignments only. `timeout`:
    seconds for one scenario under one strategy (0: no limit). `seed`: replaces the seeds of the scenarios.
    `plugins`: modules to register that are not installed as plugins but can be imported by the workers.
    `settings`: texts ``NAME=VALUE,VALUE``; every strategy is scored with every combination of the values in
    place of those of the scenarios. `metrics`: those to compute, by default all. `start`: an assignor; groups
    that run start with the assignment that it gives to them, in place of their owners. `tasks`: the number of
    tasks, by default ``spark.sql.shuffle.partitions``. The workers receive the source of a strategy
    ``path.py:Name``.

    Raises:
        InputError: if a strategy is unknown, or if a column or an option is missing or invalid.
    """
    check_pyspark()
    options = ScoreOptions(strategies, fidelity, timeout, seed, plugins, settings, metrics, start)
    job = checked_job(options)
    found = scored(units(workload, job), job, tasks=tasks)
    known = {**found.schema["strategy"].metadata, STRATEGIES: list(job.strategies)}
    return found.withMetadata("strategy", known)


def checked_job(options: ScoreOptions) -> Job:
    """Return the job for every scenario.

    Raises:
        InputError: if a strategy, a metric or the assignor of the start is unknown, or has no plan at the
            fidelity ``plan``, or if an option is invalid.
    """
    names, strategies, seed = [known.value for known in Fidelity], options.strategies, options.seed
    if options.fidelity not in names:
        raise InputError("fidelity", repr(options.fidelity), one_of(options.fidelity, names))
    if isinstance(strategies, str) or not strategies:
        raise InputError("strategies", repr(strategies), "a list of at least one strategy")
    if not options.timeout >= 0:
        raise InputError("timeout", f"{options.timeout}", "seconds, 0 for ever")
    if seed is not None:
        whole(seed, "seed", low=0, high=LAST_SEED)
    plugins, fidelity, start = tuple(options.plugins), Fidelity(options.fidelity), options.start
    registry = registry_with(plugins)
    labels = _labels(strategies, options.settings, registry)
    job = Job(tuple(labels), fidelity, options.timeout, seed, plugins, start=start)
    if fidelity is Fidelity.PLAN:
        for label in labels:
            check_planned(registry.strategy(parted(label)[0]), registry)
    known = [metric.name for metric in computed_metrics(job)]
    for name in options.metrics:
        if name not in known:
            raise InputError("metrics", repr(name), one_of(name, known))
    if start:
        registry.assignor(start)
    return identified(replace(job, metrics=tuple(options.metrics)))


def _labels(strategies: Sequence[str], settings: Sequence[str], registry: Registry) -> list[str]:
    """Return the names of all strategies of a sweep. A strategy may have settings in its name already."""
    named = [parted(name) for name in expanded(strategies)]
    plain = [text for text, own in named if not own]
    found = variants(plain, settings, {}, registry) if plain else []
    for text, own in named:
        if own:
            found += variants([text], [*own, *settings], {}, registry)
    return list(dict.fromkeys(label_of(variant) for variant in found))


def units(workload: "DataFrame", job: Job) -> "DataFrame":
    """Return each row with its size and with ``which``: the numbers of all strategies.

    Raises:
        InputError: if a column is missing, or has the name of a column of scores.
    """
    from pyspark.sql import functions as sf

    for name in UNIT_COLUMNS[:2]:
        if name not in workload.columns:
            found = f"the columns {', '.join(workload.columns)}"
            raise InputError("workload", found, f"{name!r} among them")
    own = {column.name for column in SCORE_COLUMNS} - {"scenario_id"}
    taken = {*own, *RESERVED, *registry_with(job.plugins).metrics()}
    for name in workload.columns:
        if name.lower() in taken:
            raise InputError("workload", f"a column {name!r}", "another name: scores have such a column")
    sized = with_sizes(workload)
    names = dict.fromkeys([*UNIT_COLUMNS[:2], *workload.columns, *sized.columns])
    every = sf.array(*(sf.lit(number) for number in range(len(job.strategies))))
    return sized.select(*(sf.col(f"`{name}`") for name in names), every.alias("which"))


def scored(units: "DataFrame", job: Job, *, tasks: int | None = None) -> "DataFrame":
    """Return the scores of units, each under the strategies that its ``which`` selects.

    A hash of the id selects the task. The strategies of a large row are separate units.
    """
    from pyspark.sql import functions as sf

    count = tasks or int(str(units.sparkSession.conf.get("spark.sql.shuffle.partitions")))
    apart = sf.transform("which", lambda number: sf.array(number))
    parts = sf.when(cost_of(job) < LARGE_MS, sf.array("which")).otherwise(apart)
    divided = units.withColumn("which", sf.explode(parts)).repartition(count, "scenario_id", "which")
    columns = score_columns(computed_metrics(job), start=bool(job.start))
    score_rows = partial(score_batches, job=job, schema=arrow_schema(columns))
    return divided.mapInArrow(score_rows, scored_schema(units, job))


def scored_schema(units: "DataFrame", job: Job) -> "StructType":
    """Return the columns of the scores of units. Metadata say which ones are carried, and are no metrics."""
    from pyspark.sql.types import StructField, StructType

    first, *others = spark_schema(score_columns(computed_metrics(job), start=bool(job.start))).fields
    carried = [
        StructField(field.name, field.dataType, True, {**field.metadata, CARRIED: True})
        for field in units.schema.fields
        if field.name not in UNIT_COLUMNS
    ]
    return StructType([first, *carried, *others])


def cost_of(job: Job) -> "Column":
    """Return the approximate cost of a unit under its strategies, in milliseconds of a core."""
    from pyspark.sql import functions as sf

    registry = registry_with(job.plugins)
    strategies = [registry.strategy(parted(name)[0]) for name in job.strategies]
    kinds = [
        (each.assignor if each.assignor in SEARCHING else "", counting(each, registry) is not None)
        for each in strategies
    ]
    costs = (
        estimated_cost(job.fidelity, name, counts=counts) * kinds.count((name, counts))
        for name, counts in dict.fromkeys(kinds)
    )
    return reduce(add, costs) * sf.size("which") / len(strategies)
