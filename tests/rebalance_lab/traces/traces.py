"""Traces written by hand: events with their times, in few words; and their findings."""

from coordinator_core.protocol import events as ev
from coordinator_core.registry.registry import default_registry
from rebalance_lab.scenarios.scenario import parse_scenario
from rebalance_lab.simulation.run import simulate
from rebalance_lab.traces.findings import findings, findings_at_end
from rebalance_lab.traces.history import History
from rebalance_lab.traces.timeline import Timeline
from rebalance_lab.traces.trace import Trace

GROUP = "g"


def trace_of(*timed, topics, duration_ms=100_000, messages=None, strategy="range", from_ms=None):
    """A whole trace around pairs of a time and an event; lists of pairs are unpacked."""
    pairs = [pair for each in timed for pair in (each if isinstance(each, list) else [each])]
    first = ev.RunStarted(
        scenario="by-hand",
        strategy=strategy,
        seed=1,
        duration_ms=duration_ms,
        topics=topics,
        measure_from_ms=from_ms,
    )
    last = ev.RunEnded(group_state="Stable", generation=1, messages=messages or {})
    everything = [(0, first), *pairs, (duration_ms, last)]
    return Trace(tuple(ev.TraceEvent(at_ms, event) for at_ms, event in everything))


def history_of(*timed, **options):
    return History(trace_of(*timed, **options))


def two_members(*timed, topics=None, **options):
    return history_of(
        (0, started("a", "t")), (0, started("b", "t")), *timed, topics=topics or {"t": 4}, **options
    )


def found(*timed, topics=None, **options):
    return found_twice(history_of(*timed, topics=topics or {"t": 4}, **options))


def found_twice(history):
    """The findings of a history, which are those of its trace with a timeline that has read it."""
    now = Timeline()
    now.read(history.trace)
    texts = findings(history)
    assert findings_at_end(history.trace, now) == texts
    return texts


def history_in(document, strategy="range"):
    """The history of a simulated run."""
    registry = default_registry()
    return History(simulate(parse_scenario(document, where="by-hand", registry=registry), strategy, registry))


def found_in(document, strategy="range"):
    return found_twice(history_in(document, strategy))


def started(client, *topics, instance_id=None, process_rate=None):
    return ev.MemberStarted(
        client=client, instance_id=instance_id, topics=list(topics), process_rate=process_rate
    )


def stopped(client, how="closed"):
    return ev.MemberStopped(client=client, how=how)


def changed(kind="join", target="x", cause=""):
    return ev.Changed(kind=kind, target=target, cause=cause)


def state(after, *, before="", cause="", generation=1):
    return ev.GroupStateChanged(group=GROUP, before=before, after=after, generation=generation, cause=cause)


def generation(number, *members, leader="", protocol="range"):
    return ev.GenerationStarted(
        group=GROUP, generation=number, protocol=protocol, leader=leader, members=list(members)
    )


def joined(client, number, member_id=""):
    return ev.Joined(
        client=client, member_id=member_id or client, generation=number, protocol="range", leader=False
    )


def removed(member_id, reason="session expired"):
    return ev.MemberRemoved(group=GROUP, member_id=member_id, reason=reason)


def assigned(client, number, owned, added=None):
    return ev.Assigned(client=client, generation=number, added=owned if added is None else added, owned=owned)


def revoked(client, partitions, number=1):
    return ev.Revoked(client=client, generation=number, partitions=partitions)


def lost(client, partitions, number=1):
    return ev.Lost(client=client, generation=number, partitions=partitions)


def measured(lag, *, max_lag=None, lag_record_seconds=0.0, duplicates=0.0):
    return ev.LagMeasured(
        lag=lag,
        max_lag=lag if max_lag is None else max_lag,
        lag_record_seconds=lag_record_seconds,
        duplicates=duplicates,
        by_client={},
    )


def rates(topic, *per_partition):
    return ev.RatesChanged(topic=topic, rates=list(per_partition))


def round_at(at_ms, number, owned, *, stable_ms=None):
    """A round in which everyone joins at ``at_ms`` and has its assignment at ``stable_ms`` (the same)."""
    stable_ms = at_ms if stable_ms is None else stable_ms
    begun = [(at_ms, state("PreparingRebalance", generation=number - 1)), (at_ms, generation(number, *owned))]
    begun += [(at_ms, joined(client, number)) for client in owned]
    stable = [(stable_ms, state("Stable", generation=number))]
    return begun + stable + [(stable_ms, assigned(c, number, p)) for c, p in owned.items()]


LATE_TAKE_OVER = [
    *[(0, started(name, "t")) for name in ("a", "b")],
    *round_at(1_000, 1, {"a": {"t": [0, 1]}, "b": {}}),
    (5_000, state("PreparingRebalance", cause="b rejoined")),
    (5_100, generation(2, "a", "b")),
    *[(5_100, joined(name, 2)) for name in ("a", "b")],
    (5_200, state("Stable", generation=2)),
    (5_200, revoked("a", {"t": [1]}, 2)),
    (5_200, assigned("a", 2, {"t": [0]}, added={})),
    (6_000, state("PreparingRebalance", cause="a rejoined")),
    (6_900, assigned("b", 2, {"t": [1]})),
    (7_000, generation(3, "a", "b")),
]
"""A member takes over the assignment of generation 2 in its next poll, when the next round has begun."""


SHARED = [
    (0, started("a", "t", instance_id="one", process_rate=1.0)),
    (0, started("b", "t", process_rate=1.0)),
    *round_at(1_000, 1, {"a": {"t": [0, 1]}, "b": {"t": [2, 3]}}),
]
