"""Produce requests, written and read by kafka-python."""

import pytest
from kio.schema.errors import ErrorCode as Wire

from rebalance_kafka.wire.apis import Api
from tests.rebalance_kafka.fetches import rows
from tests.rebalance_kafka.frames import Desk, versions
from tests.rebalance_kafka.records import batch, numbered


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


@versions(Api.PRODUCE)
def test_the_response_has_the_time_of_the_broker_if_the_topic_does(desk, version):
    desk.topics.configure({"t": {"message.timestamp.type": "LogAppendTime"}})
    desk.now_ms = 1_000
    answer = produce(desk, {"t": {0: numbered(1)}, "u": {0: numbered(1)}}, version=version)
    times = [topic.partition_responses[0].log_append_time_ms for topic in answer.responses]
    assert times == [1_000, -1]


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


def test_a_refusal_says_why(desk):
    answer = produce(desk, {"t": {0: b"!" * 70}})
    (part,) = answer.responses[0].partition_responses
    assert (Wire(part.error_code), part.log_start_offset) == (Wire.corrupt_message, -1)
    assert part.error_message == "record batch: format 33, expected 2"


def test_a_partition_that_does_not_exist_is_unknown_whatever_the_acks(desk):
    answer = produce(desk, {"t": {0: numbered(1)}, "v": {0: numbered(1)}}, acks=5)
    assert written(answer) == {
        ("t", 0): (Wire.invalid_required_acks, -1),
        ("v", 0): (Wire.unknown_topic_or_partition, -1),
    }


# --- transactions


def transaction(desk, version, producer, *, sequence=0, name="x"):
    """Write a record in the transaction of a producer to t-0. Return the error."""
    data = batch(b"a", producer=(*producer, sequence), transactional=True)
    answer = produce(desk, {"t": {0: data}}, version=version, transactional_id=name)
    ((_, (error, _)),) = written(answer, {None: "t"} | {i: n for n, i in desk.topics.ids.items()}).items()
    return error


@pytest.mark.parametrize("version", range(3, 14))
def test_a_write_adds_its_partition_to_the_transaction(desk, version):
    """KIP-890: from version 12 on. Before, the partition must have been added."""
    transactions = desk.data.transactions
    producer = transactions.initialize("x", 60_000, None, 0)
    expected = {
        True: Wire.none,
        False: Wire.transaction_abortable if version == 11 else Wire.invalid_txn_state,
    }
    assert transaction(desk, version, producer) is expected[version >= 12]
    assert transactions.verify("x", producer, partition=("t", 0)) is (
        Wire.none if version >= 12 else Wire.transaction_abortable
    )
    transactions.add("x", producer, 0, partitions=[("t", 0)])
    assert transaction(desk, version, producer, sequence=int(version >= 12)) is Wire.none


@pytest.mark.parametrize("version", [9, 13])
def test_only_the_producer_of_the_transactional_id_writes_in_its_transaction(desk, version):
    producer = desk.data.transactions.initialize("x", 60_000, None, 0)
    fenced, other = producer._replace(epoch=1), producer._replace(producer_id=99)
    assert transaction(desk, version, fenced) is Wire.invalid_producer_epoch
    assert transaction(desk, version, other) is Wire.invalid_producer_id_mapping
    assert transaction(desk, version, producer, name="unknown") is Wire.invalid_producer_id_mapping
    assert desk.topics.end("t", 0) == 0


def test_a_new_producer_begins_with_sequence_0_if_its_write_adds_the_partition(desk):
    producer = desk.data.transactions.initialize("x", 60_000, None, 0)
    assert transaction(desk, 12, producer, sequence=3) is Wire.out_of_order_sequence_number
    assert transaction(desk, 12, producer) is Wire.none
