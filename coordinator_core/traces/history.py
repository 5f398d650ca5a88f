"""The history of a run: owners, stopped time, settled assignments and load. Metrics are computed from it."""

from collections import Counter
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from coordinator_core.model import TopicPartition
from coordinator_core.protocol import events as ev
from coordinator_core.registry.registry import Registry
from coordinator_core.traces.family import family_of
from coordinator_core.traces.timeline import Change, Timeline
from coordinator_core.traces.trace import Trace


class Span(NamedTuple):
    """A consumer owns a partition from ``from_ms`` to ``to_ms``."""

    client: str
    from_ms: int
    to_ms: int


class Mark(NamedTuple):
    """A moment with a label."""

    at_ms: int
    label: str


class Settled(NamedTuple):
    """An assignment in which the group rested: every member took its part over, and no partition that had
    an owner is without one.

    It lasts until a partition is given up, a round begins, or the run ends. ``members`` maps each consumer
    in the group to its topics.
    """

    from_ms: int
    until_ms: int
    owners: Mapping[TopicPartition, str]
    members: Mapping[str, tuple[str, ...]]


class History:
    """A run by subject. Times are virtual milliseconds.

    - ``started``, ``ended``: the first and the last event of the trace.
    - ``family``: the protocol family.
    - ``topics``: each topic with its partitions at the end, or when it was deleted.
    - ``states``: each state of the group with the time since which it is in that state.
    - ``stable_ms``: the times at which the group came to rest.
    - ``change_ms``, ``marks``: the changes from outside.
    - ``moved``: the number of partitions assigned to another consumer than their last owner.
    - ``stopped_partition_ms``: the time in which a partition of a subscribed topic had no working owner,
      summed over partitions.
    - ``settled``: the assignments in which the group rested.
    - ``spans``: the owners of each partition, in the order in which their ownership ended.
    - ``lags``, ``rates``: the measured load, and the records/s of each topic with the time since which they
      hold.
    - ``racks``: the rack of each consumer that has one.
    """

    def __init__(
        self, trace: Trace, registry: Registry | None = None, *, timeline: Timeline | None = None
    ) -> None:
        """Read a trace. Observers of ``timeline`` read it in the same pass; ``registry`` has its family."""
        self.started, self.ended = trace.started, trace.ended
        self.family = family_of(trace.started, registry)
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
        self._last_owner: dict[TopicPartition, str] = {}
        self._worked: set[TopicPartition] = set()
        self._worked_of: Counter[str] = Counter()
        self._orphans: set[TopicPartition] = set()
        self._resting: Settled | None = None
        self._handlers: dict[type[Any], Callable[[Any], None]] = {
            ev.MemberStarted: self._member_started,
            ev.MemberPaused: self._working_changed,
            ev.MemberResumed: self._working_changed,
            ev.MemberCutOff: self._working_changed,
            ev.MemberReconnected: self._working_changed,
            ev.WorkStopped: self._working_changed,
            ev.WorkStarted: self._working_changed,
            ev.RatesChanged: self._rates_changed,
            ev.TopicDeleted: lambda _: self._unsettle(),
            ev.GroupStateChanged: self._state_changed,
            ev.CoordinatorElected: self._coordinator_elected,
            ev.Assigned: self._assigned,
            ev.Changed: self._changed,
            ev.LagMeasured: self.lags.append,
        }
        self._now = now = timeline or Timeline()
        now.before.append(self._pass_time)
        now.after.append(self._see)
        now.read(trace)
        self.topics = {**now.topics, **now.deleted}
        self._unsettle()
        for partition, owners in now.owners.items():
            for client, since_ms in owners.items():
                self._ended(partition, client, since_ms)

    @property
    def last_settled(self) -> Settled | None:
        """The assignment in force at the end, if the group rests in it."""
        last = self.settled[-1] if self.settled else None
        return last if last is not None and last.until_ms == self._now.at_ms else None

    def _pass_time(self, at_ms: int, _event: ev.Event) -> None:
        passed_ms = at_ms - self._now.at_ms
        if passed_ms > 0:
            idle = sum(n - self._worked_of[topic] for topic, n in self._now.subscribed.items())
            self.stopped_partition_ms += idle * passed_ms

    def _see(self, change: Change) -> None:
        if change.given_up:
            self._given_up(change)
        for partition in change.taken:
            self._taken(partition, change.event.client)  # type: ignore[union-attr]
        handler = self._handlers.get(type(change.event))
        if handler is not None:
            handler(change.event)

    # --- ownership

    def _given_up(self, change: Change) -> None:
        self._unsettle()
        for partition, since_ms in change.given_up.items():
            self._ended(partition, change.event.client, since_ms)  # type: ignore[union-attr]
            if not self._now.owners[partition]:
                self._orphans.add(partition)
            self._update_worked(partition)

    def _ended(self, partition: TopicPartition, client: str, since_ms: int) -> None:
        self.spans.setdefault(partition, []).append(Span(client, since_ms, self._now.at_ms))

    def _taken(self, partition: TopicPartition, client: str) -> None:
        if self._last_owner.get(partition, client) != client:
            self.moved += 1
        self._last_owner[partition] = client
        self._orphans.discard(partition)
        self._update_worked(partition)

    def _working_changed(self, event: ev.MemberPaused | ev.WorkStopped | ev.WorkStarted) -> None:
        consumer = self._now.consumers.get(event.client)
        for partition in consumer.owned if consumer is not None else ():
            self._update_worked(partition)

    def _update_worked(self, partition: TopicPartition) -> None:
        works = any(self._now.consumers[client].works_on(partition) for client in self._now.owners[partition])
        if works and partition not in self._worked:
            self._worked.add(partition)
            self._worked_of[partition.topic] += 1
        elif not works and partition in self._worked:
            self._worked.remove(partition)
            self._worked_of[partition.topic] -= 1

    # --- assignments in which the group rests

    def _assigned(self, _event: ev.Assigned) -> None:
        if self._resting is None and self._now.state in self.family.at_rest:
            self._settle()

    def _settle(self) -> None:
        now, wanted = self._now, self._now.subscribed
        taken_over = sum(c.taken_over == now.generation for c in now.consumers.values())
        if taken_over < len(now.members) or any(tp.topic in wanted for tp in self._orphans):
            return
        owners = {tp: next(reversed(held)) for tp, held in now.owners.items() if held and tp.topic in wanted}
        members = {c: m.topics for c, m in now.consumers.items() if m.generation == now.generation}
        if owners:
            self._resting = Settled(now.at_ms, now.at_ms, owners, members)

    def _unsettle(self) -> None:
        if self._resting is not None:
            self.settled.append(self._resting._replace(until_ms=self._now.at_ms))
            self._resting = None

    # --- the group, the load, and changes from outside

    def _state_changed(self, event: ev.GroupStateChanged) -> None:
        if event.after in self.family.round_begins:
            self._unsettle()
        self.states.append((self._now.at_ms, event.after))
        if event.after in self.family.at_rest:
            self.stable_ms.append(self._now.at_ms)

    def _coordinator_elected(self, event: ev.CoordinatorElected) -> None:
        if event.group_state:
            self.states.append((self._now.at_ms, event.group_state))

    def _member_started(self, event: ev.MemberStarted) -> None:
        if event.rack:
            self.racks[event.client] = event.rack

    def _rates_changed(self, event: ev.RatesChanged) -> None:
        self.rates.setdefault(event.topic, []).append((self._now.at_ms, tuple(event.rates)))

    def _changed(self, event: ev.Changed) -> None:
        self.change_ms.append(self._now.at_ms)
        self.marks.append(Mark(self._now.at_ms, f"{event.kind} {event.target}"))
