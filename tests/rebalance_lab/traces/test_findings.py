"""What a run that ended badly says, on traces of a few events, and in a simulated run."""

from itertools import product

import pytest

from coordinator_core.protocol import events as ev
from coordinator_core.registry.registry import default_registry
from rebalance_lab.scenarios.scenario import parse_scenario
from rebalance_lab.simulation.run import simulate
from rebalance_lab.traces.findings import findings
from rebalance_lab.traces.history import History
from rebalance_lab.traces.invariants import Invariants, check_trace
from tests.approved import approved
from tests.rebalance_lab.traces.traces import (
    SHARED,
    assigned,
    found,
    found_in,
    found_twice,
    generation,
    history_in,
    history_of,
    joined,
    removed,
    revoked,
    round_at,
    started,
    state,
    stopped,
)


def failed(client, error):
    return ev.ConsumerFailed(client=client, error=error)


def replaced(old, new):
    return ev.MemberReplaced(group="g", instance_id="one", old_member_id=old, new_member_id=new)


def limited(client, *, batch_ms=500_000, records=500):
    return ev.ApplicationStarted(
        client=client, batch_ms=batch_ms, max_poll_records=records, max_poll_interval_ms=300_000
    )


def at(at_ms, *happened):
    return [(at_ms, event) for event in happened]


def with_leader(leader, at_ms=0):
    return at(
        at_ms,
        generation(1, "a", "b", leader=leader),
        joined("a", 1),
        joined("b", 1),
        state("Stable"),
        assigned("a", 1, {"t": [0, 1]}),
        assigned("b", 1, {"t": [2, 3]}),
    )


GROWS = ev.PartitionsAdded(topic="t", partitions=6)
PAUSED, RESUMED = ev.MemberPaused(client="b"), ev.MemberResumed(client="b")
LEFT = removed("b", "max.poll.interval.ms has passed without a poll")
A_LEFT = removed("a", "max.poll.interval.ms has passed without a poll")
EXPIRED = [removed(name, "session expired") for name in "ab"]
BATCHES = [*SHARED, *at(0, limited("a"), limited("b"))]
STATIC = at(0, started("a", "t", instance_id="one"), started("b", "t"))
BACK = [replaced("a", "a2"), joined("a", 1, "a2"), assigned("a", 1, {"t": [0, 1]})]
NEVER = at(0, started("a", "t"), assigned("a", 1, {"t": [0, 1, 2, 3]}))
CODES = ["JoinGroup: INVALID_SESSION_TIMEOUT"] * 5 + ["JoinGroup: X"]
CUT = [
    ("a round", [revoked("b", {"t": [3]}), state("PreparingRebalance")]),
    ("the messages of a round", [revoked("b", {"t": [3]}), state("CompletingRebalance")]),
    ("a poll to come", [revoked("b", {"t": [3]})]),
]

CASES = {
    "nobody has run": [],
    "all partitions have an owner": SHARED,
    "nobody subscribes any longer": [*SHARED, *at(9_000, stopped("a"), stopped("b"))],
    "an owner stands still": [*SHARED, *at(9_000, ev.MemberPaused(client="a"))],
    "a partition has had another owner": [
        *SHARED,
        *at(9_000, revoked("a", {"t": [0]})),
        *at(20_000, assigned("b", 1, {"t": [0, 2, 3]}, added={"t": [0]})),
    ],
    "a member has died": [*SHARED, *at(60_000, stopped("a", "crashed"))],
    "a member stands still that was to take over": [
        *SHARED,
        *at(60_000, revoked("b", {"t": [2, 3]}), generation(2, "a", "b"), joined("a", 2), joined("b", 2)),
        *at(60_000, state("Stable"), assigned("a", 2, {"t": [0, 1]}), ev.MemberCutOff(client="b")),
    ],
    "partitions are new": [*SHARED, *at(60_000, GROWS)],
    "a static member is away": [*SHARED, *at(60_000, revoked("a", {"t": [0, 1]}), stopped("a"))],
    "two causes": [
        *SHARED,
        *at(50_000, ev.PartitionsAdded(topic="t", partitions=5)),
        *at(60_000, stopped("a", "crashed")),
    ],
    "a group in its first round": [*NEVER, *at(1_000, state("PreparingRebalance"))],
    "a group without a state": NEVER,
    "six consumers have failed": [
        *[(0, started(f"c{n}", "t")) for n in range(6)],
        *[(1_000, failed(f"c{n}", code)) for n, code in enumerate(CODES)],
    ],
    "one has failed, and runs again without partitions": [
        *SHARED,
        *at(5_000, failed("a", "X"), started("a", "t")),
    ],
    "one has failed, and works again": [
        *SHARED,
        *at(5_000, failed("b", "X"), started("b", "t"), assigned("b", 1, {"t": [2, 3]})),
    ],
    **{
        f"one is fenced, and {what} runs": [
            *SHARED,
            *at(5_000, started("a2", "t", instance_id=instance), assigned("a2", 1, {"t": [0, 1]})),
            *at(9_000, failed("a", "Heartbeat: FENCED_INSTANCE_ID")),
        ]
        for what, instance in (("its successor", "one"), ("another one", "other"))
    },
    "a member leaves twice because of its batches": [*BATCHES, *at(9_000, LEFT, joined("b", 2), LEFT)],
    "two members leave because of their batches": [*BATCHES, *at(9_000, LEFT, A_LEFT)],
    "their batches differ": [*BATCHES, *at(0, limited("b", batch_ms=400_000)), *at(9_000, A_LEFT, LEFT)],
    "a static member is removed with its session": [*BATCHES, *at(9_000, EXPIRED[0])],
    "another one is removed with its session": [*BATCHES, *at(9_000, EXPIRED[1])],
    "a member leaves for good": [*BATCHES, *at(9_000, removed("b", "left"))],
    "a member that stands still does not poll": [*BATCHES, *at(9_000, PAUSED, LEFT)],
    "a member that has stood still does not poll": [*BATCHES, *at(8_000, PAUSED, RESUMED, LEFT)],
    "a static member that is cut off is removed": [
        *BATCHES,
        *at(9_000, ev.MemberCutOff(client="a"), EXPIRED[0]),
    ],
    "the limits of the process before do not count": [
        *BATCHES,
        *at(8_000, stopped("a", "crashed"), started("a", "t"), A_LEFT),
    ],
    "four batches fit into the interval": [*BATCHES, *at(9_000, limited("b", batch_ms=74_999), LEFT)],
    "the leader is back after partitions were added": [
        *STATIC,
        *with_leader("a"),
        *at(5_000, GROWS, *BACK),
    ],
    "another member is back": [*STATIC, *with_leader("b"), *at(5_000, GROWS, *BACK)],
    "the leader was back before": [*STATIC, *with_leader("a"), *at(5_000, *BACK, GROWS)],
    "a round follows": [
        *STATIC,
        *with_leader("a"),
        *at(5_000, GROWS, *BACK, generation(2, "a2", "b", leader="a2")),
    ],
    "a round with older metadata comes between": [
        *STATIC,
        *with_leader("a"),
        *at(5_000, GROWS),
        *with_leader("a", 5_500),
        *at(6_000, *BACK),
    ],
}


def test_the_findings_of_traces_by_hand():
    texts = {name: "\n".join(found(timed)) or "(none)" for name, timed in CASES.items()}
    for (name, events), end_ms in product(CUT, (60_000, 360_000, 360_001)):
        history = history_of(SHARED, at(60_000, *events), topics={"t": 4}, duration_ms=end_ms)
        title = f"{name} is cut after {(end_ms - 60_000) / 1_000:g} s by the end of the run"
        texts[title] = "\n".join(found_twice(history)) or "(none)"
    approved("findings", texts)


# --- simulated runs


def simulated(strategy="range", *, duration="3m", **fields):
    """The findings of a run of two members of a topic."""
    member = {"id": "m", "count": 2, "topics": ["t"], "process_rate": 1, "batch_overhead": 0}
    topics = {"t": {"partitions": 4, "rate": 10, "backlog": 100_000}}
    return found_in(
        {"name": "s", "duration": duration, "topics": topics, "members": [member], **fields}, strategy
    )


@pytest.mark.parametrize("seed", [0, 1, 6])
def test_a_rolling_restart_that_the_end_of_the_run_cuts_is_no_fault(seed):
    """Members of a cooperative round had given up partitions that others were about to take over."""
    document = {
        "name": "cut",
        "duration": "62s",
        "phase": "0s",
        "seed": seed,
        "topics": {"t": {"partitions": 6, "rate": 60}},
        "members": [{"id": "c", "count": 3, "topics": ["t"], "process_rate": 20}],
        "events": [{"at": "20s", "rolling_restart": {"every": "12s", "down": "8s"}}],
        "config": {"session.timeout.ms": 6_000, "max.poll.records": 20},
    }
    history = history_in(document, "cooperative-sticky")
    assert history.stops.unowned_at_end
    assert found_twice(history) == ()


@pytest.mark.parametrize("strategy", ["range", "cooperative-sticky+static"])
def test_a_simulated_group_whose_batches_outlast_the_poll_interval_says_so(strategy):
    text = next(text for text in simulated(strategy, duration="20m") if text.startswith("batches"))
    assert text.startswith("batches of 500 s on average outlast max.poll.interval.ms (300 s): m-0, m-1 left")
    assert simulated(strategy, duration="20m", config={"max.poll.records": 150}) == ()


def test_polls_that_outlast_their_interval_by_themselves_are_findings_too():
    """The members have no process_rate: their records take no time."""
    (text,) = simulated(
        topics={"t": {"partitions": 4, "rate": 4_000}},
        members=[{"id": "m", "count": 2, "topics": ["t"], "batch_overhead": "25s"}],
        config={"max.poll.interval.ms": 10_000},
    )
    assert text.startswith("batches of 25 s on average outlast max.poll.interval.ms (10 s): m-0, m-1 left")


def test_a_simulated_run_says_that_partitions_stay_unowned_when_a_static_leader_comes_back():
    """Partitions are added while the leader is away. It comes back within its session, takes the topic as it
    finds it, and starts no round, though nine minutes pass and metadata is refreshed every 30 s."""
    (text,) = simulated(
        duration="10m",
        topics={"t": {"partitions": 4}},
        members=[{"id": m, "topics": ["t"], "instance_id": m} for m in ("a", "b")],
        config={"metadata.max.age.ms": "30s"},
        events=[
            {"at": "60s", "leave": "a"},
            {"at": "65s", "add_partitions": {"t": 6}},
            {"at": "70s", "restart": "a"},
        ],
    )
    assert text.startswith(
        "2 partitions have no owner at the end, since 65 s (t 4-5): the group rested, and the"
    )
    assert text.endswith("let a member without an instance id join, or let a member leave the group")


# --- protocol families


def group(strategy, *events, duration="60s", **more):
    """The findings of four members on eight partitions, the fourth of which joins late."""
    member = {"topics": ["t"], "process_rate": 100}
    document = {
        "name": "family",
        "duration": duration,
        "seed": 1,
        "topics": {"t": {"partitions": 8, "rate": 80}, "u": {"partitions": 4, "rate": 4}},
        "members": [{"id": name, **member} for name in ("c1", "c2", "c3")],
        "events": list(events),
        "network": {"latency": ["1ms", "1ms"]},
        **more,
    }
    return found_in(document, strategy)


LATE = {"at": "29s", "lag_view": {"member": "c2", "by": "10s"}}
JOINS = {"at": "30s", "join": {"id": "c4", "topics": ["t"], "process_rate": 100}}


def test_a_member_of_a_registry_that_has_no_retries_left_is_named():
    """PROTOCOL 11.1: it stays without partitions until the next notice."""
    (text,) = group("watcher", LATE, JOINS)
    assert text == (
        "2 partitions have no owner at the end, since 42.954 s (t 4-5): others still had claims to them, and"
        " c3 has no retries left, and no share until the next notice; set rebalance.max.retries (now 4) or"
        " rebalance.backoff.ms higher"
    )
    assert group("watcher", LATE, JOINS, config={"rebalance.max.retries": 8}) == ()


def test_a_member_that_sees_a_change_late_has_yet_to_see_it():
    view = {"at": "29s", "lag_view": {"member": "c2", "by": "10m"}}
    assert group("rocketmq", view, JOINS, duration="36s") == ()
    (text,) = group("rocketmq", view, JOINS, duration="6m")
    assert text.endswith(
        ": a member had yet to see a change of the members; make the duration of the scenario longer"
    )
    (text,) = group("watcher", {"at": "50s", "crash": "c1"}, duration="52s")
    assert text.endswith("or zookeeper.session.timeout.ms shorter")


def test_shares_of_peers_that_do_not_subscribe_to_a_topic_belong_to_nobody():
    """PROTOCOL 11.7: members are per group, slices per topic."""
    (text,) = group("rocketmq", {"at": "30s", "subscribe": "c1", "topics": ["t", "u"]})
    assert "(u 2-3): each topic is divided between all members of the group" in text
    assert text.endswith("let all members subscribe to the same topics")


def test_lost_partitions_wait_for_their_member_while_the_delay_lasts():
    """PROTOCOL 11.6."""
    config = {"session.timeout.ms": 10_000, "heartbeat.interval.ms": 3_000}
    crash = {"at": "30s", "crash": "c2"}
    (text,) = group("cooperative-sticky+delay=60s", crash, duration="90s", config=config)
    assert text.split("): ")[1] == (
        "the group rested, and for 60 s after the last round it waits for lost members; make the duration of"
        " the scenario longer, or the delay shorter"
    )


def test_a_group_without_a_coordinator_that_never_rested_does_not_wait_for_batches():
    always = [{"at": "0s", "lag_view": {"member": name, "by": "100h"}} for name in ("c1", "c2", "c3")]
    texts = group("rocketmq", *always)
    assert texts[0].endswith("was Rebalancing at the end: make the duration of the scenario longer")


# --- static members that miss a round


def missing_a_round(instance_id, *, joins=(3,), assigned_at=3):
    """`a` owns all partitions, and does not join the round in which `b` gets two of them."""
    return [
        (0, started("a", "t", instance_id=instance_id)),
        *round_at(1_000, 1, {"a": {"t": [0, 1, 2, 3]}}),
        (2_000, started("b", "t")),
        (9_000, generation(2, "a", "b", leader="b")),
        (9_000, joined("b", 2)),
        (9_000, assigned("b", 2, {"t": [0, 1]})),
        *[(9_000 + number, generation(number, "a", "b", leader="b")) for number in joins],
        *[(9_000 + number, joined(name, number)) for number in joins for name in "ab"],
        (9_500, assigned("b", assigned_at, {"t": [0, 1]})),
        (9_900, revoked("a", {"t": [0, 1]})),
        (9_900, assigned("a", assigned_at, {"t": [2, 3]})),
        (9_900, state("Stable")),
    ]


def shared(history):
    """The times at which partitions have two owners, though no static member has missed a round."""
    violations = check_trace(history.trace)
    return [violation.at_ms for violation in violations if violation.rule == "one owner per partition"]


def test_a_static_member_that_missed_a_round_shares_partitions_as_in_kafka():
    history = history_of(*missing_a_round("one"), topics={"t": 4})
    assert found_twice(history) == (
        "a missed a round as static members, and others were given 2 partitions of theirs: until they took"
        " over their next assignment, both were valid owners, as in Kafka",
    )
    assert shared(history) == []


def test_two_owners_of_which_none_is_a_static_member_that_missed_a_round_break_a_rule():
    history = history_of(*missing_a_round(None), topics={"t": 4})
    assert found_twice(history) == ()
    assert set(shared(history)) == {9_003, 9_500}


def test_a_static_member_that_took_over_an_assignment_shares_nothing_any_longer():
    timed = [*missing_a_round("one"), (20_000, assigned("a", 3, {"t": [1, 2, 3]}, added={"t": [1]}))]
    assert shared(history_of(*timed, topics={"t": 4})) == [20_000]


def test_a_simulated_static_member_whose_join_is_lost_misses_a_round():
    every = {"topics": ["a", "b"]}
    document = {
        "name": "g",
        "duration": "2m",
        "seed": 1889377520,
        "topics": {"a": {"partitions": 4, "rate": 24_000}, "b": {"partitions": 13, "rate": 130}},
        "members": [
            {"id": "m0", **every},
            {"id": "m1", **every, "process_rate": 3_000, "record_cv": 0, "client": "kafka-python"},
            {"id": "m2", "topics_pattern": ".*", "process_rate": 50},
        ],
        "events": [
            {"at": 12_995, "crash": "m1"},
            {"at": 59_459, "restart": "m1"},
            {"at": 82_490, "pause": "m1", "for": "7s"},
        ],
        "config": {
            "max.poll.interval.ms": 20_000,
            "auto.commit.interval.ms": 50_000,
            "heartbeat.interval.ms": 2_000,
        },
        "network": {"latency": [1, 1], "loss": 0.01},
    }
    watch = Invariants()
    scenario = parse_scenario(document, where="g")
    trace = simulate(scenario, "cooperative-sticky+static", default_registry(), watch=watch)
    assert watch.violations == []
    (text,) = findings(History(trace))
    assert text.startswith(
        "m2 missed a round as static members, and others were given 3 partitions of theirs"
    )
