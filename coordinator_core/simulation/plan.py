"""A scenario without messages: every change of the group, and the assignment that follows from it.

A plan is much faster than a run, for batches. Its rounds, moves and balance are those of the protocol if
nothing is lost or late. Changes within a heartbeat interval share a round. A cooperative round that revokes
partitions is followed by another one. A static member that is back within its session gets what it had. A
plan does not know how long rounds take, and has no lags and no requests. A member that is paused, cut off or
crashed is out of the group when the protocol would notice. Assignors that depend on the ids of members, which
a coordinator draws at random, may differ.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from coordinator_core.assigning.assignor import Assignor, is_cooperative
from coordinator_core.assigning.computing import compute_assignment
from coordinator_core.client.config import ClientConfig
from coordinator_core.coordinator.classic.states import GroupState
from coordinator_core.documents.replicas import topic_infos
from coordinator_core.documents.scenario import Member, Scenario
from coordinator_core.errors import AssignmentError, InputError
from coordinator_core.families.family import family_for
from coordinator_core.model import (
    NO_GENERATION,
    NO_PARTITIONS,
    Cluster,
    GroupAssignment,
    GroupSubscription,
    Partitions,
    Subscription,
    TopicPartition,
)
from coordinator_core.protocol import events as ev
from coordinator_core.registry.hookspecs import Strategy
from coordinator_core.registry.registry import Registry
from coordinator_core.simulation.host import SimulatedHost
from coordinator_core.simulation.load import Load
from coordinator_core.simulation.stage import Stage
from coordinator_core.traces.trace import Trace

STABLE, PREPARING = GroupState.STABLE.value, GroupState.PREPARING_REBALANCE.value
EMPTY = GroupState.EMPTY.value
NO_BROKER = -1


def plan(scenario: Scenario, strategy: Any, registry: Registry) -> Trace:
    """Return the trace of a scenario under a strategy, without messages. Equal arguments give equal traces.

    Raises:
        InputError, PluginError, AssignmentError: as `simulation.run.simulate`.
    """
    run = PlannedRun(scenario, strategy, registry)
    while (next_ms := run.clock.next_ms()) is not None and next_ms <= scenario.duration_ms:
        run.clock.step()
    run.clock.now_ms = scenario.duration_ms
    return run.finish()


@dataclass(eq=False)
class _Consumer:
    """A process, and its place in the group. A process that has ended may still be a member (``joined``).

    ``listed`` are the partitions that it owns, sorted; ``owned`` are the same for the assignor.
    """

    member: Member
    instance: str | None
    topics: tuple[str, ...]
    pattern: str | None
    assignor: Assignor
    config: ClientConfig
    end: "Callable[[_Consumer, str], None]"
    owned: Partitions = NO_PARTITIONS
    listed: Sequence[TopicPartition] = ()
    generation: int = NO_GENERATION
    joined: bool = False
    is_running: bool = True
    is_stuck: bool = False
    started_ms: int = 0
    away_until_ms: int = -1

    @property
    def ended(self) -> bool:
        return not self.is_running

    def when_ended(self, action: Callable[[], None]) -> None:
        """Close at once, as a new process of the same name starts."""
        self.close()
        action()

    def close(self) -> None:
        self.end(self, "closed")

    def crash(self) -> None:
        self.end(self, "crashed")


def check_planned(strategy: Strategy, registry: Registry) -> None:
    """Check that a strategy can be simulated without messages.

    Raises:
        InputError: if its protocol has no plan, or if lost partitions wait for their owners.
    """
    where, expected = f"strategy {strategy.name!r}", "a simulation with messages"
    if not registry.protocol(strategy.protocol).planned:
        found = f"the protocol {strategy.protocol!r}, which has no plan without messages"
        raise InputError(where, found, expected)
    if strategy.delay_ms is not None:
        raise InputError(where, "a delay, after which members join again by themselves", expected)


class PlannedRun:
    """A simulation without messages."""

    def __init__(self, scenario: Scenario, strategy: Any, registry: Registry) -> None:
        self.scenario, self.registry = scenario, registry
        self.strategy = registry.strategy(strategy)
        check_planned(self.strategy, registry)
        family = family_for(scenario, self.strategy, registry)
        if scenario.has_assignors:
            found = "assignors of single members, among which a plan does not choose"
            raise InputError(f"scenario {scenario.name!r}", found, "a simulation with messages")
        self._family = family
        self._client = family.client_config(group_id=scenario.name)
        self._broker = family.coordinator_config()
        self._load = Load() if self.strategy.provider else None
        self.stage: Stage[_Consumer] = Stage(self, scenario, self.strategy, registry, self._load)
        self.clock = self.stage.clock
        self._state, self._generation = EMPTY, 0
        self._due = self._waiting = False
        self._known_partitions = dict(self.stage.partitions)
        self.stage.begin()
        for name, topic in scenario.topics.items():
            for at_ms, rates in topic.rates.steps:
                self.clock.at_first(at_ms, lambda n=name, r=rates: self.stage.set_rates(n, r))  # type: ignore[misc]
        self._begin_with(scenario.running)
        for member in scenario.joining:
            self.clock.at_first(0, lambda m=member: self.stage.start(m))  # type: ignore[misc]
        for event in scenario.events:
            self.stage.schedule(event)

    def finish(self) -> Trace:
        """Return the trace so far, closed with a RunEnded."""
        return self.stage.finish(self._state, self._generation, {})

    def _begin_with(self, running: Sequence[Member]) -> None:
        """Begin with a group that is at rest."""
        if not running:
            return
        self._state, self._generation = STABLE, running[0].generation
        self.stage.emit(
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
        """Let a member of that group work on its partitions."""
        consumer = self.stage.launch(member)
        consumer.joined = True
        consumer.listed = member.owned or ()
        self._say_joined(consumer)
        self._assign(consumer, consumer.listed)

    # --- what the stage needs (`stage.Simulation`)

    def launch(self, member: Member) -> _Consumer:
        """Return a new process."""
        return _Consumer(
            member,
            self.stage.instance_of(member),
            self.stage.topics_of(member.topics, member.pattern),
            member.pattern,
            self.registry.build(
                self.strategy, SimulatedHost(self.clock, self._load, member.process_rate, lags=False)
            ),
            self._family.client_config(member.overrides.config, group_id=self.scenario.name),
            self._end,
            started_ms=self.clock.now_ms,
        )

    def join(self, consumer: _Consumer, before: _Consumer | None) -> None:
        """Let a process join. A static member that is still in the group gets what it had."""
        joined = before is not None and before.joined
        if (
            before is not None
            and joined
            and before.instance is not None
            and before.instance == consumer.instance
        ):
            self._take_place(consumer, before)
            return
        if before is not None and joined:
            self._remove(before)
        consumer.joined = True
        self._round_soon(f"{consumer.member.id} joined", first=self._generation == 0)

    def _take_place(self, consumer: _Consumer, before: _Consumer) -> None:
        """Let a static member take the place of its last process (KIP-345)."""
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
        """Report that a consumer is in the current generation, without a round."""
        self.stage.emit(
            ev.Joined(
                client=consumer.member.id,
                member_id=_member_id(consumer.member),
                generation=self._generation,
                protocol=consumer.assignor.name,
                leader=consumer is self._leader(),
            )
        )

    def _end(self, consumer: _Consumer, how: str) -> None:
        consumer.is_running = False
        self.stage.emit(ev.MemberStopped(client=consumer.member.id, how=how))
        if how == "closed" and consumer.instance is None:
            self._remove(consumer)
        else:
            self.clock.after(consumer.config.session_timeout_ms, lambda: self._remove(consumer))

    def _remove(self, consumer: _Consumer) -> None:
        if consumer.joined:
            consumer.joined = False
            self._round_soon(f"{consumer.member.id} left")
            if self._waiting:
                self._rebalance()

    def pause(self, consumer: _Consumer, for_ms: int) -> None:
        """Let a consumer stand still. After max.poll.interval.ms it leaves until it continues."""
        self.stage.emit(ev.MemberPaused(client=consumer.member.id))
        self._away(consumer, for_ms, consumer.config.max_poll_interval_ms)

    def freeze(self, consumer: _Consumer, for_ms: int) -> None:
        """Let a process stand still. After its session it is out of the group until it continues."""
        self.stage.emit(ev.MemberPaused(client=consumer.member.id))
        self._away(consumer, for_ms, consumer.config.session_timeout_ms)

    def cut(self, name: str, for_ms: int) -> None:
        """Cut a consumer off. After its session it is out of the group until it is back."""
        consumer = self.stage.consumers[name]
        if consumer.is_running:
            self.stage.emit(ev.MemberCutOff(client=name))
            self._away(consumer, for_ms, consumer.config.session_timeout_ms)

    def _away(self, consumer: _Consumer, for_ms: int, patience_ms: int) -> None:
        consumer.away_until_ms = max(consumer.away_until_ms, self.clock.now_ms + for_ms)
        if for_ms > patience_ms:
            self.clock.after(patience_ms, lambda: self._drop(consumer))
        self.clock.after(for_ms, lambda: self._back(consumer))

    def _drop(self, consumer: _Consumer) -> None:
        if consumer.is_running and consumer.joined:
            self._give_up(consumer, consumer.listed, lost=True)
            self._remove(consumer)

    def _back(self, consumer: _Consumer) -> None:
        if not consumer.is_running or self.clock.now_ms < consumer.away_until_ms:
            return
        self.stage.emit(ev.MemberResumed(client=consumer.member.id))
        self.stage.emit(ev.MemberReconnected(client=consumer.member.id))
        if not consumer.joined:
            consumer.joined = True
            self._round_soon(f"{consumer.member.id} joined")
        elif self._waiting:
            self._rebalance()

    def calm(self) -> None:
        """Do nothing: no message is lost or late."""

    def coordinator_failover(self, down_ms: int) -> None:  # noqa: ARG002 - the interface's
        """Record the change. The group outlives its coordinator, and no round follows."""
        self.stage.changed("coordinator_failover", "broker")

    def subscribe(self, consumer: _Consumer, topics: tuple[str, ...], pattern: str | None) -> None:
        """Change the subscription of a consumer, with a round if its topics differ."""
        before, consumer.topics = consumer.topics, self.stage.topics_of(topics, pattern)
        consumer.pattern = pattern
        if consumer.topics != before:
            self._round_soon(f"{consumer.member.id} subscribed to something else")

    def remove_member(self, name: str) -> None:
        """Remove a consumer from the group. If it is present, it joins again in the same round."""
        consumer = self.stage.consumers.get(name)
        if consumer is None or not consumer.joined:
            return
        present = not self._is_absent(consumer)
        if consumer.is_running:
            self._give_up(consumer, consumer.listed, lost=True)
        self._remove(consumer)
        consumer.joined = present

    def lag_view(self, name: str, by_ms: int) -> None:
        """Do nothing: no view is late."""

    def partitions_added(self) -> None:
        """Let the leader and patterns see the partitions when their consumers refresh their metadata."""
        for consumer in self.stage.consumers.values():
            if consumer.joined and (consumer is self._leader() or consumer.pattern is not None):
                age_ms = consumer.config.metadata_max_age_ms
                rest_ms = (self.clock.now_ms - consumer.started_ms) % age_ms
                self.clock.after(age_ms - rest_ms, lambda c=consumer: self._notice_partitions(c))  # type: ignore[misc]

    def topic_deleted(self, topic: str) -> None:
        """Let its owners see the end of a topic at once, the others when they refresh their metadata."""
        for consumer in self.stage.consumers.values():
            if any(tp.topic == topic for tp in consumer.listed):
                self.clock.after(0, lambda c=consumer: self._notice_partitions(c))  # type: ignore[misc]
        self.partitions_added()

    def _leader(self) -> _Consumer | None:
        return next((c for c in self.stage.consumers.values() if c.joined), None)

    def _notice_partitions(self, consumer: _Consumer) -> None:
        if not (consumer.joined and consumer.is_running):
            return
        before = consumer.topics
        if consumer.pattern is not None:
            consumer.topics = self.stage.topics_of((), consumer.pattern)
        if consumer.topics != before:
            self._round_soon("the subscription changed")
        elif consumer is self._leader() and self._subscribed_topics_changed():
            self._round_soon("partitions of a subscribed topic changed")

    def _subscribed_topics_changed(self) -> bool:
        topics = dict.fromkeys(t for c in self.stage.consumers.values() if c.joined for t in c.topics)
        return any(self._known_partitions.get(t) != self.stage.partitions.get(t) for t in topics)

    # --- rounds

    def _round_soon(self, cause: str, *, first: bool = False) -> None:
        """Begin a round that ends after a heartbeat interval. Further changes until then share it."""
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
            self.stage.emit(
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
        """End a round when all members are present. The first member leads and computes the assignment."""
        absent = any(c.joined and self._is_absent(c) for c in self.stage.consumers.values())
        self._waiting = absent
        if absent:
            return  # the round ends when they are back or out of the group
        self._due = False
        members = {_member_id(c.member): c for c in self.stage.consumers.values() if c.joined}
        if not members:
            self._to_state(EMPTY, "the last member left")
            return
        leader = next(iter(members.values()))
        cooperative = is_cooperative(leader.assignor)
        for consumer in members.values():
            kept = frozenset(consumer.topics) if cooperative else frozenset()
            self._give_up(consumer, [tp for tp in consumer.listed if tp.topic not in kept])
        self._known_partitions = dict(self.stage.partitions)
        assignment = self._computed(leader, members)
        self._generation += 1
        self._announce(leader, members, assignment)
        again = False
        for member_id, consumer in members.items():
            again |= self._assign(consumer, sorted(assignment[member_id]))
        if again and cooperative:
            self._round_soon("partitions were given up")

    def _is_absent(self, consumer: _Consumer) -> bool:
        return not consumer.is_running or self.clock.now_ms < consumer.away_until_ms

    def _computed(self, leader: _Consumer, members: Mapping[str, _Consumer]) -> GroupAssignment:
        group = GroupSubscription(
            {
                member_id: Subscription(
                    topics=c.topics,
                    owned=c.owned,
                    generation=c.generation,
                    rack=c.member.rack,
                    instance_id=c.instance,
                    user_data=c.assignor.subscription_user_data(c.topics),
                )
                for member_id, c in members.items()
            }
        )
        try:
            cluster = Cluster(topic_infos(self._wanted(members), self.scenario.racks))
            return compute_assignment(leader.assignor, cluster, group)
        except AssignmentError as error:
            where = f"group {self.scenario.name!r} ({len(members)} members)"
            raise error.of(where) from None

    def _wanted(self, members: Mapping[str, _Consumer]) -> dict[str, int]:
        topics = dict.fromkeys(t for c in members.values() for t in c.topics)
        return {t: self.stage.partitions[t] for t in topics if t in self.stage.partitions}

    def _announce(
        self, leader: _Consumer, members: Mapping[str, _Consumer], assignment: GroupAssignment
    ) -> None:
        generation, protocol = self._generation, leader.assignor.name
        self.stage.emit(
            ev.GenerationStarted(
                group=self.scenario.name,
                generation=generation,
                protocol=protocol,
                leader=_member_id(leader.member),
                members=list(members),
            )
        )
        for member_id, c in members.items():
            self.stage.emit(
                ev.Joined(
                    client=c.member.id,
                    member_id=member_id,
                    generation=generation,
                    protocol=protocol,
                    leader=c is leader,
                )
            )
        self.stage.emit(
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
        """Let a consumer take over its sorted partitions. Return whether it revoked any."""
        before, after = frozenset(consumer.listed), frozenset(given)
        revoked = [tp for tp in consumer.listed if tp not in after]
        client, generation = consumer.member.id, self._generation
        if revoked:
            self.stage.emit(ev.Revoked(client=client, generation=generation, partitions=_by_topic(revoked)))
        owned = _by_topic(given)
        consumer.listed, consumer.owned, consumer.generation = given, Partitions(owned), generation
        consumer.assignor.on_assignment(consumer.owned, generation)
        added = _by_topic([tp for tp in given if tp not in before]) if before else owned
        self.stage.emit(ev.Assigned(client=client, generation=generation, added=added, owned=owned))
        return bool(revoked)

    def _give_up(
        self, consumer: _Consumer, given_up: Sequence[TopicPartition], *, lost: bool = False
    ) -> None:
        """Take partitions from a consumer, before it joins or because it was dropped."""
        if given_up:
            kind = ev.Lost if lost else ev.Revoked
            partitions = _by_topic(given_up)
            self.stage.emit(
                kind(client=consumer.member.id, generation=consumer.generation, partitions=partitions)
            )
            if len(given_up) == len(consumer.listed):
                consumer.listed, consumer.owned = (), NO_PARTITIONS
                return
            removed = frozenset(given_up)
            consumer.listed = [tp for tp in consumer.listed if tp not in removed]
            consumer.owned = Partitions(_by_topic(consumer.listed))


def _member_id(member: Member) -> str:
    """Return an id that sorts as those of a coordinator: the name, a hyphen, and more."""
    return f"{member.id}-"


def _by_topic(partitions: Iterable[TopicPartition]) -> dict[str, list[int]]:
    listed: dict[str, list[int]] = {}
    for topic, number in partitions:
        listed.setdefault(topic, []).append(number)
    return listed
