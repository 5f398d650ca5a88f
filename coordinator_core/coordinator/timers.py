"""Deadlines as data: a heap of them, and the time of the next."""

import heapq
from enum import IntEnum
from typing import NamedTuple

SLACK = 1_000
"""Entries of the heap that may be of no use before it is tidied."""


class TimerKind(IntEnum):
    """What a deadline is for; deadlines of one moment fire in this order."""

    PENDING_MEMBER = 0
    SESSION = 1
    JOIN = 2
    SYNC = 3
    RETENTION = 4


class TimerKey(NamedTuple):
    """Names one timer; there is at most one deadline per key. Sorts by kind, group, member."""

    kind: TimerKind
    group_id: str
    member_id: str = ""


class Timers:
    """One deadline per key. Moving a deadline later is O(1): its heap entry is moved when it comes up."""

    __slots__ = ("_deadlines", "_heap", "_queued")

    def __init__(self) -> None:
        self._deadlines: dict[TimerKey, int] = {}
        self._queued: dict[TimerKey, int] = {}
        self._heap: list[tuple[int, TimerKey]] = []

    def schedule(self, key: TimerKey, at_ms: int) -> None:
        """Set or move the deadline of a key."""
        self._deadlines[key] = at_ms
        queued = self._queued.get(key)
        if queued is None or at_ms < queued:
            self._queued[key] = at_ms
            heapq.heappush(self._heap, (at_ms, key))
            if len(self._heap) > 2 * len(self._deadlines) + SLACK:
                self._tidy()

    def _tidy(self) -> None:
        """Leave out entries of deadlines that were cancelled or moved forward."""
        self._queued = dict(self._deadlines)
        self._heap = [(at_ms, key) for key, at_ms in self._deadlines.items()]
        heapq.heapify(self._heap)

    def cancel(self, key: TimerKey) -> None:
        """Forget the deadline of a key, if it has one."""
        self._deadlines.pop(key, None)

    def cancel_group(self, group_id: str) -> None:
        """Forget every deadline of a group."""
        for key in [k for k in self._deadlines if k.group_id == group_id]:
            del self._deadlines[key]

    def next_ms(self) -> int | None:
        """The earliest deadline, or None."""
        heap = self._heap
        while heap:
            at_ms, key = heap[0]
            if self._queued.get(key) != at_ms:
                heapq.heappop(heap)
                continue
            wanted = self._deadlines.get(key)
            if wanted == at_ms:
                return at_ms
            if wanted is None:
                heapq.heappop(heap)
                del self._queued[key]
            else:
                self._queued[key] = wanted
                heapq.heapreplace(heap, (wanted, key))
        return None

    def pop_due(self, now_ms: int) -> TimerKey | None:
        """Take out the first deadline that has passed."""
        at_ms = self.next_ms()
        if at_ms is None or at_ms > now_ms:
            return None
        _, key = heapq.heappop(self._heap)
        del self._deadlines[key]
        del self._queued[key]
        return key
