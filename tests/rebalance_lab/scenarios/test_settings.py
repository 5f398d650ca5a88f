"""The settings of a scenario."""

import pytest

from coordinator_core.client.config import ClientConfig
from coordinator_core.coordinator.config import CoordinatorConfig
from coordinator_core.coordinator.kafka_versions import VERSIONS
from coordinator_core.errors import InputError
from coordinator_core.reading.settings import configured
from coordinator_core.registry.registry import default_registry
from rebalance_lab.scenarios.families import family_for
from rebalance_lab.scenarios.scenario import parse_scenario
from rebalance_lab.scenarios.schema import settings_schema
from rebalance_lab.scenarios.settings import grid, parse_config
from rebalance_uncoordinated.peers.family import PEERS
from rebalance_uncoordinated.watcher.family import WATCHER

CONFIG = {"session.timeout.ms": "20s", "group.initial.rebalance.delay.ms": 0}


def test_each_side_gets_the_settings_that_concern_it():
    config = parse_config(CONFIG, "x.yaml: config", default_registry())
    client = configured(ClientConfig, config, group_id="g", client_id="c")
    coordinator = configured(CoordinatorConfig, config)
    assert (client.group_id, client.client_id, client.session_timeout_ms) == ("g", "c", 20_000)
    assert coordinator == CoordinatorConfig(initial_rebalance_delay_ms=0)


def test_a_simulated_consumer_reads_from_the_beginning_unless_told_otherwise():
    registry = default_registry()
    document = {
        "name": "g",
        "duration": "1m",
        "topics": {"t": {"partitions": 1}},
        "members": [{"id": "m", "topics": ["t"]}],
    }
    for config, expected in (({}, "earliest"), ({"auto.offset.reset": "none"}, "none")):
        scenario = parse_scenario({**document, "config": config}, where="x.yaml")
        family = family_for(scenario, registry.strategy("range"), registry)
        assert family.client_config(group_id="g").auto_offset_reset == expected


TIMES = ("heartbeat.broker.interval", "rocketmq.client.rebalance.waitInterval", "channel.expired.timeout")


@pytest.mark.parametrize("name", [*TIMES, "zookeeper.session.timeout.ms"])
def test_a_time_may_be_a_duration_whatever_its_name_ends_with(name):
    assert parse_config({name: "5s"}, "x.yaml: config", default_registry()) == {name: 5_000}
    schema = settings_schema(spec.settings for spec in (PEERS, WATCHER))["properties"][name]
    assert schema["$ref"] == "#/$defs/duration"


def test_a_number_is_no_duration():
    with pytest.raises(InputError, match="found '5s', expected a whole number"):
        parse_config({"rebalance.max.retries": "5s"}, "x.yaml: config", default_registry())


@pytest.mark.parametrize(
    ("config", "found"),
    [
        ({"session.timeout.ms": "1s"}, "3000 (the default)"),
        ({"session.timeout.ms": "1s", "heartbeat.interval.ms": "3s"}, "3000"),
    ],
)
def test_a_wrong_value_that_nobody_wrote_is_called_the_default(config, found):
    with pytest.raises(InputError) as caught:
        parse_config(config, "x.yaml: config", default_registry())
    assert str(caught.value) == (
        f"x.yaml: config.heartbeat.interval.ms: found {found}, expected less than session.timeout.ms (1000)"
    )


# --- grids


def test_a_grid_has_a_configuration_for_each_combination_and_keeps_the_other_settings():
    texts = ["session.timeout.ms=6s, 45000", "enable.auto.commit=true,false"]
    combined = grid(texts, {"heartbeat.interval.ms": 1_000}, "--set", default_registry())
    assert [labels for labels, _ in combined] == [
        {"session.timeout.ms": session, "enable.auto.commit": commit}
        for session in ("6s", "45000")
        for commit in ("true", "false")
    ]
    assert combined[1][1] == {
        "heartbeat.interval.ms": 1_000,
        "session.timeout.ms": 6_000,
        "enable.auto.commit": False,
    }


def test_a_grid_of_nothing_is_the_configuration_as_it_is():
    config = {"session.timeout.ms": 6_000}
    assert grid([], config, "--set", default_registry()) == [({}, config)]


@pytest.mark.parametrize(
    ("texts", "error"),
    [
        (["session.timeout.ms"], "--set: found 'session.timeout.ms', expected NAME=VALUE,VALUE, such as "),
        (["session.timeout.ms=6s,"], "--set: found 'session.timeout.ms=6s,', expected NAME=VALUE,VALUE"),
        (["=6s"], "--set: found '=6s', expected NAME=VALUE,VALUE, such as session.timeout.ms=6s,45s"),
        (["a=1", "a=2"], "--set: found a twice, expected it once"),
        (["max.poll.records=5,5"], "--set: found max.poll.records=5,5 twice"),
        (["sesion.timeout.ms=6s"], "--set: sesion.timeout.ms: found the unknown setting"),
        (["session.timeout.ms=6x"], "--set: session.timeout.ms: found '6x', expected "),
        (["enable.auto.commit=yes"], "--set: enable.auto.commit: found 'yes', expected true or false"),
        (["session.timeout.ms=2s,6s"], "--set: heartbeat.interval.ms: found 3000"),
    ],
)
def test_a_wrong_grid_is_one_error_that_names_the_setting(texts, error):
    with pytest.raises(InputError) as caught:
        grid(texts, {}, "--set", default_registry())
    assert str(caught.value).startswith(error)


def kafka_of(**fields):
    document = {
        "name": "g",
        "duration": "1m",
        "topics": {"t": {"partitions": 1}},
        "members": [{"id": "m", "topics": ["t"]}],
        **fields,
    }
    scenario = parse_scenario(document, where="x.yaml")
    registry = default_registry()
    family = family_for(scenario, registry.strategy("uniform-848+reconcile"), registry)
    return family.coordinator_config().kafka, family.settings().kafka


def test_the_version_of_kafka_is_that_of_the_brokers_in_all_their_parts():
    assert kafka_of() == (VERSIONS[-1], VERSIONS[-1])
    for version in VERSIONS:
        assert kafka_of(kafka=version) == (version, version)


@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        (
            {"kafka": 4.2},
            'x.yaml: kafka: found 4.2, expected one of "4.0", "4.1", "4.2", "4.3", "4.4", in quotes',
        ),
        ({"config": {"kafka": "4.2"}}, "expected it as `kafka` of the scenario"),
        (
            {"kafka": "4.2", "config": {"group.consumer.assignment.interval.ms": "1s"}},
            "Kafka 4.3 is the first that has it, not 4.2",
        ),
    ],
)
def test_a_version_that_does_not_go_with_the_document_is_an_error(fields, expected):
    with pytest.raises(InputError) as caught:
        kafka_of(**fields)
    assert expected in str(caught.value)


def test_a_sweep_has_versions_as_values():
    found = grid(["kafka=4.2,4.4"], {}, "--set", default_registry())
    assert [labels["kafka"] for labels, _ in found] == ["4.2", "4.4"]
    assert [config["kafka"] for _, config in found] == ["4.2", "4.4"]
    with pytest.raises(InputError, match=r"--set: kafka: found '5.0'"):
        grid(["kafka=5.0"], {}, "--set", default_registry())
