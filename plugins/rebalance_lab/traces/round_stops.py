"""The stops of partitions as rounds count them: in the round that ends them."""

from collections.abc import Iterable
from typing import NamedTuple

import numpy as np

from coordinator_core.model import TopicPartition
from coordinator_core.protocol import events as ev
from coordinator_core.registry.hookspecs import ProtocolSpec
from rebalance_lab.traces.entries import Round
from rebalance_lab.traces.timeline import Change, Stop, Timeline

_RESTING = (ev.GroupStateChanged, ev.Assigned, ev.MemberStopped, ev.ConsumerFailed)
"""The events after which all consumers may have taken over their parts."""


class RoundStop(NamedTuple):
    """A stop: of a partition that no owner has worked on yet, it begins when the group first rests.

    ``since_ms`` is earlier if the stop continued one that had just ended: a new owner that restores the
    state of a partition owns it, and works on it later.
    """

    partition: TopicPartition
    from_ms: int
    until_ms: int
    since_ms: int


class RoundStops:
    """The stops of a run, of which the time from ``from_ms`` on counts.

    ``ended`` has the stops that the last event has ended. ``counted_ms`` is the sum of all, after `finish`.
    """

    def __init__(self, timeline: Timeline, family: ProtocolSpec, from_ms: int) -> None:
        self._now, self._family, self._from_ms = timeline, family, from_ms
        self._rested_ms: int | None = None
        """The first time at which all consumers had taken over their parts."""
        self.ended: list[RoundStop] = []
        self.counted_ms = 0
        self._stops: list[RoundStop] = []
        self._last: dict[TopicPartition, RoundStop] = {}
        self._stopped: dict[int, set[TopicPartition]] = {}

    def see(self, change: Change) -> None:
        """Take over the next change."""
        self.ended = self._followed(change.stops)
        self._stops += self.ended
        if isinstance(change.event, _RESTING) and self._rested_ms is None and self._rests():
            self._rested_ms = self._now.at_ms

    def finish(self) -> None:
        """Count the stops that go on, after the last event."""
        stops = [*self._stops, *self._followed(self._now.stops_going_on())]
        self._times = np.array([stop[1:3] for stop in stops], dtype=np.int64).reshape(-1, 2)
        self.counted_ms = self.shared_ms(self._from_ms, self._now.at_ms)

    def shared_ms(self, from_ms: int, until_ms: int) -> int:
        """Return the parts of all stops within a time, summed, after `finish`."""
        shared_ms = np.minimum(self._times[:, 1], until_ms) - np.maximum(self._times[:, 0], from_ms)
        return int(np.maximum(shared_ms, 0).sum())

    def count(self, entry: Round | None) -> None:
        """Count the stops that an event has ended in the round that ended them."""
        if entry is None:
            return
        for stop in self.ended:
            if counted_ms := self._counted(stop.from_ms):
                stopped = self._stopped.setdefault(entry.began_ms, set())
                stopped.add(stop.partition)
                entry.stopped = len(stopped)
                entry.stopped_ms += counted_ms
                entry.longest_stop_ms = max(entry.longest_stop_ms, self._counted(stop.since_ms))

    def _counted(self, since_ms: int) -> int:
        """Return the part of a stop until now that counts."""
        return max(0, self._now.at_ms - max(since_ms, self._from_ms))

    def _followed(self, stops: Iterable[Stop]) -> list[RoundStop]:
        """Return stops as rounds count them."""
        found = []
        for partition, began_ms, until_ms, worked in stops:
            if not worked and self._rested_ms is None:
                continue
            from_ms = began_ms if worked else max(began_ms, self._rested_ms or 0)
            before = self._last.get(partition)
            goes_on = before is not None and before.until_ms == from_ms
            since_ms = before.since_ms if before is not None and goes_on else from_ms
            self._last[partition] = RoundStop(partition, from_ms, until_ms, since_ms)
            found.append(self._last[partition])
        return found

    def _rests(self) -> bool:
        now = self._now
        consumers = now.consumers.values()
        return now.state in self._family.at_rest and all(c.taken_over == now.generation for c in consumers)
