"""The time in which partitions stood still, divided by cause at every moment: the parts always add up."""

from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from typing import Any, NamedTuple

import numpy as np

from coordinator_core.model import TopicPartition
from coordinator_core.protocol import events as ev
from coordinator_core.registry.hookspecs import ProtocolSpec
from rebalance_lab.traces.causes import (
    AWAY,
    CALLBACKS,
    CAUSES,
    DETECTION,
    MESSAGES,
    RESTORE,
    STANDING,
    TAKE_OVER,
    UNASSIGNED,
    VACANT,
    WAITING,
)
from rebalance_lab.traces.ledger import joined, numbered
from rebalance_lab.traces.rests import Traffic
from rebalance_lab.traces.timeline import ABSENCES, Change, Timeline
from rebalance_lab.traces.waits import Waits

_WORKED, _LEFT, _FREE = "worked", "left", "free"
_OWNED = {"callback": CALLBACKS, "restore": RESTORE}
"""The cause if the owner of a partition does not work on it, by the reason of its `WorkStopped`."""


class _Kind(NamedTuple):
    """How a partition is held.

    ``cause`` is worked, a cause that does not depend on the state of the group, or one of two that do: left
    by a member that the group still counts on, or free. ``claimed``: a member of the group owns it, or the
    group counts on the last owner. ``double``: several owners work on it. ``absent``: the client of the
    member that is absent, if that is the cause.
    """

    cause: str
    claimed: bool = False
    double: bool = False
    absent: str = ""


_WORKS, _IS_LEFT, _IS_FREE = _Kind(_WORKED, claimed=True), _Kind(_LEFT), _Kind(_FREE)
_IS_VACANT = _Kind(VACANT)


class Unowned(NamedTuple):
    """A partition without an owner: since when, and the cause."""

    partition: TopicPartition
    since_ms: int
    cause: str


class StoppedTime:
    """The stopped time of a run, from ``from_ms`` to its end, as an observer of a timeline.

    It has the following after ``finish``. Whoever sets ``from_ms`` does so before the timeline passes that
    time; it is 0 otherwise.

    - ``causes_ms``: the time in which partitions of wanted topics had no working owner, by cause.
    - ``absent_ms``: that of owners that had ended, stood still or were away, by cause and client.
    - ``partition_ms``: the time of all partitions of wanted topics.
    - ``unowned_ms``, ``double_owned_ms``: the time in which no member of the group had a claim to a
      partition, and that in which several consumers worked on it.
    - ``intervals`` int64[n, 3]: the times in the window in which a partition of a wanted topic had no working
      owner without a break: its number in `Timeline.index`, the begin and the end, in milliseconds.
    - ``longest_ms``: the longest time for which one partition stood still without a break.
    - ``unowned_at_end``: the partitions of subscribed topics that had no owner at the end, in order.
    - ``records``, ``stopped_records``: the records produced to wanted topics, and those of partitions
      that stood still when they were produced.
    """

    def __init__(self, timeline: Timeline, family: ProtocolSpec) -> None:
        self._now, self._family = timeline, family
        self._at_ms = self.from_ms = 0
        self._kinds: dict[TopicPartition, _Kind] = {}
        self._total: Counter[_Kind] = Counter()
        self._subscribed: Mapping[str, int] = {}
        self._vacated: set[str] = set()
        """The topics that nobody has subscribed to since a time, as far as the group knows by its rounds."""
        self._per_second = 0.0
        """The records/s that are produced to wanted topics."""
        self._left: dict[TopicPartition, str] = {}
        self._left_by: dict[str, dict[TopicPartition, None]] = {}
        self._client_of: dict[str, str] = {}
        self._joined_as: dict[str, str] = {}
        """The id with which a consumer has joined since it started, unless the group has removed it."""
        self._pending: dict[str, None] = {}
        self._handlers: dict[type[Any], Callable[[Any], None]] = {
            ev.MemberStarted: self._member_started,
            **dict.fromkeys(ABSENCES, lambda e: self._refresh(e.client)),
            ev.WorkStopped: lambda e: self._update(self._now.partitions(e.partitions)),
            ev.WorkStarted: lambda e: self._update(self._now.partitions(e.partitions)),
            ev.RatesChanged: lambda _: self._count_rates(),
            ev.GroupStateChanged: self._state_changed,
            ev.CoordinatorElected: self._coordinator_elected,
            ev.MemberRemoved: self._member_removed,
            ev.MemberReplaced: self._member_replaced,
            ev.GenerationStarted: self._generation_started,
            ev.Joined: self._joined,
            ev.Assigned: self._assigned,
        }
        self._waits = Waits(timeline, family)
        self._begin()
        timeline.before.append(self._pass_time)
        timeline.after.append(self._see)

    @property
    def stopped_ms(self) -> int:
        """The time of all causes."""
        return sum(self.causes_ms.values())

    def _begin(self) -> None:
        """Count from now on."""
        self._waits.begin()
        self.causes_ms = dict.fromkeys(CAUSES, 0)
        self.absent_ms: Counter[tuple[str, str]] = Counter()
        self.partition_ms = self.unowned_ms = self.double_owned_ms = 0
        self.records = 0.0

    def finish(self) -> None:
        """Count the stops that have not ended, after the last event."""
        if self.from_ms >= self._at_ms:
            self._begin()
        self.causes_ms |= self._waits.finish()
        now, index = self._now, self._now.index
        every = [*now.stops, *now.stops_going_on()]
        partitions, times = [stop.partition for stop in every], [stop[1:3] for stop in every]
        stops = joined(numbered(index, partitions, times, columns=2))
        stops[:, 1] = np.maximum(stops[:, 1], min(self.from_ms, self._at_ms))
        self.intervals = stops = stops[stops[:, 1] <= stops[:, 2]]
        self.longest_ms = int(np.max(stops[:, 2] - stops[:, 1], initial=0))
        self.stopped_records = float(Traffic(index, now.rates).produced(*stops.T).sum()) / 1_000
        since_ms = {number: from_ms for number, from_ms, until_ms in stops.tolist() if until_ms == now.at_ms}
        self.unowned_at_end = [
            Unowned(partition, since_ms[number], self._cause(self._kinds[partition].cause))
            for partition in sorted(now.idle)
            if not now.owners.get(partition) and partition.topic in now.subscribed
            if (number := index.number(*partition)) is not None
        ]

    def _pass_time(self, until_ms: int, _event: ev.Event) -> None:
        if self._at_ms <= self.from_ms < until_ms:
            self._count_time(self.from_ms)
            self._begin()
        self._count_time(until_ms)

    def _count_time(self, until_ms: int) -> None:
        """Count the time up to the next event."""
        passed_ms = until_ms - self._at_ms
        if passed_ms <= 0:
            return
        self.records += self._per_second * passed_ms / 1_000
        for kind, count in self._total.items():
            if not count:
                continue
            counted_ms = count * passed_ms
            self.partition_ms += counted_ms
            if kind.cause != _WORKED:
                self._count_stop(self._cause(kind.cause), count, until_ms)
            if kind.absent:
                self.absent_ms[kind.cause, kind.absent] += counted_ms
            if not kind.claimed:
                self.unowned_ms += counted_ms
            if kind.double:
                self.double_owned_ms += counted_ms
        self._at_ms = until_ms

    def _count_stop(self, cause: str, count: int, until_ms: int) -> None:
        if cause == WAITING:
            self._waits.count(self._at_ms, until_ms, count)
        else:
            self.causes_ms[cause] += count * (until_ms - self._at_ms)

    def _cause(self, cause: str) -> str:
        if cause not in (_LEFT, _FREE):
            return cause
        state, family = self._now.state, self._family
        if state in family.at_rest:
            has_left = cause == _LEFT and family.servers is None
            return TAKE_OVER if has_left else self._cause_at_rest()
        if state in family.round_begins:
            return WAITING
        return VACANT if not state or state in family.vacant else MESSAGES

    def _cause_at_rest(self) -> str:
        """Return why a partition has no owner while the group rests: a member has yet to take over, or none.

        It may be a member that has ended since, or stands still. Members without a coordinator have taken
        over when the group rests.
        """
        has_yet = self._family.servers is None
        causes = dict.fromkeys(self._absence(member_id) for member_id in self._pending)
        known = (TAKE_OVER, DETECTION, STANDING, AWAY) if has_yet else (DETECTION, STANDING)
        return next((cause for cause in known if cause in causes), UNASSIGNED)

    def _absence(self, member_id: str) -> str:
        """Return why a member of the group is absent, or `TAKE_OVER` if it is present."""
        client = self._client_of.get(member_id)
        if client is None:
            return TAKE_OVER  # it has not learnt yet that it joined
        now = self._now
        consumer = now.consumers.get(client)
        if consumer is not None and consumer.member_id == member_id:
            return TAKE_OVER if consumer.works else STANDING
        if now.is_static(client) and (consumer is not None or now.processes[client].how == "closed"):
            return AWAY
        return DETECTION

    # --- partitions

    def _see(self, change: Change) -> None:
        event, given_up, taken = change.event, change.given_up, change.taken
        if given_up:
            client = getattr(event, "client", "")
            for partition in given_up:
                self._given_up(partition, client)
        for partition in taken:
            self._forget_left(partition)
        handler = self._handlers.get(type(event))
        if handler is not None:
            handler(event)
        if given_up:
            self._update(given_up)
        if taken:
            self._update(taken)
        if change.wanted or change.unwanted:
            self._count(change)
        if self._now.subscribed is not self._subscribed:
            self._subscribe()

    def _given_up(self, partition: TopicPartition, client: str) -> None:
        member_id = self._now.id_of.get(client)
        if member_id is not None and not self._now.owners[partition]:
            self._forget_left(partition)
            self._left[partition] = member_id
            self._left_by.setdefault(member_id, {})[partition] = None

    def _forget_left(self, partition: TopicPartition) -> None:
        member_id = self._left.pop(partition, None)
        if member_id is not None:
            del self._left_by[member_id][partition]

    def _update(self, listed: Iterable[TopicPartition]) -> None:
        """Find out again how partitions are held."""
        kinds, owners, total = self._kinds, self._now.owners, self._total
        without_owner: dict[tuple[str | None, bool], _Kind] = {}
        for partition in listed:
            before = kinds.get(partition)
            if before is None:
                continue
            if owners.get(partition):
                kind = self._kind(partition)
            else:
                of = self._left.get(partition), partition.topic in self._vacated
                if of not in without_owner:
                    without_owner[of] = self._kind_without_owner(*of)
                kind = without_owner[of]
            if kind is before or kind == before:
                continue
            kinds[partition] = kind
            total[before] -= 1
            total[kind] += 1

    def _kind(self, partition: TopicPartition) -> _Kind:
        now = self._now
        names = now.owners.get(partition)
        if not names:
            return self._kind_without_owner(self._left.get(partition), partition.topic in self._vacated)
        claims = [name for name in names if now.consumers[name].member_id in now.members]
        working = now.working.get(partition)
        if working:
            return _WORKS if working == 1 and claims else _Kind(_WORKED, bool(claims), working > 1)
        if claims:
            owner = now.consumers[claims[-1]]
            if not owner.works:
                return _Kind(STANDING, True, absent=claims[-1])
            return _Kind(_OWNED.get(owner.stopped[partition], _LEFT), True)
        return _IS_FREE

    def _kind_without_owner(self, left: str | None, is_vacated: bool) -> _Kind:
        """Return how a partition without an owner is held, by the id of the member that left it."""
        if left not in self._now.members:
            return _IS_VACANT if is_vacated else _IS_FREE
        absence = self._absence(left)
        if absence == TAKE_OVER:
            return _IS_LEFT
        return _Kind(absence, True, absent=self._client_of.get(left, ""))

    def _count(self, change: Change) -> None:
        """Count the partitions of the topics that are wanted now, and no others."""
        for partition in change.unwanted:
            self._total[self._kinds.pop(partition)] -= 1
        for partition in change.wanted:
            kind = self._kinds[partition] = self._kind(partition)
            self._total[kind] += 1
        self._count_rates()

    def _count_rates(self) -> None:
        rates = self._now.rates
        self._per_second = sum(sum(rates[topic][-1][1]) for topic in self._now.wanted if topic in rates)

    def _subscribe(self) -> None:
        """Find out again how the partitions of topics are held that nobody subscribes to any longer."""
        vacated = [topic for topic in self._subscribed if topic not in self._now.subscribed]
        self._subscribed = self._now.subscribed
        self._vacated.update(vacated)
        self._update_topics(vacated)

    def _state_changed(self, event: ev.GroupStateChanged) -> None:
        if self._vacated and event.after in self._family.round_begins:
            again = [topic for topic in self._now.subscribed if topic in self._vacated]
            self._vacated.difference_update(again)
            self._update_topics(again)

    def _update_topics(self, topics: Iterable[str]) -> None:
        for topic in topics:
            numbers = list(range(self._now.wanted.get(topic, 0)))
            self._update(self._now.partitions({topic: numbers}))

    # --- members

    def _refresh(self, client: str) -> None:
        """Find out again how the partitions of a consumer are held, and those that it has left."""
        consumer = self._now.consumers.get(client)
        self._update(consumer.owned if consumer is not None else ())
        self._update(self._left_by.get(self._now.id_of.get(client, ""), ()))

    def _refresh_member(self, member_id: str) -> None:
        self._update(self._left_by.get(member_id, ()))
        self._refresh(self._client_of.get(member_id, ""))

    def _member_started(self, event: ev.MemberStarted) -> None:
        self._joined_as.pop(event.client, None)
        self._refresh(event.client)

    def _joined(self, event: ev.Joined) -> None:
        """Take over the id of a consumer. If it had it already, its partitions are held as before."""
        if self._joined_as.get(event.client) == event.member_id and not self._now.own_epochs:
            return
        self._joined_as[event.client] = event.member_id
        self._client_of[event.member_id] = event.client
        self._refresh(event.client)

    def _assigned(self, event: ev.Assigned) -> None:
        consumer = self._now.consumers.get(event.client)
        if consumer is not None and event.generation == self._now.generation:
            self._pending.pop(consumer.member_id, None)

    def _member_removed(self, event: ev.MemberRemoved) -> None:
        self._pending.pop(event.member_id, None)
        self._joined_as.pop(self._client_of.get(event.member_id, ""), None)
        self._refresh_member(event.member_id)

    def _member_replaced(self, event: ev.MemberReplaced) -> None:
        old, new = event.old_member_id, event.new_member_id
        if old in self._pending:
            del self._pending[old]
            self._pending[new] = None
        client = self._client_of.get(old)
        if client is None:
            return
        self._client_of[new] = client
        left = self._left_by.pop(old, {})
        self._left_by.setdefault(new, {}).update(left)
        self._left.update(dict.fromkeys(left, new))
        self._refresh_member(new)

    def _coordinator_elected(self, _event: ev.CoordinatorElected) -> None:
        """Continue with the members in the log. Some may have taken over their parts already."""
        now = self._now
        known = {c.member_id for c in now.consumers.values() if c.taken_over == now.generation}
        self._pending = {member_id: None for member_id in now.members if member_id not in known}
        self._update(self._kinds)

    def _generation_started(self, event: ev.GenerationStarted) -> None:
        """The last owners of partitions do not count any longer: the new assignment decides.

        Where members have epochs of their own, a partition of a member waits until the group has lost it.
        """
        self._pending = dict.fromkeys(event.members)
        if self._now.own_epochs:
            return
        left, self._left, self._left_by = self._left, {}, {}
        self._update(left)
