"""Groups that the coordinator reconciles, in the simulator (PROTOCOL 11.8)."""

import pytest

from coordinator_core.errors import InputError
from coordinator_core.protocol import events as ev
from coordinator_core.registry.registry import default_registry
from rebalance_lab.scenarios.files import load_scenario
from rebalance_lab.scenarios.scenario import parse_scenario
from rebalance_lab.simulation.run import simulate
from rebalance_lab.traces.invariants import Invariants
from rebalance_lab.traces.rounds import rounds
from tests.places import SCENARIOS

REGISTRY = default_registry()
INTERVAL_MS = 5_000
STRATEGIES = [
    "range-848+reconcile",
    "uniform-848+reconcile",
    "sticky+reconcile",
    "cooperative-sticky+reconcile",
]


def document(*events, **changes):
    return {
        "name": "two",
        "duration": "4m",
        "topics": {"P": {"partitions": 6, "rate": 60}},
        "members": [{"id": "c1", "topics": ["P"]}, {"id": "c2", "topics": ["P"]}],
        "events": list(events),
        "network": {"latency": ["1ms", "5ms"]},
        **changes,
    }


def run(given, strategy="sticky+reconcile"):
    """Return the trace of a scenario in which the rules of the protocol hold."""
    scenario = parse_scenario(given, where="test", registry=REGISTRY) if isinstance(given, dict) else given
    watch = Invariants(REGISTRY)
    trace = simulate(scenario, strategy, REGISTRY, watch=watch)
    assert (watch.violations, watch.settled()) == ([], [])
    return trace


def taken(trace, client):
    """Return when a consumer took over partitions, and which."""
    return [
        (line.at_ms, line.event.added["P"])
        for line in trace.events
        if isinstance(line.event, ev.Assigned) and line.event.client == client and line.event.added
    ]


def last_owned(trace):
    owned = {}
    for line in trace.events:
        if isinstance(line.event, ev.Assigned):
            owned[line.event.client] = line.event.owned
        elif isinstance(line.event, ev.MemberStopped):
            owned.pop(line.event.client, None)
    return owned


def test_a_third_member_does_not_wait_for_a_long_batch():
    """Given c2's batch lasts until 2 minutes, when c3 joins at 62 s, then it has c1's partition within two
    intervals of heartbeats, and c2's as soon as c2 has given it up. c1 and c2 keep the others.
    PROTOCOL 11.8."""
    trace = run(load_scenario(SCENARIOS / "long-batch.yaml"))
    (first_ms, first), (second_ms, second) = taken(trace, "c3")
    assert 62_000 < first_ms <= 62_000 + 2 * INTERVAL_MS + 1_000
    assert 120_000 < second_ms <= 120_000 + INTERVAL_MS + 1_000
    assert (first, second) == ([2], [5])
    assert last_owned(trace) == {"c1": {"P": [0, 1]}, "c2": {"P": [3, 4]}, "c3": {"P": [2, 5]}}


@pytest.mark.parametrize("strategy", ["range", "cooperative-sticky"])
def test_under_classic_it_waits_for_the_batch(strategy):
    """The counterpart of the last test. PROTOCOL 11.3 and 11.5."""
    (at_ms, _), *_ = taken(run(load_scenario(SCENARIOS / "long-batch.yaml"), strategy), "c3")
    assert at_ms > 120_000


@pytest.mark.parametrize("strategy", STRATEGIES)
@pytest.mark.parametrize("name", ["scale-out", "leave", "mixed-subscriptions", "third-joins"])
def test_every_partition_has_an_owner_at_the_end_with_any_assignor(strategy, name):
    """An assignor that holds back what moves gives its whole answer at once."""
    run(load_scenario(SCENARIOS / f"{name}.yaml"), strategy)


def test_a_round_lasts_until_all_members_have_reached_the_last_shares():
    """Given another member joins while c2's batch lasts, then both belong to one round."""
    trace = run(
        document(
            {"at": "60s", "pause": "c2", "for": "40s"},
            {"at": "62s", "join": {"id": "c3", "topics": ["P"]}},
            {"at": "80s", "join": {"id": "c4", "topics": ["P"]}},
        )
    )
    last = rounds(trace, REGISTRY)[-1]
    assert last.causes == ["c3 joined", "c4 joined"]
    assert len(last.generations) == 2
    assert last.stable_ms > 100_000


def test_only_what_moves_stops_and_nobody_else_is_called():
    trace = run(document({"at": "60s", "join": {"id": "c3", "topics": ["P"]}}))
    revoked = [line.event for line in trace.events if isinstance(line.event, ev.Revoked)]
    assert [(e.client, e.partitions) for e in revoked[-2:]] in (
        [("c1", {"P": [2]}), ("c2", {"P": [5]})],
        [("c2", {"P": [5]}), ("c1", {"P": [2]})],
    )


def test_one_request_does_everything():
    messages = run(document({"at": "60s", "leave": "c1"})).ended.messages
    assert set(messages) <= {
        "ConsumerGroupHeartbeat",
        "FindCoordinator",
        "Metadata",
        "OffsetFetch",
        "OffsetCommit",
        "ListOffsets",
    }


def test_the_session_of_the_coordinator_counts_and_not_that_of_the_consumer():
    trace = run(document({"at": "60s", "crash": "c2"}, config={"session.timeout.ms": 10_000}))
    (removed,) = (line for line in trace.events if isinstance(line.event, ev.MemberRemoved))
    assert 60_000 + 40_000 <= removed.at_ms <= 60_000 + 45_000
    given = {"group.consumer.session.timeout.ms": 10_000}
    (removed,) = (
        line
        for line in run(document({"at": "60s", "crash": "c2"}, config=given)).events
        if isinstance(line.event, ev.MemberRemoved)
    )
    assert removed.at_ms <= 70_000


def test_a_member_that_does_not_give_up_its_partitions_in_time_is_removed():
    """Its polls stop for longer than max.poll.interval.ms: it leaves, or the coordinator removes it."""
    trace = run(
        document(
            {"at": "60s", "freeze": "c2", "for": "40s"},
            {"at": "62s", "join": {"id": "c3", "topics": ["P"]}},
            config={"max.poll.interval.ms": 20_000},
        )
    )
    assert last_owned(trace).keys() == {"c1", "c2", "c3"}


def test_a_static_member_that_is_closed_and_back_within_the_session_moves_nothing():
    trace = run(
        document({"at": "60s", "leave": "c2"}, {"at": "70s", "restart": "c2"}), "sticky+reconcile+static"
    )
    generations = [
        line.event.generation for line in trace.events if isinstance(line.event, ev.GenerationStarted)
    ]
    assert max(generations) == 3
    assert taken(trace, "c2")[-1][1] == [3, 4, 5]


def test_a_static_member_that_is_killed_cannot_come_back_before_its_session_ends():
    """As in Kafka: UNRELEASED_INSTANCE_ID ends the new process."""
    trace = run(
        document({"at": "60s", "crash": "c2"}, {"at": "70s", "restart": "c2"}), "sticky+reconcile+static"
    )
    (failed,) = (line.event for line in trace.events if isinstance(line.event, ev.ConsumerFailed))
    assert (failed.client, failed.error) == ("c2", "ConsumerGroupHeartbeat: UNRELEASED_INSTANCE_ID")


@pytest.mark.parametrize("after_ms", [0, 5, 100, 2_600, 2_630, 5_000, 5_200, 8_000])
def test_a_failover_at_any_moment_of_a_reconciliation_breaks_no_rule(after_ms):
    events = (
        {"at": "60s", "join": {"id": "c3", "topics": ["P"]}},
        {"at": 60_000 + after_ms, "coordinator_failover": {"down": "3s"}},
    )
    assert [len(owned["P"]) for owned in last_owned(run(document(*events))).values()] == [2, 2, 2]


@pytest.mark.parametrize(
    ("config", "error"),
    [
        (
            {"group.consumer.session.timeout.ms": 5_000},
            "group.consumer.session.timeout.ms: found 5000, expected more than"
            " group.consumer.heartbeat.interval.ms",
        ),
        ({"group.consumer.heartbeat.interval.ms": 0}, "interval.ms: found 0, expected 1 or more"),
    ],
)
def test_settings_that_contradict_each_other_are_an_error(config, error):
    with pytest.raises(InputError, match=error):
        run(document(config=config))


# --- groups that run already


def running(*events, **changes):
    """Return a document whose group runs: c1 has a list of topics, c2 a pattern."""
    members = [
        {"id": "c1", "topics": ["P"], "owned": {"P": [0, 4, 5]}},
        {"id": "c2", "topics_pattern": "P", "owned": {"P": [1, 2, 3]}, "instance_id": "two"},
    ]
    return document(*events, members=members, **changes)


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_a_group_may_run_already_with_any_owners(strategy):
    """Given owners that no assignor would choose, when nothing happens, then the group rests, with them."""
    trace = run(running(), strategy)
    assert last_owned(trace) == {"c1": {"P": [0, 4, 5]}, "c2": {"P": [1, 2, 3]}}
    assert rounds(trace) == []
    assert [e for e in trace.events if isinstance(e.event, ev.GroupStateChanged)] == []


def test_a_running_group_goes_on_by_its_protocol():
    """Members join, leave and get another coordinator, with the same trace if every message is simulated."""
    given = running(
        {"at": "1m", "join": {"id": "c3", "topics": ["P"]}},
        {"at": "2m", "coordinator_failover": {"down": "3s"}},
        {"at": "3m", "leave": "c1"},
    )
    trace = run(given)
    scenario = parse_scenario(given, where="test", registry=REGISTRY)
    assert simulate(scenario, "sticky+reconcile", REGISTRY, every_message=True) == trace
    assert [len(entry.members) for entry in rounds(trace)] == [3, 2]
    assert sum(len(owned["P"]) for owned in last_owned(trace).values()) == 6
    epochs = [e.event.generation for e in trace.events if isinstance(e.event, ev.GenerationStarted)]
    assert epochs == [2, 3]


def test_a_static_member_that_has_left_while_it_stood_still_claims_nothing_though_it_is_listed():
    """It was to give up partitions for the member that joined; its leave without an end releases them."""
    paused = {"at": "5s", "pause": "c1", "for": "40s"}
    joins = {"at": "6s", "join": {"id": "c2", "topics": ["P"]}}
    given = document(
        paused,
        joins,
        members=[{"id": "c1", "topics": ["P"]}],
        config={"max.poll.interval.ms": 20_000, "group.consumer.session.timeout.ms": 30_000},
    )
    run(given, "uniform-848+reconcile+static")
