"""Record batches of message format 2 (KIP-98).

The broker keeps batches as it receives them and rewrites base offset and leader epoch only. The checksum
covers neither, so that records need not be read.
"""

import struct
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple, TypeAlias

import cramjam
from crc32c import crc32c
from kio.serial.readers import read_signed_varint, read_signed_varlong

from coordinator_core.errors import ProtocolError
from coordinator_core.protocol.messages import FetchedRecord

_HEADER = struct.Struct(">qiibIhiqqqhii")
_SIZED = 12  # offset and length, the same in every format; the length counts what follows it
_CHECKSUM, _CHECKED_FROM = slice(17, 21), 21
_ATTRIBUTES, _MAX_TIME = 5, 8
"""Places among the fields of the header."""
_COMPRESSION, _LOG_APPEND_TIME, _TRANSACTIONAL, _CONTROL = 0x07, 0x08, 0x10, 0x20
"""Bits of the attributes."""
_LEAST_RECORD_BYTES = 7
MAGIC = 2

MOST_SEARCHED_BYTES = 8 * 1024 * 1024
"""Uncompressed records of a batch that is searched for a time: decompressing them takes about 20 ms."""


class Batch(NamedTuple):
    """One record batch.

    ``last_delta`` is the offset of the last record relative to the first. ``producer_id`` is -1 without an
    idempotent producer.
    """

    data: bytes
    base_offset: int
    last_delta: int
    base_timestamp_ms: int
    max_timestamp_ms: int
    producer_id: int
    producer_epoch: int
    base_sequence: int
    records: int
    attributes: int

    @property
    def last_offset(self) -> int:
        """Return the offset of the last record."""
        return self.base_offset + self.last_delta

    @property
    def is_transactional(self) -> bool:
        """Return whether the batch belongs to a transaction."""
        return bool(self.attributes & _TRANSACTIONAL)

    @property
    def is_control(self) -> bool:
        """Return whether the batch is the marker that ends a transaction."""
        return bool(self.attributes & _CONTROL)


def batches_of(data: bytes) -> Iterator[Batch]:
    """Yield the batches of a Produce request's records.

    Raises:
        ProtocolError: if a batch is incomplete or damaged, or has another format.
    """
    at = 0
    while at < len(data):
        batch = _batch_at(data, at)
        yield batch
        at += len(batch.data)


def _batch_at(data: bytes, at: int) -> Batch:
    if at + _HEADER.size > len(data):
        raise ProtocolError("record batch", f"{len(data) - at} bytes, expected {_HEADER.size} or more")
    (
        base_offset,
        length,
        _,
        magic,
        checksum,
        attributes,
        last_delta,
        base_ms,
        max_ms,
        producer_id,
        epoch,
        sequence,
        count,
    ) = _HEADER.unpack_from(data, at)
    size = length + _SIZED
    if magic != MAGIC:
        raise ProtocolError("record batch", f"format {magic}, expected {MAGIC}")
    if size < _HEADER.size or at + size > len(data):
        raise ProtocolError("record batch", f"{size} bytes long, but only {len(data) - at} bytes are left")
    own = data[at : at + size]
    if crc32c(memoryview(own)[_CHECKED_FROM:]) != checksum:
        raise ProtocolError("record batch", "its checksum does not match")
    return Batch(
        own, base_offset, last_delta, base_ms, max_ms, producer_id, epoch, sequence, count, attributes
    )


def miscounted(batch: Batch) -> str | None:
    """Return what is wrong with the counts of a producer's batch, in which no record may be missing."""
    count, size = batch.records, len(batch.data) - _HEADER.size
    if count < 1 or batch.last_delta != count - 1:
        return f"{count} records whose last offset is its first + {batch.last_delta}"
    if not batch.attributes & _COMPRESSION and count > size // _LEAST_RECORD_BYTES:
        return f"{count} records in {size} bytes"
    return None


def at_offset(batch: Batch, offset: int) -> bytes:
    """Return the bytes of the batch, with another base offset and leader epoch 0."""
    return offset.to_bytes(8, "big") + batch.data[8:12] + b"\0\0\0\0" + batch.data[16:]


def appended_at(batch: Batch, at_ms: int) -> Batch:
    """Return the batch with one time for all its records, that at which it is appended (KIP-32)."""
    header = list(_HEADER.unpack_from(batch.data))
    header[_ATTRIBUTES], header[_MAX_TIME] = batch.attributes | _LOG_APPEND_TIME, at_ms
    return _batch_at(_with_checksum(_HEADER.pack(*header) + batch.data[_HEADER.size :]), 0)


# --- transactions


class Aborted(NamedTuple):
    """An aborted transaction of a partition: its producer, and the offset of its first record."""

    producer_id: int
    first_offset: int


_ABORT, _COMMIT = 0, 1
_MARKER_KEY, _MARKER_VALUE = struct.Struct(">hh"), struct.Struct(">hi")
"""Version and type of the marker; version, and epoch of the coordinator."""


def marker(producer_id: int, epoch: int, *, committed: bool, at_ms: int) -> bytes:
    """Return the batch that ends a transaction of a producer on a partition, COMMIT or ABORT (KIP-98)."""
    key = _MARKER_KEY.pack(0, _COMMIT if committed else _ABORT)
    value = _MARKER_VALUE.pack(0, 0)
    # attributes, time, offset; then key and value with their lengths as varints, and no headers
    record = b"\0\0\0" + bytes((2 * len(key),)) + key + bytes((2 * len(value),)) + value + b"\0"
    payload = bytes((2 * len(record),)) + record
    length, attributes = _HEADER.size - _SIZED + len(payload), _TRANSACTIONAL | _CONTROL
    header = (0, length, 0, MAGIC, 0, attributes, 0, at_ms, at_ms, producer_id, epoch, -1, 1)
    return _with_checksum(_HEADER.pack(*header) + payload)


def _is_commit(control: Batch) -> bool:
    """Return whether a marker commits a transaction.

    Raises:
        ProtocolError: if the marker cannot be read.
    """
    (record,) = _records(control)
    if record.key is None or len(record.key) < _MARKER_KEY.size:
        raise ProtocolError("record batch", "a marker of a transaction without a type")
    _, kind = _MARKER_KEY.unpack_from(record.key)
    return bool(kind == _COMMIT)


def _with_checksum(batch: bytes) -> bytes:
    checksum = crc32c(memoryview(batch)[_CHECKED_FROM:]).to_bytes(4, "big")
    return batch[: _CHECKSUM.start] + checksum + batch[_CHECKSUM.stop :]


# --- records, for consumers


_XERIAL = b"\x82SNAPPY\x00"
_XERIAL_HEADER = 16


def records_of(data: bytes, aborted: Sequence[Aborted] = ()) -> tuple[list[FetchedRecord], int]:
    """Return all records, and the offset after the last batch (-1 without a batch).

    The first batch may begin before the requested offset, as batches are not split. An incomplete batch at
    the end, which brokers send, is left out, and so are the markers of transactions, and the records of the
    transactions that the response lists as ``aborted``.

    Raises:
        ProtocolError: if a batch or a record cannot be read.
    """
    records: list[FetchedRecord] = []
    to_come = deque(sorted(aborted, key=lambda transaction: transaction.first_offset))
    aborting: set[int] = set()
    at, next_offset = 0, -1
    while at + _SIZED <= len(data):
        if at + _SIZED + int.from_bytes(data[at + 8 : at + 12], "big", signed=True) > len(data):
            break
        batch = _batch_at(data, at)
        while to_come and to_come[0].first_offset <= batch.last_offset:
            aborting.add(to_come.popleft().producer_id)
        if batch.is_control:
            if batch.producer_id in aborting and not _is_commit(batch):
                aborting.remove(batch.producer_id)
        elif not (batch.is_transactional and batch.producer_id in aborting):
            records += _records(batch)
        next_offset = batch.last_offset + 1
        at += len(batch.data)
    return records, next_offset


def record_since(data: bytes, timestamp_ms: int) -> tuple[int, int] | None:
    """Return offset and time of the first record of a batch with this time or a later one.

    Return None if there is no such record, or the batch cannot be read or has more than `MOST_SEARCHED_BYTES`
    of records: a few compressed bytes may expand to gigabytes.
    """
    batch = _batch_at(data, 0)
    try:
        times = _times(batch, _payload(batch, MOST_SEARCHED_BYTES))
        return next(((offset, time_ms) for offset, time_ms in times if time_ms >= timestamp_ms), None)
    except ProtocolError:
        return None


def _times(batch: Batch, records: bytes) -> Iterator[tuple[int, int]]:
    """Yield offset and time of each record, without reading the rest of it."""
    at = 0
    by_broker = batch.attributes & _LOG_APPEND_TIME
    try:
        for _ in range(batch.records):
            length, size = read_signed_varint(records, at)
            at += size
            if not 0 <= length <= len(records) - at:
                raise ValueError(f"a record of {length} bytes, but only {len(records) - at} bytes are left")
            delta_ms, size = read_signed_varlong(records, at + 1)
            delta, _ = read_signed_varint(records, at + 1 + size)
            at += length
            time_ms = batch.max_timestamp_ms if by_broker else batch.base_timestamp_ms + delta_ms
            yield batch.base_offset + delta, time_ms
    except Exception as error:  # kio raises errors of many kinds
        raise ProtocolError("record batch", f"{type(error).__name__}: {error}") from None


def _records(batch: Batch) -> Iterator[FetchedRecord]:
    payload = _payload(batch)
    try:
        at = 0
        for _ in range(batch.records):
            record, at = _record_at(payload, at, batch)
            yield record
    except Exception as error:  # the codecs and kio raise errors of many kinds
        raise ProtocolError("record batch", f"{type(error).__name__}: {error}") from None


def _payload(batch: Batch, most: int | None = None) -> bytes:
    """Return the records of a batch, uncompressed.

    Raises:
        ProtocolError: if they cannot be read, or have more than ``most`` bytes.
    """
    payload = batch.data[_HEADER.size :]
    codec = batch.attributes & _COMPRESSION
    if not codec:
        return payload
    try:
        return _CODECS[codec](payload, most)
    except Exception as error:  # the codecs raise errors of many kinds
        raise ProtocolError("record batch", f"{type(error).__name__}: {error}") from None


def _record_at(data: bytes, at: int, batch: Batch) -> tuple[FetchedRecord, int]:
    length, size = read_signed_varint(data, at)
    at += size
    end = at + length
    at += 1  # the attributes, which are unused
    delta_ms, size = read_signed_varlong(data, at)
    at += size
    delta, size = read_signed_varint(data, at)
    at += size
    key, at = _bytes_at(data, at)
    value, at = _bytes_at(data, at)
    count, size = read_signed_varint(data, at)
    at += size
    headers = []
    for _ in range(count):
        name, at = _bytes_at(data, at)
        content, at = _bytes_at(data, at)
        headers.append(((name or b"").decode(), content))
    if at != end:
        raise ValueError(f"a record of {length} bytes ends {at - end} bytes off")
    by_broker = batch.attributes & _LOG_APPEND_TIME  # one time for all records (KIP-32)
    timestamp_ms = batch.max_timestamp_ms if by_broker else batch.base_timestamp_ms + delta_ms
    return FetchedRecord(batch.base_offset + delta, value, key, timestamp_ms, tuple(headers)), at


def _bytes_at(data: bytes, at: int) -> tuple[bytes | None, int]:
    length, size = read_signed_varint(data, at)
    at += size
    if length < 0:
        return None, at
    if at + length > len(data):
        raise ValueError(f"a field of {length} bytes, but only {len(data) - at} bytes are left")
    return data[at : at + length], at + length


_Decompress: TypeAlias = Callable[[bytes, int | None], bytes]
"""Returns the decompressed bytes. The second argument is the most that there may be, None for no limit."""


def _snappy(data: bytes, most: int | None) -> bytes:
    """Decompress blocks in the frame of Java's library, or one block (KAFKA-1456)."""
    if not data.startswith(_XERIAL):
        return _snappy_block(data, most)
    pieces, at = [], _XERIAL_HEADER
    while at < len(data):
        size = int.from_bytes(data[at : at + 4], "big")
        pieces.append(_snappy_block(data[at + 4 : at + 4 + size], most))
        if most is not None:
            most -= len(pieces[-1])
        at += 4 + size
    return b"".join(pieces)


def _snappy_block(block: bytes, most: int | None) -> bytes:
    size = cramjam.snappy.decompress_raw_len(block)
    if most is not None and size > most:
        raise ValueError(f"{size:,} bytes, expected {most:,} at most")
    return bytes(cramjam.snappy.decompress_raw(block))


def _by(codec: Any) -> _Decompress:
    def decompress(data: bytes, most: int | None) -> bytes:
        if most is None:
            return bytes(codec.decompress(data))
        buffer = bytearray(most)
        return bytes(memoryview(buffer)[: codec.decompress_into(data, buffer)])

    return decompress


_CODECS: Mapping[int, _Decompress] = {
    1: _by(cramjam.gzip),
    2: _snappy,
    3: _by(cramjam.lz4),
    4: _by(cramjam.zstd),
}
