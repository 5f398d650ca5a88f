"""Why rounds wait: by hand for each cause, and against the heartbeats of simulated runs."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from coordinator_core.protocol import events as ev
from coordinator_core.protocol.messages import HeartbeatResponse
from coordinator_core.registry.registry import default_registry
from rebalance_lab.scenarios.scenario import parse_scenario
from rebalance_lab.simulation.run import simulate
from rebalance_lab.traces.causes import WAITS
from rebalance_lab.traces.history import History
from rebalance_lab.traces.rounds import rounds
from tests.examples import scaled
from tests.rebalance_lab.traces.traces import (
    history_of,
    rates,
    removed,
    revoked,
    round_at,
    started,
    state,
    stopped,
)


def waits_of(*timed, **options):
    causes_ms = history_of(*timed, topics={"t": 2}, from_ms=0, **options).stops.causes_ms
    return {cause.removeprefix("waiting_"): causes_ms[cause] for cause in WAITS if causes_ms[cause]}


def application(client, batch_ms):
    """An application that handles 100 records/s; the rest of the time of a batch of 100 is its overhead."""
    return ev.ApplicationStarted(
        client=client, batch_ms=batch_ms, max_poll_records=100, max_poll_interval_ms=300_000
    )


def member(client, batch_ms=0, **options):
    if not batch_ms:
        return [(0, started(client, "t", **options))]
    return [(0, started(client, "t", process_rate=100.0, **options)), (0, application(client, batch_ms))]


def two_rest(batch_ms=0, **options):
    return [
        *member("a"),
        *member("b", batch_ms, **options),
        *round_at(0, 1, {"a": {"t": [0]}, "b": {"t": [1]}}),
    ]


def joins(client):
    return ev.ClientStateChanged(client=client, before="stable", after="preparing-rebalance")


def waiting(*timed, until_ms=60_000):
    """A round that waits from 40 s on, for which a has given up its partition and joined."""
    return [
        (40_000, state("PreparingRebalance")),
        (40_000, revoked("a", {"t": [0]})),
        (40_000, joins("a")),
        *timed,
        (until_ms, state("CompletingRebalance")),
    ]


def test_a_member_without_batches_joins_when_its_heartbeat_is_answered():
    assert waits_of(two_rest(), waiting((42_000, joins("b")), until_ms=42_003)) == {"heartbeat": 2_003}


def test_a_member_is_late_by_a_heartbeat_and_then_by_a_batch():
    """There was a heartbeat every 3 s, and a batch takes 5 s: of 7 s at least 4 s are of the batch, 2 s of
    the heartbeat, and the trace does not show of which the last second is."""
    load = (0, rates("t", 0, 95))
    timed = waiting((47_000, joins("b")), until_ms=47_000)
    beats = {"Heartbeat": (40 + 47) // 3}
    found = waits_of(two_rest(5_000), load, timed, messages=beats)
    assert found == {"heartbeat": 2_000, "batch": 4_000, "unknown": 1_000}


def test_without_load_a_member_is_in_no_batch():
    timed = waiting((43_000, joins("b")), until_ms=43_000)
    assert waits_of(two_rest(5_000), timed, messages={"Heartbeat": 50}) == {"heartbeat": 3_000}


@pytest.mark.parametrize(
    "event", [stopped("b", "crashed"), ev.MemberPaused(client="b"), ev.MemberCutOff(client="b")]
)
def test_a_member_that_is_absent_is_waited_for_until_it_is_removed(event):
    timed = [(39_000, event), *waiting((60_000, removed("b")))]
    assert waits_of(two_rest(), timed) == {"session": 20_000}


def test_a_member_that_has_started_again_as_another_one_is_absent():
    timed = [
        (30_000, stopped("b", "crashed")),
        (35_000, started("b", "t")),
        *waiting((45_000, joins("b")), (60_000, removed("b"))),
    ]
    assert waits_of(two_rest(), timed) == {"session": 20_000}


def test_a_static_member_that_is_starting_is_waited_for():
    timed = [
        (39_000, stopped("b", "crashed")),
        *waiting((45_000, started("b", "t", instance_id="i")), (60_000, joins("b"))),
    ]
    assert waits_of(two_rest(instance_id="i"), timed) == {"session": 5_000, "start": 15_000}


def test_a_member_in_a_callback_joins_after_it():
    calls = ev.WorkStopped(client="b", partitions={"t": [1]}, why="callback")
    returns = ev.WorkStarted(client="b", partitions={"t": [1]})
    timed = [(35_000, calls), *waiting((55_000, returns), (60_000, joins("b")))]
    assert waits_of(two_rest(), timed) == {"callback": 15_000, "heartbeat": 5_000}


def test_a_join_that_does_not_arrive_at_once_waits_for_the_callback_of_a_revocation():
    timed = waiting((41_000, revoked("b", {"t": [1]})), (41_000, joins("b")), until_ms=46_000)
    found = waits_of(two_rest(), timed)
    assert found == {"heartbeat": 1_000, "callback": 5_000 + 5_000}


def test_a_group_that_was_empty_waits_for_the_initial_delay():
    timed = [(30_000, state("Empty")), (40_000, state("PreparingRebalance", before="Empty"))]
    found = waits_of(two_rest(), [(30_000, revoked("a", {"t": [0]}))], timed)
    assert found == {"delay": 60_000}


def test_the_wait_before_the_window_does_not_count():
    timed = waiting((42_000, joins("b")), until_ms=42_000)
    stops = history_of(two_rest(), timed, topics={"t": 2}, from_ms=41_000).stops
    assert stops.causes_ms["waiting_heartbeat"] == 1_000


def test_a_round_that_nobody_joins_before_the_end_of_the_run_waits_for_the_absent_member():
    timed = [*waiting()[:-1], (70_000, stopped("b", "crashed"))]
    assert waits_of(two_rest(), timed) == {"heartbeat": 30_000, "session": 30_000}


@settings(max_examples=scaled(60))
@given(
    st.integers(0, 2**16),
    st.sampled_from([0, 5, 1_000, 2_000, 6_000]),
    st.sampled_from([30, 100, 250]),
    st.sampled_from(["range", "cooperative-sticky"]),
)
def test_a_member_has_learned_of_a_round_when_its_heartbeat_was_answered(seed, overhead_ms, rate, strategy):
    """What counts as waiting for heartbeats or batches is no more than the true time, but for the spread of
    batches and heartbeats."""
    document = {
        "name": "x",
        "duration": "4m",
        "seed": seed,
        "topics": {"t": {"partitions": 1, "rate": rate / 4}, "u": {"partitions": 12, "rate": rate}},
        "members": [
            {
                "id": "m",
                "count": 3,
                "topics": ["t", "u"],
                "process_rate": 200,
                "record_cv": 0,
                "batch_overhead": overhead_ms,
            }
        ],
        "events": [{"at": "60s", "leave": "m-1"}, {"at": "120s", "restart": "m-1"}],
    }
    exchanges = []
    scenario = parse_scenario(document, where="x")
    trace = simulate(scenario, strategy, default_registry(), exchanged=exchanges.append, every_message=True)
    learned_ms = {}
    for each in exchanges:
        if isinstance(each.response, HeartbeatResponse) and each.response.error:
            learned_ms.setdefault(each.client, []).append(each.answered_ms)
    before_ms, after_ms = true_waits(trace, learned_ms)
    assert all(sum(entry.waits.values()) in (0, entry.waited_ms) for entry in rounds(trace))
    causes_ms = History(trace).stops.causes_ms
    assert causes_ms["waiting_heartbeat"] <= 13 * (before_ms + 600)
    assert causes_ms["waiting_batch"] <= 13 * (after_ms + 600)


def true_waits(trace, learned_ms):
    """Return how long the last members to join had not learned of their rounds, and how long they had."""
    before_ms = after_ms = began_ms = 0
    joined_ms = {}
    for at_ms, event in ((line.at_ms, line.event) for line in trace.events):
        if isinstance(event, ev.ClientStateChanged) and event.after == "preparing-rebalance":
            joined_ms[event.client] = at_ms
        if not isinstance(event, ev.GroupStateChanged):
            continue
        if event.after == "PreparingRebalance":
            began_ms, joined_ms = at_ms, {}
        elif event.before == "PreparingRebalance" and joined_ms:
            last = max(joined_ms, key=joined_ms.get)
            known = [ms for ms in learned_ms.get(last, ()) if began_ms <= ms <= joined_ms[last]]
            since_ms = known[0] if known else joined_ms[last]
            before_ms += since_ms - began_ms
            after_ms += at_ms - since_ms
    return before_ms, after_ms
