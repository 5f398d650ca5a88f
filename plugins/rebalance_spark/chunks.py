"""Scores in a folder or a table, in chunks. After an interruption the next run computes the missing ones.

A score is known by the scenario's id and text, and by the hash of what was computed for it (see `identity`).
"""

from collections.abc import Callable, Collection, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from dataclasses import dataclass, replace
from functools import reduce
from operator import or_
from typing import TYPE_CHECKING, Any, NamedTuple

from coordinator_core.errors import InputError
from rebalance_spark.choices import Status
from rebalance_spark.groups import REPAIRS
from rebalance_spark.identity import scenario_hash_column
from rebalance_spark.places import Place, place_of
from rebalance_spark.rows import ALL, Job
from rebalance_spark.scoring import cost_of, scored, units
from rebalance_spark.sessions import cores
from rebalance_spark.storage import context_of, described

if TYPE_CHECKING:
    from pyspark.accumulators import Accumulator
    from pyspark.sql import Column, DataFrame, SparkSession

CHUNK_MS = 30_000
"""The estimated time of a chunk on all cores, in milliseconds: an interruption loses about so much."""

MOST_CHUNKS = 2_000
MOST_EXAMINED = 1_000
"""The approximate number of scenarios of which the moves at the start are counted: in a second."""

_REPORT_EVERY_SECONDS = 0.2
_TAG = "rebalance-lab-score"
"""The tag of our jobs in a session."""

_DIFFERENT = "a different one in each row (--keys names the columns that tell rows apart)"


@dataclass(frozen=True)
class Todo:
    """The missing scores: units with size and ``which``, the number of rows, and the number of chunks.

    ``scenarios``: those of the whole workload. ``cost_ms``: the estimated cost, in milliseconds of a core.
    """

    units: "DataFrame"
    rows: int
    done_before: int
    chunks: int
    scenarios: int
    cost_ms: float


@dataclass(eq=False)
class Kept:
    """What a run has written so far. ``rows``: of the whole run. ``chunks``: the work on each, and its rows.

    Rows of a chunk are written when all of them are computed. A run that stops before keeps none of them.
    """

    rows: int = 0
    chunks: Sequence[tuple[Future[None], int]] = ()

    @property
    def written(self) -> int:
        """The number of rows in the chunks that are complete."""
        ended = [(job, rows) for job, rows in self.chunks if job.done() and not job.cancelled()]
        return sum(rows for job, rows in ended if job.exception() is None)

    def after(self, reason: str) -> str:
        """Return a sentence on what a run that ends before its time has kept."""
        written, rows = self.written, self.rows
        if not self.chunks:
            return f"{reason}; this run has written no rows; those of earlier runs are kept"
        if not written:
            is_one = len(self.chunks) == 1
            chunks = "its one chunk was" if is_one else f"its {len(self.chunks):,} chunks were"
            kept = f"none of the {rows:,} rows of this run is written, because {chunks} not complete"
            return f"{reason}; {kept}; the same command computes all of them"
        kept = f"{written:,} of the {rows:,} rows of this run are written and kept"
        return f"{reason}; {kept}; the same command computes the other {rows - written:,}"


ReportProgress = Callable[[int, float], None]
"""Called regularly with the number of finished rows, and the share of the estimated cost that is done."""


def todo(workloads: "DataFrame", job: Job, out: str | Place, retry: Collection[Status] = ()) -> Todo:
    """Return the scores of a workload that are missing in a place. Rows with a status of `retry` are, too.

    Raises:
        InputError: if an id is missing or appears twice, or if the place has scores of another fidelity or
            seed, or of a workload with other columns.
    """
    from pyspark import StorageLevel
    from pyspark.sql import functions as sf

    sized = units(workloads)
    if REPAIRS in sized.columns or not set(sized.columns) - {"which"} <= set(workloads.columns):
        sized = sized.persist(StorageLevel.DISK_ONLY)  # otherwise each chunk makes every row again
    scenarios = _check_ids(sized)
    before = place_of(out).read(workloads.sparkSession)
    missing = sized
    if before is not None:
        _check_same(before, job, str(out))
        _check_columns(before, sized, str(out))
        missing = _missing(sized, before, job, retry)
    times = sf.when(sf.col("which") == ALL, len(job.strategies)).otherwise(1)
    row: Any = missing.agg(sf.sum(times), sf.sum(cost_of(job))).first()
    rows, cost = row[0] or 0, row[1] or 0.0
    chunk_ms = CHUNK_MS * cores(workloads.sparkSession)
    chunks = min(MOST_CHUNKS, max(1, round(cost / chunk_ms)))
    return Todo(missing, rows, scenarios * len(job.strategies) - rows, chunks, scenarios, cost)


def last_scores(scores: "DataFrame") -> "DataFrame":
    """Return the row of the last run for each scenario and strategy."""
    from pyspark.sql import Window
    from pyspark.sql import functions as sf

    runs = Window.partitionBy("scenario_id", "scenario_hash", "strategy").orderBy(sf.desc("run_id"))
    return scores.withColumn("_age", sf.row_number().over(runs)).where("_age = 1").drop("_age")


def write_scores(
    todo: Todo, job: Job, out: str | Place, report: ReportProgress, kept: Kept | None = None
) -> None:
    """Compute the missing scores and add them to the place, chunk by chunk. ``kept`` has what is written.

    Errors of Spark are raised as they are. Chunks that are already written are complete and stay.
    """
    kept = Kept() if kept is None else kept
    kept.rows, sizes = todo.rows, _rows_of_chunks(todo, job)
    spark, place = todo.units.sparkSession, place_of(out)
    job = replace(job, examined=min(1.0, MOST_EXAMINED / max(1, todo.scenarios)))
    context = context_of(spark)
    done = None if context is None else _Done(context.accumulator(0), context.accumulator(0.0))
    with ThreadPoolExecutor(place.concurrent) as pool:
        jobs = [pool.submit(_write_chunk, todo, job, place, number, done) for number in range(todo.chunks)]
        kept.chunks = list(zip(jobs, sizes, strict=True))
        try:
            waiting = set(jobs)
            while waiting:
                finished, waiting = wait(waiting, _REPORT_EVERY_SECONDS, FIRST_COMPLETED)
                share = 1 - len(waiting) / todo.chunks
                rows = round(share * todo.rows) if done is None else done.rows.value
                report(rows, share if done is None or not todo.cost_ms else done.cost.value / todo.cost_ms)
                for chunk in finished:
                    chunk.result()
        except BaseException:
            _stop(spark, jobs)
            raise


def _rows_of_chunks(todo: Todo, job: Job) -> list[int]:
    """Return the number of rows of scores in each chunk."""
    from pyspark.sql import functions as sf

    if todo.chunks == 1:
        return [todo.rows]
    times = sf.when(sf.col("which") == ALL, len(job.strategies)).otherwise(1)
    counted: list[Any] = todo.units.groupBy(_chunk(todo).alias("chunk")).agg(sf.sum(times)).collect()
    rows = {row["chunk"]: row[1] for row in counted}
    return [rows.get(number, 0) for number in range(todo.chunks)]


def _chunk(todo: Todo) -> "Column":
    """Return the number of the chunk of a unit."""
    from pyspark.sql import functions as sf

    return sf.pmod(sf.xxhash64("scenario_id"), sf.lit(todo.chunks))


def _stop(spark: "SparkSession", jobs: Sequence[Future[None]]) -> None:
    """Cancel all chunks, repeatedly, because a chunk that is being planned becomes a job only later."""
    context = context_of(spark)
    for job in jobs:
        job.cancel()
    while not all(job.done() for job in jobs):
        if context is None:
            spark.interruptTag(_TAG)
        else:
            context.cancelJobsWithTag(_TAG)  # tags of the session do not reach the jobs of a write
        wait(jobs, _REPORT_EVERY_SECONDS)


class _Done(NamedTuple):
    """What the workers have done: rows, and their estimated cost in milliseconds."""

    rows: "Accumulator[int]"
    cost: "Accumulator[float]"

    def add(self, rows: int, cost: float) -> None:
        """Add finished rows."""
        self.rows.add(rows)
        self.cost.add(cost)


def _write_chunk(todo: Todo, job: Job, place: Place, number: int, done: _Done | None) -> None:

    rows = todo.units
    spark = rows.sparkSession
    context = context_of(spark)
    if context is None:
        spark.addTag(_TAG)
    else:
        context.addJobTag(_TAG)
    if todo.chunks > 1:
        rows = rows.where(_chunk(todo) == number)
    title = f"score {', '.join(job.strategies)}, chunk {number + 1} of {todo.chunks}"
    with described(spark, title):
        place.write(scored(rows, job, done=None if done is None else done.add), job.run_id, number)


def _check_ids(sized: "DataFrame") -> int:
    """Return the number of scenarios, each with an id of its own.

    Raises:
        InputError: if an id is missing or appears twice.
    """
    from pyspark.sql import functions as sf

    counted = sized.groupBy("scenario_id").agg(sf.count("*").alias("times"))
    repeated = sf.when(sf.col("times") > 1, sf.struct("scenario_id", "times"))
    unnamed = sf.count_if(sf.col("scenario_id") == "")
    row: Any = counted.agg(sf.count("*"), sf.min(repeated), unnamed).first()
    if row[2]:
        raise InputError("workload", "a row without scenario_id", "one in each row")
    if row[1] is not None:
        raise InputError("workload", f"scenario_id {row[1][0]!r} {row[1][1]} times", _DIFFERENT)
    return int(row[0])


def _check_columns(before: "DataFrame", sized: "DataFrame", where: str) -> None:
    """Check that columns which are carried to the scores have the types that they have there."""
    there = {field.name: field.dataType for field in before.schema}
    for field in sized.schema:
        kind = there.get(field.name, field.dataType)
        if kind != field.dataType:
            found = f"scores in which {field.name!r} is {kind.simpleString()}"
            raise InputError(where, found, f"{field.dataType.simpleString()}, or another place")


def _check_same(before: "DataFrame", job: Job, out: str) -> None:
    from pyspark.sql import functions as sf

    there = sf.col("start_assignor") if "start_assignor" in before.columns else sf.lit(None).cast("string")
    wanted: dict[str, Any] = {"fidelity": job.fidelity.value, "start": job.start}
    columns = {"fidelity": sf.col("fidelity"), "start": sf.coalesce(there, sf.lit(""))}
    if job.seed is not None:
        base = sf.col("seed") - sf.crc32("scenario_id")  # the other way of `documents.seed_of`
        wanted["seed"], columns["seed"] = job.seed, base
    is_other = reduce(or_, (columns[name] != value for name, value in wanted.items()))
    other: Any = before.where(is_other).select(*(columns[name].alias(name) for name in wanted)).first()
    for name, value in wanted.items() if other is not None else ():
        if other[name] != value:
            found, expected = (f"{name} {v!r}" if v != "" else f"no {name}" for v in (other[name], value))
            found = "other seeds" if name == "seed" else found
            raise InputError(out, f"scores with {found}", f"those with {expected}, or another folder")


def _missing(sized: "DataFrame", before: "DataFrame", job: Job, retry: Collection[Status]) -> "DataFrame":
    """Return the units that are missing.

    A row without scores is one unit for all strategies. Any other row is a unit per missing strategy.
    """
    from pyspark.sql import functions as sf

    again = sf.col("status").isin([status.value for status in retry])
    key = ["scenario_id", "scenario_hash"]
    known = sf.col("job_hash").isin([*job.hashes, *job.whole])
    kept = before.where(known & ~again)
    done = kept.groupBy(key).agg(sf.collect_set("job_hash").alias("_done"))
    joined = sized.drop("which").withColumn("scenario_hash", scenario_hash_column()).join(done, key, "left")
    numbers = sf.array(
        *(
            sf.struct(sf.lit(n).alias("n"), sf.lit(each).alias("hash"), sf.lit(whole).alias("whole"))
            for n, (each, whole) in enumerate(zip(job.hashes, job.whole or job.hashes, strict=True))
        )
    )
    rest = sf.transform(
        sf.filter(
            numbers,
            lambda number: (
                ~sf.array_contains("_done", number.hash) & ~sf.array_contains("_done", number.whole)
            ),
        ),
        lambda number: number.n,
    )
    which = sf.when(sf.col("_done").isNull(), sf.array(sf.lit(ALL))).otherwise(rest)
    return joined.withColumn("which", sf.explode(which)).drop("_done", "scenario_hash")
