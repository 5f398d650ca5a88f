"""A disk that is full: writes are refused as Kafka refuses them, reads go on, and space helps."""

import shutil
import sqlite3
import subprocess
from contextlib import closing, suppress

import pytest
from kio.schema.errors import ErrorCode as Wire

from coordinator_core.coordinator.records import OffsetRecord, StoredOffset
from coordinator_core.errors import InputError
from coordinator_core.protocol.error_codes import ErrorCode
from rebalance_kafka.broker.store import FILE, Store
from rebalance_kafka.broker.topics import Topics
from rebalance_kafka.wire.apis import Api
from tests.rebalance_kafka.live import broker, run
from tests.rebalance_kafka.records import batch
from tests.rebalance_kafka.stand import Line

LARGE = b"x" * 50_000
METADATA = "m" * 4_000


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


def test_a_full_disk_refuses_writes_and_serves_reads_until_it_has_space(tmp_path, caplog):
    async def work():
        async with broker({"t": 2}, data_dir=tmp_path) as kafka:
            line = await Line.to(kafka.address)
            writes = (
                (Api.PRODUCE, 9, produced(), Wire.kafka_storage_error),
                (Api.OFFSET_COMMIT, 8, committing(METADATA), Wire.not_coordinator),
            )
            for api, version, values, _ in writes:
                assert await error_of(line, api, version, **values) is Wire.none
            store = kafka._node.data.store
            fill(store)
            for api, version, values, error in (*writes, *writes):
                assert await error_of(line, api, version, **values) is error
            fetched = await first_row(line, Api.FETCH, 11, **FETCHING)
            assert (fetched.error_code, fetched.high_watermark) == (Wire.none, 1)
            assert len(fetched.records) > len(LARGE)
            asked = {"topics": ({"name": "t", "partition_indexes": (0,)},)}
            assert (await first_row(line, Api.OFFSET_FETCH, 5, **asked)).committed_offset == 7
            assert (await first_row(line, Api.LIST_OFFSETS, 5, **of_partition(0, timestamp=5))).offset == 0
            store._sql.execute("pragma max_page_count = 1000000")
            for api, version, values, _ in writes:
                assert await error_of(line, api, version, **values) is Wire.none
            await line.close()

    run(work())
    assert [
        f"{FILE}: found database or disk is full, expected space on the disk" in message
        for message in caplog.messages
    ] == [True]


def test_a_topic_that_cannot_be_stored_is_an_input_error():
    async def work():
        async with broker({"t": 1}) as kafka:
            kafka._node.data.store._sql.execute("pragma query_only = on")
            with pytest.raises(InputError, match="readonly"):
                kafka.create_topics({"u": 1})
            assert kafka.topics == {"t": 1}

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


# --- clients of other projects


@pytest.mark.slow
@pytest.mark.parametrize("size", [1_000, 1_000_000])
def test_a_disk_without_any_space_is_opened_again_and_read(small_disk, size):
    folder = small_disk / "data"
    with closing(Store(folder)) as store:
        topics = Topics(store, most_bytes=10**9)
        topics.create({"t": 1})
        with suppress(sqlite3.Error):
            while True:
                topics.append([("t", 0, batch(b"x" * size))])
    for _ in range(2):
        with closing(Store(folder)) as store:
            again = Topics(store, most_bytes=10**9)
            assert again.end("t", 0) == topics.end("t", 0) > 0
            assert len(again.read("t", 0, 0, 10**9, at_least_one=True)) > size * again.end("t", 0)
