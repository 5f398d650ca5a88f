"""Rounds of a cluster's logs, in the functions that Spark calls."""

from datetime import UTC

import pyarrow as pa

from rebalance_logs.on_spark import ROUNDS, _facts, _rounds
from tests.places import DATA

LOGS = DATA / "logs" / "broker-old" / "server.log"
EXPECTED = [
    (1, 3.05, "c-1 joined the empty group", "member-joined", ["c-1"]),
    (2, 5.05, "c-2 joined", "member-joined", ["c-2"]),
    (3, 2.099, "c-2 left", "member-left", ["c-2"]),
]


def rows_of(rows):
    """The generation, length, reason and cause of rounds, in the order of time."""
    columns = ("generation", "seconds", "reason", "cause", "cause_members")
    return [tuple(row[name] for name in columns) for row in sorted(rows, key=lambda row: row["began"])]


def test_lines_in_batches_and_in_any_order_become_rounds():
    lines = LOGS.read_text().splitlines()
    batches = [
        pa.RecordBatch.from_pydict({"value": part}) for part in (lines[7:], ["garbage", None], lines[:7])
    ]
    rounds = _rounds(pa.Table.from_batches(_facts(batches, zone=UTC)))
    assert rounds.column_names == [column.split()[0] for column in ROUNDS.split(", ")]
    assert rows_of(rounds.to_pylist()) == EXPECTED
    assert {row["group"] for row in rounds.to_pylist()} == {"pay"}
