"""The columns of workloads and of scores. Every schema and table is made from these lists."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import TYPE_CHECKING

import pyarrow as pa

from coordinator_core.registry.hookspecs import MetricSpec

if TYPE_CHECKING:
    from pyspark.sql.types import StructType


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

STRATEGIES = "strategies"
"""The key in the metadata of the column ``strategy`` of what `score` returns: a list of their names."""

RESERVED = ("which", "run", "part")
"""Names beside those of columns of scores that a column of a workload cannot have."""

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

_SCENARIO_ID = Column("scenario_id", "string", "", False, "The id in the workload.")
_OUTCOME = (
    Column("strategy", "string", "", False, "The strategy as requested."),
    Column("status", "string", "", False, "ok, error or timeout."),
    Column("error", "string", "", True, "The error in one line. Of a row that is ok: metrics that failed."),
)
_SEED = "The seed of the run: that of the scenario, or else its own. Null if it cannot be read."
_START = "The assignor of the start. Without one there is no such column."
_PROVENANCE = (
    Column("wall_ms", "double", "ms", False, "The elapsed time on the machine that computed the row."),
    Column("cpu_ms", "double", "ms", False, "The time of the processor for the row."),
    Column("seed", "bigint", "", True, _SEED),
    Column("fidelity", "string", "", False, "protocol or plan."),
    Column("start_assignor", "string", "", True, _START),
    Column("scenario_hash", "string", "", False, "The hash of the scenario's text."),
    Column("job_hash", "string", "", False, "The hash of what was computed. Stored scores are found by it."),
    Column("run_id", "string", "", False, "The run that wrote the row. A later run has a greater id."),
    Column("program_version", "string", "", False, "The version of rebalance-lab."),
    Column("plugin_versions", "string", "", False, "Other distributions with plugins, and their versions."),
)
SCORE_COLUMNS = (_SCENARIO_ID, *_OUTCOME, *_PROVENANCE)
"""The columns of scores that are no metrics and not carried from the workload."""


def score_columns(metrics: Iterable[MetricSpec], *, start: bool = False) -> tuple[Column, ...]:
    """Return the columns of scores in their order: those of the outcome, a metric each, and the provenance.

    The columns of the workload follow ``scenario_id``. `start`: there is a column ``start_assignor``.
    """
    figures = (Column(m.name, "double", m.unit, True, m.doc) for m in metrics)
    provenance = (column for column in _PROVENANCE if start or column.name != "start_assignor")
    return (_SCENARIO_ID, *_OUTCOME, *figures, *provenance)


def arrow_schema(columns: Sequence[Column]) -> pa.Schema:
    """Return the columns as a schema of Arrow."""
    return pa.schema([pa.field(c.name, ARROW[c.type], nullable=c.nullable) for c in columns])


def spark_schema(columns: Sequence[Column]) -> "StructType":
    """Return the columns as a schema of Spark. Units and descriptions become metadata."""
    from pyspark.sql.types import StructType

    schema = StructType()
    for c in columns:
        kind = _LONG_NAMES.get(c.type, c.type)
        schema.add(c.name, kind, c.nullable, {"comment": c.doc, "unit": c.unit})
    return schema
