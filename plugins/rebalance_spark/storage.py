"""Scores in a folder of Parquet files or in a table of the catalog. Another run adds the missing ones.

A score is known by the scenario's id and text, and by the hash of what was computed for it (see `identity`).
Each run writes its rows in parts, below ``run=ID/part=N`` of a folder. A part that is interrupted may leave
some of its files: they are whole, and the next run computes what is not in them.
"""

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from functools import reduce
from operator import or_
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.dataset as ds

from coordinator_core.errors import InputError
from rebalance_lab.scoring.rows import Job
from rebalance_spark.files import StoredPath, locked
from rebalance_spark.identity import scenario_hash_column
from rebalance_spark.schema import RESERVED, SCORE_COLUMNS
from rebalance_spark.scoring import ScoreOptions, checked_job, cost_of, scored, scored_schema, units
from rebalance_spark.sessions import check_pyspark, context_of, cores, described, files_named, has_table

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, SparkSession
    from pyspark.sql.types import StructType

PART_MS = 30_000
"""The estimated time of a part on all cores, in milliseconds: an interruption loses about so much."""

MOST_PARTS = 2_000
REPAIRS = "repairs"
"""A column of workloads that are made of tables."""

TASK_MS = 2_000
"""The estimated cost of a task in milliseconds of a core. Starting a task costs about 50 ms."""

WHOLE = "whole files of scores: remove this one, and score computes its rows again"
_DIFFERENT = "a different one in each row (keys name the columns that tell rows apart)"
_OUTCOME = ("strategy", "status", "error")
_ROW = ("scenario_id", "scenario_hash", "strategy")


@dataclass
class Progress:
    """The scenarios of a workload, the rows of a run, those that it has written, and those of earlier runs.

    Rows are in parts, and those of a part are written when all of them are computed.
    """

    scenarios: int = 0
    rows: int = 0
    written: int = 0
    before: int = 0
    parts: int = 0
    done: int = 0

    def after(self, reason: str) -> str:
        """Return a sentence on what a run that ends before its time has kept."""
        if not self.written:
            return f"{reason}; this run has written no rows; those of earlier runs are kept"
        kept = f"{self.written:,} of the {self.rows:,} rows of this run are written and kept"
        return f"{reason}; {kept}; the same command computes the other {self.rows - self.written:,}"


def write_scores(
    workload: "DataFrame",
    strategies: Sequence[str] | Job,
    out: str = "",
    *,
    table: str = "",
    retry: Collection[str] = (),
    progress: Progress | None = None,
    report: Callable[[Progress], None] = lambda _: None,
    **options: Any,
) -> Progress:
    """Compute the scores that are not in the folder `out`, or in a table, and add them to it.

    `retry`: compute rows with these statuses (``error``, ``timeout``) again. `report` is called with the
    `progress` before the first row and after each part. `options`: as for `scoring.score`. Errors of Spark
    are raised as they are; parts that are written stay.

    Raises:
        InputError: if a strategy, column or option is wrong, if an id is missing or appears twice, if the
            place has something else than scores of this fidelity, seed and start, or if another run writes to
            it.
    """
    check_pyspark()
    from pyspark import StorageLevel
    from pyspark.sql import functions as sf

    job = strategies if isinstance(strategies, Job) else checked_job(ScoreOptions(strategies, **options))
    progress, spark, every = progress or Progress(), workload.sparkSession, units(workload, job)
    if table:
        _make_table(spark, table, scored_schema(every, job))
    with locked(spark, _location(spark, table) if table else out, job.run_id):
        with described(spark, "look for missing scores"):
            before = stored_scores(spark, out, table=table)
            if before is not None:
                _check_same(before, every, job, out or table)
            missing = every if before is None else _missing(every, before, job, retry)
            if REPAIRS in workload.columns:  # a table, of which Python makes the scenarios: once
                missing = missing.persist(StorageLevel.DISK_ONLY)
            cost_ms = _count(missing, job, progress)
        report(progress)
        progress.parts = min(MOST_PARTS, max(1, round(cost_ms / cores(spark) / PART_MS)))
        tasks = max(cores(spark), round(cost_ms / progress.parts / TASK_MS))
        for number in range(progress.parts if progress.rows else 0):
            part = missing.where(_part(progress.parts) == number) if progress.parts > 1 else missing
            title = f"score {', '.join(job.strategies)}, part {number + 1} of {progress.parts}"
            with described(spark, title):
                scores = scored(part.where(sf.size("which") > 0), job, tasks=tasks)
                progress.written += _append(scores, out, table, job.run_id, number)
            progress.done += 1
            report(progress)
        missing.unpersist()
    return progress


def read_scores(spark: "SparkSession", out: str = "", *, table: str = "") -> "DataFrame":
    """Return the scores in a folder or a table: of each scenario and strategy the row of the last run.

    Raises:
        InputError: if there are none, or if a file cannot be read.
    """
    from pyspark.sql import Window
    from pyspark.sql import functions as sf

    check_pyspark()
    found = stored_scores(spark, out, table=table)
    if found is None:
        raise InputError(out or table, "no scores", "a folder or a table that `rebalance-lab score` wrote")
    runs = Window.partitionBy(*_ROW).orderBy(sf.desc("run_id"))
    return found.withColumn("_age", sf.row_number().over(runs)).where("_age = 1").drop("_age")


def outcomes(spark: "SparkSession", out: str = "", *, table: str = "") -> list[dict[str, Any]]:
    """Return each ``strategy``, ``status`` and ``error`` with the number of scores and the first scenario.

    These are ``scenario_id_count`` and ``scenario_id_min``. A folder of this machine is read without a job.

    Raises:
        InputError: if a file cannot be read.
    """
    from pyspark.sql import functions as sf

    local = None if table or context_of(spark) is None else StoredPath(spark, out).local()
    rows = None if local is None else local_scores(local, [*_ROW, "status", "error", "run_id"])
    if rows is None:
        scores = read_scores(spark, out, table=table).groupBy(*_OUTCOME)
        figures = {"count": sf.count("scenario_id"), "min": sf.min("scenario_id")}
        counted = scores.agg(*(column.alias(f"scenario_id_{name}") for name, column in figures.items()))
        return list(counted.toArrow().to_pylist())
    last = rows.group_by(list(_ROW)).aggregate([("run_id", "max")])
    rows = rows.join(last, [*_ROW, "run_id"], [*_ROW, "run_id_max"], join_type="left semi")
    counted = rows.group_by(list(_OUTCOME)).aggregate([("scenario_id", "count"), ("scenario_id", "min")])
    return list(counted.to_pylist())


def local_scores(folder: Path, columns: Sequence[str] | None = None) -> pa.Table | None:
    """Return the scores in a folder of this machine, all columns or some, or None if it has no files.

    Raises:
        InputError: if a file cannot be read, or has no scores.
    """
    files = [str(path) for path in sorted(folder.rglob("*.parquet")) if not path.name.startswith(("_", "."))]
    if not files:
        return None
    parts = []
    for name in files:
        try:
            parts.append(ds.dataset(name, format="parquet", partitioning=None).to_table(columns))
        except (pa.ArrowException, OSError) as error:
            found = f"a file that cannot be read ({' '.join(str(error).split())})"
            raise InputError(name, found, WHOLE) from None
    table = pa.concat_tables(parts, promote_options="default")
    if not {"scenario_id", "strategy", "status"} <= set(table.column_names):
        raise InputError(str(folder), f"the columns {', '.join(table.column_names)}", "scores")
    return table


def stored_scores(spark: "SparkSession", out: str, *, table: str = "") -> "DataFrame | None":
    """Return all rows in a folder or a table, or None if there are none.

    Raises:
        InputError: if there is something else, or if a file cannot be read.
    """
    found = (
        _stored_files(spark, out) if not table else spark.table(table) if has_table(spark, table) else None
    )
    needed = {column.name for column in SCORE_COLUMNS if not column.nullable}
    if found is not None and not needed <= set(found.columns):
        raise InputError(out or table, f"the columns {', '.join(found.columns)}", "scores, or nothing")
    return found


def _stored_files(spark: "SparkSession", out: str) -> "DataFrame | None":
    from pyspark.errors import AnalysisException

    if context_of(spark) is not None:
        folder = StoredPath(spark, out)
        if not folder.is_folder() or all(name.startswith(("_", ".")) for name in folder.names()):
            return None
    try:
        with files_named(WHOLE):
            found = spark.read.option("mergeSchema", "true").parquet(out)
            return found.drop(*(name for name in RESERVED if name in found.columns))
    except AnalysisException:
        return None


def _missing(every: "DataFrame", before: "DataFrame", job: Job, retry: Collection[str]) -> "DataFrame":
    """Return units whose ``which`` has the strategies of which a place has no score."""
    from pyspark.sql import functions as sf

    key = ["scenario_id", "scenario_hash"]
    kept = before.where(~sf.col("status").isin([*retry]))
    done = kept.groupBy(key).agg(sf.collect_set("job_hash").alias("_done"))
    joined = every.withColumn("scenario_hash", scenario_hash_column()).join(done, key, "left")
    hashes = zip(job.hashes, job.whole, strict=True)
    are_done = (sf.arrays_overlap("_done", sf.array(*map(sf.lit, each))) for each in hashes)
    numbers = (
        sf.when(~sf.coalesce(is_done, sf.lit(False)), number) for number, is_done in enumerate(are_done)
    )
    return joined.withColumn("which", sf.array_compact(sf.array(*numbers))).drop("_done", "scenario_hash")


def _count(missing: "DataFrame", job: Job, progress: Progress) -> float:
    """Count scenarios and rows, and return the estimated cost in milliseconds: one job.

    Raises:
        InputError: if an id is missing or appears twice.
    """
    from pyspark.sql import functions as sf

    rows, cost = sf.sum(sf.size("which")), sf.sum(cost_of(job))
    ids = missing.groupBy("scenario_id").agg(
        sf.count("*").alias("times"), rows.alias("rows"), cost.alias("cost")
    )
    repeated = sf.when(sf.col("times") > 1, sf.struct("scenario_id", "times"))
    unnamed = sf.count_if(sf.col("scenario_id") == "")
    row: Any = ids.agg(sf.count("*"), sf.min(repeated), unnamed, sf.sum("rows"), sf.sum("cost")).first()
    progress.scenarios, repeated_id, unnamed_ids, rows_missing, cost_ms = row
    if not progress.scenarios:
        raise InputError("workload", "no scenarios", "at least one")
    if unnamed_ids:
        raise InputError("workload", "a row without scenario_id", "one in each row")
    if repeated_id is not None:
        raise InputError("workload", f"scenario_id {repeated_id[0]!r} {repeated_id[1]} times", _DIFFERENT)
    progress.rows = rows_missing or 0
    progress.before = progress.scenarios * len(job.strategies) - progress.rows
    return cost_ms or 0.0


def _part(parts: int) -> "Column":
    """Return the number of the part of a unit."""
    from pyspark.sql import functions as sf

    return sf.pmod(sf.xxhash64("scenario_id"), sf.lit(parts))


def _append(scores: "DataFrame", out: str, table: str, run_id: str, part: int) -> int:
    """Write a part, and return the number of its rows."""
    from pyspark.sql import Observation
    from pyspark.sql import functions as sf

    written = Observation()
    scores = scores.observe(written, sf.count(sf.lit(1)).alias("rows"))
    if not table:
        scores.write.parquet(f"{out.rstrip('/')}/run={run_id}/part={part}")
    else:
        own, wanted = set(scores.columns), scores.sparkSession.table(table).schema
        columns = (
            sf.col(f"`{f.name}`") if f.name in own else sf.lit(None).cast(f.dataType).alias(f.name)
            for f in wanted
        )
        scores.select(*columns).write.mode("append").saveAsTable(table)
    return int(written.get["rows"])


def _make_table(spark: "SparkSession", table: str, schema: "StructType") -> None:
    """Create a table for scores, if it does not exist.

    Raises:
        InputError: if it has not all columns.
    """
    if not has_table(spark, table):
        spark.createDataFrame([], schema).write.saveAsTable(table)
    missing = sorted(set(schema.fieldNames()) - set(spark.table(table).columns))
    if missing:
        raise InputError(table, f"a table without {', '.join(missing)}", "these columns, or a new table")


def _location(spark: "SparkSession", table: str) -> str:
    """Return the folder in which a table is kept, or an empty text if its catalog names none."""
    rows: list[Any] = spark.sql(f"DESCRIBE TABLE EXTENDED {table}").collect()
    return next((row["data_type"] for row in rows if row["col_name"] == "Location"), "")


def _check_same(before: "DataFrame", every: "DataFrame", job: Job, where: str) -> None:
    """Check that a place has scores of this fidelity, start and seed, and columns of these types.

    Raises:
        InputError: if it has not.
    """
    from pyspark.sql import functions as sf

    there = {field.name: field.dataType for field in before.schema.fields}
    for field in every.schema.fields:
        if (kind := there.get(field.name, field.dataType)) != field.dataType:
            found = f"scores in which {field.name!r} is {kind.simpleString()}"
            raise InputError(where, found, f"{field.dataType.simpleString()}, or another place")
    start = sf.col("start_assignor") if "start_assignor" in there else sf.lit(None).cast("string")
    wanted: dict[str, Any] = {"fidelity": job.fidelity.value, "start": job.start}
    columns = {"fidelity": sf.col("fidelity"), "start": sf.coalesce(start, sf.lit(""))}
    if job.seed is not None:
        wanted["seed"] = job.seed
        columns["seed"] = sf.col("seed") - sf.crc32("scenario_id")  # the other way of `documents.seed_of`
    is_other = reduce(or_, (columns[name] != value for name, value in wanted.items()))
    other: Any = before.where(is_other).select(*(columns[name].alias(name) for name in wanted)).first()
    for name, value in wanted.items() if other is not None else ():
        if other[name] != value:
            found, expected = (f"{name} {v!r}" if v != "" else f"no {name}" for v in (other[name], value))
            found = "other seeds" if name == "seed" else found
            raise InputError(where, f"scores with {found}", f"those with {expected}, or another folder")
