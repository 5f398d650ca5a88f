"""Produce requests, written and read by kafka-python."""

import pytest
from kio.schema.errors import ErrorCode as Wire

from rebalance_kafka.access import Acl, access_of
from rebalance_kafka.wire.apis import Api
from tests.rebalance_kafka.fetches import rows
from tests.rebalance_kafka.frames import Desk, versions
from tests.rebalance_kafka.records import numbered


@pytest.fixture
def desk():
    return Desk({"t": 2, "u": 1})


def produce(desk, wanted, *, version=9, acks=-1, **options):
    parts = {
        topic: [{"index": n, "records": data} for n, data in each.items()] for topic, each in wanted.items()
    }
    topic_data = rows(Api.PRODUCE, "TopicProduceData", "PartitionProduceData", parts)
    for topic in topic_data:
        topic.topic_id = desk.topics.ids.get(topic.name)
    return desk.ask(Api.PRODUCE, version, acks=acks, timeout_ms=1_000, topic_data=topic_data, **options)


def written(answer, names=None):
    return {
        (topic.name or names[topic.topic_id], each.index): (Wire(each.error_code), each.base_offset)
        for topic in answer.responses
        for each in topic.partition_responses
    }


@versions(Api.PRODUCE)
def test_records_are_written_and_their_offsets_returned(desk, version):
    desk.write("t", 1, numbered(2))
    answer = produce(desk, {"t": {1: numbered(3), 5: numbered(1)}, "u": {0: numbered(1)}}, version=version)
    names = {number: name for name, number in desk.topics.ids.items()}
    assert written(answer, names) == {
        ("t", 1): (Wire.none, 2),
        ("t", 5): (Wire.unknown_topic_or_partition, -1),
        ("u", 0): (Wire.none, 0),
    }
    assert [desk.topics.end(*place) for place in (("t", 1), ("u", 0))] == [5, 1]
    part = answer.responses[0].partition_responses[0]
    assert (part.log_append_time_ms, part.log_start_offset) == (-1, 0 if version >= 5 else -1)


def test_an_unknown_topic_id_is_an_error_and_the_other_topics_are_written(desk):
    old = desk.topics.ids["u"]
    desk.topics.delete(["u"])
    desk.topics.ids["u"] = old
    answer = produce(desk, {"u": {0: numbered(1)}, "t": {0: numbered(1)}}, version=13)
    found = written(answer, {desk.topics.ids["t"]: "t", old: "u"})
    assert found == {("u", 0): (Wire.unknown_topic_id, -1), ("t", 0): (Wire.none, 0)}


@pytest.mark.parametrize("acks", [-1, 1])
def test_a_produce_request_with_acks_gets_a_response(desk, acks):
    assert written(produce(desk, {"t": {0: numbered(1)}}, acks=acks)) == {("t", 0): (Wire.none, 0)}


def test_a_produce_request_without_acks_gets_no_response(desk):
    assert produce(desk, {"t": {0: numbered(1), 7: numbered(1)}}, acks=0) is None
    assert desk.topics.end("t", 0) == 1


@pytest.mark.parametrize("acks", [2, -2])
def test_other_acks_write_nothing(desk, acks):
    answer = produce(desk, {"t": {0: numbered(1)}}, acks=acks)
    assert written(answer) == {("t", 0): (Wire.invalid_required_acks, -1)}
    assert desk.topics.end("t", 0) == 0


def test_a_transactional_id_needs_the_right_to_write_it(desk):
    desk.access = access_of("me", [Acl.of("me:write:topic:t", "acls")])
    answer = produce(desk, {"t": {0: numbered(1, producer=(1, 0, 0))}}, transactional_id="x")
    assert written(answer) == {("t", 0): (Wire.transactional_id_authorization_failed, -1)}
    assert desk.topics.end("t", 0) == 0


def test_a_refusal_says_why(desk):
    answer = produce(desk, {"t": {0: b"!" * 70}})
    (part,) = answer.responses[0].partition_responses
    assert (Wire(part.error_code), part.log_start_offset) == (Wire.corrupt_message, -1)
    assert part.error_message == "record batch: format 33, expected 2"
