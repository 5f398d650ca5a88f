"""The broker's store, in memory and in a folder: whole transactions, durable, for one process at a time."""

import sqlite3
import subprocess
import sys
from contextlib import closing

import pytest
from hypothesis import given
from hypothesis import strategies as st

from coordinator_core.coordinator.records import OffsetRecord, StoredOffset
from coordinator_core.errors import InputError
from coordinator_core.protocol.error_codes import ErrorCode
from rebalance_kafka.broker.schema import _TABLES
from rebalance_kafka.broker.store import FILE, Store
from rebalance_kafka.broker.stored import NewBatch
from rebalance_kafka.broker.write_ahead import incomplete_write


def stored(partition, first, last, *, topic="t", at_ms=0, producer=-1, epoch=-1, sequence=-1, data=b"x"):
    return NewBatch(topic, partition, first, last, at_ms, producer, epoch, sequence, data)


def commit(offset, *, partition=0):
    return OffsetRecord("g", "t", partition, StoredOffset(offset, -1, "", committed_at_ms=1))


@pytest.fixture(params=["memory", "folder"])
def store(request, tmp_path):
    with closing(Store(None if request.param == "memory" else tmp_path / "made" / "here")) as store:
        store.save_topics({"t": 3, "u": 1})
        yield store


class Folder:
    """A store that is closed and opened again."""

    def __init__(self, path):
        self.path = path
        self.store = Store(path)

    def reopened(self):
        self.store.close()
        self.store = Store(self.path)
        return self.store


@pytest.fixture
def folder(tmp_path):
    folder = Folder(tmp_path)
    yield folder
    folder.store.close()


# --- topics


# --- records


def test_batches_are_read_from_the_one_that_contains_the_offset(store):
    store.append_batches([stored(0, 0, 4), stored(0, 5, 5), stored(0, 6, 9), stored(1, 0, 7)])
    firsts = [[b.first for b in store.batches_from("t", 0, at)] for at in (0, 4, 5, 6, 9, 10)]
    assert firsts == [[0, 5, 6], [0, 5, 6], [5, 6], [6], [6], [6]]


def test_a_batch_comes_back_as_it_was_written(store):
    store.append_batches([stored(2, 3, 8, at_ms=77, data=b"\0bytes\xff")])
    assert list(store.batches_from("t", 2, 0)) == [(3, 8, 77, b"\0bytes\xff")]


def test_the_newest_batches_of_producers_are_listed_in_the_order_of_writing(store):
    for n in range(4):
        store.append_batches([stored(0, n, n, producer=8, epoch=1, sequence=n)])
    store.append_batches([stored(0, 4, 6, producer=9, epoch=0, sequence=0), stored(0, 7, 7)])
    store.append_batches([stored(0, 0, 1, topic="u", producer=8, epoch=2, sequence=5)])
    assert list(store.producers(2)) == [
        ("t", 0, 8, 1, 2, 2, 2),
        ("t", 0, 8, 1, 3, 3, 3),
        ("t", 0, 9, 0, 0, 4, 6),
        ("u", 0, 8, 2, 5, 0, 1),
    ]


def test_if_one_batch_cannot_be_written_none_is(store):
    store.append_batches([stored(0, 0, 0)])
    with pytest.raises(sqlite3.IntegrityError):
        store.append_batches([stored(1, 0, 0), stored(0, 0, 3)])
    assert store.ends() == {("t", 0): 1}
    store.append_batches([stored(0, 1, 1)])
    assert store.ends() == {("t", 0): 2}


def test_producer_ids_are_never_given_twice(store):
    ids = [store.next_producer_id() for _ in range(5)]
    assert sorted(set(ids)) == ids


# --- the coordinator's log


@given(st.lists(st.tuples(st.integers(0, 3), st.integers(0, 99)), max_size=20))
def test_the_log_is_read_as_it_was_written_and_compacts_to_the_newest(written):
    with closing(Store()) as store:
        for key, offset in written:
            assert store.append(7, [commit(offset, partition=key), commit(offset)]) is ErrorCode.NONE
        expected = [
            commit(o, partition=p) for key, offset in written for p, o in ((key, offset), (0, offset))
        ]
        assert list(store.read(7)) == expected
        store.compact()
        newest = {record.partition: record for record in expected}
        assert {record.partition: record for record in store.read(7)} == newest
        assert len(store.read(7)) == len(newest)


def test_partitions_of_the_log_are_separate(store):
    store.append(1, [commit(1)])
    store.append(2, [commit(2), commit(3)])
    store.compact()
    assert [list(store.read(n)) for n in (0, 1, 2)] == [[], [commit(1)], [commit(3)]]


def full(store):
    """A disk without any more room."""
    (pages,) = store._sql.execute("pragma page_count").fetchone()
    store._sql.execute(f"pragma max_page_count = {pages}")


def test_a_failed_write_to_the_log_is_an_error_code(store):
    store.append(0, [commit(1)])
    full(store)
    many = [commit(n, partition=n) for n in range(10_000)]
    assert store.append(0, many) is ErrorCode.NOT_COORDINATOR
    store._sql.execute("pragma max_page_count = 1000000")
    assert list(store.read(0)) == [commit(1)]
    assert store.append(0, [commit(2)]) is ErrorCode.NONE
    assert list(store.read(0)) == [commit(1), commit(2)]


# --- folders


def test_everything_written_is_read_back(folder):
    folder.store.save_topics({"t": 3})
    folder.store.append_batches([stored(2, 0, 4, data=b"12345")])
    folder.store.append(9, [commit(1), commit(2)])
    given_before = folder.store.next_producer_id()
    store = folder.reopened()
    store.append_batches([stored(2, 5, 5)])
    assert (store.topics(), store.ends(), store.size()) == ({"t": 3}, {("t", 2): 6}, 6)
    assert list(store.read(9)) == [commit(1), commit(2)]
    assert store.next_producer_id() > given_before


def test_a_second_store_on_the_folder_is_refused_until_the_first_is_closed(folder):
    with pytest.raises(InputError, match="a broker's data that no other process uses"):
        Store(folder.path)
    folder.store.save_topics({"t": 1})
    assert folder.reopened().topics() == {"t": 1}


def test_a_second_process_on_the_folder_is_refused(folder):
    opening = "import sys; from pathlib import Path; from rebalance_kafka.broker.store import Store"
    opening += "; Store(Path(sys.argv[1]))"
    ended = subprocess.run(
        [sys.executable, "-c", opening, str(folder.path)],
        capture_output=True,
        text=True,
        check=False,
        env={"PYTHONPATH": ":".join(sys.path)},
    )
    assert "InputError" in ended.stderr
    assert "a broker's data that no other process uses" in ended.stderr


def test_a_file_of_another_version_is_refused_and_not_changed(tmp_path):
    Store(tmp_path).close()
    with closing(sqlite3.connect(tmp_path / FILE)) as sql:
        sql.execute("pragma user_version = 7")
    for _ in range(2):
        with pytest.raises(InputError, match="format 7, expected format 6"):
            Store(tmp_path)
    with closing(sqlite3.connect(tmp_path / FILE, isolation_level=None, timeout=0)) as sql:
        sql.execute("begin exclusive")


@pytest.mark.parametrize("content", [b"", b"no database at all, but a text that is long enough" * 50])
def test_a_file_of_another_kind_is_refused_unless_it_is_empty(tmp_path, content):
    (tmp_path / FILE).write_bytes(content)
    if content:
        with pytest.raises(InputError, match="a broker's data"):
            Store(tmp_path)
        assert (tmp_path / FILE).read_bytes() == content
    else:
        Store(tmp_path).close()


def test_the_database_of_another_program_is_refused(tmp_path):
    with closing(sqlite3.connect(tmp_path / FILE)) as sql:
        sql.execute("create table theirs (value integer)")
    with pytest.raises(InputError, match="a broker's data"):
        Store(tmp_path)
    with closing(sqlite3.connect(tmp_path / FILE)) as sql:
        assert sql.execute("select name from sqlite_master").fetchall() == [("theirs",)]


def test_a_folder_that_cannot_be_created_or_used_is_refused(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(InputError, match="expected a folder to write to"):
        Store(tmp_path / "file")
    (tmp_path / "odd" / FILE).mkdir(parents=True)
    with pytest.raises(InputError, match="a broker's data"):
        Store(tmp_path / "odd")


def test_a_file_of_the_first_version_is_upgraded(tmp_path):
    with closing(sqlite3.connect(tmp_path / FILE)) as sql:
        sql.executescript(f"{_TABLES} insert into topics values (1, 't', 3); pragma user_version = 1;")
    with closing(Store(tmp_path)) as store:
        assert store.topics() == {"t": 3}
        assert store.configs() == store.starts() == {}
        first = store.topic_ids()["t"]
    with closing(Store(tmp_path)) as store:
        assert store.topic_ids() == {"t": first}


# --- configurations, starts of logs, deletion


def test_configurations_and_starts_survive(folder):
    folder.store.save_topics({"t": 1, "u": 1}, {"u": {"retention.ms": "5"}})
    folder.store.save_configs({"t": {"retention.ms": "7", "segment.ms": "9"}})
    folder.store.append_batches([stored(0, 0, 4), stored(0, 5, 9)])
    folder.store.delete_records({("t", 0): 7})
    store = folder.reopened()
    assert store.configs() == {"t": {"retention.ms": "7", "segment.ms": "9"}, "u": {"retention.ms": "5"}}
    assert (store.starts(), store.ends()) == ({("t", 0): 7}, {("t", 0): 10})
    assert [batch.first for batch in store.batches_from("t", 0, 7)] == [5]
    store.delete_records({("t", 0): 10})
    store = folder.reopened()
    assert (store.starts(), store.ends(), store.size()) == ({("t", 0): 10}, {("t", 0): 10}, 0)


def test_a_deleted_topic_leaves_nothing_to_the_next_of_its_name(folder):
    folder.store.save_topics({"t": 2}, {"t": {"retention.ms": "5"}})
    folder.store.append_batches([stored(0, 0, 4)])
    folder.store.delete_records({("t", 0): 2})
    first = folder.store.topic_ids()["t"]
    folder.store.delete_topics(["t"])
    assert folder.reopened().topics() == {}
    folder.store.save_topics({"t": 1})
    store = folder.reopened()
    assert (store.configs(), store.starts(), store.ends(), store.size()) == ({}, {}, {}, 0)
    assert store.topic_ids()["t"] != first


def test_a_commit_is_on_the_disk_before_it_is_answered(folder):
    """In a write-ahead log, only ``full`` (2) synchronises each commit."""
    assert folder.store._sql.execute("pragma synchronous").fetchone() == (2,)


def test_damage_that_reads_would_not_meet_is_found_at_the_start(tmp_path):
    """The number of free pages is wrong."""
    Store(tmp_path).close()
    path = tmp_path / FILE
    data = bytearray(path.read_bytes())
    data[36:40] = (7).to_bytes(4, "big")
    path.write_bytes(data)
    with pytest.raises(InputError, match=r"found damage \("):
        Store(tmp_path)


def test_a_log_whose_header_is_damaged_is_refused(tmp_path):
    path = tmp_path / "log"
    path.write_bytes(bytes.fromhex("377f0682 002de218 00001000") + bytes(60))
    with pytest.raises(InputError, match="damaged header"):
        incomplete_write(path)
