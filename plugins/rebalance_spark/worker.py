"""Scoring in a Python worker of Spark: Arrow batches of scenarios in, Arrow batches of scores out."""

import sys
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from rebalance_lab.scoring.apart import Apart
from rebalance_lab.scoring.limits import Watchdog
from rebalance_lab.scoring.rows import Job, Row, Scorer
from rebalance_lab.simulation.world.collector import collecting_rarely

UNIT_COLUMNS = ("scenario_id", "scenario", "which")
"""The input columns that are read. ``which`` has the numbers of strategies."""


def score_batches(
    batches: Iterator[pa.RecordBatch], *, job: Job, schema: pa.Schema
) -> Iterator[pa.RecordBatch]:
    """Return a batch of scores for each batch of scenarios, in the columns of `scored_batch`.

    Spark repeats a task whose worker died. The second attempt scores each row in a separate process: the row
    that kills its process gets a status, and the others get their scores.
    """
    if _attempt() > 0:
        apart = Apart(job)
        try:
            yield from (scored_batch(batch, apart.rows, schema) for batch in batches)
        finally:
            apart.close()
        return
    longest = (2 * len(job.strategies) + 1) * job.timeout  # the document, and every strategy twice
    scorer, watchdog = Scorer(job), Watchdog(longest + 5 if longest else 0)

    def rows(scenario_id: str, text: str, which: Sequence[int]) -> list[Row]:
        watchdog.restart()
        return scorer.rows(scenario_id, text, which)

    try:
        yield from (scored_batch(batch, rows, schema) for batch in batches)
    finally:
        watchdog.stop()


def scored_batch(
    batch: pa.RecordBatch, score: Callable[[str, str, Sequence[int]], list[Row]], schema: pa.Schema
) -> pa.RecordBatch:
    """Return the scores of a batch: the first column of the schema, columns that are carried, the others.

    Spark does not check the order of columns. A metric that exists only on this machine is left out.
    """
    units = zip(*(batch.column(name).to_pylist() for name in UNIT_COLUMNS), strict=True)
    with collecting_rarely():
        scored = [score(name or "", text or "", which) for name, text, which in units]
    carried = batch.drop_columns(list(UNIT_COLUMNS))
    carried = carried.take(np.repeat(np.arange(len(scored)), [len(rows) for rows in scored]))
    rows = [row for rows in scored for row in rows]
    own = [pa.array([row.get(field.name) for row in rows], field.type) for field in schema]
    fields = [schema[0], *(field.with_nullable(True) for field in carried.schema), *list(schema)[1:]]
    return pa.RecordBatch.from_arrays([own[0], *carried.columns, *own[1:]], schema=pa.schema(fields))


def _attempt() -> int:
    """Return the number of earlier attempts of this task, 0 outside Spark."""
    context: Any = None
    if "pyspark" in sys.modules:
        from pyspark import TaskContext

        context = TaskContext.get()
    return 0 if context is None else int(context.attemptNumber())
