"""Groups out of facts: their members by name, and their rounds with what each waited for.

A member has several ids over time, and several logs. Coordinators know ids only; clients know their client
id, which several processes may share. Times are milliseconds since 1970.
"""

import re
from bisect import bisect_right
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise
from pathlib import PurePath

from coordinator_core.protocol.events import PartitionMap
from rebalance_logs.facts import Fact, Kind
from rebalance_logs.findings import LoggedWait, Trigger
from rebalance_logs.reading import Logs

BARRIER_MS = 2_000
"""Clients that joined one generation say so within this time. One that says so later has returned to it."""

SILENT_MS = 60_000
"""What is said of a generation that began longer ago is of another one, or of a member that returns to it."""

LONGEST_SESSION_MS = 120_000
"""For so long a process that was killed stays a member beside the one that replaces it."""


_ID = r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}"
_UUID = re.compile(f"-{_ID}$|^{_ID}-", re.IGNORECASE)
_GIVEN = re.compile(r"given member-id: (\S+)")
_OF_GENERATIONS = frozenset(
    (Kind.JOINED, Kind.GENERATION, Kind.SYNCED, Kind.COMPUTED, Kind.ASSIGNED_BY_LEADER, Kind.EPOCH)
)
_REMOVALS = frozenset((Kind.FAILED, Kind.LEFT, Kind.TOO_SLOW, Kind.PENDING_EXPIRED))
_ASKING = frozenset((Kind.LEARNED, Kind.ASKED_TO_REJOIN, Kind.LEAVES, Kind.JOINING, Kind.LEFT, Kind.FAILED))


def _between(facts: list[Fact], from_ms: int, until_ms: int) -> list[Fact]:
    """Return the facts after a time, until another."""
    first, end = (bisect_right(facts, at_ms, key=lambda fact: fact.at_ms) for at_ms in (from_ms, until_ms))
    return facts[first:end]


@dataclass(slots=True)
class Member:
    """A consumer. ``facts``: what its own logs say, in order. ``settings``: those that they show."""

    name: str
    library: str = ""
    instance_id: str = ""
    facts: list[Fact] = field(default_factory=list)
    settings: dict[str, str] = field(default_factory=dict)

    @property
    def is_logged(self) -> bool:
        """Whether there is a log of its own."""
        return bool(self.facts)

    def setting_ms(self, name: str) -> int | None:
        """Return a setting in milliseconds, if its log shows it."""
        value = self.settings.get(name, "")
        return int(value) if value.isdecimal() else None

    def starts(self, from_ms: int, until_ms: int) -> list[Fact]:
        """Return the starts of its process after a time, until another.

        Who subscribes again without new settings changes its topics, and does not start.
        """
        if any(fact.kind in (Kind.SETTINGS, Kind.STARTED) for fact in self.facts):
            return self.between(from_ms, until_ms, Kind.SETTINGS, Kind.STARTED)
        subscribed = [fact for fact in self.facts if fact.kind is Kind.SUBSCRIBED]
        if not subscribed:
            return [fact for fact in self._first_found() if from_ms < fact.at_ms <= until_ms]
        return [
            fact
            for fact in subscribed
            if from_ms < fact.at_ms <= until_ms and (fact is subscribed[0] or fact.text == subscribed[0].text)
        ]

    def _first_found(self) -> Iterator[Fact]:
        """Yield the coordinators found and asked at once by who has not lost one: a process that starts."""
        has_one = False
        for fact, following in pairwise(self.facts):
            if fact.kind is Kind.LOST_COORDINATOR:
                has_one = False
            elif fact.kind is Kind.FOUND_COORDINATOR:
                is_new = following.kind is Kind.JOINING or (
                    following.kind is Kind.REVOKED and not following.partitions
                )
                if is_new and (has_one or fact is self.facts[0]):
                    yield fact
                has_one = True

    def last_before(self, at_ms: int, kinds: Iterable[Kind] | None = None) -> Fact | None:
        """Return its last fact until a time, of some kinds."""
        wanted = None if kinds is None else frozenset(kinds)
        for fact in reversed(_between(self.facts, -1, at_ms)):
            if wanted is None or fact.kind in wanted:
                return fact
        return None

    def between(self, from_ms: int, until_ms: int, *kinds: Kind) -> list[Fact]:
        """Return its facts of some kinds after a time, until another."""
        return [fact for fact in _between(self.facts, from_ms, until_ms) if fact.kind in kinds]


@dataclass(slots=True)
class LoggedRound:
    """One generation, or epoch of a group of the consumer protocol, as lines show it.

    A trace is made of these. Where lines show who owned what, stops and figures come from that trace alone;
    logs of coordinators have rounds and their reasons without it.

    ``began_ms``: the first sign of the round. ``joined_ms``: when all had joined; ``ended_ms``: when the last
    member had its assignment, None if no line shows it. ``members``: the id of each member. ``is_whole``:
    whether all members are known. ``facts``: those since the round before; ``own``: those that name the
    generation. ``since_ms``: when the members of the round before were known. ``triggers``, ``waits``: what
    began it, the first sign first, and for whom it waited; a diagnosis finds them.
    """

    generation: int
    began_ms: int = 0
    joined_ms: int | None = None
    ended_ms: int | None = None
    since_ms: int = 0
    protocol: str = ""
    leader: str = ""
    members: dict[str, str] = field(default_factory=dict)
    is_whole: bool = False
    owners: dict[str, PartitionMap] = field(default_factory=dict)
    facts: list[Fact] = field(default_factory=list)
    own: list[Fact] = field(default_factory=list)
    was_empty: bool = False
    triggers: list[Trigger] = field(default_factory=list)
    waits: list[LoggedWait] = field(default_factory=list)

    @property
    def is_look(self) -> bool:
        """Whether nothing but a look of ``watch`` shows it."""
        return self.own[0].is_look

    @property
    def known_ms(self) -> int:
        """When its members were known: the end of the first barrier, or the first line of the round."""
        return self.joined_ms if self.joined_ms is not None else self.own[0].at_ms

    @property
    def until_ms(self) -> int:
        """When it ended, as far as lines show."""
        return self.ended_ms if self.ended_ms is not None else self.known_ms


@dataclass(slots=True)
class GroupLog:
    """A group as its logs show it: facts in the order of one clock. ``paths``: the files of all logs."""

    group: str
    facts: list[Fact]
    members: dict[str, Member]
    names: dict[str, str]
    paths: Sequence[str] = ()
    rounds: list[LoggedRound] = field(default_factory=list)
    is_consumer_protocol: bool = False

    def name_of(self, fact: Fact) -> str:
        """Return the name of the member of a fact, "" if it is of none."""
        return self.names.get(f"{fact.source.file} {fact.client}" if fact.library else fact.member_id, "")

    def between(self, from_ms: int, until_ms: int) -> list[Fact]:
        """Return the facts after a time, until another."""
        return _between(self.facts, from_ms, until_ms)

    @property
    def from_ms(self) -> int:
        """The time of the first fact."""
        return self.facts[0].at_ms

    @property
    def until_ms(self) -> int:
        """The time of the last fact."""
        return self.facts[-1].at_ms

    @property
    def has_broker(self) -> bool:
        """Whether a coordinator's log shows the group."""
        return any(not fact.library and not fact.is_look for fact in self.facts)


def groups_of(logs: Logs, shifts: Sequence[int], only: Iterable[str] = ()) -> list[GroupLog]:
    """Return the groups of logs, in the order of their names. ``shifts``: by how much each file is ahead."""
    only = frozenset(only)
    groups: dict[str, list[Fact]] = {}
    in_files: dict[int, set[str]] = {}
    for fact in logs.facts:
        if fact.group:
            in_files.setdefault(fact.source.file, set()).add(fact.group)
    every = {group for found in in_files.values() for group in found}
    for fact in logs.facts:
        candidates = in_files.get(fact.source.file) or every
        group = fact.group or (next(iter(candidates)) if len(candidates) == 1 else "")
        if group and (not only or group in only):
            shift = shifts[fact.source.file]
            groups.setdefault(group, []).append(fact.shifted(-shift) if shift else fact)
    return [
        _group(name, sorted(facts, key=lambda f: f.at_ms), [file.path for file in logs.files])
        for name, facts in sorted(groups.items())
    ]


def base_of(member_id: str) -> str:
    """Return the client or instance id in a member id."""
    return _UUID.sub("", member_id) or member_id


def _group(name: str, facts: list[Fact], paths: Sequence[str]) -> GroupLog:
    if any(fact.generation is not None and not fact.is_look for fact in facts):
        # a look counts generations for itself: beside logs, it is of the one that these name
        facts = [replace(fact, generation=None) if fact.is_look else fact for fact in facts]
    names = _names(facts, paths)
    group = GroupLog(name, facts, {}, names, paths)
    for fact in facts:
        member_name = group.name_of(fact)
        if not member_name:
            continue
        member = group.members.setdefault(member_name, Member(member_name))
        member.instance_id = fact.instance_id or member.instance_id
        if fact.library:
            member.library = fact.library
            member.facts.append(fact)
            member.settings.update(fact.settings)
    for member_id, member_name in names.items():
        if " " not in member_id:
            group.members.setdefault(member_name, Member(member_name))
    group.is_consumer_protocol = any(fact.kind in (Kind.EPOCH, Kind.TARGET) for fact in facts)
    group.rounds = _rounds(group)
    return group


# --- names


def _names(facts: Sequence[Fact], paths: Sequence[str]) -> dict[str, str]:
    """Return the name of each client of a file (``NUMBER CLIENT``), and of each member id."""
    lives: dict[tuple[str, int], list[int]] = {}
    for fact in facts:
        if fact.library:
            lives.setdefault((fact.client, fact.source.file), []).append(fact.at_ms)
    stems = [PurePath(path.removesuffix(".gz")).stem or path for path in paths]
    wanted = {place: place[0] or _in_ids(facts, place[1]) for place in lives}
    names: dict[str, str] = {}
    for (client, file), times in lives.items():
        name = wanted[client, file]
        others = [o for place, o in lives.items() if wanted[place] == name and place[1] != file]
        shared = any(o[0] < times[-1] and times[0] < o[-1] for o in others)
        names[f"{file} {client}"] = stems[file] if shared or not name else name
    for fact in facts:
        if fact.library:
            given = _GIVEN.search(fact.text)
            for member_id in (fact.member_id, given[1] if given else ""):
                if member_id:
                    names[member_id] = names[f"{fact.source.file} {fact.client}"]
        elif fact.is_look and fact.member_id:
            names.setdefault(fact.member_id, fact.client)
    return names | _names_of_others(facts, names)


def _in_ids(facts: Sequence[Fact], file: int) -> str:
    """Return the client id in the member ids of a file whose lines do not name it."""
    found = {base_of(f.member_id) for f in facts if f.source.file == file and f.member_id and not f.client}
    return found.pop() if len(found) == 1 else ""


def _names_of_others(facts: Sequence[Fact], known: dict[str, str]) -> dict[str, str]:
    """Return the names of members without a log of their own: the client id, if it tells them apart."""
    at_once: set[str] = set()
    others: dict[str, None] = {}
    for fact in facts:
        ids = [*fact.assignments, *([] if fact.library else [fact.member_id]), *fact.others]
        others.update(dict.fromkeys(member_id for member_id in ids if member_id and member_id not in known))
        bases = Counter(base_of(member_id) for member_id in fact.assignments if member_id not in known)
        at_once.update(base for base, count in bases.items() if count > 1)
    shared = at_once | (_shared(facts) - set(known.values()))
    names = {}
    for member_id in others:
        base = base_of(member_id)
        rest = member_id[len(base) + 1 :][:8]
        names[member_id] = f"{base}-{rest}" if rest and base in shared else base
    return names


def _shared(facts: Sequence[Fact]) -> set[str]:
    """Return the client ids that several members have at once, and not after one another was killed."""
    joined: dict[str, dict[str, int]] = {}
    ended: dict[str, int] = {}
    for fact in facts:
        if fact.library or not fact.member_id or fact.instance_id:
            continue
        if fact.kind in _REMOVALS:
            ended[fact.member_id] = fact.at_ms
        elif fact.kind in (Kind.JOINS_KNOWN, Kind.JOINS_NEW):
            joined.setdefault(base_of(fact.member_id), {}).setdefault(fact.member_id, fact.at_ms)
    until_ms = facts[-1].at_ms
    shared = set()
    for base, times in joined.items():
        for (first, _), (_, next_ms) in pairwise(times.items()):
            if ended.get(first, until_ms + SILENT_MS) > next_ms + LONGEST_SESSION_MS:
                shared.add(base)
    return shared


# --- rounds


def _rounds(group: GroupLog) -> list[LoggedRound]:
    rounds = _numbered(group)
    for before, this in zip([None, *rounds], rounds, strict=False):
        _complete(group, before, this)
    return rounds


def _numbered(group: GroupLog) -> list[LoggedRound]:
    """Return the rounds with the facts that name their generations, in order."""
    rounds: list[LoggedRound] = []
    era: dict[int, LoggedRound] = {}
    for fact in group.facts:
        if fact.kind not in _OF_GENERATIONS:
            continue
        number = fact.generation
        if number is None:
            number = _guessed(group, rounds, fact)
        last = rounds[-1] if rounds else None
        if last is not None and number < last.generation and fact.at_ms > last.until_ms + SILENT_MS:
            earlier = era.get(number)
            if number <= 1 and (earlier is None or not _returns(group, earlier, fact)):
                era = {}
        this = era.get(number)
        if this is None:
            this = era[number] = LoggedRound(number)
            rounds.append(this)
        this.own.append(fact)
    return sorted(rounds, key=lambda r: r.own[0].at_ms)


def _returns(group: GroupLog, this: LoggedRound, fact: Fact) -> bool:
    """Return whether a member that joined a generation does it again: a static one that was restarted."""
    name = group.name_of(fact)
    return bool(name) and any(group.name_of(other) == name for other in this.own)


def _guessed(group: GroupLog, rounds: Sequence[LoggedRound], fact: Fact) -> int:
    """Return a number for a generation that the client does not name: those are counted."""
    if not rounds:
        return 1
    last, name = rounds[-1], group.name_of(fact)
    joined = any(f.kind is fact.kind and group.name_of(f) == name for f in last.own)
    is_near = fact.at_ms - last.own[0].at_ms <= BARRIER_MS
    return (
        last.generation if fact.kind is not Kind.JOINED or (is_near and not joined) else last.generation + 1
    )


def _complete(group: GroupLog, before: LoggedRound | None, this: LoggedRound) -> None:
    """Find the members, the times and the signs of a round."""
    joins = [fact for fact in this.own if fact.kind in (Kind.JOINED, Kind.GENERATION)]
    if joins:
        this.joined_ms = joins[0].at_ms
    at_barrier = [fact for fact in joins if fact.at_ms - joins[0].at_ms <= BARRIER_MS]
    until_ms = max((fact.at_ms for fact in at_barrier), default=this.known_ms)
    this.since_ms = group.from_ms - 1 if before is None else before.known_ms
    joined = {} if before is None else _joins_of(group, before)
    this.facts = [
        fact
        for fact in group.between(this.since_ms, until_ms)
        if joined.get(group.name_of(fact) if fact.library else "", this.since_ms) < fact.at_ms <= until_ms
    ]
    computed = [fact for fact in this.own if fact.kind is Kind.COMPUTED]
    if computed:
        shares = min(computed, key=lambda fact: fact.is_look)
        this.leader, this.protocol = group.name_of(shares), shares.protocol
        for member_id, owned in shares.assignments.items():
            this.members[group.names.get(member_id, member_id)] = member_id
            this.owners[group.names.get(member_id, member_id)] = owned
        this.is_whole = True
    if not this.is_whole:
        this.members = _carried(group, before, this, until_ms)
    for fact in at_barrier:
        name = group.name_of(fact)
        if name:
            this.members[name] = fact.member_id or this.members.get(name, "")
        this.protocol = fact.protocol or this.protocol
    assigns = [f for f in group.between(this.since_ms, this.known_ms + BARRIER_MS) if f.kind is Kind.ASSIGNS]
    this.protocol = this.protocol or next((fact.protocol for fact in reversed(assigns)), "")
    received = [fact for fact in this.own if fact.kind is Kind.ASSIGNED_BY_LEADER]
    synced = [
        fact
        for fact in this.own
        if fact.kind is Kind.SYNCED
        and fact.at_ms - this.known_ms <= SILENT_MS
        and _is_first(this.own, fact, group)
    ]
    ends = [fact.at_ms for fact in (*received[:1], *synced)] or _taken_over(group, this)
    this.ended_ms = max(ends, default=None)
    this.was_empty = _was_empty(before, this)
    this.began_ms = _began(this)
    if group.is_consumer_protocol:
        _complete_epoch(group, before, this)


def _taken_over(group: GroupLog, this: LoggedRound) -> list[int]:
    """Return when members took their assignments over, of clients that do not say when they had them."""
    found = [fact.at_ms for fact in this.own if fact.kind is Kind.JOINED and fact.partitions]
    for name in this.members:
        member = group.members[name]
        owns = member.between(
            this.known_ms - 1, this.known_ms + SILENT_MS, Kind.OWNS, Kind.ADDED, Kind.JOINING
        )
        if owns and owns[0].kind is not Kind.JOINING:
            found.append(owns[0].at_ms)
    return found


def _carried(group: GroupLog, before: LoggedRound | None, this: LoggedRound, until_ms: int) -> dict[str, str]:
    """Return the members of a round as the coordinator's lines add and remove them."""
    if not group.has_broker:
        return {}
    members = dict(before.members) if before is not None else {}
    for fact in this.facts:
        if fact.library or fact.at_ms > until_ms:
            continue
        ids = fact.others if fact.kind is Kind.LEFT_BEHIND else (fact.member_id,)
        for member_id in ids:
            name = group.names.get(member_id, "")
            if not name:
                continue
            if fact.kind in _REMOVALS or fact.kind is Kind.LEFT_BEHIND:
                if members.get(name) == member_id:
                    del members[name]
            elif fact.kind in (Kind.JOINS_KNOWN, Kind.REPLACED, Kind.ROUND_BEGAN):
                members[name] = member_id
    return members


def _was_empty(before: LoggedRound | None, this: LoggedRound) -> bool:
    """Return whether a group had no members before a round."""
    if any(fact.kind is Kind.EMPTY for fact in this.facts):
        return True
    return before is None and not any(
        fact.is_look
        or fact.kind in (Kind.LEARNED, Kind.LEFT, Kind.FAILED, Kind.LEAVES)
        or (fact.kind is Kind.ASKED_TO_REJOIN and "already rebalancing" in fact.text)
        or (fact.kind is Kind.REVOKED and fact.partitions)
        for fact in this.facts
    )


def _is_first(own: Sequence[Fact], fact: Fact, group: GroupLog) -> bool:
    name = group.name_of(fact)
    return next(f for f in own if f.kind is fact.kind and group.name_of(f) == name) is fact


def _joins_of(group: GroupLog, before: LoggedRound) -> dict[str, int]:
    """Return when each member says that it joined a round: what it says after that is of the next one."""
    return {
        group.name_of(fact): fact.at_ms
        for fact in before.own
        if fact.library and fact.kind is Kind.JOINED and fact.at_ms - before.known_ms <= SILENT_MS
    }


def _began(this: LoggedRound) -> int:
    """Return the first sign of a round: the coordinator's own, or else that of a client."""
    said = [fact for fact in this.facts if fact.kind is Kind.ROUND_BEGAN and not fact.is_look]
    if said:
        return min(fact.at_ms for fact in said)
    signs = [
        fact.at_ms
        for fact in this.facts
        if (fact.kind in _ASKING or fact.is_look)
        and not (fact.kind is Kind.ASKED_TO_REJOIN and "pro-actively" in fact.text)
    ]
    return min(signs, default=this.known_ms)


def _complete_epoch(group: GroupLog, before: LoggedRound | None, this: LoggedRound) -> None:
    """A round of the consumer protocol lasts until each member is stable in the epoch."""
    this.began_ms = this.began_ms if this.is_look else this.own[0].at_ms
    after = [fact for fact in group.facts if fact.at_ms >= this.began_ms]
    end = next(
        (f.at_ms for f in after if f.kind is Kind.EPOCH and (f.generation or 0) > this.generation), None
    )
    states = [
        fact
        for fact in after
        if fact.kind is Kind.MEMBER_STATE and not fact.library and (end is None or fact.at_ms < end)
    ]
    if before is not None and not this.is_look:
        this.members = dict(before.members)
    for fact in this.facts:
        if fact.kind in (Kind.FAILED, Kind.LEFT, Kind.TOO_SLOW):
            this.members.pop(group.name_of(fact), None)
    for fact in states:
        name = group.name_of(fact)
        this.members[name] = fact.member_id
        if fact.partitions or fact.text == "STABLE":
            this.owners[name] = fact.partitions
    stable = [fact.at_ms for fact in states if fact.text == "STABLE" and fact.generation == this.generation]
    this.ended_ms = max(stable, default=None)
    this.is_whole = True
