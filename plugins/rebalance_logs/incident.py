"""A group of logs as a scenario: the same members and events, to be tried under other strategies.

What logs do not show is guessed, and the comments at the top of the file say so, with a range.
"""

import json
from collections.abc import Iterator, Mapping, Sequence
from math import sqrt
from statistics import mean, median
from typing import Any

import yaml

from coordinator_core.errors import InputError
from coordinator_core.protocol import events as ev
from coordinator_core.reading.durations import format_duration, parse_duration
from rebalance_lab.verdicts.words import counted
from rebalance_logs.causes import Diagnosis
from rebalance_logs.facts import Kind
from rebalance_logs.findings import Cause, Trigger
from rebalance_logs.groups import GroupLog, Member
from rebalance_logs.lags import Load, of_topic
from rebalance_logs.remedies import POLL_INTERVAL_MS, POLL_RECORDS
from rebalance_logs.sessions import (
    HEARTBEAT_MS,
    LEAST_SESSION_MS,
    SESSION_MS,
    expiries,
    heartbeat_of,
    session_of,
)

LIBRARIES = ("java", "librdkafka", "kafka-python", "aiokafka", "franz-go")
"""The libraries that scenarios know by the same names."""

SETTINGS = (
    "session.timeout.ms",
    "heartbeat.interval.ms",
    "max.poll.interval.ms",
    "max.poll.records",
    "metadata.max.age.ms",
    "auto.commit.interval.ms",
)
LEAST_BATCH_MS = 10

FEWEST_WAITS = 6
"""So many parts of batches show the least and the greatest one."""

MOST_ALIKE = 0.8
"""The least batch is at most this part of the greatest: batches that all take the same time are rare."""

QUIET_MS = 60_000
"""How long the scenario goes on after the last event."""

NEAR_MS = 5
"""A member left if a line says so at about the time of its trigger."""

_ENDS = frozenset((Kind.LEAVES, Kind.CLOSED, Kind.LEFT))
_COMES = frozenset((Cause.MEMBER_JOINED, Cause.AUTOSCALING, Cause.ROLLING_RESTART))


def as_yaml(diagnosis: Diagnosis, load: Load | None = None) -> str:
    """Return the scenario of a group, with comments that say what is guessed.

    ``load``: the records that came, if they are known.
    """
    document, guesses = scenario_of(diagnosis, load)
    group = diagnosis.group
    names = group.group if group.group.isprintable() else json.dumps(group.group)
    ran = next((r.protocol for r in reversed(group.rounds) if r.protocol), "") or "an unknown assignor"
    head = f"# Group {names} as its logs show it; it ran {ran}.\n"
    head += "# These are guesses:\n" + "".join(f"# - {guess}\n" for guess in guesses)
    return head + yaml.safe_dump(dict(document), sort_keys=False, default_flow_style=None, width=100)


def scenario_of(diagnosis: Diagnosis, load: Load | None = None) -> tuple[Mapping[str, Any], list[str]]:
    """Return the document of a scenario, and what in it is guessed.

    Raises:
        InputError: if no line shows a partition.
    """
    group = diagnosis.group
    guesses: list[str] = []
    seen = sorted(_events(diagnosis), key=lambda event: event["at"])
    joining = {event["join"]["id"] for event in seen if "join" in event}
    listed = [m for m in group.members.values() if m.name not in joining and _was_in(group, m)]
    events = _possible(seen, {member.name for member in listed})
    if len(events) < len(seen):
        guesses.append(f"{len(seen) - len(events)} events are left out, of members that did not run then")
    topics = dict(diagnosis.trace.started.topics)
    if not topics:
        found = f"no line that shows a partition of {group.group}"
        raise InputError("-o", found, "logs of members, for a scenario")
    batches_ms, shown = _batches_ms(diagnosis)
    config, assumed = _guessed_config(diagnosis)
    guesses += assumed
    longest_ms = max(sum(ends) for ends in batches_ms.values()) // 2
    rate = _rate(len(listed), longest_ms, config, sum(topics.values()))
    if load is not None and load.rates:
        rate = float(f"{median(load.rates.values()):.3g}")
        guesses.append(f"rates of records: from {load.source}; {rate:g} records/s where they are not known")
    else:
        guesses.append(
            f"rates of records: {rate:g} records/s for each partition, half of what the slowest member can"
            f" handle of its share (0 to {2 * rate:g}); logs do not show them"
        )
    guesses.append(shown)
    members = [_member(member, topics, batches_ms[member.name], config) for member in listed]
    instances: set[str] = set()
    for entry in members:  # two processes with one instance id cannot start together
        if entry.get("instance_id") in instances:
            del entry["instance_id"]
        instances.add(entry.get("instance_id", ""))
    last_ms = max((event["at"] for event in events), default=0)
    if not config:
        guesses.append("settings of the members: the defaults of the Java client")
    for event in events:
        if "join" in event:
            name = event["join"]["id"]
            event["join"] = _member(group.members[name], topics, batches_ms[name], config)
    document: dict[str, Any] = {
        "name": group.group,
        "duration": format_duration(-(-(last_ms + QUIET_MS + _session_ms(config)) // 1_000) * 1_000),
        "topics": {topic: _topic(topic, size, rate, load) for topic, size in topics.items()},
        "members": members,
    }
    if events:
        document["events"] = [_readable(event) for event in events]
    if config:
        document["config"] = config
    if any("crash" in event for event in events):
        guesses.append("when members were killed: within a heartbeat interval, from the time of their expiry")
    return document, guesses


def _topic(topic: str, size: int, rate: float, load: Load | None) -> dict[str, Any]:
    """Return a topic with the records that come to it, and that waited at first."""
    if load is None:
        return {"partitions": size, "rate": float(f"{rate * size:.3g}")}
    rates = [float(f"{each:.4g}") for each in of_topic(load.rates, topic, size, rate)]
    return {"partitions": size, "rates": rates, "backlog": list(of_topic(load.backlog, topic, size, 0))}


def _possible(events: Sequence[dict[str, Any]], running: set[str]) -> list[dict[str, Any]]:
    """Return the events whose members run at that time: lines that are missing make others impossible."""
    known, kept = set(running), []
    for event in events:
        name = next((event[kind] for kind in ("crash", "leave", "pause", "freeze") if kind in event), None)
        new = event.get("join", {}).get("id")
        back = event.get("restart")
        if (name and name not in running) or (new and new in known) or (back and back not in known):
            continue
        if "crash" in event or "leave" in event:
            running.discard(name)
        running.update(each for each in (new, back) if each)
        known.update(running)
        kept.append(event)
    return kept


def _was_in(group: GroupLog, member: Member) -> bool:
    return any(member.name in r.members for r in group.rounds) or member.is_logged


def _member(
    member: Member, topics: Mapping[str, int], batch_ms: tuple[int, int], config: Mapping[str, Any]
) -> dict[str, Any]:
    wanted = sorted({topic for fact in member.facts for topic in fact.partitions} & set(topics)) or list(
        topics
    )
    batch = [format_duration(end_ms) for end_ms in batch_ms]
    entry: dict[str, Any] = {"id": member.name, "topics": wanted, "batch_overhead": batch}
    if member.instance_id:
        entry["instance_id"] = member.instance_id
    if member.library in LIBRARIES:
        entry["client"] = member.library
    starts = [
        joined[0].at_ms - start.at_ms
        for start in member.starts(-1, member.facts[-1].at_ms if member.facts else 0)
        if (joined := member.between(start.at_ms - 1, start.at_ms + QUIET_MS, Kind.JOINING))
    ]
    if starts:
        entry["start_up"] = [format_duration(min(starts)), format_duration(max(starts))]
    own = {n: v for n, v in _settings(member).items() if config.get(n) != v}
    if own:
        entry["config"] = own
    return entry


def _settings(member: Member) -> dict[str, Any]:
    """Return the settings of a member that scenarios have, as they have them."""
    return {
        name: int(value) if name.endswith("records") else format_duration(int(value))
        for name in SETTINGS
        if (value := member.settings.get(name, "")).isdecimal()
    }


def _config(group: GroupLog) -> dict[str, Any]:
    """Return the settings that all members whose logs show them have in common."""
    shown = [own for member in group.members.values() if (own := _settings(member))]
    return {
        name: value
        for name, value in (shown[0] if shown else {}).items()
        if all(own.get(name) == value for own in shown)
    }


def _guessed_config(diagnosis: Diagnosis) -> tuple[dict[str, Any], list[str]]:
    """Return the settings of all members, with those that times show, and what is guessed in them."""
    group, guesses = diagnosis.group, []
    config = _config(group)
    beat_ms = heartbeat_of(group)
    if "heartbeat.interval.ms" not in config and beat_ms is not None:
        config["heartbeat.interval.ms"] = format_duration(beat_ms)
        guesses.append(
            f"heartbeat.interval.ms: {format_duration(beat_ms)}, as members learnt of all rounds in that time"
            f" (to {format_duration(HEARTBEAT_MS)}, the default)"
        )
    if "session.timeout.ms" not in config and _has_short_session(diagnosis):
        config["session.timeout.ms"] = format_duration(LEAST_SESSION_MS)
        guesses.append(
            f"session.timeout.ms: {format_duration(LEAST_SESSION_MS)}, as one expired that was shorter than"
            f" the default (6s to {format_duration(SESSION_MS)})"
        )
    return config, guesses


def _has_short_session(diagnosis: Diagnosis) -> bool:
    """Return whether a session expired that was not the default, of a member whose settings are not known."""
    group, base_ms = diagnosis.group, diagnosis.base_ms
    return any(
        session_of(group, member, base_ms + _stopped_ms(diagnosis, member, trigger), trigger.at_ms)
        < SESSION_MS
        for _, trigger, member in expiries(group)
    )


def _rate(members: int, batch_ms: int, config: Mapping[str, Any], partitions: int) -> float:
    """Return the records/s of each partition with which a member is half busy that has its share."""
    handled = max(1, members) * int(config.get("max.poll.records", POLL_RECORDS)) * 1_000 / batch_ms
    return float(f"{handled / 2 / max(1, partitions):.2g}")


def _session_ms(config: Mapping[str, Any]) -> int:
    return parse_duration(config.get("session.timeout.ms", "45s"), "session.timeout.ms")


def _batches_ms(diagnosis: Diagnosis) -> tuple[dict[str, tuple[int, int]], str]:
    """Return the least and the greatest time of a batch of each member, from what was left when rounds began.

    A member of which few lines show it is like these together, or like the median of the others.
    """
    rests: dict[str, list[int]] = {}
    for this in diagnosis.group.rounds:
        for name in () if this.was_empty else this.members:
            member = diagnosis.group.members[name]
            learned = member.between(this.began_ms - 1, this.known_ms, Kind.LEARNED, Kind.ASKED_TO_REJOIN)
            asked = member.between(this.began_ms - 1, this.known_ms, Kind.JOINING)
            is_new = member.starts(this.since_ms, this.known_ms)
            if learned and asked and asked[-1].at_ms >= learned[0].at_ms and not is_new:
                rests.setdefault(name, []).append(asked[-1].at_ms - learned[0].at_ms)
    few = [rest for own in rests.values() if len(own) < FEWEST_WAITS for rest in own]
    shown = {name: _bounds(own) for name, own in rests.items() if len(own) >= FEWEST_WAITS}
    middles = [tuple(round(median(ends)) for ends in zip(*shown.values(), strict=True))] if shown else []
    usual = _bounds(few) if few else (middles[0][0], middles[0][1]) if middles else (50, 150)
    batches = {name: shown.get(name, usual) for name in diagnosis.group.members}
    if not rests:
        return batches, "times of batches: 100ms (5ms to max.poll.interval.ms); no line shows them"
    waits = [rest for own in rests.values() for rest in own]
    each = f"{counted(len(waits), 'wait')} for the end of one, of {format_duration(min(waits))} to"
    return batches, (
        f"times of batches: from {each} {format_duration(max(waits))}, which are anywhere in a batch"
    )


def _bounds(waits: Sequence[int]) -> tuple[int, int]:
    """Return the least and the greatest time of batches of which parts were left, anywhere in them.

    Of n such parts, the greatest batch is the greatest one and an n-th of it more, and with the least one the
    mean of what is left is that which was seen: (L^2 + LH + H^2) / (3 (L + H)), as long batches are met more
    often. Of few parts it is twice their mean, and half of it more or less.
    """
    rest, count = mean(waits), len(waits)
    if count < FEWEST_WAITS:
        return max(LEAST_BATCH_MS, round(rest)), max(2 * LEAST_BATCH_MS, round(3 * rest))
    high = max(2 * LEAST_BATCH_MS, max(waits) * (count + 1) / count)
    above = high - 3 * rest
    low = (sqrt(max(0.0, above**2 - 4 * high * above)) - above) / 2
    return max(LEAST_BATCH_MS, round(min(low, MOST_ALIKE * high))), round(high)


# --- events


def _events(diagnosis: Diagnosis) -> Iterator[dict[str, Any]]:
    """Yield the events that were seen, with times in milliseconds since the beginning of the trace."""
    group, base_ms = diagnosis.group, diagnosis.base_ms
    started: set[str] = set()
    for this in group.rounds:
        if this is group.rounds[0] and this.was_empty:
            started.update(name for trigger in this.triggers for name in trigger.members)
            continue
        for trigger in this.triggers:
            yield from _event(diagnosis, trigger, max(0, trigger.at_ms - base_ms), started)
    for found in diagnosis.causes:
        for trigger in found.triggers:
            if trigger.restarted and not any(trigger in this.triggers for this in group.rounds):
                yield from _restart(diagnosis, trigger)


def _event(diagnosis: Diagnosis, trigger: Trigger, at_ms: int, started: set[str]) -> Iterator[dict[str, Any]]:
    if trigger.is_follow_up or trigger.returns:
        return
    group, cause = diagnosis.group, trigger.cause
    for member in [group.members[name] for name in trigger.members if name in group.members]:
        name = member.name
        if cause is Cause.POLL_INTERVAL:
            interval_ms = member.setting_ms("max.poll.interval.ms") or POLL_INTERVAL_MS
            back = member.between(trigger.at_ms, group.until_ms, Kind.JOINING)
            paused_ms = interval_ms + (back[0].at_ms - trigger.at_ms if back else 1_000)
            yield {"at": max(0, at_ms - interval_ms), "pause": name, "for": paused_ms, "in_batch": True}
        elif cause is Cause.STOOD_STILL:
            since_ms = _stopped_ms(diagnosis, member, trigger)
            awake = member.between(trigger.at_ms, group.until_ms, Kind.UNKNOWN_MEMBER, Kind.LOST)
            until_ms = awake[0].at_ms - diagnosis.base_ms if awake else at_ms + 5_000
            yield {"at": since_ms, "freeze": name, "for": max(1_000, until_ms - since_ms)}
        elif cause in (Cause.SESSION_EXPIRED, Cause.MANY_FAILED):
            yield {"at": _stopped_ms(diagnosis, member, trigger), "crash": name}
            yield from _back(diagnosis, member, trigger)
        elif _has_ended(group, member, trigger):
            yield {"at": at_ms, "leave": name}
            yield from _back(diagnosis, member, trigger)
        elif cause in _COMES and not trigger.restarted:
            known = name in started or any(
                name in r.members for r in group.rounds if r.known_ms < trigger.at_ms
            )
            yield {"at": at_ms, "restart": name} if known else {"at": at_ms, "join": {"id": name}}
        started.add(name)
    if cause is Cause.FAILOVER:
        yield {"at": at_ms, "coordinator_failover": {"down": "1s"}}


def _has_ended(group: GroupLog, member: Member, trigger: Trigger) -> bool:
    """Return whether a trigger is the end of a member: a deployment has those and the starts."""
    if trigger.cause is Cause.MEMBER_LEFT:
        return True
    if trigger.cause not in (Cause.ROLLING_RESTART, Cause.AUTOSCALING):
        return False
    return any(
        abs(fact.at_ms - trigger.at_ms) <= NEAR_MS
        and group.name_of(fact) == member.name
        and (fact.kind in _ENDS or (fact.kind is Kind.REVOKED and bool(fact.partitions)))
        for fact in group.between(trigger.at_ms - NEAR_MS - 1, trigger.at_ms + NEAR_MS)
    )


def _stopped_ms(diagnosis: Diagnosis, member: Member, trigger: Trigger) -> int:
    """Return since when a member was gone or stood still, since the beginning of the trace."""
    known_ms = trigger.at_ms - diagnosis.base_ms
    ends = [
        event.at_ms
        for event in diagnosis.trace.events
        if isinstance(event.event, (ev.MemberStopped, ev.MemberPaused))
        and event.event.client == member.name
        and event.at_ms <= known_ms
    ]
    return ends[-1] if ends else max(0, known_ms)


def _back(diagnosis: Diagnosis, member: Member, trigger: Trigger) -> Iterator[dict[str, Any]]:
    """Yield the next start of a member that has ended: of its log, or else of its return to the group."""
    if not trigger.restarted:
        return
    group = diagnosis.group
    since_ms = diagnosis.base_ms + _stopped_ms(diagnosis, member, trigger)
    started = [fact.at_ms for fact in member.starts(since_ms, group.until_ms)]
    returned = [
        later.at_ms
        for this in group.rounds
        for later in this.triggers
        if later.returns and member.name in later.members and later.at_ms > trigger.at_ms
    ]
    for at_ms in (started or returned)[:1]:
        yield {"at": max(0, at_ms - diagnosis.base_ms), "restart": member.name}


def _restart(diagnosis: Diagnosis, trigger: Trigger) -> Iterator[dict[str, Any]]:
    member = diagnosis.group.members[trigger.members[0]]
    yield {"at": trigger.at_ms - diagnosis.base_ms, "leave": member.name}
    for start in member.starts(trigger.at_ms, diagnosis.group.until_ms)[:1]:
        yield {"at": start.at_ms - diagnosis.base_ms, "restart": member.name}


def _readable(event: Mapping[str, Any]) -> dict[str, Any]:
    return {name: format_duration(value) if name in ("at", "for") else value for name, value in event.items()}
