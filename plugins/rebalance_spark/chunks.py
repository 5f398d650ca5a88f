"""Scores on disk, a chunk at a time: whatever stops a run, the next one does only what is missing."""

from collections.abc import Callable, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from coordinator_core.errors import InputError
from rebalance_spark.rows import ALL, Job
from rebalance_spark.schema import SCORE_COLUMNS
from rebalance_spark.scoring import scored, units
from rebalance_spark.sessions import cores
from rebalance_spark.sizes import estimated_cost

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

CHUNK_MS = 60_000
"""What a chunk costs each core, by the estimate: the work that an interruption may lose."""

MOST_CHUNKS = 2_000
AT_ONCE = 2
"""Chunks at once, so that the next one's tasks take the cores that the last tasks of one leave idle."""

_LOOK_EVERY_SECONDS = 0.2
_TAG = "rebalance-lab-score"
"""Of our jobs, among others of the same session."""

_TEMPORARY = "_temporary"
_COMMITTER = {
    "mapreduce.fileoutputcommitter.algorithm.version": "2",
    "mapreduce.fileoutputcommitter.cleanup.skipped": "true",
}
"""Of Hadoop: a task's file is there when the task ends, and no job clears away what another is writing.

All jobs write below the same ``_temporary``. By default the first that ends takes the files of the others for
its own and deletes the folder, and with it, silently, the rows that are on their way.
"""


@dataclass(frozen=True)
class Todo:
    """What is missing: rows with their size and ``which``, their number in all, and in how many chunks."""

    units: "DataFrame"
    rows: int
    done_before: int
    chunks: int


Look = Callable[[int], None]
"""Told now and then how many rows are done."""


def todo(workloads: "DataFrame", job: Job, out: str) -> Todo:
    """What of a workload is not in a folder of scores yet.

    Raises InputError for ids that are missing or not different, and for a folder with the scores of
    something else.
    """
    from pyspark import StorageLevel
    from pyspark.sql import functions as sf

    sized = units(workloads)
    if not set(sized.columns) - {"which"} <= set(workloads.columns):
        sized = sized.persist(StorageLevel.DISK_ONLY)  # each chunk would measure every row again
    _check_ids(sized)
    before = existing_scores(workloads.sparkSession, out)
    if before is None:
        missing, done_before = sized, 0
    else:
        _check_same(before, job, sized, out)
        missing, done_before = _missing(sized, before, job)
    times = sf.when(sf.col("which") == ALL, len(job.strategies)).otherwise(1)
    row: Any = missing.agg(sf.sum(times), sf.sum(estimated_cost(job.fidelity) * times)).first()
    rows, cost = row[0] or 0, row[1] or 0.0
    chunk = CHUNK_MS * cores(workloads.sparkSession)
    return Todo(missing, rows, done_before, min(MOST_CHUNKS, max(1, round(cost / chunk))))


def existing_scores(spark: "SparkSession", out: str) -> "DataFrame | None":
    """The scores in a folder; None where nothing is there yet. Raises InputError for what are no scores."""
    from pyspark.errors import AnalysisException

    try:
        found = spark.read.parquet(out)
    except AnalysisException:
        return None
    if not {column.name for column in SCORE_COLUMNS} <= set(found.columns):
        raise InputError(out, f"the columns {', '.join(found.columns)}", "scores, or nothing")
    return found


def write_scores(todo: Todo, job: Job, out: str, look: Look) -> None:
    """Score what is missing and add it to the folder, chunk by chunk.

    Raises what Spark raises when a job fails; the files that are written stay, each whole.
    """
    try:
        _write_chunks(todo, job, out, look)
    finally:
        _delete(todo.units.sparkSession, out, _TEMPORARY)


def _write_chunks(todo: Todo, job: Job, out: str, look: Look) -> None:
    spark = todo.units.sparkSession
    done = spark.sparkContext.accumulator(0)
    with ThreadPoolExecutor(AT_ONCE) as pool:
        jobs = [pool.submit(_write_chunk, todo, job, out, number, done) for number in range(todo.chunks)]
        try:
            waiting = set(jobs)
            while waiting:
                finished, waiting = wait(waiting, _LOOK_EVERY_SECONDS, FIRST_COMPLETED)
                look(done.value)
                for each in finished:
                    each.result()
        except BaseException:
            _stop(spark, jobs)
            raise


def _stop(spark: "SparkSession", jobs: Sequence[Future[None]]) -> None:
    """Cancel every chunk. One that is only being planned becomes a job after that: so again and again."""
    for each in jobs:
        each.cancel()
    while not all(each.done() for each in jobs):
        spark.sparkContext.cancelJobsWithTag(_TAG)
        wait(jobs, _LOOK_EVERY_SECONDS)


def _write_chunk(todo: Todo, job: Job, out: str, number: int, done: Any) -> None:
    from pyspark.sql import functions as sf

    rows = todo.units
    rows.sparkSession.sparkContext.addJobTag(_TAG)
    if todo.chunks > 1:
        rows = rows.where(sf.pmod(sf.xxhash64("scenario_id"), sf.lit(todo.chunks)) == number)
    scored(rows, job, done=done.add).write.mode("append").options(**_COMMITTER).parquet(out)


def _delete(spark: "SparkSession", folder: str, name: str) -> None:
    """Delete a folder in a folder of any file system Spark knows; nothing happens where there is none."""
    context: Any = spark.sparkContext
    path = context._jvm.org.apache.hadoop.fs.Path(folder, name)
    path.getFileSystem(context._jsc.hadoopConfiguration()).delete(path, True)


def _check_ids(sized: "DataFrame") -> None:
    from pyspark.sql import functions as sf

    twice: Any = (
        sized.groupBy("scenario_id").count().where(sf.col("count") > 1).orderBy("scenario_id").first()
    )
    if twice is not None:
        raise InputError(
            "workload", f"scenario_id {twice[0]!r} {twice[1]} times", "a different one in each row"
        )
    nameless: Any = sized.where(sf.col("scenario_id").isNull() | (sf.col("scenario_id") == "")).first()
    if nameless is not None:
        raise InputError("workload", "a row without scenario_id", "one in each row")


def _check_same(before: "DataFrame", job: Job, sized: "DataFrame", out: str) -> None:
    from pyspark.sql import functions as sf

    other: Any = before.where(sf.col("fidelity") != job.fidelity.value).first()
    if other is not None:
        expected = f"the same for {job.fidelity.value!r}, or another folder"
        raise InputError(out, f"scores with fidelity {other.fidelity!r}", expected)
    if job.seed is not None:
        other = before.where(sf.col("seed") != job.seed).first()
        if other is not None:
            expected = f"those with seed {job.seed}, or another folder"
            raise InputError(out, f"scores with seed {other.seed}", expected)
    stranger: Any = before.join(sized, "scenario_id", "left_anti").first()
    if stranger is not None:
        found = f"the score of {stranger.scenario_id!r}, which is not in the workload"
        raise InputError(out, found, "scores of the same workload, or another folder")


def _missing(sized: "DataFrame", before: "DataFrame", job: Job) -> tuple["DataFrame", int]:
    """Rows without any of the scores as they are; of others a row for each strategy that is missing."""
    from pyspark.sql import functions as sf

    wanted = before.where(sf.col("strategy").isin(list(job.strategies))).select("scenario_id", "strategy")
    done = wanted.distinct().groupBy("scenario_id").agg(sf.collect_set("strategy").alias("done"))
    joined = sized.drop("which").join(done, "scenario_id", "left")
    numbers = sf.array(
        *(sf.struct(sf.lit(n).alias("n"), sf.lit(s).alias("s")) for n, s in enumerate(job.strategies))
    )
    rest = sf.transform(
        sf.filter(numbers, lambda each: ~sf.array_contains("done", each.s)), lambda each: each.n
    )
    which = sf.when(sf.col("done").isNull(), sf.array(sf.lit(ALL))).otherwise(rest)
    missing = joined.withColumn("which", sf.explode(which)).drop("done")
    return missing, wanted.distinct().count()
