"""One partition of the offsets topic on its leader, its groups, and the step that changes them."""

from collections.abc import Callable, Collection, Container, Mapping
from dataclasses import dataclass, field
from random import Random
from types import MappingProxyType
from typing import Any, TypeAlias, TypeVar
from uuid import UUID

import msgspec

from coordinator_core.coordinator.config import CoordinatorConfig
from coordinator_core.coordinator.outcome import Append, Outcome
from coordinator_core.coordinator.records import GroupTable, Record, Records
from coordinator_core.coordinator.timers import RETENTION, Timers
from coordinator_core.protocol.error_codes import NONE, ErrorCode
from coordinator_core.protocol.messages import (
    DescribedGroup,
    OffsetCommitRequest,
    OffsetFetchRequest,
    TxnOffsetCommitRequest,
)

EMPTY, DEAD = "Empty", "Dead"
"""The states that every family has: a group without members, and one that is forgotten."""


class _EveryTopic:
    def __contains__(self, topic: object) -> bool:
        return True


EVERY_TOPIC: Container[str] = _EveryTopic()
"""The topics of a group whose members may subscribe to any."""

GROUP_BYTES, MEMBER_BYTES = 2_000, 2_000
"""The approximate memory of a group and of a member, without their texts."""


class Group:
    """A group of any protocol family. By itself it is one without a member: it has only committed offsets.

    The first family that a member joins with takes such a group over. Families override what differs.
    """

    family: str = ""
    """The protocol family that the group belongs to; "" before the first member joins."""

    moves: Mapping[Any, Collection[str]] = {}
    """The states of the family's groups, and those that may follow each."""

    state: str = EMPTY
    """The state, whose text administrators see."""

    generation: int = 0
    """The number of the current generation, or the family's equivalent of it."""

    protocol_type: str | None = None
    """The kind of members in the group: "consumer", "connect", ..."""

    members: Mapping[str, object] = MappingProxyType({})
    """The members by member id, in the order in which they joined."""

    emptied_at_ms: int = 0
    """When the last member left; 0 if the group never had one, or if its offsets expire by their own age."""

    def __init__(self, group_id: str) -> None:
        """``group_id`` is the id under which clients know the group."""
        self.group_id = group_id

    @property
    def is_empty(self) -> bool:
        """Whether the group is Empty: its offsets expire, and administrators may delete it."""
        return self.state == EMPTY

    @property
    def expects_members(self) -> bool:
        """Whether a client has announced that it will join. An Empty group is then kept."""
        return False

    def check_move(self, before: str, after: str) -> None:
        """Check a change of the state.

        Raises:
            AssertionError: if the move is not in `moves`, which is a bug of the coordinator.
        """
        if after not in self.moves[before]:
            raise AssertionError(f"illegal move of a group from {before} to {after}")

    def describe(self) -> DescribedGroup:
        """Return the group as administrators see it."""
        return DescribedGroup(error=NONE, group_id=self.group_id, state=str(self.state))

    def subscribed_topics(self) -> Container[str] | None:
        """Return the topics that members subscribe to; None if the coordinator cannot read them."""
        return ()

    def topics_in_use(self) -> Container[str] | None:
        """Return the topics whose offsets do not expire now; None if no offset expires.

        The offsets of an Empty group expire in any case.
        """
        return self.subscribed_topics()

    def accept_commit(self, step: "Step", request: OffsetCommitRequest) -> ErrorCode:  # noqa: ARG002
        """Check a commit. A commit by a member is a sign of life of that member."""
        return NONE if request.generation_id < 0 else ErrorCode.UNKNOWN_MEMBER_ID

    def accept_in_transaction(self, request: TxnOffsetCommitRequest) -> ErrorCode:  # noqa: ARG002
        """Check a commit in a transaction that names a member or a generation. It is no heartbeat."""
        return ErrorCode.UNKNOWN_MEMBER_ID

    def accept_fetch(self, request: OffsetFetchRequest) -> ErrorCode:  # noqa: ARG002
        """Check a request for offsets, which may come from outside the group."""
        return NONE

    @property
    def awaits_heartbeat(self) -> bool:
        """Whether a heartbeat may change the group though no member tells anything new."""
        return False

    def forget_expected(self) -> None:
        """Forget the clients that have announced that they will join, because the group is being deleted."""

    def size_bytes(self) -> int:
        """Return about how much memory the group takes, without its offsets."""
        return GROUP_BYTES + 2 * len(self.group_id)


AnyGroup = TypeVar("AnyGroup", bound=Group)


@dataclass(slots=True)
class Shard:
    """``table`` is the durable state; ``groups`` are the live groups, with the requests parked in them."""

    partition: int
    loading: bool = True
    table: GroupTable = field(default_factory=GroupTable)
    groups: dict[str, Group] = field(default_factory=dict)


Write: TypeAlias = Callable[["Step", ErrorCode], None]
"""Continues after the records of an append were applied (NONE), or after it has failed."""


class PendingWrite(msgspec.Struct, frozen=True):
    """An append in progress."""

    shard: Shard
    records: Records
    write: Write


class Writes:
    """The appends in progress by their ids, which are numbered from 1."""

    __slots__ = ("_last_id", "pending")

    def __init__(self) -> None:
        self._last_id = 0
        self.pending: dict[int, PendingWrite] = {}

    def begin(self, shard: Shard, records: Records, write: Write) -> Append:
        """Note an append, and return it."""
        self._last_id += 1
        self.pending[self._last_id] = PendingWrite(shard, records, write)
        return Append(self._last_id, shard.partition, records)

    def on_their_way(self, shard: Shard, group_id: str) -> list[Record]:
        """Return a group's records that are being written."""
        pending = [write for write in self.pending.values() if write.shard is shard]
        return [r for write in pending for r in write.records if r.group_id == group_id]


class Step(msgspec.Struct, frozen=True):
    """One step of the coordinator on one shard: what it may use, and its effects."""

    shard: Shard
    config: CoordinatorConfig
    timers: Timers
    writes: Writes
    random: Random
    now_ms: int
    effects: Outcome
    client_id: str = ""
    client_host: str = ""

    def append(self, records: Records, write: Write) -> None:
        """Append records to the log; ``write`` continues when they are written or have failed."""
        self.effects.appends.append(self.writes.begin(self.shard, records, write))

    def on_their_way(self, group_id: str) -> list[Record]:
        """Return a group's records that are being written."""
        return self.writes.on_their_way(self.shard, group_id)

    def schedule(self, kind: int, group: Group, delay_ms: int, member_id: str = "") -> None:
        """Set a deadline from now."""
        self.timers.schedule(kind, group.group_id, member_id, self.now_ms + delay_ms)

    def schedule_retention(self, group: Group) -> None:
        """Set the time of the next check whether an Empty group's offsets have expired (PROTOCOL 2.1)."""
        self.schedule(RETENTION, group, self.config.offsets_retention_check_ms)

    def cancel(self, kind: int, group: Group, member_id: str = "") -> None:
        """Cancel a deadline."""
        self.timers.cancel(kind, group.group_id, member_id)

    def find(self, group_id: str, family: type[AnyGroup]) -> AnyGroup | None:
        """Return a group of a family; None if it is unknown, or not of the family."""
        group = self.shard.groups.get(group_id)
        return group if isinstance(group, family) else None

    def found(self, group: AnyGroup) -> AnyGroup:
        """Put a new group in its place, or in that of a group without members, whose offsets stay."""
        before = self.shard.groups.get(group.group_id)
        if before is not None and before.family:
            before.forget_expected()
            self.timers.cancel_group(group.group_id)
        if before is None or before.family:
            self.schedule_retention(group)
        self.shard.groups[group.group_id] = group
        return group

    def moved(self, group: Group, before: str, after: str, cause: str) -> None:
        """Report that a group's state has changed."""
        self.effects.report_move(group.group_id, before, after, group.generation, cause)

    def forget(self, group: Group, cause: str) -> None:
        """Remove a group and its timers."""
        self.moved(group, group.state, DEAD, cause)
        self.timers.cancel_group(group.group_id)
        del self.shard.groups[group.group_id]

    def new_member_id(self, prefix: str) -> str:
        """Return a new id, ``{prefix}-{uuid}`` (PROTOCOL 3.4)."""
        return f"{prefix}-{UUID(int=self.random.getrandbits(128), version=4)}"
