"""One partition of the offsets topic on its leader, its groups, and the step that changes them."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from random import Random
from typing import Protocol
from uuid import UUID

import msgspec

from coordinator_core.coordinator.config import CoordinatorConfig
from coordinator_core.coordinator.outcome import Append, Outcome
from coordinator_core.coordinator.records import GroupTable, Record, Records
from coordinator_core.coordinator.timers import RETENTION, Timers
from coordinator_core.protocol.error_codes import ErrorCode
from coordinator_core.protocol.events import GroupStateChanged
from coordinator_core.protocol.messages import DescribedGroup, OffsetCommitRequest, TxnOffsetCommitRequest

EMPTY, DEAD = "Empty", "Dead"
"""The states that every family has: a group without members, and one that is forgotten."""

GROUP_BYTES, MEMBER_BYTES = 2_000, 2_000
"""The approximate memory of a group and of a member, without their texts."""


class Group(Protocol):
    """A group of any protocol family."""

    group_id: str
    """The id under which clients know the group."""

    family: str
    """The protocol family that the group belongs to; "" before the first member joins."""

    @property
    def state(self) -> str:
        """The name of the state, as administrators see it."""

    @property
    def generation(self) -> int:
        """The number of the current generation, or the family's equivalent of it."""

    protocol_type: str | None
    """The kind of members in the group: "consumer", "connect", ..."""

    @property
    def members(self) -> Mapping[str, object]:
        """The members by member id, in the order in which they joined."""

    @property
    def is_empty(self) -> bool:
        """Whether the group is Empty: its offsets expire, and administrators may delete it."""

    @property
    def expects_members(self) -> bool:
        """Whether a client has announced that it will join. An Empty group is then kept."""

    @property
    def emptied_at_ms(self) -> int:
        """When the last member left; 0 if the group never had one."""

    def describe(self) -> DescribedGroup:
        """Return the group as administrators see it."""

    def subscribed_topics(self) -> Collection[str] | None:
        """Return the topics that members subscribe to; None if the coordinator cannot read them."""

    def topics_in_use(self) -> Collection[str] | None:
        """Return the topics whose offsets do not expire now; None if no offset expires.

        The offsets of an Empty group expire in any case.
        """

    def accept_commit(self, step: "Step", request: OffsetCommitRequest) -> ErrorCode:
        """Check a commit. A commit by a member is a sign of life of that member."""

    def accept_in_transaction(self, request: TxnOffsetCommitRequest) -> ErrorCode:
        """Check a commit in a transaction that names a member or a generation. It is no heartbeat."""

    def forget_expected(self) -> None:
        """Forget the clients that have announced that they will join, because the group is being deleted."""

    def size_bytes(self) -> int:
        """Return about how much memory the group takes, without its offsets."""


@dataclass(slots=True)
class Shard:
    """``table`` is the durable state; ``groups`` are the live groups, with the requests parked in them."""

    partition: int
    loading: bool = True
    table: GroupTable = field(default_factory=GroupTable)
    groups: dict[str, Group] = field(default_factory=dict)


class Write(Protocol):
    """The continuation of an append that has succeeded or failed."""

    def completed(self, step: "Step", error: ErrorCode) -> None:
        """Continue after the records were applied (NONE), or after the append failed."""


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

    def found(self, group: Group) -> None:
        """Put a new group in its place, or in that of a group without members, whose offsets stay."""
        before = self.shard.groups.get(group.group_id)
        if before is not None and before.family:
            before.forget_expected()
            self.timers.cancel_group(group.group_id)
        if before is None or before.family:
            self.schedule_retention(group)
        self.shard.groups[group.group_id] = group

    def moved(self, group: Group, before: str, after: str, cause: str) -> None:
        """Report that a group's state has changed."""
        self.effects.events.append(
            GroupStateChanged(
                group=group.group_id, before=before, after=after, generation=group.generation, cause=cause
            )
        )

    def forget(self, group: Group, cause: str) -> None:
        """Remove a group and its timers."""
        self.moved(group, group.state, DEAD, cause)
        self.timers.cancel_group(group.group_id)
        del self.shard.groups[group.group_id]

    def new_member_id(self, prefix: str) -> str:
        """Return a new id, ``{prefix}-{uuid}`` (PROTOCOL 3.4)."""
        return f"{prefix}-{UUID(int=self.random.getrandbits(128), version=4)}"
