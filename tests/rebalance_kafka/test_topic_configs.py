"""Configurations of topics: what is valid, and the requests that set and describe them."""

import pytest
from kio.schema.errors import ErrorCode as Wire

from rebalance_kafka.broker.topic_configs import CONFIGS, invalid
from rebalance_kafka.wire.apis import Api
from tests.rebalance_kafka.frames import Desk, their_class, versions
from tests.rebalance_kafka.records import batch

TOPIC, BROKER = 2, 4
SET, DELETE, APPEND = range(3)


@pytest.fixture
def desk():
    return Desk({"t": 2, "u": 1})


@pytest.mark.parametrize(
    ("name", "value", "found"),
    [
        ("retention.ms", "minus", "retention.ms='minus', expected a number from -1 to 9223372036854775807"),
        ("retention.ms", "-2", "retention.ms='-2', expected -1 to 9223372036854775807"),
        ("max.message.bytes", str(2**31), f"max.message.bytes='{2**31}', expected 0 to {2**31 - 1}"),
        ("min.cleanable.dirty.ratio", "1.5", "min.cleanable.dirty.ratio='1.5', expected 0 to 1"),
        ("preallocate", "yes", "preallocate='yes', expected true or false"),
        ("cleanup.policy", "compact,shred", "expected a list of compact, delete"),
        ("compression.gzip.level", "10", "compression.gzip.level='10', expected -1 to 9"),
        ("compression.lz4.level", "0", "expected 1 to 17"),
        ("compression.zstd.level", "23", "expected -131072 to 22"),
        ("local.retention.ms", "-3", "expected -2 to"),
        ("remote.storage.enable", "true", "remote.storage.enable='true', expected false"),
        ("compression.type", "zip", "expected one of uncompressed, zstd, lz4, snappy, gzip, producer"),
        ("retention.hours", "1", "'retention.hours' is not a configuration of topics"),
        ("retention.ms", None, "retention.ms without a value"),
    ],
)
def test_invalid_configurations_are_named(name, value, found):
    assert found in invalid({"segment.ms": "5", name: value})


def test_all_defaults_and_some_others_are_valid():
    assert invalid({name: config.default for name, config in CONFIGS.items()}) is None
    assert invalid({"cleanup.policy": "compact, delete", "preallocate": "TRUE", "retention.ms": "-1"}) is None


# --- CreateTopics


def create(desk, name, *, version=7, configs=(), assignments=(), **options):
    cls = their_class(Api.CREATE_TOPICS, "Request").CreatableTopic
    topic = cls(
        name=name,
        configs=[cls.CreatableTopicConfig(name=key, value=value) for key, value in configs],
        assignments=[
            cls.CreatableReplicaAssignment(partition_index=index, broker_ids=brokers)
            for index, brokers in assignments
        ],
        **{"num_partitions": 1, "replication_factor": 1, **options},
    )
    (created,) = desk.ask(Api.CREATE_TOPICS, version, topics=[topic], timeout_ms=1_000).topics
    return created


@versions(Api.CREATE_TOPICS)
def test_a_topic_with_an_invalid_configuration_is_not_created(desk, version):
    created = create(desk, "v", version=version, configs=[("retention.ms", "minus")])
    assert created.error_code == Wire.invalid_config
    assert "retention.ms='minus'" in created.error_message
    assert "v" not in desk.topics.partitions


@pytest.mark.parametrize("version", [5, 6, 7])
def test_the_configurations_of_a_new_topic_are_reported(desk, version):
    created = create(desk, "v", version=version, configs=[("retention.ms", "5")])
    reported = {config.name: (config.value, config.config_source) for config in created.configs}
    assert reported["retention.ms"] == ("5", 1)
    assert reported["segment.ms"] == ("604800000", 5)
    assert desk.topics.configs == {"v": {"retention.ms": "5"}}


@pytest.mark.parametrize(
    ("options", "error"),
    [
        ({"num_partitions": 1, "replication_factor": -1}, Wire.invalid_request),
        ({"num_partitions": -1, "replication_factor": 1}, Wire.invalid_request),
        ({"num_partitions": -1, "replication_factor": -1}, Wire.none),
    ],
)
def test_an_assignment_of_replicas_excludes_a_number_of_partitions(desk, options, error):
    created = create(desk, "v", assignments=[(0, [1]), (1, [1])], **options)
    assert created.error_code == error
    assert ("v" in desk.topics.partitions) is (error is Wire.none)


@pytest.mark.parametrize("assignments", [[(1, [1])], [(0, [2])], [(0, [1]), (0, [1])], [(0, [])]])
def test_an_assignment_of_replicas_names_each_partition_and_this_broker(desk, assignments):
    created = create(desk, "v", assignments=assignments, num_partitions=-1, replication_factor=-1)
    assert created.error_code == Wire.invalid_replica_assignment


def test_a_new_topic_has_an_id_from_version_7_on(desk):
    assert create(desk, "v").topic_id == desk.topics.ids["v"]


# --- max.message.bytes


def test_batches_larger_than_the_topic_allows_are_refused(desk):
    small, large = batch(bytes(100)), batch(bytes(1_000))
    desk.topics.create({"v": 1}, {"v": {"max.message.bytes": "500"}})
    refused, accepted, elsewhere = desk.topics.append([("v", 0, large), ("v", 0, small), ("t", 0, large)])
    assert refused.error is Wire.message_too_large
    assert "expected 500 at most (max.message.bytes)" in refused.message
    assert (accepted.error, elsewhere.error) == (Wire.none, Wire.none)
    (beyond,) = desk.topics.append([("t", 0, batch(bytes(1_100_000)))])
    assert beyond.error is Wire.message_too_large


# --- DescribeConfigs


def describe(desk, *resources, version=4, **options):
    cls = their_class(Api.DESCRIBE_CONFIGS, "Request").DescribeConfigsResource
    wanted = [
        cls(resource_type=kind, resource_name=name, configuration_keys=keys) for kind, name, keys in resources
    ]
    return desk.ask(Api.DESCRIBE_CONFIGS, version, resources=wanted, **options).results


@versions(Api.DESCRIBE_CONFIGS)
def test_the_configurations_of_a_topic_are_described(desk, version):
    desk.topics.configure({"t": {"retention.ms": "5"}})
    (described,) = describe(desk, (TOPIC, "t", None), version=version, include_synonyms=True)
    configs = {config.name: config for config in described.configs}
    assert configs.keys() == CONFIGS.keys()
    own = configs["retention.ms"]
    assert (own.value, own.config_source, own.read_only) == ("5", 1, False)
    assert [(s.value, s.source) for s in own.synonyms] == [("5", 1), ("604800000", 5)]
    assert configs["cleanup.policy"].config_source == 5


def test_the_requested_configurations_are_described(desk):
    (described,) = describe(desk, (TOPIC, "t", ["segment.ms", "unknown"]))
    assert [config.name for config in described.configs] == ["segment.ms"]
    assert described.configs[0].synonyms == []


def test_resources_that_do_not_exist_are_errors(desk):
    found = describe(desk, (TOPIC, "nowhere", None), (BROKER, "7", None), (8, "x", None), (BROKER, "1", None))
    assert [each.error_code for each in found] == [
        Wire.unknown_topic_or_partition,
        Wire.invalid_request,
        Wire.invalid_request,
        Wire.none,
    ]


# --- AlterConfigs and IncrementalAlterConfigs


def alter(desk, configs, *, name="t", kind=TOPIC, version=2, **options):
    cls = their_class(Api.ALTER_CONFIGS, "Request").AlterConfigsResource
    listed = [cls.AlterableConfig(name=key, value=value) for key, value in configs.items()]
    resource = cls(resource_type=kind, resource_name=name, configs=listed)
    answer = desk.ask(Api.ALTER_CONFIGS, version, resources=[resource], **options)
    return Wire(answer.responses[0].error_code)


def change(desk, *changes, version=1, **options):
    cls = their_class(Api.INCREMENTAL_ALTER_CONFIGS, "Request").AlterConfigsResource
    listed = [
        cls.AlterableConfig(name=key, config_operation=operation, value=value)
        for key, operation, value in changes
    ]
    resource = cls(resource_type=TOPIC, resource_name="t", configs=listed)
    answer = desk.ask(Api.INCREMENTAL_ALTER_CONFIGS, version, resources=[resource], **options)
    return Wire(answer.responses[0].error_code)


@versions(Api.ALTER_CONFIGS)
def test_all_configurations_of_a_topic_are_replaced(desk, version):
    assert alter(desk, {"retention.ms": "5"}, version=version) is Wire.none
    assert alter(desk, {"segment.ms": "7"}, version=version) is Wire.none
    assert desk.topics.configs == {"t": {"segment.ms": "7"}}


def test_a_change_that_is_refused_or_validated_only_changes_nothing(desk):
    assert alter(desk, {"segment.ms": "7", "retention.ms": "minus"}) is Wire.invalid_config
    assert alter(desk, {"segment.ms": "7"}, validate_only=True) is Wire.none
    assert alter(desk, {"segment.ms": "7"}, name="nowhere") is Wire.unknown_topic_or_partition
    assert alter(desk, {"log.dirs": "7"}, name="1", kind=BROKER) is Wire.invalid_request
    assert desk.topics.configs == {}


@versions(Api.INCREMENTAL_ALTER_CONFIGS)
def test_single_configurations_are_changed(desk, version):
    assert change(desk, ("retention.ms", SET, "5"), ("segment.ms", SET, "7"), version=version) is Wire.none
    changes = (("segment.ms", DELETE, None), ("unknown", DELETE, None))
    assert change(desk, *changes, version=version) is Wire.none
    assert desk.topics.configs == {"t": {"retention.ms": "5"}}


@pytest.mark.parametrize(
    "changes",
    [
        ("retention.ms", APPEND, "5"),
        ("unknown", SET, "5"),
        ("retention.ms", 7, "5"),
        ("cleanup.policy", APPEND, "compact"),
        ("retention.ms", SET, None),
    ],
)
def test_changes_that_do_not_fit_are_refused(desk, changes):
    assert change(desk, ("segment.ms", SET, "7"), changes) is Wire.invalid_config
    assert desk.topics.configs == {}
