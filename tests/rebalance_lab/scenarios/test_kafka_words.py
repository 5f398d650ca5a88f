"""Kafka's words for the protocol and the assignors of consumers, in scenarios and members."""

import pytest

from coordinator_core.errors import InputError
from rebalance_lab import default_registry, simulate
from rebalance_lab.scenarios.scenario import parse_scenario

REGISTRY = default_registry()
CLIENTS, BROKERS = "org.apache.kafka.clients.consumer", "org.apache.kafka.coordinator.group.assignor"
UNIFORM = "uniform-848+reconcile"


def scenario_of(config=None, members=None, events=()):
    document = {
        "name": "g",
        "duration": "2m",
        "topics": {"t": {"partitions": 6, "rate": 60}},
        "members": members or [{"id": "c", "count": 2, "topics": ["t"]}],
        "events": list(events),
        "config": config or {},
    }
    return parse_scenario(document, where="g.yaml", registry=REGISTRY)


def listed(*names):
    return {"partition.assignment.strategy": list(names)}


@pytest.mark.parametrize(
    ("config", "strategy"),
    [
        ({}, ""),
        ({"group.protocol": "classic"}, "range"),
        ({"group.protocol": "consumer"}, UNIFORM),
        ({"group.protocol": "CONSUMER", "group.remote.assignor": "range"}, "range-848+reconcile"),
        ({"group.protocol": "consumer", "group.remote.assignor": None}, UNIFORM),
        (listed("CooperativeStickyAssignor"), "cooperative-sticky"),
        ({"partition.assignment.strategy": f"{CLIENTS}.StickyAssignor"}, "sticky"),
        ({"partition.assignment.strategy": "RangeAssignor, CooperativeStickyAssignor"}, "range"),
        ({"group.protocol": "classic", **listed("roundrobin")}, "roundrobin"),
    ],
)
def test_the_words_of_a_scenario_choose_its_strategy(config, strategy):
    scenario = scenario_of(config)
    assert (scenario.words.strategy, scenario.config) == (strategy, {})


def error_of(config, **more):
    with pytest.raises(InputError) as caught:
        scenario_of(config, **more)
    return str(caught.value)


def test_what_kafkas_consumer_refuses_is_refused():
    both = {"group.protocol": "consumer", **listed("RangeAssignor")}
    assert error_of(both) == (
        "g.yaml: config.partition.assignment.strategy: found a setting that Kafka's consumer refuses with"
        " group.protocol=consumer, expected group.protocol: classic beside it"
    )
    assert error_of({"group.remote.assignor": "range"}).endswith(
        "expected group.protocol: consumer beside it"
    )
    assert "expected classic or consumer" in error_of({"group.protocol": "streams"})


def test_an_assignor_of_others_is_told_with_the_strategy_to_give():
    assert error_of(listed("com.example.MyAssignor")).endswith(
        "expected one of Kafka's (range, roundrobin, sticky, cooperative-sticky); an assignor of your own is"
        " a strategy: -s file.py:Name, or `assignors` of members"
    )
    assert "did you mean 'uniform'?" in error_of(
        {"group.protocol": "consumer", "group.remote.assignor": "unifrom"}
    )


def test_several_assignors_that_differ_from_the_first_alone_belong_to_the_members():
    """The group of both is eager, and cooperative-sticky alone is not."""
    assert error_of(listed("CooperativeStickyAssignor", "RangeAssignor")).endswith(
        "found 2 assignors (cooperative-sticky, range), expected one, which is the strategy, and the list as"
        " `assignors` of the members"
    )
    restart = {"every": "5s", "down": "1s", "assignors": ["cooperative-sticky"]}
    events = [{"at": "10s", "rolling_restart": restart}]
    assert "found 2 assignors" in error_of(
        listed("RangeAssignor", "CooperativeStickyAssignor"), events=events
    )


def test_the_words_of_a_member_are_its_protocol_and_assignors():
    def own(config, **more):
        scenario = scenario_of(members=[{"id": "c", "topics": ["t"], "config": config, **more}])
        return scenario.members[0].overrides

    found = own({"partition.assignment.strategy": "RangeAssignor,StickyAssignor", "max.poll.records": 5})
    assert (found.protocol, found.assignors) == ("classic", ("range", "sticky"))
    assert found.config == {"max.poll.records": 5}
    found = own({"group.protocol": "consumer", "group.remote.assignor": f"{BROKERS}.RangeAssignor"})
    assert (found.protocol, found.assignors) == ("consumer", ("range-848",))
    with pytest.raises(InputError, match=r"found assignors beside partition\.assignment"):
        own(listed("StickyAssignor"), assignors=["range"])


def test_members_of_both_protocols_make_one_group():
    members = [
        {"id": "old", "count": 2, "topics": ["t"], "config": {"group.protocol": "classic"}},
        {"id": "new", "topics": ["t"], "config": {"group.protocol": "consumer"}},
    ]
    for strategy in ("range", UNIFORM):
        trace = simulate(scenario_of(members=members), strategy, REGISTRY)
        assert trace.events[0].event.protocol == "migration"
        owned = {}
        for line in trace.events:
            if type(line.event).__name__ == "Assigned":
                owned[line.event.client] = len(line.event.owned.get("t", ()))
        assert owned == {"old-0": 2, "old-1": 2, "new": 2}


def test_members_whose_protocol_is_the_strategys_are_no_mixed_group():
    members = [{"id": "c", "topics": ["t"], "config": {"group.protocol": "consumer"}}]
    trace = simulate(scenario_of(members=members), UNIFORM, REGISTRY)
    assert trace.events[0].event.protocol == "reconcile"
    with pytest.raises(InputError, match=r"members with a group.protocol under the protocol 'peers'"):
        simulate(scenario_of(members=members), "rocketmq", REGISTRY)


def test_a_command_without_a_strategy_runs_the_scenarios_own(lab, tmp_path):
    path = tmp_path / "g.yaml"
    path.write_text(
        "{name: g, duration: 1m, topics: {t: {partitions: 2}}, members: [{id: a, topics: [t]}],"
        " config: {group.protocol: consumer}}"
    )
    assert f"g under {UNIFORM}" in lab("simulate", path).out
    other = lab("simulate", path, "-s", "range")
    assert "g under range" in other.out
    assert other.err == (
        f"warning: scenario 'g': group.protocol would choose {UNIFORM}, which is not among the strategies\n"
    )
