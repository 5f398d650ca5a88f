"""The stops of partitions: the times in which nobody works on them."""

from typing import NamedTuple

from coordinator_core.model import TopicPartition
from coordinator_core.protocol import events as ev
from rebalance_lab.traces.timeline import Change, Timeline

_UNSUBSCRIBING = (ev.SubscriptionChanged, ev.MemberStarted, ev.MemberStopped, ev.TopicDeleted)
"""The events after which nobody may want a topic any longer."""


class Stop(NamedTuple):
    """A partition that nobody worked on from ``from_ms`` until ``until_ms``.

    ``since_ms`` is earlier if the stop continued one that had just ended: a new owner that restores the
    state of a partition owns it, and works on it later.
    """

    partition: TopicPartition
    from_ms: int
    until_ms: int
    since_ms: int


class Stops:
    """The partitions that no owner works on, as an observer of a timeline.

    ``idle_since`` maps those of wanted topics that an owner has worked on before, and those that were
    added to their topics, to the times. After each event, ``ended`` has the stops that it has ended, and
    ``moved`` the last owner of each partition that it has given to another consumer.
    """

    def __init__(self, timeline: Timeline) -> None:
        self.idle_since: dict[TopicPartition, int] = {}
        self.ended: list[Stop] = []
        self.moved: dict[TopicPartition, str] = {}
        self._now = timeline
        self._last_stop: dict[TopicPartition, Stop] = {}
        self._last_owner: dict[TopicPartition, str] = {}
        timeline.before.append(self._before)
        timeline.after.append(self._see)

    def _before(self, at_ms: int, event: ev.Event) -> None:
        """Partitions that are added to a topic have no owner yet."""
        if isinstance(event, ev.PartitionsAdded) and event.topic in self._now.wanted:
            for number in range(self._now.topics[event.topic], event.partitions):
                self.idle_since[TopicPartition(event.topic, number)] = at_ms

    def _see(self, change: Change) -> None:
        event, now = change.event, self._now
        self.moved = {}
        for partition in change.taken:
            self._take(partition, event.client)  # type: ignore[union-attr]
        self.ended = [self._end(p) for p in change.begun if p in self.idle_since]
        for partition in change.ended:
            if partition.topic in now.topics:
                self.idle_since[partition] = now.at_ms
        if type(event) in _UNSUBSCRIBING:
            for partition in [tp for tp in self.idle_since if tp.topic not in now.wanted]:
                del self.idle_since[partition]

    def _take(self, partition: TopicPartition, client: str) -> None:
        before = self._last_owner.get(partition, client)
        if before != client:
            self.moved[partition] = before
        self._last_owner[partition] = client

    def _end(self, partition: TopicPartition) -> Stop:
        from_ms = self.idle_since.pop(partition)
        before = self._last_stop.get(partition)
        goes_on = before is not None and before.until_ms == from_ms
        since_ms = before.since_ms if before is not None and goes_on else from_ms
        stop = self._last_stop[partition] = Stop(partition, from_ms, self._now.at_ms, since_ms)
        return stop
