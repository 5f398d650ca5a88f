"""CreateTopics and CreatePartitions, written and read by kafka-python."""

import pytest
from kio.schema.errors import ErrorCode as Wire

from rebalance_kafka.wire.apis import Api
from tests.rebalance_kafka.frames import Desk, their_class, versions


@pytest.fixture
def desk():
    return Desk({"t": 2, "u": 1})


def create(desk, *topics, version=5, **options):
    topic = their_class(Api.CREATE_TOPICS, "Request").CreatableTopic
    requested = [topic(**{"num_partitions": 1, "replication_factor": 1} | each) for each in topics]
    answer = desk.ask(Api.CREATE_TOPICS, version, topics=requested, timeout_ms=1_000, **options)
    return {each.name: Wire(each.error_code) for each in answer.topics}


@versions(Api.CREATE_TOPICS)
def test_topics_are_created(desk, version):
    assert create(desk, {"name": "v", "num_partitions": 4}, {"name": "w"}, version=version) == {
        "v": Wire.none,
        "w": Wire.none,
    }
    assert desk.topics.partitions == {"t": 2, "u": 1, "v": 4, "w": 1}


@pytest.mark.parametrize(("auto_create", "count"), [(0, 1), (6, 6)])
def test_a_topic_without_a_number_of_partitions_gets_the_brokers_default(auto_create, count):
    desk = Desk(auto_create=auto_create)
    create(desk, {"name": "v", "num_partitions": -1, "replication_factor": -1})
    assert desk.topics.partitions == {"v": count}


def test_replica_assignments_give_the_number_of_partitions(desk):
    assignment = their_class(Api.CREATE_TOPICS, "Request").CreatableTopic.CreatableReplicaAssignment
    given = [assignment(partition_index=n, broker_ids=[1]) for n in range(3)]
    create(desk, {"name": "v", "num_partitions": -1, "replication_factor": -1, "assignments": given})
    assert desk.topics.partitions["v"] == 3


@pytest.mark.parametrize(
    ("requested", "error"),
    [
        ({"name": "t"}, Wire.topic_already_exists),
        ({"name": "no topic"}, Wire.invalid_topic_exception),
        ({"name": "v", "num_partitions": 0}, Wire.invalid_partitions),
        ({"name": "v", "num_partitions": 100_001}, Wire.invalid_partitions),
        ({"name": "v", "replication_factor": 3}, Wire.invalid_replication_factor),
    ],
)
def test_a_refused_topic_does_not_affect_the_others(desk, requested, error):
    before = dict(desk.topics.partitions)
    assert create(desk, requested, {"name": "other"}) == {requested["name"]: error, "other": Wire.none}
    assert desk.topics.partitions == {**before, "other": 1}


def test_a_topic_that_comes_twice_is_created_once(desk):
    answer = create(desk, {"name": "v", "num_partitions": 2}, {"name": "v", "num_partitions": 3})
    assert answer["v"] is Wire.invalid_request
    assert desk.topics.partitions["v"] == 2


def test_validate_only_creates_no_topic(desk):
    assert create(desk, {"name": "v"}, {"name": "t"}, validate_only=True) == {
        "v": Wire.none,
        "t": Wire.topic_already_exists,
    }
    assert desk.topics.partitions == {"t": 2, "u": 1}


def grow(desk, *wanted, version=3, **options):
    topic = their_class(Api.CREATE_PARTITIONS, "Request").CreatePartitionsTopic
    requested = [topic(name=name, count=count, assignments=None) for name, count in wanted]
    answer = desk.ask(Api.CREATE_PARTITIONS, version, topics=requested, timeout_ms=1_000, **options)
    return [(each.name, Wire(each.error_code)) for each in answer.results]


@versions(Api.CREATE_PARTITIONS)
def test_topics_get_more_partitions_if_possible(desk, version):
    assert grow(desk, ("t", 5), ("u", 1), ("v", 2), version=version) == [
        ("t", Wire.none),
        ("u", Wire.invalid_partitions),
        ("v", Wire.unknown_topic_or_partition),
    ]
    assert desk.topics.partitions == {"t": 5, "u": 1}


def test_a_topic_that_comes_twice_grows_once(desk):
    assert grow(desk, ("t", 5), ("t", 3)) == [("t", Wire.none), ("t", Wire.invalid_request)]
    assert desk.topics.partitions["t"] == 5


def test_validate_only_adds_no_partitions(desk):
    assert grow(desk, ("t", 5), ("u", 0), validate_only=True) == [
        ("t", Wire.none),
        ("u", Wire.invalid_partitions),
    ]
    assert desk.topics.partitions == {"t": 2, "u": 1}
