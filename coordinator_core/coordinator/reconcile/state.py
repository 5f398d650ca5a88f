"""The durable state of a group that the coordinator reconciles. It changes only by applying records.

The epoch of the group is in its `GroupRecord`. Its parts are, for each member, what it has told
(``member``), the partitions that it shall own (``share``) and those that it may own now (``current``), and
the epoch of the shares (``target``).
"""

from collections.abc import Mapping
from enum import StrEnum
from typing import Any, TypeAlias

import msgspec

from coordinator_core.coordinator.records import GroupRecord, PartRecord, StoredGroup
from coordinator_core.model import TopicPartition
from coordinator_core.protocol.reconcile import JOINS, LEAVES_FOR_A_WHILE

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

    ``principal`` is the user that has sent its last heartbeat. Records of older versions have none.
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

    ``epoch`` is `LEAVES_FOR_A_WHILE` for a static member that has left and keeps its partitions.
    """

    epoch: int = 0
    previous_epoch: int = 0
    state: MemberState = MemberState.STABLE
    assigned: Listed = ()
    revoking: Listed = ()


class Target(msgspec.Struct, frozen=True, array_like=True):
    """The epoch of the shares, their assignor, and the topics with the partitions that it was given."""

    epoch: int = 0
    assignor: str = ""
    topics: dict[str, int] = {}


NO_TARGET = Target()
TARGET = "target"
MEMBER, SHARE, CURRENT = "member", "share", "current"

_decode = {
    MEMBER: msgspec.msgpack.Decoder(Member).decode,
    SHARE: msgspec.msgpack.Decoder(Listed).decode,
    CURRENT: msgspec.msgpack.Decoder(Current).decode,
    TARGET: msgspec.msgpack.Decoder(Target).decode,
}


class GroupState:
    """A group as of some records. Members are in the order in which they joined.

    ``holders`` maps each partition to the member that may own it or has yet to give it up. ``behind`` are the
    members that have not reached the target, without static members that have left for a while.
    ``instances`` maps instance ids to member ids. ``most_members`` is the largest number of members that the
    group has had at a time.
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

    def copy(self) -> "GroupState":
        """Return a copy, to which further records can be applied."""
        other = GroupState()
        other.epoch, other.changed_at_ms, other.target = self.epoch, self.changed_at_ms, self.target
        other.members, other.shares = dict(self.members), dict(self.shares)
        other.currents, other.holders = dict(self.currents), dict(self.holders)
        other.behind, other.instances = dict(self.behind), dict(self.instances)
        other.most_members = self.most_members
        return other

    def apply_group(self, stored: StoredGroup) -> None:
        """Apply the record of the group."""
        self.epoch, self.changed_at_ms = stored.generation, stored.changed_at_ms

    def apply_part(self, key: str, value: bytes | None) -> None:
        """Apply the record of a part."""
        kind, _, member_id = key.partition(" ")
        part: Any = None if value is None else _decode[kind](value)
        if kind == TARGET:
            self.target = part or NO_TARGET
            self.behind = dict.fromkeys(name for name in self.currents if self._is_behind(name))
        elif kind == MEMBER:
            self._set_member(member_id, part)
        elif kind == CURRENT:
            self._set_current(member_id, part)
        elif part is None:
            self.shares.pop(member_id, None)
        else:
            self.shares[member_id] = part

    def _set_member(self, member_id: str, member: Member | None) -> None:
        before = self.members.get(member_id)
        instance_id = None if before is None else before.instance_id
        if instance_id is not None and self.instances.get(instance_id) == member_id:
            del self.instances[instance_id]
        if member is None:
            self.members.pop(member_id, None)
            return
        self.members[member_id] = member
        if member.instance_id is not None:
            self.instances[member.instance_id] = member_id

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
        if current.epoch == LEAVES_FOR_A_WHILE:
            return False
        return current.epoch != self.target.epoch or current.state is not MemberState.STABLE


def part_record(group_id: str, kind: str, member_id: str, value: Any) -> PartRecord:
    """Return the record of a part. ``value`` None deletes it."""
    key = f"{kind} {member_id}" if member_id else kind
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
