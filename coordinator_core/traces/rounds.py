"""The rounds of a run, with what each member revoked, lost, was assigned and kept."""

import re
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from coordinator_core.protocol import events as ev
from coordinator_core.registry.hookspecs import ProtocolSpec
from coordinator_core.registry.registry import Registry
from coordinator_core.traces.family import family_of
from coordinator_core.traces.trace import Trace

_UUID = re.compile(r"-[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[0-9a-f]{4}-[0-9a-f]{12}")


@dataclass
class MemberRound:
    """The changes of one member in one round."""

    revoked: ev.PartitionMap = field(default_factory=dict)
    lost: ev.PartitionMap = field(default_factory=dict)
    assigned: ev.PartitionMap = field(default_factory=dict)
    kept: ev.PartitionMap = field(default_factory=dict)


@dataclass
class Round:
    """A rebalance from its first cause until the group rests.

    ``generation`` is 0 until the new generation has started. ``stable_ms`` is None if the group never came
    to rest. ``members`` maps the names of consumers to their changes, up to the beginning of the next round.
    ``report`` is the report of the assignor.
    """

    began_ms: int
    causes: list[str]
    generation: int = 0
    protocol: str = ""
    leader: str = ""
    stable_ms: int | None = None
    members: dict[str, MemberRound] = field(default_factory=dict)
    report: dict[str, Any] = field(default_factory=dict)


@dataclass
class InitialGroup:
    """A group that rested already when the run began. ``owned``: the partitions of consumers, by name."""

    at_ms: int
    generation: int
    protocol: str = ""
    leader: str = ""
    owned: dict[str, ev.PartitionMap] = field(default_factory=dict)


@dataclass
class Occurrence:
    """An event from outside, between or during rounds."""

    at_ms: int
    text: str


Entry: TypeAlias = Round | InitialGroup | Occurrence


def entries(trace: Trace, registry: Registry | None = None) -> list[Entry]:
    """Return the rounds of a run and the events from outside, in order; an initial group comes first."""
    reader = _Reader(family_of(trace.started, registry))
    for line in trace.events:
        reader.see(line.at_ms, line.event)
    return reader.entries


def rounds(trace: Trace, registry: Registry | None = None) -> list[Round]:
    """Return the rounds of a run."""
    return [entry for entry in entries(trace, registry) if isinstance(entry, Round)]


class _Reader:
    def __init__(self, family: ProtocolSpec) -> None:
        self.entries: list[Entry] = []
        self._family = family
        self._round: Round | None = None
        self._initial: InitialGroup | None = None
        self._coordinator_failed = False

    def see(self, at_ms: int, event: ev.Event) -> None:
        if self._initial is not None and self._is_initial(at_ms, event, self._initial):
            return
        if isinstance(event, ev.CoordinatorElected) and event.group_state and not self._coordinator_failed:
            self._initial = InitialGroup(at_ms, event.generation)
            self.entries.append(self._initial)
        elif isinstance(event, ev.GroupStateChanged):
            self._state_changed(at_ms, event)
        elif isinstance(event, ev.GenerationStarted) and self._round is not None:
            self._round.generation = event.generation
            self._round.protocol = event.protocol
            self._round.leader = _UUID.sub("", event.leader)
        elif isinstance(event, ev.AssignmentComputed) and self._round is not None:
            self._round.report = event.report
        elif isinstance(event, (ev.Revoked, ev.Lost, ev.Assigned)):
            self._changed(event)
        else:
            self._coordinator_failed |= isinstance(event, ev.CoordinatorFailed)
            if isinstance(event, ev.CoordinatorElected) and self._is_under_way():
                self._round = None  # the new coordinator does not know of it
            text = _text(event)
            if text:
                self.entries.append(Occurrence(at_ms, text))

    def _is_under_way(self) -> bool:
        return self._round is not None and self._round.stable_ms is None

    def _is_initial(self, at_ms: int, event: ev.Event, group: InitialGroup) -> bool:
        """Note what an event reports of the initial group, and whether it reports nothing else."""
        if at_ms > group.at_ms or isinstance(event, ev.GroupStateChanged):
            self._initial = None
        elif isinstance(event, ev.Joined):
            group.protocol = event.protocol
            group.leader = event.client if event.leader else group.leader
        elif isinstance(event, ev.Assigned):
            group.owned[event.client] = event.owned
            return True
        return False

    def _state_changed(self, at_ms: int, event: ev.GroupStateChanged) -> None:
        cause = _UUID.sub("", event.cause)
        if event.after in self._family.round_begins:
            if self._round is not None and self._is_under_way():
                self._round.causes.append(cause)
                return
            self._round = Round(at_ms, [cause])
            self.entries.append(self._round)
        elif event.after in self._family.at_rest and self._round is not None:
            self._round.stable_ms = at_ms
        elif event.after in self._family.vacant:
            self.entries.append(Occurrence(at_ms, f"the group is {event.after}: {cause}"))
            self._round = None

    def _changed(self, event: ev.Revoked | ev.Lost | ev.Assigned) -> None:
        if self._round is None:
            return
        member = self._round.members.setdefault(event.client, MemberRound())
        if isinstance(event, ev.Revoked):
            _add(member.revoked, event.partitions)
        elif isinstance(event, ev.Lost):
            _add(member.lost, event.partitions)
        else:
            _add(member.assigned, event.added)
            member.kept = _without(event.owned, event.added)


def _add(to: ev.PartitionMap, more: ev.PartitionMap) -> None:
    for topic, numbers in more.items():
        to[topic] = sorted({*to.get(topic, ()), *numbers})


def _without(owned: ev.PartitionMap, added: ev.PartitionMap) -> ev.PartitionMap:
    new = {topic: frozenset(numbers) for topic, numbers in added.items()}
    left = {t: [n for n in numbers if n not in new.get(t, ())] for t, numbers in owned.items()}
    return {t: numbers for t, numbers in left.items() if numbers}


def _text(event: ev.Event) -> str:
    match event:
        case ev.Changed():
            return f"{event.kind} {event.target}" + (f" ({event.cause})" if event.cause else "")
        case ev.CoordinatorFailed():
            return f"broker {event.node} failed"
        case ev.CoordinatorElected():
            return f"broker {event.node} is the coordinator now"
        case ev.MemberReplaced():
            return f"{event.instance_id} is back under its instance id, without a round"
        case ev.ConsumerFailed():
            return f"{event.client} failed: {event.error}"
        case ev.MemberRemoved() if "session" in event.reason:
            return f"the session of {_UUID.sub('', event.member_id)} expired"
    return ""
