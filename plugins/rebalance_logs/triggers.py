"""What began each round, from the coordinator's reasons or from what the logs of members show."""

import re
from bisect import bisect_left
from collections.abc import Mapping, Sequence

from rebalance_logs.facts import Fact, Kind
from rebalance_logs.findings import RANK, Cause, Confidence, Trigger
from rebalance_logs.groups import LONGEST_SESSION_MS, GroupLog, LoggedRound, Member

RETURN_MS = 600_000
"""A member that was removed and joins again within this time has come back."""

SESSIONS_MS = (45_000, 10_000, 30_000)
"""Sessions of clients whose settings are not known: the defaults of libraries, the most frequent first."""

NEW_MEMBER_MS = 300_000
"""A new member that waits in a round has no session yet. The coordinator gives it up after this time."""

REAPED_MS = 500
"""Coordinators look so often for what has expired, and a little less."""

_ARRIVALS = frozenset((Kind.JOINS_KNOWN, Kind.JOINS_NEW, Kind.REPLACED, Kind.ROUND_BEGAN))

FOLLOWS_MS = 10_000
"""The second round of a cooperative rebalance begins within this time after the first."""

_MEMBER = re.compile(r"[Mm]ember(?: id)? ([^\s;,)]+)")
_MEMBERS = re.compile(r"[Rr]emoving \[?(?:Set\()?([^\])]+)[\])]? on pending sync")
_UNREACHABLE = re.compile(
    r"session timed out without|NodeNotReady|[Tt]ransport|[Dd]isconnect|Connection|\d ms$"
)


_CLIENT_REASONS = (
    (re.compile(r"revok|gave up"), Cause.ASSIGNOR, True),
    (re.compile(r"subscription"), Cause.SUBSCRIPTION, False),
    (re.compile(r"metadata|partitions of|topics? .*changed|new partitions"), Cause.METADATA, False),
    (re.compile(r"[Pp]robing|[Ff]ollow-?up|[Ss]hutdown requested"), Cause.ASSIGNOR, False),
)
"""What the reasons of clients mean, and whether they are the next step of the round before."""


def triggers_of(group: GroupLog) -> list[list[Trigger]]:
    """Return what began each round, the first sign first. A round without one has an empty list."""
    found: list[list[Trigger]] = []
    signs = _signs(group)
    for position, this in enumerate(group.rounds):
        before = group.rounds[position - 1] if position else None
        said = _of_coordinator(group, this, before, signs)
        seen = _of_members(group, this, before)
        merged = _merged(said, seen)
        if not any(t for t in merged if not t.is_follow_up):
            merged += _of_environment(group, this)
        for trigger in merged:
            trigger.evidence = trigger.evidence or [this.own[0].source]
        found.append(sorted(merged, key=lambda t: t.at_ms))
    _find_returns(group, found)
    return found


def _merged(said: list[Trigger], seen: list[Trigger]) -> list[Trigger]:
    """Return the triggers of both: a coordinator's word counts more, and more lines are more evidence."""
    result: list[Trigger] = []
    for trigger in (*said, *seen):
        same = next(
            (
                t
                for t in result
                if (set(t.members) & set(trigger.members) or (not t.members and not trigger.members))
                and (t.cause is trigger.cause or {t.cause, trigger.cause} <= _ENDS or t.is_follow_up)
            ),
            None,
        )
        if same is None:
            result.append(trigger)
            continue
        if RANK[trigger.confidence] > RANK[same.confidence] or same.cause is Cause.MEMBER_LEFT:
            same.cause = trigger.cause
        same.confidence = max(same.confidence, trigger.confidence, key=RANK.__getitem__)
        same.evidence += [source for source in trigger.evidence if source not in same.evidence]
        same.members += [name for name in trigger.members if name not in same.members]
        same.at_ms = min(same.at_ms, trigger.at_ms)
        same.restarted = same.restarted or trigger.restarted
    if len(result) > 1 and any(not t.is_follow_up for t in result):
        result = [t for t in result if not t.is_follow_up]
    return result


_ENDS = {
    Cause.MEMBER_LEFT,
    Cause.SESSION_EXPIRED,
    Cause.POLL_INTERVAL,
    Cause.STOOD_STILL,
    Cause.NO_HEARTBEAT,
    Cause.SLOW_BATCH,  # removed, as it did not join in time
}


# --- what the coordinator says


_CAUSE_OF_MEMBER_LINE = {
    Kind.TOO_SLOW: Cause.SLOW_BATCH,
    Kind.RESUBSCRIBED: Cause.SUBSCRIPTION,
    Kind.JOINS_KNOWN: Cause.MEMBER_JOINED,
}
"""Lines that speak of one member."""

_CAUSE_OF_GROUP_LINE = {
    Kind.LOADED: Cause.FAILOVER,
    Kind.UNLOADED: Cause.FAILOVER,
    Kind.TOPICS_CHANGED: Cause.METADATA,
}
"""Lines that speak of a group that exists already."""


def _signs(group: GroupLog) -> dict[str, list[Fact]]:
    """Return what lines say of each member id, in order."""
    found: dict[str, list[Fact]] = {}
    for fact in group.facts:
        if fact.member_id:
            found.setdefault(fact.member_id, []).append(fact)
    return found


def _of_coordinator(
    group: GroupLog, this: LoggedRound, before: LoggedRound | None, signs: Mapping[str, Sequence[Fact]]
) -> list[Trigger]:
    found: list[Trigger] = []
    for fact in this.facts:
        if fact.library:
            continue
        if fact.kind is Kind.ROUND_BEGAN:
            found += _of_reason(group, fact, this, before)
        elif fact.kind is Kind.FAILED:
            found.append(_about(group, fact, _of_failure(group, fact, before, signs)))
        elif fact.kind in _CAUSE_OF_MEMBER_LINE or (fact.kind is Kind.JOINS_NEW and fact.instance_id):
            found.append(_about(group, fact, _CAUSE_OF_MEMBER_LINE.get(fact.kind, Cause.MEMBER_JOINED)))
        elif fact.kind is Kind.LEFT:
            found.append(_about(group, fact, _of_leave(fact.cause)))
        elif fact.kind is Kind.LEFT_BEHIND:
            names = [group.names.get(member_id, member_id) for member_id in fact.others]
            found.append(Trigger(Cause.SLOW_BATCH, fact.at_ms, names, [fact.source], Confidence.MEDIUM))
        elif fact.kind is Kind.FENCED:
            found.append(fenced(group, fact))
        elif fact.kind in _CAUSE_OF_GROUP_LINE and before is not None:
            found.append(Trigger(_CAUSE_OF_GROUP_LINE[fact.kind], fact.at_ms, [], [fact.source]))
    return found


def _about(group: GroupLog, fact: Fact, cause: Cause) -> Trigger:
    name = group.names.get(fact.member_id, fact.member_id)
    return Trigger(cause, fact.at_ms, [name] if name else [], [fact.source])


def _of_failure(
    group: GroupLog, fact: Fact, before: LoggedRound | None, signs: Mapping[str, Sequence[Fact]]
) -> Cause:
    """Return how a member ended that a coordinator removed: its session began with its join, or later.

    It never sent a heartbeat if it was removed a session after the only round in which it was, or after
    the time for new members.
    """
    name = group.names.get(fact.member_id, "")
    own = [sign for sign in signs.get(fact.member_id, ()) if sign.at_ms < fact.at_ms]
    if not any(f.kind in _ARRIVALS for f in own):
        return Cause.SESSION_EXPIRED
    first, end = (
        bisect_left(group.rounds, at, key=lambda r: r.known_ms) for at in (own[0].at_ms, fact.at_ms)
    )
    rounds = group.rounds[first : min(end, first + 2)]
    if not rounds:
        waited_ms = fact.at_ms - own[-1].at_ms
        return Cause.NO_HEARTBEAT if 0 <= waited_ms - NEW_MEMBER_MS <= REAPED_MS else Cause.SESSION_EXPIRED
    last_ms = max(rounds[0].until_ms, own[-1].at_ms)
    known_ms = group.members[name].setting_ms("session.timeout.ms") if name in group.members else None
    sessions_ms = SESSIONS_MS if known_ms is None else (known_ms,)
    is_silent = any(0 <= fact.at_ms - last_ms - session_ms <= REAPED_MS for session_ms in sessions_ms)
    return Cause.NO_HEARTBEAT if rounds == [before] and is_silent else Cause.SESSION_EXPIRED


def fenced(group: GroupLog, fact: Fact) -> Trigger:
    """Return what a line says of processes that have one instance id."""
    name = group.name_of(fact)
    instance = fact.instance_id or (group.members[name].instance_id if name else "")
    names = [n for n, member in group.members.items() if instance and member.instance_id == instance]
    return Trigger(Cause.INSTANCE_SHARED, fact.at_ms, names or [name or instance], [fact.source])


def _of_leave(reason: str) -> Cause:
    return Cause.POLL_INTERVAL if "poll timeout" in reason or "max.poll" in reason else Cause.MEMBER_LEFT


_REASON_WORDS = (
    ("heartbeat expiration", Cause.SESSION_EXPIRED, Confidence.HIGH),
    ("adding new member", Cause.MEMBER_JOINED, Confidence.HIGH),
)
_WEAKER_REASON_WORDS = (
    ("static member", Cause.MEMBER_JOINED, Confidence.MEDIUM),
    ("error when storing", Cause.UNREACHABLE, Confidence.MEDIUM),
)
"""Words of a coordinator's reason, for clients that give no reason of their own."""


def _of_reason(group: GroupLog, fact: Fact, this: LoggedRound, before: LoggedRound | None) -> list[Trigger]:
    """Return what the reason of a round says."""
    pending = _MEMBERS.search(fact.text)
    if pending is not None:
        ids = [part.strip() for part in pending[1].split(",")]
        names = [group.names.get(member_id, member_id) for member_id in ids]
        return [Trigger(Cause.NEVER_SYNCED, fact.at_ms, names, [fact.source])]
    found = _meaning(fact, this, before)
    if found is None:
        return []
    cause, confidence, follows = found
    written = _MEMBER.search(fact.text)
    names = [group.names.get(written[1], written[1])] if written else []
    return [Trigger(cause, fact.at_ms, names, [fact.source], confidence, is_follow_up=follows)]


def _meaning(
    fact: Fact, this: LoggedRound, before: LoggedRound | None
) -> tuple[Cause, Confidence, bool] | None:
    """Return the cause that a reason names, how sure it is, and whether the round completes the last one."""
    low = fact.text.lower()
    if "leavegroup" in low:
        return _of_leave(fact.cause), Confidence.HIGH, False
    for words, cause, confidence in _REASON_WORDS:
        if words in low:
            return cause, confidence, False
    for form, cause, follows in _CLIENT_REASONS:
        if form.search(fact.cause):
            return cause, Confidence.HIGH, follows
    for words, cause, confidence in _WEAKER_REASON_WORDS:
        if words in low:
            return cause, confidence, False
    is_leader = "leader" in low
    if not is_leader and "updating metadata" not in low and "joining group during" not in low:
        return None
    soon = before is not None and fact.at_ms - before.until_ms < FOLLOWS_MS
    if soon and "cooperative" in f"{this.protocol} {before.protocol if before else ''}":
        return Cause.ASSIGNOR, Confidence.MEDIUM, True
    if is_leader:
        return Cause.LEADER, Confidence.HIGH, False
    if "rebalance failed" in fact.cause or "rebalancing" in fact.cause:
        return Cause.MEMBER_JOINED, Confidence.LOW, False
    return Cause.SUBSCRIPTION, Confidence.LOW, False


# --- what the logs of members show


def _of_members(group: GroupLog, this: LoggedRound, before: LoggedRound | None) -> list[Trigger]:
    found: list[Trigger] = []
    known = before.members if before is not None else _members_before(group, this)
    for name, member_id in known.items():
        found += _of_known(group, this, name, member_id)
    for name in this.members:
        if name not in known:
            found.append(_arrival(group, this, name))
    for name, member in group.members.items():
        found += _rejoins_asked_for(group, this, name, member)
    return found


def _members_before(group: GroupLog, this: LoggedRound) -> dict[str, str]:
    """Return the members that the logs show in the middle of their lives, without their ids."""
    if this.was_empty:
        return {}
    return {
        name: ""
        for name, member in group.members.items()
        if not member.starts(this.since_ms, this.known_ms)
        and (name in this.members or member.between(this.since_ms, this.known_ms, *Kind))
        and not any(f.kind is Kind.JOINS_KNOWN and group.name_of(f) == name for f in this.facts)
    }


def _of_known(group: GroupLog, this: LoggedRound, name: str, member_id: str) -> list[Trigger]:
    """Return what happened to a member of the round before: nothing, or how it ended or came back."""
    member = group.members.get(name)
    after = this.members.get(name)
    if member is None or (after and after == member_id):
        return []
    left = _left(member, this)
    if after is None:
        may_stay = not this.is_whole and _stays(member, member_id, this)
    else:
        may_stay = not after or not member_id
    if may_stay and not left:
        return []
    if left:
        exceeded = [f for f in left if f.kind is Kind.POLL_EXCEEDED or "poll timeout" in f.text]
        cause = Cause.POLL_INTERVAL if exceeded else Cause.MEMBER_LEFT
        sources = [fact.source for fact in (exceeded or left)]
        found = [Trigger(cause, left[0].at_ms, [name], sources)]
        if after is not None and cause is Cause.MEMBER_LEFT:
            found[0].restarted = True
        return found
    if group.has_broker and any(
        fact.kind in (Kind.FAILED, Kind.LEFT, Kind.TOO_SLOW) and group.name_of(fact) == name
        for fact in this.facts
    ):
        return []  # the coordinator has said how it ended
    replaced = [f for f in this.facts if f.kind is Kind.REPLACED and member_id in f.others]
    started = member.starts(this.since_ms, this.known_ms)
    if replaced or (started and member.instance_id):
        sources = [f.source for f in (*replaced, *started)]
        return [Trigger(Cause.MEMBER_JOINED, (replaced or started)[0].at_ms, [name], sources, restarted=True)]
    return [_silent_end(group, this, member)]


def _left(member: Member, this: LoggedRound) -> list[Fact]:
    """Return the lines with which a member leaves. A static one that is closed does not leave."""
    kinds = (Kind.LEAVES, Kind.POLL_EXCEEDED)
    found = member.between(this.since_ms, this.known_ms, *kinds)
    return found or ([] if member.instance_id else member.between(this.since_ms, this.known_ms, Kind.CLOSED))


def _stays(member: Member, member_id: str, this: LoggedRound) -> bool:
    """Return whether a member may be in a round whose members are not all known: it has not ended."""
    if not member.is_logged:
        return True
    later = [fact for fact in member.facts if fact.at_ms > this.known_ms and fact.member_id]
    asked = member.between(this.began_ms - 1, this.known_ms, Kind.JOINING, Kind.SYNCED)
    return bool(asked) or (bool(later) and later[0].member_id == member_id)


def _silent_end(group: GroupLog, this: LoggedRound, member: Member) -> Trigger:
    """Return the end of a member that did not leave: its session, unless its log shows what happened."""
    last = member.last_before(this.known_ms)
    removed = member.between(this.since_ms, group.until_ms, Kind.UNKNOWN_MEMBER, Kind.LOST)
    sure = Confidence.HIGH if member.is_logged else Confidence.LOW if this.is_look else Confidence.MEDIUM
    evidence = [fact.source for fact in removed[:1]] or ([last.source] if last else [])
    learned = [
        fact
        for fact in this.facts
        if fact.kind in (Kind.LEARNED, Kind.ASKED_TO_REJOIN) and group.name_of(fact) != member.name
    ]
    computed = [fact.source for fact in this.own if fact.kind is Kind.COMPUTED]
    evidence += computed[:1] + [fact.source for fact in learned[:1]]
    return Trigger(Cause.SESSION_EXPIRED, this.began_ms, [member.name], evidence, sure)


def _arrival(group: GroupLog, this: LoggedRound, name: str) -> Trigger:
    member = group.members.get(name)
    joining = member.between(this.since_ms, this.known_ms, Kind.JOINING, Kind.SUBSCRIBED) if member else []
    named = [fact for fact in this.own if group.name_of(fact) == name]
    evidence = [fact.source for fact in (*joining[:1], *named[:1])]
    evidence += [fact.source for fact in this.own if fact.kind is Kind.COMPUTED][:1]
    at_ms = joining[0].at_ms if joining else this.began_ms
    return Trigger(Cause.MEMBER_JOINED, at_ms, [name], evidence)


def _rejoins_asked_for(group: GroupLog, this: LoggedRound, name: str, member: Member) -> list[Trigger]:
    """Return the rounds that a member asked for, and the troubles that it reports."""
    found = []
    for fact in member.between(this.since_ms, this.known_ms, Kind.ASKED_TO_REJOIN, Kind.CLIENT_FENCED):
        if fact.kind is Kind.CLIENT_FENCED:
            found.append(fenced(group, fact))
            continue
        for words, cause, follows in _CLIENT_REASONS:
            if words.search(fact.text):
                names = [] if cause is Cause.METADATA else [name]
                found.append(Trigger(cause, fact.at_ms, names, [fact.source], is_follow_up=follows))
                break
    return found


def _of_environment(group: GroupLog, this: LoggedRound) -> list[Trigger]:
    """Return a coordinator that was lost, if nothing else explains a round."""
    lost = [fact for fact in this.facts if fact.kind is Kind.LOST_COORDINATOR]
    if not lost:
        return []
    unreachable = _UNREACHABLE.search(lost[0].text) is not None
    names = list(dict.fromkeys(filter(None, map(group.name_of, lost))))
    cause = Cause.UNREACHABLE if unreachable else Cause.FAILOVER
    return [Trigger(cause, lost[0].at_ms, names, [fact.source for fact in lost[:3]], Confidence.MEDIUM)]


# --- members that come back


def _find_returns(group: GroupLog, found: list[list[Trigger]]) -> None:
    """Recognise members that come back: paused ones stood still, others were restarted.

    A process that was killed and started again joins before the session of its old id has expired.
    """
    ended: dict[str, Trigger] = {}
    for this, triggers in zip(group.rounds, found, strict=True):
        waiting: dict[str, Trigger] = {}
        for trigger in triggers:
            if trigger.cause is Cause.MEMBER_JOINED and len(trigger.members) == 1:
                (name,) = trigger.members
                if name in ended:
                    _returned(group, this, trigger, ended.pop(name))
                else:
                    waiting[name] = trigger
        for trigger in triggers:
            for name in trigger.members if trigger.cause in _ENDS and not trigger.returns else ():
                new = waiting.pop(name, None)
                is_here = trigger.cause is Cause.SESSION_EXPIRED and name in this.members
                if is_here and new is not None and 0 <= trigger.at_ms - new.at_ms <= LONGEST_SESSION_MS:
                    new.restarted = trigger.restarted = True
                    new.cause, new.returns = trigger.cause, True
                    continue
                if is_here:
                    _came_back(group, trigger, name, this)
                ended[name] = trigger


def _returned(group: GroupLog, this: LoggedRound, joined: Trigger, earlier: Trigger) -> None:
    (name,) = joined.members
    if joined.at_ms - earlier.at_ms > RETURN_MS:
        return
    if earlier.cause is Cause.SESSION_EXPIRED:
        _came_back(group, earlier, name, this)
    if earlier.cause not in (Cause.STOOD_STILL, Cause.POLL_INTERVAL, Cause.SLOW_BATCH):
        earlier.restarted = joined.restarted = True
    if earlier.cause is not Cause.MEMBER_LEFT:
        joined.cause, joined.returns = earlier.cause, True


def _came_back(group: GroupLog, ended: Trigger, name: str, this: LoggedRound) -> None:
    """Decide whether a member whose session expired stood still, or ended and was started again."""
    member = group.members.get(name)
    if member is None or len(ended.members) != 1:
        return
    if this.is_look:
        ended.restarted = True
        return
    if not member.is_logged:
        short = this.known_ms - ended.at_ms <= 60_000
        ended.cause = Cause.STOOD_STILL if short else ended.cause
        ended.confidence = min(ended.confidence, Confidence.MEDIUM, key=RANK.__getitem__)
        return
    started = member.starts(ended.at_ms - RETURN_MS, this.known_ms)
    awake = member.between(ended.at_ms - 120_000, this.known_ms, Kind.UNKNOWN_MEMBER, Kind.LOST)
    last_start = started[-1].at_ms if started else 0
    if awake and awake[-1].at_ms > last_start:
        ended.cause, ended.confidence = Cause.STOOD_STILL, Confidence.HIGH
        ended.evidence = [awake[0].source, *ended.evidence]
    elif started and last_start >= this.since_ms - RETURN_MS:
        ended.restarted = True
