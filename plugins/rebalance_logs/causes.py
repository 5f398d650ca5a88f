"""The causes of a group's rebalances in order of what they cost, with evidence and how sure each is."""

from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, tzinfo
from itertools import chain, compress, zip_longest
from pathlib import Path
from statistics import mean
from typing import NamedTuple

import numpy as np

from coordinator_core.model import TopicPartition
from rebalance_lab.traces.history import History
from rebalance_lab.traces.trace import Trace
from rebalance_logs.clocks import shifts_of
from rebalance_logs.facts import Kind, Source
from rebalance_logs.findings import RANK, Cause, Confidence, LoggedWait, Trigger
from rebalance_logs.groups import BARRIER_MS, GroupLog, LoggedRound, groups_of
from rebalance_logs.patterns import recognise
from rebalance_logs.reading import file_names, messages_at, read_logs
from rebalance_logs.recording import trace_of, within
from rebalance_logs.remedies import Case, Remedy, in_vain, price_of, remedies_of, static_cost_ms
from rebalance_logs.triggers import fenced, triggers_of
from rebalance_logs.waits import waits_of

SLOW_BATCH_MS = 3_000
"""A round that waits longer for the batch of one member than an interval of heartbeats is told as such."""

INITIAL_DELAY_MS = 1_000
"""An empty group in which the first round takes longer than this waits for more members."""


SAME_MOMENT_MS = 5
"""Times of one moment in different files differ by so much."""


LEAST_SHARE_OF_OTHERS = 0.1
"""A cooperative assignor helps against a cause if others lose more than this share of what it costs."""

MOST_EVIDENCE = 3

_ENDS = {
    Kind.FAILED: Cause.SESSION_EXPIRED,
    Kind.LEFT: Cause.MEMBER_LEFT,
    Kind.LEAVES: Cause.MEMBER_LEFT,
    Kind.POLL_EXCEEDED: Cause.POLL_INTERVAL,
}


class Stop(NamedTuple):
    """A time in which nobody worked on a partition, in milliseconds since 1970. ``owner``: the last one."""

    partition: TopicPartition
    owner: str
    from_ms: int
    until_ms: int


class HoldUp(NamedTuple):
    """A part of a round in which it waited for one thing, which is a cause by itself."""

    trigger: Trigger
    from_ms: int
    until_ms: int


@dataclass(slots=True)
class DiagnosedCause:
    """A cause. ``stopped_ms``: the partition time that it cost, None if the logs do not show it.

    ``others_ms``: the part that partitions cost which were not those of ``members``. ``is_start``: it is of
    the start of the group, which is not measured. ``price``: what the remedies cost. ``in_vain``: what
    does not help.
    """

    cause: Cause
    members: list[str] = field(default_factory=list)
    generations: list[int] = field(default_factory=list)
    stopped_ms: int | None = None
    confidence: Confidence = Confidence.HIGH
    evidence: list[Source] = field(default_factory=list)
    remedies: list[Remedy] = field(default_factory=list)
    triggers: list[Trigger] = field(default_factory=list)
    is_start: bool = False
    others_ms: int = 0
    price: str = ""
    in_vain: str = ""


@dataclass(frozen=True, slots=True)
class Diagnosis:
    """What happened to a group.

    ``stops``: every time in which a partition had no working owner. ``base_ms``: the time of the beginning of
    ``trace``. ``from_ms``, ``until_ms``: the time of which it tells: what is before is in the trace and is
    not measured there. Times are milliseconds since 1970.
    """

    group: GroupLog
    causes: list[DiagnosedCause]
    stops: list[Stop]
    trace: Trace
    base_ms: int
    from_ms: int
    until_ms: int

    @property
    def stopped_ms(self) -> int:
        """The partition time of all stops."""
        return sum(stop.until_ms - stop.from_ms for stop in self.stops)

    def notes(self) -> list[list[object]]:
        """Return the lines that show the causes, with their times in ``trace``: for ``notes`` of a view.

        Those of the start of the group are left out.

        Raises:
            OSError: if a file cannot be read any more.
        """
        times = {fact.source: fact.at_ms - self.base_ms for fact in self.group.facts}
        sources = {
            source
            for found in self.causes
            if not found.is_start
            for trigger in found.triggers
            for source in trigger.evidence
        }
        messages = messages_at(self.group.paths, sources)
        names = file_names(self.group.paths)
        return [
            [max(0, times[source]), f"{names[source.file]}:{source.line} {messages[source]}"]
            for source in sorted(messages, key=lambda source: (times.get(source, 0), source))
            if source in times
        ]


def diagnose(*paths: str | Path, zone: tzinfo = UTC) -> list[Diagnosis]:
    """Return what happened to each group in logs: files and folders, as the command of this name reads them.

    ``zone``: of times without one.

    Raises:
        InputError: if a path does not exist, or a folder has no files.
    """
    logs = read_logs([str(path) for path in paths], zone=zone)
    return [diagnosed(group) for group in groups_of(logs, shifts_of(logs))]


def diagnosed(group: GroupLog, from_ms: int | None = None, until_ms: int | None = None) -> Diagnosis:
    """Find the causes of what happened to a group, from a time until another, in milliseconds since 1970.

    What happened before and after is read, so that members and their settings are known, and is not told.
    """
    from_ms = group.from_ms if from_ms is None else from_ms
    until_ms = group.until_ms if until_ms is None else until_ms
    group = replace(group, rounds=[replace(this, waits=waits_of(group, this)) for this in group.rounds])
    for this, of_round in zip(group.rounds, triggers_of(group), strict=True):
        this.triggers = of_round
    trace, base_ms = trace_of(group)
    stops = list(_clipped(_stops(trace, base_ms), from_ms, until_ms))
    outside_rounds = [*_restarts_without_a_round(group), *_after_the_last_round(group)]
    outside_rounds += [
        fenced(group, fact) for fact in group.facts if fact.kind in (Kind.FENCED, Kind.CLIENT_FENCED)
    ]
    recognise(group, outside_rounds)
    is_told = [
        this.until_ms >= from_ms and this.began_ms <= until_ms and not _is_found(group, this)
        for this in group.rounds
    ]
    costs = _Costs(
        group, is_told, [trigger for trigger in outside_rounds if from_ms <= trigger.at_ms <= until_ms]
    )
    return Diagnosis(
        replace(group, rounds=list(compress(group.rounds, is_told))),
        costs.causes(stops),
        stops,
        within(trace, from_ms - base_ms, until_ms - base_ms),
        base_ms,
        max(from_ms, group.from_ms),
        min(until_ms, group.until_ms),
    )


def _is_found(group: GroupLog, this: LoggedRound) -> bool:
    """Return whether a round is no more than the state in which `watch` found the group."""
    return this is group.rounds[0] and this.is_look and not this.was_empty


def _clipped(stops: Iterable[Stop], from_ms: int, until_ms: int) -> Iterator[Stop]:
    """Yield the parts of stops from a time until another."""
    for stop in stops:
        first, last = max(stop.from_ms, from_ms), min(stop.until_ms, until_ms)
        if last > first:
            yield stop._replace(from_ms=first, until_ms=last)


def _stops(trace: Trace, base_ms: int) -> Iterator[Stop]:
    history = History(trace)
    ledger = history.ledger
    for number, from_ms, until_ms in history.stops.intervals.tolist():
        if until_ms > from_ms:
            (partition,) = ledger.index.partitions(np.array([number], dtype=np.int32))
            owners = [
                span.client
                for span in ledger.of(partition)
                if span.from_ms < until_ms and span.from_ms <= from_ms
            ]
            yield Stop(partition, owners[-1] if owners else "", base_ms + from_ms, base_ms + until_ms)


# --- without a round


def _restarts_without_a_round(group: GroupLog) -> Iterator[Trigger]:
    """Yield restarts of members that kept their place: static ones that were away for less than a session."""
    for member in group.members.values():
        starts = member.starts(group.from_ms - 1, group.until_ms)
        seen_ms = 0
        for fact in starts:
            began_ms, seen_ms = seen_ms, fact.at_ms
            if not began_ms:
                continue
            last = member.last_before(fact.at_ms - 1)
            joined = member.between(fact.at_ms, group.until_ms, Kind.JOINED)
            if joined and any(
                r.known_ms + BARRIER_MS < joined[0].at_ms and r.generation == joined[0].generation
                for r in group.rounds
            ):
                gone = member.between(began_ms, fact.at_ms - 1, Kind.REVOKED, Kind.CLOSED, Kind.LEAVES)
                away_ms = gone[0].at_ms if gone else (last.at_ms if last else fact.at_ms)
                sources = [f.source for f in gone[:1]] + [fact.source]
                yield Trigger(Cause.MEMBER_LEFT, away_ms, [member.name], sources, restarted=True)


def _after_the_last_round(group: GroupLog) -> list[Trigger]:
    """Return what happened when no round follows any more, unless the whole group was shut down."""
    last = group.rounds[-1] if group.rounds else None
    found: list[Trigger] = []
    for fact in group.between(last.known_ms if last else group.from_ms - 1, group.until_ms):
        cause = _ENDS.get(fact.kind)
        name = group.name_of(fact)
        if cause is None or not name or (last and fact.at_ms < last.until_ms and fact.library):
            continue
        if "poll timeout" in f"{fact.text} {fact.cause}":
            cause = Cause.POLL_INTERVAL
        same = next((t for t in found if t.members == [name]), None)
        if same is None:
            found.append(Trigger(cause, fact.at_ms, [name], [fact.source]))
        else:
            same.evidence.append(fact.source)
    left = {name for trigger in found for name in trigger.members}
    ends = all(trigger.cause is Cause.MEMBER_LEFT for trigger in found)
    return [] if last is not None and ends and left.issuperset(last.members) else found


# --- costs


class _Costs:
    """Which stop belongs to which cause.

    ``is_told``: of which rounds the diagnosis tells. ``outside_rounds``: what happened without a round.
    ``start``: the causes of the start of the group, which is not measured; ``found``: all others.
    """

    def __init__(self, group: GroupLog, is_told: Sequence[bool], outside_rounds: Sequence[Trigger]) -> None:
        self.group, self.outside_rounds = group, outside_rounds
        told = list(zip(group.rounds, is_told, strict=True))
        self.triggers = _resolved([this.triggers if is_told else [] for this, is_told in told])
        self.held = [_hold_up(group, this) if is_told else None for this, is_told in told]
        self.start: dict[Cause, DiagnosedCause] = {}
        self.found: dict[Cause, DiagnosedCause] = {}
        for position, (this, of_round) in enumerate(zip(group.rounds, self.triggers, strict=True)):
            starts = (
                position == 0 and this.was_empty and all(t.cause is Cause.MEMBER_JOINED for t in of_round)
            )
            of_this = self.start if starts and of_round else self.found
            held = self.held[position]
            for trigger in (*of_round, *([] if held is None else [held.trigger])):
                _add(_of(of_this, trigger.cause), trigger, this.generation)
        for trigger in outside_rounds:
            _add(_of(self.found, trigger.cause), trigger, None)
        if self.start:
            self.triggers[0] = []

    def causes(self, stops: Sequence[Stop]) -> list[DiagnosedCause]:
        """Return all causes with what they cost and what helps, the dearest first and the start last."""
        group = self.group
        if stops or any(member.is_logged for member in group.members.values()):
            for cause in self.found.values():
                cause.stopped_ms = 0
            for stop in stops:
                self._count(stop)
        for cause in self.start.values():
            cause.is_start = True
        every = [*self.found.values(), *self.start.values()]
        sizes = [len(this.members) for this in group.rounds if this.members]
        share = len({stop.partition for stop in stops}) / mean(sizes) if sizes else 0.0
        for cause in every:
            cause.evidence = list(_best(cause.triggers))[:MOST_EVIDENCE]
            if cause is not self.start.get(Cause.MEMBER_JOINED):
                _add_remedies(group, cause, share)
        lengths = {r.generation: r.until_ms - r.began_ms for r in group.rounds}

        def cost(cause: DiagnosedCause) -> tuple[int, int]:
            """The stopped time; where it is not known, the time of rounds."""
            if cause.stopped_ms is not None:
                return cause.stopped_ms, 0
            return -1, -1 if cause.is_start else sum(lengths[number] for number in cause.generations)

        return sorted(every, key=cost, reverse=True)

    def _count(self, stop: Stop) -> None:
        """Add a stop to its cause; the part in which a round was held up to what held it."""
        group = self.group
        first, end = (
            bisect_right(group.rounds, at_ms, key=lambda r: r.known_ms)
            for at_ms in (stop.from_ms, stop.until_ms + SAME_MOMENT_MS)
        )
        if group.is_consumer_protocol:  # members take partitions over while the round goes on
            first = bisect_right(group.rounds, stop.from_ms, key=lambda r: r.until_ms)
            end = bisect_right(group.rounds, stop.until_ms, key=lambda r: r.began_ms)
        starts = bool(group.rounds) and group.rounds[0].was_empty
        positions = range(max(first, 1) if starts else first, end)
        rest_ms = stop.until_ms - stop.from_ms
        for wait in filter(None, self.held[positions.start : positions.stop]):
            waited_ms = min(stop.until_ms, wait.until_ms) - max(stop.from_ms, wait.from_ms)
            if waited_ms > 0:
                _charge(_of(self.found, wait.trigger.cause), waited_ms, stop)
                rest_ms -= waited_ms
        trigger = self._responsible(positions, stop)
        if trigger is not None:
            _charge(_of(self.found, trigger.cause), max(0, rest_ms), stop)

    def _responsible(self, positions: range, stop: Stop) -> Trigger | None:
        """Return the trigger that a stop belongs to: one of its last owner, or else the round's first."""
        candidates = list(chain.from_iterable(self.triggers[positions.start : positions.stop]))
        own = [t for t in candidates if stop.owner in t.members]
        if own or candidates:
            return (own or candidates)[0]
        away = [
            t for t in self.outside_rounds if stop.owner in t.members and abs(t.at_ms - stop.from_ms) <= 5_000
        ]
        if away:
            return away[0]
        of_owner = [
            (this, trigger)
            for this, of_round in zip(self.group.rounds, self.triggers, strict=True)
            for trigger in of_round
            if stop.owner in trigger.members
        ]
        later = [trigger for this, trigger in of_owner if this.began_ms >= stop.from_ms - SAME_MOMENT_MS]
        if later:
            return later[0]
        goes_on = not positions and stop.until_ms >= self.group.until_ms - SAME_MOMENT_MS
        return of_owner[-1][1] if of_owner and goes_on else None


def _add_remedies(group: GroupLog, cause: DiagnosedCause, share: float) -> None:
    """Add to a cause what helps against it. ``share``: how many partitions a member owns."""
    known = [group.members[name] for name in cause.members if name in group.members]
    case = Case(group, cause.cause, known, cause.triggers)
    counts = cause.stopped_ms is None or cause.others_ms >= LEAST_SHARE_OF_OTHERS * cause.stopped_ms
    static_ms = static_cost_ms(case, share)
    is_dear = static_ms is not None and 0 < (cause.stopped_ms or 0) <= static_ms
    cause.remedies = remedies_of(case, others_stop=counts, static_helps=not is_dear)
    cause.price = price_of(case) if cause.remedies else ""
    cause.in_vain = in_vain(case, static_ms if is_dear else None)


def _of(found: dict[Cause, DiagnosedCause], cause: Cause) -> DiagnosedCause:
    return found.setdefault(cause, DiagnosedCause(cause))


def _best(triggers: Sequence[Trigger]) -> Iterator[Source]:
    """Yield the lines of triggers, once each: the best of each trigger first."""
    listed = [line for rank in zip_longest(*(t.evidence for t in triggers)) for line in rank if line]
    yield from dict.fromkeys(listed)


def _resolved(triggers: list[list[Trigger]]) -> list[list[Trigger]]:
    """Return the triggers of each round; those of a follow-up are those of the round that it completes."""
    resolved: list[list[Trigger]] = []
    for of_round in triggers:
        if of_round and all(t.is_follow_up for t in of_round) and resolved and resolved[-1]:
            resolved.append(resolved[-1])
        else:
            resolved.append(of_round)
    return resolved


def _add(found: DiagnosedCause, trigger: Trigger, generation: int | None) -> None:
    found.members += [name for name in trigger.members if name not in found.members]
    if generation is not None and generation not in found.generations:
        found.generations.append(generation)
    found.confidence = min(found.confidence, trigger.confidence, key=RANK.__getitem__)
    if trigger not in found.triggers:
        found.triggers.append(trigger)


def _hold_up(group: GroupLog, this: LoggedRound) -> HoldUp | None:
    """Return what held a round up: a slow batch, a member that never came back, or the initial delay."""
    if this.was_empty:
        return _initial_delay(group, this)
    expired = [
        fact for fact in this.facts if fact.kind is Kind.PENDING_EXPIRED and fact.at_ms > this.began_ms
    ]
    for wait in this.waits:
        if wait.why in ("batch", "callback") and wait.until_ms - wait.from_ms >= SLOW_BATCH_MS:
            return HoldUp(_of_wait(group, this, wait), wait.from_ms, wait.until_ms)
        if expired and wait.until_ms == expired[-1].at_ms:
            sources = [fact.source for fact in expired]
            trigger = Trigger(Cause.NO_HEARTBEAT, wait.from_ms, [wait.member], sources)
            return HoldUp(trigger, wait.from_ms, wait.until_ms)
    return None


def _initial_delay(group: GroupLog, this: LoggedRound) -> HoldUp | None:
    """Return the wait of a coordinator for more members of an empty group. Nothing else delays its round.

    Without lines of the coordinator, the group was empty if it is its first generation.
    """
    if this.joined_ms is None or group.is_consumer_protocol:
        return None
    joined_ms = this.joined_ms
    empty = [fact for fact in this.facts if fact.kind is Kind.EMPTY]
    began = [
        fact
        for fact in this.facts
        if fact.kind is Kind.ROUND_BEGAN
        and (fact.at_ms >= empty[-1].at_ms if empty else fact.generation == 0)
    ]
    if not began and (group.has_broker or this.generation != 1):
        return None
    first = (began or [f for f in this.facts if f.kind is Kind.JOINING])[:1]
    from_ms = first[0].at_ms if first else this.began_ms
    if joined_ms - from_ms < INITIAL_DELAY_MS:
        return None
    sources = [fact.source for fact in (*first, this.own[0])]
    sure = Confidence.HIGH if began else Confidence.MEDIUM
    return HoldUp(Trigger(Cause.INITIAL_DELAY, from_ms, [], sources, sure), from_ms, joined_ms)


def _of_wait(group: GroupLog, this: LoggedRound, wait: LoggedWait) -> Trigger:
    member = group.members[wait.member]
    lines = member.between(this.began_ms - 1, wait.until_ms, Kind.LEARNED, Kind.ASKED_TO_REJOIN, Kind.JOINING)
    sources = [fact.source for fact in (*lines[:1], *lines[-1:])] or [this.own[0].source]
    return Trigger(Cause.SLOW_BATCH, wait.from_ms, [wait.member], list(dict.fromkeys(sources)))


def _charge(found: DiagnosedCause, stopped_ms: int, stop: Stop) -> None:
    found.stopped_ms = (found.stopped_ms or 0) + stopped_ms
    found.others_ms += 0 if stop.owner in found.members else stopped_ms
