"""Whole runs: the scenarios kept here, what events do to processes, and that nothing is left to chance."""

from dataclasses import replace
from itertools import pairwise

import pytest

from coordinator_core.protocol import events as ev
from coordinator_core.registry.registry import default_registry
from rebalance_lab.scenarios.files import load_scenario
from rebalance_lab.scenarios.scenario import parse_scenario
from rebalance_lab.simulation.run import Run, simulate
from rebalance_lab.traces.history import History
from tests.places import SCENARIOS
from tests.rebalance_lab.simulation import runs
from tests.rebalance_lab.simulation.runs import seen
from tests.rebalance_lab.simulation.runs import watched as run

STRATEGIES = ["range", "roundrobin", "sticky", "cooperative-sticky"]
SMALL = ["scale-out", "leave", "bounce", "mixed-subscriptions"]
LARGE = [("rolling-deploy", STRATEGIES[::3]), ("mentions-day", STRATEGIES[1:3])]
RUNS = [(name, strategy) for name in SMALL for strategy in STRATEGIES]
RUNS += [
    pytest.param(name, strategy, marks=pytest.mark.slow)
    for name, strategies in LARGE
    for strategy in strategies
]
"""A smaller deploy ends Stable under every strategy below."""


def scenario_of(*events, members=2, **fields):
    """Members that handle 100 records/s each."""
    listed = [{"id": f"c{i}", "topics": ["t"], "process_rate": 100} for i in range(members)]
    return runs.scenario_of(*events, members=listed, **fields)


@pytest.mark.parametrize(("name", "strategy"), RUNS)
def test_every_scenario_ends_stable_under_every_strategy(name, strategy):
    scenario = load_scenario(SCENARIOS / f"{name}.yaml")
    if name == "mentions-day":  # most of a day is heartbeats and commits: a fifth of them will do
        seldom = {"heartbeat.interval.ms": 15_000, "auto.commit.interval.ms": 60_000}
        scenario = replace(scenario, config={**scenario.config, **seldom})
    trace, watch = run(scenario, strategy)
    assert trace.ended.group_state == "Stable"
    assert watch.settled() == []
    assert trace.ended.messages["Heartbeat"] > 0


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_a_small_deploy_ends_stable_under_every_strategy(strategy):
    """The deploy of forty members above, with six."""
    large = load_scenario(SCENARIOS / "rolling-deploy.yaml")
    scenario = replace(large, members=large.members[:6], duration_ms=8 * 60_000)
    trace, watch = run(scenario, strategy)
    assert trace.ended.group_state == "Stable"
    assert watch.settled() == []
    assert len(seen(trace, ev.MemberStopped)) == 6


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_equal_runs_give_equal_traces_byte_for_byte(strategy):
    """C-84."""
    scenario = load_scenario(SCENARIOS / "mixed-subscriptions.yaml")
    first, second = (simulate(scenario, strategy, default_registry()) for _ in range(2))
    assert first.encode() == second.encode()


def test_another_seed_gives_another_run():
    faulty = {"latency": [1, 50], "loss": 0.01}
    one, two = (run(scenario_of(seed=seed, network=faulty))[0] for seed in (1, 2))
    assert one.encode() != two.encode()


def test_a_run_without_changes_has_one_round_and_no_more():
    """Given nothing from outside, when an hour passes, then there is no round after the first (C-83)."""
    trace, _ = run(scenario_of(duration="1h"))
    assert len(seen(trace, ev.GenerationStarted)) == 1


def test_who_leaves_gives_up_in_good_order_and_is_gone_at_once():
    """PROTOCOL 5.3: LeaveGroup removes the member; its partitions move without a session timeout."""
    trace, _ = run(scenario_of({"at": "60s", "leave": "c1"}))
    (stopped,) = seen(trace, ev.MemberStopped, client="c1")
    (revoked,) = seen(trace, ev.Revoked, client="c1")
    (commit,) = [e for e in seen(trace, ev.OffsetsCommitted, client="c1") if e.at_ms >= 60_000]
    assert commit.at_ms <= revoked.at_ms <= stopped.at_ms < 61_000
    assert History(trace).settled[-1].members.keys() == {"c0"}
    assert seen(trace, ev.MemberRemoved)[0].at_ms < 61_000


def test_who_crashes_is_missed_when_its_session_ends():
    """PROTOCOL 5.3: no LeaveGroup; the session timeout removes the member."""
    trace, _ = run(scenario_of({"at": "60s", "crash": "c1"}, config={"session.timeout.ms": "10s"}))
    (removed,) = seen(trace, ev.MemberRemoved)
    assert 66_000 <= removed.at_ms <= 71_000
    assert not seen(trace, ev.Revoked, client="c1")


def test_a_static_member_that_bounces_within_its_session_causes_no_round():
    """PROTOCOL 11.4, 6.5."""
    events = [{"at": "60s", "leave": "c1"}, {"at": "70s", "restart": "c1"}]
    trace, _ = run(scenario_of(*events), "cooperative-sticky+static")
    assert len(seen(trace, ev.GenerationStarted)) == 1
    assert len(seen(trace, ev.MemberReplaced)) == 1
    before, after = History(trace).settled[-2:]
    assert before.owners == after.owners


def test_a_static_member_that_stays_away_is_missed_when_its_session_ends():
    """PROTOCOL 6.5, C-44."""
    trace, _ = run(scenario_of({"at": "60s", "leave": "c1"}), "range+static")
    (removed,) = seen(trace, ev.MemberRemoved)
    assert 60_000 + 42_000 <= removed.at_ms <= 60_000 + 46_000


def test_a_stuck_handler_is_put_out_of_the_group_and_comes_back():
    """Given no poll for max.poll.interval.ms, then the member leaves; when it polls again, what it owned is
    lost, and it joins anew (PROTOCOL 9.9, C-56)."""
    config = {"max.poll.interval.ms": "20s", "session.timeout.ms": "10s"}
    trace, _ = run(scenario_of({"at": "60s", "pause": "c0", "for": "40s"}, config=config))
    (lost,) = seen(trace, ev.Lost, client="c0")
    assert lost.at_ms >= 100_000
    left = [e for e in seen(trace, ev.MemberRemoved) if "max.poll.interval" in e.event.reason]
    assert len(left) == 1
    assert 80_000 <= left[0].at_ms <= 80_100
    assert History(trace).settled[-1].members.keys() == {"c0", "c1"}


@pytest.mark.parametrize(("kind", "lasts"), [("pause", "30s"), ("freeze", "20s")])
def test_a_member_that_stands_still_for_less_than_its_deadline_causes_no_round(kind, lasts):
    trace, _ = run(scenario_of({"at": "60s", kind: "c0", "for": lasts}))
    assert len(seen(trace, ev.GenerationStarted)) == 1
    assert len(seen(trace, ev.MemberRemoved)) == 0


def test_a_frozen_process_is_removed_with_its_session_and_loses_its_partitions_when_it_continues():
    config = {"session.timeout.ms": "10s"}
    trace, watch = run(scenario_of({"at": "60s", "freeze": "c0", "for": "70s"}, duration="4m", config=config))
    (removed,) = seen(trace, ev.MemberRemoved)
    assert 67_000 <= removed.at_ms <= 70_010
    (paused,), (resumed,) = seen(trace, ev.MemberPaused), seen(trace, ev.MemberResumed)
    assert (paused.at_ms, resumed.at_ms) == (60_000, 130_000)
    changes = [(e.event.kind, e.event.target, e.event.cause) for e in seen(trace, ev.Changed)]
    assert changes == [("freeze", "c0", ""), ("resume", "c0", "freeze")]
    while_frozen = [e for e in trace.events if 60_000 < e.at_ms < 130_000]
    assert not [e for e in while_frozen if getattr(e.event, "client", "") == "c0"]
    (lost,) = seen(trace, ev.Lost, client="c0")
    assert 130_000 <= lost.at_ms <= 133_100
    assert History(trace).settled[-1].members.keys() == {"c0", "c1"}
    assert watch.settled() == []


def test_a_frozen_process_reads_the_responses_that_wait_when_it_continues():
    """The answer to the last heartbeat before the freeze is 40 s old, and no request has timed out."""
    network = {"latency": "200ms"}
    config = {"heartbeat.interval.ms": 100}
    event = {"at": "60s", "freeze": "c0", "for": "40s"}
    trace, _ = run(scenario_of(event, config=config, network=network))
    assert len(seen(trace, ev.GenerationStarted)) == 1
    assert trace.ended.messages["FindCoordinator"] == 2


def test_a_process_that_is_paused_for_longer_than_it_is_frozen_resumes_once():
    events = [{"at": "60s", "pause": "c0", "for": "30s"}, {"at": "65s", "freeze": "c0", "for": "10s"}]
    trace, _ = run(scenario_of(*events, config={"session.timeout.ms": "20s"}))
    assert [e.at_ms for e in seen(trace, ev.MemberResumed)] == [90_000]
    assert len(seen(trace, ev.MemberRemoved)) == 0


def test_a_process_that_starts_while_it_is_frozen_joins_when_it_continues():
    events = [
        {"at": "60s", "join": {"id": "x", "topics": ["t"]}},
        {"at": "60s", "freeze": "x", "for": "30s"},
        {"at": "61s", "subscribe": "x", "topics": ["t"]},
    ]
    trace, _ = run(scenario_of(*events))
    assert seen(trace, ev.Joined, client="x")[0].at_ms >= 90_000
    assert History(trace).settled[-1].members.keys() == {"c0", "c1", "x"}


def test_a_process_that_is_frozen_in_a_callback_sends_its_requests_when_it_continues():
    member = {"id": "c0", "topics": ["t"], "on_revoked": "2s"}
    join = {"at": "60s", "join": {"id": "x", "topics": ["t"]}}
    members = parse_scenario(
        {"name": "m", "duration": 1, "topics": {"t": {"partitions": 1}}, "members": [member]}, where="m"
    ).members
    trace, _ = run(replace(scenario_of(join), members=members), "range")
    (revoked,) = seen(trace, ev.Revoked)
    freeze = {"at": revoked.at_ms + 500, "freeze": "c0", "for": "20s"}
    trace, _ = run(replace(scenario_of(join, freeze), members=members), "range")
    (started,) = [e for e in seen(trace, ev.GenerationStarted) if e.at_ms > 60_000]
    assert revoked.at_ms + 20_500 <= started.at_ms < revoked.at_ms + 23_000


def test_calm_ends_a_freeze():
    events = [{"at": "60s", "freeze": "c0", "for": "70s"}, {"at": "65s", "calm": True}]
    trace, _ = run(scenario_of(*events))
    assert [e.at_ms for e in seen(trace, ev.MemberResumed)] == [65_000]
    assert len(seen(trace, ev.MemberRemoved)) == 0


def test_a_consumer_that_is_cut_off_is_fenced_and_learns_it_later():
    """C-80: until it learns, it holds partitions that a valid member owns too; that is no violation."""
    config = {"session.timeout.ms": "10s"}
    trace, _ = run(scenario_of({"at": "60s", "cut": "c0", "for": "40s"}, config=config))
    shared_ms = [
        sum(max(0, before.to_ms - after.from_ms) for before, after in pairwise(spans))
        for spans in History(trace).spans.values()
    ]
    assert sum(shared_ms) > 3 * 20_000
    assert seen(trace, ev.Lost, client="c0")[0].at_ms > 100_000


def test_a_failover_loses_no_offset_and_ends_stable():
    """PROTOCOL 1.3, 8.2: another broker rebuilds the group from the log; nobody has to rejoin."""
    trace, watch = run(scenario_of({"at": "60s", "coordinator_failover": {"down": "3s"}}))
    assert len(seen(trace, ev.CoordinatorFailed)) == 1
    assert len(seen(trace, ev.GenerationStarted)) == 1
    assert watch.settled() == []
    assert sum(line.event.duplicates for line in seen(trace, ev.LagMeasured)) == 0


def test_partitions_that_are_added_are_found_by_the_leader_and_assigned():
    """PROTOCOL 9.4."""
    scenario = scenario_of({"at": "30s", "add_partitions": {"t": 9}}, config={"metadata.max.age.ms": "20s"})
    trace, _ = run(scenario)
    last = History(trace).last_settled
    assert len(last.owners) == 9


def test_a_changed_subscription_starts_a_round():
    """PROTOCOL 9.4."""
    topics = {"t": {"partitions": 6, "rate": 60}, "u": {"partitions": 2}}
    event = {"at": "60s", "subscribe": "c1", "topics": ["u"]}
    trace, _ = run(scenario_of(event, topics=topics))
    owners = History(trace).last_settled.owners
    assert {client for tp, client in owners.items() if tp.topic == "u"} == {"c1"}
    assert {client for tp, client in owners.items() if tp.topic == "t"} == {"c0"}


def rolled(**options):
    """The processes that start and end after the event, with their times in seconds from it."""
    every = {"every": "20s", "down": "5s", **options}
    scenario = scenario_of({"at": "30s", "rolling_restart": every}, members=4, network={"latency": 0})
    trace, watch = run(scenario)
    assert watch.settled() == []
    changes = [
        ((e.at_ms - 30_000) // 1_000, e.event.client, getattr(e.event, "how", "starts"))
        for e in trace.events
        if isinstance(e.event, (ev.MemberStarted, ev.MemberStopped)) and e.at_ms >= 30_000
    ]
    return trace, changes


def test_a_rolling_restart_that_kills_sends_no_leave_group():
    trace, changes = rolled(kill=True)
    assert {how for _, _, how in changes} == {"crashed", "starts"}
    assert "LeaveGroup" not in trace.ended.messages
    kinds = [e.event.kind for e in seen(trace, ev.Changed)]
    assert kinds == ["rolling_restart", *["crash", "restart"] * 4]


def test_a_surge_starts_new_members_before_old_ones_stop():
    _, changes = rolled(kill=True, batch=2, surge=1)
    assert changes == [
        (0, "c0-2", "starts"),
        (5, "c0", "crashed"),
        (5, "c1", "crashed"),
        (10, "c1-2", "starts"),
        (20, "c2-2", "starts"),
        (25, "c2", "crashed"),
        (25, "c3", "crashed"),
        (30, "c3-2", "starts"),
    ]


def test_members_that_replace_others_are_replaced_in_their_turn():
    surge = {"every": "5s", "down": "1s", "surge": 1}
    events = [{"at": "30s", "rolling_restart": surge}, {"at": "60s", "rolling_restart": surge}]
    trace, _ = run(scenario_of(*events, {"at": "90s", "leave": "c1-3"}))
    started = [e.event.client for e in seen(trace, ev.MemberStarted)]
    assert started == ["c0", "c1", "c0-2", "c1-2", "c0-3", "c1-3"]
    assert History(trace).settled[-1].members.keys() == {"c0-3"}


def test_a_member_that_leaves_during_a_surge_is_not_replaced():
    surge = {"every": "20s", "down": "5s", "surge": 1}
    events = [{"at": "30s", "rolling_restart": surge}, {"at": "40s", "leave": "c1"}]
    trace, _ = run(scenario_of(*events))
    assert [e.event.client for e in seen(trace, ev.MemberStarted)] == ["c0", "c1", "c0-2"]


def test_an_event_of_a_member_that_has_not_started_yet_changes_nothing():
    surge = {"every": "20s", "down": "5s", "batch": 2, "surge": 1}
    names = [{"at": "31s", kind: "c1-2"} for kind in ("restart", "leave")]
    names += [{"at": "31s", "pause": "c0-2", "for": 1}]
    trace, _ = run(scenario_of({"at": "30s", "rolling_restart": surge}, *names))
    started = [(e.at_ms, e.event.client) for e in seen(trace, ev.MemberStarted)]
    assert started[2:] == [(30_000, "c0-2"), (40_000, "c1-2")]
    assert seen(trace, ev.MemberStopped, client="c1-2") == []


def test_a_group_lives_through_a_network_that_loses_and_doubles_messages():
    """C-82: once the faults are over the group is Stable within the bound, and stays so."""
    faulty = {"latency": [1, 200], "loss": 0.05, "duplicate": 0.1}
    events = [{"at": "60s", "crash": "c1"}, {"at": "5m", "calm": True}]
    config = {"session.timeout.ms": "10s", "max.poll.interval.ms": "30s", "request.timeout.ms": "10s"}
    scenario = scenario_of(*events, members=4, duration="10m", network=faulty, config=config)
    trace, watch = run(scenario)
    assert watch.settled() == []
    rounds = [line.at_ms for line in seen(trace, ev.GenerationStarted)]
    assert max(rounds) < 5 * 60_000 + 3_000 + 2 * 30_000 + 10_000


def test_the_load_is_measured_at_every_change_and_at_least_two_hundred_times():
    trace, _ = run(scenario_of({"at": "61s", "crash": "c1"}))
    measured = [line.at_ms for line in seen(trace, ev.LagMeasured)]
    assert len(measured) >= 200
    assert 61_000 in measured


def test_records_that_were_handled_but_not_committed_are_handled_again():
    """A crash loses at most what was handled since the last auto-commit."""
    trace, _ = run(scenario_of({"at": "60s", "crash": "c1"}, config={"auto.commit.interval.ms": "5s"}))
    again = sum(line.event.duplicates for line in seen(trace, ev.LagMeasured))
    assert 0 < again <= 3 * 10 * 5 + 3


def test_a_run_can_be_driven_step_by_step():
    stepped = Run(scenario_of(), "range", default_registry())
    for until_ms in range(0, 180_001, 777):
        stepped.advance(until_ms)
    stepped.advance(180_000)
    at_once, _ = run(scenario_of(), "range")
    protocol = [line for line in at_once.events if not isinstance(line.event, ev.LagMeasured)]
    assert [e for e in stepped.finish().events if not isinstance(e.event, ev.LagMeasured)] == protocol


def test_an_event_at_the_very_beginning_finds_the_members_of_the_document():
    events = [{"at": 0, "leave": "c0"}, {"at": 0, "pause": "c1", "for": "5s"}]
    trace, watch = run(scenario_of(*events))
    assert seen(trace, ev.MemberStopped, client="c0")[0].at_ms == 0
    assert History(trace).last_settled.members.keys() == {"c1"}
    assert watch.settled() == []
