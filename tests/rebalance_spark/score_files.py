"""Scores by hand, in files like those of a run."""

import pyarrow as pa
import pyarrow.parquet as pq

from rebalance_lab.verdicts.rule import FEWEST_PAIRS
from rebalance_spark.findings import Question, found_in
from rebalance_spark.schema import SCORE_COLUMNS, arrow_schema

HOUR = pa.field("hour", pa.int32())
METRICS = ("moved_partitions", "imbalance", "rounds")


def row(scenario_id, strategy, moves=None, imbalance=1.0, rounds=1.0, **fields):
    """A score; without moves, one of a scenario that failed."""
    figures = {"moved_partitions": moves, "imbalance": imbalance, "rounds": rounds}
    texts = {c.name: "-" for c in SCORE_COLUMNS if c.type == "string" and not c.nullable}
    plain = {
        **texts,
        "scenario_id": scenario_id,
        "strategy": strategy,
        "wall_ms": 1.0,
        "cpu_ms": 1.0,
        "run_id": "1",
    }
    done = {"status": "ok", **figures} if moves is not None else {"status": "error"}
    return {**plain, "fidelity": "plan", **done, **fields}


def hourly(rows, hours=2 * FEWEST_PAIRS):
    """The same rows in some hours."""
    return [
        {**r, "scenario_id": f"hour={hour}/{r['scenario_id']}", "hour": hour}
        for hour in range(hours)
        for r in rows
    ]


def write(folder, rows, name="part-0.parquet", more=()):
    names = [pa.field(name, pa.float64()) for name in METRICS]
    schema = pa.schema([*arrow_schema(SCORE_COLUMNS), *names, *more])
    folder.mkdir(parents=True, exist_ok=True)
    pq.write_table(pa.Table.from_pylist(rows, schema=schema), folder / name)


def found(scored, **question):
    return found_in(scored, Question(**question))
