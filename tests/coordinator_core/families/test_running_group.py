"""Scenarios that begin with a group that runs: nothing happens of itself, what happens goes by its owners."""

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from msgspec import structs

from coordinator_core.coordinator.records import GenerationRecord, GroupRecord, OffsetRecord
from coordinator_core.errors import AssignmentError
from coordinator_core.model import Partitions, TopicPartition
from coordinator_core.protocol import events as ev
from coordinator_core.protocol.consumer_protocol import decode_assignment, decode_subscription
from coordinator_core.protocol.events import TraceEvent
from coordinator_core.registry.hookspecs import AssignorSpec, hookimpl
from coordinator_core.registry.registry import default_registry, installed_registry
from rebalance_lab.scenarios.scenario import parse_scenario
from rebalance_lab.simulation.run import Run, simulate
from rebalance_lab.traces.history import History
from rebalance_lab.traces.invariants import Invariants, check_trace
from rebalance_lab.traces.trace import Trace
from rebalance_lab.verdicts.measuring import measure
from tests.examples import rest_slow, scaled

BUILT_IN = ["range", "roundrobin", "sticky", "cooperative-sticky"]
STRATEGIES = [*BUILT_IN, "sticky+static", "cooperative-sticky+static", "range+cooperative", "lag-aware"]

ODD = {"a": [0, 5], "b": [1, 3], "c": [2, 4]}
"""Balanced, and what no strategy would choose by itself."""


def scenario_of(*events, owned=ODD, joining=(), duration="3m", topics=None, generation=7, **fields):
    """Members of one topic that own these of its six partitions, and some that own nothing yet."""
    members = [
        {"id": name, "topics": ["t"], "owned": {"t": numbers}, "generation": generation}
        for name, numbers in owned.items()
    ]
    document = {
        "name": "live",
        "duration": duration,
        "phase": "0s",
        "topics": topics or {"t": {"partitions": 6, "rate": 60}},
        "members": members + [{"id": name, "topics": ["t"]} for name in joining],
        "events": list(events),
        **fields,
    }
    return parse_scenario(document, where="live")


def run(scenario, strategy="cooperative-sticky", registry=None):
    watch = Invariants()
    trace = simulate(scenario, strategy, registry or default_registry(), watch=watch)
    assert watch.violations == []
    return trace


def seen(trace, kind, **fields):
    found = [line for line in trace.events if isinstance(line.event, kind)]
    return [e for e in found if all(getattr(e.event, k) == v for k, v in fields.items())]


def owners(trace):
    """By number, at the end."""
    last = History(trace).last_settled
    return {tp.partition: owner for tp, owner in last.owners.items()}


def by_number(owned):
    return {number: name for name, numbers in owned.items() for number in numbers}


def kept(trace, before=ODD):
    """The partitions that are where they were at the start."""
    after = owners(trace)
    return {number for number, owner in by_number(before).items() if after[number] == owner}


# --- nothing happens


@pytest.mark.parametrize("strategy", rest_slow(STRATEGIES))
def test_an_hour_passes_and_nobody_joins(strategy):
    """C-83: no round without a cause."""
    trace = run(scenario_of(duration="1h"), strategy)
    assert (trace.ended.group_state, trace.ended.generation) == ("Stable", 7)
    assert "JoinGroup" not in trace.ended.messages
    assert trace.ended.messages["Heartbeat"] == 3 * 1_200
    assert owners(trace) == by_number(ODD)


def test_its_metrics_are_those_of_a_group_at_rest():
    figures = measure(run(scenario_of()), default_registry())
    at_rest = ("rounds", "moved_partitions", "avoidable_moves", "stopped_partition_seconds", "max_lag")
    assert {name: figures[name] for name in at_rest} == dict.fromkeys(at_rest, 0)
    assert (figures["imbalance"], figures["optimality_gap"], figures["duplicate_records"]) == (1, 0, 0)
    assert figures["time_to_stable_seconds"] != figures["time_to_stable_seconds"]  # there was no change


def test_the_trace_says_who_owns_what_from_the_first_millisecond():
    trace = run(scenario_of())
    at_start = [line.event for line in trace.events if line.at_ms == 0]
    started, elected, *rest = at_start
    assert (type(started), type(elected)) == (ev.RunStarted, ev.CoordinatorElected)
    assert (elected.group_state, elected.generation) == ("Stable", 7)
    first = [type(event).__name__ for event in rest[:4]]
    assert first == ["MemberStarted", "ClientStateChanged", "Joined", "Assigned"]
    joined = [event for event in rest if isinstance(event, ev.Joined)]
    assert [(e.client, e.member_id, e.leader) for e in joined] == [
        (name, member_id, name == "a") for name, member_id in zip("abc", elected.members, strict=True)
    ]
    history = History(trace)
    assert history.states == [(0, "Stable")]
    assert {span.from_ms for spans in history.spans.values() for span in spans} == {0}
    assert [(s.from_ms, s.until_ms) for s in history.settled] == [(0, 180_000)]


def test_a_partition_that_nobody_owns_stands_still_until_somebody_comes():
    scenario = scenario_of({"at": "60s", "join": {"id": "d", "topics": ["t"]}}, owned={"a": [0, 1, 2, 3, 4]})
    trace = run(scenario)
    assert 60 <= History(trace).stops.stopped_ms / 1_000 <= 70
    assert set(owners(trace)) == set(range(6))


def test_heartbeats_are_not_in_step():
    running = Run(scenario_of(), "range", default_registry())
    running.advance(20)
    due_ms = [process.client.next_deadline_ms() for process in running.consumers.values()]
    assert len(set(due_ms)) == 3
    assert all(at_ms <= 3_000 for at_ms in due_ms)


@st.composite
def ownerships(draw):
    """Any valid one: members of two topics, some static or by a pattern; not every partition is owned."""
    subscriptions = [{"topics": ["t"]}, {"topics": ["u", "t"]}, {"topics_pattern": "t|u"}]
    names = ["m0", "m1", "m2", "m3"][: draw(st.integers(1, 4))]
    members = [{"id": name, "owned": {}} | draw(st.sampled_from(subscriptions)) for name in names]
    for member in members:
        if draw(st.booleans()):
            member["instance_id"] = f"instance-{member['id']}"
    topics = {"t": {"partitions": draw(st.integers(1, 6)), "rate": 10}, "u": {"partitions": 2}}
    for topic, described in topics.items():
        subscribers = [m for m in members if topic in m.get("topics", ("t", "u"))]
        for number in range(described["partitions"]):
            owner = draw(st.sampled_from([None, *subscribers]))
            if owner is not None:
                owner["owned"].setdefault(topic, []).append(number)
    generation = draw(st.integers(1, 99))
    events = [{"at": "30s", "coordinator_failover": {"down": "3s"}}] if draw(st.booleans()) else []
    document = {
        "name": "any",
        "duration": "90s",
        "topics": topics,
        "members": [member | {"generation": generation} for member in members],
        "events": events,
        "seed": draw(st.integers(0, 99)),
    }
    return parse_scenario(document, where="any")


@pytest.mark.parametrize("strategy", BUILT_IN)
@settings(max_examples=scaled(25), derandomize=True, suppress_health_check=list(HealthCheck))
@given(scenario=ownerships())
def test_whoever_owns_what_nothing_moves_of_itself(strategy, scenario):
    """Nor when another coordinator reads the log."""
    trace = run(scenario, strategy)
    history = History(trace)
    assert (trace.ended.group_state, trace.ended.generation) == ("Stable", scenario.members[0].generation)
    assert "JoinGroup" not in trace.ended.messages
    assert (history.moved, history.stable_ms) == (0, [])
    assert {line.at_ms for line in seen(trace, ev.Assigned)} == {0}
    assert not seen(trace, ev.Revoked)
    assert not seen(trace, ev.Lost)
    owned = {tp: m.id for m in scenario.members for tp in m.owned}
    assert {tp: spans[0].client for tp, spans in history.spans.items()} == owned
    assert all(span == (owned[tp], 0, 90_000) for tp, spans in history.spans.items() for span in spans)


# --- what happens goes by the owners there are


@pytest.mark.parametrize("strategy", ["sticky", "cooperative-sticky", "sticky+static"])
def test_who_leaves_takes_nothing_from_the_others(strategy):
    config = {"session.timeout.ms": "10s"}
    trace = run(scenario_of({"at": "60s", "leave": "b"}, config=config), strategy)
    assert kept(trace) == {0, 2, 4, 5}
    assert History(trace).moved == 2


def test_who_vanishes_at_the_start_is_missed_when_its_session_ends():
    """PROTOCOL 5.3, 8.2: sessions start anew when the log has been read."""
    trace = run(scenario_of({"at": 0, "crash": "c"}, config={"session.timeout.ms": "10s"}))
    (removed,) = seen(trace, ev.MemberRemoved)
    assert removed.at_ms == 10_000
    assert kept(trace) == {0, 1, 3, 5}


@pytest.mark.parametrize("strategy", ["sticky", "cooperative-sticky"])
def test_who_joins_gets_a_fair_share_and_the_rest_stays(strategy):
    owned = {"a": [0, 2, 4], "b": [1, 3, 5]}
    trace = run(scenario_of({"at": "60s", "join": {"id": "d", "topics": ["t"]}}, owned=owned), strategy)
    assert len(kept(trace, owned)) == 4
    assert measure(trace, default_registry())["avoidable_moves"] == 0


def test_a_strategy_that_remembers_nothing_moves_what_it_likes():
    """Range gives each a row of partitions, whoever had them; moves count against the owners there were."""
    trace = run(scenario_of({"at": "60s", "restart": "c"}), "range")
    assert owners(trace) == {0: "a", 1: "a", 2: "b", 3: "b", 4: "c", 5: "c"}
    moved_at_least = sum(1 for number, owner in owners(trace).items() if by_number(ODD)[number] != owner)
    assert History(trace).moved >= moved_at_least == 3
    assert measure(trace, default_registry())["rounds"] == len(seen(trace, ev.GenerationStarted))


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_a_member_without_ownership_joins_the_group_that_runs(strategy):
    """Without the initial delay, which is for groups that are Empty (PROTOCOL 3.6)."""
    trace = run(scenario_of(joining=["late"]), strategy)
    first = seen(trace, ev.GenerationStarted)[0]
    assert first.event.generation == 8
    assert first.at_ms <= 6_100
    assert set(owners(trace).values()) == {"a", "b", "c", "late"}


def test_the_running_group_is_there_before_those_who_join_in_whatever_order_they_are_written():
    document_order = scenario_of(joining=["late"])
    late_first = parse_scenario(
        {
            "name": "live",
            "duration": "3m",
            "phase": "0s",
            "topics": {"t": {"partitions": 6, "rate": 60}},
            "members": [
                {"id": "late", "topics": ["t"]},
                *(
                    {"id": name, "topics": ["t"], "owned": {"t": numbers}, "generation": 7}
                    for name, numbers in ODD.items()
                ),
            ],
        },
        where="live",
    )
    assert run(late_first).encode() == run(document_order).encode()


def test_a_static_member_that_bounces_causes_no_round():
    """PROTOCOL 6.2, 11.4: the stored group knows its instance id."""
    events = [{"at": "60s", "leave": "b"}, {"at": "70s", "restart": "b"}]
    trace = run(scenario_of(*events), "cooperative-sticky+static")
    assert len(seen(trace, ev.MemberReplaced, instance_id="b")) == 1
    assert not seen(trace, ev.GenerationStarted)
    assert owners(trace) == by_number(ODD)


def test_a_trace_that_hands_out_the_generation_there_was_breaks_a_rule():
    """PROTOCOL 3.7: generations only grow."""
    trace = simulate(scenario_of({"at": "60s", "leave": "b"}), "range", default_registry())
    assert check_trace(trace) == []
    (started,) = seen(trace, ev.GenerationStarted)
    again = TraceEvent(started.at_ms, structs.replace(started.event, generation=7))
    events = tuple(again if line is started else line for line in trace.events)
    assert "generations only grow" in {violation.rule for violation in check_trace(Trace(events))}


@pytest.mark.parametrize("strategy", ["sticky", "cooperative-sticky"])
def test_a_coordinator_that_fails_in_the_first_seconds_is_replaced_and_ownership_outlives_it(strategy):
    """PROTOCOL 8.2."""
    events = [{"at": "1s", "coordinator_failover": {"down": "3s"}}, {"at": "60s", "leave": "b"}]
    assert kept(run(scenario_of(*events), strategy)) == {0, 2, 4, 5}


# --- records


def test_what_waits_is_worked_off_at_what_is_left_of_the_rate():
    """400 records of each of two partitions, 60/s come in, 160/s are handled: 8 s."""
    topics = {"t": {"partitions": 2, "rate": 60, "backlog": 800}}
    scenario = parse_scenario(
        {
            "name": "behind",
            "duration": "1m",
            "topics": topics,
            "members": [
                {"id": "a", "topics": ["t"], "owned": {"t": [0, 1]}, "process_rate": 160, "batch_overhead": 0}
            ],
        },
        where="behind",
    )
    figures = measure(run(scenario), default_registry())
    assert figures["max_lag"] == 800
    assert figures["lag_record_seconds"] == pytest.approx(800 * 8 / 2, rel=1e-6)


def test_what_waits_in_a_group_that_has_yet_to_join_waits_for_it():
    scenario = parse_scenario(
        {
            "name": "cold",
            "duration": "1m",
            "topics": {"t": {"partitions": 2, "backlog": [300, 0]}},
            "members": [{"id": "a", "topics": ["t"], "process_rate": 100}],
        },
        where="cold",
    )
    measured = seen(run(scenario), ev.LagMeasured)
    assert measured[0].event.max_lag == 300
    assert measured[-1].event.lag == 0


@pytest.mark.parametrize("policy", ["earliest", "latest", "none"])
def test_whoever_takes_over_begins_at_the_committed_offset_whatever_the_policy(policy):
    """PROTOCOL 9.11: nothing that waits is skipped; who crashed at the start had handled nothing."""
    topics = {"t": {"partitions": 1, "backlog": 1_000}}
    members = [
        {"id": "a", "topics": ["t"], "owned": {"t": [0]}, "process_rate": 1},
        {"id": "b", "topics": ["t"], "owned": {}, "process_rate": 10},
    ]
    document = {
        "name": "policy",
        "duration": "1m",
        "topics": topics,
        "members": members,
        "events": [{"at": "2s", "crash": "a"}],
        "config": {"auto.offset.reset": policy, "session.timeout.ms": "10s"},
    }
    trace = run(parse_scenario(document, where="policy"))
    lags = [line.event.lag for line in seen(trace, ev.LagMeasured)]
    assert lags[0] == pytest.approx(1_000, abs=2)
    assert 1_000 - 10 * 50 <= lags[-1] <= 1_000 - 10 * 44


# --- what the log holds


def stored_of(scenario, strategy):
    """What a coordinator reads at the start."""
    log = Run(scenario, strategy, default_registry()).brokers.log
    return [record for partition in range(50) for record in log.read(partition)]


def test_the_log_has_the_group_its_generation_and_its_offsets():
    """PROTOCOL 8.1."""
    records = stored_of(scenario_of(), "cooperative-sticky")
    assert records[0] == GenerationRecord("live", 7)
    group = records[1].value
    assert (group.protocol_type, group.protocol_name) == ("consumer", "cooperative-sticky")
    assert (group.generation, group.leader) == (7, group.members[0].member_id)
    assert [m.client_id for m in group.members] == ["a", "b", "c"]
    assert {m.member_id[:2] for m in group.members} == {"a-", "b-", "c-"}
    assert [sorted(n for _, n in decode_assignment(m.assignment)[0]) for m in group.members] == list(
        ODD.values()
    )
    offsets = [record for record in records if isinstance(record, OffsetRecord)]
    assert [(o.topic, o.partition, o.value.offset) for o in offsets] == [("t", n, 0) for n in range(6)]


def subscriptions_in(strategy):
    (record,) = [r for r in stored_of(scenario_of(), strategy) if isinstance(r, GroupRecord)]
    return [decode_subscription(m.subscription) for m in record.value.members]


def test_a_cooperative_member_has_said_what_it_owns():
    """PROTOCOL 9.6."""
    first = subscriptions_in("cooperative-sticky")[0]
    assert (first.topics, sorted(first.owned), first.generation) == (("t",), [("t", 0), ("t", 5)], 7)


def test_an_eager_member_has_said_it_in_its_user_data_alone():
    """PROTOCOL 9.5, 9.6."""
    first = subscriptions_in("sticky")[0]
    assert list(first.owned) == []
    sticky = default_registry().build(default_registry().strategy("sticky"))
    sticky.on_assignment(Partitions.of([("t", 0), ("t", 5)]), 7)
    assert first.user_data == sticky.subscription_user_data(("t",))


def test_what_members_measure_begins_at_the_start():
    """A report that was made for the log is none of theirs: the first they send has what they saw since, and
    whoever has the heavy partition gets nothing more."""
    topics = {"t": {"partitions": 6, "rates": [100, 1, 1, 1, 1, 1]}}
    scenario = scenario_of({"at": "60s", "leave": "c"}, topics=topics)
    trace = run(scenario, "lag-aware+weights=reported-rates")
    computed = seen(trace, ev.AssignmentComputed)
    assert [line.event.report["weights"] for line in computed] == ["reported-rates"] * len(computed)
    assert [number for number, owner in owners(trace).items() if owner == "a"] == [0, 5]


def test_an_assignor_that_cannot_remember_is_named():
    class Forgetful:
        name = "forgetful"

        def assign(self, cluster, group):
            return {}

        def on_assignment(self, partitions, generation):
            raise KeyError(TopicPartition("t", 0))

    class Plugin:
        @hookimpl
        def assignors(self):
            return [AssignorSpec("forgetful", Forgetful)]

    registry = installed_registry()
    registry.register(Plugin())
    with pytest.raises(
        AssignmentError, match=r"'forgetful'.*of what 'a' owns at the start it raised KeyError"
    ):
        run(scenario_of(), "forgetful", registry)
