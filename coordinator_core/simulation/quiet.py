"""Spans of time in which nothing but periodic messages happens.

The span ends at the next cause: an action on the clock that may change something, a deadline of the
coordinator that passes, a message that is lost or delivered twice, rates that rise above what a member
handles, or the end of the run. Until then each process leaves out periodic messages (`rest`). Traces are
those of a run with every message.
"""

from collections.abc import Callable, Iterable
from typing import Protocol, TypeAlias

from coordinator_core.coordinator.shard import Group
from coordinator_core.model import TopicPartition
from coordinator_core.simulation.brokers import Brokers
from coordinator_core.simulation.clock import VirtualClock
from coordinator_core.simulation.network import Network
from coordinator_core.simulation.rest import LATENCIES

LOOK_MS = 500
"""The time from a look that finds a cause too near, or a process that is not at rest, to the next one."""

LONGEST_MS = 24 * 3_600_000
"""The longest span. It is far below the retention time of offsets."""

Overload: TypeAlias = Callable[[Iterable[TopicPartition], float], int]
"""Returns when the records/s of partitions next rise above a number of records/s."""


class Resting(Protocol):
    """A process, as the search for quiet spans sees it."""

    @property
    def member_id(self) -> str:
        """The member id of the client, "" if it has none."""
        ...

    def is_quiet(self, group: Group) -> bool:
        """Return whether the process sends nothing but periodic messages, as long as nothing happens."""
        ...

    def next_cause_ms(self, until_ms: int, overload_ms: Overload) -> int:
        """Return a time before which it causes no change: no message is lost, no poll comes too late.

        ``overload_ms``: see `Overload`.
        """
        ...

    def leave_out(self, until_ms: int) -> None:
        """Leave out periodic messages before a cause, unless one of them is under way."""
        ...


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

    def look(self, process: Resting) -> None:
        """Let a process leave out messages, if nothing happens for a while."""
        now_ms = self._clock.now_ms
        if now_ms >= self._look_ms:
            self._until_ms = self._next_cause_ms(now_ms)
            self._look_ms = max(self._until_ms, now_ms + LOOK_MS)
        if now_ms < self._until_ms:
            process.leave_out(self._until_ms)

    def _next_cause_ms(self, now_ms: int) -> int:
        """Return the time of the next cause, or now if it is near or if not all processes are at rest."""
        soon_ms = now_ms + LATENCIES * self._network.most_latency_ms + LOOK_MS
        until_ms = min(self._end_ms, now_ms + LONGEST_MS, self._clock.next_cause_ms() or self._end_ms)
        group = self._brokers.group()
        if until_ms <= soon_ms or group is None or group.state not in self._at_rest:
            return now_ms
        processes = list(self._processes())
        if not all(process.is_quiet(group) for process in processes):
            return now_ms
        # A deadline of the group itself has the member id "".
        members = frozenset(process.member_id for process in processes) - {""}
        until_ms = min(until_ms, self._brokers.next_deadline_ms(members) or until_ms)
        until_ms = min(
            (process.next_cause_ms(until_ms, self._overload_ms) for process in processes), default=until_ms
        )
        return until_ms if until_ms > soon_ms else now_ms
