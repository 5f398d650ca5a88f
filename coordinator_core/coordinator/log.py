"""The log of the offsets topic: its interface, and a log in memory."""

from collections.abc import Sequence
from typing import Protocol

from coordinator_core.coordinator.records import Record, compact, decode_records, encode_record
from coordinator_core.protocol.error_codes import ErrorCode

COMPACT_AFTER = 50_000
"""Records between two compactions of a partition in memory, or as many as the last one kept, if more."""


class Log(Protocol):
    """The partitions of the offsets topic."""

    def append(self, partition: int, records: Sequence[Record]) -> ErrorCode:
        """Write all records (NONE) or no record (any other error)."""

    def read(self, partition: int) -> Sequence[Record]:
        """Return all records in order, without a torn last one."""


class MemoryLog:
    """A log in memory. It encodes records only where their bytes count."""

    def __init__(self) -> None:
        self._records: dict[int, list[Record]] = {}
        self._compact_at: dict[int, int] = {}

    def append(self, partition: int, records: Sequence[Record]) -> ErrorCode:
        """Write the records; never fails."""
        written = self._records.setdefault(partition, [])
        written += records
        if len(written) >= self._compact_at.get(partition, COMPACT_AFTER):
            self.compact(partition)
        return ErrorCode.NONE

    def read(self, partition: int) -> Sequence[Record]:
        """Return all records of the partition."""
        return list(self._records.get(partition, ()))

    def compact(self, partition: int) -> None:
        """Keep only the newest record of each key."""
        kept = self._records[partition] = compact(self.read(partition))
        self._compact_at[partition] = len(kept) + max(len(kept), COMPACT_AFTER)

    def size(self, partition: int) -> int:
        """Return the size of the partition in bytes."""
        return len(self._bytes(partition))

    def truncate(self, partition: int, size: int) -> None:
        """Keep the records in the first ``size`` bytes, as after a crash in the middle of a write."""
        self._records[partition] = decode_records(self._bytes(partition)[:size])

    def _bytes(self, partition: int) -> bytes:
        return b"".join(map(encode_record, self._records.get(partition, ())))
