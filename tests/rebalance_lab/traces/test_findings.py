"""What a run that ended badly says, on traces of a few events, and in a simulated run."""

from dataclasses import replace

import pytest

from coordinator_core.protocol import events as ev
from coordinator_core.registry.registry import default_registry
from rebalance_lab.scenarios.scenario import parse_scenario
from rebalance_lab.simulation.run import simulate
from rebalance_lab.traces.findings import findings
from rebalance_lab.traces.history import History
from rebalance_lab.traces.invariants import Invariants, check_trace
from tests.rebalance_lab.traces.traces import (
    SHARED,
    assigned,
    found,
    found_twice,
    generation,
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


# --- the end of a run


@pytest.mark.parametrize(
    "timed",
    [
        [],
        [(9_000, stopped("a")), (9_000, stopped("b"))],
        [(9_000, ev.MemberPaused(client="a"))],
        [(9_000, revoked("a", {"t": [0]})), (20_000, assigned("b", 1, {"t": [0, 2, 3]}, added={"t": [0]}))],
    ],
)
def test_a_run_that_ended_well_says_nothing(timed):
    """All partitions have an owner, which may stand still, or nobody subscribes any longer."""
    assert found(SHARED, timed) == ()


def test_a_run_of_nobody_says_nothing():
    assert found() == ()


UNOWNED = {
    "a dead member": (
        [(60_000, stopped("a", "crashed"))],
        "2 partitions have no owner at the end, since 60 s (t 0-1): the group still counted on a member that"
        " had ended; make the duration of the scenario longer, or session.timeout.ms shorter",
    ),
    "a member that stands still": (
        [
            (60_000, revoked("b", {"t": [2, 3]})),
            (60_000, generation(2, "a", "b")),
            (60_000, joined("a", 2)),
            (60_000, joined("b", 2)),
            (60_000, state("Stable")),
            (60_000, assigned("a", 2, {"t": [0, 1]})),
            (60_000, ev.MemberCutOff(client="b")),
        ],
        "2 partitions have no owner at the end, since 60 s (t 2-3): the group still counted on a member that"
        " stood still or was cut off; make the duration of the scenario longer, or max.poll.interval.ms"
        " (pauses) or session.timeout.ms (freezes, cuts) shorter",
    ),
    "new partitions": (
        [(60_000, ev.PartitionsAdded(topic="t", partitions=6))],
        "2 partitions have no owner at the end, since 60 s (t 4-5): the group rested, and its assignment did"
        " not have all partitions; make the duration of the scenario longer than metadata.max.age.ms after a"
        " change of topics, or start a round",
    ),
    "a static member that is away": (
        [(60_000, revoked("a", {"t": [0, 1]})), (60_000, stopped("a"))],
        "2 partitions have no owner at the end, since 60 s (t 0-1): a static member was away; make the"
        " duration of the scenario longer, or start a member",
    ),
}


@pytest.mark.parametrize("why", UNOWNED)
def test_partitions_without_an_owner_at_the_end_are_listed_with_the_cause(why):
    timed, text = UNOWNED[why]
    assert found(SHARED, timed) == (text,)


CUT = {
    "a round": (
        [(60_000, revoked("b", {"t": [3]})), (60_000, state("PreparingRebalance"))],
        "a round waited for members to join it; make the duration of the scenario longer, or batches shorter"
        " (max.poll.records)",
    ),
    "the messages of a round": (
        [(60_000, revoked("b", {"t": [3]})), (60_000, state("CompletingRebalance"))],
        "the assignment of a round was under way; make the duration of the scenario longer",
    ),
    "a poll to come": (
        [(60_000, revoked("b", {"t": [3]}))],
        "a member had yet to take over its assignment, or to rejoin; make the duration of the scenario"
        " longer",
    ),
}


@pytest.mark.parametrize("why", CUT)
@pytest.mark.parametrize(("end_ms", "is_fault"), [(60_000, False), (360_000, False), (360_001, True)])
def test_a_handover_that_the_end_of_the_run_cuts_is_no_fault_unless_it_takes_longer_than_a_round(
    why, end_ms, is_fault
):
    timed, reason = CUT[why]
    text = f"1 partition has no owner at the end, since 60 s (t 3): {reason}"
    found_texts = found_twice(history_of(SHARED, timed, topics={"t": 4}, duration_ms=end_ms))
    assert found_texts == ((text,) if is_fault else ())


def test_a_rolling_restart_that_the_end_of_the_run_cuts_is_no_fault():
    """Members of a cooperative round had given up partitions that others were about to take over."""
    document = {
        "name": "cut",
        "duration": "62s",
        "phase": "0s",
        "topics": {"t": {"partitions": 6, "rate": 60}},
        "members": [{"id": "c", "count": 3, "topics": ["t"], "process_rate": 20}],
        "events": [{"at": "20s", "rolling_restart": {"every": "12s", "down": "8s"}}],
        "config": {"session.timeout.ms": 6_000, "max.poll.records": 20},
    }
    scenario = parse_scenario(document, where="cut")
    unowned = 0
    for seed in (0, 1, 6):
        trace = simulate(replace(scenario, seed=seed), "cooperative-sticky", default_registry())
        unowned += bool(History(trace).stops.unowned_at_end)
        assert found_twice(History(trace)) == ()
    assert unowned == 3


def test_each_cause_is_a_finding_of_its_own():
    timed = [(50_000, ev.PartitionsAdded(topic="t", partitions=5)), (60_000, stopped("a", "crashed"))]
    assert [text.split(":")[0] for text in found(SHARED, timed)] == [
        "2 partitions have no owner at the end, since 60 s (t 0-1)",
        "1 partition has no owner at the end, since 50 s (t 4)",
    ]


def test_a_group_that_never_rested_says_so():
    begun = [(0, started("a", "t")), (0, assigned("a", 1, {"t": [0, 1, 2, 3]}))]
    assert found(begun, (1_000, state("PreparingRebalance"))) == (
        "the group never rested, and was PreparingRebalance at the end: make the duration of the scenario"
        " longer, or batches shorter (max.poll.records)",
    )
    assert found(begun) == (
        "the group never rested, and was without members at the end: make the duration of the scenario"
        " longer, or batches shorter (max.poll.records)",
    )


# --- consumers that failed


def test_consumers_that_failed_are_named_by_error_with_what_to_change():
    timed = [(0, started(f"c{n}", "t")) for n in range(6)]
    timed += [(1_000, failed(f"c{n}", "JoinGroup: INVALID_SESSION_TIMEOUT")) for n in range(5)]
    timed += [(1_000, failed("c5", "JoinGroup: X"))]
    assert found(timed) == (
        "c0, c1, c2, c3 and 1 more failed: JoinGroup: INVALID_SESSION_TIMEOUT; set session.timeout.ms to a"
        " value from group.min.session.timeout.ms to group.max.session.timeout.ms of the brokers",
        "c5 failed: JoinGroup: X; see its meaning in Kafka's protocol",
    )


def test_a_consumer_that_failed_and_was_started_again_is_none_that_failed():
    assert found(SHARED, (5_000, failed("a", "X")), (5_000, started("a", "t"))) != ()
    timed = [(5_000, failed("b", "X")), (6_000, started("b", "t")), (7_000, assigned("b", 1, {"t": [2, 3]}))]
    assert found(SHARED, timed) == ()


@pytest.mark.parametrize(("instance_id", "count"), [("one", 0), ("other", 1)])
def test_a_fenced_consumer_was_replaced_by_the_one_that_has_its_instance_id(instance_id, count):
    timed = [
        (5_000, started("a2", "t", instance_id=instance_id)),
        (5_000, assigned("a2", 1, {"t": [0, 1]})),
        (9_000, failed("a", "Heartbeat: FENCED_INSTANCE_ID")),
    ]
    assert len(found(SHARED, timed)) == count


# --- batches


def limited(client, *, batch_ms=500_000, records=500):
    return ev.ApplicationStarted(
        client=client, batch_ms=batch_ms, max_poll_records=records, max_poll_interval_ms=300_000
    )


LEFT = "max.poll.interval.ms has passed without a poll"
PAUSED = ev.MemberPaused(client="b")
BATCHES = [*SHARED, (0, limited("a")), (0, limited("b"))]


def test_batches_that_outlast_the_poll_interval_are_told_with_the_members_and_what_to_change():
    timed = [(9_000, removed("b", LEFT)), (9_500, joined("b", 2)), (9_600, removed("b", LEFT))]
    assert found(BATCHES, timed) == (
        "batches of 500 s on average outlast max.poll.interval.ms (300 s): b left the group 2 times in all;"
        " make max.poll.records (now 500) smaller, or max.poll.interval.ms longer",
    )
    (text,) = found(BATCHES, (9_000, removed("b", LEFT)), (9_000, removed("a", LEFT)))
    assert "a, b left the group 2 times in all; make" in text
    assert "b left the group once; make" in found(BATCHES, (9_000, removed("b", LEFT)))[0]


def test_batches_of_different_lengths_are_findings_of_their_own():
    timed = [(0, limited("b", batch_ms=400_000)), (9_000, removed("a", LEFT)), (9_000, removed("b", LEFT))]
    assert [text.split(" on")[0] for text in found(BATCHES, timed)] == [
        "batches of 500 s",
        "batches of 400 s",
    ]


@pytest.mark.parametrize(
    ("timed", "count"),
    [
        ([(9_000, removed("a", "session expired"))], 1),
        ([(9_000, removed("b", "session expired"))], 0),
        ([(9_000, removed("b", "left"))], 0),
        ([(9_000, PAUSED), (9_000, removed("b", LEFT))], 0),
        ([(9_000, ev.MemberCutOff(client="a")), (9_000, removed("a", "session expired"))], 0),
        ([(8_000, stopped("a", "crashed")), (9_000, started("a", "t")), (9_000, removed("a", LEFT))], 0),
        ([(8_000, PAUSED), (9_000, ev.MemberResumed(client="b")), (9_000, removed("b", LEFT))], 1),
        ([(8_000, limited("b", batch_ms=74_999)), (9_000, removed("b", LEFT))], 0),
    ],
)
def test_a_member_that_is_removed_because_of_its_batches_runs_and_has_long_batches(timed, count):
    """A static member, as `a`, sends no LeaveGroup: its session expires."""
    assert sum(text.startswith("batches") for text in found(BATCHES, timed)) == count


@pytest.mark.parametrize("strategy", ["range", "cooperative-sticky+static"])
def test_a_simulated_group_whose_batches_outlast_the_poll_interval_says_so(strategy):
    document = {
        "name": "storm",
        "duration": "20m",
        "topics": {"t": {"partitions": 4, "rate": 10, "backlog": 100_000}},
        "members": [{"id": "m", "count": 2, "topics": ["t"], "process_rate": 1, "batch_overhead": 0}],
    }
    found = found_twice(History(simulate(parse_scenario(document, where="s"), strategy, default_registry())))
    text = next(text for text in found if text.startswith("batches"))
    assert text.startswith("batches of 500 s on average outlast max.poll.interval.ms (300 s): m-0, m-1 left")
    document["config"] = {"max.poll.records": 150}
    scenario = parse_scenario(document, where="s")
    assert found_twice(History(simulate(scenario, strategy, default_registry()))) == ()


def test_polls_that_outlast_their_interval_by_themselves_are_told_too():
    """The members have no process_rate: their records take no time."""
    document = {
        "name": "polls",
        "duration": "3m",
        "topics": {"t": {"partitions": 4, "rate": 4_000}},
        "members": [{"id": "m", "count": 2, "topics": ["t"], "batch_overhead": "25s"}],
        "config": {"max.poll.interval.ms": 10_000},
    }
    trace = simulate(parse_scenario(document, where="s"), "range", default_registry())
    (text,) = found_twice(History(trace))
    assert text.startswith("batches of 25 s on average outlast max.poll.interval.ms (10 s): m-0, m-1 left")
    assert text.endswith(
        "times in all; make max.poll.records (now 500) smaller, or max.poll.interval.ms longer"
    )


# --- the leader that does not notice


def replaced(old, new):
    return ev.MemberReplaced(group="g", instance_id="one", old_member_id=old, new_member_id=new)


def with_leader(leader):
    return [
        (0, started("a", "t", instance_id="one")),
        (0, started("b", "t")),
        (0, generation(1, "a", "b", leader=leader)),
        (0, joined("a", 1)),
        (0, joined("b", 1)),
        (0, state("Stable")),
        (0, assigned("a", 1, {"t": [0, 1]})),
        (0, assigned("b", 1, {"t": [2, 3]})),
    ]


ADDED = (5_000, ev.PartitionsAdded(topic="t", partitions=6))
BACK = [(6_000, replaced("a", "a2")), (6_000, joined("a", 1, "a2")), (6_000, assigned("a", 1, {"t": [0, 1]}))]


@pytest.mark.parametrize(
    ("timed", "unnoticed"),
    [
        ([with_leader("a"), ADDED, BACK], True),
        ([with_leader("b"), ADDED, BACK], False),
        ([with_leader("a"), [(at_ms - 2_000, event) for at_ms, event in BACK], ADDED], False),
        ([with_leader("a"), ADDED, BACK, (9_000, generation(2, "a2", "b", leader="a2"))], False),
        ([with_leader("a"), ADDED, [(5_500, event) for _, event in with_leader("a")[2:]], BACK], True),
    ],
)
def test_a_leader_that_comes_back_after_partitions_were_added_does_not_notice_them(timed, unnoticed):
    """A round between the two does not notice them either, if the metadata of its leader are older."""
    assert any("in Kafka" in text for text in found(*timed)) is unnoticed


def test_a_simulated_run_says_that_partitions_stay_unowned_when_a_static_leader_comes_back():
    """Partitions are added while the leader is away. It comes back within its session, takes the topic as it
    finds it, and starts no round, though nine minutes pass and metadata is refreshed every 30 s."""
    document = {
        "name": "hole",
        "duration": "10m",
        "topics": {"t": {"partitions": 4}},
        "members": [{"id": m, "topics": ["t"], "instance_id": m} for m in ("a", "b")],
        "config": {"metadata.max.age.ms": "30s"},
        "events": [
            {"at": "60s", "leave": "a"},
            {"at": "65s", "add_partitions": {"t": 6}},
            {"at": "70s", "restart": "a"},
        ],
    }
    scenario = parse_scenario(document, where="hole")
    (text,) = found_twice(History(simulate(scenario, "range", default_registry())))
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
    registry = default_registry()
    scenario = parse_scenario(document, where="family.yaml", registry=registry)
    return findings(History(simulate(scenario, strategy, registry)))


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
