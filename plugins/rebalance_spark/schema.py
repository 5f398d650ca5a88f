"""The columns of workloads and of scores. Every schema and table is made from these lists."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from coordinator_core.registry.registry import Registry

if TYPE_CHECKING:
    from pyspark.sql.types import StructField, StructType


@dataclass(frozen=True, slots=True)
class Column:
    """A column. ``type`` is a name of Spark, one of `ARROW`."""

    name: str
    type: str
    unit: str
    nullable: bool
    doc: str


CARRIED = "carried"
"""The key in the metadata of a column of scores that is one of the workload."""

RESERVED = ("which", "run", "chunk")
"""Names beside those of columns that a column of a workload cannot have."""

ARROW: Mapping[str, pa.DataType] = MappingProxyType(
    {
        "string": pa.string(),
        "int": pa.int32(),
        "bigint": pa.int64(),
        "double": pa.float64(),
        "boolean": pa.bool_(),
    }
)
"""The types of columns: Spark's names, and Arrow's types."""

_LONG_NAMES = {"int": "integer", "bigint": "long"}
"""The names that schemas in Python have for some types."""

WORKLOAD_COLUMNS = (
    Column("scenario_id", "string", "", False, "The unique name of the row."),
    Column("scenario", "string", "", False, "The scenario, as JSON or YAML."),
    Column("members", "int", "", True, "Members at the start, and those that join later."),
    Column("partitions", "int", "", True, "Partitions of all topics at the start."),
    Column("events", "int", "", True, "Events. A rolling restart counts once per member."),
)
"""The columns of a workload. The last three estimate the cost of a row. They may be missing."""

SCORE_COLUMNS = (
    Column("scenario_id", "string", "", False, "The id in the workload."),
    Column("strategy", "string", "", False, "The strategy as requested."),
    Column("scenario_hash", "string", "", False, "The hash of the scenario's text."),
    Column("job_hash", "string", "", False, "The hash of what was computed: see below."),
    Column("run_id", "string", "", False, "The run that wrote the row. A later run has a greater id."),
    Column("fidelity", "string", "", False, "protocol or plan."),
    Column(
        "seed",
        "bigint",
        "",
        True,
        "The seed of the run: that of the scenario, or else its own. Null if it cannot be read.",
    ),
    Column("status", "string", "", False, "ok, error or timeout."),
    Column("error", "string", "", True, "The error in one line. Of a row that is ok: metrics that failed."),
    Column("wall_ms", "double", "ms", False, "The elapsed time on the machine that computed the row."),
    Column("cpu_ms", "double", "ms", False, "The time of the processor for the row."),
    Column("program_version", "string", "", False, "The version of rebalance-lab."),
    Column("plugin_versions", "string", "", False, "Other distributions with plugins, and their versions."),
    Column(
        "start_assignor",
        "string",
        "",
        True,
        "The assignor of `--start`. Null if groups start with their owners.",
    ),
    Column(
        "loads",
        "string",
        "",
        True,
        "The load of the busiest member at the end by the number of members more (+1=0.95).",
    ),
    Column(
        "busiest",
        "string",
        "",
        True,
        "The loads of the owners of the busiest partitions at the end, with those of these partitions.",
    ),
    Column(
        "alike", "string", "", True, "Topics with as many partitions as another one: members may join them."
    ),
    Column("start_moves", "int", "", True, "Partitions that the strategy moves at the start: see Inputs."),
)


def score_columns(registry: Registry) -> tuple[Column, ...]:
    """Return the columns of scores: those above, and one for each metric of a registry."""
    metrics = registry.metrics().values()
    return SCORE_COLUMNS + tuple(Column(m.name, "double", m.unit, True, m.doc) for m in metrics)


def arrow_schema(columns: Sequence[Column]) -> pa.Schema:
    """Return the columns as a schema of Arrow."""
    return pa.schema([pa.field(c.name, ARROW[c.type], nullable=c.nullable) for c in columns])


def carried_schema(fields: Iterable["StructField"]) -> list["StructField"]:
    """Return columns of a workload as columns of scores. Their metadata say that they are no metrics."""
    from pyspark.sql.types import StructField

    return [StructField(f.name, f.dataType, True, {**f.metadata, CARRIED: True}) for f in fields]


def spark_schema(columns: Sequence[Column]) -> "StructType":
    """Return the columns as a schema of Spark. Units and descriptions become metadata."""
    from pyspark.sql.types import StructType

    schema = StructType()
    for c in columns:
        add_column(schema, c.name, c.type, c.nullable, {"comment": c.doc, "unit": c.unit})
    return schema


def add_column(
    schema: "StructType",
    name: str,
    kind: str,
    nullable: bool = True,
    metadata: dict[str, Any] | None = None,
) -> None:
    """Add a column of a type of `ARROW` to a schema of Spark."""
    schema.add(name, _LONG_NAMES.get(kind, kind), nullable, metadata)
