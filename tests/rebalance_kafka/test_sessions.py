"""Fetch sessions (KIP-227): what is answered in each epoch, and which sessions are remembered."""

import asyncio

import pytest
from kio.schema.errors import ErrorCode as Wire

from rebalance_kafka.broker import sessions as module
from rebalance_kafka.broker.sessions import MOST_EPOCH, Key, Session, Sessions, Wanted
from rebalance_kafka.wire.apis import Api
from rebalance_kafka.wire.batches import records_of
from tests.rebalance_kafka.frames import PLENTY, Desk, their_class
from tests.rebalance_kafka.live import broker, is_settled, member, polled, produce, run
from tests.rebalance_kafka.records import numbered

NEW = 0


class Client:
    """Fetches of kafka-python in one session."""

    def __init__(self, desk=None, version=12):
        self.desk, self.version = desk or Desk({"t": 3, "u": 1}), version
        self.session_id, self.epoch = 0, NEW

    def fetch(self, wanted=None, forgotten=None, **other):
        """Return the offsets or the error of each partition of the response."""
        request = their_class(Api.FETCH, "Request")
        ids = self.desk.topics.ids

        def topics(make, rows):
            made = [make(topic=topic, partitions=list(parts)) for topic, parts in (rows or {}).items()]
            for topic in made:
                topic.topic_id = ids.get(topic.topic)
            return made

        part = request.FetchTopic.FetchPartition
        offsets = {
            topic: [part(partition=n, fetch_offset=at, partition_max_bytes=PLENTY) for n, at in rows.items()]
            for topic, rows in (wanted or {}).items()
        }
        values = {
            "max_wait_ms": 0,
            "min_bytes": 1,
            "max_bytes": PLENTY,
            "session_id": self.session_id,
            "session_epoch": self.epoch,
            "topics": topics(request.FetchTopic, offsets),
            "forgotten_topics_data": topics(request.ForgottenTopic, forgotten),
        }
        answer = self.desk.ask(Api.FETCH, self.version, **values | other)
        self.error = Wire(answer.error_code)
        self.session_id = answer.session_id
        self.epoch += 1
        found = {}
        for topic in answer.responses:
            name = topic.topic if self.version < 13 else self.desk.topics.named(topic.topic_id)
            for row in topic.partitions:
                records, _ = records_of(bytes(row.records or b""))
                error = Wire(row.error_code)
                found[name, row.partition_index] = error or [r.offset for r in records]
        return found


ALL = {"t": {0: 0, 1: 0, 2: 0}, "u": {0: 0}}


@pytest.mark.parametrize("version", [7, 12, 13, 16])
def test_a_session_reports_changes_only(version):
    client = Client(version=version)
    assert client.fetch(ALL) == {("t", 0): [], ("t", 1): [], ("t", 2): [], ("u", 0): []}
    assert client.session_id > 0
    assert client.fetch() == {}
    client.desk.write("t", 1, numbered(2))
    assert client.fetch() == {("t", 1): [0, 1]}
    assert client.fetch({"t": {1: 2}}) == {}
    client.desk.write("u", 0, numbered(1))
    assert client.fetch() == {("u", 0): [0]}
    assert client.error is Wire.none


@pytest.mark.parametrize("version", [12, 13])
def test_partitions_are_added_and_forgotten(version):
    client = Client(version=version)
    client.fetch({"t": {0: 0}})
    assert client.fetch({"u": {0: 0}}) == {("u", 0): []}
    for topic in ("t", "u"):
        client.desk.write(topic, 0, numbered(1))
    assert client.fetch(forgotten={"t": [0]}) == {("u", 0): [0]}


def test_a_new_end_without_records_to_read_is_reported():
    """The client may have asked for the end, and learns the lag of it."""
    client = Client()
    client.desk.write("t", 0, numbered(3))
    client.fetch({"t": {0: 3}})
    client.desk.topics.delete_records({("t", 0): 2})
    assert client.fetch() == {("t", 0): []}
    assert client.fetch() == {}


def test_an_error_is_reported_until_it_is_over():
    client = Client()
    errors = {("t", 0): Wire.offset_out_of_range, ("t", 9): Wire.unknown_topic_or_partition}
    assert client.fetch({"t": {0: 9, 9: 0}}) == errors
    assert client.fetch() == errors
    assert client.fetch({"t": {0: 0}}, {"t": [9]}) == {("t", 0): []}
    assert client.fetch() == {}


def test_partitions_with_records_come_last_the_next_time():
    """Otherwise the first ones fill every response."""
    client = Client()
    for number in range(3):
        client.desk.write("t", number, numbered(1))
    size = len(numbered(1))
    turns = [list(client.fetch({"t": {0: 0, 1: 0, 2: 0}}, max_bytes=size).items())[:1]]
    turns += [[row for row in client.fetch(max_bytes=size).items() if row[1]] for _ in range(3)]
    assert turns == [[(("t", number % 3), [0])] for number in range(4)]


def test_an_unknown_session_is_an_error_without_partitions():
    client = Client()
    client.session_id, client.epoch = 77, 1
    assert client.fetch({"t": {0: 0}}) == {}
    assert (client.error, client.session_id) == (Wire.fetch_session_id_not_found, 0)


@pytest.mark.parametrize("epoch", [1, 3, MOST_EPOCH])
def test_another_epoch_than_the_next_one_is_an_error(epoch):
    client = Client()
    client.fetch(ALL)
    client.fetch()
    session_id, client.epoch = client.session_id, epoch
    assert client.fetch() == {}
    assert (client.error, client.session_id) == (Wire.invalid_fetch_session_epoch, 0)
    client.session_id, client.epoch = session_id, 2
    client.fetch()
    assert client.error is Wire.none


def test_a_session_keeps_to_names_or_to_ids():
    client = Client()
    client.fetch(ALL)
    client.version = 13
    client.fetch()
    assert client.error is Wire.fetch_session_topic_id_error


@pytest.mark.parametrize("epoch", [-1, NEW])
def test_a_full_request_ends_the_session_that_it_names(epoch):
    client = Client()
    client.fetch(ALL)
    first = client.session_id
    client.epoch = epoch
    assert len(client.fetch(ALL)) == 4
    assert (client.session_id == 0) == (epoch == -1)
    client.session_id, client.epoch = first, 1
    client.fetch()
    assert client.error is Wire.fetch_session_id_not_found


def test_a_session_without_partitions_ends():
    client = Client()
    client.fetch({"t": {0: 0}})
    assert client.fetch(forgotten={"t": [0]}) == {}
    assert (client.error, client.session_id) == (Wire.none, 0)
    assert len(client.desk.data.sessions) == 0


def test_a_topic_that_is_created_again_has_another_id():
    client = Client(version=13)
    client.fetch({"u": {0: 0}})
    old = client.desk.topics.ids["u"]
    client.desk.topics.delete(["u"])
    client.desk.topics.create({"u": 1})
    assert client.desk.topics.named(old) is None
    assert list(client.fetch().values()) == [Wire.unknown_topic_id]


# --- the sessions of all clients


def wanted(count=1):
    return {Key("t", None, number): Wanted(0, PLENTY) for number in range(count)}


def opened(sessions, now, count=1):
    return sessions.open(wanted(count), has_ids=False, now=now)


def test_the_session_that_was_not_used_for_longest_loses_its_place(monkeypatch):
    monkeypatch.setattr(module, "MOST_SESSIONS", 2)
    sessions = Sessions()
    first, second = opened(sessions, 0.0), opened(sessions, 1.0)
    assert opened(sessions, 100.0) is None
    assert sessions.used(first.number, 1, {}, (), has_ids=False, now=110.0) is first
    third = opened(sessions, 125.0)
    assert [sessions.has(each) for each in (first, second, third)] == [True, False, True]


def test_the_partitions_of_all_sessions_are_limited(monkeypatch):
    monkeypatch.setattr(module, "MOST_PARTITIONS", 10)
    sessions = Sessions()
    first = opened(sessions, 0.0, 6)
    assert opened(sessions, 1.0, 5) is None
    assert sessions.used(first.number, 1, wanted(9), (), has_ids=False) is Wire.fetch_session_id_not_found
    assert opened(sessions, 2.0, 10) is not None


def test_epochs_begin_again_after_the_largest():
    session = Session(1, wanted(), has_ids=False)
    session.epoch = MOST_EPOCH
    session.change({}, ())
    assert session.epoch == 1


def test_a_request_without_partitions_gets_no_session():
    assert Sessions().open({}, has_ids=False) is None


# --- clients


def test_our_consumer_reads_in_a_session_through_a_rebalance():
    async def work():
        async with broker() as kafka, member(kafka) as first:
            await polled(first, until=lambda _: is_settled(first))
            for number in range(4):
                await produce(kafka.address, number, b"a%d" % number)
            await polled(first, until=lambda read: len(read[first]) == 4)
            sessions = kafka._node.data.sessions
            assert len(sessions) == 1
            async with member(kafka, seed=2) as second:
                await polled(first, second, until=lambda _: is_settled(first, second))
                for number in range(4):
                    await produce(kafka.address, number, b"b%d" % number)
                new = {b"b%d" % number for number in range(4)}

                def has_new(read):
                    return new <= {record.value for records in read.values() for record in records}

                await polled(first, second, until=has_new)
                assert len(sessions) == 2

    run(work())


@pytest.mark.peer
def test_kafka_python_reads_in_a_session(kafka_broker):
    from kafka import KafkaConsumer, TopicPartition

    broker = kafka_broker(topics={"t": 4})
    consumer = KafkaConsumer(bootstrap_servers=broker.address, auto_offset_reset="earliest", group_id=None)
    consumer.assign([TopicPartition("t", number) for number in range(4)])
    sessions = broker._broker._node.data.sessions
    for number in (2, 0, 3, 3, 1):
        asyncio.run(produce(broker.address, number, b"%d" % number))
        assert next(consumer).value == b"%d" % number
        assert len(sessions) == 1
    (session,) = sessions._sessions.values()
    assert session.epoch >= 5
    consumer.close()
