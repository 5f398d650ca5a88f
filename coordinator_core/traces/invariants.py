"""What must hold in every run, checked event by event (PROTOCOL, "Always"; PITFALLS C-80..C-83).

`Invariants` watches a live run or a finished trace. It knows only what the events say, so that the same
checks serve the simulator, the tests and a trace that somebody sent.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

from coordinator_core.coordinator.classic.states import LEGAL_MOVES
from coordinator_core.coordinator.records import OffsetRecord, Record
from coordinator_core.model import TopicPartition
from coordinator_core.protocol import events as ev
from coordinator_core.traces.trace import Trace

_MOVES = {before.value: frozenset(state.value for state in after) for before, after in LEGAL_MOVES.items()}


@dataclass(frozen=True, slots=True)
class Violation:
    """A rule that did not hold, when, and how."""

    at_ms: int
    rule: str
    problem: str

    def __str__(self) -> str:
        return f"at {self.at_ms}ms, {self.rule}: {self.problem}"


@dataclass
class _Consumer:
    """A consumer process as its events show it."""

    topics: frozenset[str]
    member_id: str = ""
    generation: int = -1
    owned: dict[TopicPartition, None] = field(default_factory=dict)
    paused: bool = False


class Invariants:
    """Feed it every event in order; `violations` lists what did not hold.

    ``zombie_partition_ms``: time in which a consumer whose generation is over still held a partition that
    a valid member owns, summed over partitions (C-80 counts it, it is no violation).
    """

    def __init__(self) -> None:
        self.violations: list[Violation] = []
        self.zombie_partition_ms = 0
        self.topics: dict[str, int] = {}
        self.state, self.generation = "", -1
        self._at_ms = 0
        self._members: dict[str, None] = {}
        self._consumers: dict[str, _Consumer] = {}
        self._claims: dict[TopicPartition, dict[str, None]] = {}
        self._contested: dict[TopicPartition, None] = {}
        self._committed: dict[TopicPartition, int] = {}
        self._highest = -1
        self._see: dict[type[Any], Callable[[Any], None]] = {
            ev.RunStarted: self._run_started,
            ev.PartitionsAdded: self._partitions_added,
            ev.MemberStarted: self._member_started,
            ev.MemberStopped: self._member_gone,
            ev.ConsumerFailed: self._member_gone,
            ev.SubscriptionChanged: self._subscription_changed,
            ev.CoordinatorElected: self._coordinator_elected,
            ev.GroupStateChanged: self._state_changed,
            ev.MemberAdded: self._member_added,
            ev.MemberRemoved: self._member_removed,
            ev.MemberReplaced: self._member_replaced,
            ev.GenerationStarted: self._generation_started,
            ev.Joined: self._joined,
            ev.Revoked: self._given_up,
            ev.Lost: self._given_up,
            ev.Assigned: self._assigned,
        }

    def observe(self, at_ms: int, event: ev.Event) -> None:
        """Take in the next event."""
        if self._contested and at_ms > self._at_ms:
            self._count_zombies(at_ms - self._at_ms)
        self._at_ms = at_ms
        see = self._see.get(type(event))
        if see is not None:
            see(event)

    def logged(self, partition: int, records: Sequence[Record]) -> None:  # noqa: ARG002 - the interface's
        """The log took in records: committed offsets never move back."""
        for record in records:
            if isinstance(record, OffsetRecord) and record.value is not None:
                self.committed(TopicPartition(record.topic, record.partition), record.value.offset)

    def committed(self, partition: TopicPartition, offset: int) -> None:
        """An offset was committed."""
        before = self._committed.get(partition, -1)
        if offset < before:
            problem = f"{partition.topic}-{partition.partition} went back from {before} to {offset}"
            self._violated("committed offsets never go back", problem)
        self._committed[partition] = offset

    def owners(self, partition: TopicPartition) -> list[str]:
        """The consumers with a valid generation that own a partition now."""
        return [client for client in self._claims.get(partition, ()) if self._is_valid(client)]

    def settled(self) -> list[str]:
        """What is not as it must be once changes have stopped; nothing when all is well (C-82)."""
        subscribed = {topic for consumer in self._consumers.values() for topic in consumer.topics}
        if not self._consumers:
            return []
        problems = [] if self.state == "Stable" else [f"the group is {self.state}"]
        problems += [
            f"{client} is not in the group" for client in self._consumers if not self._is_valid(client)
        ]
        for topic, count in self.topics.items():
            if topic not in subscribed:
                continue
            for number in range(count):
                owners = self.owners(TopicPartition(topic, number))
                if len(owners) != 1:
                    problems.append(f"{topic}-{number} has {len(owners)} owners ({', '.join(owners)})")
        return problems

    def _violated(self, rule: str, problem: str) -> None:
        self.violations.append(Violation(self._at_ms, rule, problem))

    def _is_valid(self, client: str) -> bool:
        consumer = self._consumers[client]
        return consumer.member_id in self._members and consumer.generation == self.generation

    def _count_zombies(self, passed_ms: int) -> None:
        for partition in self._contested:
            valid = len(self.owners(partition))
            if valid:
                self.zombie_partition_ms += (len(self._claims[partition]) - valid) * passed_ms

    def _check_owners(self) -> None:
        for partition in self._contested:
            owners = self.owners(partition)
            if len(owners) > 1:
                problem = (
                    f"{partition.topic}-{partition.partition} is owned by {' and '.join(owners)} "
                    f"in generation {self.generation}"
                )
                self._violated("one owner per partition", problem)

    def _run_started(self, event: ev.RunStarted) -> None:
        self.topics = dict(event.topics)

    def _partitions_added(self, event: ev.PartitionsAdded) -> None:
        self.topics[event.topic] = event.partitions

    def _member_started(self, event: ev.MemberStarted) -> None:
        self._member_gone(event)
        self._consumers[event.client] = _Consumer(frozenset(event.topics))

    def _member_gone(self, event: ev.MemberStarted | ev.MemberStopped | ev.ConsumerFailed) -> None:
        consumer = self._consumers.get(event.client)
        if consumer is not None:
            self._give_up(event.client, list(consumer.owned))
            del self._consumers[event.client]

    def _subscription_changed(self, event: ev.SubscriptionChanged) -> None:
        consumer = self._consumers.get(event.client)
        if consumer is not None:
            consumer.topics = frozenset(event.topics)

    def _coordinator_elected(self, event: ev.CoordinatorElected) -> None:
        """What was not in the log did not happen: the group goes on from there."""
        self.state, self.generation = event.group_state, event.generation
        self._highest = max(self._highest, event.generation)
        self._members = dict.fromkeys(event.members)
        self._check_owners()

    def _state_changed(self, event: ev.GroupStateChanged) -> None:
        if self.state and event.before != self.state:
            self._violated("one state", f"left {event.before}, but was {self.state}")
        if event.after != event.before and event.after not in _MOVES[event.before]:
            self._violated("legal moves", f"{event.before} to {event.after}")
        if event.after == "PreparingRebalance" and not event.cause:
            self._violated("every rebalance has a cause", f"none in generation {event.generation}")
        if event.generation < self.generation:
            self._violated("generations only grow", f"{self.generation} to {event.generation}")
        self.state = event.after
        self.generation = max(self.generation, event.generation)

    def _member_added(self, event: ev.MemberAdded) -> None:
        self._members[event.member_id] = None

    def _member_removed(self, event: ev.MemberRemoved) -> None:
        self._members.pop(event.member_id, None)

    def _member_replaced(self, event: ev.MemberReplaced) -> None:
        self._members.pop(event.old_member_id, None)
        self._members[event.new_member_id] = None

    def _generation_started(self, event: ev.GenerationStarted) -> None:
        if event.leader not in event.members:
            self._violated("one leader, who is a member", f"{event.leader} leads {event.generation}")
        if event.generation <= self._highest:
            self._violated("generations only grow", f"{self._highest} to {event.generation}")
        self.generation = self._highest = event.generation
        self._members = dict.fromkeys(event.members)
        self._check_owners()

    def _joined(self, event: ev.Joined) -> None:
        consumer = self._consumers.get(event.client)
        if consumer is None:
            return
        if event.member_id == consumer.member_id and event.generation < consumer.generation:
            problem = f"{event.client} went from {consumer.generation} to {event.generation}"
            self._violated("generations only grow", problem)
        consumer.member_id, consumer.generation = event.member_id, event.generation
        self._check_owners()

    def _given_up(self, event: ev.Revoked | ev.Lost) -> None:
        self._give_up(event.client, _partitions(event.partitions))

    def _give_up(self, client: str, partitions: Iterable[TopicPartition]) -> None:
        consumer = self._consumers.get(client)
        if consumer is None:
            return  # it failed for good, and what it held went with it
        owned = consumer.owned
        for partition in partitions:
            owned.pop(partition, None)
            claims = self._claims.get(partition, {})
            claims.pop(client, None)
            if len(claims) < 2:
                self._contested.pop(partition, None)

    def _assigned(self, event: ev.Assigned) -> None:
        consumer = self._consumers.get(event.client)
        if consumer is None:
            return
        owned = dict.fromkeys(_partitions(event.owned))
        strange = sorted({p.topic for p in owned} - consumer.topics)
        if strange:
            self._violated("assigned within the subscription", f"{event.client} got {', '.join(strange)}")
        kept = [p for p in consumer.owned if p not in owned]
        if kept:
            problem = f"{event.client} owned {len(kept)} more, and neither revoked nor lost them"
            self._violated("what goes is revoked or lost", problem)
            self._give_up(event.client, kept)
        consumer.owned = owned
        for partition in owned:
            claims = self._claims.setdefault(partition, {})
            claims[event.client] = None
            if len(claims) > 1:
                self._contested[partition] = None
        self._check_owners()


def check_trace(trace: Trace) -> list[Violation]:
    """Every violation in a finished trace (offsets are not in it: they are checked live)."""
    watch = Invariants()
    for line in trace.events:
        watch.observe(line.at_ms, line.event)
    return watch.violations


def _partitions(listed: ev.PartitionMap) -> list[TopicPartition]:
    return [TopicPartition(topic, number) for topic, numbers in listed.items() for number in numbers]
