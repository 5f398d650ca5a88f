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
from tests.approved import approved

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


PAUSED = [{"at": "90s", "pause": "m-1", "for": "60s"}]
STATIC = [{"id": name, "topics": ["t"], "instance_id": name} for name in "abc"]
RESTARTED = [{"at": "60s", "rolling_restart": {"every": "40s", "down": "20s"}}]
TRIED = {
    "a wait for heartbeats": ("waiting_heartbeat", {}),
    "a wait for batches": ("waiting_batch", {}),
    "a member that ended": ("detection", {}),
    **{
        f"a member without heartbeats: {kind}": (
            "standing",
            {"events": [{"at": "90s", kind: "m-1", "for": "60s"}]},
        )
        for kind in ("freeze", "cut")
    },
    # its heartbeats go on, so that no session expires; a batch takes 6 s on average, 12 s at most
    **{
        f"a member that is paused, polls of {interval}": (
            "standing",
            {"events": PAUSED, "config": {"max.poll.interval.ms": interval}},
        )
        for interval in ("5m", "40s", "15s")
    },
    "static members that come back": (
        "away",
        {"members": STATIC, "events": RESTARTED, "config": {"session.timeout.ms": "45s"}},
    ),
}


def test_what_acts_on_a_part_of_the_stopped_time_is_as_approved():
    approved("remedies", {title: "\n".join(tried(part, **more)) for title, (part, more) in TRIED.items()})


@pytest.mark.parametrize("part", [*PARTS, *WAITS, STANDING, UNASSIGNED])
@pytest.mark.parametrize("strategy", ["range", "range+watcher", "range+reconcile"])
def test_no_change_is_tried_that_the_protocol_does_not_read(part, strategy):
    labels = tried(part, strategy, config={})
    if strategy != "range":
        assert not re.search(r"cooperative| session\.timeout| heartbeat\.interval", str(labels))
    if strategy == "range+watcher":
        assert "static" not in str(labels)
