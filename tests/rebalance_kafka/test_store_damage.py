"""Damage in the broker's files: a start keeps every committed offset, or refuses and names the place."""

import asyncio
import logging
import shutil
import sqlite3
import zlib
from contextlib import closing
from functools import cache

import msgspec
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from coordinator_core.coordinator.find_coordinator import home_partition
from coordinator_core.coordinator.records import OffsetRecord, StoredOffset, encode_record
from coordinator_core.errors import InputError
from coordinator_core.protocol import messages as m
from coordinator_core.protocol.error_codes import ErrorCode
from rebalance_kafka.broker import store as store_module
from rebalance_kafka.broker.store import FILE, Store
from rebalance_kafka.broker.topics import Topics
from rebalance_kafka.broker.transactions import Transactions
from tests.examples import scaled
from tests.rebalance_kafka import kept
from tests.rebalance_kafka.live import broker

WAL, COMMITS = f"{FILE}-wal", f"{FILE}-commits"
HEADER = 32
"""The bytes of the header of a write-ahead log."""
SALTED = 12
"""The bytes from which on a part of a frame shows that it is of this log and not of an earlier one."""
GROUPS = ("g", "another")
HOMES = {group: home_partition(group, 50) for group in GROUPS}
OFFSETS = 5
"""Partitions with a committed offset, of each group."""

COMMITTED = {(group, n): 100 + n for group in GROUPS for n in range(OFFSETS)}


def commit(group, n, offset):
    return OffsetRecord(group, "t", n, StoredOffset(offset, -1, "", committed_at_ms=1))


def written(folder):
    """Write offsets that are committed twice, and one that is deleted."""
    store = Store(folder)
    store.save_topics({"t": OFFSETS + 1})
    for group, home in HOMES.items():
        for n in range(OFFSETS):
            assert store.append(home, [commit(group, n, n), commit(group, OFFSETS, 7)]) is ErrorCode.NONE
            assert store.append(home, [commit(group, n, 100 + n)]) is ErrorCode.NONE
        store.append(home, [OffsetRecord(group, "t", OFFSETS, None)])
    return store


@pytest.fixture(scope="module")
def closed(tmp_path_factory):
    """A folder after a broker that was stopped."""
    folder = tmp_path_factory.mktemp("closed")
    written(folder).close()
    return folder


@pytest.fixture(scope="module")
def killed(tmp_path_factory):
    """A folder after a broker that was killed: what it wrote is in the write-ahead log."""
    folder = tmp_path_factory.mktemp("killed")
    with closing(written(folder / "running")):
        return copied_to(folder / "copied", folder / "running")


def with_flipped(data, bit):
    """Return the bytes with one bit flipped."""
    return data[: bit // 8] + bytes([data[bit // 8] ^ 1 << bit % 8]) + data[bit // 8 + 1 :]


def copied_to(to, folder):
    """Copy the files of a folder that are read, as they are, into an empty folder."""
    shutil.rmtree(to, ignore_errors=True)
    to.mkdir()
    for name in (FILE, WAL, COMMITS):
        if (folder / name).exists():
            shutil.copy(folder / name, to / name)
    return to


@cache
def used(path):
    """Return the places of the bytes of a file that are not zero."""
    return [at for at, byte in enumerate(path.read_bytes()) if byte]


def replace(store, number, data):
    """Replace a record of the log by other bytes."""
    store._sql.execute("update log set record = ? where number = ?", (data, number))


def committed(folder, changed=None):
    """Start a broker on a folder, stop it, and return its committed offsets."""

    async def started():
        async with broker({}, data_dir=folder, settings=changed or {}) as kafka:
            coordinator, found = kafka._running().coordinator, {}
            for group in GROUPS:
                request = m.OffsetFetchRequest(group_id=group, partitions=None)
                (reply,) = coordinator.receive(0, request, now_ms=2).replies
                found |= {(group, row.partition): row.offset for row in reply.response.offsets}
            return found

    return asyncio.run(started())


def rows(folder):
    """Return the rows of the log as far as SQLite can read them, None where it cannot."""
    try:
        with closing(sqlite3.connect(copied_to(folder.with_name("read"), folder) / FILE)) as sql:
            return sql.execute("select partition, record from log order by number").fetchall()
    except (sqlite3.Error, UnicodeDecodeError):
        return None


def write_ends(log):
    """Return the ends of the writes in the bytes of a write-ahead log, and that of its header."""
    frame = 24 + int.from_bytes(log[8:12], "big")  # a header and a page
    begins = range(HEADER, len(log), frame)
    return [HEADER, *(begin + frame for begin in begins if any(log[begin + 4 : begin + 8]))]


# --- records


def test_undamaged_folders_have_all_offsets(closed, killed, tmp_path, caplog):
    for folder in (closed, killed):
        copied = shutil.copytree(folder, tmp_path / folder.name)
        for _ in range(2):
            assert committed(copied) == COMMITTED
    assert caplog.text == ""


def test_a_flipped_bit_of_a_record_is_refused_by_its_row(tmp_path):
    record = encode_record(commit("g", 1, 5))
    with closing(Store(tmp_path)) as store:
        store.append(3, [commit("g", 1, offset) for offset in (4, 5, 6)])
        for bit in range(len(record) * 8):
            replace(store, 2, with_flipped(record, bit))
            for reading in (store.compact, lambda: store.read(3)):
                with pytest.raises(
                    InputError, match=r"broker.sqlite, row 2 of the table log, partition 3: found a damaged"
                ):
                    reading()
        replace(store, 2, record)
        assert [row.value.offset for row in store.read(3)] == [4, 5, 6]


def test_damage_that_appears_while_the_broker_runs_stops_compaction_only(tmp_path, caplog, monkeypatch):
    monkeypatch.setattr(store_module, "COMPACT_AFTER", 3)
    with closing(Store(tmp_path)) as store:
        store.append(3, [commit("g", n, 4) for n in range(3)])
        replace(store, 2, with_flipped(encode_record(commit("g", 1, 4)), 70))
        assert store.append(3, [commit("g", 0, 5)]) is ErrorCode.NONE
        assert "log is not compacted: " in caplog.text
        assert "row 2 of the table log" in caplog.text
        assert store._sql.execute("select count(*) from log").fetchone() == (4,)


def test_a_record_that_a_later_version_wrote_is_refused(tmp_path):
    body = msgspec.msgpack.encode(["unknown", "g"])
    data = len(body).to_bytes(4, "big") + zlib.crc32(body).to_bytes(4, "big") + body
    with closing(Store(tmp_path)) as store:
        store.append(3, [commit("g", 1, 4)])
        replace(store, 1, data)
        with pytest.raises(InputError, match=r"row 1 .*unknown.* expected a record of this version"):
            store.read(3)


@pytest.mark.parametrize("partition", [HOMES["g"] ^ 1, 64, -3])
def test_a_record_in_a_partition_that_is_not_its_home_is_refused_before_the_log_is_compacted(
    partition, closed, tmp_path
):
    folder = shutil.copytree(closed, tmp_path / "moved")
    with closing(sqlite3.connect(folder / FILE)) as sql, sql:
        sql.execute("update log set partition = ? where number = (select max(number) from log)", (partition,))
    before = rows(folder)
    with pytest.raises(
        InputError, match=f"group 'another': found partition {partition} .*expected partition"
    ):
        committed(folder)
    assert rows(folder) == before


def test_another_number_of_partitions_of_the_log_is_refused(closed, tmp_path):
    folder = shutil.copytree(closed, tmp_path / "folder")
    with pytest.raises(InputError, match=r"offsets.topic.num.partitions=7"):
        committed(folder, {"offsets.topic.num.partitions": 7})
    assert committed(folder) == COMMITTED


def test_a_flipped_bit_of_a_transactional_id_is_refused(tmp_path):
    with closing(Store(tmp_path)) as store:
        transactions = Transactions(store, Topics(store, most_bytes=1_000))
        producer = transactions.initialize("tx", 1_000, None, now_ms=1)
        (record,) = store.transactional_ids()
        for bit in range(len(record) * 8):
            store.save_transactional_id("tx", with_flipped(record, bit))
            with pytest.raises(InputError, match=r"broker.sqlite, record 1 of the table transactional_ids"):
                Transactions(store, Topics(store, most_bytes=1_000))
        for valid in (record, record[5:]):  # earlier formats have no checksum
            store.save_transactional_id("tx", valid)
            assert Transactions(store, Topics(store, most_bytes=1_000)).find("tx").producer == producer


# --- files


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    """Folders of a broker that was stopped and of one that was killed, and what they have."""
    under = tmp_path_factory.mktemp("whole")
    kept.write(under / "closed").close()
    with closing(kept.write(under / "running")):
        copied_to(under / "killed", under / "running")
    names = ("closed", "killed")
    return {name: (under / name, kept.state(copied_to(under / "read", under / name))) for name in names}


@pytest.mark.parametrize(("kind", "name"), [("closed", FILE), ("killed", WAL), ("closed", COMMITS)])
@given(data=st.data())
@settings(max_examples=scaled(300), suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_a_flipped_bit_of_a_file_loses_nothing_in_silence(kind, name, whole, tmp_path, caplog, data):
    folder, expected = whole[kind]
    bit = data.draw(st.sampled_from(used(folder / name))) * 8 + data.draw(st.integers(0, 7))
    copied = copied_to(tmp_path / "flipped", folder)
    (copied / name).write_bytes(with_flipped((copied / name).read_bytes(), bit))
    caplog.clear()
    before = rows(copied)
    try:
        found = kept.state(copied)
    except InputError as error:
        found, where = expected, error.where
        assert (FILE in where, rows(copied)) == (True, before)
    assert found == expected or caplog.text
    assert not [record for record in caplog.records if record.levelno > logging.WARNING]


@given(data=st.data())
@settings(max_examples=scaled(300), suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_a_write_ahead_log_that_ends_anywhere_loses_an_incomplete_write_only(killed, tmp_path, caplog, data):
    """The number of commits is not known. SQLite keeps what was written before."""
    whole = (killed / WAL).read_bytes()
    cut = data.draw(st.integers(HEADER, len(whole)), label="cut")
    folder = copied_to(tmp_path / "cut", killed)
    (folder / COMMITS).unlink()
    (folder / WAL).write_bytes(whole[:cut])
    expected, end = rows(folder), max(end for end in write_ends(whole) if end <= cut)
    caplog.clear()
    Store(folder).close()
    assert rows(folder) == (expected or [])
    warning = f"{folder / WAL}: the last write, from byte {end} to {cut}, is incomplete and is dropped"
    unknown = f"{folder / COMMITS} does not exist: whether the last writes are missing is not known"
    expected = [] if end <= write_ends(whole)[1] else [unknown]  # the first write creates the tables
    if cut - end >= SALTED:
        assert caplog.messages == [*expected, warning]
    elif end == cut:
        assert caplog.messages == expected


def test_frames_of_an_earlier_write_ahead_log_are_no_damage(tmp_path, caplog):
    """SQLite writes a new log over the old one after a checkpoint, with other salts."""
    with closing(Store(tmp_path / "running")) as store:
        store.append(3, [commit("g", n, 4) for n in range(2_000)])
        old = len(write_ends((tmp_path / "running" / WAL).read_bytes()))
        store._sql.execute("pragma wal_checkpoint(full)").fetchall()
        for _ in range(2):
            store.append(3, [commit("g", 0, 5)])
        folder = copied_to(tmp_path / "killed", tmp_path / "running")
    assert len(write_ends((folder / WAL).read_bytes())) >= old > 2
    with closing(Store(folder)) as store:
        assert len(store.read(3)) == 2_002
    assert caplog.text == ""


def test_damage_of_a_write_ahead_log_names_the_place_and_the_later_writes(killed, tmp_path):
    folder, log = copied_to(tmp_path / "folder", killed), (killed / WAL).read_bytes()
    ends = write_ends(log)
    (folder / WAL).write_bytes(with_flipped(log, 8 * (ends[-4] + 100)))
    begin, later = ends[-4], 2
    message = (
        f"{WAL}, byte {begin}: found damage before {later} later writes, .* cut the file to {begin} bytes"
    )
    for _ in range(2):
        with pytest.raises(InputError, match=message):
            Store(folder)
    (folder / WAL).write_bytes(log[:begin])
    (folder / COMMITS).unlink()
    with closing(Store(folder)) as store:
        assert len(store.read(HOMES["another"])) == 3 * OFFSETS + 1 - 4


# --- the number of commits


@given(data=st.data())
@settings(max_examples=scaled(300), suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_a_write_ahead_log_that_lost_commits_is_refused_wherever_it_ends(killed, tmp_path, data):
    whole = (killed / WAL).read_bytes()
    ends = write_ends(whole)
    cut = data.draw(st.integers(0, ends[-1] - 1), label="cut")
    folder = copied_to(tmp_path / "cut", killed)
    (folder / WAL).write_bytes(whole[:cut])
    lost = sum(end > cut for end in ends[2:])  # the first write creates the tables
    with pytest.raises(InputError, match=f"the last {lost} are missing, .*delete {COMMITS}, which loses"):
        Store(folder)


def test_a_database_without_its_write_ahead_log_is_refused_until_the_loss_is_accepted(killed, tmp_path):
    folder = copied_to(tmp_path / "folder", killed)
    (folder / WAL).unlink()
    for _ in range(2):
        with pytest.raises(InputError, match=f"{COMMITS}: found 23 commits, and 0 in the database"):
            Store(folder)
    (folder / COMMITS).unlink()
    with closing(Store(folder)) as store:
        assert store.topics() == {}


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (None, "does not exist"),
        (b"", "does not exist"),
        (b"short", "is damaged"),
        (bytes(11) + b"1", "is damaged"),
    ],
)
def test_an_unknown_number_of_commits_is_a_warning_once(content, words, closed, tmp_path, caplog):
    folder = copied_to(tmp_path / "folder", closed)
    (folder / COMMITS).unlink()
    if content is not None:
        (folder / COMMITS).write_bytes(content)
    for _ in range(2):
        assert committed(folder) == COMMITTED
    assert caplog.messages == [
        f"{folder / COMMITS} {words}: whether the last writes are missing is not known"
    ]


def test_a_number_of_commits_that_cannot_be_written_is_a_warning_once(tmp_path, caplog, monkeypatch):
    def fails(*_):
        raise OSError(5, "Input/output error")

    with closing(Store(tmp_path)) as store:
        with monkeypatch.context() as broken:
            broken.setattr("os.write", fails)
            for offset in (1, 2):
                assert store.append(3, [commit("g", 1, offset)]) is ErrorCode.NONE
        assert len(store.read(3)) == 2
    assert caplog.messages == [
        f"{tmp_path / COMMITS}: Input/output error, and the number of commits is not noted"
    ]
