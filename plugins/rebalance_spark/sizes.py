"""The size of a scenario and its estimated cost, by which the work is distributed over the cores."""

from collections.abc import Iterator, Mapping
from contextlib import suppress
from typing import TYPE_CHECKING, Any, NamedTuple

import msgspec
import pyarrow as pa

from coordinator_core.errors import InputError
from rebalance_lab.scenarios.files import read_document
from rebalance_lab.scoring.outcomes import Fidelity
from rebalance_spark.schema import WORKLOAD_COLUMNS, arrow_schema, spark_schema

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

MOST = 2**31 - 1

SEARCHING = ("optimal",)
"""The assignors that search among assignments. The cost of the others hardly differs."""

MOST_SEARCH_MS = 200.0
"""The approximate cost of a search that ends without a proof."""
WORKLOAD_NAMES = tuple(column.name for column in WORKLOAD_COLUMNS)


class Size(NamedTuple):
    """The cost columns of a workload."""

    members: int = 0
    partitions: int = 0
    events: int = 0


def size_of(document: Any) -> Size:
    """Return the size of a scenario document. Invalid parts count as 0."""
    if not isinstance(document, Mapping):
        return Size()
    topics = document.get("topics")
    described = topics.values() if isinstance(topics, Mapping) else ()
    partitions = [_number(_field(topic, "partitions"), 0) for topic in described]
    members = sum(_number(_field(member, "count"), 1) for member in _listed(document.get("members")))
    events = _listed(document.get("events"))
    joins = [join for event in events if "join" in event for join in _entries(event["join"])]
    all_members = members + sum(_number(_field(join, "count"), 1) for join in joins)
    changes = sum(all_members if "rolling_restart" in event else _changes(event) for event in events)
    return Size(min(all_members, MOST), min(sum(partitions), MOST), min(changes, MOST))


def size_of_text(text: str | None) -> Size:
    """Return the size of a scenario in JSON or YAML."""
    if not text:
        return Size()
    with suppress(msgspec.DecodeError, RecursionError, UnicodeEncodeError):
        return size_of(msgspec.json.decode(text))
    with suppress(InputError):
        return size_of(read_document(text, ""))
    return Size()


def with_sizes(workloads: "DataFrame") -> "DataFrame":
    """Return workloads with their cost columns, which are computed from the documents if they are missing.

    A value in a cost column that is no number, negative or not finite becomes null. Other columns follow.
    """
    from pyspark.sql import functions as sf

    names = WORKLOAD_NAMES
    others = [name for name in workloads.columns if name not in names]
    quoted = [sf.col(f"`{name}`") for name in others]
    kinds = dict(workloads.dtypes)
    texts = [sf.coalesce(_text(n, kinds[n]), sf.lit("")).alias(n) for n in names[:2]]
    if set(names) <= set(workloads.columns):
        return workloads.select(*texts, *map(_size, names[2:]), *quoted)
    schema = spark_schema(WORKLOAD_COLUMNS)
    for name in others:
        schema.add(workloads.schema[name])
    return workloads.select(*texts, *quoted).mapInArrow(_measured, schema)


def _text(name: str, kind: str) -> "Column":
    """Return a column as text: a structure or a map as a document in JSON."""
    from pyspark.sql import functions as sf

    return sf.to_json(name) if kind.startswith(("struct<", "map<")) else sf.col(name).cast("string")


def _size(name: str) -> "Column":
    """Return a cost column as numbers: null for a value that is no number, negative or not finite."""
    from pyspark.sql import functions as sf

    number = sf.col(name).cast("string").try_cast("double")
    return sf.when(number.between(0.0, float(MOST)), number).try_cast("int").alias(name)


def estimated_cost(fidelity: Fidelity, assignor: str = "", *, counts: bool = False) -> "Column":
    """Return the approximate cost of a row under a strategy, in milliseconds of a core.

    A plan costs time for every change of the group, and the protocol for every member at every change.
    Assignors of `SEARCHING` cost more the more assignments there are to try. ``counts``: its
    plans need no traces (`simulation.counting`).
    """
    from pyspark.sql import functions as sf

    members, partitions, events = (sf.coalesce(sf.col(n).cast("double"), sf.lit(0.0)) for n in Size._fields)
    if counts and fidelity is Fidelity.PLAN:
        return 0.2 + (1.0 + events) * (0.15 + 0.004 * members + 0.0002 * partitions)
    cost = 0.5 + (1.0 + events) * (0.5 + 0.06 * members + 0.012 * partitions)
    if assignor in SEARCHING:
        search = sf.least(0.12 * members * partitions, sf.lit(MOST_SEARCH_MS))
        cost = cost + (1.0 + events) * search
    return cost if fidelity is Fidelity.PLAN else cost + 4.0 + members * (1.5 + 2.5 * events)


def _measured(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    for batch in batches:
        others = [field for field in batch.schema if field.name not in WORKLOAD_NAMES[:2]]
        schema = pa.schema([*arrow_schema(WORKLOAD_COLUMNS), *others])
        ids, texts = batch.column("scenario_id"), batch.column("scenario")
        sizes = [size_of_text(text) for text in texts.to_pylist()]
        columns = list(zip(*sizes, strict=True)) if sizes else [()] * 3
        arrays = [ids.cast(pa.string()), texts.cast(pa.string()), *(pa.array(c, pa.int32()) for c in columns)]
        arrays += [batch.column(field.name) for field in others]
        yield pa.RecordBatch.from_arrays(arrays, schema=schema)


def _changes(event: Mapping[str, Any]) -> int:
    """Return the number of members that an event changes: the length of the list in it, if it has one."""
    return max(
        [1, *(len(value) for key, value in event.items() if isinstance(value, list) and key != "topics")]
    )


def _entries(value: Any) -> list[Any]:
    return value if isinstance(value, list) else [value]


def _field(value: Any, key: str) -> Any:
    return value.get(key) if isinstance(value, Mapping) else None


def _listed(value: Any) -> list[Mapping[str, Any]]:
    return [entry for entry in value if isinstance(entry, Mapping)] if isinstance(value, list) else []


def _number(value: Any, default: int) -> int:
    fits = isinstance(value, int) and not isinstance(value, bool) and value >= 0
    return value if fits else default
