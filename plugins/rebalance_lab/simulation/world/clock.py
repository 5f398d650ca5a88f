"""Virtual time: a heap of actions and their times. Nothing happens between two entries."""

from collections.abc import Callable
from heapq import heappop, heappush
from typing import Any, TypeAlias

Action: TypeAlias = Callable[[], None]


class VirtualClock:
    """Runs actions in the order of their times (C-84).

    Actions of equal times run in the order of their ranks, and those of equal ranks in the order of entry.
    Actions with a rank are those of a place, like a connection: their order does not depend on what happens
    at other places, nor on when they were put in.

    An action is a cause if something may change by it. Others, like the arrival of a heartbeat, keep a group
    at rest as it is.
    """

    __slots__ = ("_before_next", "_causes", "_first", "_heap", "_order", "now_ms")

    def __init__(self) -> None:
        self.now_ms = 0
        self._heap: list[tuple[int, int, int, Callable[..., None], tuple[Any, ...]]] = []
        self._causes: list[int] = []
        self._order = self._first = 0
        self._before_next: Action | None = None

    def at_first(self, at_ms: int, action: Action) -> None:
        """Run an action at a time, before all actions of that time that `at` has put in."""
        self._first += 1
        at_ms = max(at_ms, self.now_ms)
        heappush(self._heap, (at_ms, -1, self._first, action, ()))
        heappush(self._causes, at_ms)

    def at(
        self, at_ms: int, action: Callable[..., None], *arguments: Any, rank: int = 0, is_cause: bool = True
    ) -> None:
        """Run an action with its arguments at a time. A time that has passed means now."""
        self.put(at_ms, action, arguments, rank, is_cause)

    def put(
        self, at_ms: int, action: Callable[..., None], arguments: tuple[Any, ...], rank: int, is_cause: bool
    ) -> None:
        """Run an action as `at` does, for frequent actions. Ranks are 0 or more."""
        self._order += 1
        if at_ms < self.now_ms:
            at_ms = self.now_ms
        heappush(self._heap, (at_ms, rank, self._order, action, arguments))
        if is_cause:
            heappush(self._causes, at_ms)

    def after(self, delay_ms: int, action: Action) -> None:
        """Run an action after a delay."""
        self.at(self.now_ms + delay_ms, action)

    def before_next(self, action: Action) -> None:
        """Run an action before time goes on. Of several, only the last one runs."""
        self._before_next = action

    def next_ms(self) -> int | None:
        """Return the time of the next action, or None."""
        return self._heap[0][0] if self._heap else None

    def next_cause_ms(self) -> int | None:
        """Return a time, from now on, before which there is no cause; None if there is none at all."""
        causes = self._causes
        while causes and causes[0] < self.now_ms:
            heappop(causes)
        return causes[0] if causes else None

    def run(self, until_ms: int) -> None:
        """Run all actions up to and including a time, and advance to it."""
        heap = self._heap
        while heap and (at_ms := heap[0][0]) <= until_ms:
            if at_ms > self.now_ms:
                if self._before_next is not None:
                    self._end_moment()
                self.now_ms = at_ms
            _, _, _, action, arguments = heappop(heap)
            action(*arguments)
        if until_ms > self.now_ms:
            self._end_moment()
        self.now_ms = until_ms

    def _end_moment(self) -> None:
        action, self._before_next = self._before_next, None
        if action is not None:
            action()

    def step(self) -> None:
        """Advance to the next entry and run its action."""
        at_ms, _, _, action, arguments = heappop(self._heap)
        self.now_ms = at_ms
        action(*arguments)


class Alarm:
    """A deadline that moves often. It is no cause.

    Entries on the clock stay when the deadline moves. One that comes up before the deadline is put in again,
    unless another one comes up in time. Thus a deadline that moves to and fro has few entries.

    ``due_ms`` is the time of the alarm, None if it is stopped or has rung. To set it to that changes nothing.
    """

    __slots__ = ("_clock", "_entries", "_rank", "_ring", "due_ms")

    def __init__(self, clock: VirtualClock, ring: Action, rank: int = 0) -> None:
        self._clock, self._ring, self._rank = clock, ring, rank
        self.due_ms: int | None = None
        self._entries: list[int] = []
        """The times of its entries on the clock, the next one last."""

    def set(self, due_ms: int | None) -> None:
        """Set the time of the alarm. None stops it."""
        self.due_ms = due_ms
        if due_ms is None:
            return
        entries, clock = self._entries, self._clock
        if entries and entries[-1] <= due_ms:
            return
        at_ms = max(due_ms, clock.now_ms)
        if not entries or at_ms < entries[-1]:
            entries.append(at_ms)
            clock.put(at_ms, self._came_up, (), self._rank, False)

    def _came_up(self) -> None:
        self._entries.pop()
        due_ms = self.due_ms
        if due_ms is None:
            return
        if due_ms <= self._clock.now_ms:
            self.due_ms = None
            self._ring()
        else:
            self.set(due_ms)
