"""Retention and compaction: which records stay."""

import asyncio

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from kio.schema.errors import ErrorCode as Wire

from rebalance_kafka.broker.cleaning import Cleaner, Cleaning
from rebalance_kafka.broker.store import Store
from rebalance_kafka.broker.topics import Topics
from rebalance_kafka.wire.batches import keyed_records, records_of, with_records
from tests.examples import scaled
from tests.rebalance_kafka.live import run
from tests.rebalance_kafka.records import BEGINS, COMPRESSIONS, Sent, batch

DAY_MS = 86_400_000
NOW_MS = 1_700_000_000_000
PLENTY = 10_000_000
SECONDS = 60.0
COMPACT = {"cleanup.policy": "compact"}


class Log:
    """Topic ``t`` with one partition, without a network."""

    def __init__(self, folder=None, **configs):
        self.store = Store(folder)
        self.topics = Topics(self.store, most_bytes=PLENTY)
        if "t" not in self.topics.partitions:
            named = {name.replace("_", "."): str(value) for name, value in configs.items()}
            self.topics.create({"t": 1}, {"t": named})
        self.cleaner = Cleaner(self.topics, self.store)

    def write(self, *records, **options):
        (appended,) = self.topics.append([("t", 0, batch(*records, **options))])
        return appended

    def clean(self, now_ms=NOW_MS):
        for _ in self.cleaner.steps(now_ms):
            pass

    @property
    def bounds(self):
        return self.topics.start("t", 0), self.topics.end("t", 0)

    def read(self, offset=0):
        data = self.topics.read("t", 0, max(offset, self.topics.start("t", 0)), PLENTY, at_least_one=True)
        return [(r.offset, r.key, r.value) for r in records_of(data)[0] if r.offset >= self.bounds[0]]


def at(age_ms, value=b"value", key=None):
    return Sent(value, key, NOW_MS - age_ms)


def keyed(key, value, age_ms=0):
    return Sent(value, key, NOW_MS - age_ms)


# --- retention


@pytest.mark.parametrize(
    ("configs", "start"),
    [
        ({"retention_ms": 1_500}, 2),
        ({"retention_ms": 500}, 4),
        ({"retention_ms": 0}, 4),
        ({"retention_ms": 5_000}, 0),
        ({"retention_ms": -1}, 0),
        ({}, 0),
        ({"retention_ms": 500, "cleanup_policy": "compact"}, 0),
        ({"retention_ms": 1_500, "cleanup_policy": "compact,delete"}, 2),
    ],
)
def test_batches_whose_newest_record_is_too_old_are_deleted(configs, start):
    log = Log(**configs)
    for ages in ((9_000, 2_000), (1_000, 8_000)):
        log.write(*(at(age, b"%d" % age, b"%d" % age) for age in ages))
    log.clean()
    assert log.bounds == (start, 4)


def test_records_are_kept_for_a_week_without_a_configuration():
    log = Log()
    log.write(at(8 * DAY_MS))
    log.write(at(6 * DAY_MS))
    log.clean()
    assert log.bounds == (1, 2)


def test_a_younger_batch_protects_the_older_ones_behind_it():
    log = Log(retention_ms=1_000)
    for age in (500, 5_000):
        log.write(at(age))
    log.clean()
    assert log.bounds == (0, 2)


def test_the_oldest_batches_are_deleted_while_the_others_have_enough_bytes():
    log = Log(retention_bytes=250, retention_ms=-1)
    sizes = [len(batch(at(0, bytes(32)))) for _ in range(4) if log.write(at(0, bytes(32)))]
    assert sizes == [100] * 4
    log.clean()
    assert log.bounds == (1, 4)
    assert log.topics._bytes == 300


def test_the_start_and_the_end_survive_when_all_records_are_deleted(tmp_path):
    log = Log(tmp_path, retention_ms=1_000)
    log.write(at(2_000), at(2_000))
    log.clean()
    log.store.close()
    again = Log(tmp_path)
    assert again.bounds == (2, 2)
    assert again.write(at(0)).base_offset == 2


# --- compaction


def test_the_newest_record_of_each_key_survives_with_its_offset():
    log = Log(cleanup_policy="compact")
    log.write(keyed(b"a", b"1"), keyed(b"b", b"2"), keyed(b"a", b"3"))
    log.write(keyed(b"c", b"4"), keyed(b"b", b"5"))
    log.clean()
    assert log.read() == [(2, b"a", b"3"), (3, b"c", b"4"), (4, b"b", b"5")]
    assert log.bounds == (0, 5)


def test_a_batch_without_a_surviving_record_is_deleted():
    log = Log(cleanup_policy="compact")
    for value in (b"1", b"2", b"3"):
        log.write(keyed(b"a", value))
    log.clean()
    assert [row.first for row in log.store.headers("t", 0)] == [2]
    assert log.read(1) == [(2, b"a", b"3")]


# --- compaction and transactions


PRODUCER = 5


def transactional(log, sequence, *records, ended=None, producer=PRODUCER):
    """Write records in a transaction, and end it: True commits, False aborts, None leaves it open."""
    data = batch(*records, producer=(producer, 0, sequence), transactional=True)
    log.topics.append([("t", 0, data)], begin=BEGINS)
    if ended is not None:
        log.topics.end_transaction([("t", 0)], producer, 0, committed=ended, now_ms=NOW_MS)


def test_an_aborted_record_does_not_replace_an_earlier_one_of_its_key():
    log = Log(cleanup_policy="compact")
    log.write(keyed(b"a", b"1"))
    transactional(log, 0, keyed(b"a", b"2"), ended=False)
    transactional(log, 1, keyed(b"b", b"3"), ended=True)
    log.clean()
    assert log.read() == [(0, b"a", b"1"), (3, b"b", b"3")]


STEPS = st.lists(
    st.tuples(st.integers(0, 1), st.sampled_from(["write a", "write b", "commit", "abort"])),
    min_size=5,
    max_size=20,
)


OVERLAPPING = ((0, "write a"), (0, "commit"), (1, "write a"), (0, "write b"), (0, "abort"), (1, "abort"))
"""The transaction that begins first is aborted last."""


@example(OVERLAPPING)
@given(STEPS)
@settings(max_examples=scaled(100), deadline=None)
def test_the_newest_committed_record_of_each_key_survives(steps):
    log, sequences = Log(cleanup_policy="compact"), [0, 0]
    for number, (producer, step) in enumerate(steps):
        if step.startswith("write"):
            record = keyed(step[-1:].encode(), b"%d" % number)
            transactional(log, sequences[producer], record, producer=producer)
            sequences[producer] += 1
        else:
            committed = step == "commit"
            log.topics.end_transaction([("t", 0)], producer, 0, committed=committed, now_ms=NOW_MS)

    def newest():
        data, aborted = log.topics.read_committed("t", 0, 0, PLENTY, at_least_one=True)
        return {record.key: (record.offset, record.value) for record in records_of(data, aborted)[0]}

    before, bounds = newest(), log.bounds
    log.clean()
    assert (newest(), log.bounds) == (before, bounds)


def test_compaction_ends_at_the_last_stable_offset_until_the_transaction_ends():
    log = Log(cleanup_policy="compact")
    for value in (b"1", b"2"):
        log.write(keyed(b"a", value))
    transactional(log, 0, keyed(b"a", b"3"))
    log.write(keyed(b"a", b"4"))
    log.clean()
    assert log.read() == [(1, b"a", b"2"), (2, b"a", b"3"), (3, b"a", b"4")]
    log.topics.end_transaction([("t", 0)], PRODUCER, 0, committed=True, now_ms=NOW_MS)
    log.clean()
    assert log.read() == [(3, b"a", b"4")]


def test_markers_and_sequences_survive_a_compaction(tmp_path):
    log = Log(tmp_path, cleanup_policy="compact")
    transactional(log, 0, keyed(b"a", b"1"), ended=False)
    transactional(log, 1, keyed(b"a", b"2"), ended=True)
    log.write(keyed(b"a", b"3"))
    log.clean()
    assert [row.first for row in log.store.headers("t", 0) if row.is_marker] == [1, 3]
    log.store.close()
    again = Log(tmp_path)
    assert again.bounds == (0, 5)
    late, following = (
        again.topics.append(
            [("t", 0, batch(keyed(b"a", b"4"), producer=(PRODUCER, 0, n), transactional=True))],
            begin=BEGINS,
        )[0]
        for n in (3, 2)
    )
    assert (late.error, following.base_offset) == (Wire.out_of_order_sequence_number, 5)
    again.store.close()


@pytest.mark.parametrize("compression", COMPRESSIONS)
def test_compressed_batches_are_compacted(compression):
    log = Log(cleanup_policy="compact")
    log.write(*(keyed(b"%d" % (n % 3), b"%d" % n, 30 - n) for n in range(30)), compression=compression)
    log.clean()
    assert log.read() == [(n, b"%d" % (n % 3), b"%d" % n) for n in (27, 28, 29)]
    assert log.topics.newest("t", 0) == (29, NOW_MS - 1)


def test_a_tombstone_survives_for_a_time_and_what_it_deletes_does_not():
    log = Log(cleanup_policy="compact", delete_retention_ms=1_000)
    log.write(keyed(b"a", b"1"))
    log.write(keyed(b"a", None))
    log.write(keyed(b"b", b"2"))
    log.clean(NOW_MS + 500)
    assert log.read() == [(1, b"a", None), (2, b"b", b"2")]
    log.clean(NOW_MS + 1_500)
    assert log.read() == [(2, b"b", b"2")]


def test_the_end_survives_a_last_tombstone(tmp_path):
    log = Log(tmp_path, cleanup_policy="compact", delete_retention_ms=0)
    log.write(keyed(b"a", b"1"))
    log.write(keyed(b"a", None))
    log.clean(NOW_MS + 1)
    assert log.read() == []
    log.store.close()
    assert Log(tmp_path).bounds == (0, 2)


def test_the_sequence_of_a_producer_survives(tmp_path):
    log = Log(tmp_path, cleanup_policy="compact")
    log.write(keyed(b"a", b"1"), producer=(7, 0, 0))
    log.write(keyed(b"a", b"2"), producer=(7, 0, 1))
    log.write(keyed(b"a", b"3"))
    log.clean()
    assert log.read() == [(2, b"a", b"3")]
    log.store.close()
    again = Log(tmp_path)
    assert again.write(keyed(b"a", b"2"), producer=(7, 0, 1)) == (Wire.none, 1, None)
    assert again.write(keyed(b"a", b"4"), producer=(7, 0, 3)).error is Wire.out_of_order_sequence_number
    assert again.write(keyed(b"a", b"4"), producer=(7, 0, 2)) == (Wire.none, 3, None)


def test_young_records_are_not_compacted_before_their_time():
    log = Log(cleanup_policy="compact", min_compaction_lag_ms=1_000)
    log.write(keyed(b"a", b"1", 5_000))
    log.write(keyed(b"a", b"2", 4_000))
    log.write(keyed(b"a", b"3", 500))
    log.clean()
    assert [value for _, _, value in log.read()] == [b"2", b"3"]
    log.clean(NOW_MS + 1_000)
    assert [value for _, _, value in log.read()] == [b"3"]


def test_a_compacted_topic_takes_no_record_without_a_key():
    log = Log(cleanup_policy="compact")
    refused = log.write(keyed(b"a", b"1"), Sent(b"2"))
    assert refused.error is Wire.invalid_record
    assert "without a key" in refused.message
    assert log.bounds == (0, 0)


def test_a_batch_that_cannot_be_read_stays():
    log = Log(cleanup_policy="compact")
    data = bytearray(batch(keyed(b"a", b"1"), compression=1))
    (first,) = log.topics.append([("t", 0, bytes(data))])
    data[-8:] = b"damaged!"
    assert first.error is Wire.none
    log.store.replace_batch("t", 0, 0, with_checksum(data), NOW_MS)
    log.write(keyed(b"a", b"2"))
    log.clean()
    assert [row.first for row in log.store.headers("t", 0)] == [0, 1]


def with_checksum(data):
    from crc32c import crc32c

    data[17:21] = crc32c(bytes(data[21:])).to_bytes(4, "big")
    return bytes(data)


def test_a_partition_is_compacted_again_only_with_new_records():
    log = Log(cleanup_policy="compact")
    log.write(keyed(b"a", b"1"))
    log.clean()
    read = log.store.batch
    log.store.batch = lambda *_: pytest.fail("read again")
    log.clean()
    log.store.batch = read
    log.write(keyed(b"a", b"2"))
    log.clean()
    assert log.read() == [(1, b"a", b"2")]


RECORDS = st.lists(
    st.lists(
        st.tuples(st.sampled_from((b"a", b"b", b"c")), st.one_of(st.none(), st.binary(max_size=3))),
        min_size=1,
        max_size=4,
    ),
    min_size=1,
    max_size=6,
)


@settings(max_examples=scaled(60))
@given(written=RECORDS, steps=st.integers(0, 40), compression=st.sampled_from(COMPRESSIONS))
def test_nothing_is_lost_wherever_a_pass_ends(tmp_path_factory, written, steps, compression):
    """Every step is a transaction: a process that is killed between two of them leaves this."""
    folder = tmp_path_factory.mktemp("log")
    log = Log(folder, cleanup_policy="compact")
    newest = {}
    for rows in written:
        log.write(*(keyed(*row) for row in rows), compression=compression)
        newest |= dict(rows)
    end = log.bounds[1]
    for _, _ in zip(range(steps), log.cleaner.steps(NOW_MS), strict=False):
        pass
    log.store.close()
    again = Log(folder)
    assert again.bounds == (0, end)
    assert {key: value for _, key, value in again.read()} == newest
    again.clean()
    assert sorted((key, value) for _, key, value in again.read()) == sorted(newest.items())
    again.store.close()


def test_a_topic_that_is_deleted_and_created_again_during_a_pass_is_left_alone():
    log = Log(cleanup_policy="compact")
    log.write(keyed(b"a", b"1"))
    log.write(keyed(b"a", b"2"))
    steps = log.cleaner.steps(NOW_MS)
    for _ in range(3):
        next(steps)
    log.topics.delete(["t"])
    log.topics.create({"t": 1}, {"t": COMPACT})
    log.write(keyed(b"b", b"1"))
    for _ in steps:
        pass
    assert log.read() == [(0, b"b", b"1")]


def test_a_batch_with_some_records_is_read_by_kafka_python():
    from kafka.record.default_records import DefaultRecordBatch

    data = batch(*(keyed(b"k", b"%d" % n, n) for n in range(4)), compression=2)
    for kept in ([], [1], [0, 3]):
        records = [record for record in keyed_records(data) if record.offset in kept]
        new, newest_ms = with_records(data, records)
        theirs = DefaultRecordBatch(new)
        assert theirs.validate_crc()
        assert [record.value for record in theirs] == [b"%d" % n for n in kept]
        assert newest_ms == max((NOW_MS - n for n in kept), default=-1)


def test_records_are_cleaned_from_time_to_time():
    async def work():
        log = Log(retention_ms=1_000)
        log.write(at(2_000))
        cleaning = Cleaning(asyncio.get_running_loop(), log.cleaner, lambda: NOW_MS, 0.001)
        async with asyncio.timeout(SECONDS):
            while log.bounds != (1, 1):
                await asyncio.sleep(0.001)
            log.write(at(2_000))
            while log.bounds != (2, 2):
                await asyncio.sleep(0.001)
        cleaning.stop()

    run(work())
