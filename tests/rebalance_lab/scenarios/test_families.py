"""The settings of protocols: each is read by a strategy, or an error."""

import pytest

from coordinator_core.errors import InputError
from rebalance_lab import default_registry, measure, simulate
from rebalance_lab.scenarios.families import check_settings, family_for, idle
from rebalance_lab.scenarios.scenario import parse_scenario

REGISTRY = default_registry()
DELAY = "scheduled.rebalance.max.delay.ms"
SESSION = "zookeeper.session.timeout.ms"


def stopped_s(strategy, **config):
    """How long the partitions of a member stood still that has crashed for good, at most."""
    document = {
        "name": "g",
        "duration": "4m",
        "topics": {"t": {"partitions": 4, "rate": 400}},
        "members": [{"id": "c", "count": 2, "topics": ["t"], "process_rate": 900}],
        "events": [{"at": "60s", "crash": "c-1"}],
        "config": {"session.timeout.ms": 10_000, **config},
    }
    scenario = parse_scenario(document, where="g.yaml", registry=REGISTRY)
    return measure(simulate(scenario, strategy, REGISTRY), REGISTRY)["longest_stop_seconds"]


def test_a_delay_without_a_time_has_that_of_the_settings():
    """PROTOCOL 11.6: the name is that of Kafka Connect, and a time in the strategy counts in its place."""
    of_settings = stopped_s("cooperative-sticky+delay", **{DELAY: "30s"})
    assert of_settings == stopped_s("cooperative-sticky+delay=30s")
    assert of_settings == stopped_s("cooperative-sticky+delay=30s", **{DELAY: "60s"})
    assert 30 < of_settings < 50
    assert stopped_s("cooperative-sticky+delay", **{DELAY: 0}) == stopped_s("cooperative-sticky")


def test_a_delay_without_a_time_and_settings_is_that_of_kafka_connect():
    assert stopped_s("cooperative-sticky+delay") > 170  # to the end of the run


@pytest.mark.parametrize(
    ("name", "strategies", "expected"),
    [
        (DELAY, ["range"], "a strategy with +delay"),
        (DELAY, ["cooperative-sticky+delay=30s", "watcher"], "a strategy with +delay"),
        (SESSION, ["range", "rocketmq"], "a strategy with +watcher"),
        ("owner.nodes", ["watcher+owners=off"], "a strategy with +watcher"),
        ("channel.expired.timeout", ["watcher"], "a strategy with +peers"),
    ],
)
def test_a_setting_that_no_strategy_reads_is_an_error(name, strategies, expected):
    with pytest.raises(InputError) as caught:
        check_settings([name], strategies, "scenario 'g': config", REGISTRY)
    listed = ", ".join(strategies)
    assert str(caught.value) == (
        f"scenario 'g': config.{name}: found a setting that no strategy reads ({listed}), expected {expected}"
    )


@pytest.mark.parametrize(
    ("name", "strategies"),
    [
        (DELAY, ["range", "cooperative-sticky+delay"]),
        (SESSION, ["range", "watcher"]),
        ("channel.expired.timeout", ["rocketmq"]),
        ("session.timeout.ms", ["watcher"]),
    ],
)
def test_a_setting_that_one_strategy_reads_may_be_there(name, strategies):
    check_settings([name], strategies, "scenario 'g': config", REGISTRY)


def test_every_command_takes_a_setting_that_no_strategy_reads_and_says_so_once(lab, tmp_path):
    path = tmp_path / "g.yaml"
    path.write_text(
        "{name: g, duration: 1m, topics: {t: {partitions: 1}}, members: [{id: a, topics: [t]}],"
        f" config: {{{SESSION}: 9s}}}}"
    )
    for command in ("compare", "simulate", "explain", "advise"):
        answer = lab(command, path, "-s", "range")
        assert answer.status == 0
        assert answer.err == f"warning: scenario 'g': {SESSION} does nothing under range\n"
    assert lab("compare", path, "-s", "range", "-s", "watcher").err == ""


def test_no_strategy_reads_what_a_sweep_sets_is_an_error(lab, tmp_path):
    path = tmp_path / "g.yaml"
    path.write_text("{name: g, duration: 1m, topics: {t: {partitions: 1}}, members: [{id: a, topics: [t]}]}")
    answer = lab("compare", path, "-s", "range", "--set", f"{SESSION}=9s,12s")
    assert (answer.status, "a setting that no strategy reads" in answer.err) == (2, True)


def idle_of(config, *strategies, member=None):
    document = {
        "name": "g",
        "duration": "4m",
        "topics": {"t": {"partitions": 4}},
        "members": [{"id": "c", "topics": ["t"], "config": member}],
        "config": config,
    }
    return idle(parse_scenario(document, where="g.yaml"), (), strategies, REGISTRY)


UNIFORM = "uniform-848+reconcile"


@pytest.mark.parametrize(
    ("config", "strategies", "expected"),
    [
        ({"session.timeout.ms": "9s"}, ["range"], []),
        (
            {"session.timeout.ms": "9s"},
            ["range", UNIFORM],
            [f"session.timeout.ms does nothing under {UNIFORM} (group.consumer.session.timeout.ms counts)"],
        ),
        ({"session.timeout.ms": "9s", "group.consumer.session.timeout.ms": "9s"}, ["range", UNIFORM], []),
        (
            {"group.initial.rebalance.delay.ms": 0},
            [UNIFORM, "rocketmq"],
            [f"group.initial.rebalance.delay.ms does nothing under {UNIFORM}, rocketmq"],
        ),
        ({"max.poll.interval.ms": "90s"}, [UNIFORM], []),
    ],
)
def test_a_setting_with_another_in_its_place_is_said_to_do_nothing(config, strategies, expected):
    assert idle_of(config, *strategies) == expected


def test_a_setting_of_a_member_that_does_nothing_is_said_too():
    assert idle_of({}, UNIFORM, member={"heartbeat.interval.ms": "1s"}) == [
        f"heartbeat.interval.ms does nothing under {UNIFORM} (group.consumer.heartbeat.interval.ms counts)"
    ]


CHANGED = {"group.max.size": 2, "session.timeout.ms": 20_000, "heartbeat.interval.ms": 1_000}
"""Values with which the run below would be another one, were they read."""


@pytest.mark.parametrize("strategy", [UNIFORM, "watcher", "rocketmq", "range"])
def test_settings_said_to_do_nothing_do_nothing_and_the_others_of_rounds_do_something(strategy):
    document = {
        "name": "g",
        "duration": "3m",
        "topics": {"t": {"partitions": 8, "rate": 100, "backlog": 900}},
        "members": [{"id": "c", "count": 3, "topics": ["t"], "process_rate": 300}],
        "events": [
            {"at": "40s", "crash": "c-1"},
            {"at": "70s", "freeze": "c-2", "for": "60s"},
            {"at": "150s", "leave": "c-0"},
        ],
    }

    def run(config):
        scenario = parse_scenario({**document, "config": config}, where="g.yaml")
        return simulate(scenario, strategy, REGISTRY).encode()

    unread, as_it_is = REGISTRY.protocol(REGISTRY.strategy(strategy).protocol).unread, run({})
    assert all(run({name: CHANGED[name]}) == as_it_is for name in CHANGED if name in unread)
    assert all(run({name: CHANGED[name]}) != as_it_is for name in CHANGED if name not in unread)


def family(strategy, *, event=None, config=None, **member):
    document = {
        "name": "g",
        "duration": "4m",
        "topics": {"t": {"partitions": 4}},
        "members": [{"id": "c", "topics": ["t"], **member}],
        "events": [] if event is None else [{"at": "60s", **event}],
        "config": config or {},
    }
    scenario = parse_scenario(document, where="g.yaml", registry=REGISTRY)
    return family_for(scenario, REGISTRY.strategy(strategy), REGISTRY)


def test_a_setting_of_the_strategy_counts_in_place_of_that_of_the_scenario():
    assert family("watcher", config={"owner.nodes": True}).config["owner.nodes"] is True
    found = family("watcher+owners=off", config={"owner.nodes": True})
    assert found.config["owner.nodes"] == REGISTRY.strategy("watcher+owners=off").settings["owner.nodes"]
    assert found.config["owner.nodes"] is not True


def test_a_family_without_static_members_refuses_an_instance_id():
    family("range", instance_id="i")
    with pytest.raises(InputError, match="an instance_id under the protocol 'peers'"):
        family("rocketmq", instance_id="i")


def test_an_event_without_a_meaning_is_refused():
    family("range", event={"coordinator_failover": {"down": "3s"}})
    with pytest.raises(InputError, match="an event without a meaning under the protocol 'peers'"):
        family("rocketmq", event={"remove_member": "c"})
