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
