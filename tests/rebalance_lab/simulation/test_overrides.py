"""Members with settings and assignors of their own, and the two bounces from eager to cooperative."""

from dataclasses import replace

import pytest

from coordinator_core.errors import InputError
from coordinator_core.protocol import events as ev
from coordinator_core.registry.hookspecs import hookimpl
from coordinator_core.registry.registry import default_registry, installed_registry
from rebalance_lab.scenarios.families import family_for
from rebalance_lab.simulation.planning.plan import plan
from rebalance_lab.simulation.run import simulate
from tests.coordinator_core.families import toy
from tests.rebalance_lab.simulation import runs

BOTH = ["cooperative-sticky", "range"]


def scenario_of(*events, members=({"id": "c", "count": 3},), **fields):
    """Members of a topic of twelve partitions, with settings of their own."""
    listed = [{"topics": ["t"], **member} for member in members]
    topics = {"t": {"partitions": 12, "rate": 60}}
    return runs.scenario_of(*events, **{"duration": "12m", "members": listed, "topics": topics, **fields})


def run(scenario, strategy="range"):
    return runs.watched(scenario, strategy)[0]


def of(trace, kind, from_s=0, to_s=10**6):
    return [e.event for e in trace.events if isinstance(e.event, kind) and from_s <= e.at_ms / 1_000 < to_s]


def revoked(trace, from_s, to_s):
    return sum(len(n) for e in of(trace, ev.Revoked, from_s, to_s) for n in e.partitions.values())


def joins(name, at):
    return {"at": at, "join": {"id": name, "topics": ["t"], "assignors": BOTH[: 1 + (name == "y")]}}


def test_two_rolling_restarts_take_a_group_from_eager_to_cooperative():
    """In the first all members learn cooperative-sticky, in the second they forget range. Until the second
    is over, rounds stop everybody; afterwards only what moves is revoked (PROTOCOL 9.8)."""
    every = {"every": "20s", "down": "5s"}
    trace = run(
        scenario_of(
            {"at": "60s", "join": {"id": "x", "topics": ["t"]}},
            {"at": "2m", "rolling_restart": {**every, "assignors": BOTH}},
            joins("y", "5m"),
            {"at": "6m", "rolling_restart": {**every, "assignors": BOTH[:1]}},
            joins("z", "10m"),
        )
    )
    assert {e.protocol for e in of(trace, ev.GenerationStarted, 60, 180)} == {"range"}
    assert {e.protocol for e in of(trace, ev.GenerationStarted, 210)} == {"cooperative-sticky"}
    assert revoked(trace, 60, 120) == 12
    assert revoked(trace, 300, 360) == 12
    assert revoked(trace, 600, 720) == 12 // 6
    assert of(trace, ev.ConsumerFailed) == []
    assert trace.ended.group_state == "Stable"


def test_a_member_that_shares_no_assignor_with_the_group_is_refused_by_it():
    trace = run(scenario_of(joins("z", "60s")))
    (failed,) = of(trace, ev.ConsumerFailed)
    assert failed.client == "z"
    assert "INCONSISTENT_GROUP_PROTOCOL" in failed.error


def test_the_assignor_is_the_one_that_most_members_prefer():
    members = [
        {"id": "a", "assignors": ["sticky", "range"]},
        {"id": "b", "count": 2, "assignors": BOTH[::-1]},
    ]
    members[0]["assignors"].append("cooperative-sticky")
    trace = run(scenario_of(members=members, duration="60s"), "roundrobin")
    assert {e.protocol for e in of(trace, ev.GenerationStarted)} == {"range"}


def test_members_that_come_back_keep_their_assignors():
    events = [
        {"at": "60s", "rolling_restart": {"every": "5s", "down": "1s", "assignors": BOTH}},
        {"at": "2m", "rolling_restart": {"every": "5s", "down": "1s", "surge": 1}},
        {"at": "4m", "restart": "c-0-2"},
    ]
    trace = run(scenario_of(*events, duration="5m"))
    assert of(trace, ev.GenerationStarted)[-1].protocol == "cooperative-sticky"


def test_a_group_that_runs_already_has_agreed_on_an_assignor():
    members = [
        {"id": "a", "owned": {"t": [0, 1, 2, 3, 4, 5]}, "assignors": ["sticky", "range"]},
        {"id": "b", "owned": {"t": [6, 7, 8, 9, 10, 11]}, "assignors": ["range"]},
    ]
    trace = run(scenario_of(members=members, duration="60s"), "roundrobin")
    assert {e.protocol for e in of(trace, ev.Joined)} == {"range"}
    assert of(trace, ev.GenerationStarted) == []
    members[1]["assignors"] = ["roundrobin"]
    with pytest.raises(InputError, match="members with owned without a common assignor"):
        run(scenario_of(members=members, duration="60s"))


@pytest.mark.parametrize("simulation", [simulate, plan])
def test_a_member_has_its_own_session(simulation):
    members = [{"id": "c", "count": 2}, {"id": "brief", "config": {"session.timeout.ms": "10s"}}]
    events = [{"at": "60s", "crash": "brief"}, {"at": "3m", "crash": "c-0"}]
    trace = simulation(scenario_of(*events, members=members), "range", default_registry())
    rounds = [e.at_ms for e in trace.events if isinstance(e.event, ev.GenerationStarted) if e.at_ms > 60_000]
    assert 65_000 < rounds[0] < 75_000
    assert 215_000 < rounds[1] < 230_000


def test_members_keep_their_settings_through_joins_and_restarts():
    member = {"id": "x", "topics": ["t"], "config": {"session.timeout.ms": "10s"}}
    events = [
        {"at": "60s", "join": member},
        {"at": "2m", "restart": "x"},
        {"at": "4m", "crash": "x"},
    ]
    trace = run(scenario_of(*events, members=[{"id": "c", "count": 2}]))
    (round_after,) = of(trace, ev.GenerationStarted, 240)
    assert len(round_after.members) == 2
    assert of(trace, ev.GenerationStarted, 240, 255) == [round_after]


def test_a_plan_does_not_choose_among_assignors():
    scenario = scenario_of({"at": "60s", "rolling_restart": {"every": 1, "down": 1, "assignors": BOTH}})
    with pytest.raises(InputError, match="among which a plan does not choose"):
        plan(scenario, "range", default_registry())


class Deaf:
    """A protocol whose coordinator assigns."""

    @hookimpl
    def protocols(self):
        return [replace(toy.TOY, name="deaf", meaningless={"assignors": "the coordinator assigns"})]


def test_a_family_that_has_no_use_for_assignors_of_members_refuses_them():
    registry = installed_registry()
    registry.register(Deaf())
    strategy = registry.strategy("range+deaf")
    for scenario in (scenario_of(joins("z", "60s")), scenario_of(members=[{"id": "c", "assignors": BOTH}])):
        with pytest.raises(InputError, match=r"under the protocol 'deaf' \(the coordinator assigns\)"):
            family_for(scenario, strategy, registry)
    family_for(scenario_of(), strategy, registry)


WRONG = {
    "a setting of the coordinator": (
        {"config": {"group.max.size": 3}},
        "config.group.max.size",
        "the unknown setting 'group.max.size'",
    ),
    "a bad value": ({"config": {"session.timeout.ms": "x"}}, "config.session.timeout.ms", "'x'"),
    "a contradiction with the scenario": (
        {"config": {"session.timeout.ms": "3s"}},
        "config.heartbeat.interval.ms",
        "3000",
    ),
    "an unknown assignor": ({"assignors": ["range", "rang"]}, "assignors[1]", "'rang'"),
    "an assignor as text": ({"assignors": "range"}, "assignors", "'range'"),
    "an assignor twice": ({"assignors": ["range", "range"]}, "assignors", "'range' twice"),
    "a protocol": (
        {"assignors": ["range+static"]},
        "assignors[0]",
        "'range+static', which is more than an assignor",
    ),
}


@pytest.mark.parametrize(("fields", "path", "found"), WRONG.values(), ids=WRONG.keys())
def test_what_is_wrong_in_a_member_of_its_own_is_named(fields, path, found):
    with pytest.raises(InputError) as caught:
        scenario_of(members=[{"id": "c"}, {"id": "d", **fields}])
    assert (caught.value.where, caught.value.found) == (f"test: members[1].{path}", found)
    with pytest.raises(InputError) as caught:
        scenario_of({"at": "1s", "join": [{"id": "d", "topics": ["t"], **fields}]})
    assert (caught.value.where, caught.value.found) == (f"test: events[0].join[0].{path}", found)


def test_a_rolling_restart_to_an_unknown_assignor_is_refused():
    with pytest.raises(InputError) as caught:
        scenario_of({"at": 1, "rolling_restart": {"every": 1, "down": 1, "assignors": ["cooperative"]}})
    assert caught.value.where == "test: events[0].rolling_restart.assignors[0]"
    assert "(did you mean 'cooperative-sticky'?)" in caught.value.expected


def test_under_reconcile_the_assignor_that_most_members_name_counts():
    restart = {"every": "10s", "down": "2s", "assignors": ["range-848"]}
    trace = run(
        scenario_of({"at": "20s", "rolling_restart": restart}, duration="2m"), "uniform-848+reconcile"
    )
    started = [event.protocol for event in of(trace, ev.GenerationStarted)]
    assert list(dict.fromkeys(started)) == ["uniform-848", "range-848"]


@pytest.mark.parametrize(
    ("assignors", "strategy", "problem"),
    [
        (["range-848", "uniform-848"], "uniform-848+reconcile", "a member names one"),
        (["range-848"], "range", "'range-848' is an assignor of the protocol reconcile or server-side"),
        (["range"], "range+watcher", "under the protocol 'watcher'"),
    ],
)
def test_assignors_of_members_have_to_suit_the_protocol(assignors, strategy, problem):
    with pytest.raises(InputError, match=problem):
        run(scenario_of(members=[{"id": "c", "assignors": assignors}]), strategy)
