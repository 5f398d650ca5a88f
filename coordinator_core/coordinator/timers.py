"""Deadlines as data: a heap, and the time of the next one."""

import heapq
from collections.abc import Container
from typing import NamedTuple

SLACK = 1_000
"""How many useless entries the heap may have before it is tidied."""


RETENTION = 100
"""The kind of timer that checks whether offsets have expired. Families number their kinds below it:
deadlines of one moment fire in the order of their kinds."""


class TimerKey(NamedTuple):
    """The name of a timer, which has at most one deadline. Keys sort by kind, group, member."""

    kind: int
    group_id: str
    member_id: str = ""


class Timers:
    """The deadlines by key. Moving a deadline later is O(1): its heap entry moves when it comes up."""

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
        """Drop the entries of deadlines that were cancelled or moved."""
        self._queued = dict(self._deadlines)
        self._heap = [(at_ms, key) for key, at_ms in self._deadlines.items()]
        heapq.heapify(self._heap)

    def cancel(self, key: TimerKey) -> None:
        """Cancel the deadline of a key, if it has one."""
        self._deadlines.pop(key, None)

    def cancel_group(self, group_id: str) -> None:
        """Cancel every deadline of a group."""
        for key in [k for k in self._deadlines if k.group_id == group_id]:
            del self._deadlines[key]

    def next_ms(self) -> int | None:
        """Return the earliest deadline, or None."""
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

    def next_of_others_ms(self, members: Container[str]) -> int | None:
        """Return the earliest deadline besides those of some members and of RETENTION, or None."""
        deadlines = self._deadlines.items()
        return min(
            (at for key, at in deadlines if key.kind != RETENTION and key.member_id not in members),
            default=None,
        )

    def pop_due(self, now_ms: int) -> TimerKey | None:
        """Remove the first deadline that has passed, and return its key; None if there is none."""
        at_ms = self.next_ms()
        if at_ms is None or at_ms > now_ms:
            return None
        _, key = heapq.heappop(self._heap)
        del self._deadlines[key]
        del self._queued[key]
        return key
