"""Damaged rows of the broker's tables: each is refused by its name, and nothing beside it is deleted."""

import asyncio
import re
import sqlite3
from contextlib import closing

import pytest
from kio.schema.errors import ErrorCode as Wire

from coordinator_core.errors import InputError
from rebalance_kafka.broker.schema import COLUMNS
from rebalance_kafka.broker.store import FILE, Store
from rebalance_kafka.wire.apis import Api
from tests.rebalance_kafka import kept
from tests.rebalance_kafka.frames import their_class
from tests.rebalance_kafka.live import ask, broker, run
from tests.rebalance_kafka.records import batch

COMMITS = f"{FILE}-commits"


def change(folder, statement):
    """Change rows of a store that is closed, without their checksums."""
    with closing(sqlite3.connect(folder / FILE)) as sql, sql:
        sql.execute(statement)


DAMAGED = {
    "update topics set partitions = 9 where name = 't'": "topics (name t, id 1)",
    "update batches set last = 7 where topic = 1 and first = 12": (
        "batches (topic 1 't', partition 0, first 12) and 1 more of it"
    ),
    "update batches set data = x'00' where first = 44": ("batches (topic 1 't', partition 0, first 44)"),
    "update batches set max_timestamp_ms = 1 where topic = 1": "batches (topic 1 't', partition 0, first 0) "
    "and 22 more of it",
    "update batches set producer = 8 where producer = 7": "batches (topic 1 't', partition 0, first 48)",
    "update configs set value = '1'": "configs (topic 2 'u', name retention.ms)",
    "update configs set name = 'retention.m', value = 's5000'": "configs (topic 2 'u', name retention.m)",
    "update starts set first = 4": "starts (topic 1 't', partition 1)",
    "update transactions set last = null": "transactions (topic 2 'u', partition 0, first 0)",
    "update counters set value = 0 where name = 'producer'": "counters (name producer)",
    "update transactional_ids set name = 'z' where name = 'x'": "transactional_ids (name z)",
    "update topics set name = x'ff' where name = 'u'": "topics (name \ufffd, id 2)",
}


@pytest.mark.parametrize("statement", DAMAGED)
def test_a_damaged_row_is_refused_by_its_table_and_names(statement, tmp_path):
    kept.write(tmp_path).close()
    change(tmp_path, statement)
    message = f"found a damaged row of the table {DAMAGED[statement]}, expected a whole SQLite file"
    for _ in range(2):
        with pytest.raises(InputError, match=re.escape(message)):
            Store(tmp_path)


def test_a_damaged_number_of_commits_is_not_taken_over(tmp_path):
    kept.write(tmp_path).close()
    noted = (tmp_path / COMMITS).read_bytes()
    change(tmp_path, "update counters set value = 1000000 where name = 'commits'")
    with pytest.raises(InputError, match=r"the table counters \(name commits\)"):
        Store(tmp_path)
    assert (tmp_path / COMMITS).read_bytes() == noted


def test_a_damaged_row_is_deleted_to_start_without_it(tmp_path):
    kept.write(tmp_path).close()
    change(tmp_path, "update batches set data = x'00' where topic = 1 and first = 4")
    with pytest.raises(InputError, match="or delete the row, which loses what it contains"):
        Store(tmp_path)
    change(tmp_path, "delete from batches where topic = 1 and first = 4")
    with closing(Store(tmp_path)) as store:
        assert [batch.first for batch in store.batches_from("t", 0, 0)][:3] == [0, 8, 12]


def test_rows_of_format_4_get_checksums(tmp_path):
    kept.write(tmp_path).close()
    with closing(sqlite3.connect(tmp_path / FILE)) as sql, sql:
        sql.execute("drop table group_configs")
        for table in COLUMNS.keys() - {"group_configs"}:
            sql.execute(f"alter table {table} drop column checksum")
        sql.execute("delete from counters where name = 'commits'")
        sql.execute("pragma user_version = 4")
    (tmp_path / COMMITS).unlink()
    with closing(Store(tmp_path)) as store:
        assert store.topics() == {"t": 2, "u": 1}
    change(tmp_path, "update starts set first = 4")
    with pytest.raises(InputError, match="the table starts"):
        Store(tmp_path)


@pytest.mark.parametrize("damage", ["page", "row"])
def test_damage_that_appears_while_the_broker_runs_is_an_error_of_its_partition(damage, tmp_path, caplog):
    async def work():
        async with broker({"t": 2}, data_dir=tmp_path) as kafka:
            store, topics = kafka._node.data.store, kafka._node.data.topics
            for partition in (0, 1):
                for _ in range(20):
                    topics.append([("t", partition, batch(MARKED[partition] * 200))])
            store._sql.execute("pragma wal_checkpoint(truncate)").fetchall()
            store._sql.execute("pragma shrink_memory")
            damage_pages(tmp_path / FILE, MARKED[0], whole=damage == "page")
            errors = {}
            async with asyncio.timeout(60):
                for partition in (0, 1, 0):
                    at = {"partition": partition, "fetch_offset": 0, "partition_max_bytes": 10**6}
                    part = their_class(Api.FETCH, "Request").FetchTopic
                    wanted = [part(topic="t", partitions=[part.FetchPartition(**at)])]
                    answer = await ask(kafka.address, Api.FETCH, 11, max_bytes=10**6, topics=wanted)
                    errors[partition] = answer.responses[0].partitions[0].error_code
            assert errors[0] == Wire.kafka_storage_error
            assert damage == "page" or errors[1] == Wire.none  # partitions share pages

    run(work())
    (message,) = caplog.messages
    found = "database disk image is malformed" if damage == "page" else "a damaged row of the table batches"
    assert message.startswith(f"{tmp_path / FILE}: found {found}")
    assert "restore the folder from a copy" in message


MARKED = (b"of partition 0 ", b"of partition 1 ")
"""The records of partitions, by which their pages are found in the file."""


def damage_pages(path, mark, *, whole):
    """Damage the pages of a database that have these bytes: all of a page, or one bit."""
    data = bytearray(path.read_bytes())
    for begin in range(0, len(data), 4_096):
        at = data.find(mark, begin, begin + 4_096)
        if at >= 0 and whole:
            data[begin : begin + 4_096] = bytes(4_096)
        elif at >= 0:
            data[at] ^= 1
    path.write_bytes(data)
