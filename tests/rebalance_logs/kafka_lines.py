"""A simulated run as Kafka's broker and Java client would log it: the other way of `rebalance_logs`.

The wording is that of Kafka 4; ``broker.log`` has the coordinator's lines and ``NAME.log`` those of a member.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from random import Random

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
    for name, at_ms, line in (
        *_of_broker(trace),
        *_of_clients(trace, scenario),
        *_of_messages(exchanges, trace),
    ):
        written.lines.setdefault(name, []).append((at_ms, line))
    for lines in written.lines.values():
        lines.sort(key=lambda line: line[0])
    return written


def _of_broker(trace: Trace) -> Iterator[tuple[str, int, str]]:
    prefix = "[GroupCoordinator id=0 topic=__consumer_offsets partition=12]"
    leader, members = "", 0
    removed: list[ev.MemberRemoved] = []
    added: list[ev.MemberAdded] = []
    for at_ms, event in ((e.at_ms, e.event) for e in trace.events):
        if isinstance(event, ev.MemberAdded):
            added.append(event)
            yield (
                "broker",
                at_ms,
                f"{prefix} [Group {event.group}] Pending dynamic member with id {event.member_id} joins"
                " group in Stable state. Adding to the group now.",
            )
        elif isinstance(event, ev.MemberRemoved):
            removed.append(event)
            yield "broker", at_ms, f"{prefix} {_removal(event)}"
        elif isinstance(event, ev.MemberReplaced):
            yield (
                "broker",
                at_ms,
                f"{prefix} [Group {event.group}] Static member with groupInstanceId={event.instance_id}"
                " and unknown member id joins group in Stable state. Replacing previously mapped member"
                f" {event.old_member_id} with this groupInstanceId.",
            )
        elif isinstance(event, ev.GroupStateChanged):
            if event.after == "PreparingRebalance":
                reason = _reason(event.cause, removed, added, leader)
                yield (
                    "broker",
                    at_ms,
                    f"{prefix} Preparing to rebalance group {event.group} in state PreparingRebalance with"
                    f" old generation {event.generation} (reason: {reason}).",
                )
            removed, added = [], []
            if event.after == "Stable":
                yield (
                    "broker",
                    at_ms,
                    f"{prefix} Assignment received from leader {leader} for group {event.group} for"
                    f" generation {event.generation}. The group has {members} members, 0 of which are"
                    " static.",
                )
            if event.after == "Empty":
                empty = f"{prefix} Group {event.group} with generation {event.generation} is now empty."
                yield "broker", at_ms, empty
        elif isinstance(event, ev.GenerationStarted):
            leader, members = event.leader, len(event.members)
            yield (
                "broker",
                at_ms,
                f"{prefix} Stabilized group {event.group} generation {event.generation} with"
                f" {len(event.members)} members.",
            )
        elif isinstance(event, ev.CoordinatorElected) and at_ms:
            yield (
                "broker",
                at_ms,
                f"{prefix} Loading group metadata for {trace.scenario} with generation {event.generation}.",
            )


def _removal(event: ev.MemberRemoved) -> str:
    if "expired" in event.reason or "session" in event.reason:
        return f"Member {event.member_id} in group {event.group} has failed, removing it from the group."
    return (
        f"[Group {event.group}] Dynamic Member {event.member_id} has left group through explicit `LeaveGroup`"
        f" request; client reason: {event.reason}"
    )


def _reason(
    cause: str,
    removed: Sequence[ev.MemberRemoved],
    added: Sequence[ev.MemberAdded],
    leader: str,
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


_LOGGER = "(org.apache.kafka.clients.consumer.internals.ConsumerCoordinator)"


def _of_clients(trace: Trace, scenario: Scenario) -> Iterator[tuple[str, int, str]]:
    config = scenario.config
    instances: dict[str, str | None] = {}
    existed = any(isinstance(e.event, ev.CoordinatorElected) and e.at_ms == 0 for e in trace.events)
    for at_ms, event in ((e.at_ms, e.event) for e in trace.events):
        client = getattr(event, "client", "")
        if existed and at_ms == 0:
            continue  # the logs begin in the middle
        instance = instances.get(client)
        where = _where(trace, client, instance)
        if isinstance(event, ev.MemberStarted):
            instances[client] = event.instance_id
            settings = {
                "client.id": client,
                "group.id": trace.scenario,
                "group.instance.id": event.instance_id or "null",
                "session.timeout.ms": config.get("session.timeout.ms", 45_000),
                "heartbeat.interval.ms": config.get("heartbeat.interval.ms", 3_000),
                "max.poll.interval.ms": config.get("max.poll.interval.ms", 300_000),
            }
            values = "".join(f"\n\t{name} = {value}" for name, value in settings.items())
            yield (
                client,
                at_ms,
                f"ConsumerConfig values: {values}\n (org.apache.kafka.common.config.AbstractConfig)",
            )
            instance = event.instance_id
            where = _where(trace, client, instance)
            yield client, at_ms, f"{where} Subscribed to topic(s): {', '.join(event.topics)} {_LOGGER}"
        elif isinstance(event, ev.SubscriptionChanged):
            yield client, at_ms, f"{where} Subscribed to topic(s): {', '.join(event.topics)} {_LOGGER}"
        elif isinstance(event, ev.MemberStopped) and event.how == "closed":
            yield client, at_ms, f"App info kafka.consumer for {client} unregistered (o.a.k.AppInfoParser)"
        elif isinstance(event, ev.Joined):
            generation = (
                f"Generation{{generationId={event.generation}, memberId='{event.member_id}',"
                f" protocol='{event.protocol}'}}"
            )
            yield client, at_ms, f"{where} Successfully joined group with generation {generation} {_LOGGER}"
        elif isinstance(event, ev.Assigned):
            yield client, at_ms, f"{where} Adding newly assigned partitions: {_listed(event.added)} {_LOGGER}"
        elif isinstance(event, ev.Revoked):
            yield (
                client,
                at_ms,
                f"{where} Revoke previously assigned partitions {_listed(event.partitions)} {_LOGGER}",
            )
        elif isinstance(event, ev.Lost):
            yield (
                client,
                at_ms,
                f"{where} Lost previously assigned partitions {_listed(event.partitions)} {_LOGGER}",
            )


def _where(trace: Trace, client: str, instance: str | None = None) -> str:
    static = f"instanceId={instance}, " if instance else ""
    return f"[Consumer {static}clientId={client}, groupId={trace.scenario}]"


def _of_messages(exchanges: Sequence[Exchange], trace: Trace) -> Iterator[tuple[str, int, str]]:
    """Yield the lines that requests and responses cause."""
    for exchange in exchanges:
        client, request = exchange.client, exchange.request
        where = _where(trace, client)
        if isinstance(request, m.JoinGroupRequest):
            if request.reason:
                yield (
                    client,
                    exchange.sent_ms,
                    f"{where} Request joining group due to: {_of_java(request.reason)} {_LOGGER}",
                )
            yield client, exchange.sent_ms, f"{where} (Re-)joining group {_LOGGER}"
        elif isinstance(request, m.SyncGroupRequest) and request.assignments:
            shares = ", ".join(
                f"{share.member_id}=Assignment(partitions=[{_listed(_decoded(share.assignment))}])"
                for share in request.assignments
            )
            finished = f"Finished assignment for group at generation {request.generation_id}: {{{shares}}}"
            yield client, exchange.sent_ms, f"{where} {finished} {_LOGGER}"
        elif isinstance(request, m.LeaveGroupRequest):
            for member in request.members:
                yield (
                    client,
                    exchange.sent_ms,
                    f"{where} Member {member.member_id} sending LeaveGroup request to coordinator b:9092"
                    f" (id: 2147483647 rack: null) due to {_of_java(member.reason)} {_LOGGER}",
                )
        response, answered_ms = exchange.response, exchange.answered_ms
        if response is None or answered_ms is None:
            continue
        if isinstance(request, m.HeartbeatRequest):
            if response.error is ErrorCode.REBALANCE_IN_PROGRESS:
                yield (
                    client,
                    answered_ms,
                    f"{where} Request joining group due to: group is already rebalancing {_LOGGER}",
                )
            elif response.error is ErrorCode.UNKNOWN_MEMBER_ID:
                yield (
                    client,
                    answered_ms,
                    f"{where} Attempt to heartbeat with Generation{{...}} and group instance id null"
                    f" failed due to UNKNOWN_MEMBER_ID, resetting generation {_LOGGER}",
                )
        elif isinstance(request, m.SyncGroupRequest) and not response.error:
            generation = (
                f"Generation{{generationId={request.generation_id}, memberId='{request.member_id}',"
                " protocol='range'}"
            )
            yield (
                client,
                answered_ms,
                f"{where} Successfully synced group in generation {generation} {_LOGGER}",
            )


def _listed(partitions: ev.PartitionMap) -> str:
    return ", ".join(f"{topic}-{number}" for topic, numbers in partitions.items() for number in numbers)


def _decoded(assignment: bytes) -> ev.PartitionMap:
    return partition_map(decode_assignment(assignment)[0])
