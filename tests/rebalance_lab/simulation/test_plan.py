"""A scenario without messages: it says what the protocol says of rounds, moves and balance."""

from math import isclose, isnan

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from coordinator_core.errors import AssignmentError, InputError
from coordinator_core.protocol import events as ev
from coordinator_core.registry.hookspecs import AssignorSpec, hookimpl
from coordinator_core.registry.registry import default_registry, installed_registry
from rebalance_lab.scenarios.files import load_scenario
from rebalance_lab.scenarios.scenario import parse_scenario
from rebalance_lab.simulation.planning.plan import plan
from rebalance_lab.simulation.run import simulate
from rebalance_lab.verdicts.measuring import measure
from tests.examples import scaled
from tests.places import SCENARIOS
from tests.rebalance_lab.simulation.runs import rounds, scenario_of, seen, times

STRATEGIES = [
    "range",
    "roundrobin",
    "sticky",
    "cooperative-sticky",
    "sticky+static",
    "cooperative-sticky+static",
    "range+cooperative",
]


def differing(scenario, strategy):
    """The metrics on which the two do not agree."""
    registry = default_registry()
    exact = measure(simulate(scenario, strategy, registry), registry)
    planned = measure(plan(scenario, strategy, registry), registry, planned=True)
    return {
        name: (exact[name], planned[name])
        for name in planned
        if not (
            isclose(exact[name], planned[name], rel_tol=1e-9) or (isnan(exact[name]) and isnan(planned[name]))
        )
    }


@pytest.mark.parametrize("strategy", STRATEGIES)
@pytest.mark.parametrize("name", ["scale-out", "leave", "bounce"])
def test_it_agrees_with_the_protocol(name, strategy):
    assert differing(load_scenario(SCENARIOS / f"{name}.yaml"), strategy) == {}


@pytest.mark.slow
@pytest.mark.parametrize("strategy", ["cooperative-sticky+static"])
def test_it_agrees_on_a_rolling_deploy_of_forty(strategy):
    assert differing(load_scenario(SCENARIOS / "rolling-deploy.yaml"), strategy) == {}


@st.composite
def calm_scenarios(draw, *, owning=False):
    """Members of two topics that come, go and change their mind, each change with time to settle.

    Who runs is not restarted: whether its leaving and its coming share a round is a matter of seconds.
    ``owning``: the first members are a group that runs, with any owners; one more may join it.
    """
    topics = {
        "t": {"partitions": draw(st.integers(1, 7)), "rate": 100},
        "u": {"partitions": draw(st.integers(1, 4)), "rate": 10},
    }
    some = st.sampled_from([["t"], ["u"], ["t", "u"]])
    running = [f"m{i}" for i in range(draw(st.integers(1, 4)))]
    members = [{"id": name, "topics": draw(some)} for name in running]
    if owning:
        _give_owners(draw, topics, members)
        if draw(st.booleans()):
            running.append("late")
            members.insert(draw(st.integers(0, len(members))), {"id": "late", "topics": draw(some)})
    gone, events = [], []
    for number in range(draw(st.integers(0, 5))):
        at = f"{120 * (number + 1)}s"
        kinds = ["join"] + ["leave", "crash", "subscribe"] * bool(running) + ["restart"] * bool(gone)
        kind = draw(st.sampled_from(kinds))
        if kind == "join":
            running.append(f"n{number}")
            events.append({"at": at, "join": {"id": running[-1], "topics": draw(some)}})
            continue
        among = gone if kind == "restart" else running
        name = draw(st.sampled_from(among))
        events.append({"at": at, kind: name} | ({"topics": draw(some)} if kind == "subscribe" else {}))
        if kind in ("leave", "crash"):
            running.remove(name)
            gone.append(name)
        elif among is gone:
            gone.remove(name)
            running.append(name)
    document = {"name": "calm", "duration": "14m", "topics": topics, "members": members, "events": events}
    return parse_scenario(document, where="calm")


def _give_owners(draw, topics, members):
    for member in members:
        member |= {"owned": {}, "generation": 5}
    for topic, described in topics.items():
        able = [None, *(member for member in members if topic in member["topics"])]
        for number in range(described["partitions"]):
            owner = draw(st.sampled_from(able))
            if owner is not None:
                owner["owned"].setdefault(topic, []).append(number)


@pytest.mark.parametrize("strategy", ["range", "sticky", "cooperative-sticky+static"])
@settings(max_examples=scaled(15), derandomize=True, suppress_health_check=list(HealthCheck))
@given(scenario=calm_scenarios())
def test_it_agrees_wherever_changes_have_time_to_settle(strategy, scenario):
    assert differing(scenario, strategy) == {}


@pytest.mark.parametrize("strategy", STRATEGIES)
@settings(max_examples=scaled(10), derandomize=True, suppress_health_check=list(HealthCheck))
@given(scenario=calm_scenarios(owning=True))
def test_it_agrees_on_groups_that_run_already(strategy, scenario):
    assert differing(scenario, strategy) == {}


LIVE = {
    "name": "live",
    "duration": "5m",
    "topics": {"t": {"partitions": 6, "rate": 60, "backlog": 600}},
    "members": [
        {"id": "a", "topics": ["t"], "owned": {"t": [0, 5]}, "generation": 7},
        {"id": "b", "topics_pattern": "t", "owned": {"t": [1, 3, 4]}, "generation": 7},
        {"id": "c", "topics": ["t"], "owned": {}, "generation": 7},
    ],
}


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_a_group_that_runs_already_is_left_alone_where_nothing_happens(strategy):
    trace = plan(parse_scenario(LIVE, where="live"), strategy, default_registry())
    assert {line.at_ms for line in trace.events[:-1]} == {0}
    assert (trace.ended.group_state, trace.ended.generation) == ("Stable", 7)
    kinds = [type(line.event).__name__ for line in trace.events if isinstance(line.event, AT_START)]
    assert kinds == ["CoordinatorElected", *["MemberStarted", "Joined", "Assigned"] * 3]


AT_START = (ev.CoordinatorElected, ev.MemberStarted, ev.Joined, ev.Assigned, ev.GenerationStarted)


@pytest.mark.parametrize("strategy", STRATEGIES)
@pytest.mark.parametrize(
    "event",
    [{"leave": "b"}, {"crash": "a"}, {"join": {"id": "d", "topics": ["t"]}}, {"add_partitions": {"t": 9}}],
    ids=lambda event: next(iter(event)),
)
def test_it_agrees_on_what_happens_to_a_group_that_runs_already(strategy, event):
    config = {"metadata.max.age.ms": "40s"}
    document = LIVE | {"events": [{"at": "60s"} | event], "config": config}
    assert differing(parse_scenario(document, where="live"), strategy) == {}


@pytest.mark.parametrize(
    "event",
    [
        {"leave": ["c-0", "c-2"]},
        {"crash": ["c-1", "c-2"]},
        {"remove_member": "c-1"},
        {"freeze": ["c-0", "c-1"], "for": "70s"},
        {"rolling_restart": {"every": "60s", "down": "20s", "kill": True}},
        {"rolling_restart": {"every": "60s", "down": "20s", "batch": 2, "surge": 1}},
        {"rolling_restart": {"every": "60s", "down": "20s", "surge": 1, "kill": True}},
        {"delete_topic": "u"},
    ],
)
def test_it_agrees_on_events_that_change_several_members(event):
    document = {
        "name": "several",
        "duration": "8m",
        "topics": {"t": {"partitions": 12, "rate": 1}, "u": {"partitions": 3}},
        "members": [{"id": "c", "count": 4, "topics": ["t", "u"]}],
        "events": [{"at": "60s", **event}],
        "config": {"session.timeout.ms": "10s"},
    }
    assert differing(parse_scenario(document, where="several"), "sticky") == {}


def test_equal_arguments_give_equal_traces():
    scenario = load_scenario(SCENARIOS / "mixed-subscriptions.yaml")
    first, second = (plan(scenario, "cooperative-sticky", default_registry()) for _ in range(2))
    assert first.encode() == second.encode()
    assert first.ended.group_state == "Stable"


def test_an_assignor_that_fails_is_named_with_its_group():
    class Plugin:
        @hookimpl
        def assignors(self):
            return [AssignorSpec("wrong", Wrong)]

    registry = installed_registry()
    registry.register(Plugin())
    with pytest.raises(AssignmentError, match="assignor 'wrong' on group 'leave'"):
        plan(load_scenario(SCENARIOS / "leave.yaml"), "wrong", registry)


class Wrong:
    name = "wrong"

    def assign(self, cluster, group):
        raise KeyError("t")


def test_an_unknown_strategy_is_refused():
    with pytest.raises(InputError, match="nope"):
        plan(load_scenario(SCENARIOS / "leave.yaml"), "nope", default_registry())


@pytest.mark.parametrize("strategy", ["watcher", "rocketmq", "range+server-side", "cooperative-sticky+delay"])
def test_what_a_plan_cannot_compute_is_refused(strategy):
    """The protocols whose rounds depend on messages, and a delay, which ends without an event."""
    with pytest.raises(InputError, match="expected a simulation with messages"):
        plan(load_scenario(SCENARIOS / "leave.yaml"), strategy, default_registry())


def small(*events, **fields):
    """Two members whose sessions last 10 s."""
    members = [{"id": name, "topics": ["t"]} for name in "ab"]
    defaults = {"duration": "5m", "topics": {"t": {"partitions": 4, "rate": 1}}, "members": members}
    return scenario_of(*events, **{**defaults, "config": {"session.timeout.ms": "10s"}, **fields})


def planned(scenario, strategy="sticky"):
    return plan(scenario, strategy, default_registry())


def joins(name, at):
    return {"at": at, "join": {"id": name, "topics": ["t"]}}


PAUSE = {"at": "60s", "pause": "b", "for": "40s"}
LONG_SESSIONS = {"session.timeout.ms": "45s"}
ROUNDS = {
    "changes within a heartbeat share a round": (
        [joins("c", "60s"), joins("d", "61s")],
        {},
        [(63_000, "abcd")],
    ),
    "a round waits for a member that vanished until its session ends": (
        [{"at": "60s", "crash": "b"}, joins("c", "70s")],
        {"config": {"session.timeout.ms": "30s"}},
        [(90_000, "ac")],
    ),
    "a frozen member is out of the group after its session until it continues": (
        [{"at": "60s", "freeze": "b", "for": "70s"}],
        {},
        [(73_000, "a"), (133_000, "ab")],
    ),
    "a round waits for a member that stands still": (
        [PAUSE, joins("c", "70s")],
        {"config": LONG_SESSIONS},
        [(100_000, "abc")],
    ),
    "a pause within a pause does not end it": (
        [
            {"at": "60s", "pause": "b", "for": "40s"},
            {"at": "62s", "pause": "b", "for": "2s"},
            joins("c", "65s"),
        ],
        {"config": LONG_SESSIONS},
        [(100_000, "abc")],
    ),
    "a member that is away for its session stays": ([{"at": "60s", "freeze": "b", "for": 10_000}], {}, []),
}
INEXACT = {"changes within a heartbeat share a round", "a member that is away for its session stays"}
"""In a run these depend on the phase of heartbeats."""


@pytest.mark.parametrize("case", ROUNDS)
def test_a_plan_has_the_rounds_of_the_protocol(case):
    events, fields, expected = ROUNDS[case]
    scenario = small(*events, **fields)
    started = [(e.at_ms, e.event.members) for e in seen(planned(scenario), ev.GenerationStarted)]
    assert started[1:] == [(at_ms, [f"{name}-" for name in names]) for at_ms, names in expected]
    assert case in INEXACT or differing(scenario, "sticky") == {}


def test_a_member_that_is_away_for_longer_than_its_session_is_removed():
    assert len(rounds(planned(small({"at": "60s", "freeze": "b", "for": 10_001})))) == 2


def test_the_first_round_waits_for_the_initial_delay():
    delays = [{"group.initial.rebalance.delay.ms": delay} for delay in ("0s", "7s")]
    (soon,), (late,) = (rounds(planned(small(config=config))) for config in delays)
    assert late - soon == 7_000


def test_a_static_member_that_closes_is_removed_with_its_session():
    leaves = small({"at": "60s", "leave": "b"})
    assert rounds(planned(leaves))[1] < 64_000
    assert rounds(planned(leaves, "sticky+static"))[1] >= 70_000


def test_a_static_member_that_is_back_in_its_session_causes_no_round():
    scenario = small({"at": "60s", "leave": "b"}, {"at": "65s", "restart": "b"})
    assert len(rounds(planned(scenario, "sticky+static"))) == 1


def test_what_happens_at_the_end_belongs_to_the_plan():
    assert times(planned(small({"at": "5m", "crash": "b"})), ev.MemberStopped) == [300_000]


def test_what_a_member_keeps_is_not_added():
    trace = planned(small(joins("c", "60s")), "cooperative-sticky")
    kept = [line.event for line in seen(trace, ev.Assigned, from_ms=60_001) if line.event.client != "c"]
    assert kept
    assert not any(event.added for event in kept)
