"""A disk that is full: writes are refused as Kafka refuses them, reads go on, and deleting records helps."""

import asyncio
import shutil
import sqlite3
import subprocess
from contextlib import closing

import pytest
from kio.schema.errors import ErrorCode as Wire

from coordinator_core.coordinator.records import OffsetRecord, StoredOffset
from coordinator_core.errors import InputError
from coordinator_core.protocol.error_codes import ErrorCode
from rebalance_kafka import BackgroundBroker
from rebalance_kafka.broker.store import FILE, Store
from rebalance_kafka.broker.topics import Topics
from rebalance_kafka.wire.apis import Api
from tests.rebalance_kafka.live import broker, run
from tests.rebalance_kafka.records import batch
from tests.rebalance_kafka.stand import Line

LARGE = b"x" * 50_000
METADATA = "m" * 4_000
FULL = f"{FILE}: found database or disk is full, expected space on the disk: delete records or topics, "


def fill(store):
    """Let the database have no more pages, and use those that it has."""
    (pages,) = store._sql.execute("pragma page_count").fetchone()
    store._sql.execute(f"pragma max_page_count = {pages}")
    record = OffsetRecord("g", "t", 1, StoredOffset(1, -1, METADATA, committed_at_ms=1))
    while store.append(0, [record]) is ErrorCode.NONE:
        pass


def of_partition(index, **values):
    return {"topics": ({"name": "t", "partitions": ({"partition_index": index, **values},)},)}


def produced(records=LARGE):
    rows = ({"index": 0, "records": batch(records)},)
    return {"topic_data": ({"name": "t", "topic_id": None, "partition_data": rows},)}


def committing(metadata):
    offset = {"committed_offset": 7, "committed_leader_epoch": -1, "committed_metadata": metadata}
    return of_partition(0, **offset)


FETCHING = {
    "topics": (
        {
            "topic": "t",
            "topic_id": None,
            "partitions": ({"partition": 0, "fetch_offset": 0, "partition_max_bytes": 10**6},),
        },
    ),
    "max_bytes": 10**6,
}


async def first_row(line, api, version, **values):
    """Return the first part of a response that has an error code."""
    found = await line.ask(api, version, **values)
    for names in (("responses", "topics", "results"), ("partition_responses", "partitions")):
        name = next((name for name in names if hasattr(found, name)), None)
        found = found if name is None else getattr(found, name)[0]
    return found


async def error_of(line, api, version, **values):
    return (await first_row(line, api, version, **values)).error_code


def test_a_full_disk_refuses_writes_serves_reads_and_is_freed_by_deleting_records(tmp_path, caplog):
    async def work():
        async with broker({"t": 2}, data_dir=tmp_path) as kafka:
            line = await Line.to(kafka.address)
            writes = (
                (Api.PRODUCE, 9, produced(), Wire.kafka_storage_error),
                (Api.OFFSET_COMMIT, 8, committing(METADATA), Wire.not_coordinator),
            )
            for api, version, values, _ in writes:
                assert await error_of(line, api, version, **values) is Wire.none
            fill(kafka._node.data.store)
            for api, version, values, error in (*writes, *writes):
                assert await error_of(line, api, version, **values) is error
            fetched = await first_row(line, Api.FETCH, 11, **FETCHING)
            assert (fetched.error_code, fetched.high_watermark) == (Wire.none, 1)
            assert len(fetched.records) > len(LARGE)
            asked = {"topics": ({"name": "t", "partition_indexes": (0,)},)}
            assert (await first_row(line, Api.OFFSET_FETCH, 5, **asked)).committed_offset == 7
            assert (await first_row(line, Api.LIST_OFFSETS, 5, **of_partition(0, timestamp=5))).offset == 0
            assert await error_of(line, Api.DELETE_RECORDS, 2, **of_partition(0, offset=1)) is Wire.none
            for api, version, values, _ in reversed(writes):
                values = produced(b"short") if api is Api.PRODUCE else values
                assert await error_of(line, api, version, **values) is Wire.none
            await line.close()

    run(work())
    assert [FULL in message for message in caplog.messages] == [True, False]
    assert caplog.messages[1] == f"{tmp_path / FILE}: writes succeed again"


def test_a_topic_is_deleted_on_a_full_disk():
    async def work():
        async with broker({"t": 2, "u": 1}) as kafka:
            line = await Line.to(kafka.address)
            kafka._node.data.topics.append([("u", 0, batch(LARGE))] * 30)
            fill(kafka._node.data.store)
            assert await error_of(line, Api.PRODUCE, 9, **produced()) is Wire.kafka_storage_error
            assert await error_of(line, Api.DELETE_TOPICS, 5, topic_names=("u",)) is Wire.none
            assert kafka.topics == {"t": 2}
            assert await error_of(line, Api.PRODUCE, 9, **produced()) is Wire.none
            await line.close()

    run(work())


def test_a_topic_that_cannot_be_stored_is_an_input_error():
    async def work():
        async with broker({"t": 1}) as kafka:
            kafka._node.data.store._sql.execute("pragma query_only = on")
            with pytest.raises(InputError, match="readonly"):
                kafka.create_topics({"u": 1})
            assert kafka.topics == {"t": 1}

    run(work())


def test_retention_frees_a_full_disk():
    async def work():
        async with broker({"t": 2}) as kafka:
            line = await Line.to(kafka.address)
            assert await error_of(line, Api.PRODUCE, 9, **produced()) is Wire.none
            fill(kafka._node.data.store)
            assert await error_of(line, Api.PRODUCE, 9, **produced()) is Wire.kafka_storage_error
            kafka.clean(later_ms=10**12)
            assert await error_of(line, Api.PRODUCE, 9, **produced()) is Wire.none
            await line.close()

    run(work())


REFUSED = {
    (Api.CREATE_TOPICS, 5): Wire.kafka_storage_error,
    (Api.CREATE_PARTITIONS, 1): Wire.kafka_storage_error,
    (Api.DELETE_TOPICS, 5): Wire.kafka_storage_error,
    (Api.DELETE_RECORDS, 2): Wire.kafka_storage_error,
    (Api.ALTER_CONFIGS, 2): Wire.kafka_storage_error,
    (Api.INCREMENTAL_ALTER_CONFIGS, 1): Wire.kafka_storage_error,
    (Api.INIT_PRODUCER_ID, 4): Wire.coordinator_not_available,
}
"""Requests that write, and the error in the response if nothing can be written."""


@pytest.mark.parametrize(("request_of", "error"), REFUSED.items(), ids=[api.name for api, _ in REFUSED])
def test_requests_that_write_are_answered_if_nothing_can_be_written(request_of, error):
    api, version = request_of
    values = {
        Api.DELETE_TOPICS: {"topic_names": ("orders",)},
        Api.DELETE_RECORDS: {
            "topics": ({"name": "orders", "partitions": ({"partition_index": 0, "offset": 1},)},)
        },
    }

    async def work():
        async with broker({"orders": 2}) as kafka:
            line = await Line.to(kafka.address)
            kafka._node.data.topics.append([("orders", 0, batch(b"1"))])
            sql = kafka._node.data.store._sql
            sql.execute("pragma query_only = on")
            assert await error_of(line, api, version, **values.get(api, {})) is error
            sql.execute("pragma query_only = off")
            assert await error_of(line, api, version, **values.get(api, {})) is Wire.none
            await line.close()

    run(work())


# --- disks


@pytest.fixture
def small_disk(tmp_path):
    """A disk of 24 MB, on systems and for users that may have one."""
    folder = tmp_path / "disk"
    folder.mkdir()
    command = ["mount", "-t", "tmpfs", "-o", "size=24m", "none", str(folder)]
    if shutil.which("mount") is None or subprocess.run(command, capture_output=True, check=False).returncode:
        pytest.skip("this user cannot mount a file system in memory")
    yield folder
    subprocess.run(["umount", str(folder)], check=True)


@pytest.mark.slow
@pytest.mark.parametrize("size", [1_000, 1_000_000])
def test_a_disk_without_any_space_is_read_opened_again_and_freed(small_disk, size, caplog):
    def write():
        """Write until the disk is full. Return the number of batches."""
        for count in range(100_000):
            try:
                topics.append([("t", 0, batch(b"x" * size))])
            except sqlite3.Error:
                return count
        raise AssertionError("the disk has no end")

    folder = small_disk / "data"
    for turn in range(3):
        with closing(Store(folder)) as store:
            topics = Topics(store, most_bytes=10**9)
            if turn == 0:
                topics.create({"t": 1})
            assert (write() > 0) or turn
            end = topics.end("t", 0)
        with closing(Store(folder)) as store:
            topics = Topics(store, most_bytes=10**9)
            assert topics.end("t", 0) == end
            read = topics.read("t", 0, topics.start("t", 0), 10**9, at_least_one=True)
            assert len(read) > size * (end - topics.start("t", 0))
            write()
            if turn < 2:
                topics.delete_records({("t", 0): end})
            else:
                topics.delete(["t"])
                topics.create({"t": 1})
            assert write() > 2
    assert not [message for message in caplog.messages if "damage" in message]


# --- clients of other projects


def kafka_python(address, act):
    import kafka

    place = kafka.TopicPartition("t", 0)
    if act == "commit":
        consumer = kafka.KafkaConsumer(bootstrap_servers=address, group_id="g", enable_auto_commit=False)
        with closing(consumer):
            consumer.assign([place])
            consumer.commit({place: kafka.OffsetAndMetadata(1, METADATA, -1)}, timeout_ms=1_000)
        return
    with closing(kafka.KafkaProducer(bootstrap_servers=address, retries=0)) as producer:
        producer.send("t", LARGE).get(60)


def aiokafka(address, act):
    from aiokafka import AIOKafkaConsumer, AIOKafkaProducer, TopicPartition

    async def work():
        if act == "commit":
            place = TopicPartition("t", 0)
            client = AIOKafkaConsumer(bootstrap_servers=address, group_id="g", enable_auto_commit=False)
        else:
            client = AIOKafkaProducer(bootstrap_servers=address, request_timeout_ms=1_000)
        await client.start()
        try:
            if act == "commit":
                client.assign([place])
                await asyncio.wait_for(client.commit({place: (1, METADATA)}), 1)
            else:
                await client.send_and_wait("t", LARGE)
        finally:
            await client.stop()

    asyncio.run(work())


def confluent(address, act):
    import confluent_kafka

    settings = {"bootstrap.servers": address, "log_level": 0}
    if act == "commit":
        offset = confluent_kafka.TopicPartition("t", 0, 1, metadata=METADATA)
        client = confluent_kafka.Consumer(settings | {"group.id": "g", "enable.auto.commit": False})
        with closing(client):
            client.commit(offsets=[offset], asynchronous=False)
        return
    producer, errors = confluent_kafka.Producer(settings | {"retries": 0}), []
    producer.produce("t", LARGE, on_delivery=lambda error, _: errors.append(error))
    producer.flush(60)
    assert errors == [None], [error.name() for error in errors]


CLIENTS = {
    kafka_python: ("kafka", "KafkaStorageError", "KafkaTimeoutError"),
    aiokafka: ("aiokafka", "KafkaStorageError", "TimeoutError"),
    confluent: ("confluent_kafka", "KAFKA_STORAGE_ERROR", "NOT_COORDINATOR"),
}
"""Client -> its package, and the errors of a write and of a commit.

Two repeat a commit until its time is over. Kafka's coordinator answers with NOT_COORDINATOR, too."""


@pytest.mark.peer
@pytest.mark.parametrize("client", CLIENTS, ids=lambda client: client.__name__)
def test_clients_see_a_full_disk_and_write_again_when_records_are_deleted(client):
    package, *errors = CLIENTS[client]
    pytest.importorskip(package, reason=f"{package} is not installed")
    with BackgroundBroker({"t": 1}) as kafka:
        topics, acts = kafka._broker._node.data.topics, ("produce", "commit")
        for act in ("produce", *acts):
            client(kafka.address, act)
        kafka._call(lambda: fill(topics._store))
        for act, error in zip(acts, errors, strict=True):
            with pytest.raises(Exception) as caught:  # noqa: PT011 (each has its own)
                client(kafka.address, act)
            assert error in repr(caught.value)
        kafka._call(lambda: topics.delete_records({("t", 0): 2}))
        for act in acts:
            client(kafka.address, act)
