"""The fold of a trace: the group after each event. Whatever reads ownership observes a `Timeline`."""

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import chain
from types import MappingProxyType
from typing import Any, NamedTuple, TypeAlias

from coordinator_core.coordinator.shard import DEAD
from coordinator_core.families.classic import CLASSIC
from coordinator_core.families.migration import MIGRATION
from coordinator_core.families.reconcile import RECONCILE
from coordinator_core.model import TopicIndex, TopicPartition
from coordinator_core.protocol import events as ev
from rebalance_lab.traces.consumer import Consumer
from rebalance_lab.traces.trace import Trace

_STANDING = (ev.MemberPaused, ev.MemberResumed, ev.MemberCutOff, ev.MemberReconnected)

ABSENCES = (*_STANDING, ev.MemberStopped, ev.ConsumerFailed)
"""The events after which a consumer is absent, or present again."""

_WORKING = frozenset((*_STANDING, ev.WorkStopped, ev.WorkStarted))
"""The events after which a consumer works on other partitions than before, though it owns the same ones."""


class Stop(NamedTuple):
    """A partition of a wanted topic that nobody worked on from ``from_ms`` until ``until_ms``.

    ``worked``: whether an owner had worked on it until it stopped. Otherwise it was wanted from then on.
    """

    partition: TopicPartition
    from_ms: int
    until_ms: int
    worked: bool


class Change(NamedTuple):
    """An event, and the partitions that changed hands by it.

    ``given_up`` maps the partitions that the consumer of the event owned, and does not own any longer, to
    the numbers of their spans. ``taken`` lists those that it owns now and did not own before.
    ``begun`` lists the partitions that an owner works on now and none did before, ``ended`` the opposite.
    ``wanted`` and ``unwanted`` list the partitions of topics that are wanted now and were not, and the
    opposite. ``stops`` lists the stops that have ended, also because nobody wants the topic any longer.
    """

    event: ev.Event
    given_up: Mapping[TopicPartition, int] = MappingProxyType({})
    taken: Sequence[TopicPartition] = ()
    begun: Sequence[TopicPartition] = ()
    ended: Sequence[TopicPartition] = ()
    wanted: Sequence[TopicPartition] = ()
    unwanted: Sequence[TopicPartition] = ()
    stops: Sequence[Stop] = ()


Before: TypeAlias = Callable[[int, ev.Event], None]
After: TypeAlias = Callable[[Change], None]
Measured: TypeAlias = Callable[[int, ev.LagMeasured], None]


class Timeline:
    """The group at one time. Times are virtual milliseconds.

    ``topics`` maps each topic to its partitions, ``deleted`` those that were deleted, ``consumers`` the
    name of each running consumer to its state, and ``owners`` each partition to its owners with the numbers
    of their spans, in that order. A partition has several owners while one of them does not know
    yet that another has it; ``contested`` are the partitions that have. ``clients`` numbers the consumers in
    the order in which they first started. ``spans`` lists who owned what: the partition, the number of the
    client, since when, and until when, None if it owns it still. ``working`` maps each partition
    that owners work on to their number. ``idle`` maps each partition of a wanted topic that nobody works on
    to the time since when, and whether an owner had worked on it until then; ``stops`` lists these times that
    have ended. ``members`` are ids in the group, as the coordinator has them.
    ``own_epochs``: members have epochs of their own in place of the group's generation. Those below
    ``valid_from`` are of members that have missed the last round before, in a group that went from one of
    Kafka's protocols to the other.

    ``processes`` has the last process of each consumer, also if it has ended; ``id_of`` the last id of each
    consumer, ``client_of`` the consumer that has joined with an id. ``rates`` lists the records/s of each
    topic, and ``states`` the states of the group, with the times since which they hold. ``lags`` are those of
    consumers when they were last measured. ``behind`` are the static consumers that own what they owned
    before a generation that they missed, and ``missed`` counts how often any missed some.

    Observers are functions: those in ``before`` receive the time and the event while the timeline still
    has the group as it was, those in ``after`` receive the `Change`. A measure of the load changes nothing,
    not even ``at_ms``: those in ``measured`` receive it with its time, and no others.

    Without ``work`` nobody asks for the partitions on which owners work: ``working``, ``begun``, ``ended``,
    ``idle`` and ``stops`` are empty.
    """

    def __init__(self, *, work: bool = True) -> None:
        self._counts_work = work
        self.at_ms = 0
        self.state, self.generation = "", -1
        self.own_epochs, self.valid_from, self._migrates = False, -1, False
        self.topics: dict[str, int] = {}
        self.deleted: dict[str, int] = {}
        self.members: dict[str, None] = {}
        self.consumers: dict[str, Consumer] = {}
        self.owners: dict[TopicPartition, dict[str, int]] = {}
        self.clients: dict[str, int] = {}
        self.spans: list[tuple[TopicPartition, int, int, int | None]] = []
        self.contested: dict[TopicPartition, None] = {}
        self.working: dict[TopicPartition, int] = {}
        self.idle: dict[TopicPartition, tuple[int, bool]] = {}
        self.stops: list[Stop] = []
        self.processes: dict[str, Consumer] = {}
        self.id_of: dict[str, str] = {}
        self.client_of: dict[str, str] = {}
        self.rates: dict[str, list[tuple[int, tuple[float, ...]]]] = {}
        self.states: list[tuple[int, str]] = []
        self.lags: Mapping[str, float] = {}
        self.behind: set[str] = set()
        self.missed = 0
        self.before: list[Before] = []
        self.after: list[After] = []
        self.measured: list[Measured] = []
        self._given_up: dict[TopicPartition, int] = {}
        self._taken: list[TopicPartition] = []
        self._subscribed: dict[str, int] | None = None
        self._wanted: dict[str, int] | None = None
        self._counted: Mapping[str, int] = {}
        """The topics that were wanted after the last event."""
        self._wants: dict[str, tuple[str, ...]] = {}
        self._starts: Counter[str] = Counter()
        """How often consumers have yet to start."""
        self._made: dict[str, dict[int, TopicPartition]] = {}
        self._folds: dict[type[Any], Callable[[Any], None]] = {
            ev.RunStarted: self._run_started,
            ev.PartitionsAdded: self._partitions_added,
            ev.TopicDeleted: self._topic_deleted,
            ev.MemberStarted: self._member_started,
            ev.ApplicationStarted: self._of_consumer(_application_started),
            ev.MemberStopped: self._member_ended,
            ev.ConsumerFailed: self._member_ended,
            ev.MemberPaused: self._of_consumer(lambda c, e: setattr(c, "paused", not e.in_batch)),
            ev.MemberResumed: self._of_consumer(lambda c, _: setattr(c, "paused", False)),
            ev.MemberCutOff: self._of_consumer(lambda c, _: setattr(c, "cut_off", True)),
            ev.MemberReconnected: self._of_consumer(lambda c, _: setattr(c, "cut_off", False)),
            ev.ClientStateChanged: self._of_consumer(lambda c, e: setattr(c, "state", e.after)),
            ev.RatesChanged: self._rates_changed,
            ev.SubscriptionChanged: self._of_consumer(self._subscription_changed),
            ev.CoordinatorElected: self._coordinator_elected,
            ev.GroupStateChanged: self._state_changed,
            ev.MemberAdded: self._member_added,
            ev.MemberRemoved: self._member_removed,
            ev.MemberReplaced: self._member_replaced,
            ev.GenerationStarted: self._generation_started,
            ev.Joined: self._joined,
            ev.Revoked: self._revoked,
            ev.Lost: self._revoked,
            ev.Assigned: self._assigned,
            ev.WorkStopped: self._of_consumer(self._work_stopped),
            ev.WorkStarted: self._of_consumer(self._work_started),
        }

    def _of_consumer(self, fold: Callable[[Consumer, Any], None]) -> Callable[[Any], None]:
        """Return a fold of events of consumers that run. Those of others change nothing."""

        def folded(event: Any) -> None:
            consumer = self.consumers.get(event.client)
            if consumer is not None:
                fold(consumer, event)

        return folded

    def read(self, trace: Trace) -> None:
        """Apply every event of a trace."""
        events = (line.event for line in trace.events)
        self._starts.update(event.client for event in events if isinstance(event, ev.MemberStarted))
        for line in trace.events:
            self.apply(line.at_ms, line.event)

    def apply(self, at_ms: int, event: ev.Event) -> None:
        """Take over the next event, and pass it to the observers."""
        if isinstance(event, ev.LagMeasured):
            for measured in self.measured:
                measured(at_ms, event)
            self.lags = event.by_client
            return
        for observer in self.before:
            observer(at_ms, event)
        self.at_ms = at_ms
        fold = self._folds.get(type(event))
        if fold is None:
            change = Change(event)
        else:
            self._given_up, self._taken = {}, []
            fold(event)
            work = self._follow_work(event) if self._counts_work else ()
            change = Change(event, self._given_up, self._taken, *work)
        for listener in self.after:
            listener(change)

    @property
    def subscribed(self) -> Mapping[str, int]:
        """The topics that a running consumer subscribes to, with their partitions."""
        if self._subscribed is None:
            self._subscribed = self._counts(consumer.topics for consumer in self.consumers.values())
        return self._subscribed

    @property
    def wanted(self) -> Mapping[str, int]:
        """The topics that a consumer subscribes to, or did when it ended, with their partitions.

        Whoever is closed and does not start again in the trace that is read gives its topics up. Whoever
        crashes does not: after a crash of all of its consumers, a topic stands still.
        """
        if self._wanted is None:
            self._wanted = self._counts(self._wants.values())
        return self._wanted

    def _counts(self, lists: Iterable[tuple[str, ...]]) -> dict[str, int]:
        names = dict.fromkeys(chain.from_iterable(dict.fromkeys(lists)))
        return {name: self.topics[name] for name in names if name in self.topics}

    def is_valid(self, client: str) -> bool:
        """Return whether a consumer is a member of the group, in its present generation or its own epoch."""
        consumer = self.consumers[client]
        is_present = consumer.generation == self.generation
        is_present |= self.own_epochs and consumer.generation >= self.valid_from
        return is_present and consumer.member_id in self.members

    @property
    def index(self) -> TopicIndex:
        """The numbering of all partitions that there have been, those that only owners knew included."""
        counts = {**self.topics, **self.deleted}
        for topic, number in {*self.owners, *[stop.partition for stop in self.stops]}:
            counts[topic] = max(counts.get(topic, 0), number + 1)
        return TopicIndex(counts)

    def stops_going_on(self) -> list[Stop]:
        """Return the stops that have not ended, until now."""
        return [
            Stop(partition, from_ms, self.at_ms, worked) for partition, (from_ms, worked) in self.idle.items()
        ]

    def is_static(self, client: str) -> bool:
        """Return whether the last process of a consumer has an instance id."""
        return client in self.processes and bool(self.processes[client].started.instance_id)

    def rate(self, partition: TopicPartition) -> float:
        """Return the records/s that are produced to a partition."""
        steps = self.rates.get(partition.topic)
        return steps[-1][1][partition.partition] if steps and partition.partition < len(steps[-1][1]) else 0.0

    def partitions(self, listed: ev.PartitionMap) -> list[TopicPartition]:
        """Return the partitions of an event, one by one."""
        found: list[TopicPartition] = []
        for topic, numbers in listed.items():
            made = self._made.setdefault(topic, {})
            found += [made.get(n) or made.setdefault(n, TopicPartition(topic, n)) for n in numbers]
        return found

    # --- topics and consumers

    def _run_started(self, event: ev.RunStarted) -> None:
        self.topics, self._migrates = dict(event.topics), event.protocol == MIGRATION.name
        self.own_epochs = event.own_epochs and not self._migrates
        self._subscribed = self._wanted = None

    def _partitions_added(self, event: ev.PartitionsAdded) -> None:
        self.topics[event.topic] = event.partitions
        self.deleted.pop(event.topic, None)
        self._subscribed = self._wanted = None

    def _topic_deleted(self, event: ev.TopicDeleted) -> None:
        self.deleted[event.topic] = self.topics.pop(event.topic)
        self._subscribed = self._wanted = None

    def _member_started(self, event: ev.MemberStarted) -> None:
        self._member_ended(event)
        self.behind.discard(event.client)
        self.clients.setdefault(event.client, len(self.clients))
        consumer = Consumer(event, tuple(event.topics), handles=event.process_rate)
        self.consumers[event.client] = self.processes[event.client] = consumer
        if self._subscribed is not None and not self._subscribed.keys() >= set(event.topics):
            self._subscribed = None
        self._starts[event.client] -= 1
        self._want(event)

    def _member_ended(self, event: ev.MemberStarted | ev.MemberStopped | ev.ConsumerFailed) -> None:
        consumer = self.consumers.get(event.client)
        if consumer is not None:
            self._give_up(event.client, list(consumer.owned))
            del self.consumers[event.client]
            self._subscribed = None
            consumer.how, consumer.error = getattr(event, "how", "failed"), getattr(event, "error", "")
            if consumer.how == "closed" and not self._starts[event.client]:
                del self._wants[event.client]
                self._wanted = None

    def _rates_changed(self, event: ev.RatesChanged) -> None:
        self.rates.setdefault(event.topic, []).append((self.at_ms, tuple(event.rates)))

    def _subscription_changed(self, consumer: Consumer, event: ev.SubscriptionChanged) -> None:
        consumer.topics = tuple(event.topics)
        self._subscribed = None
        self._want(event)

    def _want(self, event: ev.MemberStarted | ev.SubscriptionChanged) -> None:
        topics = tuple(event.topics)
        if self._wants.get(event.client) != topics:
            self._wants[event.client] = topics
            self._wanted = None

    # --- the group

    def _coordinator_elected(self, event: ev.CoordinatorElected) -> None:
        """Continue from the state in the log. Changes that are not in the log are lost."""
        self.state, self.generation = event.group_state, event.generation
        self.members = dict.fromkeys(event.members)
        if event.group_state:
            self.states.append((self.at_ms, event.group_state))

    def _state_changed(self, event: ev.GroupStateChanged) -> None:
        self.state = event.after
        self.states.append((self.at_ms, event.after))
        if self.begins_again(event):
            self.generation = event.generation
        if self._migrates:
            self._went_over(event.after)
        self.generation = max(self.generation, event.generation)

    def begins_again(self, event: ev.GroupStateChanged) -> bool:
        """Return whether a group is made anew, with numbers of its own.

        It was deleted, or is Empty and becomes one of Kafka's other protocol.
        """
        if self.state == DEAD:
            return True
        if not self._migrates or event.before not in CLASSIC.vacant:
            return False
        return event.after in (CLASSIC if self.own_epochs else RECONCILE).round_begins

    def _went_over(self, state: str) -> None:
        """Note which of Kafka's protocols the group has, where a state tells it."""
        if state in CLASSIC.round_begins:
            self.own_epochs = False
        elif state in RECONCILE.round_begins and not self.own_epochs:
            self.own_epochs, self.valid_from = True, self.generation

    def _member_added(self, event: ev.MemberAdded) -> None:
        self.members[event.member_id] = None

    def _member_removed(self, event: ev.MemberRemoved) -> None:
        self.members.pop(event.member_id, None)

    def _member_replaced(self, event: ev.MemberReplaced) -> None:
        self.members.pop(event.old_member_id, None)
        self.members[event.new_member_id] = None

    def _generation_started(self, event: ev.GenerationStarted) -> None:
        self.generation = event.generation
        self.members = dict.fromkeys(event.members)

    def _joined(self, event: ev.Joined) -> None:
        consumer = self.consumers.get(event.client)
        if consumer is not None:
            is_same, misses = (
                consumer.member_id == event.member_id,
                event.generation > consumer.generation + 1,
            )
            if is_same and misses and self.is_static(event.client):
                self.behind.add(event.client)
                self.missed += 1
            consumer.member_id, consumer.generation = event.member_id, event.generation
            consumer.in_callback = False
        self.id_of[event.client], self.client_of[event.member_id] = event.member_id, event.client

    # --- ownership

    def _revoked(self, event: ev.Revoked | ev.Lost) -> None:
        self._give_up(event.client, self.partitions(event.partitions))
        if type(event) is ev.Lost:
            self.behind.discard(event.client)

    def _assigned(self, event: ev.Assigned) -> None:
        self.behind.discard(event.client)
        consumer = self.consumers.get(event.client)
        if consumer is None:
            return
        consumer.taken_over = event.generation
        owned = dict.fromkeys(self.partitions(event.owned))
        self._give_up(event.client, [p for p in consumer.owned if p not in owned])
        self._taken = [p for p in owned if p not in consumer.owned]
        consumer.owned = owned
        number = self.clients[event.client]
        for partition in self._taken:
            owners = self.owners.setdefault(partition, {})
            owners[event.client] = len(self.spans)
            self.spans.append((partition, number, self.at_ms, None))
            if len(owners) > 1:
                self.contested[partition] = None

    def _work_stopped(self, consumer: Consumer, event: ev.WorkStopped) -> None:
        consumer.stopped.update((p, event.why) for p in self.partitions(event.partitions))
        consumer.in_callback = event.why == "callback"

    def _work_started(self, consumer: Consumer, event: ev.WorkStarted) -> None:
        consumer.in_callback = False
        for partition in self.partitions(event.partitions):
            consumer.stopped.pop(partition, None)

    def _give_up(self, client: str, listed: Iterable[TopicPartition]) -> None:
        """Remove partitions from a consumer. Ignore those that it does not own, and failed consumers."""
        consumer = self.consumers.get(client)
        if consumer is None:
            return
        for partition in listed:
            if partition in consumer.owned:
                del consumer.owned[partition]
                consumer.stopped.pop(partition, None)
                owners = self.owners[partition]
                span = self._given_up[partition] = owners.pop(client)
                self.spans[span] = (*self.spans[span][:3], self.at_ms)
                if len(owners) < 2:
                    self.contested.pop(partition, None)

    def _follow_work(self, event: ev.Event) -> tuple[Any, ...]:
        """Return the partitions on which work has begun or ended, and the further parts of a `Change`."""
        changes = self._taken or self._given_up or type(event) in _WORKING
        if not changes and self.wanted is self._counted:
            return ()
        begun, ended = self._count_workers(event)
        wanted: Sequence[TopicPartition] = ()
        unwanted: Sequence[TopicPartition] = ()
        if self.wanted is not self._counted:
            wanted, unwanted = (
                self._beyond(self.wanted, self._counted),
                self._beyond(self._counted, self.wanted),
            )
            self._counted = self.wanted
        number = len(self.stops)
        for partition in begun:
            self._end_stop(partition)
        for partition in ended:
            if partition.topic in self.wanted:
                self.idle[partition] = self.at_ms, True
        for partition in wanted:
            if partition not in self.working:
                self.idle.setdefault(partition, (self.at_ms, False))
        for partition in unwanted:
            self._end_stop(partition)
        return begun, ended, wanted, unwanted, self.stops[number:]

    def _beyond(self, counts: Mapping[str, int], others: Mapping[str, int]) -> list[TopicPartition]:
        """Return the partitions of topics that are not among others."""
        return self.partitions({t: list(range(others.get(t, 0), count)) for t, count in counts.items()})

    def _end_stop(self, partition: TopicPartition) -> None:
        if partition in self.idle:
            from_ms, worked = self.idle.pop(partition)
            self.stops.append(Stop(partition, from_ms, self.at_ms, worked))

    def _count_workers(self, event: Any) -> tuple[list[TopicPartition], list[TopicPartition]]:
        """Return the partitions on which work has begun by an event, and those on which it has ended."""
        begun: list[TopicPartition] = []
        ended: list[TopicPartition] = []
        consumer = self.consumers.get(event.client) if type(event) in _WORKING else None
        for partition in consumer.owned if consumer is not None else (*self._taken, *self._given_up):
            before = self.working.pop(partition, 0)
            number = 0
            for name in self.owners[partition]:
                number += self.consumers[name].works_on(partition)
            if number:
                self.working[partition] = number
            if bool(number) != bool(before):
                (begun if number else ended).append(partition)
        return begun, ended


def _application_started(consumer: Consumer, event: ev.ApplicationStarted) -> None:
    consumer.batches = event
    if event.records_per_second is not None:
        consumer.handles = event.records_per_second
