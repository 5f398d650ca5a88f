"""Requests that change topics, and DescribeCluster, written and read by kafka-python."""

import pytest
from kio.schema.errors import ErrorCode as Wire

from rebalance_kafka.addresses import Place
from rebalance_kafka.wire.apis import Api
from tests.rebalance_kafka.frames import Desk, their_class, versions
from tests.rebalance_kafka.records import numbered


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
        ({"name": "v", "replication_factor": 3, "num_partitions": 0}, Wire.invalid_partitions),
        ({"name": "v", "replication_factor": 0, "num_partitions": 0}, Wire.invalid_replication_factor),
    ],
)
def test_a_refused_topic_does_not_affect_the_others(desk, requested, error):
    before = dict(desk.topics.partitions)
    assert create(desk, requested, {"name": "other"}) == {requested["name"]: error, "other": Wire.none}
    assert desk.topics.partitions == {**before, "other": 1}


def test_a_topic_that_comes_twice_is_not_created(desk):
    answer = create(desk, {"name": "v", "num_partitions": 2}, {"name": "v", "num_partitions": 3})
    assert answer["v"] is Wire.invalid_request
    assert "v" not in desk.topics.partitions


def test_a_topic_does_not_differ_from_another_one_by_dots_alone(desk):
    assert create(desk, {"name": "a.b_c"}) == {"a.b_c": Wire.none}
    assert create(desk, {"name": "a_b.c"}, {"name": "a.b"}) == {
        "a_b.c": Wire.invalid_topic_exception,
        "a.b": Wire.none,
    }


@pytest.mark.parametrize("name", ["__consumer_offsets", "__transaction_state"])
def test_kafkas_own_topics_exist_already(desk, name):
    assert create(desk, {"name": name}) == {name: Wire.topic_already_exists}


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


# --- DeleteTopics


def delete(desk, *topics, version=6):
    cls = their_class(Api.DELETE_TOPICS, "Request")
    if version < 6:
        options = {"topic_names": list(topics)}
    else:
        options = {
            "topics": [
                cls.DeleteTopicState(**({"name": topic} if isinstance(topic, str) else {"topic_id": topic}))
                for topic in topics
            ]
        }
    answer = desk.ask(Api.DELETE_TOPICS, version, timeout_ms=1_000, **options)
    return [(each.name, Wire(each.error_code)) for each in answer.responses]


@versions(Api.DELETE_TOPICS)
def test_topics_are_deleted_with_their_records(desk, version):
    desk.write("t", 0, numbered(3, producer=(7, 0, 0)))
    desk.topics.configure({"t": {"retention.ms": "5"}})
    assert delete(desk, "t", "nowhere", version=version) == [
        ("t", Wire.none),
        ("nowhere", Wire.unknown_topic_or_partition),
    ]
    assert desk.topics.partitions == {"u": 1}
    assert desk.topics._bytes == 0
    desk.topics.create({"t": 1})
    assert (desk.topics.end("t", 0), desk.topics.configs) == (0, {})
    desk.write("t", 0, numbered(3, producer=(7, 0, 40)))  # the producer is unknown, with any sequence


def test_a_topic_is_deleted_by_its_id(desk):
    first = desk.topics.ids["t"]
    assert delete(desk, first) == [("t", Wire.none)]
    assert delete(desk, first) == [(None, Wire.unknown_topic_id)]
    desk.topics.create({"t": 1})
    assert desk.topics.ids["t"] != first


def test_a_topic_that_comes_twice_is_not_deleted(desk):
    assert delete(desk, "t", desk.topics.ids["t"]) == [("t", Wire.invalid_request)] * 2
    assert "t" in desk.topics.partitions


def test_a_fetch_that_waits_ends_when_its_topic_is_deleted(desk):
    calls = []
    desk.topics.wait([("t", 0)], lambda: calls.append(1))
    desk.topics.wait([("u", 0)], lambda: calls.append(2))
    desk.topics.delete(["t"])
    assert calls == [1]


# --- DeleteRecords


def delete_records(desk, *rows, version=2):
    cls = their_class(Api.DELETE_RECORDS, "Request").DeleteRecordsTopic
    partitions = [cls.DeleteRecordsPartition(partition_index=n, offset=offset) for n, offset in rows]
    topic = cls(name="t", partitions=partitions)
    (answered,) = desk.ask(Api.DELETE_RECORDS, version, topics=[topic], timeout_ms=1_000).topics
    return [(each.low_watermark, Wire(each.error_code)) for each in answered.partitions]


@versions(Api.DELETE_RECORDS)
def test_the_first_records_of_a_partition_are_deleted(desk, version):
    for _ in range(3):
        desk.write("t", 0, numbered(3))
    before = desk.topics._bytes
    assert delete_records(desk, (0, 4), version=version) == [(4, Wire.none)]
    assert desk.topics._bytes == before * 2 // 3
    assert (desk.topics.start("t", 0), desk.topics.end("t", 0)) == (4, 9)
    assert delete_records(desk, (0, 2), (0, -1), version=version) == [(4, Wire.none), (9, Wire.none)]
    assert desk.topics._bytes == 0
    assert desk.write("t", 0, numbered(1)) == 9


def test_records_that_are_not_there_are_not_deleted(desk):
    desk.write("t", 0, numbered(3))
    assert delete_records(desk, (0, 4), (0, -2), (5, 0)) == [
        (-1, Wire.offset_out_of_range),
        (-1, Wire.offset_out_of_range),
        (-1, Wire.unknown_topic_or_partition),
    ]


# --- DescribeCluster


@versions(Api.DESCRIBE_CLUSTER)
def test_the_cluster_is_described(desk, version):
    desk.data.address = Place("here", 9092)
    answer = desk.ask(Api.DESCRIBE_CLUSTER, version)
    assert (answer.error_code, answer.cluster_id, answer.controller_id) == (0, "c", 1)
    assert [(each.broker_id, each.host, each.port) for each in answer.brokers] == [(1, "here", 9092)]


@pytest.mark.parametrize(
    ("endpoints", "error"), [(2, Wire.mismatched_endpoint_type), (3, Wire.unsupported_endpoint_type)]
)
def test_there_are_no_controllers_to_describe(desk, endpoints, error):
    answer = desk.ask(Api.DESCRIBE_CLUSTER, 1, endpoint_type=endpoints)
    assert (answer.error_code, answer.brokers) == (error, [])
