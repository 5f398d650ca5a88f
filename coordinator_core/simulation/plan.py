"""A scenario without messages: every change of the group, and the assignment that follows from it.

Much faster than the protocol, for batches. What a trace of it says of rounds, moves and balance is what the
protocol gives where nothing is lost or late: changes that come within a heartbeat's time share a round, a
cooperative round that takes something is followed by another, a static member that is back within its
session gets what it had. It knows nothing of how long rounds take, of lags, and of requests; who is paused,
cut off or crashed is out of the group when the protocol would notice. Assignors that go by the very ids of
members, which a coordinator draws at random, may differ.
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from coordinator_core.assigning.assignor import (
    AnyAssignor,
    compute_assignment,
    subscription_user_data,
    supported_protocols,
    tell_assignment,
)
from coordinator_core.client.config import ClientConfig
from coordinator_core.coordinator.config import CoordinatorConfig
from coordinator_core.documents.replicas import topic_infos
from coordinator_core.documents.scenario import Member, Scenario
from coordinator_core.documents.settings import configured
from coordinator_core.errors import AssignmentError
from coordinator_core.model import (
    NO_GENERATION,
    NO_PARTITIONS,
    Cluster,
    GroupAssignment,
    GroupSubscription,
    Partitions,
    RebalanceProtocol,
    Subscription,
    TopicPartition,
)
from coordinator_core.protocol import events as ev
from coordinator_core.registry import host
from coordinator_core.registry.hookspecs import DEFAULT_PROTOCOL, Strategy
from coordinator_core.registry.registry import Registry
from coordinator_core.simulation.clock import VirtualClock
from coordinator_core.simulation.load import Load
from coordinator_core.traces.trace import Trace

STABLE, PREPARING, EMPTY = "Stable", "PreparingRebalance", "Empty"
NO_BROKER = -1


def plan(scenario: Scenario, strategy: Strategy | str, registry: Registry) -> Trace:
    """The trace of a scenario under a strategy, without messages.

    Raises what `simulate` raises. Equal arguments give equal traces.
    """
    run = PlannedRun(scenario, strategy, registry)
    while (next_ms := run.clock.next_ms()) is not None and next_ms <= scenario.duration_ms:
        run.clock.step()
    run.clock.now_ms = scenario.duration_ms
    return run.finish()


@dataclass(eq=False)
class _Consumer:
    """A process, and its place in the group. It may have ended (not ``runs``) and still be a member.

    ``listed`` is what it owns, one by one and sorted; ``owned`` the same for the assignor.
    """

    member: Member
    instance: str | None
    topics: tuple[str, ...]
    assignor: AnyAssignor
    owned: Partitions = NO_PARTITIONS
    listed: Sequence[TopicPartition] = ()
    generation: int = NO_GENERATION
    joined: bool = False
    runs: bool = True
    started_ms: int = 0
    away_until_ms: int = -1


class PlannedRun:
    """What scenario events work on, as they do on a `simulation.run.Run`."""

    def __init__(self, scenario: Scenario, strategy: Strategy | str, registry: Registry) -> None:
        self.scenario, self.registry = scenario, registry
        self.strategy = registry.strategy(strategy) if isinstance(strategy, str) else strategy
        self.clock = VirtualClock()
        self._client = configured(ClientConfig, scenario.config, group_id=scenario.name)
        self._broker = configured(CoordinatorConfig, scenario.config)
        self._partitions = {name: topic.partitions for name, topic in scenario.topics.items()}
        self._racks = scenario.racks
        self._rates: dict[str, tuple[float, ...]] = {}
        self._load = Load() if self.strategy.provider else None
        self._consumers: dict[str, _Consumer] = {}
        self._members: dict[str, Member] = {}
        self._events: list[ev.TraceEvent] = []
        self._state, self._generation = EMPTY, 0
        self._due = self._waiting = False
        self._known_partitions = dict(self._partitions)
        self.emit(
            ev.RunStarted(
                scenario=scenario.name,
                strategy=self.strategy.name,
                seed=scenario.seed,
                duration_ms=scenario.duration_ms,
                topics=dict(self._partitions),
                racks=scenario.racks,
                protocol="" if self.strategy.protocol == DEFAULT_PROTOCOL else self.strategy.protocol,
            )
        )
        for name, topic in scenario.topics.items():
            for at_ms, rates in topic.rates.steps:
                self.clock.at_first(at_ms, lambda n=name, r=rates: self._next_rates(n, r))  # type: ignore[misc]
        self._begin_with(scenario.running)
        for member in scenario.joining:
            self.clock.at_first(0, lambda m=member: self.start(m))  # type: ignore[misc]
        for event in scenario.events:
            self.clock.at_first(event.at_ms, lambda e=event: self.happen(e.kind, e.arguments))  # type: ignore[misc]

    def emit(self, event: ev.Event) -> None:
        """Put an event into the trace, with the time that it is."""
        self._events.append(ev.TraceEvent(self.clock.now_ms, event))

    def finish(self) -> Trace:
        """The trace so far, closed with a RunEnded."""
        self.emit(ev.RunEnded(group_state=self._state, generation=self._generation, messages={}))
        return Trace(tuple(self._events))

    def happen(self, kind: str, arguments: object) -> None:
        """Carry out a scenario event."""
        self.registry.scenario_events()[kind].apply(self, arguments)

    def changed(self, kind: str, target: str, cause: str = "") -> None:
        """Something is done to the group from outside."""
        self.emit(ev.Changed(kind=kind, target=target, cause=cause))

    def _begin_with(self, running: Sequence[Member]) -> None:
        """The group that is there before anything happens."""
        if not running:
            return
        self._state, self._generation = STABLE, running[0].generation
        self.emit(
            ev.CoordinatorElected(
                node=NO_BROKER,
                groups=1,
                group_state=STABLE,
                generation=self._generation,
                members=[_member_id(member) for member in running],
            )
        )
        for member in running:
            self.clock.at_first(0, lambda m=member: self._go_on(m))  # type: ignore[misc]

    def _go_on(self, member: Member) -> None:
        """A member of that group works on what it owns."""
        consumer = self._launched(member)
        consumer.joined = True
        consumer.listed = member.owned or ()
        self._say_joined(consumer)
        self._assign(consumer, consumer.listed)

    # --- what scenario events do

    def start(self, member: Member) -> None:
        """Start a consumer; a static one that the group still has gets what it had."""
        name = member.id
        before = self._consumers.get(name)
        if before is not None and before.runs:
            self._end(before, "closed")
        consumer = self._launched(member)
        if (
            before is not None
            and before.joined
            and before.instance is not None
            and before.instance == consumer.instance
        ):
            self._take_place(consumer, before)
        else:
            if before is not None and before.joined:
                self._remove(before)
            consumer.joined = True
            self._round_soon(f"{name} joined", first=self._generation == 0)

    def _launched(self, member: Member) -> _Consumer:
        name = member.id
        self._members[name] = member
        instance = member.instance_id or (name if self.strategy.static else None)
        topics = self._topics_of(member.topics, member.pattern)
        self.emit(
            ev.MemberStarted(
                client=name,
                instance_id=instance,
                topics=list(topics),
                process_rate=member.process_rate,
                rack=member.rack,
            )
        )
        assignor = self.registry.build(self.strategy, _PlannedHost(self.clock, self._load, member))
        consumer = _Consumer(member, instance, topics, assignor, started_ms=self.clock.now_ms)
        self._consumers[name] = consumer
        return consumer

    def _take_place(self, consumer: _Consumer, before: _Consumer) -> None:
        """A static member is back under its instance id (KIP-345)."""
        consumer.joined = True
        before.joined = False
        if consumer.topics != before.topics or self._due or before.generation != self._generation:
            self._round_soon(f"{consumer.member.id} is back with another subscription")
            if self._waiting:
                self._rebalance()
            return
        self._say_joined(consumer)
        self._assign(consumer, before.listed)

    def _say_joined(self, consumer: _Consumer) -> None:
        """In the generation that there is, without a round."""
        self.emit(
            ev.Joined(
                client=consumer.member.id,
                member_id=_member_id(consumer.member),
                generation=self._generation,
                protocol=consumer.assignor.name,
                leader=consumer is self._leader(),
            )
        )

    def leave(self, name: str) -> None:
        """Close a consumer; a static one stays a member until its session ends."""
        consumer = self._consumers[name]
        if consumer.runs:
            self._end(consumer, "closed")

    def crash(self, name: str) -> None:
        """A consumer vanishes, and is missed at the end of its session."""
        consumer = self._consumers[name]
        if consumer.runs:
            self._end(consumer, "crashed")

    def _end(self, consumer: _Consumer, how: str) -> None:
        consumer.runs = False
        self.emit(ev.MemberStopped(client=consumer.member.id, how=how))
        if how == "closed" and consumer.instance is None:
            self._remove(consumer)
        else:
            self.clock.after(self._client.session_timeout_ms, lambda: self._remove(consumer))

    def _remove(self, consumer: _Consumer) -> None:
        if consumer.joined:
            consumer.joined = False
            self._round_soon(f"{consumer.member.id} left")
            if self._waiting:
                self._rebalance()

    def restart(self, name: str) -> None:
        """Start a consumer of that name again; one that runs is closed first."""
        self.start(self._members[name])

    def pause(self, name: str, for_ms: int) -> None:
        """A consumer stands still; longer than max.poll.interval.ms, and it leaves until it goes on."""
        consumer = self._consumers[name]
        if consumer.runs:
            self.emit(ev.MemberPaused(client=name))
            self._away(consumer, for_ms, self._client.max_poll_interval_ms)

    def cut(self, name: str, for_ms: int) -> None:
        """A consumer is cut off; longer than its session, and it is out until it is back."""
        consumer = self._consumers[name]
        if consumer.runs:
            self.emit(ev.MemberCutOff(client=name))
            self._away(consumer, for_ms, self._client.session_timeout_ms)

    def _away(self, consumer: _Consumer, for_ms: int, patience_ms: int) -> None:
        consumer.away_until_ms = max(consumer.away_until_ms, self.clock.now_ms + for_ms)
        if for_ms > patience_ms:
            self.clock.after(patience_ms, lambda: self._drop(consumer))
        self.clock.after(for_ms, lambda: self._back(consumer))

    def _drop(self, consumer: _Consumer) -> None:
        if consumer.runs and consumer.joined:
            self._give_up(consumer, consumer.listed, lost=True)
            self._remove(consumer)

    def _back(self, consumer: _Consumer) -> None:
        if not consumer.runs or self.clock.now_ms < consumer.away_until_ms:
            return
        self.emit(ev.MemberResumed(client=consumer.member.id))
        self.emit(ev.MemberReconnected(client=consumer.member.id))
        if not consumer.joined:
            consumer.joined = True
            self._round_soon(f"{consumer.member.id} joined")
        elif self._waiting:
            self._rebalance()

    def calm(self) -> None:
        """Nothing is lost or late here anyway."""

    def coordinator_failover(self, down_ms: int) -> None:  # noqa: ARG002 - as a run has it
        """The group outlives its coordinator, and no round follows."""
        self.changed("coordinator_failover", "broker")

    def subscribe(self, name: str, topics: tuple[str, ...], pattern: str | None) -> None:
        """A consumer subscribes to something else."""
        consumer = self._consumers[name]
        if consumer.runs:
            before, consumer.topics = consumer.topics, self._topics_of(topics, pattern)
            self.emit(ev.SubscriptionChanged(client=name, topics=list(consumer.topics)))
            if consumer.topics != before:
                self._round_soon(f"{name} subscribed to something else")

    def add_partitions(self, topic: str, count: int) -> None:
        """A topic grows; the leader sees it when it refreshes its metadata."""
        self._partitions[topic] = count
        self.emit(ev.PartitionsAdded(topic=topic, partitions=count))
        self._next_rates(topic, self.scenario.topics[topic].rates.resized(self._rates[topic], count))
        leader, age_ms = self._leader(), self._client.metadata_max_age_ms
        if leader is not None:
            rest_ms = (self.clock.now_ms - leader.started_ms) % age_ms
            self.clock.after(age_ms - rest_ms, self._notice_partitions)

    def _leader(self) -> _Consumer | None:
        return next((c for c in self._consumers.values() if c.joined), None)

    def _notice_partitions(self) -> None:
        if self._known_partitions != self._partitions and any(c.joined for c in self._consumers.values()):
            self._round_soon("partitions of a subscribed topic changed")

    def rolling_restart(self, every_ms: int, down_ms: int) -> None:
        """Close and start again every consumer that runs now, one after another, in the order they came."""
        names = [name for name, consumer in self._consumers.items() if consumer.runs]
        self.changed("rolling_restart", f"{len(names)} members")
        for i, name in enumerate(names):
            self.clock.after(i * every_ms, lambda n=name: self._bounce(n, down_ms))  # type: ignore[misc]

    def _bounce(self, name: str, down_ms: int) -> None:
        consumer = self._consumers[name]
        if not consumer.runs:
            return
        self.changed("leave", name, "rolling_restart")
        self._end(consumer, "closed")
        self.clock.after(down_ms, lambda: self._bounced(name, consumer))

    def _bounced(self, name: str, consumer: _Consumer) -> None:
        if self._consumers[name] is consumer:
            self.changed("restart", name, "rolling_restart")
            self.start(self._members[name])

    def _topics_of(self, topics: tuple[str, ...], pattern: str | None) -> tuple[str, ...]:
        if pattern is None:
            return topics
        return tuple(topic for topic in self._partitions if re.fullmatch(pattern, topic))

    def _next_rates(self, topic: str, rates: tuple[float, ...]) -> None:
        rates = self.scenario.topics[topic].rates.resized(rates, self._partitions[topic])
        self._rates[topic] = rates
        self.emit(ev.RatesChanged(topic=topic, rates=list(rates)))
        if self._load is not None:
            self._load.set_rates(topic, rates, now_ms=self.clock.now_ms)

    # --- rounds

    def _round_soon(self, cause: str, *, first: bool = False) -> None:
        """A round, once everybody has heard of it; whatever changes until then shares it."""
        if self._due:
            return
        self._due = True
        self._to_state(PREPARING, cause)
        delay_ms = self._client.heartbeat_interval_ms
        if first:
            delay_ms += self._broker.initial_rebalance_delay_ms
        self.clock.after(delay_ms, self._rebalance)

    def _to_state(self, after: str, cause: str) -> None:
        if after != self._state:
            self.emit(
                ev.GroupStateChanged(
                    group=self.scenario.name,
                    before=self._state,
                    after=after,
                    generation=self._generation,
                    cause=cause,
                )
            )
            self._state = after

    def _rebalance(self) -> None:
        """A round, once everybody is there: the first member leads, everybody gets what it is given."""
        absent = any(c.joined and self._is_absent(c) for c in self._consumers.values())
        self._waiting = absent
        if absent:
            return  # the round ends when they are back, or out of the group
        self._due = False
        members = {_member_id(c.member): c for c in self._consumers.values() if c.joined}
        if not members:
            self._to_state(EMPTY, "the last member left")
            return
        leader = next(iter(members.values()))
        cooperative = RebalanceProtocol.COOPERATIVE in supported_protocols(leader.assignor)
        for consumer in members.values():
            kept = frozenset(consumer.topics) if cooperative else frozenset()
            self._give_up(consumer, [tp for tp in consumer.listed if tp.topic not in kept])
        self._known_partitions = dict(self._partitions)
        assignment = self._computed(leader, members)
        self._generation += 1
        self._announce(leader, members, assignment)
        again = False
        for member_id, consumer in members.items():
            again |= self._assign(consumer, sorted(assignment[member_id]))
        if again and cooperative:
            self._round_soon("partitions were given up")

    def _is_absent(self, consumer: _Consumer) -> bool:
        return not consumer.runs or self.clock.now_ms < consumer.away_until_ms

    def _computed(self, leader: _Consumer, members: Mapping[str, _Consumer]) -> GroupAssignment:
        group = GroupSubscription(
            {
                member_id: Subscription(
                    topics=c.topics,
                    owned=c.owned,
                    generation=c.generation,
                    rack=c.member.rack,
                    instance_id=c.instance,
                    user_data=subscription_user_data(c.assignor, c.topics),
                )
                for member_id, c in members.items()
            }
        )
        try:
            cluster = Cluster(topic_infos(self._wanted(members), self._racks))
            return compute_assignment(leader.assignor, cluster, group)
        except AssignmentError as problem:
            where = f"group {self.scenario.name!r} ({len(members)} members)"
            raise problem.of(where) from None

    def _wanted(self, members: Mapping[str, _Consumer]) -> dict[str, int]:
        topics = dict.fromkeys(t for c in members.values() for t in c.topics)
        return {t: self._partitions[t] for t in topics if t in self._partitions}

    def _announce(
        self, leader: _Consumer, members: Mapping[str, _Consumer], assignment: GroupAssignment
    ) -> None:
        generation, protocol = self._generation, leader.assignor.name
        self.emit(
            ev.GenerationStarted(
                group=self.scenario.name,
                generation=generation,
                protocol=protocol,
                leader=_member_id(leader.member),
                members=list(members),
            )
        )
        for member_id, c in members.items():
            self.emit(
                ev.Joined(
                    client=c.member.id,
                    member_id=member_id,
                    generation=generation,
                    protocol=protocol,
                    leader=c is leader,
                )
            )
        self.emit(
            ev.AssignmentComputed(
                client=leader.member.id,
                generation=generation,
                assignor=protocol,
                members={m: list(c.topics) for m, c in members.items()},
                payload_bytes=0,
                report=dict(assignment.report),
            )
        )
        self._to_state(STABLE, "assigned")

    def _assign(self, consumer: _Consumer, given: Sequence[TopicPartition]) -> bool:
        """A consumer takes over what it is given, sorted; whether it had to give something up."""
        before, after = frozenset(consumer.listed), frozenset(given)
        revoked = [tp for tp in consumer.listed if tp not in after]
        client, generation = consumer.member.id, self._generation
        if revoked:
            self.emit(ev.Revoked(client=client, generation=generation, partitions=_by_topic(revoked)))
        owned = _by_topic(given)
        consumer.listed, consumer.owned, consumer.generation = given, Partitions(owned), generation
        tell_assignment(consumer.assignor, consumer.owned, generation)
        added = [tp for tp in given if tp not in before] if before else given
        self.emit(
            ev.Assigned(
                client=client,
                generation=generation,
                added=_by_topic(added),
                owned=owned,
            )
        )
        return bool(revoked)

    def _give_up(
        self, consumer: _Consumer, given_up: Sequence[TopicPartition], *, lost: bool = False
    ) -> None:
        """Before it joins: all of it when eager, else what it no longer subscribes to."""
        if given_up:
            kind = ev.Lost if lost else ev.Revoked
            partitions = _by_topic(given_up)
            self.emit(kind(client=consumer.member.id, generation=consumer.generation, partitions=partitions))
            gone = frozenset(given_up)
            consumer.listed = [tp for tp in consumer.listed if tp not in gone]
            consumer.owned = Partitions(_by_topic(consumer.listed))


class _PlannedHost:
    """What a provider may ask: rates are the scenario's, and there are no lags."""

    def __init__(self, clock: VirtualClock, load: Load | None, member: Member) -> None:
        self._clock, self._load, self._member = clock, load, member

    def now_ms(self) -> int:
        return self._clock.now_ms

    def seen(self, partitions: Iterable[TopicPartition]) -> Mapping[TopicPartition, host.Seen]:
        return {tp: host.Seen(produced, 0.0) for tp, (produced, _, _) in self._found(partitions).items()}

    def loads(self) -> Mapping[TopicPartition, host.Load]:
        everything = [] if self._load is None else self._load.partitions()
        return {tp: host.Load(rate, 0.0) for tp, (_, _, rate) in self._found(everything).items()}

    def capacity(self) -> float | None:
        return self._member.process_rate

    def _found(
        self, partitions: Iterable[TopicPartition]
    ) -> dict[TopicPartition, tuple[float, float, float]]:
        return {} if self._load is None else self._load.seen(partitions, now_ms=self._clock.now_ms)


def _member_id(member: Member) -> str:
    """Sorts among others as the ids that a coordinator makes of names: the name, a hyphen, and more."""
    return f"{member.id}-"


def _by_topic(partitions: Iterable[TopicPartition]) -> dict[str, list[int]]:
    listed: dict[str, list[int]] = {}
    for topic, number in partitions:
        listed.setdefault(topic, []).append(number)
    return listed
