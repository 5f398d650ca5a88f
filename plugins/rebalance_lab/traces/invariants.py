"""The rules that hold in every run, checked event by event (PROTOCOL, "Always"; PITFALLS C-80..C-83).

The checks know only the events, so that they serve the simulator, the tests and a trace from elsewhere.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

from coordinator_core.coordinator.records import OffsetRecord, Record
from coordinator_core.coordinator.shard import DEAD
from coordinator_core.model import TopicPartition
from coordinator_core.protocol import events as ev
from coordinator_core.registry.hookspecs import ProtocolSpec
from coordinator_core.registry.registry import Registry
from rebalance_lab.traces.family import family_of
from rebalance_lab.traces.timeline import Change, Timeline
from rebalance_lab.traces.trace import Trace

_OWNERSHIP = (ev.CoordinatorElected, ev.GenerationStarted, ev.Joined, ev.Assigned)
"""The events after which a partition may have two valid owners."""

OUTSIDE = "unjoined"
"""The state of a consumer with an epoch of its own that is not in the group."""


@dataclass(frozen=True, slots=True)
class Violation:
    """A rule that was broken: when, which, and how."""

    at_ms: int
    rule: str
    detail: str

    def __str__(self) -> str:
        return f"at {self.at_ms}ms, {self.rule}: {self.detail}"


class Invariants:
    """Checks of a live run or of a finished trace. ``violations`` lists the rules that were broken.

    ``observe`` takes each event in order, ``logged`` the records of the log. ``now`` is the group after the
    last event.
    """

    def __init__(self, registry: Registry | None = None, *, family: ProtocolSpec | None = None) -> None:
        self.violations: list[Violation] = []
        self._registry, self._family = registry, family
        self.now = Timeline()
        self._committed: dict[TopicPartition, int] = {}
        self._highest = -1
        self._deleted: set[str] = set()
        self.overlaps: dict[str, dict[TopicPartition, None]] = {}
        """The partitions of static consumers that others had been given in a generation that they missed.

        The group keeps a static member that does not join a round, with the metadata of its last join, and
        shares out what it owns. Until it takes over an assignment, both are valid owners, as in Kafka.
        """
        self._checks: dict[type[Any], Callable[[Any], None]] = {
            ev.RunStarted: self._run_started,
            ev.CoordinatorElected: self._coordinator_elected,
            ev.GroupStateChanged: self._state_changed,
            ev.GenerationStarted: self._generation_started,
            ev.Joined: self._joined,
            ev.Assigned: self._assigned,
            ev.TopicDeleted: self._topic_deleted,
        }
        self._at_ms = 0
        self.now.before.append(self._check)
        self.now.after.append(self._check_owners)

    @property
    def _is_uncoordinated(self) -> bool:
        """Whether members may own a partition twice: they do not agree on an assignment."""
        return self._family is not None and self._family.servers is not None

    @property
    def generation(self) -> int:
        """The generation of the group."""
        return self.now.generation

    def observe(self, at_ms: int, event: ev.Event) -> None:
        """Check the next event."""
        self._at_ms = at_ms
        self.now.apply(at_ms, event)

    def logged(self, partition: int, records: Iterable[Record]) -> None:  # noqa: ARG002 - the interface's
        """Check records of the log: committed offsets never go back."""
        for record in records if not self._is_uncoordinated else ():
            if isinstance(record, OffsetRecord) and record.value is not None:
                self.committed(TopicPartition(record.topic, record.partition), record.value.offset)

    def committed(self, partition: TopicPartition, offset: int) -> None:
        """Check a committed offset."""
        before = self._committed.get(partition, -1)
        shared = any(partition in own for own in self.overlaps.values())
        if offset < before and not shared:
            detail = f"{partition.topic}-{partition.partition} went back from {before} to {offset}"
            self._violated("committed offsets never go back", detail)
        self._committed[partition] = offset

    def owners(self, partition: TopicPartition) -> list[str]:
        """Return the consumers of the present generation that own a partition.

        The group still lists a static one that has left by itself; it claims nothing.
        """
        owners = self.now.owners.get(partition, ())
        return [client for client in owners if self.now.is_valid(client) and not self._has_left(client)]

    def _has_left(self, client: str) -> bool:
        return self.now.own_epochs and self.now.consumers[client].state == OUTSIDE

    def settled(self) -> list[str]:
        """Return what keeps the group from being at rest, once changes have stopped (C-82)."""
        now = self.now
        if not now.consumers:
            return []
        resting = self._family is not None and now.state in self._family.at_rest
        problems = [] if resting else [f"the group is {now.state}"]
        problems += [f"{client} is not in the group" for client in now.consumers if not now.is_valid(client)]
        for topic, count in now.topics.items():
            if topic not in now.subscribed:
                continue
            for number in range(count):
                owners = self.owners(TopicPartition(topic, number))
                if len(owners) != 1:
                    problems.append(f"{topic}-{number} has {len(owners)} owners ({', '.join(owners)})")
        return problems

    def _violated(self, rule: str, detail: str) -> None:
        self.violations.append(Violation(self._at_ms, rule, detail))

    def _check(self, _at_ms: int, event: ev.Event) -> None:
        check = self._checks.get(type(event))
        if check is not None:
            check(event)

    def _check_owners(self, change: Change) -> None:
        if not isinstance(change.event, _OWNERSHIP) or self._is_uncoordinated:
            return
        for partition in self.now.contested:
            owners = self.owners(partition)
            late = self.now.behind.intersection(owners) if len(owners) > 1 else ()
            for client in sorted(late):
                self.overlaps.setdefault(client, {})[partition] = None
            if len(owners) - len(late) > 1:
                detail = (
                    f"{partition.topic}-{partition.partition} is owned by {' and '.join(owners)} "
                    f"in generation {self.generation}"
                )
                self._violated("one owner per partition", detail)

    def _run_started(self, event: ev.RunStarted) -> None:
        self._family = self._family or family_of(event, self._registry)

    def _coordinator_elected(self, event: ev.CoordinatorElected) -> None:
        """Note the generation in the log. An epoch without an assignment is yet to start."""
        family = self._family
        is_to_start = family is not None and family.own_epochs and event.group_state in family.round_begins
        self._highest = max(self._highest, event.generation - is_to_start)

    def _state_changed(self, event: ev.GroupStateChanged) -> None:
        assert self._family is not None
        if self.now.state not in ("", DEAD, event.before):
            self._violated("one state", f"left {event.before}, but was {self.now.state}")
        if event.after != event.before and event.after not in self._family.states.get(event.before, ()):
            self._violated("legal moves", f"{event.before} to {event.after}")
        if event.after in self._family.round_begins and not event.cause:
            self._violated("every rebalance has a cause", f"none in generation {event.generation}")
        if self.now.begins_again(event):
            self._highest = -1
        elif event.generation < self.generation:
            self._violated("generations only grow", f"{self.generation} to {event.generation}")

    def _generation_started(self, event: ev.GenerationStarted) -> None:
        if event.leader and event.leader not in event.members:
            self._violated("one leader, who is a member", f"{event.leader} leads {event.generation}")
        if event.generation <= self._highest:
            self._violated("generations only grow", f"{self._highest} to {event.generation}")
        self._highest = event.generation

    def _joined(self, event: ev.Joined) -> None:
        consumer = self.now.consumers.get(event.client)
        if consumer is None:
            return
        is_older = event.member_id == consumer.member_id and event.generation < consumer.generation
        if is_older and not self._is_uncoordinated:
            detail = f"{event.client} went from {consumer.generation} to {event.generation}"
            self._violated("generations only grow", detail)

    def _topic_deleted(self, event: ev.TopicDeleted) -> None:
        """Note a deleted topic. A round that began before may still assign it, as Kafka's leader does."""
        self._deleted.add(event.topic)

    def _assigned(self, event: ev.Assigned) -> None:
        consumer = self.now.consumers.get(event.client)
        if consumer is None:
            return
        owned = frozenset(self.now.partitions(event.owned))
        strange = sorted({p.topic for p in owned} - frozenset(consumer.topics) - self._deleted)
        if strange:
            self._violated("assigned within the subscription", f"{event.client} got {', '.join(strange)}")
        kept = [p for p in consumer.owned if p not in owned]
        if kept:
            detail = f"{event.client} owned {len(kept)} more, and neither revoked nor lost them"
            self._violated("what goes is revoked or lost", detail)


def check_trace(trace: Trace) -> list[Violation]:
    """Return every violation in a finished trace. It has no offsets: those are checked live."""
    return observed(trace).violations


def observed(trace: Trace, family: ProtocolSpec | None = None) -> Invariants:
    """Return the checks of a finished trace, of one of the installed families unless another is given."""
    watch = Invariants(family=family)
    for line in trace.events:
        watch.observe(line.at_ms, line.event)
    return watch
