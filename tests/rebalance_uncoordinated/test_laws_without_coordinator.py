"""Laws of groups without a coordinator, on random scenarios: one owner, rest after faults, determinism."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from coordinator_core.protocol.events import MemberRemoved
from coordinator_core.registry.registry import default_registry
from rebalance_lab.scenarios.scenario import parse_scenario
from rebalance_lab.simulation.run import simulate
from rebalance_lab.traces.history import History
from rebalance_lab.traces.timeline import Timeline
from rebalance_lab.verdicts.measuring import measure
from tests.examples import scaled

MEMBERS = tuple(f"m{n}" for n in range(5))
"""The last one joins under way. The first one stays to the end."""

FAULTS_S, SETTLES_S, WHOLE_S = 120, 200, 360
"""Faults end at the first of these times. Then a change makes everybody rebalance once more."""

LATE = ["0s", "1s", "4s", "10s", "30s"]

BRIEF = {"brief cut": "cut", "brief freeze": "freeze"}
BRIEF_MS, APART_MS = 1_500, 10_000
"""At most one ping is lost in the first of these times: they are 2 s apart, and a session lasts 6 s."""


@st.composite
def events(draw, kinds):
    """Anything of these kinds that may happen until the faults end, at most eight times.

    Brief cuts and freezes of a member are apart, so that two of them do not make a long one.
    """
    running, listed, cut_ms = dict.fromkeys(MEMBERS, True), [], dict.fromkeys(MEMBERS, -APART_MS)
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
        elif kind in BRIEF and at_ms >= cut_ms[name] + APART_MS:
            for_ms = draw(st.sampled_from([200, 900, BRIEF_MS]))
            listed.append({"at": at_ms, BRIEF[kind]: name, "for": for_ms})
            cut_ms[name] = at_ms
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


class Registered:
    """Follows a trace: who owned a partition at the same time, and which sessions ended unnoticed.

    ``twice`` lists the partitions that two members of the registry own at a time. ``expired`` has the members
    whose session expired while their process ran.
    """

    def __init__(self, trace):
        self.twice, self.expired = [], []
        self._now = Timeline()
        self._now.before.append(self._see)
        self._now.after.append(self._check)
        self._now.read(trace)

    def _see(self, at_ms, event):
        if isinstance(event, MemberRemoved) and event.reason == "session expired":
            running = (consumer.member_id for consumer in self._now.consumers.values())
            self.expired += [(at_ms, member_id) for member_id in running if member_id == event.member_id]

    def _check(self, _change):
        now = self._now
        for partition in now.contested:
            owners = [name for name in now.owners[partition] if now.consumers[name].member_id in now.members]
            if len(owners) > 1:
                self.twice.append((now.at_ms, partition, owners))


@settings(max_examples=scaled(100))
@given(documents((*CHANGES, *BRIEF), loses=False))
def test_owner_nodes_keep_a_partition_from_two_owners_under_every_lag(document):
    """Messages may come twice, connections may be cut and processes stand still, within their sessions.

    It does not hold when a session expires of which the process does not know. A cut of a third of the
    session may be too long, because two pings may be in it. So is the loss of two pings in turn.
    """
    trace, registry = run(document, "watcher")
    assert Registered(trace).expired == []
    assert measure(trace, registry)["double_owned_partition_seconds"] == 0


@settings(max_examples=scaled(100))
@given(documents(FAULTS))
def test_two_members_of_the_registry_never_own_a_partition_at_the_same_time(document):
    """Whatever is lost, cut or frozen: one of two owners has lost its session, and does not know it yet."""
    trace, registry = run(document, "watcher")
    seen = Registered(trace)
    assert seen.twice == []
    assert measure(trace, registry)["double_owned_partition_seconds"] == 0 or seen.expired


def running_at_end(trace):
    now = Timeline()
    now.read(trace)
    return now.consumers.keys()


def check_rest(document, strategy):
    """Everybody subscribes to the same topics: when the last change is over, every partition has an owner."""
    trace, registry = run(document, strategy)
    history = History(trace, registry)
    assert trace.events[-1].event.group_state == "Settled"
    assert history.stops.unowned_at_end == []
    settled = history.last_settled
    assert settled is not None
    assert settled.members.keys() == running_at_end(trace), "a consumer is not in the group"
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
