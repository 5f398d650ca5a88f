"""Logs of a cluster's coordinators on Spark: a row for each round of each group. Needs the extra ``spark``.

    from rebalance_logs import rounds_from_logs

    rounds = rounds_from_logs(spark.read.text("s3://logs/kafka/"))
    rounds.groupBy("group", "cause").agg(count("*"), sum("seconds"))

Lines are read in batches of Arrow where they lie; only those about groups are moved, to one place for each
group. A row's lines may be in any order, because each has its time.
"""

from collections.abc import Iterable, Iterator, Sequence
from datetime import UTC, datetime, tzinfo
from functools import partial
from typing import TYPE_CHECKING, Any

import msgspec

from coordinator_core.errors import InputError
from rebalance_logs.causes import diagnosed
from rebalance_logs.facts import Fact
from rebalance_logs.groups import groups_of
from rebalance_logs.reading import LogFile, Logs, facts_of
from rebalance_logs.report import reason_of

if TYPE_CHECKING:
    from pyarrow import RecordBatch, Table
    from pyspark.sql import DataFrame

FACTS = "group string, fact binary"
ROUNDS = (
    "group string, protocol string, generation long, began timestamp, seconds double, members int,"
    " reason string, cause string, cause_members array<string>"
)


def rounds_from_logs(lines: "DataFrame", *, text: str = "value", zone: tzinfo = UTC) -> "DataFrame":
    """Return a row for each round of each group in lines of logs, such as those of `spark.read.text`.

    ``text``: the column of the lines. ``zone``: of times without one. The columns are those of `ROUNDS`:
    ``seconds`` is null for a round whose end no line shows; ``cause`` is the first one, as `diagnose` names
    it, and null for a round without one; the second round of a cooperative rebalance has that of the first.

    Raises:
        InputError: if there is no such column.
    """
    if text not in lines.columns:
        raise InputError("rounds_from_logs: text", repr(text), f"a column: {', '.join(lines.columns)}")
    facts = lines.select(text).mapInArrow(partial(_facts, zone=zone), FACTS)
    return facts.groupBy("group").applyInArrow(_rounds, ROUNDS)


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
    """Return the rounds of one group."""
    import pyarrow as pa

    decoder = msgspec.json.Decoder(Fact)
    rows = list(rounds_of([decoder.decode(fact) for fact in facts["fact"].to_pylist()]))
    fields = [column.split() for column in ROUNDS.split(", ")]
    types = {
        "string": pa.string(),
        "long": pa.int64(),
        "int": pa.int32(),
        "double": pa.float64(),
        "timestamp": pa.timestamp("us", "UTC"),
        "array<string>": pa.list_(pa.string()),
    }
    columns = zip(*rows, strict=True) if rows else ([] for _ in fields)
    arrays = [pa.array(list(own), types[kind]) for own, (_, kind) in zip(columns, fields, strict=True)]
    return pa.Table.from_arrays(arrays, names=[name for name, _ in fields])


def rounds_of(facts: Sequence[Fact]) -> Iterator[tuple[Any, ...]]:
    """Yield the row of each round of the groups that facts speak of, in order."""
    for group in groups_of(Logs([LogFile("logs")], list(facts)), [0]):
        found = diagnosed(group)
        causes = {number: each for each in reversed(found.causes) for number in each.generations}
        for this, triggers in zip(group.rounds, found.triggers, strict=True):
            cause = causes.get(this.generation)
            yield (
                group.group,
                "consumer" if group.is_consumer_protocol else "classic",
                this.generation,
                datetime.fromtimestamp(this.began_ms / 1_000, UTC),
                None if this.ended_ms is None else (this.ended_ms - this.began_ms) / 1_000,
                len(this.members) or None,
                reason_of(this, triggers),
                None if cause is None else str(cause.cause),
                [] if cause is None else cause.members,
            )
