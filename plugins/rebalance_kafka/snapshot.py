"""A live group as a scenario: members, subscriptions, ownership, topics, rates and lag.

What a broker does not tell is left at the scenario's defaults: timeouts, what members do with records. A
member's ``process_rate`` is known where more records waited for it when the window began than it handled in
it: what it then committed is all it could.
"""

import asyncio
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import count
from typing import Any

from coordinator_core.errors import InputError, ProtocolError
from coordinator_core.model import Partitions, Subscription, TopicPartition
from coordinator_core.protocol import messages as m
from coordinator_core.protocol.consumer_protocol import decode_assignment, decode_subscription
from coordinator_core.protocol.error_codes import ErrorCode
from rebalance_kafka.consumer.admin_client import EARLIEST, LATEST, AdminClient

STABLE = "Stable"
CONSUMER = "consumer"
WITHOUT_MEMBERS = ("Empty", "Dead")
SETTLE_SECONDS = 30.0
LOOK_AGAIN_SECONDS = 0.5
LEAVES_AT, JOINS_AT, DURATION = "1m", "3m", "5m"


@dataclass(frozen=True)
class Snapshot:
    """A group as it was, and the scenario that begins there.

    ``strategy``: the assignor the group had chosen; ``scenario``: the document.
    """

    group_id: str
    strategy: str
    scenario: Mapping[str, Any]


@dataclass(frozen=True)
class _Member:
    name: str
    instance_id: str | None
    subscription: Subscription
    owned: Partitions


@dataclass(frozen=True)
class _Offsets:
    """Where logs begin and end, and commits, at one moment."""

    starts: Mapping[TopicPartition, int]
    ends: Mapping[TopicPartition, int]
    committed: Mapping[TopicPartition, int]

    def waiting(self, partition: TopicPartition) -> int:
        """Records that are there and not yet committed; 0 where nobody can tell, as nothing was committed."""
        if partition not in self.committed:
            return 0
        begin = max(self.committed[partition], self.starts.get(partition, 0))
        return max(0, self.ends.get(partition, 0) - begin)


async def snapshot(admin: AdminClient, group_id: str, *, window_seconds: float = 0.0) -> Snapshot:
    """A live group of the classic protocol, once it is Stable.

    ``window_seconds``: how long to watch end offsets for rates; 0 leaves rates out. In the scenario a member
    leaves after one minute and another joins after three: edit them to ask something else.

    Raises InputError for a group that is none, or does not come to rest; ProtocolError for what brokers say.
    """
    members, strategy = await _settled(admin, group_id)
    wanted = sorted({topic for member in members for topic in member.subscription.topics})
    metadata = await admin.metadata(wanted)
    topics = [topic for topic in metadata.topics if topic.error is ErrorCode.NONE and topic.partitions]
    if not topics:
        raise InputError(f"group {group_id}", f"subscriptions to {wanted}", "a topic that exists")
    there = {topic.name for topic in topics}
    members = [member for member in members if not there.isdisjoint(member.subscription.topics)]
    before = await _offsets(admin, group_id, topics)
    after = before
    if window_seconds > 0:
        await asyncio.sleep(window_seconds)
        after = await _offsets(admin, group_id, topics)
    document = _document(group_id, members, topics, before, after, window_seconds)
    return Snapshot(group_id, strategy, document)


async def _settled(admin: AdminClient, group_id: str) -> tuple[list[_Member], str]:
    """The members of a group that is Stable; one in a rebalance is waited for."""
    loop = asyncio.get_running_loop()
    until = loop.time() + SETTLE_SECONDS
    while True:
        group = await admin.describe(group_id)
        if group.error is not ErrorCode.NONE:
            raise ProtocolError("broker", f"group {group_id}: {group.error.name}")
        if group.protocol_type not in ("", CONSUMER):
            found = f"one of type {group.protocol_type!r}"
            raise InputError(f"group {group_id}", found, "a consumer group of the classic protocol")
        if group.state == STABLE and group.members:
            return _members(group), group.protocol_name
        if group.state in ("", *WITHOUT_MEMBERS) or loop.time() >= until:
            raise InputError(f"group {group_id}", f"state {group.state or 'unknown'}", "a group with members")
        await asyncio.sleep(LOOK_AGAIN_SECONDS)


def _members(group: m.DescribedGroup) -> list[_Member]:
    members = []
    for name, each in zip(_names(group), group.members, strict=True):
        try:
            subscription = decode_subscription(each.metadata, instance_id=each.group_instance_id)
            owned, _ = decode_assignment(each.assignment)
        except ProtocolError as wrong:
            raise ProtocolError(f"member {each.member_id}", str(wrong)) from None
        members.append(_Member(name, each.group_instance_id, subscription, owned))
    return members


def _names(group: m.DescribedGroup) -> list[str]:
    """Instance ids and client ids; those that several members have are numbered."""
    wanted = [each.group_instance_id or each.client_id or each.member_id for each in group.members]
    shared = Counter(wanted)
    numbers = {name: count() for name in shared}
    names = []
    for name in wanted:
        numbered = (f"{name}-{number}" for number in numbers[name])
        names.append(name if shared[name] == 1 else next(each for each in numbered if each not in shared))
    return names


async def _offsets(admin: AdminClient, group_id: str, topics: Sequence[m.TopicMetadata]) -> _Offsets:
    committed = await admin.committed(group_id)
    starts = await admin.offsets(topics, EARLIEST)
    return _Offsets(starts, await admin.offsets(topics, LATEST), committed)


def _document(
    group_id: str,
    members: list[_Member],
    topics: list[m.TopicMetadata],
    before: _Offsets,
    after: _Offsets,
    seconds: float,
) -> dict[str, Any]:
    described = {topic.name: _topic(topic, before, after, seconds) for topic in topics}
    listed = [_member(member, described, before, after, seconds) for member in members]
    last, first = listed[-1], listed[0]
    newcomer: dict[str, Any] = {"id": _fresh("new", listed), "topics": list(first["topics"])}
    if "process_rate" in first:
        newcomer["process_rate"] = first["process_rate"]
    events: list[dict[str, Any]] = [{"at": JOINS_AT, "join": newcomer}]
    if len(listed) > 1:
        events.insert(0, {"at": LEAVES_AT, "leave": last["id"]})
    return {
        "name": group_id,
        "duration": DURATION,
        "seed": 0,
        "topics": described,
        "members": listed,
        "events": events,
    }


def _topic(topic: m.TopicMetadata, before: _Offsets, after: _Offsets, seconds: float) -> dict[str, Any]:
    partitions = [TopicPartition(topic.name, number) for number in range(len(topic.partitions))]
    described: dict[str, Any] = {"partitions": len(partitions)}
    if seconds > 0:
        grown = [_grown(before.ends, after.ends, tp) for tp in partitions]
        described["rates"] = [round(each / seconds, 3) for each in grown]
    if any(each.racks for each in topic.partitions):
        described["racks"] = [list(each.racks) for each in topic.partitions]
    waiting = [after.waiting(tp) for tp in partitions]
    if any(waiting):
        described["backlog"] = waiting
    return described


def _member(
    member: _Member, topics: Mapping[str, Any], before: _Offsets, after: _Offsets, seconds: float
) -> dict[str, Any]:
    described: dict[str, Any] = {
        "id": member.name,
        "topics": [topic for topic in member.subscription.topics if topic in topics],
    }
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
    by_topic: dict[str, list[int]] = {}
    for topic, number in sorted(owned):
        by_topic.setdefault(topic, []).append(number)
    described["owned"] = by_topic
    return described


def _grown(
    before: Mapping[TopicPartition, int], after: Mapping[TopicPartition, int], partition: TopicPartition
) -> int:
    """How far an offset went on that is known at both times."""
    if partition not in before or partition not in after:
        return 0
    return max(0, after[partition] - before[partition])


def _fresh(name: str, members: list[dict[str, Any]]) -> str:
    taken = {each["id"] for each in members}
    return next(f"{name}{n or ''}" for n in range(len(taken) + 1) if f"{name}{n or ''}" not in taken)
