"""The log of the offsets topic, in memory."""

from collections import defaultdict
from collections.abc import Iterable, Sequence
from itertools import chain

from coordinator_core.coordinator.records import CommittedOffsets, Record, Records, compact
from coordinator_core.protocol.error_codes import NONE, ErrorCode

COMPACT_AFTER = 200_000
"""Records between two compactions of a partition in memory, or as many as the last one kept, if more."""


class MemoryLog:
    """A log in memory. It keeps records, not their bytes."""

    def __init__(self) -> None:
        self._appended: defaultdict[int, list[Records]] = defaultdict(list)
        self._size: defaultdict[int, int] = defaultdict(int)
        self._kept: defaultdict[int, int] = defaultdict(int)

    def append(self, partition: int, records: Iterable[Record]) -> ErrorCode:
        """Write all records, and return NONE, as a log in memory never fails."""
        new = records if isinstance(records, CommittedOffsets) else tuple(records)
        self._appended[partition].append(new)
        self._size[partition] += len(new)
        if self._size[partition] > self._kept[partition] + max(self._kept[partition], COMPACT_AFTER):
            self.compact(partition)
        return NONE

    def read(self, partition: int) -> Sequence[Record]:
        """Return all records of the partition in order."""
        return list(chain.from_iterable(self._appended.get(partition, ())))

    def compact(self, partition: int) -> None:
        """Keep only the newest record of each key."""
        kept = tuple(compact(self.read(partition)))
        self._appended[partition] = [kept]
        self._size[partition] = self._kept[partition] = len(kept)
