"""Transactions of producers of other projects."""

import asyncio

import pytest

from tests.rebalance_kafka.peers import missing
from tests.rebalance_kafka.peers.stage import Stage

pytestmark = pytest.mark.peer

confluent_kafka = pytest.importorskip("confluent_kafka", reason="confluent-kafka is not installed")

SECONDS = 60.0
QUIET = {"log_level": 0}


def transactional(broker, name="x", **settings):
    producer = confluent_kafka.Producer(
        {"bootstrap.servers": broker.address, "transactional.id": name, "linger.ms": 0, **QUIET, **settings}
    )
    producer.init_transactions(SECONDS)
    return producer


def consumer(broker, isolation="read_committed"):
    client = confluent_kafka.Consumer(
        {
            "bootstrap.servers": broker.address,
            "group.id": "g",
            "isolation.level": isolation,
            "enable.partition.eof": True,
            "enable.auto.commit": False,
            "fetch.wait.max.ms": 50,
            **QUIET,
        }
    )
    client.assign([confluent_kafka.TopicPartition("t", 0, 0)])
    return client


def values(broker, isolation="read_committed"):
    """Return what a reader of this isolation finds up to the end."""
    client, found = consumer(broker, isolation), []
    while True:
        (message,) = client.consume(1, SECONDS)
        if message.error():
            assert message.error().code() == confluent_kafka.KafkaError._PARTITION_EOF
            client.close()
            return found
        found.append(message.value())


def error_of(call, *arguments):
    with pytest.raises(confluent_kafka.KafkaException) as caught:
        call(*arguments)
    return caught.value.args[0]


def test_only_what_is_committed_is_read(kafka_broker):
    broker = kafka_broker(topics={"t": 1})
    producer = transactional(broker)
    for value, ends in ((b"one", True), (b"two", False), (b"three", True)):
        producer.begin_transaction()
        producer.produce("t", value, partition=0)
        producer.flush(SECONDS)
        (producer.commit_transaction if ends else producer.abort_transaction)(SECONDS)
    producer.begin_transaction()
    producer.produce("t", b"four", partition=0)
    producer.flush(SECONDS)
    assert values(broker) == [b"one", b"three"]
    assert values(broker, "read_uncommitted") == [b"one", b"two", b"three", b"four"]
    producer.commit_transaction(SECONDS)
    assert values(broker) == [b"one", b"three", b"four"]


@pytest.mark.slow
def test_a_newer_producer_fences_the_older(kafka_broker):
    broker = kafka_broker(topics={"t": 1})
    older = transactional(broker)
    older.begin_transaction()
    older.produce("t", b"older", partition=0)
    older.flush(SECONDS)
    newer = transactional(broker)
    error = error_of(older.commit_transaction, SECONDS)
    assert error.fatal()
    assert error.code() in (
        confluent_kafka.KafkaError._FENCED,
        confluent_kafka.KafkaError.PRODUCER_FENCED,
        confluent_kafka.KafkaError.INVALID_PRODUCER_EPOCH,
    )
    newer.begin_transaction()
    newer.produce("t", b"newer", partition=0)
    newer.commit_transaction(SECONDS)
    assert values(broker) == [b"newer"]


def test_offsets_are_committed_with_the_transaction(kafka_broker):
    broker = kafka_broker(topics={"t": 1})
    producer, member = transactional(broker), consumer(broker)
    place = confluent_kafka.TopicPartition("t", 0)
    found = []
    for offset, ends in ((3, False), (5, True)):
        producer.begin_transaction()
        wanted = [confluent_kafka.TopicPartition("t", 0, offset)]
        producer.send_offsets_to_transaction(wanted, member.consumer_group_metadata(), SECONDS)
        (producer.commit_transaction if ends else producer.abort_transaction)(SECONDS)
        found += [row.offset for row in member.committed([place], timeout=SECONDS)]
    member.close()
    assert found == [confluent_kafka.OFFSET_INVALID, 5]


@pytest.mark.slow
def test_a_transaction_that_takes_too_long_is_aborted(kafka_broker):
    broker = kafka_broker(topics={"t": 1})
    producer = transactional(broker, **{"transaction.timeout.ms": 1_000, "message.timeout.ms": 1_000})
    producer.begin_transaction()
    producer.produce("t", b"late", partition=0)
    producer.flush(SECONDS)
    client = consumer(broker)
    (message,) = client.consume(1, SECONDS)
    while message.offset() < 2:  # the record and its marker
        (message,) = client.consume(1, SECONDS)
    assert message.error().code() == confluent_kafka.KafkaError._PARTITION_EOF
    client.close()
    assert error_of(producer.commit_transaction, SECONDS).fatal()


@pytest.mark.slow
def test_a_transaction_cannot_get_more_time_than_the_broker_allows(kafka_broker):
    broker = kafka_broker(settings={"transaction.max.timeout.ms": 5_000})
    settings = {"bootstrap.servers": broker.address, "transactional.id": "x", **QUIET}
    producer = confluent_kafka.Producer({**settings, "transaction.timeout.ms": 5_001})
    error = error_of(producer.init_transactions, SECONDS)
    assert error.code() == confluent_kafka.KafkaError.INVALID_TRANSACTION_TIMEOUT


def test_aiokafka_commits_and_aborts(kafka_broker):
    aiokafka = pytest.importorskip("aiokafka", reason="aiokafka is not installed")
    broker = kafka_broker(topics={"t": 1})

    async def work():
        place = aiokafka.TopicPartition("t", 0)
        async with aiokafka.AIOKafkaProducer(
            bootstrap_servers=broker.address, transactional_id="x"
        ) as producer:
            async with producer.transaction():
                await producer.send("t", b"one", partition=0)
                await producer.send_offsets_to_transaction({place: 7}, "g")
            await producer.begin_transaction()
            await producer.send_and_wait("t", b"two", partition=0)
            await producer.abort_transaction()

    asyncio.run(work())
    assert values(broker) == [b"one"]
    assert values(broker, "read_uncommitted") == [b"one", b"two"]


@pytest.mark.slow
def test_kafka_python_commits_and_aborts(kafka_broker):
    kafka = pytest.importorskip("kafka", reason="kafka-python is not installed")
    broker = kafka_broker(topics={"t": 1})
    producer = kafka.KafkaProducer(bootstrap_servers=broker.address, transactional_id="x")
    producer.init_transactions()
    for value, ends in ((b"one", True), (b"two", False)):
        producer.begin_transaction()
        producer.send("t", value, partition=0).get(SECONDS)
        (producer.commit_transaction if ends else producer.abort_transaction)()
    producer.close()
    assert values(broker) == [b"one"]
    assert values(broker, "read_uncommitted") == [b"one", b"two"]


@pytest.mark.slow
@pytest.mark.skipif(bool(missing("kafkajs")), reason=missing("kafkajs") or "")
def test_kafkajs_commits_and_aborts(tmp_path):
    with Stage(tmp_path, {"t": 1}) as stage:
        tool = stage.tool("kafkajs")
        for value, commit in (("one", True), ("two", False)):
            tool.ask("transact", topic="t", values=[value], commit=commit, group="g", offset=7)
        assert values(stage.broker) == [b"one"]
        assert values(stage.broker, "read_uncommitted") == [b"one", b"two"]
