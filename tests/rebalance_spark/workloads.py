"""Tiny workloads as DataFrames and as files, and scores in a form that can be compared."""

import json
import os

import pyarrow as pa
import pyarrow.parquet as pq

from rebalance_lab.scoring.rows import Scorer, computed_metrics
from rebalance_spark.schema import WORKLOAD_COLUMNS, arrow_schema, score_columns
from rebalance_spark.sizes import Size, size_of_text

FOR_FEW_ROWS = {
    "spark.sql.codegen.factoryMode": "NO_CODEGEN",
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.shuffle.partitions": "2",
}
"""Settings of a session that compiles little: that takes longer than the few rows of a test."""


def fresh_environment():
    """The environment of this process without settings of Spark and Python. Java compiles little."""
    dropped = ("SPARK", "PYSPARK", "PYTHON", "VIRTUAL_ENV")
    kept = {name: value for name, value in os.environ.items() if not name.startswith(dropped)}
    return {**kept, "JDK_JAVA_OPTIONS": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"}


def scenario(topic="orders", partitions=4, members=2, **fields):
    """Some members on a topic for a minute; the first leaves in the middle."""
    document = {
        "name": "small",
        "duration": "1m",
        "seed": 4,
        "topics": {topic: {"partitions": partitions, "rate": 40}},
        "members": [{"id": f"m-{n}", "topics": [topic]} for n in range(members)],
        "events": [{"at": "30s", "leave": "m-0"}] if members > 1 else [],
    }
    return json.dumps({**document, **fields})


def table(texts, *, sized=True):
    """A mapping of ids to texts as Arrow, with the columns of what it costs or without."""
    rows = [
        {"scenario_id": name, "scenario": text, **size_of_text(text)._asdict()}
        for name, text in texts.items()
    ]
    schema = pa.schema([field.with_nullable(True) for field in arrow_schema(WORKLOAD_COLUMNS)])
    found = pa.Table.from_pylist(rows, schema=schema)
    return found if sized else found.select(["scenario_id", "scenario"])


def frame(spark, texts, *, sized=True):
    """The same as a DataFrame."""
    return spark.createDataFrame(table(texts, sized=sized))


def write_parquet(path, texts):
    """The same as a Parquet file."""
    pq.write_table(table(texts), path)
    return str(path)


def scored_here(job, texts):
    """The rows of a scorer in this process, with all columns."""
    scorer = Scorer(job)
    names = [column.name for column in score_columns(computed_metrics(job), start=bool(job.start))]
    rows = [row for name, text in texts.items() for row in scorer.rows(name, text)]
    return comparable({name: row.get(name) for name in names} for row in rows)


def comparable(rows):
    """Scores as a list that does not depend on their order, nor on how long they took.

    Nor on the run, the group, the size, nor on the plugins of the workers: what one test sends them they keep
    as long as the session lasts.
    """
    dropped = {"wall_ms", "cpu_ms", "plugin_versions", "job_hash", "run_id", "group", *Size._fields}
    kept = [{name: value for name, value in row.items() if name not in dropped} for row in rows]
    return sorted(kept, key=lambda row: (row["scenario_id"], row["strategy"]))


def collected(scores):
    """The rows of a DataFrame of scores, to be compared."""
    return comparable(scores.toArrow().to_pylist())


def read_scores(folder):
    """The rows of a folder of scores, to be compared."""
    return comparable(pq.read_table(folder, partitioning=None).to_pylist())
