"""A group of logs as a trace, so that the one ledger, the views and the metrics read it like any other.

Logs show less than a run does. What they do not show is put where it must have been: a member that ended
without a line ends when its session began to run out, and the partitions of members without a log change
hands when the round does. Times are milliseconds since the first fact.
"""

from bisect import bisect_right
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import msgspec

from coordinator_core.protocol import events as ev
from coordinator_core.protocol.events import PartitionMap
from rebalance_lab.traces.trace import Trace
from rebalance_logs.facts import Fact, Kind
from rebalance_logs.groups import GroupLog, Member, Round
from rebalance_logs.sessions import HEARTBEAT_MS, last_sign_ms
from rebalance_logs.triggers import Cause, Trigger

_OWNERSHIP = frozenset((Kind.OWNS, Kind.ADDED, Kind.REVOKED, Kind.LOST))

OTHERS = "others"
"""All members without a log together, where no line shows which of them owns what."""

SETTLED_MS = 5_000
"""In the first round, members take over their partitions within this time."""

_RANKS: dict[type[Any], int] = {
    ev.PartitionsAdded: -1,
    ev.MemberStarted: 0,
    ev.Revoked: 1,
    ev.Lost: 1,
    ev.MemberStopped: 2,
    ev.MemberPaused: 2,
    ev.MemberResumed: 3,
}


def trace_of(group: GroupLog, triggers: list[list[Trigger]]) -> tuple[Trace, int]:
    """Return the trace of a group, and the time at which it begins, in milliseconds since 1970."""
    events = sorted(_events(group, triggers), key=_in_order)
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
    end_ms = min(_until(group, first), first.until_ms + SETTLED_MS)
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


def _events(group: GroupLog, triggers: list[list[Trigger]]) -> list[tuple[int, ev.Event]]:
    absences = dict(_absences(group, triggers))
    found = list(_of_rounds(group, triggers))
    members = sorted(group.members.values(), key=lambda member: not member.is_logged)
    for member in members:
        own = absences.get(member.name, [])
        if member.is_logged:
            found += _Owner(group, member, own).events()
        else:
            given = group.rounds[0].owners.get(member.name, {}) if group.rounds else {}
            kept = _kept(group, triggers, given, [member.name], found)
            found += _of_unlogged(group, member, own, kept)
    return [*found, *_of_unknown_owners(group, triggers, sorted(found, key=_in_order))]


def _absences(
    group: GroupLog, triggers: list[list[Trigger]]
) -> Iterator[tuple[str, list[tuple[int, Cause]]]]:
    """Yield for each member when it ended or stood still without a line that says so."""
    for name in group.members:
        found: list[tuple[int, Cause]] = [
            (last_sign_ms(group, trigger, name, this), trigger.cause)
            for this, of_round in zip(group.rounds, triggers, strict=True)
            for trigger in of_round
            if name in trigger.members
            and trigger.cause in (Cause.SESSION_EXPIRED, Cause.STOOD_STILL)
            and not trigger.returns
        ]
        if found:
            yield name, found


def _of_rounds(group: GroupLog, triggers: list[list[Trigger]]) -> Iterator[tuple[int, ev.Event]]:
    """Yield the states of the group and its members by id."""
    members: Mapping[str, str] = {}
    state = "Empty"
    for this, of_round in zip(group.rounds, triggers, strict=True):
        cause = "; ".join(dict.fromkeys(f"{t.cause} {' '.join(t.members)}".strip() for t in of_round))
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


class _Owner:
    """Follows what one member says about its partitions."""

    def __init__(self, group: GroupLog, member: Member, absences: list[tuple[int, Cause]]) -> None:
        self._group, self._member = group, member
        self._absences = sorted(absences)
        self._owned: PartitionMap = {}
        self._generation = -1
        self._runs = False
        self._topics: list[str] = []
        self._paused = False
        self._begins: set[int] = set()

    def events(self) -> Iterator[tuple[int, ev.Event]]:
        topics = sorted({topic for fact in self._member.facts for topic in fact.partitions})
        self._begins = {
            id(fact) for fact in self._member.starts(self._group.from_ms - 1, self._group.until_ms)
        }
        before = self._owned_before()
        if before:
            self._runs = True
            yield self._group.from_ms, self._started(topics)
            yield from self._owns(self._group.from_ms, before)
        for fact in self._with_lost_lines():
            while self._absences and self._absences[0][0] < fact.at_ms:
                yield from self._absent(*self._absences.pop(0))
            yield from self._of(fact, topics)
        for at_ms, cause in self._absences:
            yield from self._absent(at_ms, cause)

    def _owned_before(self) -> PartitionMap:
        """Return what the member owned when the logs began: what it gives up, or has and was not given."""
        member, group = self._member, self._group
        first = next((fact for fact in member.facts if fact.kind in _OWNERSHIP), None)
        if first is None or member.starts(group.from_ms - 1, first.at_ms):
            return {}
        this = next(
            (r for r in group.rounds if r.known_ms >= group.from_ms and member.name in r.owners), None
        )
        until_ms = first.at_ms if this is None else _until(group, this)
        own = [fact for fact in member.facts if fact.at_ms <= until_ms]
        given: PartitionMap = {}
        kept: PartitionMap = {}
        for fact in own:
            if fact.kind is Kind.ADDED:
                given = _joined(given, fact.partitions)
            elif fact.kind in (Kind.REVOKED, Kind.LOST):
                kept = _joined(kept, _without(fact.partitions, given))
        return _joined(kept, {} if this is None else _without(this.owners[member.name], given))

    def _with_lost_lines(self) -> list[Fact]:
        """Return its facts; where no line says what it was given, the leader's assignment does."""
        facts = list(self._member.facts)
        for this in self._group.rounds:
            share, until_ms = this.owners.get(self._member.name), _until(self._group, this)
            taken = self._member.between(this.known_ms - 1, until_ms, Kind.ADDED, Kind.OWNS)
            if share is not None and not taken and this.ended_ms is not None:
                facts.append(Fact(this.ended_ms, Kind.OWNS, this.own[0].source, partitions=share))
        return sorted(facts, key=lambda fact: fact.at_ms)

    def _started(self, topics: list[str]) -> ev.MemberStarted:
        instance = self._member.instance_id or None
        return ev.MemberStarted(
            client=self._member.name, instance_id=instance, topics=topics, process_rate=None
        )

    def _absent(self, at_ms: int, cause: Cause) -> Iterator[tuple[int, ev.Event]]:
        name = self._member.name
        if not self._runs:
            return
        if cause is Cause.STOOD_STILL:
            self._paused = True
            yield at_ms, ev.MemberPaused(client=name)
        else:
            yield from self._stopped(at_ms, "crashed")

    def _stopped(self, at_ms: int, how: str) -> Iterator[tuple[int, ev.Event]]:
        if self._runs:
            self._runs, self._owned, self._paused = False, {}, False
            yield at_ms, ev.MemberStopped(client=self._member.name, how=how)

    def _of(self, fact: Fact, topics: list[str]) -> Iterator[tuple[int, ev.Event]]:
        at_ms, name, kind = fact.at_ms, self._member.name, fact.kind
        if id(fact) in self._begins:
            yield from self._stopped(at_ms - 1, "crashed")  # of one time, starts come first
        if kind is Kind.SETTINGS:
            return
        if kind is Kind.CLOSED:
            yield from self._stopped(at_ms, "closed")
            return
        if kind is Kind.SUBSCRIBED and fact.text and "*" not in fact.text:
            topics = self._topics = sorted(name.strip(" []") for name in fact.text.split(","))
            if self._runs:
                yield at_ms, ev.SubscriptionChanged(client=name, topics=topics)
        if not self._runs:
            self._runs = True
            yield at_ms, self._started(self._topics or topics)
        if self._paused:
            self._paused = False
            yield at_ms, ev.MemberResumed(client=name)
        yield from self._of_membership(fact)

    def _of_membership(self, fact: Fact) -> Iterator[tuple[int, ev.Event]]:
        at_ms, kind = fact.at_ms, fact.kind
        if kind is Kind.JOINED:
            self._generation = fact.generation if fact.generation is not None else self._generation
            yield (
                at_ms,
                ev.Joined(
                    client=self._member.name,
                    member_id=fact.member_id,
                    generation=self._generation,
                    protocol=fact.protocol,
                    leader=False,
                ),
            )
            if fact.partitions:
                yield from self._owns(at_ms, fact.partitions)
        elif kind is Kind.OWNS:
            yield from self._owns(at_ms, fact.partitions)
        elif kind is Kind.ADDED:
            yield from self._owns(at_ms, _joined(self._owned, fact.partitions))
        elif kind in (Kind.REVOKED, Kind.LOST):
            yield from self._gives_up(at_ms, fact.partitions or self._owned, lost=kind is Kind.LOST)
        elif kind in (Kind.LEAVES, Kind.POLL_EXCEEDED):
            yield from self._gives_up(at_ms, self._owned, lost=True)

    def _owns(self, at_ms: int, owned: PartitionMap) -> Iterator[tuple[int, ev.Event]]:
        gone = _without(self._owned, owned)
        yield from self._gives_up(at_ms, gone, lost=False)
        added = _without(owned, self._owned)
        self._owned = owned
        yield (
            at_ms,
            ev.Assigned(client=self._member.name, generation=self._generation, added=added, owned=owned),
        )

    def _gives_up(self, at_ms: int, gone: PartitionMap, *, lost: bool) -> Iterator[tuple[int, ev.Event]]:
        held = _without(gone, _without(gone, self._owned))
        self._owned = _without(self._owned, gone)
        if held:
            event = ev.Lost if lost else ev.Revoked
            yield at_ms, event(client=self._member.name, generation=self._generation, partitions=held)


def _until(group: GroupLog, this: Round) -> int:
    """Return when the round after another begins, or the end of the logs."""
    after = bisect_right(group.rounds, this.known_ms, key=lambda r: r.known_ms)
    return group.rounds[after].began_ms if after < len(group.rounds) else group.until_ms


def _kept(
    group: GroupLog,
    triggers: list[list[Trigger]],
    given: PartitionMap,
    names: Sequence[str],
    events: Sequence[tuple[int, ev.Event]],
) -> PartitionMap:
    """Return what members without a log had before the first round and keep, as the round is cooperative.

    That is what they are given and no log shows another to have had; nothing if all of them are among those
    that caused the round. ``names``: theirs, empty if nobody knows them.
    """
    first = group.rounds[0] if given else None
    if first is None or first.was_empty or "cooperative" not in first.protocol:
        return {}
    caused = {name for trigger in triggers[0] for name in trigger.members}
    if names and caused.issuperset(names):
        return {}
    kept = given
    for at_ms, event in events:
        if at_ms < first.known_ms and isinstance(event, ev.Assigned):
            kept = _without(kept, event.owned)
    return kept


def _of_unlogged(
    group: GroupLog, member: Member, absences: list[tuple[int, Cause]], kept: PartitionMap
) -> Iterator[tuple[int, ev.Event]]:
    """Yield what the assignments of leaders, or the coordinator, tell about a member without a log.

    ``kept``: what it has from the beginning.
    """
    topics = sorted({topic for this in group.rounds for topic in this.owners.get(member.name, {})})
    started = ev.MemberStarted(
        client=member.name, instance_id=member.instance_id or None, topics=topics, process_rate=None
    )
    owned, runs = kept, bool(kept)
    if runs:
        yield group.from_ms, started
        yield group.from_ms, ev.Assigned(client=member.name, generation=-1, added=kept, owned=kept)
    for this in group.rounds:
        name = member.name
        present = name in this.members
        assigned = this.owners.get(name, owned if group.is_consumer_protocol and present else {})
        if runs and not present:
            ended = [at_ms for at_ms, _ in absences if at_ms <= this.known_ms]
            yield (ended[-1] if ended else this.began_ms), ev.MemberStopped(client=name, how="crashed")
            runs, owned = False, {}
        if not present or (name not in this.owners and not group.is_consumer_protocol):
            continue
        if not runs:
            runs = True
            yield this.known_ms, started
        yield (
            this.known_ms,
            ev.Joined(
                client=name,
                member_id=this.members[name],
                generation=this.generation,
                protocol=this.protocol,
                leader=False,
            ),
        )
        gone = (
            _without(owned, assigned)
            if "cooperative" in this.protocol or group.is_consumer_protocol
            else owned
        )
        if gone:
            at_ms = this.began_ms if this.is_look else this.known_ms
            yield at_ms, ev.Revoked(client=name, generation=this.generation, partitions=gone)
        added = _without(assigned, _without(owned, gone))
        owned = assigned
        yield (
            this.until_ms,
            ev.Assigned(client=name, generation=this.generation, added=added, owned=owned),
        )


def _of_unknown_owners(
    group: GroupLog, triggers: list[list[Trigger]], events: Sequence[tuple[int, ev.Event]]
) -> Iterator[tuple[int, ev.Event]]:
    """Yield what members own of which no log tells what they own: what nobody else has after a round.

    Which of them owns what is not known: they are one client, `OTHERS`.
    """
    own: PartitionMap = {}
    is_started = False
    before_ms = group.from_ms
    free_before: PartitionMap = {}
    # when all have taken over, and none has begun to give up what it has for the next round
    rests = [max(0, _until(group, this) - this.until_ms) for this in group.rounds]
    times = [r.until_ms + min(SETTLED_MS, rest // 2) for r, rest in zip(group.rounds, rests, strict=True)]
    free = _free_at(events, times)
    for number, (this, now_free) in enumerate(zip(group.rounds, free, strict=True)):
        has_next = number + 1 < len(group.rounds)
        is_next_its_step = has_next and any(t.is_follow_up for t in triggers[number + 1])
        theirs: PartitionMap = now_free if _has_others(group, this) else {}
        if number == 0 and (own := _kept(group, triggers, theirs, _others(group, this), events)):
            is_started = True
            yield group.from_ms, _started(own)
            yield group.from_ms, ev.Assigned(client=OTHERS, generation=-1, added=own, owned=own)
        if is_next_its_step:  # what was revoked in this round is given away in the next one
            theirs = _without(theirs, _without(theirs, _joined(free_before, own)))
        is_eager = "cooperative" not in this.protocol
        given_up = own if is_eager else _without(own, theirs)
        if given_up:
            # they learnt of the round with their next heartbeats
            at_ms = min(this.known_ms, this.began_ms + HEARTBEAT_MS // 2) if is_eager else this.known_ms
            at_ms = before_ms if any(t.is_follow_up for t in triggers[number]) else at_ms
            yield at_ms, ev.Revoked(client=OTHERS, generation=this.generation, partitions=given_up)
        if theirs and not is_started:
            is_started = True
            yield this.known_ms, _started(theirs)
        if theirs != own or given_up:
            added = _without(theirs, _without(own, given_up))
            yield (
                this.until_ms,
                ev.Assigned(client=OTHERS, generation=this.generation, added=added, owned=theirs),
            )
        own, free_before, before_ms = theirs, now_free, this.until_ms


def _has_others(group: GroupLog, this: Round) -> bool:
    """Return whether a round has members of which neither a log nor an assignment shows what they own."""
    if group.is_consumer_protocol:
        return False
    is_counted = group.has_broker and group.rounds[0].was_empty  # from an empty group on
    if not this.is_whole and not is_counted:
        return True
    return bool(_others(group, this))


def _others(group: GroupLog, this: Round) -> list[str]:
    """Return the members of a round of which neither a log nor an assignment shows what they own."""
    return [name for name in this.members if not group.members[name].is_logged and name not in this.owners]


def _started(owned: PartitionMap) -> ev.MemberStarted:
    return ev.MemberStarted(client=OTHERS, instance_id=None, topics=sorted(owned), process_rate=None)


def _free_at(events: Sequence[tuple[int, ev.Event]], times: Sequence[int]) -> list[PartitionMap]:
    """Return the partitions that nobody owns at each of some times, which are in order."""
    owned: dict[str, PartitionMap] = {}
    every: PartitionMap = {}
    for _, event in events:
        if isinstance(event, ev.Assigned):
            highest = {
                topic: list(range(numbers[-1] + 1)) for topic, numbers in event.owned.items() if numbers
            }
            every = _joined(every, highest)
    found: list[PartitionMap] = []
    position = 0
    for at_ms in times:
        until = bisect_right(events, at_ms, lo=position, key=lambda event: event[0])
        for _, what in events[position:until]:
            if isinstance(what, ev.Assigned):
                owned[what.client] = what.owned
            elif isinstance(what, (ev.Revoked, ev.Lost)):
                owned[what.client] = _without(owned.get(what.client, {}), what.partitions)
            elif isinstance(what, ev.MemberStopped):
                owned.pop(what.client, None)
        position, free = until, every
        for partitions in owned.values():
            free = _without(free, partitions)
        found.append(free)
    return found


def _joined(first: PartitionMap, second: PartitionMap) -> PartitionMap:
    return {
        topic: sorted({*first.get(topic, ()), *second.get(topic, ())}) for topic in sorted({*first, *second})
    }


def _without(first: PartitionMap, second: PartitionMap) -> PartitionMap:
    rest = {topic: [n for n in numbers if n not in second.get(topic, ())] for topic, numbers in first.items()}
    return {topic: numbers for topic, numbers in rest.items() if numbers}
