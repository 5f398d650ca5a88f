"""Deadlines as data: a heap, and the time of the next one."""

import heapq
from collections.abc import Mapping
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


class _Timer:
    """A deadline, and the time of its entry in the heap, which is not later."""

    __slots__ = ("at_ms", "key", "queued_ms")

    def __init__(self, key: TimerKey, at_ms: int) -> None:
        self.key = key
        self.at_ms = self.queued_ms = at_ms


class Timers:
    """The deadlines by key. Moving a deadline later is O(1): its heap entry moves when it comes up."""

    __slots__ = ("_heap", "_timers")

    def __init__(self) -> None:
        self._timers: dict[tuple[int, str, str], _Timer] = {}
        self._heap: list[tuple[int, TimerKey]] = []

    def schedule(self, kind: int, group_id: str, member_id: str, at_ms: int) -> None:
        """Set or move the deadline of a key."""
        timer = self._timers.get((kind, group_id, member_id))
        if timer is None:
            key = TimerKey(kind, group_id, member_id)
            timer = self._timers[key] = _Timer(key, at_ms)
        else:
            timer.at_ms = at_ms
            if timer.queued_ms <= at_ms:
                return
            timer.queued_ms = at_ms
        heapq.heappush(self._heap, (at_ms, timer.key))
        if len(self._heap) > 2 * len(self._timers) + SLACK:
            self._tidy()

    def _tidy(self) -> None:
        """Drop the entries of deadlines that were cancelled or moved."""
        for timer in self._timers.values():
            timer.queued_ms = timer.at_ms
        self._heap = [(timer.at_ms, timer.key) for timer in self._timers.values()]
        heapq.heapify(self._heap)

    def is_set(self, kind: int, group_id: str, member_id: str) -> bool:
        """Return whether a key has a deadline."""
        return (kind, group_id, member_id) in self._timers

    def cancel(self, kind: int, group_id: str, member_id: str) -> None:
        """Cancel the deadline of a key, if it has one."""
        self._timers.pop((kind, group_id, member_id), None)

    def cancel_group(self, group_id: str) -> dict[TimerKey, int]:
        """Cancel every deadline of a group. Return their times."""
        found = {t.key: t.at_ms for t in self._timers.values() if t.key.group_id == group_id}
        for key in found:
            del self._timers[key]
        return found

    def not_before_ms(self) -> int | None:
        """Return a time before which no deadline passes, or None if there is none. This is O(1)."""
        return self._heap[0][0] if self._heap else None

    def next_ms(self) -> int | None:
        """Return the earliest deadline, or None."""
        heap = self._heap
        while heap:
            at_ms, key = heap[0]
            timer = self._timers.get(key)
            if timer is None or timer.queued_ms != at_ms:
                heapq.heappop(heap)
            elif timer.at_ms == at_ms:
                return at_ms
            else:
                timer.queued_ms = timer.at_ms
                heapq.heapreplace(heap, (timer.at_ms, key))
        return None

    def next_of_others_ms(self, alive_ms: Mapping[str, int]) -> int | None:
        """Return the earliest deadline besides RETENTION and those that members move in time, or None.

        A member moves its deadlines by a sign of life, at a time of ``alive_ms`` at the latest.
        """
        return min(
            (
                timer.at_ms
                for timer in self._timers.values()
                if timer.key.kind != RETENTION
                and timer.at_ms <= alive_ms.get(timer.key.member_id, timer.at_ms)
            ),
            default=None,
        )

    def pop_due(self, now_ms: int) -> TimerKey | None:
        """Remove the first deadline that has passed, and return its key; None if there is none."""
        at_ms = self.next_ms()
        if at_ms is None or at_ms > now_ms:
            return None
        _, key = heapq.heappop(self._heap)
        del self._timers[key]
        return key
