"""The stops of partitions: the times in which nobody works on them."""

from collections.abc import Mapping
from typing import NamedTuple

from coordinator_core.model import TopicPartition
from coordinator_core.protocol import events as ev
from coordinator_core.registry.hookspecs import ProtocolSpec
from rebalance_lab.traces.timeline import Change, Timeline

_RESTING = (ev.GroupStateChanged, ev.Assigned, ev.MemberStopped, ev.ConsumerFailed)
"""The events after which all consumers may have taken over their parts."""


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
    """The partitions of wanted topics that no owner works on, as an observer of a timeline.

    ``idle_since`` maps them to the times. While the group starts, those that no owner has worked on yet are
    not among them: they count from the first rest in which all consumers have taken over their parts. After
    each event, ``ended`` has the stops that it has ended, also because nobody wants the topic any longer, and
    ``moved`` the last owner of each partition that it has given to another consumer.
    """

    def __init__(self, timeline: Timeline, family: ProtocolSpec) -> None:
        self.idle_since: dict[TopicPartition, int] = {}
        self.ended: list[Stop] = []
        self.moved: dict[TopicPartition, str] = {}
        self._now, self._family = timeline, family
        self._has_rested = False
        self._wanted: Mapping[str, int] = {}
        self._last_stop: dict[TopicPartition, Stop] = {}
        self._last_owner: dict[TopicPartition, str] = {}
        timeline.after.append(self._see)

    def _see(self, change: Change) -> None:
        event, now = change.event, self._now
        self.moved = {}
        for partition in change.taken:
            self._take(partition, event.client)  # type: ignore[union-attr]
        self.ended = [self._end(p) for p in change.begun if p in self.idle_since]
        for partition in change.ended:
            if partition.topic in now.wanted:
                self.idle_since[partition] = now.at_ms
        if self._has_rested:
            self._begin(now.wanted, self._wanted)
        elif isinstance(event, _RESTING) and self._rests():
            self._has_rested = True
            self._begin(now.wanted, {})
        if now.wanted is not self._wanted:
            self._wanted = now.wanted
            self.ended += [self._end(p) for p in list(self.idle_since) if not self._is_wanted(p)]

    def _rests(self) -> bool:
        now = self._now
        consumers = now.consumers.values()
        return now.state in self._family.at_rest and all(c.taken_over == now.generation for c in consumers)

    def _begin(self, wanted: Mapping[str, int], before: Mapping[str, int]) -> None:
        """Begin the stops of partitions that are wanted from now on, and that nobody works on."""
        if wanted is before:
            return
        for topic, count in wanted.items():
            for number in range(before.get(topic, 0), count):
                partition = TopicPartition(topic, number)
                if partition not in self._now.working:
                    self.idle_since.setdefault(partition, self._now.at_ms)

    def _is_wanted(self, partition: TopicPartition) -> bool:
        return partition.partition < self._wanted.get(partition.topic, 0)

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
