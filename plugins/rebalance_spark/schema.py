"""The columns of workloads and of scores: one list each, from which every schema and table is made."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import pyarrow as pa

from coordinator_core.registry.registry import Registry

if TYPE_CHECKING:
    from pyspark.sql.types import StructType


@dataclass(frozen=True, slots=True)
class Column:
    """A column: its type in Spark's words (string, int, bigint, double), unit, and whether it may be null."""

    name: str
    type: str
    unit: str
    nullable: bool
    doc: str


_ARROW = {"string": pa.string(), "int": pa.int32(), "bigint": pa.int64(), "double": pa.float64()}

WORKLOAD_COLUMNS = (
    Column("scenario_id", "string", "", False, "Names the row; different in each."),
    Column("scenario", "string", "", False, "The scenario, as JSON or YAML."),
    Column("members", "int", "", True, "Consumers at the start, and those that join later."),
    Column("partitions", "int", "", True, "Partitions over all topics, at the start."),
    Column("events", "int", "", True, "Changes; a rolling restart counts once a member."),
)
"""A row is a scenario. The last three estimate its cost; they are derived where a source has none."""

SCORE_COLUMNS = (
    Column("scenario_id", "string", "", False, "Of the workload."),
    Column("strategy", "string", "", False, "As it was asked for."),
    Column("fidelity", "string", "", False, "protocol, or plan."),
    Column("seed", "bigint", "", True, "Of the run; null where the scenario cannot be read."),
    Column("status", "string", "", False, "ok, error or timeout."),
    Column("error", "string", "", True, "What went wrong, in one line; null when ok."),
    Column("wall_ms", "double", "ms", False, "How long it took, by the clock of the machine that did it."),
    Column("program_version", "string", "", False, "Of rebalance-lab."),
    Column("plugin_versions", "string", "", False, "Other distributions with plugins, as name version."),
)


def score_columns(registry: Registry) -> tuple[Column, ...]:
    """The columns of scores: a metric of the registry each, behind what says whose figures they are."""
    metrics = registry.metrics().values()
    return SCORE_COLUMNS + tuple(Column(m.name, "double", m.unit, True, m.doc) for m in metrics)


def arrow_schema(columns: Sequence[Column]) -> pa.Schema:
    """The columns for Arrow, in their order."""
    return pa.schema([pa.field(c.name, _ARROW[c.type], nullable=c.nullable) for c in columns])


def spark_schema(columns: Sequence[Column]) -> "StructType":
    """The columns for Spark, in their order; units and descriptions are their metadata."""
    from pyspark.sql.types import DoubleType, IntegerType, LongType, StringType, StructField, StructType

    types = {"string": StringType(), "int": IntegerType(), "bigint": LongType(), "double": DoubleType()}
    return StructType(
        [StructField(c.name, types[c.type], c.nullable, {"comment": c.doc, "unit": c.unit}) for c in columns]
    )
