"""Metadata requests, written and read by kafka-python."""

from uuid import UUID

import pytest
from kio.schema.errors import ErrorCode as Wire

from rebalance_kafka.addresses import Place
from rebalance_kafka.wire.apis import Api
from tests.rebalance_kafka.frames import Desk, their_class, versions


@pytest.fixture
def desk():
    return Desk({"t": 2, "u": 1})


def metadata(desk, names, version=9, **options):
    topic = their_class(Api.METADATA, "Request").MetadataRequestTopic
    topics = None if names is None else [topic(name=name) for name in names]
    return desk.ask(Api.METADATA, version, topics=topics, **options)


def wanted(*named):
    """Return the topics of a Metadata request: pairs of a name and an id."""
    topic = their_class(Api.METADATA, "Request").MetadataRequestTopic
    return [topic(name=name, topic_id=number) for name, number in named]


def described(answer):
    return [(each.error_code, each.name, each.topic_id, len(each.partitions)) for each in answer.topics]


@pytest.mark.parametrize("version", [12, 13])
@pytest.mark.parametrize("name", [None, "", "u"])
def test_topics_are_described_by_their_ids(desk, name, version):
    """KIP-516. Java's Admin sends an empty name with the id. A name beside an id is not read."""
    own, other = desk.topics.ids["t"], UUID(int=7)
    topics = wanted((name, own), (name, other), (name, own), ("u", None))
    assert described(desk.ask(Api.METADATA, version, topics=topics)) == [
        (Wire.none, "t", own, 2),
        (Wire.unknown_topic_id, None, other, 0),
    ]
    assert list(desk.topics.partitions) == ["t", "u"]


def test_a_request_by_id_creates_no_topic():
    desk = Desk({"t": 2}, auto_create=3)
    topics = wanted(("v", UUID(int=7)), ("", UUID(int=8)))
    answer = desk.ask(Api.METADATA, topics=topics, allow_auto_topic_creation=True)
    assert {error for error, *_ in described(answer)} == {Wire.unknown_topic_id}
    assert list(desk.topics.partitions) == ["t"]


@pytest.mark.parametrize("version", [10, 11])
def test_versions_before_ids_refuse_a_request_with_ids_or_without_names(desk, version):
    for named in ((None, desk.topics.ids["t"]), ("t", desk.topics.ids["t"]), (None, None)):
        answer = desk.ask(Api.METADATA, version, topics=wanted(("u", None), named))
        assert described(answer) == [
            (Wire.invalid_request, "u", None, 0),
            (Wire.invalid_request, named[0] or "", None, 0),
        ]


@pytest.mark.parametrize("version", [10, 11])
def test_topics_that_are_described_by_name_have_their_ids(desk, version):
    (topic,) = metadata(desk, ["t"], version).topics
    assert topic.topic_id == desk.topics.ids["t"]


def counts(answer):
    return {topic.name: len(topic.partitions) for topic in answer.topics}


@versions(Api.METADATA)
def test_metadata_names_the_broker_and_what_it_leads(desk, version):
    desk.data.address = Place("somewhere", 9092)
    answer = metadata(desk, ["t"], version)
    assert [(b.node_id, b.host, b.port) for b in answer.brokers] == [(1, "somewhere", 9092)]
    (topic,) = answer.topics
    assert (topic.name, topic.error_code) == ("t", 0)
    reported = [(p.partition_index, p.leader_id, p.replica_nodes, p.isr_nodes) for p in topic.partitions]
    assert reported == [(0, 1, [1], [1]), (1, 1, [1], [1])]
    if version >= 2:
        assert (answer.cluster_id, answer.controller_id) == ("c", 1)


@pytest.mark.parametrize(
    ("version", "names", "reported"),
    [
        (0, [], {"t": 2, "u": 1}),
        (1, [], {}),
        (9, [], {}),
        (1, None, {"t": 2, "u": 1}),
        (9, None, {"t": 2, "u": 1}),
    ],
)
def test_an_empty_list_means_all_topics_in_version_0_and_no_topic_later(desk, version, names, reported):
    assert counts(metadata(desk, names, version)) == reported


def test_topics_are_described_once_in_the_order_of_the_request(desk):
    assert [topic.name for topic in metadata(desk, ["u", "t", "u"]).topics] == ["u", "t"]


def test_unknown_topics_have_an_error(desk):
    answer = metadata(desk, ["t", "v", "no topic"])
    assert [(t.name, Wire(t.error_code), len(t.partitions)) for t in answer.topics] == [
        ("t", Wire.none, 2),
        ("v", Wire.unknown_topic_or_partition, 0),
        ("no topic", Wire.invalid_topic_exception, 0),
    ]
    assert desk.topics.partitions == {"t": 2, "u": 1}


@pytest.mark.parametrize(
    ("version", "allowed", "is_made"), [(3, None, True), (4, True, True), (4, False, False)]
)
def test_a_requested_topic_is_created_if_client_and_broker_allow_it(version, allowed, is_made):
    desk = Desk({"t": 1}, auto_create=3)
    options = {} if allowed is None else {"allow_auto_topic_creation": allowed}
    answer = metadata(desk, ["v", "no topic", "t"], version, **options)
    assert counts(answer) == {"v": 3 if is_made else 0, "no topic": 0, "t": 1}
    assert desk.topics.partitions == ({"t": 1, "v": 3} if is_made else {"t": 1})
