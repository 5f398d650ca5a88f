"""Which changes act on a cause of the stopped time, those tried first in front."""

import re

import pytest

from coordinator_core.registry.registry import default_registry
from rebalance_lab.scenarios.scenario import parse_scenario
from rebalance_lab.simulation.run import simulate
from rebalance_lab.traces.causes import PARTS, STANDING, UNASSIGNED, WAITS
from rebalance_lab.traces.history import History
from rebalance_lab.verdicts.changes import facts_of
from rebalance_lab.verdicts.remedies import candidates

REGISTRY = default_registry()
DOCUMENT = {
    "name": "day",
    "duration": "3m",
    "topics": {"t": {"partitions": 6, "rate": 60}},
    "members": [{"id": "m", "count": 3, "topics": ["t"], "process_rate": 100, "batch_overhead": "1s"}],
    "events": [
        {"at": "60s", "crash": "m-0"},
        {"at": "70s", "restart": "m-0"},
        {"at": "90s", "freeze": "m-1", "for": "60s"},
    ],
    "config": {"session.timeout.ms": "20s"},
}


def tried(part, strategy="range", **changes):
    scenario = parse_scenario({**DOCUMENT, **changes}, where="day")
    trace = simulate(scenario, strategy, REGISTRY)
    facts = facts_of(scenario, History(trace, REGISTRY))
    return [change.label for change in candidates(part, scenario, strategy, facts, REGISTRY)]


def test_a_wait_for_heartbeats_is_shortened_by_more_of_them_first():
    first, *others = tried("waiting_heartbeat")
    assert first == "range with heartbeat.interval.ms=1s"
    assert others == ["cooperative-sticky"]


def test_a_wait_for_batches_is_shortened_by_smaller_ones():
    assert tried("waiting_batch")[0] == "range with max.poll.records=50"


@pytest.mark.parametrize("kind", ["freeze", "cut"])
def test_a_member_without_heartbeats_is_removed_earlier_by_a_shorter_session(kind):
    events = [{"at": "90s", kind: "m-1", "for": "60s"}]
    assert tried("standing", events=events) == ["range with session.timeout.ms=6s"]


def test_a_member_that_is_paused_is_removed_earlier_by_a_shorter_time_between_polls():
    """Its heartbeats go on, so no session expires. A batch takes 6 s on average, 12 s at most."""
    events = [{"at": "90s", "pause": "m-1", "for": "60s"}]
    assert tried("standing", events=events) == [
        "range with max.poll.interval.ms=30s",
        "range with max.poll.interval.ms=15s",
    ]
    short = {"max.poll.interval.ms": "40s"}
    assert tried("standing", events=events, config=short) == [
        "range with max.poll.interval.ms=20s",
        "range with max.poll.interval.ms=15s",
    ]
    assert tried("standing", events=events, config={"max.poll.interval.ms": "15s"}) == []


def test_the_session_of_static_members_that_come_back_is_made_shorter_but_longer_than_they_are_away():
    members = [{"id": name, "topics": ["t"], "instance_id": name} for name in "abc"]
    events = [{"at": "60s", "rolling_restart": {"every": "40s", "down": "20s"}}]
    labels = tried("away", members=members, events=events, config={"session.timeout.ms": "45s"})
    assert labels == ["range with session.timeout.ms=30s", "range with session.timeout.ms=6s"]


@pytest.mark.parametrize("part", [*PARTS, *WAITS, STANDING, UNASSIGNED])
@pytest.mark.parametrize("strategy", ["range", "range+watcher", "range+reconcile"])
def test_no_change_is_tried_that_the_protocol_does_not_read(part, strategy):
    labels = tried(part, strategy, config={})
    if strategy != "range":
        assert not re.search(r"cooperative| session\.timeout| heartbeat\.interval", str(labels))
    if strategy == "range+watcher":
        assert "static" not in str(labels)
