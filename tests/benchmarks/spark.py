"""Rows/s of scoring on Spark beside plain processes, and the cost of a row from few rows to many.

    python -m tests.benchmarks.spark [ROWS ...]
    python -m tests.benchmarks.spark --million [GROUPS]

Both score the same `microservices` scenarios at `plan` fidelity with `cooperative-sticky` on all cores, from
Parquet; start-up is over before the clock starts. *Ratio* is the time of Spark over that of the processes.
Medians of three runs; of more than 50,000 rows one run, of Spark alone.

``--million`` measures GROUPS groups (50,000) under the four strategies that count, a tenth of them under
`optimal`, and computes from both the time of a million groups under these five strategies: the processor time
of their rows over the cores.
"""

import multiprocessing
import sys
import tempfile
from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from statistics import median
from time import perf_counter
from typing import Any

import pyarrow.parquet as pq

from rebalance_lab.scoring.outcomes import Fidelity
from rebalance_lab.scoring.rows import Job, Scorer
from rebalance_lab.simulation.world.collector import collecting_rarely
from rebalance_spark import score, spark_session
from rebalance_spark.sessions import cores

ROWS = (2_000, 20_000, 200_000)
JOB = Job(("cooperative-sticky",), Fidelity.PLAN, timeout=120.0)
ENOUGH = 50_000
MILLION = 1_000_000
EXECUTOR_CORES = 4
EXECUTORS = 100
COUNTING = ("range", "roundrobin", "sticky", "cooperative-sticky")
TIMES = 3
PART = 50
"""Rows that a process takes at a time."""

_scorer: Scorer | None = None


def main() -> None:
    """Print a table."""
    if sys.argv[1:2] == ["--million"]:
        _million(int(sys.argv[2]) if len(sys.argv) > 2 else ENOUGH)
        return
    sizes = [int(text) for text in sys.argv[1:]] or list(ROWS)
    spark = spark_session()
    count = cores(spark)
    print_line(f"| rows | Spark rows/s | processes rows/s | ratio | Spark, core ms a row |  ({count} cores)")
    print_line("| --- | --- | --- | --- | --- |")
    with (
        tempfile.TemporaryDirectory() as folder,
        multiprocessing.get_context("spawn").Pool(count, _begin) as pool,
    ):
        for number in range(4 * count):  # every process has scored something before the clock starts
            pool.apply(_score, ([("warm", _warm_row(number))],))
        _on_spark(spark, _workload(spark, folder, 400))
        for rows in sizes:
            path = _workload(spark, folder, rows)
            times = TIMES if rows <= ENOUGH else 1
            on_spark = median(_on_spark(spark, path) for _ in range(times))
            beside = "- | -"
            if rows <= ENOUGH:
                plain = median(_in_processes(pool, path, rows) for _ in range(times))
                beside = f"{rows / plain:,.0f} | {on_spark / plain:.2f}"
            each_ms = 1_000 * count * on_spark / rows
            print_line(f"| {rows:,} | {rows / on_spark:,.0f} | {beside} | {each_ms:.2f} |")


def _million(groups: int) -> None:
    """Print the measured cost of a row, and the time of a million groups that follows from it."""
    from pyspark.sql import functions as sf

    spark = spark_session()
    count = cores(spark)
    print_line("| strategies | groups | rows | s | CPU ms a row |\n| --- | --- | --- | --- | --- |")
    each_group_ms = 0.0
    with tempfile.TemporaryDirectory() as folder:
        for strategies, number in ((COUNTING, groups), (("optimal",), groups // 10)):
            workload = spark.read.parquet(_workload(spark, folder, number))
            began = perf_counter()
            scores = score(workload, strategies, fidelity=JOB.fidelity, timeout=JOB.timeout)
            rows, cpu_ms = scores.agg(sf.count("*"), sf.sum("cpu_ms")).first()
            took = perf_counter() - began
            each_group_ms += cpu_ms / number
            names = ", ".join(strategies)
            print_line(f"| {names} | {number:,} | {rows:,} | {took:.1f} | {cpu_ms / rows:.2f} |")
    for where, cores_there in (("here", count), (f"{EXECUTORS} executors", EXECUTORS * EXECUTOR_CORES)):
        minutes = MILLION * each_group_ms / cores_there / 60_000
        print_line(f"a million groups, five strategies, {where} ({cores_there} cores): {minutes:,.1f} min")


def print_line(text: str) -> None:
    """To whoever waits for the next line."""
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()


def _workload(spark: Any, folder: str, rows: int) -> str:
    path = str(Path(folder) / str(rows))
    options = {"profile": "microservices", "rows": str(rows), "seed": "1"}
    spark.read.format("rebalance_workload").options(**options).load().write.parquet(path)
    return path


def _on_spark(spark: Any, path: str) -> float:
    began = perf_counter()
    scores = score(spark.read.parquet(path), JOB.strategies, fidelity=JOB.fidelity, timeout=JOB.timeout)
    scores.write.format("noop").mode("overwrite").save()
    return perf_counter() - began


def _in_processes(pool: Any, path: str, rows: int) -> float:
    began = perf_counter()
    scored = sum(len(part) for part in pool.imap_unordered(_score, _parts(path)))
    took = perf_counter() - began
    assert scored == rows
    return took


def _parts(path: str) -> Iterator[list[tuple[str, str]]]:
    for file in sorted(Path(path).glob("*.parquet")):
        for batch in pq.ParquetFile(file).iter_batches(columns=["scenario_id", "scenario"]):
            ids, texts = (batch.column(i).to_pylist() for i in range(2))
            pairs = zip(ids, texts, strict=True)
            while part := list(islice(pairs, PART)):
                yield part


def _warm_row(number: int) -> str:
    import msgspec

    from coordinator_core.registry.registry import default_registry

    return msgspec.json.encode(default_registry().workloads()["microservices"].generate(2, number)).decode()


def _begin() -> None:
    global _scorer
    _scorer = Scorer(JOB)


def _score(part: list[tuple[str, str]]) -> list[dict[str, Any]]:
    assert _scorer is not None
    with collecting_rarely():
        return [row for scenario_id, text in part for row in _scorer.rows(scenario_id, text)]


if __name__ == "__main__":
    main()
