"""Assignments of groups on Spark: the job of ``rebalance-lab assign``, as a DataFrame and in SQL."""

from collections.abc import Iterator, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from coordinator_core.assigning.computing import run
from coordinator_core.assigning.problem import build_problem
from coordinator_core.errors import InputError, RebalanceLabError
from coordinator_core.registry.registry import Registry
from rebalance_lab.scenarios.files import read_document
from rebalance_lab.scenarios.groups import assignment_document, parse_group
from rebalance_lab.scoring.limits import run_within
from rebalance_lab.scoring.outcomes import DEFAULT_TIMEOUT
from rebalance_lab.scoring.rows import registry_with

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

FUNCTION = "rebalance_assign"
RESULT = "member string, topic string, partition int, error string"
_DOCUMENTS = ("scenario", "group", "value")
"""The columns that may have the document of a group, the first that exists."""

_PAIRS = pa.list_(pa.struct([("topic", pa.string()), ("partition", pa.int32())]))
_ADDED = pa.schema([("assignment", pa.map_(pa.string(), _PAIRS)), ("error", pa.string())])


def assign(
    groups: "DataFrame",
    assignor: str,
    *,
    document: str | None = None,
    timeout: float = DEFAULT_TIMEOUT,
    plugins: Sequence[str] = (),
) -> "DataFrame":
    """Return the rows of groups with ``assignment`` (member -> topic and partition) and ``error``.

    The column `document` has the group, as text or as a structure, in the format of ``rebalance-lab assign``
    or as a scenario, of which the members and their partitions count. By default it is
    ``scenario``, ``group`` or ``value``; a table with the columns ``topics`` and ``members`` has a group in
    each row.
    `timeout`: seconds for one group (0: no limit). `plugins`: as for `score`.

    Raises:
        InputError: if the assignor is unknown, or if a column is missing.
    """
    from pyspark.sql import functions as sf
    from pyspark.sql.types import ArrayType, IntegerType, MapType, StringType, StructType

    registry = registry_with(plugins)
    registry.build(registry.strategy(assignor, what="assignor"))
    for name in _ADDED.names:
        if name in groups.columns:
            raise InputError("groups", f"a column {name!r}", "another name: the result has such a column")
    column = _document_column(groups, document)
    kind = "struct" if column is None else groups.schema[column].dataType.typeName()
    own = sf.struct("*") if column is None else sf.col(column)
    text = sf.to_json(own) if kind in ("struct", "map") else own.cast("string")
    schema = StructType(list(groups.schema.fields))
    pair = StructType().add("topic", StringType()).add("partition", IntegerType())
    schema.add("assignment", MapType(StringType(), ArrayType(pair))).add("error", StringType())
    call = partial(_assigned, assignor=assignor, timeout=timeout, plugins=tuple(plugins))
    return groups.withColumn("_document", text).mapInArrow(call, schema)


def _document_column(groups: "DataFrame", document: str | None) -> str | None:
    if document is not None and document not in groups.columns:
        raise InputError("groups", f"no column {document!r}", f"one of {', '.join(groups.columns)}")
    if document is not None:
        return document
    if {"topics", "members"} <= set(groups.columns):
        return None
    found = [name for name in _DOCUMENTS if name in groups.columns]
    if not found:
        expected = f"topics and members, or one of {', '.join(_DOCUMENTS)}"
        raise InputError("groups", f"the columns {', '.join(groups.columns)}", expected)
    return found[0]


def _assigned(
    batches: Iterator[pa.RecordBatch], assignor: str, timeout: float, plugins: tuple[str, ...]
) -> Iterator[pa.RecordBatch]:
    registry = registry_with(plugins)
    for batch in batches:
        texts = batch.column("_document").to_pylist()
        outcomes = [assignment_or_error(text or "", assignor, registry, timeout) for text in texts]
        arrays = [
            pa.array([found and _as_map(found) for found, _ in outcomes], _ADDED.field("assignment").type),
            pa.array([error for _, error in outcomes], pa.string()),
        ]
        given = batch.drop_columns(["_document"])
        yield pa.RecordBatch.from_arrays(
            [*given.columns, *arrays], schema=pa.schema([*given.schema, *_ADDED])
        )


def _as_map(assignment: dict[str, list[list[Any]]]) -> list[tuple[str, list[dict[str, Any]]]]:
    return [
        (member, [{"topic": topic, "partition": number} for topic, number in owned])
        for member, owned in assignment.items()
    ]


def assignment_or_error(
    text: str, assignor: str, registry: Registry, timeout: float
) -> tuple[dict[str, list[list[Any]]] | None, str | None]:
    """Return the partitions of each member of a group, or the error in one line."""

    def call() -> dict[str, list[list[Any]]]:
        parsed = parse_group(_group_of(read_document(text, "group")), "group")
        strategy = registry.strategy(assignor, what="assignor")
        found = run(registry.build(strategy), build_problem(parsed.cluster, parsed.group))
        return assignment_document(found, list(parsed.group))

    try:
        return run_within(timeout, call), None
    except (RebalanceLabError, TimeoutError) as error:
        return None, " ".join(str(error).split())


def _group_of(document: Any) -> Any:
    """Return a document as a group: that of a scenario, and pairs as Spark has them as pairs."""
    if not isinstance(document, dict) or not isinstance(document.get("members"), list):
        return document
    topics = document.get("topics")
    if "duration" in document and isinstance(topics, dict):
        topics = {name: _topic_of(topic) for name, topic in topics.items()}
    return {**document, "topics": topics, "members": [_member_of(member) for member in document["members"]]}


def _topic_of(topic: Any) -> Any:
    if not isinstance(topic, dict):
        return topic
    weights = {"weights": topic["rates"]} if "rates" in topic else {}
    return {key: topic[key] for key in ("partitions", "racks") if key in topic} | weights


def _member_of(member: Any) -> Any:
    if not isinstance(member, dict):
        return member
    fields = {key: value for key, value in member.items() if key != "process_rate"}
    owned = member.get("owned")
    if isinstance(owned, dict):
        owned = [[topic, number] for topic, numbers in owned.items() for number in numbers]
    if isinstance(owned, list):
        fields["owned"] = [_pair(entry) for entry in owned]
    if "process_rate" in member:
        fields["capacity"] = member["process_rate"]
    return fields


def _pair(entry: Any) -> Any:
    """Return a topic and a partition, which in Spark are a structure or two texts, as a pair."""
    if isinstance(entry, dict):
        entry = [entry.get("topic"), entry.get("partition")]
    if isinstance(entry, list) and len(entry) == 2 and isinstance(entry[1], str) and entry[1].isdecimal():
        return [entry[0], int(entry[1])]
    return entry


class Assign:
    """The table function ``rebalance_assign(document, assignor)``: a row per partition, or one with an error.

    A member without partitions has a row without topic and partition.
    """

    def eval(self, document: str | None, assignor: str | None) -> Iterator[tuple[Any, ...]]:
        """Yield member, topic, partition and error."""
        registry = registry_with(())
        assignment, error = assignment_or_error(document or "", assignor or "", registry, DEFAULT_TIMEOUT)
        if assignment is None:
            yield None, None, None, error
            return
        for member, owned in assignment.items():
            for topic, number in owned or [[None, None]]:
                yield member, topic, number, None


def register_functions(spark: "SparkSession") -> None:
    """Register the table function with a session."""
    from pyspark.sql.functions import udtf

    function: Any = udtf(Assign, returnType=RESULT)
    spark.udtf.register(FUNCTION, function)
