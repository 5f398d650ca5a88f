"""The faults of a run, in sentences: its figures are not those of a group that worked."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence

from coordinator_core.client.subscription import partition_map
from coordinator_core.model import TopicPartition
from coordinator_core.protocol import events as ev
from coordinator_core.reading.partitions import listed
from coordinator_core.registry.hookspecs import ProtocolSpec
from coordinator_core.registry.registry import Registry
from rebalance_lab.traces.calls import POLLS, Calls, calls_of
from rebalance_lab.traces.causes import (
    AWAY,
    BATCHES,
    CAUSES,
    LONGER,
    MESSAGES,
    TAKE_OVER,
    UNASSIGNED,
    VACANT,
    WAITING,
    WHOLE,
)
from rebalance_lab.traces.family import family_of
from rebalance_lab.traces.history import History
from rebalance_lab.traces.invariants import Invariants, observed
from rebalance_lab.traces.stopped import Unowned
from rebalance_lab.traces.timeline import Timeline
from rebalance_lab.traces.trace import Trace

_MOST_NAMES = 4

_FAILURES = {
    "INVALID_SESSION_TIMEOUT": "set session.timeout.ms to a value from group.min.session.timeout.ms to"
    " group.max.session.timeout.ms of the brokers",
    "FENCED_INSTANCE_ID": "give every consumer an instance id of its own",
    "UNRELEASED_INSTANCE_ID": "close the consumer before its process is restarted, or restart it when its"
    " session has expired",
    "INCONSISTENT_GROUP_PROTOCOL": "give all members an assignor in common",
    "GROUP_MAX_SIZE_REACHED": "raise group.max.size, or start fewer consumers",
}
"""What to change when consumers fail, by error."""

_HANDOVER = frozenset((WAITING, MESSAGES, TAKE_OVER))
"""The causes of partitions that are on their way to an owner: the run may end meanwhile."""

_LONGEST_HANDOVER_MS = 300_000
"""The default of max.poll.interval.ms, which is how long a round waits for a member at most."""

_CALLBACKS = "make the callbacks shorter"
_HOLE, _FORGOTTEN = "hole", "forgotten"
"""Further causes, of static members that come back."""

_OF_STATIC = {
    _HOLE: (
        "the group rested, and the leader came back under its instance id after partitions had been added: it"
        " takes the topic as it finds it, and starts no round, as in Kafka",
        "start a round: let a member without an instance id join, or let a member leave the group",
    ),
    _FORGOTTEN: (
        "the group rested, and the member that had given up partitions and was to start the next round came"
        " back under its instance id: it takes over the assignment of the last round, and starts none, as in"
        " Kafka",
        "start a round: let another member join",
    ),
}
"""Why partitions have no owner at the end, and what to change, by these causes."""


def findings(history: History) -> tuple[str, ...]:
    """Return the faults of a run, each with what to change; nothing if all went well.

    Consumers have failed, or left the group again and again because of their batches or callbacks; the group
    has never rested; or partitions of subscribed topics have no owner at the end. Partitions that are about
    to be taken over, in a round as long as it may be, are no fault.
    """
    end_ms = history.trace.events[-1].at_ms if history.trace.events else 0
    unowned = history.stops.unowned_at_end
    kept = [u for u in unowned if u.cause not in _HANDOVER or end_ms - u.since_ms > _LONGEST_HANDOVER_MS]
    return _findings(history.trace, history.now, history.family, kept)


def findings_at_end(trace: Trace, now: Timeline, registry: Registry | None = None) -> tuple[str, ...]:
    """Return the faults of a run of which a timeline has read every event.

    The history is read only if a partition of a subscribed topic has no owner.
    """
    partitions = (TopicPartition(topic, n) for topic, count in now.subscribed.items() for n in range(count))
    if not all(now.owners.get(partition) for partition in partitions):
        return findings(History(trace, registry))
    return _findings(trace, now, family_of(trace.started, registry), ())


def _findings(
    trace: Trace, now: Timeline, family: ProtocolSpec, without_owner: Sequence[Unowned]
) -> tuple[str, ...]:
    calls = calls_of(trace, family)
    events = (line.event for line in trace.events)
    own: Mapping[str, tuple[str, str]] = {}
    if without_owner and family.unowned is not None:
        own = family.unowned(events)
    unowned = {name: (c.at_end, c.advice) for name, c in {**CAUSES, **WHOLE}.items() if c.at_end}
    reasons = {**unowned, **_OF_STATIC, **own}
    if calls.lost or calls.late:
        causes = (WAITING, MESSAGES, TAKE_OVER, AWAY, VACANT, *({UNASSIGNED} & own.keys()), _FORGOTTEN)
        reasons |= {cause: (reasons[cause][0], _CALLBACKS) for cause in causes}
        if UNASSIGNED not in own:
            why, advice = reasons[UNASSIGNED]
            reasons[UNASSIGNED] = why, f"{_CALLBACKS}, and {advice.removeprefix('make ')}"
    return (
        *_failed(now),
        *_called(calls),
        *_outlasted(calls),
        *(_overlapping(observed(trace, family)) if now.missed else ()),
        *_restless(now, family, calls),
        *(_unowned(trace, without_owner, reasons) if without_owner else ()),
    )


def _overlapping(watch: Invariants) -> Iterator[str]:
    """Yield a finding for static members that worked on partitions which others had been given."""
    partitions = {tp for own in watch.overlaps.values() for tp in own}
    if partitions:
        noun = "partition" if len(partitions) == 1 else "partitions"
        yield (
            f"{_named(sorted(watch.overlaps))} missed a round as static members, and others were given"
            f" {len(partitions)} {noun} of theirs: until they took over their next assignment, both were"
            " valid owners, as in Kafka"
        )


def _called(calls: Calls) -> Iterator[str]:
    """Yield a finding for each callback that outlasts a deadline of its member."""
    for (name, deadline, is_counted), lost in calls.lost.items():
        longer = POLLS if deadline == POLLS else "session.timeout.ms"
        why = "" if deadline == POLLS else ", as no heartbeats are sent before it returns"
        names, times = _named(sorted(lost)), _times(lost)
        how = (
            f"{names} dropped out {times}, while the group kept the places of static members"
            if is_counted
            else f"the group lost {names} {times}"
        )
        yield f"calls of {name} outlast {deadline}{why}: {how}; make {name} shorter, or {longer} longer"
    if calls.late:
        yield (
            "callbacks outlast the waits of rounds, which end after max.poll.interval.ms:"
            f" {_named(sorted(calls.late))} joined after the end of a round, and started another one,"
            f" {_times(calls.late)}; {_CALLBACKS}, or max.poll.interval.ms longer"
        )


def _times(counted: Counter[str]) -> str:
    return "once" if counted.total() == 1 else f"{counted.total():,} times in all"


def _outlasted(calls: Calls) -> Iterator[str]:
    """Yield a finding for members that left the group because their batches outlast max.poll.interval.ms."""
    for (batch_ms, records, interval_ms), missed in calls.missed.items():
        yield (
            f"batches of {_seconds(batch_ms)} on average outlast max.poll.interval.ms"
            f" ({_seconds(interval_ms)}): {_named(sorted(missed))} left the group {_times(missed)};"
            f" make max.poll.records (now {records:,}) smaller, or max.poll.interval.ms longer"
        )


def _seconds(ms: int) -> str:
    return f"{ms / 1_000:,.4g} s"


def _failed(now: Timeline) -> Iterator[str]:
    """Yield a finding for each error of consumers that failed, and were neither started again nor replaced.

    A fenced consumer was replaced if the one that has its instance id runs.
    """
    by_error: dict[str, list[str]] = {}
    running = {consumer.started.instance_id for consumer in now.consumers.values()}
    for client, process in now.processes.items():
        error, instance = process.error, process.started.instance_id
        if error and ("FENCED_INSTANCE_ID" not in error or instance not in running):
            by_error.setdefault(error, []).append(client)
    for error, clients in by_error.items():
        advice = next(
            (text for code, text in _FAILURES.items() if code in error), "see its meaning in Kafka's protocol"
        )
        yield f"{_named(sorted(clients))} failed: {error}; {advice}"


def _restless(now: Timeline, family: ProtocolSpec, calls: Calls) -> Iterator[str]:
    """Yield a finding if consumers run and the group has never rested."""
    states = [state for _, state in now.states]
    if now.consumers and not family.at_rest.intersection(states):
        state = states[-1] if states else "without members"
        advice = f"{LONGER}, or {BATCHES}" if family.servers is None else LONGER
        advice = _CALLBACKS if calls.lost or calls.late else advice
        yield f"the group never rested, and was {state} at the end: {advice}"


def _forgotten(trace: Trace) -> set[TopicPartition]:
    """Return the partitions that static members gave up in the last generation, before they came back in it.

    They were to join again, so that a round gives these partitions to others. Nothing is forgotten while
    another member is about to do so.
    """
    revoked: dict[str, ev.PartitionMap] = {}
    given_up: dict[str, ev.PartitionMap] = {}
    id_of: dict[str, str] = {}
    found: set[TopicPartition] = set()
    generation = -1
    for line in trace.events:
        match line.event:
            case ev.GenerationStarted(generation=generation):
                given_up, found = {}, set()
            case ev.Joined(client=client, member_id=member_id):
                id_of[client] = member_id
                revoked.pop(client, None)
            case ev.Revoked(client=client, partitions=partitions):
                revoked[client] = partitions
            case ev.Assigned(client=client, generation=number) if client in revoked:
                partitions = revoked.pop(client)
                if number == generation:
                    given_up[id_of.get(client, "")] = partitions
            case ev.MemberReplaced(old_member_id=old) if old in given_up:
                found |= {TopicPartition(t, n) for t, numbers in given_up.pop(old).items() for n in numbers}
    return set() if given_up else found


def _unnoticed(trace: Trace) -> set[str]:
    """Return the topics with partitions that were added before the leader came back under its instance id.

    The group does not notice them while no generation has started since.
    """
    added: set[str] = set()
    unnoticed: set[str] = set()
    leader = ""
    for line in trace.events:
        match line.event:
            case ev.PartitionsAdded(topic=topic):
                added.add(topic)
            case ev.MemberReplaced(old_member_id=old, new_member_id=new) if old == leader:
                leader = new
                unnoticed |= added
            case ev.GenerationStarted(leader=leader):
                unnoticed = set()
    return unnoticed


def _unowned(
    trace: Trace, without_owner: Sequence[Unowned], reasons: Mapping[str, tuple[str, str]]
) -> Iterator[str]:
    """Yield a finding for each cause of partitions without an owner at the end."""
    unnoticed, forgotten = _unnoticed(trace), _forgotten(trace)
    found: dict[tuple[str, str], list[Unowned]] = {}
    for unowned in without_owner:
        cause = unowned.cause
        if cause == UNASSIGNED and unowned.partition.topic in unnoticed:
            cause = _HOLE
        if cause in (TAKE_OVER, UNASSIGNED) and unowned.partition in forgotten:
            cause = _FORGOTTEN
        found.setdefault(reasons[cause], []).append(unowned)
    for (why, advice), own in found.items():
        partitions = partition_map(unowned.partition for unowned in own)
        noun = "partition has" if len(own) == 1 else "partitions have"
        since = f"{min(unowned.since_ms for unowned in own) / 1_000:g} s"
        yield f"{len(own)} {noun} no owner at the end, since {since} ({listed(partitions)}): {why}; {advice}"


def _named(clients: list[str]) -> str:
    shown = ", ".join(clients[:_MOST_NAMES])
    return f"{shown} and {len(clients) - _MOST_NAMES} more" if len(clients) > _MOST_NAMES else shown
