"""Logs of a cluster on Spark: a row for each round, or for each group. Needs the extra ``spark``.

    from rebalance_logs import incidents_from_logs, rounds_from_logs

    lines = spark.read.text("s3://logs/kafka/")
    rounds_from_logs(lines).groupBy("group", "cause").agg(count("*"), sum("seconds"))
    incidents_from_logs(lines).orderBy(desc("seconds_in_rounds"))  # a workload for `score`

Lines are read in batches of Arrow where they lie; only those about groups are moved, to one place for each
group. A row's lines may be in any order, because each has its time.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from datetime import UTC, datetime, tzinfo
from functools import partial
from typing import TYPE_CHECKING, Any, TypeAlias

import msgspec

from coordinator_core.errors import InputError
from rebalance_logs.causes import Diagnosis, diagnosed
from rebalance_logs.facts import Fact
from rebalance_logs.groups import groups_of
from rebalance_logs.incident import as_yaml
from rebalance_logs.reading import LogFile, Logs, facts_of
from rebalance_logs.report import reason_of

if TYPE_CHECKING:
    from pyarrow import RecordBatch, Table
    from pyspark.sql import DataFrame, GroupedData

RowsOf: TypeAlias = Callable[[Sequence[Fact]], Iterator[tuple[Any, ...]]]

FACTS = "group string, fact binary"
ROUNDS = (
    "group string, protocol string, generation long, began timestamp, seconds double, members int,"
    " reason string, cause string, cause_members array<string>"
)
INCIDENTS = (
    "scenario_id string, scenario string, missing string, rounds_seen int, seconds_in_rounds double,"
    " stopped_seen double, cause string, cause_members array<string>"
)


def rounds_from_logs(lines: "DataFrame", *, text: str = "value", zone: tzinfo = UTC) -> "DataFrame":
    """Return a row for each round of each group in lines of logs, such as those of `spark.read.text`.

    ``text``: the column of the lines. ``zone``: of times without one. The columns are those of `ROUNDS`:
    ``seconds`` is null for a round whose end no line shows; ``cause`` is the first one, as `diagnose` names
    it, and null for a round without one; the second round of a cooperative rebalance has that of the first.

    Raises:
        InputError: if there is no such column.
    """
    return _grouped(lines, text, zone).applyInArrow(_rounds, ROUNDS)


def incidents_from_logs(lines: "DataFrame", *, text: str = "value", zone: tzinfo = UTC) -> "DataFrame":
    """Return a row for each group in lines of logs, with its scenario: a workload for `score`.

    The columns are those of `INCIDENTS`: ``scenario_id`` is the group, and ``scenario`` what `diagnose -o`
    writes; it is null where the lines do not show enough, as ``missing`` says, such as those of coordinators
    alone, which do not have partitions. ``seconds_in_rounds`` is the time of rounds whose end a line shows,
    ``stopped_seen`` the stopped time in partition seconds, and ``cause`` the one that cost most. What no line
    shows is null.

    Raises:
        InputError: if there is no such column.
    """
    return _grouped(lines, text, zone).applyInArrow(_incidents, INCIDENTS)


def _grouped(lines: "DataFrame", text: str, zone: tzinfo) -> "GroupedData":
    if text not in lines.columns:
        raise InputError("text", repr(text), f"a column: {', '.join(lines.columns)}")
    facts = lines.select(text).mapInArrow(partial(_facts, zone=zone), FACTS)
    return facts.groupBy("group")


def _facts(batches: "Iterable[RecordBatch]", zone: tzinfo) -> "Iterator[RecordBatch]":
    """Yield the facts of lines about groups."""
    import pyarrow as pa

    for batch in batches:
        facts = [fact for fact in facts_of(batch.column(0).to_pylist(), zone) if fact.group]
        yield pa.RecordBatch.from_arrays(
            [
                pa.array([fact.group for fact in facts], pa.string()),
                pa.array(list(map(msgspec.json.encode, facts)), pa.binary()),
            ],
            names=["group", "fact"],
        )


def _rounds(facts: "Table") -> "Table":
    return _rows(facts, rounds_of, ROUNDS)


def _incidents(facts: "Table") -> "Table":
    return _rows(facts, incidents_of, INCIDENTS)


def _rows(facts: "Table", made: RowsOf, columns: str) -> "Table":
    """Return the rows that a function makes of the facts of one group."""
    import pyarrow as pa

    decoder = msgspec.json.Decoder(Fact)
    rows = list(made([decoder.decode(fact) for fact in facts["fact"].to_pylist()]))
    fields = [column.split() for column in columns.split(", ")]
    types = {
        "string": pa.string(),
        "long": pa.int64(),
        "int": pa.int32(),
        "double": pa.float64(),
        "timestamp": pa.timestamp("us", "UTC"),
        "array<string>": pa.list_(pa.string()),
    }
    values = zip(*rows, strict=True) if rows else ([] for _ in fields)
    arrays = [pa.array(list(own), types[kind]) for own, (_, kind) in zip(values, fields, strict=True)]
    return pa.Table.from_arrays(arrays, names=[name for name, _ in fields])


def rounds_of(facts: Sequence[Fact]) -> Iterator[tuple[Any, ...]]:
    """Yield the row of each round of the groups that facts speak of, in order."""
    for found in _diagnosed(facts):
        group = found.group
        causes = {number: each for each in reversed(found.causes) for number in each.generations}
        for this in group.rounds:
            cause = causes.get(this.generation)
            yield (
                group.group,
                "consumer" if group.is_consumer_protocol else "classic",
                this.generation,
                datetime.fromtimestamp(this.began_ms / 1_000, UTC),
                None if this.ended_ms is None else (this.ended_ms - this.began_ms) / 1_000,
                len(this.members) or None,
                reason_of(this),
                None if cause is None else str(cause.cause),
                [] if cause is None else cause.members,
            )


def incidents_of(facts: Sequence[Fact]) -> Iterator[tuple[Any, ...]]:
    """Yield the row of each group that facts speak of."""
    for found in _diagnosed(facts):
        scenario, missing = None, None
        try:
            scenario = as_yaml(found)
        except InputError as error:
            missing = error.found
        times = [this.ended_ms - this.began_ms for this in found.group.rounds if this.ended_ms is not None]
        stopped = [each.stopped_ms for each in found.causes if each.stopped_ms is not None]
        first = found.causes[0] if found.causes else None
        yield (
            found.group.group,
            scenario,
            missing,
            len(found.group.rounds),
            sum(times) / 1_000 if times else None,
            sum(stopped) / 1_000 if stopped else None,
            None if first is None else str(first.cause),
            [] if first is None else first.members,
        )


def _diagnosed(facts: Sequence[Fact]) -> Iterator[Diagnosis]:
    return map(diagnosed, groups_of(Logs([LogFile("")], list(facts)), [0]))
