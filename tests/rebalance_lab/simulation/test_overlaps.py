"""Changes from outside that overlap, or meet something else that goes on at their time."""

import pytest

from coordinator_core.protocol import events as ev
from coordinator_core.registry.registry import default_registry
from rebalance_lab.simulation.run import simulate
from rebalance_lab.simulation.world.clock import VirtualClock
from rebalance_lab.traces.history import History
from rebalance_lab.verdicts.stops import stopped_partition_seconds
from tests.rebalance_lab.simulation.runs import scenario_of, seen, times


def run(*events, strategy="range", **fields):
    scenario = scenario_of(*events, **{"duration": "4m", "phase": "0s", **fields})
    return simulate(scenario, strategy, default_registry())


def test_what_is_first_happens_before_what_was_put_in_for_the_same_time():
    clock, ran = VirtualClock(), []
    clock.at(5, lambda: ran.append("put in"))
    clock.at_first(5, lambda: ran.append("first"))
    clock.at_first(5, lambda: ran.append("second"))
    clock.run(5)
    assert ran == ["first", "second", "put in"]


def test_a_pause_within_a_pause_does_not_end_it():
    trace = run({"at": "60s", "pause": "c-0", "for": "10s"}, {"at": "62s", "pause": "c-0", "for": "2s"})
    assert times(trace, ev.MemberPaused) == [60_000]
    assert times(trace, ev.MemberResumed) == [70_000]


LONG_BATCH = {"at": "60s", "pause": "c-0", "for": "70s", "in_batch": True}


@pytest.mark.parametrize("strategy", ["range", "range+server-side", "sticky+reconcile"])
def test_a_long_batch_is_work_until_the_group_goes_on_without_the_member(strategy):
    short = {"config": {"max.poll.interval.ms": "20s"}}
    trace = run(LONG_BATCH, strategy=strategy, **short)
    history = History(trace)
    begun, left = times(trace, ev.MemberPaused, client="c-0")
    assert begun == 60_000
    assert left == times(trace, ev.ClientStateChanged, client="c-0", after="unjoined")[0] == 80_000
    still = stopped_partition_seconds(
        History(run({**LONG_BATCH, "in_batch": False}, strategy=strategy, **short))
    )
    assert still - stopped_partition_seconds(history) == pytest.approx(2 * 20, abs=0.1)


def test_who_freezes_in_a_long_batch_stands_still_from_then_on():
    trace = run({**LONG_BATCH, "for": "30s"}, {"at": "65s", "freeze": "c-0", "for": "10s"})
    assert times(trace, ev.MemberPaused, in_batch=False) == [65_000]
    assert stopped_partition_seconds(History(trace)) == pytest.approx(2 * 25, abs=1)


def test_a_batch_within_the_poll_interval_stops_nothing():
    trace = run({**LONG_BATCH, "for": "10s"})
    assert times(trace, ev.MemberPaused) == [60_000]
    assert stopped_partition_seconds(History(trace)) == 0


@pytest.mark.parametrize("kind", ["freeze", "pause"])
def test_a_freeze_lasts_until_the_last_of_those_that_meet_has_ended(kind):
    """Its heartbeats do not go on earlier: the session of the member ends."""
    trace = run(
        {"at": "60s", "freeze": "c-0", "for": "30s"},
        {"at": "62s", kind: "c-0", "for": "2s"},
        config={"session.timeout.ms": "10s"},
    )
    (removed,) = times(trace, ev.MemberRemoved)
    assert 66_000 < removed <= 70_010
    assert times(trace, ev.MemberResumed) == [90_000]


def test_a_cut_within_a_cut_does_not_end_it():
    trace = run({"at": "60s", "cut": "c-0", "for": "6s"}, {"at": "61s", "cut": "c-0", "for": "1s"})
    assert times(trace, ev.MemberCutOff) == [60_000]
    assert times(trace, ev.MemberReconnected) == [66_000]


def test_a_consumer_that_was_taken_away_in_a_rolling_restart_does_not_come_back():
    trace = run(
        {"at": "60s", "rolling_restart": {"every": "20s", "down": "10s"}},
        {"at": "65s", "leave": "c-0"},
        {"at": "85s", "crash": "c-1"},
    )
    started = [line.event.client for line in seen(trace, ev.MemberStarted) if line.at_ms > 0]
    assert started == ["c-2"]


def test_a_rolling_restart_takes_as_many_in_turn_as_its_batch():
    trace = run({"at": "60s", "rolling_restart": {"every": "20s", "down": "5s", "batch": 2}})
    stopped = seen(trace, ev.Changed, cause="rolling_restart")
    assert [(line.at_ms, line.event.target) for line in stopped if line.event.kind == "leave"] == [
        (60_000, "c-0"),
        (60_000, "c-1"),
        (80_000, "c-2"),
    ]


def test_a_consumer_that_stands_still_is_ended_when_it_is_started_again():
    trace = run({"at": "60s", "freeze": "c-0", "for": "1m"}, {"at": "70s", "restart": "c-0"})
    (stopped,) = seen(trace, ev.MemberStopped, client="c-0")
    assert (stopped.at_ms, stopped.event.how) == (70_000, "crashed")


@pytest.mark.parametrize("kind", ["pause", "freeze"])
def test_a_process_that_is_closed_while_it_stands_still_closes_when_it_continues(kind):
    trace = run({"at": "60s", kind: "c-0", "for": "5s"}, {"at": "62s", "leave": "c-0"})
    (stopped,) = seen(trace, ev.MemberStopped, client="c-0")
    assert stopped.event.how == "closed"
    assert 65_000 <= stopped.at_ms < 66_000


def test_a_pattern_matches_whole_names():
    topics = {name: {"partitions": 2, "rate": 1} for name in ("t", "t-old")}
    members = [{"id": "c", "topics_pattern": "t"}]
    trace = run(topics=topics, members=members)
    assert seen(trace, ev.MemberStarted)[0].event.topics == ["t"]


def test_partitions_that_are_added_get_their_share_of_the_records():
    trace = run({"at": "60s", "add_partitions": {"t": 12}})
    (changed,) = [line for line in seen(trace, ev.RatesChanged, topic="t") if line.at_ms == 60_000]
    assert len(changed.event.rates) == 12
    assert sum(changed.event.rates) == pytest.approx(60)


def test_another_broker_takes_over_and_loads_the_group_before_it_answers():
    trace = run({"at": "60s", "coordinator_failover": {"down": "3s"}})
    (failed,), (elected,) = seen(trace, ev.CoordinatorFailed), seen(trace, ev.CoordinatorElected)
    assert elected.event.node != failed.event.node
    assert elected.at_ms == 63_100


def one(*events, **times):
    """A single consumer of 60 records/s with these times of its application."""
    return run(*events, members=[{"id": "c", "topics": ["t"], **times}])


def lag(trace, at_ms):
    return [line.event.lag for line in seen(trace, ev.LagMeasured) if line.at_ms <= at_ms][-1]


def test_a_callback_that_is_paused_ends_later_by_the_pause():
    (assigned,) = times(
        trace := one({"at": "10s", "pause": "c", "for": "9s"}, on_assigned="20s"), ev.Assigned
    )
    assert times(trace, ev.WorkStarted) == [assigned + 20_000 + 9_000]


def test_state_is_restored_after_the_callback_and_nothing_is_handled_before():
    trace = one(on_assigned="10s", restore="30s")
    (assigned,) = times(trace, ev.Assigned)
    assert max(times(trace, ev.WorkStarted)) == assigned + 40_000
    assert lag(trace, assigned + 39_000) > 60 * 35
    assert lag(trace, assigned + 60_000) < 60


def test_nothing_is_handled_while_an_application_shuts_down():
    trace = one({"at": "60s", "leave": "c"}, shut_down="20s")
    assert lag(trace, 60_000) < 60
    assert lag(trace, 79_000) > 60 * 15


def test_a_process_that_is_restarted_begins_when_the_one_before_has_shut_down():
    trace = one({"at": "60s", "restart": "c"}, shut_down="20s")
    (stopped,) = times(trace, ev.MemberStopped)
    assert stopped >= 80_000
    assert times(trace, ev.MemberStarted) == [0, stopped]


def test_a_server_learns_at_once_that_the_connections_of_a_process_are_closed():
    """It would miss a consumer of RocketMQ after two minutes, and others look every 20 s."""
    trace = run({"at": "65s", "crash": "c-0"}, strategy="rocketmq")
    assert [at_ms for at_ms in times(trace, ev.Assigned, client="c-1") if 65_000 < at_ms < 65_500]
