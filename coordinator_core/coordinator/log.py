"""Where records are kept: an interface, and the one in memory."""

from collections.abc import Sequence
from typing import Protocol

from coordinator_core.coordinator.records import Record, compact, decode_records, encode_record
from coordinator_core.protocol.error_codes import ErrorCode


class Log(Protocol):
    """The partitions of the offsets topic."""

    def append(self, partition: int, records: Sequence[Record]) -> ErrorCode:
        """Write all records or none; anything but NONE says that none was written."""
        ...

    def read(self, partition: int) -> Sequence[Record]:
        """Everything written, in order; a torn last record is left out."""
        ...


class MemoryLog:
    """A log in memory, in the bytes a durable one would have."""

    def __init__(self) -> None:
        self._data: dict[int, bytearray] = {}

    def append(self, partition: int, records: Sequence[Record]) -> ErrorCode:
        """Always succeeds."""
        data = self._data.setdefault(partition, bytearray())
        for record in records:
            data += encode_record(record)
        return ErrorCode.NONE

    def read(self, partition: int) -> Sequence[Record]:
        """Everything written to the partition."""
        return decode_records(bytes(self._data.get(partition, b"")))

    def compact(self, partition: int) -> None:
        """Keep only the newest record of each key."""
        kept = bytearray()
        for record in compact(self.read(partition)):
            kept += encode_record(record)
        self._data[partition] = kept

    def size(self, partition: int) -> int:
        """Bytes written to the partition."""
        return len(self._data.get(partition, b""))

    def truncate(self, partition: int, size: int) -> None:
        """Keep the first ``size`` bytes, as a crash in the middle of a write would."""
        del self._data.get(partition, bytearray())[size:]
