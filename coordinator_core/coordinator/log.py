"""The log of the offsets topic: its interface, and a log in memory."""

from collections.abc import Sequence
from typing import Protocol

from coordinator_core.coordinator.records import Record, compact, decode_records, encode_record
from coordinator_core.protocol.error_codes import ErrorCode


class Log(Protocol):
    """The partitions of the offsets topic."""

    def append(self, partition: int, records: Sequence[Record]) -> ErrorCode:
        """Write all records (NONE) or no record (any other error)."""

    def read(self, partition: int) -> Sequence[Record]:
        """Return all records in order, without a torn last one."""


class MemoryLog:
    """A log in memory, with the bytes that a durable log would have."""

    def __init__(self) -> None:
        self._data: dict[int, bytearray] = {}

    def append(self, partition: int, records: Sequence[Record]) -> ErrorCode:
        """Write the records; never fails."""
        data = self._data.setdefault(partition, bytearray())
        for record in records:
            data += encode_record(record)
        return ErrorCode.NONE

    def read(self, partition: int) -> Sequence[Record]:
        """Return all records of the partition."""
        return decode_records(bytes(self._data.get(partition, b"")))

    def compact(self, partition: int) -> None:
        """Keep only the newest record of each key."""
        kept = bytearray()
        for record in compact(self.read(partition)):
            kept += encode_record(record)
        self._data[partition] = kept

    def size(self, partition: int) -> int:
        """Return the size of the partition in bytes."""
        return len(self._data.get(partition, b""))

    def truncate(self, partition: int, size: int) -> None:
        """Keep the first ``size`` bytes, as after a crash in the middle of a write."""
        del self._data.get(partition, bytearray())[size:]
