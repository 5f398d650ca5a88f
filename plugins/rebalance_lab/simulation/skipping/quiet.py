"""Spans of time in which nothing but periodic messages happens.

The span ends at the next cause: an action on the clock that may change something, a deadline of a coordinator
or of servers that passes, a message that is lost or delivered twice, rates that rise above what a member
handles, or the end of the run. Until then each process leaves out periodic messages (`rest`). Traces are
those of a run with every message.
"""

from collections.abc import Callable, Iterable
from typing import Protocol, TypeAlias

from coordinator_core.model import TopicPartition
from rebalance_lab.simulation.world.brokers import Brokers
from rebalance_lab.simulation.world.clock import VirtualClock
from rebalance_lab.simulation.world.network import Network

LOOK_MS = 50
"""The time from a look that finds a cause too near, or a process that is not at rest, to the next one."""

SHORTEST_MS = 500
"""The shortest span in which messages are left out, besides the time of messages under way."""

LAST = 2**62
"""The rank on the clock of a look after a cause."""

LONGEST_MS = 24 * 3_600_000
"""The longest span. It is far below the retention time of offsets."""

Overload: TypeAlias = Callable[[Iterable[TopicPartition], float], int]
"""Returns when the records/s of partitions next rise above a number of records/s."""


class Resting(Protocol):
    """A process, as the search for quiet spans sees it."""

    @property
    def member_id(self) -> str:
        """The member id of the client, "" if it has none."""

    @property
    def alive_ms(self) -> int:
        """The time by which the coordinator receives the next sign of life of a client that is quiet."""

    def is_quiet(self) -> bool:
        """Return whether the process sends nothing but periodic messages, as long as nothing happens."""

    def next_cause_ms(self, until_ms: int, overload_ms: Overload) -> int:
        """Return a time before which it causes no change: no message is lost, no poll comes too late.

        ``overload_ms``: see `Overload`.
        """

    def leave_out(self, until_ms: int) -> None:
        """Leave out periodic messages before a cause, unless one of them is under way."""


class Quiet:
    """Finds quiet spans when a process has nothing to do, and lets processes leave out messages in them.

    ``processes`` returns all processes. ``at_rest`` has the states of a group at rest. ``overload_ms``
    is passed on to them, ``end_ms`` is the end of the run.
    """

    def __init__(
        self,
        clock: VirtualClock,
        network: Network,
        brokers: Brokers,
        processes: Callable[[], Iterable[Resting]],
        at_rest: frozenset[str],
        overload_ms: Overload,
        end_ms: int,
    ) -> None:
        self._clock, self._network, self._brokers = clock, network, brokers
        self._processes, self._at_rest = processes, at_rest
        self._overload_ms, self._end_ms = overload_ms, end_ms
        self._until_ms = self._look_ms = 0
        self._obstacle: Resting | None = None
        """The process that was not quiet at the last look."""

    def look(self, process: Resting) -> None:
        """Let processes leave out messages, if nothing happens for a while."""
        now_ms = self._clock.now_ms
        if now_ms < self._until_ms:
            process.leave_out(self._until_ms)
        elif now_ms >= self._look_ms:
            self._search(now_ms)

    def _search(self, now_ms: int) -> None:
        """Find the next cause. If it is far away, let all processes leave out messages."""
        self._look_ms = now_ms + LOOK_MS
        soon_ms = now_ms + self._network.margin_ms + SHORTEST_MS
        cause_ms = self._clock.next_cause_ms()
        until_ms = min(self._end_ms, now_ms + LONGEST_MS)
        if cause_ms is not None:
            until_ms = min(until_ms, cause_ms)
        if until_ms <= soon_ms or not self._brokers.is_at_rest(self._at_rest):
            return
        troubles = self._network.troubles
        if self._brokers.has_trouble or not (troubles is None or troubles.are_over(now_ms)):
            return
        if self._obstacle is not None and not self._obstacle.is_quiet():
            return
        processes = list(self._processes())
        self._obstacle = next((process for process in processes if not process.is_quiet()), None)
        if self._obstacle is not None:
            return
        # A deadline of the group itself has the member id "".
        alive_ms = {p.member_id: p.alive_ms for p in processes if p.member_id}
        deadline_ms = self._brokers.next_deadline_ms(alive_ms)
        until_ms = until_ms if deadline_ms is None else min(until_ms, deadline_ms)
        until_ms = min(
            (process.next_cause_ms(until_ms, self._overload_ms) for process in processes), default=until_ms
        )
        if until_ms <= soon_ms:
            return
        self._until_ms = self._look_ms = until_ms
        self._clock.at(until_ms + 1, self._look_after, rank=LAST, is_cause=False)
        for process in processes:
            process.leave_out(until_ms)

    def _look_after(self) -> None:
        """Look again after a cause, maybe before any message."""
        if self._clock.now_ms >= self._look_ms:
            self._search(self._clock.now_ms)
