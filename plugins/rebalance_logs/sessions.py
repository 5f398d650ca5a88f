"""Sessions and heartbeats: from the settings that logs show, or else from when members learnt and expired."""

from collections.abc import Iterator
from typing import NamedTuple

from rebalance_logs.facts import Fact, Kind
from rebalance_logs.findings import Cause, Trigger
from rebalance_logs.groups import GroupLog, LoggedRound, Member

SESSION_MS, HEARTBEAT_MS = 45_000, 3_000
"""The settings of clients whose logs do not show them: Kafka's defaults."""

LEAST_SESSION_MS = 6_000
"""What brokers accept as the shortest session: group.min.session.timeout.ms."""

_ACCEPTED_MS = (LEAST_SESSION_MS, 1_800_000)
_ACCEPTED_OF_CONSUMER_MS = (45_000, 60_000)
"""The sessions that brokers accept by default, group.consumer.min.session.timeout.ms and so on."""

UNLIKELY = 0.05
"""Members that learn of rounds so soon have shorter heartbeats than the default, or this chance."""


class Expiry(NamedTuple):
    """A member whose session expired in a round, and the trigger that says so."""

    this: LoggedRound
    trigger: Trigger
    member: Member


def expiries(group: GroupLog) -> Iterator[Expiry]:
    """Yield the members whose sessions expired, whether they ended or stood still, without their returns."""
    for this in group.rounds:
        for trigger in this.triggers:
            if trigger.cause in (Cause.SESSION_EXPIRED, Cause.STOOD_STILL) and not trigger.returns:
                for name in trigger.members:
                    if name in group.members:
                        yield Expiry(this, trigger, group.members[name])


def last_sign_ms(group: GroupLog, expiry: Expiry) -> int:
    """Return when a member whose session expired was last alive, as well as its settings tell.

    Its last heartbeat was a session before the expiry, and it ended within an interval after that. If its
    process was started again before the expiry, the round waited for that.
    """
    this, trigger, member = expiry
    if this.is_look:  # whether it was silent before is not known
        return this.began_ms
    started = [f for f in member.starts(this.since_ms, this.began_ms) if trigger.restarted]
    last = member.last_before(started[0].at_ms - 1 if started else trigger.at_ms)
    session_ms = session_of(group, member, (last.at_ms if last else group.from_ms), trigger.at_ms)
    beat_ms = _setting(group, member, "heartbeat.interval.ms") or heartbeat_of(group)
    beat_ms = beat_ms or min(HEARTBEAT_MS, session_ms // 3)
    at_ms = trigger.at_ms
    if started:
        at_ms = max(at_ms, this.joined_ms or at_ms)
    elif not group.has_broker:  # the others learnt of it with their next heartbeats
        at_ms -= beat_ms // (len(this.members) + 1)
    ended_ms = at_ms - session_ms + beat_ms // 2
    ended_ms = min(ended_ms, started[0].at_ms - 1) if started else ended_ms
    return max(ended_ms, last.at_ms if last is not None else group.from_ms)


def accepted_ms(group: GroupLog) -> tuple[int, int]:
    """Return the shortest and the longest session that brokers accept for a group by default."""
    return _ACCEPTED_OF_CONSUMER_MS if group.is_consumer_protocol else _ACCEPTED_MS


def session_of(group: GroupLog, member: Member, last_ms: int, expired_ms: int) -> int:
    """Return the session of a member that expired. ``last_ms``: when it was last heard of.

    Where no line shows the setting, it is the default, or a short one if the default would have begun
    before.
    """
    known_ms = _setting(group, member, "session.timeout.ms")
    if known_ms is not None:
        return known_ms
    return SESSION_MS if expired_ms - last_ms >= SESSION_MS else LEAST_SESSION_MS


def _setting(group: GroupLog, member: Member, name: str) -> int | None:
    return member.setting_ms(name) or _of_others(group, name)


def _of_others(group: GroupLog, name: str) -> int | None:
    """Return a setting that all members whose logs show it have in common."""
    values = {member.setting_ms(name) for member in group.members.values()} - {None}
    return values.pop() if len(values) == 1 else None


def heartbeat_of(group: GroupLog) -> int | None:
    """Return the interval of heartbeats: in which members learnt of rounds. None if it may be the default.

    Of n such times, which are anywhere in the interval, it is the greatest one and an n-th of it more.
    """
    times = [
        learned[0].at_ms - this.began_ms
        for this in group.rounds
        for name in (() if this.was_empty else this.members)
        if (learned := list(_learned(group.members[name], this)))
    ]
    if not times or (max(times) / HEARTBEAT_MS) ** len(times) > UNLIKELY:
        return None
    found_ms = max(times) * (len(times) + 1) // len(times)
    return max(100, -(-found_ms // 100) * 100)


def _learned(member: Member, this: LoggedRound) -> Iterator[Fact]:
    """Yield the lines with which a member learnt of a round that others began."""
    for fact in member.between(this.began_ms, this.known_ms, Kind.LEARNED, Kind.ASKED_TO_REJOIN):
        if fact.kind is Kind.LEARNED or "already rebalancing" in fact.text:
            yield fact
