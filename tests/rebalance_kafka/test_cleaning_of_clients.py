"""Retention and compaction on a running broker: what clients see, and a broker that is killed."""

import asyncio
import time

import pytest

from rebalance_kafka.wire.apis import Api
from rebalance_kafka.wire.batches import records_of
from tests.rebalance_kafka.killed import Patient
from tests.rebalance_kafka.live import broker, member, polled, run
from tests.rebalance_kafka.records import Sent, batch
from tests.rebalance_kafka.served import Served

PLENTY = 10_000_000
SECONDS = 60.0
COMPACT = {"cleanup.policy": "compact"}


async def configured(kafka, **configs):
    """Create topic ``c`` with one partition on a broker."""
    named = tuple({"name": name.replace("_", "."), "value": str(value)} for name, value in configs.items())
    topic = {"name": "c", "num_partitions": 1, "replication_factor": 1, "assignments": (), "configs": named}
    patient = Patient(kafka.address)
    created = await patient.ask(Api.CREATE_TOPICS, 7, topics=(topic,))
    assert created.topics[0].error_code == 0
    return patient


async def wrote(patient, *records):
    written = {"index": 0, "records": batch(*records)}
    answer = await patient.ask(Api.PRODUCE, 9, topic_data=({"name": "c", "partition_data": (written,)},))
    assert answer.responses[0].partition_responses[0].error_code == 0


@pytest.mark.parametrize(("reset", "offset"), [("earliest", 2), ("latest", 3)])
def test_our_consumer_resets_a_position_that_retention_has_passed(reset, offset):
    now_ms = int(time.time() * 1_000)

    async def work():
        async with broker({}) as kafka:
            patient = await configured(kafka, retention_ms=60_000)
            await wrote(patient, Sent(b"0", None, now_ms), Sent(b"1", None, now_ms))
            settings = {"auto.offset.reset": reset}
            async with member(kafka, "c", settings=settings) as consumer:
                await polled(consumer, until=lambda _: consumer.assignment)
                consumer.seek("c", 0, 0)
                consumer.pause("c", 0)
                await wrote(patient, Sent(b"2", None, now_ms + 120_000))
                kafka.clean(later_ms=90_000)
                consumer.resume("c", 0)
                await polled(consumer, until=lambda _: consumer.position("c", 0) == 3)
                read = await polled(consumer, until=lambda _: True)
                assert [record.offset for record in read[consumer]] in ([], [offset])
            patient.close()

    run(work())


@pytest.fixture
def kept(kafka_broker):
    """A broker whose topic has lost the records before offset 2 of 3, and a compacted topic."""
    admin = pytest.importorskip("confluent_kafka.admin")
    confluent_kafka = pytest.importorskip("confluent_kafka")
    broker = kafka_broker()
    client = admin.AdminClient({"bootstrap.servers": broker.address})
    topics = [
        admin.NewTopic("old", 1, 1, config={"retention.ms": "60000"}),
        admin.NewTopic("table", 1, 1, config=COMPACT),
    ]
    for future in client.create_topics(topics).values():
        future.result(SECONDS)
    producer = confluent_kafka.Producer({"bootstrap.servers": broker.address, "linger.ms": 0})
    now_ms = int(time.time() * 1_000)
    for number, age_ms in enumerate((50_000, 50_000, 0)):
        producer.produce("old", b"%d" % number, timestamp=now_ms - age_ms)
        assert producer.flush(SECONDS) == 0
    for number in range(9):
        producer.produce("table", b"%d" % number, key=b"%d" % (number % 2))
        assert producer.flush(SECONDS) == 0
    broker.clean(later_ms=30_000)
    return broker


@pytest.mark.peer
def test_confluent_kafka_reads_what_is_kept(kept):
    import confluent_kafka

    settings = {"bootstrap.servers": kept.address, "group.id": "g", "enable.partition.eof": True}
    settings |= {"fetch.wait.max.ms": 20, "fetch.error.backoff.ms": 10}
    found = {}
    for topic, offset, reset in (
        ("old", 0, "earliest"),
        ("old", 1, "latest"),
        ("old", 0, "error"),
        ("table", 0, "error"),
    ):
        consumer = confluent_kafka.Consumer({**settings, "auto.offset.reset": reset})
        assert consumer.get_watermark_offsets(confluent_kafka.TopicPartition("old", 0)) == (2, 3)
        consumer.assign([confluent_kafka.TopicPartition(topic, 0, offset)])
        read = found[topic, reset] = []
        end = time.monotonic() + SECONDS
        while time.monotonic() < end:
            message = consumer.poll(0.5)
            if message is None:
                continue
            if message.error() is not None:
                read.append(message.error().name())
                break
            read.append((message.offset(), message.value()))
        consumer.close()
    assert found == {
        ("old", "earliest"): [(2, b"2"), "_PARTITION_EOF"],
        ("old", "latest"): ["_PARTITION_EOF"],
        ("old", "error"): ["_AUTO_OFFSET_RESET"],
        ("table", "error"): [(7, b"7"), (8, b"8"), "_PARTITION_EOF"],
    }


@pytest.mark.peer
def test_kafka_python_reads_what_is_kept(kept):
    from kafka import KafkaConsumer, TopicPartition

    for topic, expected in (("old", [b"2"]), ("table", [b"7", b"8"])):
        consumer = KafkaConsumer(
            bootstrap_servers=kept.address,
            auto_offset_reset="earliest",
            group_id="g",
            consumer_timeout_ms=60_000,
        )
        consumer.assign([TopicPartition(topic, 0)])
        consumer.seek(TopicPartition(topic, 0), 0)
        assert [next(consumer).value for _ in expected] == expected
        consumer.close(autocommit=False)


@pytest.mark.peer
def test_aiokafka_reads_what_is_kept(kept):
    from aiokafka import AIOKafkaConsumer, TopicPartition

    async def work():
        for topic, expected in (("old", [b"2"]), ("table", [b"7", b"8"])):
            consumer = AIOKafkaConsumer(bootstrap_servers=kept.address, auto_offset_reset="earliest")
            consumer.assign([TopicPartition(topic, 0)])
            await consumer.start()
            consumer.seek(TopicPartition(topic, 0), 0)
            assert [(await consumer.getone()).value for _ in expected] == expected
            await consumer.stop()

    run(work())


@pytest.mark.slow
@pytest.mark.killed
def test_a_broker_that_is_killed_while_it_compacts_loses_no_key(tmp_path):
    acknowledged = {}

    async def writes(address, until):
        line = Patient(address)
        number = max(map(int, acknowledged.values()), default=0)
        while time.monotonic() < until:
            number += 1
            key, value = b"%d" % (number % 7), b"%d" % number
            topic = {"name": "c", "partition_data": ({"index": 0, "records": batch(Sent(value, key))},)}
            await line.ask(Api.PRODUCE, 9, topic_data=(topic,))
            acknowledged[key] = value
        line.close()

    async def kept(address):
        line = Patient(address)
        part = {"partition": 0, "fetch_offset": 0, "partition_max_bytes": PLENTY}
        wanted = {"topics": ({"topic": "c", "topic_id": None, "partitions": (part,)},), "max_bytes": PLENTY}
        fetched = await line.ask(Api.FETCH, 11, **wanted)
        line.close()
        records, _ = records_of(fetched.responses[0].partitions[0].records)
        return {record.key: record.value for record in records}, len(records)

    for kill in range(4):
        with Served("--data-dir", tmp_path, "--clean-every", "0.01") as served:
            address = served.address()
            if not kill:
                asyncio.run(create(address))
            else:
                found, _ = asyncio.run(kept(address))
                assert found == acknowledged
            asyncio.run(writes(address, time.monotonic() + 0.4))
            served.kill()
    with Served("--data-dir", tmp_path, "--clean-every", "0.01") as served:

        async def settles():
            until = time.monotonic() + SECONDS
            while time.monotonic() < until:
                found, count = await kept(address)
                assert found == acknowledged
                if count == len(found):
                    return
                await asyncio.sleep(0.05)
            raise AssertionError(count)

        address = served.address()
        asyncio.run(settles())


async def create(address):
    topic = {"name": "c", "num_partitions": 1, "replication_factor": 1, "assignments": ()}
    configs = tuple({"name": name, "value": value} for name, value in COMPACT.items())
    line = Patient(address)
    await line.ask(Api.CREATE_TOPICS, 7, topics=({**topic, "configs": configs},))
    line.close()
