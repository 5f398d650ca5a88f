"""Faults of parts of the network and of the log: what does not pass, what is late, and what follows."""

import pytest

from coordinator_core.protocol import events as ev
from coordinator_core.registry.registry import default_registry
from rebalance_lab.simulation.run import Run
from rebalance_lab.simulation.world.troubles import Blocked, Troubles
from tests.rebalance_lab.simulation.runs import seen
from tests.rebalance_lab.simulation.runs import watched as run
from tests.rebalance_lab.simulation.test_run import scenario_of

REGISTRY = default_registry()
QUICK = {"session.timeout.ms": 10_000}


def removed(trace):
    return [(line.at_ms, line.event.reason) for line in seen(trace, ev.MemberRemoved)]


def healed(trace):
    return [line.at_ms for line in seen(trace, ev.Changed) if line.event.kind == "heal"]


def test_messages_of_one_way_and_one_broker_are_lost_until_the_end():
    troubles = Troubles()
    troubles.block(Blocked("c", 1, "requests"), 100)
    messages = [("c", 1, True), ("c", 1, False), ("c", 0, True), ("d", 1, True)]
    lost = [troubles.lose(client, node, there=there, now_ms=99) for client, node, there in messages]
    assert lost == [True, False, False, False]
    assert not troubles.lose("c", 1, there=True, now_ms=100)


def test_of_equal_cuts_the_one_that_ends_last_counts():
    troubles, cut = Troubles(), Blocked("c", None, "both")
    troubles.block(cut, 100)
    troubles.block(cut, 50)
    assert not troubles.heals(cut, 50)
    assert troubles.lose("c", 2, there=False, now_ms=99)
    assert troubles.heals(cut, 100)
    assert not troubles.heals(cut, 100)


def test_a_message_is_late_by_what_both_nodes_are():
    troubles = Troubles()
    troubles.slow("c", 30, 100)
    troubles.slow(1, 5, 200)
    late = [troubles.late_ms("c", 1, 99), troubles.late_ms("c", 1, 100), troubles.late_ms("d", 0, 99)]
    assert late == [35, 5, 0]


def test_they_are_over_when_late_messages_have_arrived():
    troubles = Troubles()
    assert troubles.are_over(0)
    troubles.slow("c", 30, 100)
    assert [troubles.are_over(ms) for ms in (99, 100, 159, 160)] == [False, False, False, True]
    troubles.end(10)
    assert [troubles.are_over(ms) for ms in (11, 69, 70)] == [False, False, True]


@pytest.mark.parametrize("way", ["requests", "responses", "both"])
def test_a_member_is_removed_whichever_way_is_cut(way):
    """Without responses it takes the coordinator as lost, and sends no heartbeats."""
    cut = {"at": "30s", "cut": "c0", "for": "60s", "way": way, "broker": 0}
    trace, _ = run(scenario_of(cut, config=QUICK))
    assert [reason for _, reason in removed(trace)] == ["session expired"]
    assert seen(trace, ev.MemberCutOff) == []
    assert healed(trace) == [90_000]


def test_a_cut_from_another_broker_than_the_coordinator_changes_nothing():
    of_group = Run(scenario_of(brokers=3), REGISTRY.strategy("range"), REGISTRY).brokers.coordinator_node()
    rounds = []
    for broker in range(3):
        cut = {"at": "30s", "cut": "c0", "for": "60s", "broker": broker}
        trace, _ = run(scenario_of(cut, brokers=3, config=QUICK))
        rounds.append(bool(removed(trace)))
    assert rounds == [broker == of_group for broker in range(3)]


def test_calm_ends_a_partial_cut():
    events = [{"at": "30s", "cut": "c0", "for": "60s", "way": "requests"}, {"at": "32s", "calm": True}]
    trace, _ = run(scenario_of(*events, config=QUICK))
    assert removed(trace) == []
    assert healed(trace) == []


@pytest.mark.parametrize("node", [{"member": "c0"}, {"broker": 0}])
def test_a_round_takes_longer_by_what_is_late(node):
    """A member joins and syncs: two round trips, each late both ways."""
    took = []
    for by in ("1ms", "401ms"):
        slow = {"at": "29s", "slow": {**node, "by": by, "for": "60s"}}
        join = {"at": "30s", "join": {"id": "x", "topics": ["t"], "start_up": 0}}
        trace, _ = run(scenario_of(slow, join, members=1), "range")
        began, ended = (
            seen(trace, ev.GroupStateChanged, after=s)[-1] for s in ("PreparingRebalance", "Stable")
        )
        took.append(ended.at_ms - began.at_ms)
    assert took[1] - took[0] >= 800


def test_a_coordinator_fails_between_its_append_and_its_answers():
    """That it has handed out a generation is in the log: the next coordinator begins another one."""
    join = {"at": "30s", "join": {"id": "x", "topics": ["t"], "start_up": 0}}
    fails = {"at": "30s", "coordinator_failover": {"down": "1s", "after": "append"}}
    scenario = scenario_of(fails, join, brokers=3, config={"enable.auto.commit": False})
    trace, watch = run(scenario, "range")
    assert len(seen(trace, ev.CoordinatorFailed)) == 1
    assert [line.event.generation for line in seen(trace, ev.GenerationStarted)] == [1, 3]
    assert watch.settled() == []


def test_a_failover_that_no_append_begins_does_not_happen_after_calm():
    events = [
        {"at": "60s", "coordinator_failover": {"down": "1s", "after": "append"}},
        {"at": "61s", "calm": True},
        {"at": "90s", "leave": "c0"},
    ]
    trace, _ = run(scenario_of(*events, brokers=3, config={"enable.auto.commit": False}))
    assert seen(trace, ev.CoordinatorFailed) == []


def test_a_group_forms_when_its_log_can_be_written_again():
    trace, watch = run(scenario_of({"at": 0, "log_fault": {"for": "40s"}}), "range")
    stable = seen(trace, ev.GroupStateChanged, after="Stable")
    assert stable[0].at_ms >= 40_000
    assert watch.settled() == []


def test_an_assignment_waits_for_a_late_log():
    took = []
    for by in ("1ms", "2001ms"):
        trace, _ = run(scenario_of({"at": 0, "log_fault": {"for": "20s", "by": by}}, members=1), "range")
        began, ended = (
            seen(trace, ev.GroupStateChanged, after=after)[0].at_ms
            for after in ("CompletingRebalance", "Stable")
        )
        took.append(ended - began)
    assert took[1] - took[0] >= 2_000


@pytest.mark.parametrize(
    ("fault", "over_ms"),
    [
        ({"log_fault": {"for": "20s"}}, 80_000),
        ({"log_fault": {"for": "20s", "by": "3s"}}, 86_000),
        ({"coordinator_failover": {"after": "append"}}, None),
    ],
)
def test_nothing_is_left_out_while_the_log_has_a_fault_or_appends_are_under_way(fault, over_ms):
    quiet = {"enable.auto.commit": False}
    run = Run(scenario_of({"at": "60s", **fault}, config=quiet), REGISTRY.strategy("range"), REGISTRY)
    troubled = []
    for at_ms in (59_999, 60_000, *([] if over_ms is None else [over_ms - 1, over_ms]), 150_000):
        run.advance(at_ms)
        troubled.append(run.brokers.has_trouble)
    assert troubled == ([False, True, True, False, False] if over_ms is not None else [False, True, True])
