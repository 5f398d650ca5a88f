"""Configurations of single groups of the consumer protocol: the requests for them, and what follows."""

from contextlib import closing

import pytest
from kio.schema.errors import ErrorCode as Wire

from coordinator_core.coordinator.reconcile.settings import ReconcileSettings
from coordinator_core.errors import InputError
from rebalance_kafka import EmbeddedBroker
from rebalance_kafka.broker.group_configs import GroupConfigs
from rebalance_kafka.broker.store import Store
from rebalance_kafka.wire.apis import Api
from tests.rebalance_kafka.frames import Desk, their_class
from tests.rebalance_kafka.live import ask, run
from tests.rebalance_kafka.test_consumer_groups import Member, closed, serving

TOPIC, GROUP = 2, 32
SET, DELETE, APPEND, _ = range(4)
SESSION, HEARTBEAT = "consumer.session.timeout.ms", "consumer.heartbeat.interval.ms"
ASSIGNMENT = "consumer.assignment.interval.ms"


@pytest.fixture
def desk():
    return Desk({"t": 2})


def resource_of(*changes, name="g", kind=GROUP):
    cls = their_class(Api.INCREMENTAL_ALTER_CONFIGS, "Request").AlterConfigsResource
    listed = [
        cls.AlterableConfig(name=key, config_operation=operation, value=value)
        for key, operation, value in changes
    ]
    return cls(resource_type=kind, resource_name=name, configs=listed)


def change(desk, *resources, **options):
    answer = desk.ask(Api.INCREMENTAL_ALTER_CONFIGS, 1, resources=list(resources), **options)
    return [(Wire(each.error_code), each.error_message) for each in answer.responses]


def described(desk, name="g", keys=None):
    cls = their_class(Api.DESCRIBE_CONFIGS, "Request").DescribeConfigsResource
    wanted = cls(resource_type=GROUP, resource_name=name, configuration_keys=keys)
    (answer,) = desk.ask(Api.DESCRIBE_CONFIGS, 4, resources=[wanted], include_synonyms=True).results
    return {entry.name: (entry.value, entry.config_source) for entry in answer.configs}


# --- requests


def test_the_configurations_of_a_group_are_set_described_and_deleted(desk):
    others = {HEARTBEAT: ("5000", 5), ASSIGNMENT: ("1000", 5)}
    assert described(desk) == {**others, SESSION: ("45000", 5)}
    assert change(desk, resource_of((SESSION, SET, "50000"))) == [(Wire.none, None)]
    assert described(desk) == {**others, SESSION: ("50000", 8)}
    assert described(desk, keys=[SESSION]) == {SESSION: ("50000", 8)}
    assert described(desk, "other")[SESSION] == ("45000", 5)
    assert desk.data.group_configs.own_settings("g") == {SESSION: 50_000}
    assert change(desk, resource_of((SESSION, DELETE, None))) == [(Wire.none, None)]
    assert described(desk)[SESSION] == ("45000", 5)


def test_topics_and_groups_are_changed_by_one_request(desk):
    answers = change(
        desk,
        resource_of(("retention.ms", SET, "5"), name="t", kind=TOPIC),
        resource_of((SESSION, SET, "50000"), name="t"),
        resource_of((SESSION, SET, "50000"), name="t"),
    )
    assert answers == [(Wire.none, None)] + [(Wire.invalid_request, "group t comes twice")] * 2
    assert desk.topics.configs == {"t": {"retention.ms": "5"}}
    assert desk.data.group_configs["t"] == {}
    assert change(desk, resource_of((SESSION, SET, "50000"), name="t")) == [(Wire.none, None)]
    assert desk.data.group_configs["t"] == {SESSION: "50000"}


@pytest.mark.parametrize(
    ("changes", "found"),
    [
        ([(SESSION, SET, "44999")], f"{SESSION}: found 44999, expected 45000 to 60000"),
        ([(HEARTBEAT, SET, "15001")], f"{HEARTBEAT}: found 15001, expected 5000 to 15000"),
        ([(SESSION, SET, "soon")], f"{SESSION}: found 'soon', expected a number of milliseconds"),
        ([(SESSION, SET, None)], f"{SESSION}: found None, expected a number of milliseconds"),
        ([(SESSION, APPEND, "50000")], "operation 2 on consumer.session.timeout.ms, expected 0"),
        ([("retention.ms", SET, "5")], "retention.ms: found no configuration of groups, expected consumer.h"),
        ([(HEARTBEAT, SET, "6000"), (SESSION, SET, "1")], f"{SESSION}: found 1, expected"),
    ],
)
def test_what_a_group_cannot_have_is_refused_and_changes_nothing(desk, changes, found):
    ((error, message),) = change(desk, resource_of(*changes))
    assert error is Wire.invalid_config
    assert message.startswith(found)
    assert desk.data.group_configs["g"] == {}


def test_a_topic_has_no_configuration_of_groups(desk):
    ((error, _),) = change(desk, resource_of((SESSION, SET, "50000"), name="t", kind=TOPIC))
    assert error is Wire.invalid_config
    ((error, _),) = change(desk, resource_of((SESSION, DELETE, None), name="t", kind=TOPIC))
    assert error is Wire.none, "there is nothing to delete"


def test_a_change_that_is_validated_only_changes_nothing(desk):
    assert change(desk, resource_of((SESSION, SET, "50000")), validate_only=True) == [(Wire.none, None)]
    assert desk.data.group_configs["g"] == {}


# --- what follows


def test_they_survive_and_count_as_far_as_the_limits_allow_them(tmp_path):
    with closing(Store(tmp_path)) as store:
        configs = GroupConfigs(store, ReconcileSettings())
        configs.configure({"g": {SESSION: "50000"}, "h": {HEARTBEAT: "6000"}})
    with closing(Store(tmp_path)) as store:
        configs = GroupConfigs(store, ReconcileSettings(max_session_timeout_ms=48_000))
        assert configs["g"] == {SESSION: "50000"}
        assert (configs.own_settings("g"), configs.own_settings("h")) == ({}, {HEARTBEAT: 6_000})


def test_a_version_of_kafka_lists_the_configurations_that_it_has(tmp_path):
    with closing(Store(tmp_path)) as store:
        assert ASSIGNMENT in GroupConfigs(store, ReconcileSettings(kafka="4.3")).defaults
        assert ASSIGNMENT not in GroupConfigs(store, ReconcileSettings(kafka="4.2")).defaults
    listed = "group.consumer.assignment.interval.ms"
    assert listed in EmbeddedBroker(settings={"kafka": "4.3"}).configs
    assert listed not in EmbeddedBroker(settings={"kafka": "4.2"}).configs


def test_a_session_is_longer_than_the_interval_of_its_group():
    settings = ReconcileSettings(max_heartbeat_interval_ms=50_000)
    with pytest.raises(InputError, match=r"session.timeout.ms: found 45000, expected more than"):
        settings.of_group({HEARTBEAT: 50_000})
    assert settings.of_group({HEARTBEAT: 50_000, SESSION: 60_000}).session_timeout_ms == 60_000


def test_members_of_the_group_get_its_interval_with_their_next_heartbeat():
    async def work():
        settings = {"group.consumer.min.heartbeat.interval.ms": 50}
        async with serving(settings=settings) as broker:
            member = await Member.of(broker, "a")
            assert (await member.join()).heartbeat_interval == 100
            resource = resource_of((HEARTBEAT, SET, "70"))
            answer = await ask(broker.address, Api.INCREMENTAL_ALTER_CONFIGS, 1, resources=[resource])
            assert answer.responses[0].error_code == 0
            assert (await member.beat()).heartbeat_interval == 70
            await closed(member)

    run(work())
