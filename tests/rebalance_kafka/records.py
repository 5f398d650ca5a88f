"""Record batches from aiokafka's builder, which has all compressions."""

from typing import Any, NamedTuple

from aiokafka.record.default_records import DefaultRecordBatchBuilder
from crc32c import crc32c
from kio.schema.errors import ErrorCode as Wire

from rebalance_kafka.broker.topics import Begin

NO_COMPRESSION, GZIP, SNAPPY, LZ4, ZSTD = range(5)
COMPRESSIONS = (NO_COMPRESSION, GZIP, SNAPPY, LZ4, ZSTD)
AT_MS = 1_700_000_000_000
ATTRIBUTES, LAST_DELTA, COUNT = slice(21, 23), slice(23, 27), slice(57, 61)
"""Places in the header of a batch."""


BEGINS = Begin(lambda *_: Wire.none)
"""Every producer may begin a transaction on every partition."""


class Sent(NamedTuple):
    """One record to write."""

    value: bytes | None
    key: bytes | None = None
    timestamp_ms: int = AT_MS
    headers: tuple[tuple[str, bytes | None], ...] = ()


def batch(
    *records: Sent | bytes | None,
    compression: int = NO_COMPRESSION,
    producer: tuple[int, int, int] = (-1, -1, -1),
    transactional: bool = False,
) -> bytes:
    """Return a batch. ``producer``: id, epoch and first sequence."""
    producer_id, epoch, sequence = producer
    builder: Any = DefaultRecordBatchBuilder(
        magic=2,
        compression_type=compression,
        is_transactional=transactional,
        producer_id=producer_id,
        producer_epoch=epoch,
        base_sequence=sequence,
        batch_size=10_000_000,
    )
    for number, each in enumerate(records):
        record = each if isinstance(each, Sent) else Sent(each)
        headers = list(record.headers)
        builder.append(number, record.timestamp_ms, record.key, record.value, headers)
    return bytes(builder.build())


def numbered(count: int, **options: Any) -> bytes:
    """Return a batch of numbered records."""
    return batch(*(b"%d" % number for number in range(count)), **options)


def changed(data: bytes, place: slice, value: int) -> bytes:
    """Return a batch with other bytes at a place of its header, and the checksum of these."""
    made = bytearray(data)
    made[place] = value.to_bytes(place.stop - place.start, "big", signed=True)
    made[17:21] = crc32c(bytes(made[21:])).to_bytes(4, "big")
    return bytes(made)
