"""Topics and partitions: appended and refused records, their order, and waits."""

from contextlib import closing

import pytest
from crc32c import crc32c
from hypothesis import given
from hypothesis import strategies as st
from kio.schema.errors import ErrorCode as Wire

from rebalance_kafka.broker.producers import REMEMBERED
from rebalance_kafka.broker.store import Store
from rebalance_kafka.broker.topics import LONGEST_NAME, MOST_PARTITIONS, Appended, Topics
from rebalance_kafka.wire.batches import batches_of, records_of
from tests.rebalance_kafka.records import (
    COMPRESSIONS,
    COUNT,
    GZIP,
    LAST_DELTA,
    NO_COMPRESSION,
    Sent,
    batch,
    changed,
    numbered,
)

PLENTY = 1_000_000


def made(store=None, *, most_bytes=PLENTY, **counts):
    topics = Topics(store or Store(), most_bytes=most_bytes)
    topics.create(counts or {"t": 2, "u": 1})
    return topics


@pytest.fixture
def topics():
    return made()


def write(topics, records, topic="t", partition=0):
    (appended,) = topics.append([(topic, partition, records)])
    return appended


def values(topics, topic="t", partition=0, offset=0):
    data = topics.read(topic, partition, offset, PLENTY, at_least_one=True)
    return [each.value for each in records_of(data)[0]]


# --- what there is


def test_created_partitions_exist(topics):
    assert topics.partitions == {"t": 2, "u": 1}
    there = [topics.has(*place) for place in (("t", 0), ("t", 1), ("t", 2), ("t", -1), ("v", 0))]
    assert there == [True, True, False, False, False]


def test_a_topic_can_grow(topics):
    topics.create({"t": 5})
    assert (topics.partitions["t"], topics.has("t", 4)) == (5, True)


@pytest.mark.parametrize("name", ["a", "A-z_0.9", "x" * LONGEST_NAME, "..."])
def test_valid_topic_names(topics, name):
    assert topics.cannot_create(name, 1) is None


@pytest.mark.parametrize("name", ["", ".", "..", "a b", "a/b", "ä", "a\n", "x" * (LONGEST_NAME + 1)])
def test_invalid_topic_names(topics, name):
    refused = topics.cannot_create(name, 1)
    assert refused.error is Wire.invalid_topic_exception
    assert "expected 1 to 249 of a-z, A-Z, 0-9, '.', '_' and '-'" in refused.message


def test_a_topic_is_created_once(topics):
    assert topics.cannot_create("t", 2) == Appended(
        Wire.topic_already_exists, message="topic t exists already"
    )


@pytest.mark.parametrize("count", [0, -1, MOST_PARTITIONS + 1])
def test_invalid_numbers_of_partitions(topics, count):
    assert topics.cannot_create("v", count).error is Wire.invalid_partitions
    assert topics.cannot_grow("t", count).error is Wire.invalid_partitions
    assert topics.cannot_create("v", MOST_PARTITIONS) is None
    assert topics.cannot_grow("t", MOST_PARTITIONS) is None


def test_the_number_of_partitions_must_increase(topics):
    assert topics.cannot_grow("t", 1).error is Wire.invalid_partitions
    assert topics.cannot_grow("t", 2).message == "2 partitions, expected 3 to 100,000"
    assert topics.cannot_grow("v", 2).error is Wire.unknown_topic_or_partition


# --- writing and reading


@given(st.lists(st.tuples(st.integers(0, 1), st.integers(1, 4)), max_size=12), st.integers(0, 50))
def test_offsets_of_each_partition_are_dense(written, at):
    topics, ends = made(), [0, 0]
    for partition, count in written:
        assert write(topics, numbered(count), "t", partition) == Appended(Wire.none, ends[partition])
        ends[partition] += count
    for partition, end in enumerate(ends):
        assert topics.end("t", partition) == end
        data = topics.read("t", partition, at, PLENTY, at_least_one=False)
        offsets = [each.offset for each in records_of(data)[0]]
        assert offsets == list(range(offsets[0] if offsets else end, end))
        assert bool(offsets) == (at < end)
        if offsets:
            first, *_ = batches_of(data)
            assert first.base_offset <= at <= first.last_offset


def test_several_batches_of_one_write_are_consecutive(topics):
    assert write(topics, numbered(2) + batch(b"x", b"y")).base_offset == 0
    assert (topics.end("t", 0), values(topics)) == (4, [b"0", b"1", b"x", b"y"])


def test_a_partition_may_come_twice_in_a_write(topics):
    results = topics.append([("t", 0, batch(b"a")), ("t", 1, batch(b"b")), ("t", 0, batch(b"c"))])
    assert [each.base_offset for each in results] == [0, 0, 1]
    assert (values(topics), values(topics, "t", 1)) == ([b"a", b"c"], [b"b"])


def test_a_refused_partition_does_not_affect_the_others(topics):
    damaged = bytearray(numbered(1))
    damaged[-1] ^= 1
    results = topics.append(
        [
            ("t", 0, batch(b"a")),
            ("v", 0, batch(b"b")),
            ("t", 7, batch(b"c")),
            ("t", 1, bytes(damaged)),
            ("u", 0, b""),
            ("u", 0, None),
            ("u", 0, batch(b"d")),
        ]
    )
    assert [each.error for each in results] == [
        Wire.none,
        Wire.unknown_topic_or_partition,
        Wire.unknown_topic_or_partition,
        Wire.corrupt_message,
        Wire.invalid_record,
        Wire.invalid_record,
        Wire.none,
    ]
    assert [each.base_offset for each in results] == [0, -1, -1, -1, -1, -1, 0]
    assert (values(topics), values(topics, "t", 1), values(topics, "u")) == ([b"a"], [], [b"d"])


@pytest.mark.parametrize(("count", "last_delta"), [(0, -1), (0, 0), (-1, -2), (2, 2), (99, 2), (3, 5)])
def test_a_batch_whose_counts_do_not_fit_is_invalid(topics, count, last_delta):
    """Clients repeat CORRUPT_MESSAGE, and not INVALID_RECORD."""
    appended = write(topics, changed(changed(numbered(3), COUNT, count), LAST_DELTA, last_delta))
    assert appended.error is Wire.invalid_record
    assert "records whose last offset is its first +" in appended.message
    assert topics.end("t", 0) == 0


def test_a_batch_of_more_records_than_bytes_is_invalid(topics):
    data = changed(changed(numbered(3), COUNT, 9), LAST_DELTA, 8)
    assert write(topics, data)[:3] == (Wire.invalid_record, -1, "9 records in 24 bytes")


@pytest.mark.parametrize("compression", COMPRESSIONS)
def test_the_records_of_a_topic_with_log_append_time_have_the_time_of_the_broker(topics, compression):
    topics.configure({"u": {"message.timestamp.type": "LogAppendTime"}})
    data = batch(Sent(b"a", timestamp_ms=10), Sent(b"b", timestamp_ms=30), compression=compression)
    own, by_broker = topics.append([("t", 0, data), ("u", 0, data)], now_ms=20)
    assert (own.at_ms, by_broker.at_ms) == (None, 20)
    for topic, times in (("t", [10, 30]), ("u", [20, 20])):
        records, _ = records_of(topics.read(topic, 0, 0, PLENTY, at_least_one=True))
        assert [(each.value, each.timestamp_ms) for each in records] == list(
            zip((b"a", b"b"), times, strict=True)
        )
    assert (topics.newest("u", 0, exact=False), topics.offset_since("u", 0, 21)) == ((1, 20), (-1, -1))


def test_a_failed_write_changes_nothing(topics):
    write(topics, batch(b"a"))
    topics._store.close()
    with pytest.raises(Exception, match="closed database"):
        write(topics, batch(b"b", producer=(5, 0, 0)))
    assert (topics.end("t", 0), topics._producers._producers) == (1, {})


def test_as_many_whole_batches_are_read_as_fit(topics):
    size = len(numbered(1))
    for _ in range(3):
        write(topics, numbered(1))
    lengths = {
        (most, first): len(topics.read("t", 0, 0, most, at_least_one=first)) // size
        for most in (0, size - 1, size, 2 * size, 10 * size)
        for first in (False, True)
    }
    assert [lengths[most, False] for most in (0, size - 1, size, 2 * size, 10 * size)] == [0, 0, 1, 2, 3]
    assert [lengths[most, True] for most in (0, size - 1, size, 2 * size, 10 * size)] == [1, 1, 1, 2, 3]


def test_a_time_is_found_exactly(topics):
    write(topics, batch(Sent(b"a", timestamp_ms=10), Sent(b"b", timestamp_ms=20), Sent(b"c", timestamp_ms=5)))
    write(topics, batch(Sent(b"d", timestamp_ms=30)))
    found = [topics.offset_since("t", 0, at_ms) for at_ms in (0, 10, 11, 20, 21, 31)]
    assert found == [(0, 10), (0, 10), (1, 20), (1, 20), (3, 30), (-1, -1)]


@pytest.mark.parametrize("compression", COMPRESSIONS)
def test_a_time_inside_a_batch_is_found_whatever_the_compression(topics, compression):
    write(topics, batch(*(Sent(b"a", timestamp_ms=10 * n) for n in range(10)), compression=compression))
    assert topics.offset_since("t", 0, 50) == (5, 50)
    assert topics.offset_since("t", 0, 51) == (6, 60)


@pytest.mark.parametrize("compression", COMPRESSIONS)
def test_a_batch_that_expands_too_far_gives_its_first_record(topics, compression, monkeypatch):
    monkeypatch.setattr("rebalance_kafka.wire.batches.MOST_SEARCHED_BYTES", 1_000)
    times = (Sent(bytes(2_000), timestamp_ms=10), Sent(b"b", timestamp_ms=20))
    write(topics, batch(*times, compression=compression))
    assert topics.offset_since("t", 0, 20) == ((1, 20) if compression == NO_COMPRESSION else (0, 20))


def test_the_newest_record_is_the_first_with_the_largest_time(topics):
    assert topics.newest("t", 0) == (-1, -1)
    for times in ((10, 30), (40, 20, 40), (15,)):
        write(topics, batch(*(Sent(b"a", timestamp_ms=at_ms) for at_ms in times), compression=GZIP))
    assert topics.newest("t", 0) == (2, 40)
    assert topics.newest("t", 0, exact=False) == (4, 40)


def test_a_time_in_an_unreadable_batch_gives_its_first_record(topics):
    """Its checksum is right: so it was written."""
    damaged = batch(Sent(b"a", timestamp_ms=10))[:-2] + b"\xff\xff"
    write(topics, damaged[:17] + crc32c(damaged[21:]).to_bytes(4, "big") + damaged[21:])
    assert topics.offset_since("t", 0, 10) == (0, 10)


# --- the limit


def test_writes_beyond_the_limit_are_refused_one_by_one():
    size = len(numbered(1))
    topics = made(most_bytes=2 * size)
    results = topics.append(
        [("t", 0, numbered(1)), ("t", 1, numbered(1) + numbered(1)), ("u", 0, numbered(1))]
    )
    assert [each.error for each in results] == [Wire.none, Wire.policy_violation, Wire.none]
    refused = write(topics, numbered(1))
    assert refused[:3] == (
        Wire.policy_violation,
        -1,
        f"{2 * size} bytes of records are kept, of {2 * size} at most",
    )


def test_stored_records_count_towards_the_limit(tmp_path):
    with closing(Store(tmp_path)) as store:
        write(made(store), numbered(1))
    with closing(Store(tmp_path)) as store:
        assert write(made(store, most_bytes=100), numbered(1)).error is Wire.policy_violation


def test_a_repeated_batch_is_recognised_even_beyond_the_limit():
    written = numbered(1, producer=(5, 0, 0))
    topics = made(most_bytes=len(written))
    assert write(topics, written) == write(topics, written) == Appended(Wire.none, 0)


# --- idempotent producers (KIP-98)


def test_a_repeated_batch_is_written_once(topics):
    first, second = numbered(3, producer=(5, 0, 0)), numbered(2, producer=(5, 0, 3))
    answers = [write(topics, each) for each in (first, second, first, second)]
    assert [each.base_offset for each in answers] == [0, 3, 0, 3]
    assert topics.end("t", 0) == 5


def test_as_many_batches_are_recognised_as_may_be_in_flight(topics):
    written = [numbered(1, producer=(5, 0, n)) for n in range(REMEMBERED + 1)]
    for each in written:
        write(topics, each)
    answers = [write(topics, each) for each in written]
    assert [each.error for each in answers] == [
        Wire.out_of_order_sequence_number,
        *[Wire.none] * REMEMBERED,
    ]
    assert topics.end("t", 0) == REMEMBERED + 1


@pytest.mark.parametrize("sequence", [1, 4, 2**31 - 1])
def test_a_batch_that_leaves_a_gap_is_refused(topics, sequence):
    write(topics, numbered(3, producer=(5, 0, 0)))
    refused = write(topics, numbered(1, producer=(5, 0, sequence)))
    assert refused == Appended(Wire.out_of_order_sequence_number)
    assert write(topics, numbered(1, producer=(5, 0, 3))).base_offset == 3


def test_an_unknown_producer_may_begin_with_any_sequence(topics):
    """Its earlier batches may be gone, as in Kafka since 2.5 (KIP-360)."""
    assert write(topics, numbered(1, producer=(5, 0, 77))).error is Wire.none
    assert write(topics, numbered(1, producer=(5, 0, 78))).error is Wire.none


def test_a_new_epoch_begins_with_sequence_0_and_ends_the_old_one(topics):
    write(topics, numbered(3, producer=(5, 0, 0)))
    assert write(topics, numbered(1, producer=(5, 1, 3))).error is Wire.out_of_order_sequence_number
    assert write(topics, numbered(1, producer=(5, 1, 0))) == Appended(Wire.none, 3)
    assert write(topics, numbered(1, producer=(5, 0, 3))).error is Wire.invalid_producer_epoch
    assert write(topics, numbered(1, producer=(5, 1, 0))) == Appended(Wire.none, 3)
    assert write(topics, numbered(1, producer=(5, 1, 1))) == Appended(Wire.none, 4)


@pytest.mark.parametrize("last", [2**31 - 3, 2**31 - 2])
def test_after_the_largest_sequence_comes_0(topics, last):
    write(topics, numbered(3, producer=(5, 0, last)))
    following = (last + 3) % 2**31
    assert (
        write(topics, numbered(1, producer=(5, 0, following + 1))).error is Wire.out_of_order_sequence_number
    )
    assert write(topics, numbered(1, producer=(5, 0, following))).base_offset == 3


def test_sequences_are_kept_for_each_partition_and_producer(topics):
    for place in (("t", 0), ("t", 1), ("u", 0)):
        for producer in (5, 6):
            assert write(topics, numbered(1, producer=(producer, 0, 0)), *place).error is Wire.none
    assert [topics.end(*place) for place in (("t", 0), ("t", 1), ("u", 0))] == [2, 2, 2]


def test_sequences_of_producers_are_durable(tmp_path):
    first, second = numbered(3, producer=(5, 2, 0)), numbered(2, producer=(5, 2, 3))
    with closing(Store(tmp_path)) as store:
        topics = made(store)
        write(topics, first)
        write(topics, second)
    with closing(Store(tmp_path)) as store:
        topics = Topics(store, most_bytes=PLENTY)
        assert (topics.partitions, topics.end("t", 0)) == ({"t": 2, "u": 1}, 5)
        assert [write(topics, each).base_offset for each in (first, second)] == [0, 3]
        assert write(topics, numbered(1, producer=(5, 2, 4))).error is Wire.out_of_order_sequence_number
        assert write(topics, numbered(1, producer=(5, 1, 5))).error is Wire.invalid_producer_epoch
        assert write(topics, numbered(1, producer=(5, 2, 5))).base_offset == 5


# --- waiting


def test_a_write_wakes_waits_for_its_partition(topics):
    woken = []
    topics.wait([("t", 0), ("u", 0)], lambda: woken.append("both"))
    topics.wait([("t", 1)], lambda: woken.append("other"))
    write(topics, numbered(1), "u", 0)
    write(topics, numbered(1), "t", 0)
    assert woken == ["both", "both"]
    write(topics, b"", "t", 1)
    assert woken == ["both", "both"]


def test_records_can_be_read_when_a_wait_is_woken(topics):
    seen = []
    topics.wait([("t", 0)], lambda: seen.append(values(topics)))
    write(topics, batch(b"a"))
    assert seen == [[b"a"]]


def test_an_ended_wait_is_forgotten(topics):
    woken = []
    stop = topics.wait([("t", 0), ("t", 0), ("u", 0)], lambda: woken.append(1))
    others = topics.wait([("t", 0)], lambda: woken.append(2))
    stop()
    stop()
    write(topics, numbered(1))
    assert woken == [2]
    others()
    assert topics._waiting == {}


def test_a_woken_wait_may_end_itself(topics):
    woken = []

    def wake():
        woken.append(1)
        stop()

    stop = topics.wait([("t", 0), ("t", 1)], wake)
    topics.append([("t", 0, numbered(1)), ("t", 1, numbered(1))])
    assert (woken, topics._waiting) == ([1], {})


def test_a_woken_wait_may_end_the_next_one(topics):
    woken, stops = [], []

    def wake(name):
        woken.append(name)
        for stop in stops:
            stop()

    stops += [topics.wait([("t", 0)], lambda: wake("first")), topics.wait([("t", 0)], lambda: wake("second"))]
    write(topics, numbered(1))
    assert woken == ["first"]


def test_a_read_in_the_middle_of_a_batch_begins_with_that_batch(topics):
    write(topics, batch(b"a"))
    write(topics, batch(b"b", b"c", b"d"))
    assert values(topics, offset=2) == [b"b", b"c", b"d"]
    assert values(topics, offset=4) == []
