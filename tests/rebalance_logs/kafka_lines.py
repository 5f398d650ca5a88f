"""A simulated run as Kafka's broker and Java client would log it: the other way of `rebalance_logs`.

The wording is that of Kafka 4; ``broker.log`` has the coordinator's lines and ``NAME.log`` those of a member.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from random import Random
from typing import TypeAlias

from coordinator_core.client.subscription import partition_map
from coordinator_core.protocol import events as ev
from coordinator_core.protocol import messages as m
from coordinator_core.protocol.consumer_protocol import decode_assignment
from coordinator_core.protocol.error_codes import ErrorCode
from coordinator_core.registry.registry import default_registry
from rebalance_lab.scenarios.scenario import Scenario
from rebalance_lab.simulation.run import simulate
from rebalance_lab.simulation.world.exchange import Exchange
from rebalance_lab.traces.trace import Trace

JAVA_REASONS = (
    ("it gave up partitions", "need to revoke partitions and re-join"),
    ("partitions of a subscribed topic changed", "cached metadata has changed"),
    ("max.poll.interval.ms", "consumer poll timeout has expired."),
    ("the subscription changed", "subscription has changed"),
    ("does not match the subscription", "received assignment does not match the current subscription"),
)
"""What the Java client says where the client of this project has words of its own."""

BEGAN_MS = round(datetime(2026, 11, 23, 8, tzinfo=UTC).timestamp() * 1_000)


@dataclass
class Written:
    """A run and its logs: lines of each file with their times."""

    trace: Trace
    lines: dict[str, list[tuple[int, str]]] = field(default_factory=dict)

    def write(
        self,
        folder: Path,
        *,
        ahead_ms: Mapping[str, int] | None = None,
        lost: float = 0.0,
        shuffled: bool = False,
        without: Sequence[str] = (),
    ) -> Path:
        """Write the files. ``ahead_ms``: clocks that differ; ``lost``: the share of missing lines."""
        random = Random(7)
        for name, lines in self.lines.items():
            if name in without:
                continue
            kept = [line for line in lines if random.random() >= lost]
            if shuffled:
                kept.sort(key=lambda line: line[0] + random.uniform(0, 400))
            shift_ms = (ahead_ms or {}).get(name, 0)
            text = "".join(f"[{stamp(at_ms + shift_ms)}] INFO {line}\n" for at_ms, line in kept)
            (folder / f"{name}.log").write_text(text)
        return folder


def stamp(at_ms: int) -> str:
    """Return a time as log4j writes it."""
    at = datetime.fromtimestamp((BEGAN_MS + at_ms) // 1_000, UTC)
    return f"{at:%Y-%m-%d %H:%M:%S},{(BEGAN_MS + at_ms) % 1_000:03}"


def logs_of(scenario: Scenario, strategy: str) -> Written:
    """Simulate a scenario, and return its logs."""
    exchanges: list[Exchange] = []
    trace = simulate(scenario, strategy, default_registry(), exchanged=exchanges.append)
    written = Written(trace)
    for name, line in (
        *_of_broker(trace),
        *_of_clients(trace, scenario),
        *((exchange.client, line) for exchange in exchanges for line in _of_exchange(trace, exchange)),
    ):
        written.lines.setdefault(name, []).append(line)
    for own in written.lines.values():
        own.sort(key=lambda line: line[0])
    return written


_Line: TypeAlias = tuple[int, str]
_WHERE = "[GroupCoordinator id=0 topic=__consumer_offsets partition=12]"
_LOGGER = "(org.apache.kafka.clients.consumer.internals.ConsumerCoordinator)"


def _of_broker(trace: Trace) -> Iterator[tuple[str, _Line]]:
    leader, members = "", 0
    removed: list[ev.MemberRemoved] = []
    added: list[ev.MemberAdded] = []
    for at_ms, event in ((e.at_ms, e.event) for e in trace.events):
        text = ""
        match event:
            case ev.MemberAdded(group=group, member_id=member_id):
                added.append(event)
                text = (
                    f"[Group {group}] Pending dynamic member with id {member_id} joins group in Stable state."
                    " Adding to the group now."
                )
            case ev.MemberRemoved():
                removed.append(event)
                text = _removal(event)
            case ev.MemberReplaced(group=group, instance_id=instance, old_member_id=old):
                text = (
                    f"[Group {group}] Static member with groupInstanceId={instance} and unknown member id"
                    f" joins group in Stable state. Replacing previously mapped member {old} with this"
                    " groupInstanceId."
                )
            case ev.GroupStateChanged(group=group, generation=generation, after=after):
                if after == "PreparingRebalance":
                    reason = _reason(event.cause, removed, added, leader)
                    text = (
                        f"Preparing to rebalance group {group} in state {after} with old generation"
                        f" {generation} (reason: {reason})."
                    )
                elif after == "Stable":
                    text = (
                        f"Assignment received from leader {leader} for group {group} for generation"
                        f" {generation}. The group has {members} members, 0 of which are static."
                    )
                elif after == "Empty":
                    text = f"Group {group} with generation {generation} is now empty."
                removed, added = [], []
            case ev.GenerationStarted(group=group, generation=generation):
                leader, members = event.leader, len(event.members)
                text = f"Stabilized group {group} generation {generation} with {members} members."
            case ev.CoordinatorElected(generation=generation) if at_ms:
                text = f"Loading group metadata for {trace.scenario} with generation {generation}."
        if text:
            yield "broker", (at_ms, f"{_WHERE} {text}")


def _removal(event: ev.MemberRemoved) -> str:
    if "expired" in event.reason or "session" in event.reason:
        return f"Member {event.member_id} in group {event.group} has failed, removing it from the group."
    return (
        f"[Group {event.group}] Dynamic Member {event.member_id} has left group through explicit `LeaveGroup`"
        f" request; client reason: {event.reason}"
    )


def _reason(
    cause: str, removed: Sequence[ev.MemberRemoved], added: Sequence[ev.MemberAdded], leader: str
) -> str:
    if removed:
        gone = removed[-1]
        if "expired" in gone.reason or "session" in gone.reason:
            return f"removing member {gone.member_id} on heartbeat expiration"
        return f"Removing member {gone.member_id} on LeaveGroup; client reason: {gone.reason}"
    if added:
        instance = added[-1].instance_id
        shown = f"Some({instance})" if instance else "null"
        return (
            f"Adding new member {added[-1].member_id} with group instance id {shown}; client reason: need to"
            " re-join with the given member-id"
        )
    member_id, why = cause.split(" ")[0], _of_java(cause)
    if member_id and member_id == leader:
        return f"Leader {member_id} re-joining group during Stable; client reason: {why}"
    return f"Updating metadata for member {member_id} during Stable; client reason: {why}"


def _of_java(reason: str) -> str:
    return next((java for own, java in JAVA_REASONS if own in reason), reason)


def _of_clients(trace: Trace, scenario: Scenario) -> Iterator[tuple[str, _Line]]:
    config = scenario.config
    instances: dict[str, str | None] = {}
    existed = any(isinstance(e.event, ev.CoordinatorElected) and e.at_ms == 0 for e in trace.events)
    for at_ms, event in ((e.at_ms, e.event) for e in trace.events):
        if existed and at_ms == 0:
            continue  # the logs begin in the middle
        text = ""
        match event:
            case ev.MemberStarted(client=client, instance_id=instance, topics=topics):
                instances[client] = instance
                settings = {
                    "client.id": client,
                    "group.id": trace.scenario,
                    "group.instance.id": instance or "null",
                    "session.timeout.ms": config.get("session.timeout.ms", 45_000),
                    "heartbeat.interval.ms": config.get("heartbeat.interval.ms", 3_000),
                    "max.poll.interval.ms": config.get("max.poll.interval.ms", 300_000),
                }
                values = "".join(f"\n\t{name} = {value}" for name, value in settings.items())
                end = "\n (org.apache.kafka.common.config.AbstractConfig)"
                yield client, (at_ms, f"ConsumerConfig values: {values}{end}")
                text = f"Subscribed to topic(s): {', '.join(topics)}"
            case ev.SubscriptionChanged(topics=topics):
                text = f"Subscribed to topic(s): {', '.join(topics)}"
            case ev.MemberStopped(client=client, how="closed"):
                line = f"App info kafka.consumer for {client} unregistered (o.a.k.AppInfoParser)"
                yield client, (at_ms, line)
            case ev.Joined(generation=generation, member_id=member_id, protocol=protocol):
                text = f"Successfully joined group with {_generation(generation, member_id, protocol)}"
            case ev.Assigned(added=added):
                text = f"Adding newly assigned partitions: {_listed(added)}"
            case ev.Revoked(partitions=partitions):
                text = f"Revoke previously assigned partitions {_listed(partitions)}"
            case ev.Lost(partitions=partitions):
                text = f"Lost previously assigned partitions {_listed(partitions)}"
        if text:
            client = event.client
            yield client, (at_ms, f"{_where(trace, client, instances.get(client))} {text} {_LOGGER}")


def _generation(generation: int, member_id: str, protocol: str) -> str:
    return (
        f"generation Generation{{generationId={generation}, memberId='{member_id}', protocol='{protocol}'}}"
    )


def _where(trace: Trace, client: str, instance: str | None = None) -> str:
    static = f"instanceId={instance}, " if instance else ""
    return f"[Consumer {static}clientId={client}, groupId={trace.scenario}]"


def _of_exchange(trace: Trace, exchange: Exchange) -> Iterator[_Line]:
    """Yield the lines that a request and its response cause."""
    texts = [(exchange.sent_ms, text) for text in _of_request(exchange.request)]
    if exchange.response is not None and exchange.answered_ms is not None:
        answered = _of_response(exchange.request, getattr(exchange.response, "error", ErrorCode.NONE))
        texts += [(exchange.answered_ms, text) for text in answered]
    where = _where(trace, exchange.client)
    return ((at_ms, f"{where} {text} {_LOGGER}") for at_ms, text in texts)


def _of_request(request: object) -> Iterator[str]:
    match request:
        case m.JoinGroupRequest(reason=reason):
            if reason:
                yield f"Request joining group due to: {_of_java(reason)}"
            yield "(Re-)joining group"
        case m.SyncGroupRequest(assignments=assignments) if assignments:
            shares = ", ".join(
                f"{share.member_id}=Assignment(partitions=[{_listed(_decoded(share.assignment))}])"
                for share in assignments
            )
            yield f"Finished assignment for group at generation {request.generation_id}: {{{shares}}}"
        case m.LeaveGroupRequest(members=members):
            for member in members:
                yield (
                    f"Member {member.member_id} sending LeaveGroup request to coordinator b:9092 (id:"
                    f" 2147483647 rack: null) due to {_of_java(member.reason)}"
                )


def _of_response(request: object, error: ErrorCode) -> Iterator[str]:
    match request:
        case m.HeartbeatRequest() if error is ErrorCode.REBALANCE_IN_PROGRESS:
            yield "Request joining group due to: group is already rebalancing"
        case m.HeartbeatRequest() if error is ErrorCode.UNKNOWN_MEMBER_ID:
            yield (
                "Attempt to heartbeat with Generation{...} and group instance id null failed due to"
                " UNKNOWN_MEMBER_ID, resetting generation"
            )
        case m.SyncGroupRequest(generation_id=generation, member_id=member_id) if not error:
            yield f"Successfully synced group in {_generation(generation, member_id, 'range')}"


def _listed(partitions: ev.PartitionMap) -> str:
    return ", ".join(f"{topic}-{number}" for topic, numbers in partitions.items() for number in numbers)


def _decoded(assignment: bytes) -> ev.PartitionMap:
    return partition_map(decode_assignment(assignment)[0])
