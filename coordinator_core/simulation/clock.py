"""Virtual time: a heap of what happens when. Nothing happens between two entries."""

from collections.abc import Callable
from heapq import heappop, heappush
from typing import TypeAlias

Action: TypeAlias = Callable[[], None]

_BEFORE_ALL = 2**62


class VirtualClock:
    """Runs actions in the order of their times; of equal times, in the order they were put in (C-84)."""

    __slots__ = ("_first", "_heap", "_order", "now_ms")

    def __init__(self) -> None:
        self.now_ms = 0
        self._heap: list[tuple[int, int, Action]] = []
        self._order = self._first = 0

    def at_first(self, at_ms: int, action: Action) -> None:
        """Do this at that time, before anything else that happens then and was not put in this way."""
        self._first += 1
        heappush(self._heap, (max(at_ms, self.now_ms), self._first - _BEFORE_ALL, action))

    def at(self, at_ms: int, action: Action) -> None:
        """Do this at that time; a time that has passed means now."""
        self._order += 1
        heappush(self._heap, (max(at_ms, self.now_ms), self._order, action))

    def after(self, delay_ms: int, action: Action) -> None:
        """Do this so much later."""
        self.at(self.now_ms + delay_ms, action)

    def next_ms(self) -> int | None:
        """When something happens next; None when nothing will."""
        return self._heap[0][0] if self._heap else None

    def step(self) -> None:
        """Advance to the next entry and carry it out."""
        at_ms, _, action = heappop(self._heap)
        self.now_ms = at_ms
        action()


class Alarm:
    """One deadline that moves often: rings no earlier than asked, and asks where it is when it rings.

    A deadline that moved back is found out when the old entry comes up, so that each move does not leave
    an entry behind on the clock.
    """

    __slots__ = ("_clock", "_due_ms", "_ring", "_set_ms")

    def __init__(self, clock: VirtualClock, ring: Action) -> None:
        self._clock, self._ring = clock, ring
        self._due_ms: int | None = None
        self._set_ms: int | None = None

    def set(self, due_ms: int | None) -> None:
        """Ring at that time; None: do not ring."""
        self._due_ms = due_ms
        if due_ms is not None and (self._set_ms is None or due_ms < self._set_ms):
            self._set_ms = max(due_ms, self._clock.now_ms)
            set_ms = self._set_ms
            self._clock.at(set_ms, lambda: self._came_up(set_ms))

    def _came_up(self, set_ms: int) -> None:
        if set_ms != self._set_ms:
            return
        self._set_ms = None
        if self._due_ms is None:
            return
        if self._due_ms <= self._clock.now_ms:
            self._due_ms = None
            self._ring()
        else:
            self.set(self._due_ms)
