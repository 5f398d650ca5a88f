"""A trace read once: who owned what when, what stood still, when the group settled. Metrics read from it."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from coordinator_core.model import TopicPartition
from coordinator_core.protocol import events as ev
from coordinator_core.traces.trace import Trace

STABLE = "Stable"
PREPARING = "PreparingRebalance"


class Span(NamedTuple):
    """One member works on one partition from ``from_ms`` to ``to_ms``."""

    client: str
    from_ms: int
    to_ms: int


class Mark(NamedTuple):
    """Something that happened at one moment, with a word for it."""

    at_ms: int
    label: str


class Settled(NamedTuple):
    """An assignment that the group had come to rest in: Stable, and nothing that had an owner without one.

    It lasts until something is given up, a round begins, or the run ends. ``members`` maps each consumer
    in the group to its topics.
    """

    from_ms: int
    until_ms: int
    owners: Mapping[TopicPartition, str]
    members: Mapping[str, tuple[str, ...]]


@dataclass
class _Consumer:
    topics: tuple[str, ...]
    owned: dict[TopicPartition, None] = field(default_factory=dict)
    generation: int = -1
    taken_over: int = -1
    paused: bool = False
    cut: bool = False

    @property
    def works(self) -> bool:
        return not (self.paused or self.cut)


class History:
    """What happened, by subject. Times are virtual milliseconds.

    ``stable_ms``: each time the group became Stable; ``change_ms``: each change from outside;
    ``moved``: partitions assigned to another consumer than their last owner; ``stopped_partition_ms``:
    time in which a partition of a subscribed topic had no working owner, summed over partitions;
    ``settled``: the assignments the group came to rest in; ``lags``: measures of the load, with times;
    ``racks``: of every consumer that has one.
    """

    def __init__(self, trace: Trace) -> None:
        self.trace = trace
        self.started, self.ended = trace.started, trace.ended
        self.topics: dict[str, int] = dict(trace.started.topics)
        self.stable_ms: list[int] = []
        self.change_ms: list[int] = []
        self.states: list[tuple[int, str]] = []
        self.moved = 0
        self.stopped_partition_ms = 0
        self.settled: list[Settled] = []
        self.lags: list[ev.LagMeasured] = []
        self.racks: dict[str, str] = {}
        self.marks: list[Mark] = []
        self.spans: dict[TopicPartition, list[Span]] = {}
        self.rates: dict[str, list[tuple[int, tuple[float, ...]]]] = {}
        self._at_ms = 0
        self._state = ""
        self._generation = -1
        self._group_size = 0
        self._consumers: dict[str, _Consumer] = {}
        self._owners: dict[TopicPartition, dict[str, int]] = {}
        self._last_owner: dict[TopicPartition, str] = {}
        self._worked: dict[TopicPartition, None] = {}
        self._orphans: dict[TopicPartition, None] = {}
        self._resting: Settled | None = None
        self._wanted_topics: dict[str, None] | None = {}
        see: dict[type[Any], Callable[[Any], None]] = {
            ev.MemberStarted: self._member_started,
            ev.MemberStopped: self._member_gone,
            ev.ConsumerFailed: self._member_gone,
            ev.MemberPaused: lambda e: self._set(e.client, paused=True),
            ev.MemberResumed: lambda e: self._set(e.client, paused=False),
            ev.MemberCutOff: lambda e: self._set(e.client, cut=True),
            ev.MemberReconnected: lambda e: self._set(e.client, cut=False),
            ev.SubscriptionChanged: self._subscription_changed,
            ev.PartitionsAdded: self._partitions_added,
            ev.RatesChanged: self._rates_changed,
            ev.GroupStateChanged: self._state_changed,
            ev.CoordinatorElected: self._coordinator_elected,
            ev.GenerationStarted: self._generation_started,
            ev.Joined: self._joined,
            ev.Revoked: self._given_up,
            ev.Lost: self._given_up,
            ev.Assigned: self._assigned,
            ev.Changed: self._changed,
            ev.LagMeasured: self.lags.append,
        }
        for line in trace.events:
            self._pass_time(line.at_ms)
            handle = see.get(type(line.event))
            if handle is not None:
                handle(line.event)
        self._unsettle()
        for partition in list(self._owners):
            self._close_spans(partition, list(self._owners[partition]))

    @property
    def last_settled(self) -> Settled | None:
        """The assignment in force at the end, if the group had come to rest."""
        last = self.settled[-1] if self.settled else None
        return last if last is not None and last.until_ms == self._at_ms else None

    # --- time

    def _pass_time(self, at_ms: int) -> None:
        if at_ms > self._at_ms:
            wanted = self._wanted()
            worked = sum(1 for tp in self._worked if tp.topic in wanted)
            idle = sum(self.topics[topic] for topic in wanted) - worked
            self.stopped_partition_ms += idle * (at_ms - self._at_ms)
            self._at_ms = at_ms

    def _wanted(self) -> dict[str, None]:
        """Topics that a running consumer subscribes to; looked up anew after a change of who or what."""
        if self._wanted_topics is None:
            subscribed = dict.fromkeys(t for c in self._consumers.values() for t in c.topics)
            self._wanted_topics = {topic: None for topic in subscribed if topic in self.topics}
        return self._wanted_topics

    def _settle(self) -> None:
        """Note the assignment, if the group has come to rest in it."""
        if self._resting or self._state != STABLE:
            return
        taken_over = [c for c in self._consumers.values() if c.taken_over == self._generation]
        wanted = self._wanted()
        if len(taken_over) < self._group_size or any(tp.topic in wanted for tp in self._orphans):
            return
        owners = {tp: next(reversed(held)) for tp, held in self._owners.items() if held}
        owners = {tp: owner for tp, owner in owners.items() if tp.topic in wanted}
        members = {c: m.topics for c, m in self._consumers.items() if m.generation == self._generation}
        if owners:
            self._resting = Settled(self._at_ms, self._at_ms, owners, members)

    def _unsettle(self) -> None:
        """Whatever the group rested in is over now."""
        if self._resting is not None:
            self.settled.append(self._resting._replace(until_ms=self._at_ms))
            self._resting = None

    # --- what the events say

    def _member_started(self, event: ev.MemberStarted) -> None:
        self._member_gone(event)
        self._consumers[event.client] = _Consumer(tuple(event.topics))
        if event.rack:
            self.racks[event.client] = event.rack
        self._wanted_topics = None

    def _member_gone(self, event: ev.MemberStarted | ev.MemberStopped | ev.ConsumerFailed) -> None:
        consumer = self._consumers.get(event.client)
        if consumer is not None:
            self._give_up(event.client, list(consumer.owned))
            del self._consumers[event.client]
            self._wanted_topics = None

    def _set(self, client: str, **changes: bool) -> None:
        consumer = self._consumers.get(client)
        if consumer is not None:
            for name, value in changes.items():
                setattr(consumer, name, value)
            for partition in consumer.owned:
                self._update_worked(partition)

    def _subscription_changed(self, event: ev.SubscriptionChanged) -> None:
        consumer = self._consumers.get(event.client)
        if consumer is not None:
            consumer.topics = tuple(event.topics)
            self._wanted_topics = None

    def _partitions_added(self, event: ev.PartitionsAdded) -> None:
        self.topics[event.topic] = event.partitions
        self._wanted_topics = None

    def _rates_changed(self, event: ev.RatesChanged) -> None:
        self.rates.setdefault(event.topic, []).append((self._at_ms, tuple(event.rates)))

    def _state_changed(self, event: ev.GroupStateChanged) -> None:
        if event.after == PREPARING:
            self._unsettle()
        self._state = event.after
        self.states.append((self._at_ms, event.after))
        if event.after == STABLE:
            self.stable_ms.append(self._at_ms)

    def _coordinator_elected(self, event: ev.CoordinatorElected) -> None:
        if event.group_state:
            self._state, self._generation = event.group_state, event.generation
            self._group_size = len(event.members)
            self.states.append((self._at_ms, event.group_state))

    def _generation_started(self, event: ev.GenerationStarted) -> None:
        self._generation = event.generation
        self._group_size = len(event.members)

    def _joined(self, event: ev.Joined) -> None:
        self._consumers[event.client].generation = event.generation

    def _changed(self, event: ev.Changed) -> None:
        self.change_ms.append(self._at_ms)
        self.marks.append(Mark(self._at_ms, f"{event.kind} {event.target}"))

    def _given_up(self, event: ev.Revoked | ev.Lost) -> None:
        listed = [TopicPartition(t, n) for t, numbers in event.partitions.items() for n in numbers]
        self._give_up(event.client, listed)

    def _give_up(self, client: str, partitions: list[TopicPartition]) -> None:
        consumer = self._consumers.get(client)
        if consumer is None:
            return  # it failed, which gave everything up, and closes now
        if partitions:
            self._unsettle()
        for partition in partitions:
            consumer.owned.pop(partition, None)
            if client in self._owners.get(partition, ()):
                self._close_spans(partition, [client])
            if not self._owners.get(partition):
                self._orphans[partition] = None
            self._update_worked(partition)

    def _assigned(self, event: ev.Assigned) -> None:
        consumer = self._consumers[event.client]
        consumer.taken_over = event.generation
        for topic, numbers in event.owned.items():
            for number in numbers:
                partition = TopicPartition(topic, number)
                held = self._owners.setdefault(partition, {})
                if event.client in held:
                    continue
                held[event.client] = self._at_ms
                consumer.owned[partition] = None
                if self._last_owner.get(partition, event.client) != event.client:
                    self.moved += 1
                self._last_owner[partition] = event.client
                self._orphans.pop(partition, None)
                self._update_worked(partition)
        self._settle()

    def _update_worked(self, partition: TopicPartition) -> None:
        held = self._owners.get(partition, {})
        if any(client in self._consumers and self._consumers[client].works for client in held):
            self._worked[partition] = None
        else:
            self._worked.pop(partition, None)

    def _close_spans(self, partition: TopicPartition, clients: list[str]) -> None:
        held = self._owners[partition]
        for client in clients:
            since = held.pop(client)
            self.spans.setdefault(partition, []).append(Span(client, since, self._at_ms))
