"""What helps against a cause: settings of the client in question, with values from what was seen."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from rebalance_logs.facts import Kind
from rebalance_logs.findings import Cause, Trigger
from rebalance_logs.groups import GroupLog, Member
from rebalance_logs.sessions import SESSION_MS, accepted_ms, session_of

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


_COMES_BACK = frozenset((Kind.SETTINGS, Kind.STARTED, Kind.SUBSCRIBED, Kind.JOINS_NEW, Kind.JOINS_KNOWN))

MOST_AWAY_MS = 300_000
"""A session is not made longer than this for the sake of members that come back."""

_MOVES = frozenset(Cause) - {Cause.INSTANCE_SHARED, Cause.INITIAL_DELAY, Cause.ASSIGNOR}


class Remedy(NamedTuple):
    """A setting and its value. ``of``: the client library, or ``broker``."""

    setting: str
    of: str
    value: str

    @property
    def is_assignor(self) -> bool:
        """Whether it is another assignor: what that would have cost is not in the logs."""
        return self.value == COOPERATIVE


@dataclass(frozen=True, slots=True)
class Case:
    """A cause in a group: the members to which it happened, those without a name left out, and when."""

    group: GroupLog
    cause: Cause
    members: Sequence[Member]
    triggers: Sequence[Trigger]

    @property
    def of_each(self) -> Iterator[tuple[Member, Trigger]]:
        """Yield each member with its triggers."""
        return ((m, trigger) for m in self.members for trigger in self.triggers if m.name in trigger.members)

    @property
    def is_static(self) -> bool:
        """Whether all members are static."""
        return bool(self.members) and all(member.instance_id for member in self.members)

    @property
    def is_restarted(self) -> bool:
        """Whether a process was started again."""
        return any(trigger.restarted for trigger in self.triggers)

    @property
    def session_ms(self) -> int:
        """The longest session that a log of the members shows, or else the default."""
        return max((m.setting_ms("session.timeout.ms") or 0 for m in self.members), default=0) or SESSION_MS

    def least(self, setting: str, default: int) -> int:
        """Return the least value of a setting, which is a default where logs do not show it."""
        return min((member.setting_ms(setting) or default for member in self.members), default=default)

    def session_at_ms(self, member: Member, trigger: Trigger) -> int:
        """Return the session of a member that expired."""
        last = member.last_before(trigger.at_ms - 1)
        return session_of(self.group, member, last.at_ms if last else self.group.from_ms, trigger.at_ms)

    def pauses_ms(self) -> list[int]:
        """Return how long members stood still, in order."""
        found = []
        for member, trigger in self.of_each:
            awake = member.between(
                trigger.at_ms - 60_000, trigger.at_ms + 600_000, Kind.UNKNOWN_MEMBER, Kind.LOST
            )
            if awake and not trigger.returns:
                session_ms = self.session_at_ms(member, trigger)
                found.append(max(session_ms, awake[0].at_ms - trigger.at_ms + session_ms))
        return sorted(found)

    def aways_ms(self) -> list[int]:
        """Return how long members were away that ended and came back, in order."""
        if self.cause is Cause.ROLLING_RESTART:
            return sorted(_between_processes_ms(self.members))
        found = []
        for member, trigger in self.of_each:
            if self.cause is not Cause.SESSION_EXPIRED or trigger.returns or not trigger.restarted:
                continue
            session_ms = self.session_at_ms(member, trigger)
            back = [
                fact.at_ms
                for fact in self.group.between(trigger.at_ms - session_ms, self.group.until_ms)
                if fact.kind in _COMES_BACK and self.group.name_of(fact) == member.name
            ]
            if back:
                found.append(max(0, back[0] - trigger.at_ms + session_ms))
        return sorted(found)


def _between_processes_ms(members: Sequence[Member]) -> Iterator[int]:
    """Yield how long members were away between what they gave up as they left and their next start."""
    left = (Kind.CLOSED, Kind.LEAVES, Kind.REVOKED)
    for member in members:
        for start in member.starts(member.facts[0].at_ms, member.facts[-1].at_ms) if member.facts else ():
            last = member.last_before(start.at_ms - 1, (*left, Kind.JOINED, Kind.OWNS, Kind.ADDED))
            if last is not None and last.kind in left and (last.kind is not Kind.REVOKED or last.partitions):
                yield start.at_ms - last.at_ms


def remedies_of(case: Case, *, others_stop: bool = True, static_helps: bool = True) -> list[Remedy]:
    """Return the settings that help against a cause, the most effective first.

    ``others_stop``: partitions of members to which it did not happen stopped, too, for a time that counts.
    ``static_helps``: partitions of static members would have stopped less.
    """
    group = case.group
    library = next((m.library for m in (*case.members, *group.members.values()) if m.library), "java")
    settings = _settings(case, static_helps=static_helps)
    if group.is_consumer_protocol:
        return [
            Remedy(_OF_BROKERS[n], "broker", value) if n in _OF_BROKERS else Remedy(n, library, value)
            for n, value in settings
        ]
    last = next((r.protocol for r in reversed(group.rounds) if r.protocol), "")
    static = case.cause is Cause.ROLLING_RESTART and case.is_static
    if last in EAGER and case.cause in _MOVES and others_stop and not static:
        settings.append(("partition.assignment.strategy", COOPERATIVE))
    remedies = []
    for name, value in settings:
        if name == "group.initial.rebalance.delay.ms":
            remedies.append(Remedy(name, "broker", value))
        elif name not in _LACKS.get(library, set()):
            own = _OTHERS.get(library, {}).get(name, name.translate(_NAMES.get(library, {})))
            remedies.append(Remedy(own, library, value))
    return remedies


def static_cost_ms(case: Case, share: float) -> int | None:
    """Return how long partitions would have stood still if the members that were away had been static.

    ``share``: how many partitions a member owns. None if it is not known that members were away.
    """
    aways_ms = case.aways_ms()
    return round(share * sum(aways_ms)) if aways_ms else None


def in_vain(case: Case, static_ms: int | None) -> str:
    """Return what does not help against a cause, and why, "" if nothing is known.

    ``static_ms``: how long partitions of static members would have stood still, if that is longer.
    """
    aways_ms = case.aways_ms()
    if aways_ms and aways_ms[-1] > MOST_AWAY_MS:
        return f"No setting helps against an absence of {_from_to(aways_ms)}"
    if static_ms is not None:
        return f"Static members would not help: partitions would stand still for {static_ms / 1_000:.0f} s"
    return ""


def price_of(case: Case) -> str:
    """Return what the settings that help against a cause cost, "" if nothing is known."""
    if case.cause is Cause.STOOD_STILL:
        pauses_ms = case.pauses_ms()
        length = f" ({_from_to(pauses_ms)})" if pauses_ms else ""
        return f"without a round, its partitions stand still for the whole pause{length}" if length else ""
    restarted = case.cause is Cause.ROLLING_RESTART or case.is_restarted
    if case.cause in (Cause.SESSION_EXPIRED, Cause.NO_HEARTBEAT) and not restarted:
        return "a member that pauses for longer is removed"
    if case.cause in (Cause.ROLLING_RESTART, Cause.SESSION_EXPIRED) and not case.is_static:
        aways_ms = case.aways_ms()
        length = f" ({_from_to(aways_ms)})" if aways_ms else ""
        return f"partitions of a process stand still while it is away{length}"
    return ""


def _from_to(times_ms: Sequence[int]) -> str:
    """Return the least and the greatest of some times in order."""
    low, high = times_ms[0] // 1_000, times_ms[-1] // 1_000
    return f"{low} s" if low == high else f"{low} to {high} s"


def _settings(case: Case, *, static_helps: bool) -> list[tuple[str, str]]:
    cause = case.cause
    if cause in (Cause.POLL_INTERVAL, Cause.SLOW_BATCH):
        return _of_batches(case)
    if cause is Cause.STOOD_STILL:
        return _session(case, max(case.pauses_ms(), default=case.session_ms) * 3 // 2)
    expired = cause in (Cause.SESSION_EXPIRED, Cause.NEVER_SYNCED, Cause.NO_HEARTBEAT)
    if cause is Cause.ROLLING_RESTART or (expired and case.is_restarted):
        return _of_restarts(case) if static_helps else []
    if expired and case.session_ms > accepted_ms(case.group)[0]:
        return _session(case, min(10_000, case.session_ms // 2))
    if cause is Cause.MANY_FAILED:
        return _session(case, 2 * case.session_ms)
    if cause is Cause.INSTANCE_SHARED:
        return [("group.instance.id", "another one for each process")]
    if cause is Cause.INITIAL_DELAY:
        return [("group.initial.rebalance.delay.ms", str(_apart_ms(case)))]
    return []


def _session(case: Case, wanted_ms: int) -> list[tuple[str, str]]:
    """Return the session nearest to a wanted one that brokers accept, unless members have it."""
    least_ms, most_ms = accepted_ms(case.group)
    session_ms = min(max(_rounded(wanted_ms), least_ms), most_ms)
    return [] if session_ms == case.session_ms else [("session.timeout.ms", str(session_ms))]


def _of_restarts(case: Case) -> list[tuple[str, str]]:
    """Return the settings with which a process that is started again is the same member."""
    away_ms = max(case.aways_ms(), default=0)
    if away_ms > MOST_AWAY_MS:
        return []
    static = [("group.instance.id", "one for each process, the same after a restart")]
    longer = _session(case, away_ms * 3 // 2) if away_ms >= case.session_ms else []
    return [*([] if case.is_static else static), *longer]


def _apart_ms(case: Case) -> int:
    """Return the delay in which all members would have come that came in the delay that was."""
    found = [0]
    for trigger in case.triggers:
        this = next(r for r in case.group.rounds if trigger.at_ms <= r.known_ms)
        came = [
            fact.at_ms
            for fact in this.facts
            if fact.kind in (Kind.JOINS_NEW, Kind.JOINS_KNOWN, Kind.JOINING) and fact.at_ms >= trigger.at_ms
        ]
        found.append(max(came, default=trigger.at_ms) - trigger.at_ms)
    return -(-max(found) // 500) * 500


def _of_batches(case: Case) -> list[tuple[str, str]]:
    records = case.least("max.poll.records", POLL_RECORDS)
    interval_ms = case.least("max.poll.interval.ms", POLL_INTERVAL_MS)
    late_ms = 0
    for member, trigger in case.of_each:
        joined = member.between(trigger.at_ms, case.group.until_ms, Kind.JOINING)
        late_ms = max(late_ms, joined[0].at_ms - trigger.at_ms if joined else 0)
    if case.cause is Cause.SLOW_BATCH:
        return [("max.poll.records", str(max(1, records * 1_000 // max(1_000, late_ms))))]
    batch_ms = interval_ms + late_ms
    return [
        ("max.poll.interval.ms", str(_rounded(batch_ms * 3 // 2))),
        ("max.poll.records", str(max(1, records * interval_ms // (2 * batch_ms)))),
    ]


def _rounded(duration_ms: int) -> int:
    return -(-duration_ms // 1_000) * 1_000
