"""A group without messages: its members and its rounds in the course of a scenario.

A plan is much faster than a run, for batches. Its rounds, moves and balance are those of the protocol if
nothing is lost or late. Changes within a heartbeat interval share a round. A cooperative round that revokes
partitions is followed by another one. A static member that is back within its session gets what it had. A
plan does not know how long rounds take, and has no lags and no requests. A member that is paused, cut off or
crashed is out of the group when the protocol would notice. Assignors that depend on the ids of members, which
a coordinator draws at random, may differ.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Generic, Protocol, TypeVar

from coordinator_core.client.config import ClientConfig
from coordinator_core.coordinator.classic.states import GroupState
from coordinator_core.errors import InputError
from coordinator_core.model import NO_GENERATION, Cluster
from coordinator_core.protocol import events as ev
from coordinator_core.registry.hookspecs import Strategy
from coordinator_core.registry.registry import Registry
from rebalance_lab.scenarios.replicas import topic_infos
from rebalance_lab.scenarios.scenario import Member, Scenario
from rebalance_lab.simulation.process.batches import Batches
from rebalance_lab.simulation.process.load import Load
from rebalance_lab.simulation.simulation import Simulation

STABLE, PREPARING = GroupState.STABLE.value, GroupState.PREPARING_REBALANCE.value
EMPTY = GroupState.EMPTY.value


@dataclass(eq=False)
class PlannedConsumer:
    """A process, and its place in the group. A process that has ended may still be a member (``joined``).

    ``holding`` is what the `Owners` keep of it.
    """

    member: Member
    instance: str | None
    topics: tuple[str, ...]
    pattern: str | None
    config: ClientConfig
    end: "Callable[[PlannedConsumer, str], None]"
    holding: Any = None
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


class Owners(Protocol):
    """What the members of a planned group own, and the generation of those that take partitions over."""

    def elected(self, running: Sequence[Member], generation: int) -> None:
        """Begin with a group that is at rest, whose members take over what they own one after the other."""

    def launched(self, consumer: PlannedConsumer) -> None:
        """Note a new process, which owns nothing."""

    def stopped(self, consumer: PlannedConsumer, how: str) -> None:
        """Take all partitions from a process that has ended."""

    def lost(self, consumer: PlannedConsumer) -> None:
        """Take all partitions from a consumer that is removed from the group."""

    def take_over(self, consumer: PlannedConsumer, before: PlannedConsumer | None, *, leads: bool) -> None:
        """Let a consumer join without a round, with what `before` owned, or what its running group owned."""

    def owns(self, consumer: PlannedConsumer, topic: str) -> bool:
        """Return whether a consumer owns partitions of a topic."""

    def state_changed(self, before: str, after: str, cause: str) -> None:
        """Note a state of the group."""

    def compute(self, members: Mapping[str, PlannedConsumer]) -> None:
        """Let members revoke what they give up before they join, and compute their assignment.

        The first member leads.
        """

    def announce(self, members: Mapping[str, PlannedConsumer], generation: int) -> None:
        """Begin a generation with the assignment that was computed last."""

    def hand_out(self, members: Mapping[str, PlannedConsumer], generation: int) -> bool:
        """Let the members take over this assignment. Return whether another round has to follow."""


O_co = TypeVar("O_co", bound=Owners, covariant=True)


class PlannedRun(Simulation[PlannedConsumer], Generic[O_co]):
    """A simulation without messages. ``own`` makes the ``owners`` of its partitions."""

    def __init__(
        self,
        scenario: Scenario,
        strategy: Strategy,
        registry: Registry,
        own: "Callable[[PlannedRun[Any]], O_co]",
    ) -> None:
        check_planned(strategy, registry)
        self.load = Load() if strategy.provider else None
        super().__init__(scenario, strategy, registry, self.load)
        if self.family.spec.of_scenarios:
            found = "members of another protocol, for which there is no plan without messages"
            raise InputError(f"scenario {scenario.name!r}", found, "a simulation with messages")
        if scenario.assignors_of_members:
            found = "assignors of single members, among which a plan does not choose"
            raise InputError(f"scenario {scenario.name!r}", found, "a simulation with messages")
        self._client = self.family.client_config(group_id=scenario.name)
        self._broker = self.family.coordinator_config()
        self.state, self.generation = EMPTY, 0
        self.owners = own(self)
        self._due = self._waiting = False
        self._known_partitions = dict(self.partitions)
        self.begin()
        for name, topic in scenario.topics.items():
            for at_ms, rates in topic.rates.steps:
                self.clock.at_first(at_ms, lambda n=name, r=rates: self.set_rates(n, r))  # type: ignore[misc]
        if scenario.running:
            self.state, self.generation = STABLE, scenario.running[0].generation
            self.owners.elected(scenario.running, self.generation)
        self._schedule_all()

    def run(self) -> None:
        """Run to the end of the scenario."""
        while (next_ms := self.clock.next_ms()) is not None and next_ms <= self.scenario.duration_ms:
            self.clock.step()
        self.clock.now_ms = self.scenario.duration_ms

    def forget(self) -> None:
        """Let go of everything. The parts of a run refer to it: it would wait for the cyclic collector."""
        vars(self).clear()

    def _go_on(self, member: Member) -> None:
        """Let a member of that group work on its partitions."""
        consumer = self.launch(member)
        consumer.joined = True
        self.owners.take_over(consumer, None, leads=consumer is self._leader())

    # --- what scenario events do

    def _process(self, member: Member) -> PlannedConsumer:
        """Return a new process."""
        own = member.overrides.config
        consumer = PlannedConsumer(
            member,
            self.instance_of(member),
            self.topics_of(member.topics, member.pattern),
            member.pattern,
            self._client if not own else self.family.client_config(own, group_id=self.scenario.name),
            self._end,
            started_ms=self.clock.now_ms,
        )
        config = consumer.config
        batches = Batches.of(member, config.max_poll_records)
        if started := batches.started(member.id, config.max_poll_interval_ms):
            self.emit(started)
        self.owners.launched(consumer)
        return consumer

    def _join(self, consumer: PlannedConsumer, before: PlannedConsumer | None) -> None:
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
        self._round_soon(f"{consumer.member.id} joined", first=self.generation == 0)

    def _take_place(self, consumer: PlannedConsumer, before: PlannedConsumer) -> None:
        """Let a static member take the place of its last process (KIP-345)."""
        consumer.joined = True
        before.joined = False
        if consumer.topics != before.topics or self._due or before.generation != self.generation:
            self._round_soon(f"{consumer.member.id} is back with another subscription")
            if self._waiting:
                self._rebalance()
            return
        self.owners.take_over(consumer, before, leads=consumer is self._leader())

    def _end(self, consumer: PlannedConsumer, how: str) -> None:
        consumer.is_running = False
        self.owners.stopped(consumer, how)
        if how == "closed" and consumer.instance is None:
            self._remove(consumer)
        else:
            self.clock.after(consumer.config.session_timeout_ms, lambda: self._remove(consumer))

    def _remove(self, consumer: PlannedConsumer) -> None:
        if consumer.joined:
            consumer.joined = False
            self._round_soon(f"{consumer.member.id} left")
            if self._waiting:
                self._rebalance()

    def pause(self, name: str, for_ms: int, *, in_batch: bool = False) -> None:
        """Let a consumer not poll. After max.poll.interval.ms it leaves until it continues."""
        consumer = self._running(name)
        if consumer is not None:
            self.emit(ev.MemberPaused(client=name, in_batch=in_batch))
            self._away(consumer, for_ms, consumer.config.max_poll_interval_ms)

    def freeze(self, name: str, for_ms: int) -> None:
        """Let a process stand still. After its session it is out of the group until it continues."""
        consumer = self._running(name)
        if consumer is not None:
            self.emit(ev.MemberPaused(client=name))
            self._away(consumer, for_ms, consumer.config.session_timeout_ms)

    def cut(self, name: str, for_ms: int) -> None:
        """Cut a consumer off. After its session it is out of the group until it is back."""
        consumer = self._running(name)
        if consumer is not None:
            self.emit(ev.MemberCutOff(client=name))
            self._away(consumer, for_ms, consumer.config.session_timeout_ms)

    def _away(self, consumer: PlannedConsumer, for_ms: int, patience_ms: int) -> None:
        consumer.away_until_ms = max(consumer.away_until_ms, self.clock.now_ms + for_ms)
        if for_ms > patience_ms:
            self.clock.after(patience_ms, lambda: self._drop(consumer))
        self.clock.after(for_ms, lambda: self._back(consumer))

    def _drop(self, consumer: PlannedConsumer) -> None:
        if consumer.is_running and consumer.joined:
            self.owners.lost(consumer)
            self._remove(consumer)

    def _back(self, consumer: PlannedConsumer) -> None:
        if not consumer.is_running or self.clock.now_ms < consumer.away_until_ms:
            return
        self.emit(ev.MemberResumed(client=consumer.member.id))
        self.emit(ev.MemberReconnected(client=consumer.member.id))
        if not consumer.joined:
            consumer.joined = True
            self._round_soon(f"{consumer.member.id} joined")
        elif self._waiting:
            self._rebalance()

    def coordinator_failover(self, down_ms: int, *, after_append: bool = False) -> None:  # noqa: ARG002
        """Record the change. The group outlives its coordinator, and no round follows."""
        self.changed("coordinator_failover", "broker")

    def _subscribe(self, consumer: PlannedConsumer, topics: tuple[str, ...], pattern: str | None) -> None:
        """Change the subscription of a consumer, with a round if its topics differ."""
        before, consumer.topics = consumer.topics, self.topics_of(topics, pattern)
        consumer.pattern = pattern
        if consumer.topics != before:
            self._round_soon(f"{consumer.member.id} subscribed to something else")

    def remove_member(self, name: str) -> None:
        """Remove a consumer from the group. If it is present, it joins again in the same round."""
        consumer = self.consumers.get(name)
        if consumer is None or not consumer.joined:
            return
        present = not self._is_absent(consumer)
        if consumer.is_running:
            self.owners.lost(consumer)
        self._remove(consumer)
        consumer.joined = present

    def _topics_changed(self, deleted: str | None = None) -> None:
        """Let the leader and patterns see new topics when their consumers refresh their metadata.

        The owners of a topic that ended see it at once.
        """
        for consumer in self.consumers.values():
            if deleted is not None and self.owners.owns(consumer, deleted):
                self.clock.after(0, lambda c=consumer: self._notice_partitions(c))  # type: ignore[misc]
        for consumer in self.consumers.values():
            if consumer.joined and (consumer is self._leader() or consumer.pattern is not None):
                age_ms = consumer.config.metadata_max_age_ms
                rest_ms = (self.clock.now_ms - consumer.started_ms) % age_ms
                self.clock.after(age_ms - rest_ms, lambda c=consumer: self._notice_partitions(c))  # type: ignore[misc]

    def _leader(self) -> PlannedConsumer | None:
        return next((c for c in self.consumers.values() if c.joined), None)

    def _notice_partitions(self, consumer: PlannedConsumer) -> None:
        if not (consumer.joined and consumer.is_running):
            return
        before = consumer.topics
        if consumer.pattern is not None:
            consumer.topics = self.topics_of((), consumer.pattern)
        if consumer.topics != before:
            self._round_soon("the subscription changed")
        elif consumer is self._leader() and self._subscribed_topics_changed():
            self._round_soon("partitions of a subscribed topic changed")

    def _subscribed_topics_changed(self) -> bool:
        topics = dict.fromkeys(t for c in self.consumers.values() if c.joined for t in c.topics)
        return any(self._known_partitions.get(t) != self.partitions.get(t) for t in topics)

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
        if after != self.state:
            self.owners.state_changed(self.state, after, cause)
            self.state = after

    def _rebalance(self) -> None:
        """End a round when all members are present. The first member leads and computes the assignment."""
        absent = any(c.joined and self._is_absent(c) for c in self.consumers.values())
        self._waiting = absent
        if absent:
            return  # the round ends when they are back or out of the group
        self._due = False
        members = {member_id(c.member): c for c in self.consumers.values() if c.joined}
        if not members:
            self._to_state(EMPTY, "the last member left")
            return
        self._known_partitions = dict(self.partitions)
        self.owners.compute(members)
        self.generation += 1
        self.owners.announce(members, self.generation)
        self._to_state(STABLE, "assigned")
        if self.owners.hand_out(members, self.generation):
            self._round_soon("partitions were given up")

    def next_round_ms(self) -> int | None:
        """Return when a round that began now would end, or None if anything else happens until then."""
        at_ms, next_ms = self.clock.now_ms + self._client.heartbeat_interval_ms, self.clock.next_ms()
        is_next = at_ms <= self.scenario.duration_ms and (next_ms is None or at_ms < next_ms)
        return at_ms if is_next else None

    def has_only(self, members: Mapping[str, PlannedConsumer]) -> bool:
        """Return whether the group has these members, all of them present, and no round is due."""
        joined = [c for c in self.consumers.values() if c.joined]
        return not self._due and joined == list(members.values()) and not any(map(self._is_absent, joined))

    def _is_absent(self, consumer: PlannedConsumer) -> bool:
        return not consumer.is_running or self.clock.now_ms < consumer.away_until_ms

    def cluster_of(self, members: Iterable[PlannedConsumer]) -> Cluster:
        """Return the topics to which members subscribe."""
        topics = dict.fromkeys(t for c in members for t in c.topics)
        partitions = self.partitions
        return Cluster(
            topic_infos({t: partitions[t] for t in topics if t in partitions}, self.scenario.racks)
        )


def member_id(member: Member) -> str:
    """Return an id that sorts as those of a coordinator: the name, a hyphen, and more."""
    return f"{member.id}-"
