"""Record batches: received from other clients, kept unchanged, read like other clients read them."""

import warnings
from dataclasses import dataclass

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from coordinator_core.errors import ProtocolError
from coordinator_core.protocol.messages import FetchedRecord
from rebalance_kafka.wire.batches import Aborted, at_offset, batches_of, marker, records_of
from tests.examples import scaled
from tests.rebalance_kafka.records import (
    AT_MS,
    ATTRIBUTES,
    COMPRESSIONS,
    COUNT,
    GZIP,
    LAST_DELTA,
    LZ4,
    NO_COMPRESSION,
    SNAPPY,
    Sent,
    batch,
    changed,
    numbered,
)

with warnings.catch_warnings():
    warnings.simplefilter("ignore", DeprecationWarning)  # kafka-python reads its schemas in an old way
    from kafka.record.default_records import DefaultRecordBatch
    from kafka.record.memory_records import MemoryRecords, MemoryRecordsBuilder

HEADER_BYTES = 61
LOG_APPEND_TIME, CONTROL = 0x08, 0x20

HEADERS = st.tuples(st.text(st.characters(codec="utf-8"), max_size=8), st.none() | st.binary(max_size=20))
SENT = st.builds(
    Sent,
    value=st.none() | st.binary(max_size=60),
    key=st.none() | st.binary(max_size=20),
    timestamp_ms=st.integers(0, 2**45),
    headers=st.lists(HEADERS, max_size=3).map(tuple),
)
OFFSETS = st.integers(0, 2**62)


def by_kafka_python(*records, compression=NO_COMPRESSION):
    builder = MemoryRecordsBuilder(magic=2, compression_type=compression, batch_size=1_000_000)
    for each in records:
        builder.append(each.timestamp_ms, each.key, each.value, list(each.headers))
    builder.close()
    return bytes(builder.buffer())


def read_by_kafka_python(data):
    return [
        FetchedRecord(r.offset, r.value, r.key, r.timestamp, tuple(r.headers))
        for each in MemoryRecords(data)
        for r in each
    ]


def with_attributes(data, attributes):
    return changed(data, ATTRIBUTES, int.from_bytes(data[ATTRIBUTES], "big") | attributes)


def one(data):
    (found,) = batches_of(data)
    return found


# --- batches as producers send them


@given(st.lists(SENT, min_size=1, max_size=5), st.sampled_from(COMPRESSIONS))
def test_the_header_of_a_batch_is_read(records, compression):
    data = batch(*records, compression=compression, producer=(7, 3, 40))
    found = one(data)
    assert found.data == data
    assert (found.base_offset, found.last_delta, found.records) == (0, len(records) - 1, len(records))
    assert (found.producer_id, found.producer_epoch, found.base_sequence) == (7, 3, 40)
    times = [each.timestamp_ms for each in records]
    assert (found.base_timestamp_ms, found.max_timestamp_ms) == (times[0], max(times))


def test_a_producer_that_is_not_idempotent_has_no_id():
    assert one(numbered(2))[5:8] == (-1, -1, -1)


def test_several_batches_are_split():
    written = [numbered(n, compression=c) for n, c in zip((1, 4, 2), COMPRESSIONS, strict=False)]
    assert [each.data for each in batches_of(b"".join(written))] == written


def test_no_bytes_are_no_batches():
    assert list(batches_of(b"")) == []


@given(data=st.data())
def test_an_incomplete_batch_after_a_complete_one_is_refused(data):
    whole, torn = numbered(2), numbered(3)
    kept = data.draw(st.integers(1, len(torn) - 1))
    found = batches_of(whole + torn[:kept])
    assert next(found).data == whole
    with pytest.raises(ProtocolError, match="record batch"):
        next(found)


@given(data=st.data())
def test_a_damaged_batch_is_refused(data):
    """All but its offset and its leader epoch, which a broker writes anew."""
    whole = numbered(3)
    at = data.draw(st.sampled_from([*range(8, 12), *range(16, len(whole))]))
    bit = data.draw(st.integers(0, 7))
    damaged = whole[:at] + bytes([whole[at] ^ 1 << bit]) + whole[at + 1 :]
    with pytest.raises(ProtocolError, match="record batch"):
        list(batches_of(damaged))


@given(st.binary(max_size=200))
def test_other_bytes_are_refused(data):
    if data:
        with pytest.raises(ProtocolError, match="record batch"):
            list(batches_of(data))


@pytest.mark.parametrize("magic", [0, 1])
@pytest.mark.parametrize("value", [b"v", b"v" * 100])
def test_old_formats_are_refused(magic, value):
    builder = MemoryRecordsBuilder(magic=magic, compression_type=NO_COMPRESSION, batch_size=1_000)
    builder.append(AT_MS, None, value)
    builder.close()
    with pytest.raises(ProtocolError, match=f"format {magic}, expected 2|expected 61 or more"):
        list(batches_of(bytes(builder.buffer())))


def test_a_length_below_a_header_is_refused():
    with pytest.raises(ProtocolError, match="60 bytes long"):
        one(numbered(1)[:8] + (48).to_bytes(4, "big") + numbered(1)[12:])


# --- at another offset


@given(st.lists(SENT, min_size=1, max_size=4), st.sampled_from(COMPRESSIONS), OFFSETS)
def test_a_batch_at_another_offset_is_valid(records, compression, offset):
    sent = one(batch(*records, compression=compression))
    moved = at_offset(sent, offset)
    found = one(moved)
    assert (found.base_offset, found.last_offset) == (offset, offset + len(records) - 1)
    assert found._replace(data=b"", base_offset=0) == sent._replace(data=b"")
    theirs = DefaultRecordBatch(moved)
    assert (theirs.validate_crc(), theirs.base_offset, theirs.leader_epoch) == (True, offset, 0)


# --- records, as consumers read them


@dataclass
class Log:
    """Batches one after the other, as a broker keeps them."""

    data: bytes = b""
    end: int = 0

    def add(self, written):
        found = one(written)
        self.data += at_offset(found, self.end)
        self.end += found.records


@given(st.lists(st.lists(SENT, min_size=1, max_size=3), max_size=4))
def test_records_are_read_as_kafka_python_reads_them(batches):
    log = Log()
    for records in batches:
        log.add(by_kafka_python(*records))
    assert records_of(log.data) == (read_by_kafka_python(log.data), log.end or -1)


@pytest.mark.parametrize("compression", COMPRESSIONS)
@given(records=st.lists(SENT, min_size=1, max_size=4), offset=OFFSETS)
@settings(max_examples=scaled(20))
def test_records_come_back_as_they_were_sent(compression, records, offset):
    data = at_offset(one(batch(*records, compression=compression)), offset)
    assert records_of(data) == (
        [
            FetchedRecord(offset + n, each.value, each.key, each.timestamp_ms, each.headers)
            for n, each in enumerate(records)
        ],
        offset + len(records),
    )


def test_gzip_by_kafka_python_is_read():
    data = by_kafka_python(Sent(b"v", b"k"), compression=GZIP)
    assert records_of(data) == ([FetchedRecord(0, b"v", b"k", AT_MS)], 1)


@pytest.mark.parametrize("compression", COMPRESSIONS)
def test_large_records_are_read_whole(compression):
    large = bytes(range(256)) * 2_000
    (record,), _ = records_of(batch(large, compression=compression))
    assert record.value == large


def test_snappy_in_one_block_is_read():
    """As librdkafka writes it (KAFKA-1456)."""
    import cramjam

    plain = batch(b"one", b"two")
    block = bytes(cramjam.snappy.compress_raw(plain[HEADER_BYTES:]))
    length = (HEADER_BYTES - 12 + len(block)).to_bytes(4, "big")
    data = with_attributes(plain[:8] + length + plain[12:HEADER_BYTES] + block, SNAPPY)
    assert [each.value for each in records_of(data)[0]] == [b"one", b"two"]


def test_a_tombstone_has_no_value():
    assert records_of(batch(Sent(None, b"k"), Sent(b"", b"k")))[0] == [
        FetchedRecord(0, None, b"k", AT_MS),
        FetchedRecord(1, b"", b"k", AT_MS),
    ]


def test_the_log_append_time_holds_for_all_records():
    """message.timestamp.type=LogAppendTime: the batch's last time is when it was appended (KIP-32)."""
    data = with_attributes(batch(Sent(b"a", timestamp_ms=5), Sent(b"b", timestamp_ms=9)), LOG_APPEND_TIME)
    records, _ = records_of(data)
    assert [each.timestamp_ms for each in records] == [9, 9]
    assert records == read_by_kafka_python(data)


@pytest.mark.parametrize("committed", [True, False])
def test_kafka_python_reads_a_marker(committed):
    (theirs,) = MemoryRecords(marker(5, 3, committed=committed, at_ms=77))
    assert (theirs.validate_crc(), theirs.is_control_batch, theirs.is_transactional) == (True, True, True)
    (record,) = theirs
    assert (theirs.producer_id, theirs.producer_epoch, theirs.base_sequence) == (5, 3, -1)
    assert (record.timestamp, record.commit, record.abort) == (77, committed, not committed)


def test_records_of_listed_transactions_are_left_out_up_to_their_markers():
    log = Log()
    first, second = {"producer": (5, 0, 0)}, {"producer": (6, 0, 0)}
    for written in (
        batch(b"5 aborted", transactional=True, **first),
        batch(b"6 committed", transactional=True, **second),
        batch(b"5 plain", **first),
        marker(6, 0, committed=True, at_ms=0),
        marker(5, 0, committed=False, at_ms=0),
        batch(b"5 committed", transactional=True, **first),
        batch(b"6 aborted", transactional=True, **second),
        marker(6, 0, committed=False, at_ms=0),
    ):
        log.add(written)
    records, next_offset = records_of(log.data, [Aborted(6, 6), Aborted(5, 0)])
    assert [each.value for each in records] == [b"6 committed", b"5 plain", b"5 committed"]
    assert next_offset == 8


def test_a_marker_without_a_type_is_an_error():
    data = with_attributes(numbered(1, producer=(5, 0, 0)), CONTROL)
    with pytest.raises(ProtocolError, match="a marker of a transaction without a type"):
        records_of(data, [Aborted(5, 0)])


def test_compacted_offsets_are_skipped():
    data = changed(numbered(2), LAST_DELTA, 6)
    records, next_offset = records_of(data)
    assert ([each.offset for each in records], next_offset) == ([0, 1], 7)


@given(st.integers(0, 200))
def test_an_incomplete_batch_at_the_end_is_left_out(kept):
    first, second = one(numbered(2)), one(numbered(9))
    torn = at_offset(second, 2)[: min(kept, len(second.data) - 1)]
    assert records_of(first.data + torn) == records_of(first.data)


def test_no_bytes_have_no_next_offset():
    assert records_of(b"") == ([], -1)
    assert records_of(numbered(3)[:-1]) == ([], -1)


@pytest.mark.parametrize("value", [b"v", b"v" * 100])
@pytest.mark.parametrize("magic", [0, 1])
def test_records_of_old_formats_are_refused(magic, value):
    builder = MemoryRecordsBuilder(magic=magic, compression_type=NO_COMPRESSION, batch_size=1_000)
    builder.append(AT_MS, None, value)
    builder.close()
    with pytest.raises(ProtocolError, match="record batch"):
        records_of(bytes(builder.buffer()))


@pytest.mark.parametrize(
    ("data", "problem"),
    [
        (with_attributes(numbered(2), 7), "KeyError"),
        (with_attributes(numbered(2), LZ4), "record batch"),
        (changed(numbered(2), COUNT, 3), "record batch"),
        (numbered(2)[:20] + b"!" + numbered(2)[21:], "checksum"),
        (numbered(2)[:8] + b"\xff" * 4 + numbered(2)[12:], "record batch"),
    ],
    ids=["unknown compression", "not what it says", "too many records", "damaged", "negative length"],
)
def test_unreadable_batches_are_an_error(data, problem):
    with pytest.raises(ProtocolError, match=problem):
        records_of(data)


@given(st.binary(max_size=80))
def test_unreadable_records_are_an_error(payload):
    head = batch(b"v")[:HEADER_BYTES]
    made = head[:8] + (HEADER_BYTES - 12 + len(payload)).to_bytes(4, "big") + head[12:] + payload
    data = changed(made, COUNT, 2)
    try:
        records, _ = records_of(data)
    except ProtocolError:
        return
    assert len(records) == 2
