"""A group of logs as a trace, so that the one ledger, the views and the metrics read it like any other.

Logs show less than a run does. What they do not show is put where it must have been: a member that ended
without a line ends when its session began to run out, and the partitions of members without a log change
hands when the round does. Times are milliseconds since the first fact.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import msgspec

from coordinator_core.protocol import events as ev
from coordinator_core.protocol.events import PartitionMap
from coordinator_core.protocol.partition_maps import difference, union
from rebalance_lab.traces.trace import Trace
from rebalance_logs.facts import Fact, Kind
from rebalance_logs.findings import Cause
from rebalance_logs.groups import GroupLog, Member
from rebalance_logs.holders import Holder
from rebalance_logs.sessions import expiries, last_sign_ms
from rebalance_logs.unlogged import (
    SETTLED_MS,
    kept_before,
    of_unknown_owners,
    of_unlogged,
    until_next,
)

_OWNERSHIP = frozenset((Kind.OWNS, Kind.ADDED, Kind.REVOKED, Kind.LOST))

_RANKS: dict[type[Any], int] = {
    ev.PartitionsAdded: -1,
    ev.MemberStarted: 0,
    ev.Revoked: 1,
    ev.Lost: 1,
    ev.MemberStopped: 2,
    ev.MemberPaused: 2,
    ev.MemberResumed: 3,
}


def trace_of(group: GroupLog) -> tuple[Trace, int]:
    """Return the trace of a group, and the time at which it begins, in milliseconds since 1970."""
    events = sorted(_events(group), key=_in_order)
    base_ms = min((at_ms for at_ms, _ in events), default=group.from_ms)
    until_ms = max(group.until_ms, *(at_ms for at_ms, _ in events)) if events else group.until_ms
    topics, added = _topics(group, events)
    if added:
        events = sorted([*events, *added], key=_in_order)
    last = group.rounds[-1] if group.rounds else None
    started = ev.RunStarted(
        scenario=group.group,
        strategy=next((r.protocol for r in reversed(group.rounds) if r.protocol), "unknown"),
        seed=0,
        duration_ms=until_ms - base_ms,
        topics=topics,
        measure_from_ms=_measured_from_ms(group) - base_ms,
        since_1970_ms=base_ms,
    )
    ended = ev.RunEnded(group_state="Stable", generation=last.generation if last else 0, messages={})
    trace = Trace(
        (
            ev.TraceEvent(0, started),
            *(ev.TraceEvent(at_ms - base_ms, event) for at_ms, event in events),
            ev.TraceEvent(until_ms - base_ms, ended),
        )
    )
    return trace, base_ms


def within(trace: Trace, from_ms: int, until_ms: int) -> Trace:
    """Return a trace without what was after a time, of which what was before another is not measured."""
    started = msgspec.structs.replace(
        trace.started,
        duration_ms=min(until_ms, trace.started.duration_ms),
        measure_from_ms=max(from_ms, trace.started.measure_from_ms or 0),
    )
    kept = [event for event in trace.events[1:-1] if event.at_ms <= until_ms]
    ended = ev.TraceEvent(started.duration_ms, trace.ended)
    return Trace((ev.TraceEvent(0, started), *kept, ended))


def _in_order(event: tuple[int, ev.Event]) -> tuple[int, int]:
    """Return the place of an event: of those of one time, starts come first and ends before assignments."""
    at_ms, what = event
    return at_ms, _RANKS.get(type(what), 5)


def _measured_from_ms(group: GroupLog) -> int:
    """Return when the group had started: its start is not measured. Logs that begin later count whole."""
    if not group.rounds or not group.rounds[0].was_empty:
        return group.from_ms
    first = group.rounds[0]
    end_ms = min(until_next(group, first), first.until_ms + SETTLED_MS)
    taken = [
        fact.at_ms
        for member in group.members.values()
        for fact in member.between(first.known_ms - 1, end_ms, Kind.OWNS, Kind.ADDED)
    ]
    return max([first.until_ms, *taken]) + 1  # without the round itself


def _topics(
    group: GroupLog, events: Sequence[tuple[int, ev.Event]]
) -> tuple[dict[str, int], list[tuple[int, ev.Event]]]:
    """Return the topics at first, and the partitions that were added: those without an owner before.

    Logs do not show since when they exist: they count from the round that gives them away.
    """
    first_ms = group.rounds[0].until_ms + SETTLED_MS if group.rounds else group.until_ms
    topics: dict[str, int] = {}
    added: list[tuple[int, ev.Event]] = []
    sizes: dict[str, int] = {}
    for at_ms, event in events:
        for topic, numbers in event.owned.items() if isinstance(event, ev.Assigned) else ():
            size = max(numbers, default=-1) + 1
            if size <= sizes.get(topic, 0):
                continue
            sizes[topic] = size
            if at_ms <= first_ms or topic not in topics:
                topics[topic] = size
            else:
                began_ms = max((r.began_ms for r in group.rounds if r.known_ms <= at_ms), default=at_ms)
                added.append((began_ms, ev.PartitionsAdded(topic=topic, partitions=size)))
    return topics, added


def _events(group: GroupLog) -> list[tuple[int, ev.Event]]:
    absences = _absences(group)
    found = list(_of_rounds(group))
    members = sorted(group.members.values(), key=lambda member: not member.is_logged)
    for member in members:
        own = absences.get(member.name, [])
        if member.is_logged:
            found += _Logged(group, member, own).events()
        else:
            given = group.rounds[0].owners.get(member.name, {}) if group.rounds else {}
            kept = kept_before(group, given, [member.name], found)
            found += of_unlogged(group, member, own, kept)
    return [*found, *of_unknown_owners(group, sorted(found, key=_in_order))]


def _absences(group: GroupLog) -> dict[str, list[tuple[int, Cause]]]:
    """Return for each member when it ended or stood still without a line that says so."""
    found: dict[str, list[tuple[int, Cause]]] = {}
    for expiry in expiries(group):
        absence = last_sign_ms(group, expiry), expiry.trigger.cause
        found.setdefault(expiry.member.name, []).append(absence)
    return found


def _of_rounds(group: GroupLog) -> Iterator[tuple[int, ev.Event]]:
    """Yield the states of the group and its members by id."""
    members: Mapping[str, str] = {}
    state = "Empty"
    for this in group.rounds:
        cause = "; ".join(dict.fromkeys(f"{t.cause} {' '.join(t.members)}".strip() for t in this.triggers))
        number = this.generation

        def changed(at_ms: int, after: str, why: str = "", number: int = number) -> tuple[int, ev.Event]:
            nonlocal state
            before, state = state, after
            return at_ms, ev.GroupStateChanged(
                group=group.group, before=before, after=after, generation=number, cause=why
            )

        yield changed(this.began_ms, "PreparingRebalance", cause)
        for name, member_id in members.items():
            if this.members.get(name) != member_id and member_id:
                yield this.began_ms, ev.MemberRemoved(group=group.group, member_id=member_id, reason=cause)
        for name, member_id in this.members.items():
            if members.get(name) != member_id and member_id:
                yield this.known_ms, ev.MemberAdded(group=group.group, member_id=member_id)
        members = dict(this.members)
        yield (
            this.known_ms,
            ev.GenerationStarted(
                group=group.group,
                generation=number,
                protocol=this.protocol,
                leader=this.members.get(this.leader, ""),
                members=[member_id for member_id in this.members.values() if member_id],
            ),
        )
        yield changed(this.known_ms, "CompletingRebalance")
        yield changed(this.until_ms, "Stable")


class _Logged:
    """Follows what the log of one member says about its partitions."""

    def __init__(self, group: GroupLog, member: Member, absences: list[tuple[int, Cause]]) -> None:
        self._group, self._member = group, member
        self._absences = sorted(absences)
        self._is_paused = False
        self._holder = Holder(
            member.name,
            member.instance_id,
            sorted({topic for fact in member.facts for topic in fact.partitions}),
        )

    def events(self) -> list[tuple[int, ev.Event]]:
        group, member, holder = self._group, self._member, self._holder
        starts = {id(fact) for fact in member.starts(group.from_ms - 1, group.until_ms)}
        if before := self._owned_before():
            holder.start(group.from_ms)
            holder.own(group.from_ms, before)
        for fact in self._with_lost_lines():
            while self._absences and self._absences[0][0] < fact.at_ms:
                self._be_absent(*self._absences.pop(0))
            if id(fact) in starts:
                self._stop(fact.at_ms - 1, "crashed")  # of one time, starts come first
            if fact.kind is Kind.CLOSED:
                self._stop(fact.at_ms, "closed")
            elif fact.kind is not Kind.SETTINGS:
                self._be_present(fact)
                self._read(fact)
        for at_ms, cause in self._absences:
            self._be_absent(at_ms, cause)
        return holder.events

    def _owned_before(self) -> PartitionMap:
        """Return what the member owned when the logs began: what it gives up, or has and was not given."""
        member, group = self._member, self._group
        first = next((fact for fact in member.facts if fact.kind in _OWNERSHIP), None)
        if first is None or member.starts(group.from_ms - 1, first.at_ms):
            return {}
        this = next(
            (r for r in group.rounds if r.known_ms >= group.from_ms and member.name in r.owners), None
        )
        until_ms = first.at_ms if this is None else until_next(group, this)
        given: PartitionMap = {}
        kept: PartitionMap = {}
        for fact in member.facts:
            if fact.at_ms > until_ms:
                break
            if fact.kind is Kind.ADDED:
                given = union(given, fact.partitions)
            elif fact.kind in (Kind.REVOKED, Kind.LOST):
                kept = union(kept, difference(fact.partitions, given))
        return union(kept, {} if this is None else difference(this.owners[member.name], given))

    def _with_lost_lines(self) -> list[Fact]:
        """Return its facts; where no line says what it was given, the leader's assignment does."""
        facts = list(self._member.facts)
        for this in self._group.rounds:
            share, until_ms = this.owners.get(self._member.name), until_next(self._group, this)
            taken = self._member.between(this.known_ms - 1, until_ms, Kind.ADDED, Kind.OWNS)
            if share is not None and not taken and this.ended_ms is not None:
                facts.append(Fact(this.ended_ms, Kind.OWNS, this.own[0].source, partitions=share))
        return sorted(facts, key=lambda fact: fact.at_ms)

    def _be_absent(self, at_ms: int, cause: Cause) -> None:
        if cause is not Cause.STOOD_STILL:
            self._stop(at_ms, "crashed")
        elif self._holder.runs:
            self._is_paused = True
            self._holder.add(at_ms, ev.MemberPaused(client=self._member.name))

    def _stop(self, at_ms: int, how: str) -> None:
        self._is_paused = self._is_paused and not self._holder.runs
        self._holder.stop(at_ms, how)

    def _be_present(self, fact: Fact) -> None:
        """Start the member or let it go on: it wrote a line."""
        holder = self._holder
        if fact.kind is Kind.SUBSCRIBED and fact.text and "*" not in fact.text:
            holder.topics = sorted(name.strip(" []") for name in fact.text.split(","))
            if holder.runs:
                event = ev.SubscriptionChanged(client=holder.client, topics=holder.topics)
                holder.add(fact.at_ms, event)
        holder.start(fact.at_ms)
        if self._is_paused:
            self._is_paused = False
            holder.add(fact.at_ms, ev.MemberResumed(client=holder.client))

    def _read(self, fact: Fact) -> None:
        holder, at_ms = self._holder, fact.at_ms
        match fact.kind:
            case Kind.JOINED:
                holder.join(at_ms, fact.member_id, fact.generation, fact.protocol)
                if fact.partitions:
                    holder.own(at_ms, fact.partitions)
            case Kind.OWNS:
                holder.own(at_ms, fact.partitions)
            case Kind.ADDED:
                holder.own(at_ms, union(holder.owned, fact.partitions))
            case Kind.REVOKED | Kind.LOST:
                holder.give_up(at_ms, fact.partitions or holder.owned, lost=fact.kind is Kind.LOST)
            case Kind.LEAVES | Kind.POLL_EXCEEDED:
                holder.give_up(at_ms, holder.owned, lost=True)
