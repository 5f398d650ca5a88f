"""A live group as a scenario: members, subscriptions, ownership, topics, rates and lag.

Brokers do not tell timeouts and processing times, so the scenario has its defaults for them, and a snapshot
says which. The ``process_rate`` of a member is known if more records waited for it at the start of the window
than it handled in the window. Its commits then show its limit. The client library is known if the client id
is the default one of the library.
"""

import asyncio
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import count
from math import ceil
from typing import Any

from coordinator_core.client.subscription import partition_map
from coordinator_core.errors import InputError, ProtocolError
from coordinator_core.families.reconcile import RECONCILE
from coordinator_core.model import NO_PARTITIONS, Partitions, Subscription, TopicPartition
from coordinator_core.protocol import messages as m
from coordinator_core.protocol.consumer_protocol import PROTOCOL_TYPE, decode_assignment, decode_subscription
from coordinator_core.protocol.error_codes import ErrorCode
from coordinator_core.protocol.reconcile import ConsumerGroupDescribeResponse
from coordinator_core.registry.kafka_names import REMOTE
from rebalance_kafka.consumer.admin_client import EARLIEST, LATEST, AdminClient
from rebalance_lab.verdicts.words import listed_names

STABLE, DEAD = "Stable", "Dead"
WITHOUT_MEMBERS = ("Empty", DEAD)
RECONCILED = "consumer"
"""The type of groups of the consumer protocol (KIP-848)."""

SETTLE_SECONDS = 30.0
LOOK_AGAIN_SECONDS = 0.5

EVENTS = ("leave", "crash", "join", "rolling_restart")
"""The events that a scenario may ask about."""

FIRST_MINUTE, MINUTES_APART, QUIET_MINUTES = 1, 2, 5
"""The time of the first event, that of an event before the next one or the end, and all without an event."""

RESTART_SECONDS = 20
"""The time from one member to the next in a rolling restart."""

_DEFAULT_IDS = {
    "java": r"consumer-.+-\d+",
    "librdkafka": r"rdkafka",
    "kafka-python": r"kafka-python-.+",
    "aiokafka": r"aiokafka-.+",
    "franz-go": r"kgo",
}
"""The client ids of libraries whose user sets none."""


@dataclass(frozen=True)
class Snapshot:
    """A group at one moment, and a scenario that begins with it.

    ``strategy``: the assignor of the group, with the protocol if it is not the classic one.
    ``scenario``: the document. ``left_out``: a message for each member whose subscription or assignment
    cannot be decoded. It is not in the scenario. ``unseen``: what brokers did not tell, so that the scenario
    has its default.
    """

    group_id: str
    strategy: str
    scenario: Mapping[str, Any]
    left_out: Sequence[str] = ()
    unseen: Sequence[str] = ()


@dataclass(frozen=True)
class Member:
    """A member as the coordinator describes it. ``client``: the library, if its client id tells."""

    name: str
    member_id: str
    client: str | None
    instance_id: str | None
    subscription: Subscription
    owned: Partitions


@dataclass(frozen=True)
class _Offsets:
    """Starts and ends of logs, and committed offsets, at one moment."""

    starts: Mapping[TopicPartition, int]
    ends: Mapping[TopicPartition, int]
    committed: Mapping[TopicPartition, int]

    def waiting(self, partition: TopicPartition) -> int:
        """Return the number of records that are not committed yet, 0 without a committed offset."""
        if partition not in self.committed:
            return 0
        begin = max(self.committed[partition], self.starts.get(partition, 0))
        return max(0, self.ends.get(partition, 0) - begin)


async def snapshot(
    admin: AdminClient, group_id: str, *, window_seconds: float = 0.0, ask: Sequence[str] = ()
) -> Snapshot:
    """Return a snapshot of a live group as soon as it is Stable.

    ``window_seconds``: how long to measure rates; 0 leaves rates out. ``ask``: some of `EVENTS`, which happen
    in the scenario one after the other. Without one nothing happens in it.

    Raises:
        InputError: if the group has no members, has another type, or does not become Stable.
        ProtocolError: if a broker sends an error.
    """
    group = await _settled(admin, group_id)
    members, left_out = group.members, group.left_out
    if not members:
        raise InputError(
            f"group {group_id}", "; ".join(left_out), "a member whose subscription can be decoded"
        )
    wanted = sorted({topic for member in members for topic in member.subscription.topics})
    metadata = await admin.metadata(wanted)
    topics = [topic for topic in metadata.topics if topic.error is ErrorCode.NONE and topic.partitions]
    if not topics:
        raise InputError(f"group {group_id}", f"subscriptions to {wanted}", "a topic that exists")
    existing = {topic.name for topic in topics}
    members = [member for member in members if not existing.isdisjoint(member.subscription.topics)]
    before = await _offsets(admin, group_id, topics)
    after = before
    if window_seconds > 0:
        await asyncio.sleep(window_seconds)
        after = await _offsets(admin, group_id, topics)
    described = {topic.name: _topic(topic, before, after, window_seconds) for topic in topics}
    listed = [_member(member, described, before, after, window_seconds) for member in members]
    document = _document(group_id, described, listed, ask)
    return Snapshot(group_id, group.strategy, document, left_out, list(_unseen(described, listed)))


@dataclass(frozen=True)
class Described:
    """A group at one moment: its state, its members, messages about those left out, and the strategy."""

    state: str
    members: list[Member]
    left_out: list[str]
    strategy: str


async def describe(admin: AdminClient, group_id: str) -> Described:
    """Return a group of either protocol as its coordinator has it.

    Raises:
        InputError: if it is not a group of consumers.
        ProtocolError: if a broker sends an error.
    """
    group = await admin.describe(group_id)
    if group.error is not ErrorCode.NONE:
        raise ProtocolError("broker", f"group {group_id}: {group.error.name}")
    if group.protocol_type not in ("", PROTOCOL_TYPE):
        raise InputError(f"group {group_id}", f"one of type {group.protocol_type!r}", "a consumer group")
    if group.state == DEAD and await _is_reconciled(admin, group_id):
        reconciled = await admin.describe_consumer_group(group_id)
        assignor = REMOTE.get(reconciled.assignor, reconciled.assignor)
        return Described(reconciled.state, _reconciled(reconciled), [], f"{assignor}+{RECONCILE.name}")
    members, left_out = _members(group)
    return Described(group.state, members, left_out, group.protocol_name)


async def _settled(admin: AdminClient, group_id: str) -> Described:
    """Return a group when it is stable. Wait for the end of a rebalance."""
    loop = asyncio.get_running_loop()
    until = loop.time() + SETTLE_SECONDS
    while True:
        group = await describe(admin, group_id)
        if group.state == STABLE and (group.members or group.left_out):
            return group
        if group.state in ("", *WITHOUT_MEMBERS) or loop.time() >= until:
            raise InputError(f"group {group_id}", f"state {group.state or 'unknown'}", "a group with members")
        await asyncio.sleep(LOOK_AGAIN_SECONDS)


async def _is_reconciled(admin: AdminClient, group_id: str) -> bool:
    """Return whether a group that the classic protocol does not know is one of the consumer protocol."""
    types = {group.group_id: group.group_type.lower() for group in await admin.groups()}
    return types.get(group_id) == RECONCILED


def _reconciled(group: ConsumerGroupDescribeResponse) -> list[Member]:
    """Return the members of a group of the consumer protocol. One with a pattern lists the topics it has."""
    members = []
    wanted = [member.instance_id or member.client_id or member.member_id for member in group.members]
    for name, member in zip(_names(wanted), group.members, strict=True):
        topics = dict.fromkeys(
            (*member.subscribed_topic_names, *(tp.topic for tp in member.target_assignment))
        )
        subscription = Subscription(tuple(topics), rack=member.rack_id or None)
        client = client_of(member.client_id)
        owned = Partitions.of(member.assignment)
        members.append(Member(name, member.member_id, client, member.instance_id, subscription, owned))
    return members


def _members(group: m.DescribedGroup) -> tuple[list[Member], list[str]]:
    """Return the members, and the errors of those whose subscription or assignment cannot be decoded.

    During a rebalance a coordinator tells neither.
    """
    members, left_out = [], []
    wanted = [member.group_instance_id or member.client_id or member.member_id for member in group.members]
    for name, member in zip(_names(wanted), group.members, strict=True):
        try:
            subscription = Subscription(())
            if member.metadata or group.state == STABLE:
                subscription = decode_subscription(member.metadata, instance_id=member.group_instance_id)
            # a leader may leave out a member, whose assignment is then empty
            owned = decode_assignment(member.assignment)[0] if member.assignment else NO_PARTITIONS
        except ProtocolError as error:
            left_out.append(f"member {member.member_id} is left out: {error}")
            continue
        client = client_of(member.client_id)
        members.append(Member(name, member.member_id, client, member.group_instance_id, subscription, owned))
    return members, left_out


def _names(wanted: Sequence[str]) -> list[str]:
    """Return the instance ids and client ids of members. Equal ids get numbers."""
    shared = Counter(wanted)
    numbers = {name: count() for name in shared}
    names = []
    for name in wanted:
        numbered = (f"{name}-{number}" for number in numbers[name])
        names.append(name if shared[name] == 1 else next(free for free in numbered if free not in shared))
    return names


async def _offsets(admin: AdminClient, group_id: str, topics: Sequence[m.TopicMetadata]) -> _Offsets:
    committed = await admin.committed(group_id)
    starts = await admin.offsets(topics, EARLIEST)
    return _Offsets(starts, await admin.offsets(topics, LATEST), committed)


def _document(
    group_id: str, topics: Mapping[str, Any], members: Sequence[Mapping[str, Any]], ask: Sequence[str]
) -> dict[str, Any]:
    """Return the scenario. Each member leaves or crashes once, and one always stays."""
    events, minute = [], FIRST_MINUTE
    names = [member["id"] for member in members]
    running = list(names)
    for kind in ask:
        event: Any = None
        if kind == "rolling_restart":
            event = {"every": f"{RESTART_SECONDS}s", "down": "5s"}
        elif kind == "join":
            alike = ("process_rate", "client")
            newcomer = {field: members[0][field] for field in alike if field in members[0]}
            event = {"id": _fresh("new", names), "topics": list(members[0]["topics"]), **newcomer}
            names.append(event["id"])
        elif len(running) > 1:
            event = running.pop()
        if event is not None:
            events.append({"at": f"{minute}m", kind: event})
        minute += MINUTES_APART
        if kind == "rolling_restart":
            minute += ceil(len(names) * RESTART_SECONDS / 60)
    return {
        "name": group_id,
        "duration": f"{minute if ask else QUIET_MINUTES}m",
        "seed": 0,
        "topics": topics,
        "members": members,
        "events": events,
    }


def _unseen(topics: Mapping[str, Any], members: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    """Yield what the brokers did not tell."""
    if not any("rates" in topic for topic in topics.values()):
        yield "rates of topics and process_rate of members: --rates measures them"
    elif slow := [member["id"] for member in members if "process_rate" not in member]:
        yield f"process_rate of {listed_names(slow)}: no records waited for them"
    if unknown := [member["id"] for member in members if "client" not in member]:
        yield f"client of {listed_names(unknown)}: their client ids are their own"
    yield "batch, record_cv, callbacks, restore, start_up and shut_down of the members"
    yield "settings of consumers and brokers, such as max.poll.records and session.timeout.ms"


def _topic(topic: m.TopicMetadata, before: _Offsets, after: _Offsets, seconds: float) -> dict[str, Any]:
    partitions = [TopicPartition(topic.name, number) for number in range(len(topic.partitions))]
    described: dict[str, Any] = {"partitions": len(partitions)}
    if seconds > 0:
        grown = [_grown(before.ends, after.ends, tp) for tp in partitions]
        described["rates"] = [round(records / seconds, 3) for records in grown]
    if any(partition.racks for partition in topic.partitions):
        described["racks"] = [list(partition.racks) for partition in topic.partitions]
    waiting = [after.waiting(tp) for tp in partitions]
    if any(waiting):
        described["backlog"] = waiting
    return described


def _member(
    member: Member, topics: Mapping[str, Any], before: _Offsets, after: _Offsets, seconds: float
) -> dict[str, Any]:
    described: dict[str, Any] = {
        "id": member.name,
        "topics": [topic for topic in member.subscription.topics if topic in topics],
    }
    if member.client is not None:
        described["client"] = member.client
    if member.instance_id is not None:
        described["instance_id"] = member.instance_id
    if member.subscription.rack:
        described["rack"] = member.subscription.rack
    owned = [
        tp
        for tp in member.owned
        if tp.topic in described["topics"] and tp.partition < topics[tp.topic]["partitions"]
    ]
    handled = sum(_grown(before.committed, after.committed, tp) for tp in owned)
    if 0 < handled <= sum(map(before.waiting, owned)):
        described["process_rate"] = round(handled / seconds, 3)
    described["owned"] = partition_map(owned)
    return described


def _grown(
    before: Mapping[TopicPartition, int], after: Mapping[TopicPartition, int], partition: TopicPartition
) -> int:
    """Return the growth of an offset, 0 if it is not known at both times."""
    if partition not in before or partition not in after:
        return 0
    return max(0, after[partition] - before[partition])


def client_of(client_id: str) -> str | None:
    """Return the client library whose default client id this is, None if it is that of no library."""
    return next((name for name, ids in _DEFAULT_IDS.items() if re.fullmatch(ids, client_id)), None)


def _fresh(name: str, taken: Sequence[str]) -> str:
    return next(f"{name}{n or ''}" for n in range(len(taken) + 1) if f"{name}{n or ''}" not in taken)
