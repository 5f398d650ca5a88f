"""The durable state of a group that the coordinator reconciles. It changes only by applying records.

The epoch of the group is in its `GroupRecord`. Its parts are, for each member, what it has told
(``member``), the partitions that it shall own (``share``) and those that it may own now (``current``), the
topics that match each regular expression (``pattern``), and the epoch of the shares (``target``).
"""

from collections import Counter
from collections.abc import Mapping
from enum import StrEnum
from typing import Any, TypeAlias

import msgspec

from coordinator_core.coordinator.records import GroupRecord, PartRecord, StoredGroup
from coordinator_core.model import TopicPartition
from coordinator_core.protocol.reconcile import JOINS

Listed: TypeAlias = tuple[TopicPartition, ...]
"""Partitions, sorted; those of a share in the order of the assignor."""


class Classic(msgspec.Struct, frozen=True, array_like=True):
    """What only members have that speak the classic protocol.

    ``protocols`` are the names of their assignors, with the subscription for each.
    """

    session_timeout_ms: int
    protocols: tuple[tuple[str, bytes], ...]


class Member(msgspec.Struct, frozen=True, array_like=True):
    """What a member has told. ``pattern`` is its regular expression, None if it lists topics.

    ``principal`` is the user that has sent its last heartbeat: by its rights regular expressions are
    resolved. Records of older versions have none.
    ``classic``: None for a member that speaks the consumer protocol.
    """

    client_id: str
    client_host: str
    instance_id: str | None
    rack: str | None
    rebalance_timeout_ms: int
    topics: tuple[str, ...]
    pattern: str | None
    assignor: str | None
    principal: str = ""
    classic: Classic | None = None


class MemberState(StrEnum):
    """The progress of a member to its share (KIP-848)."""

    STABLE = "stable"
    """It may own its share of the epoch that it is in."""

    UNREVOKED = "unrevoked partitions"
    """It has yet to confirm that it has given up partitions."""

    UNRELEASED = "unreleased partitions"
    """Other members still hold partitions of its share."""


class Current(msgspec.Struct, frozen=True, array_like=True):
    """What a member may own now: ``assigned``, besides ``revoking``, which it has yet to give up.

    ``epoch`` is `LEAVES_FOR_A_WHILE` for a static member that has left and keeps its partitions. ``since``
    are the epochs in which it got the partitions, of ``assigned`` and then of ``revoking`` (KIP-1251).
    Records of older versions have none: then it is the epoch of the member.
    """

    epoch: int = 0
    previous_epoch: int = -1
    state: MemberState = MemberState.STABLE
    assigned: Listed = ()
    revoking: Listed = ()
    since: tuple[int, ...] = ()

    def epochs(self) -> dict[TopicPartition, int]:
        """Return the epoch in which the member got each of its partitions."""
        held = (*self.assigned, *self.revoking)
        return dict(zip(held, self.since, strict=True)) if self.since else dict.fromkeys(held, self.epoch)

    def in_order(self) -> "Current":
        """Return the same with sorted partitions."""
        since, assigned, revoking = self.epochs(), sorted(self.assigned), sorted(self.revoking)
        epochs = tuple(since[tp] for tp in (*assigned, *revoking))
        return msgspec.structs.replace(self, assigned=tuple(assigned), revoking=tuple(revoking), since=epochs)

    def assigned_epochs(self) -> dict[TopicPartition, int]:
        """Return the epoch in which the member got each of the partitions that it may own."""
        since = self.epochs()
        return {tp: since[tp] for tp in self.assigned}


class Target(msgspec.Struct, frozen=True, array_like=True):
    """The epoch of the shares, their assignor, and when they were computed, 0 for never.

    ``topics`` are the topics of the members with their partitions, as of the epoch of the group: other ones
    change the group.
    """

    epoch: int = 0
    assignor: str = ""
    topics: dict[str, int] = {}
    computed_at_ms: int = 0


class Resolved(msgspec.Struct, frozen=True, array_like=True):
    """The topics that match a regular expression, sorted, as of a time."""

    topics: tuple[str, ...]
    at_ms: int


NO_TARGET = Target()
TARGET = "target"
MEMBER, SHARE, CURRENT, PATTERN = "member", "share", "current", "pattern"

_decode = {
    MEMBER: msgspec.msgpack.Decoder(Member).decode,
    SHARE: msgspec.msgpack.Decoder(Listed).decode,
    CURRENT: msgspec.msgpack.Decoder(Current).decode,
    TARGET: msgspec.msgpack.Decoder(Target).decode,
    PATTERN: msgspec.msgpack.Decoder(Resolved).decode,
}


class GroupState:
    """A group as of some records. Members are in the order in which they joined.

    ``holders`` maps each partition to the member that may own it or has yet to give it up. ``behind`` are the
    members that have not reached the target. ``instances`` maps instance ids to member ids. ``names``,
    ``patterns`` and ``votes`` count the members that list a topic, have a regular expression, and name an
    assignor. ``resolved`` has the regular expressions whose topics are known. ``most_members`` is the largest
    number of members that the group has had at a time.
    """

    def __init__(self) -> None:
        self.epoch = self.changed_at_ms = self.most_members = 0
        self.target = NO_TARGET
        self.members: dict[str, Member] = {}
        self.shares: dict[str, Listed] = {}
        self.currents: dict[str, Current] = {}
        self.holders: dict[TopicPartition, str] = {}
        self.behind: dict[str, None] = {}
        self.instances: dict[str, str] = {}
        self.names: dict[str, int] = {}
        self.patterns: dict[str, int] = {}
        self.votes: dict[str, int] = {}
        self.resolved: dict[str, Resolved] = {}
        self._alike: bool | None = None

    def copy(self) -> "GroupState":
        """Return a copy, to which further records can be applied."""
        other = GroupState()
        for name, value in vars(self).items():
            setattr(other, name, value.copy() if isinstance(value, dict) else value)
        return other

    def topics_of(self, member: Member) -> tuple[str, ...]:
        """Return the topics that a member lists, and those that its regular expression is known to match."""
        resolved = self.resolved.get(member.pattern or "")
        return member.topics if resolved is None else tuple(dict.fromkeys((*member.topics, *resolved.topics)))

    def subscribed_alike(self) -> bool:
        """Return whether members subscribed alike as of the last record of a member.

        Kafka does not look again when topics of a regular expression become known.
        """
        return self.subscribes_alike() if self._alike is None else self._alike

    def subscribes_alike(self) -> bool:
        """Return whether all members list the same topics, or all have the same pattern and list none.

        As in Kafka, a topic that several of the known patterns match, or one that nobody has any more, makes
        members differ.
        """
        every = len(self.members)
        matching = Counter(topic for each in self.resolved.values() for topic in each.topics)
        if not self.patterns:
            listed = all(count == every for count in self.names.values())
            return listed and matching.keys() <= self.names.keys()
        is_one = next(iter(self.patterns.values())) == every and not self.names
        return is_one and all(count == 1 for count in matching.values())

    def topics(self) -> dict[str, None]:
        """Return the topics of all members."""
        matching = {topic: None for resolved in self.resolved.values() for topic in resolved.topics}
        return {**dict.fromkeys(self.names), **matching}

    def apply_group(self, stored: StoredGroup) -> None:
        """Apply the record of the group."""
        self.epoch, self.changed_at_ms = stored.generation, stored.changed_at_ms

    def apply_part(self, key: str, value: bytes | None) -> None:
        """Apply the record of a part."""
        kind, _, name = key.partition(" ")
        part: Any = None if value is None else _decode[kind](value)
        if kind == TARGET:
            self.target = part or NO_TARGET
            self.behind = dict.fromkeys(filter(self._is_behind, self.currents))
        elif kind == MEMBER:
            self._set_member(name, part)
            self._alike = None
        elif kind == CURRENT:
            self._set_current(name, part)
            self._alike = None
        else:
            if kind == PATTERN:
                self._alike = self.subscribed_alike()
            table: dict[str, Any] = self.shares if kind == SHARE else self.resolved
            if part is None:
                table.pop(name, None)
            else:
                table[name] = part

    def _set_member(self, member_id: str, member: Member | None) -> None:
        before = self.members.get(member_id)
        if before is not None:
            self._count(before, -1)
            if before.instance_id is not None and self.instances.get(before.instance_id) == member_id:
                del self.instances[before.instance_id]
        if member is None:
            self.members.pop(member_id, None)
            return
        self._count(member, 1)
        self.members[member_id] = member
        if member.instance_id is not None:
            self.instances[member.instance_id] = member_id

    def _count(self, member: Member, by: int) -> None:
        for topic in member.topics:
            _add(self.names, topic, by)
        if member.pattern:
            _add(self.patterns, member.pattern, by)
        if member.assignor is not None:
            _add(self.votes, member.assignor, by)

    def _set_current(self, member_id: str, current: Current | None) -> None:
        before = self.currents.pop(member_id, None)
        if before is not None:
            for partition in (*before.assigned, *before.revoking):
                if self.holders.get(partition) == member_id:
                    del self.holders[partition]
        self.behind.pop(member_id, None)
        if current is None:
            return
        self.currents[member_id] = current
        if current.epoch != JOINS:  # not yet while its first request is handled
            self.most_members = max(self.most_members, len(self.members))
        self.holders.update(dict.fromkeys((*current.assigned, *current.revoking), member_id))
        if self._is_behind(member_id):
            self.behind[member_id] = None

    def _is_behind(self, member_id: str) -> bool:
        current = self.currents[member_id]
        return current.epoch != self.target.epoch or current.state is not MemberState.STABLE


def _add(counts: dict[str, int], name: str, by: int) -> None:
    counts[name] = counts.get(name, 0) + by
    if not counts[name]:
        del counts[name]


def part_record(group_id: str, kind: str, name: str, value: Any) -> PartRecord:
    """Return the record of a part, by its member or regular expression. ``value`` None deletes it."""
    key = f"{kind} {name}" if name else kind
    return PartRecord(group_id, key, None if value is None else msgspec.msgpack.encode(value))


def restored_state(stored: StoredGroup, parts: Mapping[str, bytes]) -> GroupState:
    """Return the state of a group from its records."""
    state = GroupState()
    state.apply_group(stored)
    for key, value in parts.items():
        state.apply_part(key, value)
    return state


def apply(state: GroupState, record: GroupRecord | PartRecord) -> None:
    """Apply one record of a group that is not deleted by it."""
    if isinstance(record, PartRecord):
        state.apply_part(record.key, record.value)
    elif record.value is not None:
        state.apply_group(record.value)
