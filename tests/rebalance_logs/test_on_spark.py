"""Rounds of a cluster's logs, in the functions that Spark calls."""

from datetime import UTC

import pyarrow as pa

from rebalance_lab.scenarios.files import load_scenario_text
from rebalance_logs.on_spark import ROUNDS, _facts, _incidents, _rounds
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
    facts = pa.Table.from_batches(_facts(batches, zone=UTC))
    rounds = _rounds(facts)
    assert rounds.column_names == [column.split()[0] for column in ROUNDS.split(", ")]
    assert rows_of(rounds.to_pylist()) == EXPECTED
    assert {row["group"] for row in rounds.to_pylist()} == {"pay"}


def incident_of(paths):
    """The row of the only group in files."""
    lines = [line for path in paths for line in path.read_text().splitlines()]
    facts = pa.Table.from_batches(_facts([pa.RecordBatch.from_pydict({"value": lines})], zone=UTC))
    (row,) = _incidents(facts).to_pylist()
    return row


def test_the_logs_of_members_give_the_scenario_of_a_group():
    row = incident_of(sorted((DATA / "logs" / "java-killed").glob("*.log")))
    scenario = load_scenario_text(row["scenario"], row["scenario_id"])
    assert (row["scenario_id"], len(scenario.members), row["missing"]) == ("payments", 3, None)
    assert (row["cause"], row["cause_members"]) == ("session-expired", ["c-1"])
    assert row["rounds_seen"] >= 2
    assert row["seconds_in_rounds"] > 5
    assert row["stopped_seen"] > 5


def test_the_log_of_a_coordinator_alone_gives_no_scenario_and_says_why():
    row = incident_of([LOGS])
    assert (row["scenario_id"], row["scenario"], row["rounds_seen"]) == ("pay", None, 3)
    assert row["missing"] == "no line that shows a partition of pay"
    assert row["stopped_seen"] is None
