"""Laws of groups without a coordinator, on random scenarios: one owner, rest after faults, determinism."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from coordinator_core.documents.scenario import parse_scenario
from coordinator_core.protocol.events import MemberRemoved
from coordinator_core.registry.registry import default_registry
from coordinator_core.scoring.measuring import measure
from coordinator_core.simulation.run import simulate
from coordinator_core.traces.history import History
from tests.examples import scaled

MEMBERS = tuple(f"m{n}" for n in range(5))
"""The last one joins under way. The first one stays to the end."""

FAULTS_S, SETTLES_S, WHOLE_S = 120, 200, 360
"""Faults end at the first of these times. Then a change makes everybody rebalance once more."""

LATE = ["0s", "1s", "4s", "10s", "30s"]


@st.composite
def events(draw, kinds):
    """Anything of these kinds that may happen until the faults end, at most eight times."""
    running, listed = dict.fromkeys(MEMBERS, True), []
    joins_ms = draw(st.integers(1, FAULTS_S * 10 - 1)) * 100
    times = [draw(st.integers(1, FAULTS_S * 10 - 1)) * 100 for _ in range(draw(st.integers(0, 8)))]
    for at_ms in sorted(times):
        known = MEMBERS[: 5 if at_ms > joins_ms else 4]
        kind, name = draw(st.sampled_from(kinds)), draw(st.sampled_from(known))
        if kind in ("coordinator_failover", "add_partitions"):
            value = {"down": draw(st.sampled_from(["1s", "9s", "40s"]))}
            listed.append({"at": at_ms, kind: {"a": 9} if kind == "add_partitions" else value})
        elif kind == "lag_view":
            listed.append({"at": at_ms, kind: {"member": name, "by": draw(st.sampled_from(LATE))}})
        elif not running[name] or (kind == "restart" and name != MEMBERS[0]):
            listed.append({"at": at_ms, "restart": name})
            running[name] = True
        elif kind in ("leave", "crash") and name != MEMBERS[0]:
            listed.append({"at": at_ms, kind: name})
            running[name] = False
        elif kind in ("cut", "freeze", "pause"):
            listed.append({"at": at_ms, kind: name, "for": draw(st.sampled_from(["1s", "5s", "8s", "20s"]))})
    added = next((e for e in listed if "add_partitions" in e), None)
    listed = [e for e in listed if "add_partitions" not in e or e is added]
    listed.append({"at": joins_ms, "join": {"id": MEMBERS[4], "topics": ["a", "b"], "process_rate": 100}})
    listed.append({"at": f"{FAULTS_S}s", "calm": True})
    listed += [{"at": f"{FAULTS_S}s", "lag_view": {"member": name, "by": "0s"}} for name in MEMBERS]
    listed.append({"at": f"{SETTLES_S}s", "join": {"id": "last", "topics": ["a", "b"], "process_rate": 100}})
    return listed


@st.composite
def documents(draw, kinds, *, loses=True):
    """A group of four whose members subscribe to the same topics."""
    faults = [(0, 0), (0.02, 0), (0, 0.02), (0.05, 0.05)] if loses else [(0, 0), (0, 0.05)]
    loss, duplicate = draw(st.sampled_from(faults))
    return {
        "name": "g",
        "duration": f"{WHOLE_S}s",
        "seed": draw(st.integers(0, 2**32)),
        "brokers": draw(st.sampled_from([1, 3])),
        "topics": {"a": {"partitions": 7, "rate": 70}, "b": {"partitions": 3, "rate": 3}},
        "members": [{"id": n, "topics": ["a", "b"], "process_rate": 100} for n in MEMBERS[:4]],
        "events": draw(events(kinds)),
        "config": {"metadata.max.age.ms": 20_000},
        "network": {
            "latency": draw(st.sampled_from([[0, 0], [1, 5], [2, 40], [100, 300]])),
            "loss": loss,
            "duplicate": duplicate,
        },
        "measure": {"from": "0s"},
    }


CHANGES = ("leave", "crash", "restart", "pause", "lag_view", "coordinator_failover", "add_partitions")
FAULTS = (*CHANGES, "cut", "freeze")


def run(document, strategy):
    registry = default_registry()
    return simulate(parse_scenario(document, where="random", registry=registry), strategy, registry), registry


@settings(max_examples=scaled(100))
@given(documents(CHANGES, loses=False))
def test_owner_nodes_keep_a_partition_from_two_owners_under_every_lag(document):
    """No process stands still with its client or is cut off, so that no claim expires unnoticed."""
    trace, registry = run(document, "watcher")
    assert measure(trace, registry)["double_owned_partition_seconds"] == 0


@settings(max_examples=scaled(100))
@given(documents([kind for kind in FAULTS if kind != "crash"]))
def test_under_owner_nodes_two_work_on_a_partition_only_after_a_session_has_expired(document):
    """Cuts, freezes and lost pings let a session expire while its process runs."""
    trace, registry = run(document, "watcher")
    ends = [e.event.reason for e in trace.events if isinstance(e.event, MemberRemoved)]
    double_owned = measure(trace, registry)["double_owned_partition_seconds"]
    assert double_owned == 0 or "session expired" in ends


def check_rest(document, strategy):
    """Everybody subscribes to the same topics: when the last change is over, every partition has an owner."""
    trace, registry = run(document, strategy)
    history = History(trace, registry)
    assert trace.events[-1].event.group_state == "Settled"
    assert history.stops.unowned_at_end == []
    settled = history.last_settled
    assert settled is not None
    assert len(settled.owners) == sum(history.topics.values())
    spans = [span for spans in history.spans.values() for span in spans if span.to_ms == WHOLE_S * 1_000]
    assert len(spans) == len(settled.owners), "a partition has two owners at the end"


@pytest.mark.parametrize("strategy", ["watcher", "watcher+owners=off", "rocketmq"])
@settings(max_examples=scaled(100))
@given(document=documents(FAULTS))
def test_the_group_rests_with_everything_owned_after_the_last_fault(document, strategy):
    check_rest(document, strategy)


@settings(max_examples=scaled(30))
@given(documents(FAULTS), st.sampled_from(["watcher", "watcher+owners=off", "rocketmq"]))
def test_the_same_run_gives_the_same_bytes(document, strategy):
    assert run(document, strategy)[0].encode() == run(document, strategy)[0].encode()
