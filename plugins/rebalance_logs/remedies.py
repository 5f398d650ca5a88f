"""What helps against a cause: settings of the client in question, with values from what was seen."""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from rebalance_logs.facts import Kind
from rebalance_logs.groups import GroupLog, Member
from rebalance_logs.sessions import LEAST_SESSION_MS, SESSION_MS, session_of
from rebalance_logs.triggers import Cause, Trigger

POLL_INTERVAL_MS, POLL_RECORDS = 300_000, 500
"""Defaults of the Java client."""

COOPERATIVE = "cooperative-sticky"
EAGER = ("range", "roundrobin", "sticky")

_NAMES = dict.fromkeys(("kafka-python", "aiokafka"), str.maketrans(".", "_"))
_OTHERS = {
    "kafkajs": {
        "session.timeout.ms": "sessionTimeout",
        "max.poll.interval.ms": "rebalanceTimeout",
        "heartbeat.interval.ms": "heartbeatInterval",
        "partition.assignment.strategy": "partitionAssigners",
    },
    "franz-go": {
        "session.timeout.ms": "kgo.SessionTimeout",
        "max.poll.interval.ms": "kgo.RebalanceTimeout",
        "heartbeat.interval.ms": "kgo.HeartbeatInterval",
        "group.instance.id": "kgo.InstanceID",
        "partition.assignment.strategy": "kgo.Balancers",
        "max.poll.records": "PollRecords",
    },
}
_OF_BROKERS = {
    "session.timeout.ms": "consumer.session.timeout.ms",
    "heartbeat.interval.ms": "consumer.heartbeat.interval.ms",
}
"""Settings of clients that those of the group replace under the consumer protocol."""

_LACKS = {
    "librdkafka": {"max.poll.records"},
    "kafkajs": {"group.instance.id", "max.poll.records"},
    "aiokafka": {"partition.assignment.strategy"},  # it has no cooperative assignor
}


class Remedy(NamedTuple):
    """A setting and its value. ``of``: the client library, or ``broker``."""

    setting: str
    of: str
    value: str

    @property
    def is_assignor(self) -> bool:
        """Whether it is another assignor: what that would have cost is not in the logs."""
        return self.value == COOPERATIVE


def remedies_of(
    group: GroupLog,
    cause: Cause,
    members: Sequence[str],
    triggers: Sequence[Trigger],
    *,
    others_stop: bool = True,
    static_helps: bool = True,
) -> list[Remedy]:
    """Return the settings that help against a cause, the most effective first.

    ``others_stop``: partitions of members to which it did not happen stopped, too, for a time that counts.
    ``static_helps``: partitions of static members would have stopped less.
    """
    known = [group.members[name] for name in members if name in group.members]
    library = next((member.library for member in known if member.library), "")
    library = library or next((m.library for m in group.members.values() if m.library), "java")
    settings = list(_settings(group, cause, known, triggers, static_helps=static_helps))
    last = next((r.protocol for r in reversed(group.rounds) if r.protocol), "")
    if group.is_consumer_protocol:
        return [
            Remedy(_OF_BROKERS[n], "broker", value) if n in _OF_BROKERS else Remedy(n, library, value)
            for n, value in settings
        ]
    static = cause is Cause.ROLLING_RESTART and _are_static(known)
    if last in EAGER and cause in _MOVES and others_stop and not static:
        settings.append(("partition.assignment.strategy", COOPERATIVE))
    remedies = []
    for name, value in settings:
        if name == "group.initial.rebalance.delay.ms":
            remedies.append(Remedy(name, "broker", value))
        elif name not in _LACKS.get(library, set()):
            own = _OTHERS.get(library, {}).get(name, name.translate(_NAMES.get(library, {})))
            remedies.append(Remedy(own, library, value))
    return remedies


_COMES_BACK = frozenset((Kind.SETTINGS, Kind.STARTED, Kind.SUBSCRIBED, Kind.JOINS_NEW, Kind.JOINS_KNOWN))

MOST_AWAY_MS = 300_000
"""A session is not made longer than this for the sake of members that come back."""

_MOVES = frozenset(Cause) - {Cause.INSTANCE_SHARED, Cause.INITIAL_DELAY, Cause.ASSIGNOR}


def static_cost_ms(
    group: GroupLog,
    cause: Cause,
    members: Sequence[str],
    triggers: Sequence[Trigger],
    share: float,
) -> int | None:
    """Return how long partitions would have stood still if the members that were away had been static.

    ``share``: how many partitions a member owns. None if it is not known that members were away.
    """
    known = [group.members[name] for name in members if name in group.members]
    away_ms = _away_ms(group, cause, known, triggers)
    return round(share * sum(away_ms)) if away_ms else None


def in_vain(
    group: GroupLog, cause: Cause, members: Sequence[str], triggers: Sequence[Trigger], static_ms: int | None
) -> str:
    """Return what does not help against a cause, and why, "" if nothing is known.

    ``static_ms``: how long partitions of static members would have stood still, if that is longer.
    """
    known = [group.members[name] for name in members if name in group.members]
    aways = sorted(_away_ms(group, cause, known, triggers))
    if aways and aways[-1] > MOST_AWAY_MS:
        return f"No setting helps against an absence of {_from_to(aways)}"
    if static_ms is not None:
        return f"Static members would not help: partitions would stand still for {static_ms / 1_000:.0f} s"
    return ""


def price_of(group: GroupLog, cause: Cause, members: Sequence[str], triggers: Sequence[Trigger]) -> str:
    """Return what the settings that help against a cause cost, "" if nothing is known."""
    known = [group.members[name] for name in members if name in group.members]
    if cause is Cause.STOOD_STILL:
        pauses = sorted(_pauses_ms(group, known, triggers))
        if not pauses:
            return ""
        pause = _from_to(pauses)
        return f"without a round, its partitions stand still for the whole pause ({pause})"
    restarted = cause is Cause.ROLLING_RESTART or any(t.restarted for t in triggers)
    if cause in (Cause.SESSION_EXPIRED, Cause.NO_HEARTBEAT) and not restarted:
        return "a member that pauses for longer is removed"
    if cause in (Cause.ROLLING_RESTART, Cause.SESSION_EXPIRED) and not _are_static(known):
        aways = sorted(_away_ms(group, cause, known, triggers))
        length = f" ({_from_to(aways)})" if aways else ""
        return f"partitions of a process stand still while it is away{length}"
    return ""


def _from_to(times_ms: Sequence[int]) -> str:
    """Return the least and the greatest of some times in order."""
    low, high = times_ms[0] // 1_000, times_ms[-1] // 1_000
    return f"{low} s" if low == high else f"{low} to {high} s"


def _are_static(members: Sequence[Member]) -> bool:
    return bool(members) and all(member.instance_id for member in members)


def _settings(
    group: GroupLog,
    cause: Cause,
    members: Sequence[Member],
    triggers: Sequence[Trigger],
    *,
    static_helps: bool,
) -> list[tuple[str, str]]:
    session_ms = max((m.setting_ms("session.timeout.ms") or 0 for m in members), default=0) or SESSION_MS
    if cause in (Cause.POLL_INTERVAL, Cause.SLOW_BATCH):
        return _of_batches(group, cause, members, triggers)
    if cause is Cause.STOOD_STILL:
        longest_ms = max(_pauses_ms(group, members, triggers), default=session_ms)
        return [("session.timeout.ms", str(_rounded(longest_ms * 3 // 2)))]
    if cause in (Cause.SESSION_EXPIRED, Cause.NEVER_SYNCED, Cause.NO_HEARTBEAT):
        if any(trigger.restarted for trigger in triggers):
            return _of_restarts(group, cause, members, triggers, session_ms) if static_helps else []
        shorter_ms = max(LEAST_SESSION_MS, min(10_000, session_ms // 2))
        return [("session.timeout.ms", str(shorter_ms))] if shorter_ms < session_ms else []
    if cause is Cause.MANY_FAILED:
        return [("session.timeout.ms", str(_rounded(session_ms * 2)))]
    if cause is Cause.ROLLING_RESTART:
        return _of_restarts(group, cause, members, triggers, session_ms) if static_helps else []
    if cause is Cause.INSTANCE_SHARED:
        return [("group.instance.id", "another one for each process")]
    if cause is Cause.INITIAL_DELAY:
        return [("group.initial.rebalance.delay.ms", str(_apart_ms(group, triggers)))]
    return []


def _of_restarts(
    group: GroupLog, cause: Cause, members: Sequence[Member], triggers: Sequence[Trigger], session_ms: int
) -> list[tuple[str, str]]:
    """Return the settings with which a process that is started again is the same member."""
    away_ms = max(_away_ms(group, cause, members, triggers), default=0)
    if away_ms > MOST_AWAY_MS:
        return []
    static = [("group.instance.id", "one for each process, the same after a restart")]
    longer = [("session.timeout.ms", str(_rounded(away_ms * 3 // 2)))] if away_ms >= session_ms else []
    return [*([] if _are_static(members) else static), *longer]


def _apart_ms(group: GroupLog, triggers: Sequence[Trigger]) -> int:
    """Return the delay in which all members would have come that came in the delay that was."""
    found = [0]
    for trigger in triggers:
        this = next(r for r in group.rounds if trigger.at_ms <= r.known_ms)
        came = [
            fact.at_ms
            for fact in this.facts
            if fact.kind in (Kind.JOINS_NEW, Kind.JOINS_KNOWN, Kind.JOINING) and fact.at_ms >= trigger.at_ms
        ]
        found.append(max(came, default=trigger.at_ms) - trigger.at_ms)
    return -(-max(found) // 500) * 500


def _of_batches(
    group: GroupLog, cause: Cause, members: Sequence[Member], triggers: Sequence[Trigger]
) -> list[tuple[str, str]]:
    interval_ms = min(
        (m.setting_ms("max.poll.interval.ms") or POLL_INTERVAL_MS for m in members), default=POLL_INTERVAL_MS
    )
    records = min((m.setting_ms("max.poll.records") or POLL_RECORDS for m in members), default=POLL_RECORDS)
    batch_ms = 0
    for member in members:
        for trigger in triggers:
            if member.name in trigger.members:
                joined = member.between(trigger.at_ms, group.until_ms, Kind.JOINING)
                if joined:
                    batch_ms = max(batch_ms, joined[0].at_ms - trigger.at_ms)
    if cause is Cause.SLOW_BATCH:
        return [("max.poll.records", str(max(1, records * 1_000 // max(1_000, batch_ms))))]
    batch_ms += interval_ms
    fewer = max(1, records * interval_ms // (2 * batch_ms))
    return [
        ("max.poll.interval.ms", str(_rounded(batch_ms * 3 // 2))),
        ("max.poll.records", str(fewer)),
    ]


def _pauses_ms(group: GroupLog, members: Sequence[Member], triggers: Sequence[Trigger]) -> list[int]:
    found = []
    for member, trigger in _of_each(members, triggers):
        awake = member.between(
            trigger.at_ms - 60_000, trigger.at_ms + 600_000, Kind.UNKNOWN_MEMBER, Kind.LOST
        )
        session_ms = _session_ms(group, member, trigger)
        if awake and not trigger.returns:
            found.append(max(session_ms, awake[0].at_ms - trigger.at_ms + session_ms))
    return found


def _of_each(members: Sequence[Member], triggers: Sequence[Trigger]) -> Iterator[tuple[Member, Trigger]]:
    return ((m, trigger) for m in members for trigger in triggers if m.name in trigger.members)


def _session_ms(group: GroupLog, member: Member, trigger: Trigger) -> int:
    last = member.last_before(trigger.at_ms - 1)
    return session_of(group, member, last.at_ms if last else group.from_ms, trigger.at_ms)


def _away_ms(
    group: GroupLog, cause: Cause, members: Sequence[Member], triggers: Sequence[Trigger]
) -> list[int]:
    """Return how long members were away that ended and came back: restarted, or expired and started again."""
    if cause is Cause.ROLLING_RESTART:
        return _aways_ms(members)
    found = []
    for member, trigger in _of_each(members, triggers):
        if cause is not Cause.SESSION_EXPIRED or trigger.returns or not trigger.restarted:
            continue
        session_ms = _session_ms(group, member, trigger)
        back = [
            fact.at_ms
            for fact in group.between(trigger.at_ms - session_ms, group.until_ms)
            if fact.kind in _COMES_BACK and group.name_of(fact) == member.name
        ]
        if back:
            found.append(max(0, back[0] - trigger.at_ms + session_ms))
    return found


def _aways_ms(members: Sequence[Member]) -> list[int]:
    """Return how long members were away between what they gave up as they left and their next start."""
    left = (Kind.CLOSED, Kind.LEAVES, Kind.REVOKED)
    found = []
    for member in members:
        for start in member.starts(member.facts[0].at_ms, member.facts[-1].at_ms) if member.facts else ():
            last = member.last_before(start.at_ms - 1, (*left, Kind.JOINED, Kind.OWNS, Kind.ADDED))
            if last is not None and last.kind in left and (last.kind is not Kind.REVOKED or last.partitions):
                found.append(start.at_ms - last.at_ms)
    return found


def _rounded(duration_ms: int) -> int:
    return -(-duration_ms // 1_000) * 1_000
