"""Scoring in a Python worker of Spark: Arrow batches of scenarios in, Arrow batches of scores out."""

import sys
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from rebalance_lab.simulation.world.collector import collecting_rarely
from rebalance_spark.apart import Apart
from rebalance_spark.limits import Watchdog
from rebalance_spark.rows import Job, Row, Scorer

UNIT_COLUMNS = ("scenario_id", "scenario", "which")
"""The input columns that are read. ``which`` is the number of a strategy, or `rows.ALL`."""


COST = "_cost"
"""The column with the estimated cost of a unit, in milliseconds. It may be missing."""

ReportDone = Callable[[int, float], None]
"""Called with a number of finished rows, and their estimated cost in milliseconds."""


def score_batches(
    batches: Iterator[pa.RecordBatch],
    *,
    job: Job,
    schema: pa.Schema,
    done: ReportDone | None = None,
) -> Iterator[pa.RecordBatch]:
    """Return a batch of scores for each batch of scenarios. ``done`` is called after each batch.

    Spark repeats a task whose worker died. The second attempt scores each row in a separate process: the row
    that kills its process gets a status, and the others get their scores.
    """
    if _attempt() > 0:
        apart = Apart(job)
        try:
            yield from _batches(batches, apart.rows, schema, done)
        finally:
            apart.close()
        return
    longest = (2 * len(job.strategies) + 1) * job.timeout  # the document, and every strategy twice
    scorer, watchdog = Scorer(job), Watchdog(longest + 5 if longest else 0)

    def rows(scenario_id: str, text: str, which: int) -> list[Row]:
        watchdog.restart()
        return scorer.rows(scenario_id, text, which)

    try:
        yield from _batches(batches, rows, schema, done)
    finally:
        watchdog.stop()


def _batches(
    batches: Iterator[pa.RecordBatch],
    score: Callable[[str, str, int], list[Row]],
    schema: pa.Schema,
    done: ReportDone | None,
) -> Iterator[pa.RecordBatch]:
    for batch in batches:
        units = zip(*(batch.column(name).to_pylist() for name in UNIT_COLUMNS), strict=True)
        with collecting_rarely():
            scored = [score(name or "", text or "", which) for name, text, which in units]
        rows = [row for rows in scored for row in rows]
        if done is not None:
            done(len(rows), sum(batch.column(COST).to_pylist()) if COST in batch.schema.names else 0.0)
        carried = batch.drop_columns([n for n in batch.schema.names if n in (*UNIT_COLUMNS, COST)])
        repeated = carried.take(np.repeat(np.arange(len(scored)), [len(rows) for rows in scored]))
        yield as_batch(rows, schema, repeated)


def as_batch(rows: Sequence[Row], schema: pa.Schema, carried: pa.RecordBatch | None = None) -> pa.RecordBatch:
    """Return rows as Arrow, with the columns in the order of the schema, which Spark does not check.

    A metric that exists only on this machine is left out. The columns of `carried` follow.
    """
    arrays = [pa.array([row.get(field.name) for row in rows], field.type) for field in schema]
    if carried is not None:
        arrays += carried.columns
        schema = pa.schema([*schema, *(field.with_nullable(True) for field in carried.schema)])
    return pa.RecordBatch.from_arrays(arrays, schema=schema)


def _attempt() -> int:
    """Return the number of earlier attempts of this task, 0 outside Spark."""
    context: Any = None
    if "pyspark" in sys.modules:
        from pyspark import TaskContext

        context = TaskContext.get()
    return 0 if context is None else int(context.attemptNumber())
