"""A classic group in memory: members, the requests parked for them, and the choice of assignor."""

from collections import Counter
from collections.abc import Collection, Container, Iterator, Sequence
from dataclasses import dataclass, field
from enum import IntEnum
from typing import TypeAlias

from coordinator_core.coordinator.classic.states import REFUSED, GroupState, check_move
from coordinator_core.coordinator.classic.subscriptions import read_topics, topics_of
from coordinator_core.coordinator.records import StoredGroup, StoredMember
from coordinator_core.coordinator.shard import GROUP_BYTES, MEMBER_BYTES, Step
from coordinator_core.protocol.consumer_protocol import PROTOCOL_TYPE
from coordinator_core.protocol.error_codes import NONE, ErrorCode
from coordinator_core.protocol.messages import (
    DescribedGroup,
    DescribedMember,
    HeartbeatRequest,
    JoinGroupMember,
    JoinGroupProtocol,
    JoinGroupRequest,
    OffsetCommitRequest,
    SyncGroupRequest,
    TxnOffsetCommitRequest,
)

FAMILY = "classic"

MemberRequest: TypeAlias = SyncGroupRequest | HeartbeatRequest | OffsetCommitRequest | TxnOffsetCommitRequest
"""The requests that only members in good standing may send."""


class TimerKind(IntEnum):
    """What a deadline of a classic group is for; deadlines of one moment fire in this order."""

    PENDING_MEMBER = 0
    SESSION = 1
    JOIN = 2
    SYNC = 3
    CAPACITY = 4


_DEAD, _SESSION = GroupState.DEAD, TimerKind.SESSION


@dataclass(slots=True)
class Member:
    """A member. ``syncing`` is the id of its parked SyncGroup."""

    member_id: str
    instance_id: str | None
    client_id: str
    client_host: str
    session_timeout_ms: int
    rebalance_timeout_ms: int
    protocols: tuple[JoinGroupProtocol, ...]
    assignment: bytes = b""
    is_new: bool = True
    syncing: int | None = None

    def metadata(self, protocol: str | None) -> bytes:
        """Return the subscription for an assignor; empty if the member does not list the assignor."""
        for p in self.protocols:
            if p.name == protocol:
                return p.metadata
        return b""

    def vote(self, candidates: Container[str]) -> str:
        """Return the first assignor among the candidates in the member's list (PROTOCOL 3.8)."""
        return next(p.name for p in self.protocols if p.name in candidates)

    def size_bytes(self) -> int:
        """Return about how much memory the member takes. Its subscription is in the log's table as well."""
        protocols = sum(len(p.name) + len(p.metadata) for p in self.protocols)
        return MEMBER_BYTES + 2 * protocols + 2 * len(self.assignment)


@dataclass(slots=True)
class ClassicGroup:
    """A group. ``members`` are in the order in which they joined.

    ``pending`` are the ids of members that must join again with the id that they received. ``handed_out``
    is the highest generation that an earlier coordinator may have given to members, ``reserved`` the
    highest that this coordinator may give. ``join_is_due``: the time of the join phase has passed.
    ``joins`` are the ids of the parked JoinGroup requests by member id. ``listing`` is the number of members
    that list an assignor.
    """

    group_id: str
    family: str = FAMILY
    state: GroupState = GroupState.EMPTY
    previous_state: GroupState = GroupState.EMPTY
    generation: int = 0
    handed_out: int = 0
    reserved: int = 0
    is_reserving: bool = False
    join_is_due: bool = False
    protocol_type: str | None = None
    protocol_name: str | None = None
    leader: str | None = None
    members: dict[str, Member] = field(default_factory=dict)
    static_members: dict[str, str] = field(default_factory=dict)
    pending: dict[str, None] = field(default_factory=dict)
    pending_sync: dict[str, None] = field(default_factory=dict)
    joins: dict[str, int] = field(default_factory=dict)
    listing: dict[str, int] = field(default_factory=dict)
    member_added_in_initial_delay: bool = False
    initial_delay_ms: int = 0
    initial_remaining_ms: int = 0
    emptied_at_ms: int = 0

    @property
    def is_empty(self) -> bool:
        """Whether the group is Empty."""
        return self.state is GroupState.EMPTY

    @property
    def expects_members(self) -> bool:
        """Whether ids are pending."""
        return bool(self.pending)

    def describe(self) -> DescribedGroup:
        """Return the group as administrators see it. Assignor and assignments are shown if it is Stable."""
        stable = self.state is GroupState.STABLE
        return DescribedGroup(
            error=ErrorCode.NONE,
            group_id=self.group_id,
            state=self.state.value,
            protocol_type=self.protocol_type or "",
            protocol_name=(self.protocol_name or "") if stable else "",
            members=tuple(
                DescribedMember(
                    m.member_id,
                    m.instance_id,
                    m.client_id,
                    m.client_host,
                    m.metadata(self.protocol_name) if stable else b"",
                    m.assignment if stable else b"",
                )
                for m in self.members.values()
            ),
        )

    def subscribed_topics(self) -> dict[str, None] | None:
        """Return the topics of all members; None for members that are not consumers."""
        if self.members and self.protocol_type != PROTOCOL_TYPE:
            return None
        return {topic: None for member in self.members.values() for topic in topics_of(member.protocols)}

    def topics_in_use(self) -> Collection[str] | None:
        """Return the topics whose offsets do not expire now; None if no offset expires (PROTOCOL 2.1).

        In Stable these are the subscribed topics, if the subscriptions of all members are readable.
        """
        if self.state is not GroupState.STABLE or self.protocol_type != PROTOCOL_TYPE:
            return None
        return read_topics(member.metadata(self.protocol_name) for member in self.members.values())

    def accept_commit(self, step: Step, request: OffsetCommitRequest) -> ErrorCode:
        """Check a commit (C-33 to C-36). A commit restarts the session of its member."""
        simple = request.generation_id < 0 and self.is_empty
        error = NONE if simple else self.check(request)
        if not error and request.member_id in self.members:
            self.restart_session(step, request.member_id)
        return error

    def accept_in_transaction(self, request: TxnOffsetCommitRequest) -> ErrorCode:
        """Check a commit in a transaction. It is accepted in CompletingRebalance, too."""
        return self.check(request)

    def restart_session(self, step: Step, member_id: str) -> None:
        """Restart the session of a member. The session of a new member has not begun (PROTOCOL 3.11)."""
        member = self.members[member_id]
        if not member.is_new:
            at_ms = step.now_ms + member.session_timeout_ms
            step.timers.schedule(_SESSION, self.group_id, member_id, at_ms)

    def forget_expected(self) -> None:
        """Forget the pending ids."""
        self.pending.clear()

    def size_bytes(self) -> int:
        """Return about how much memory the group takes, without its offsets."""
        size = GROUP_BYTES + 2 * len(self.group_id) + MEMBER_BYTES * len(self.pending)
        return size + sum(member.size_bytes() for member in self.members.values())

    def move_to(self, state: GroupState) -> None:
        """Change state.

        Raises:
            AssertionError: if the move is illegal.
        """
        check_move(self.state, state)
        self.previous_state, self.state = self.state, state

    def add(self, member: Member) -> None:
        """Add a member, in place of one with the same id; the first one becomes the leader."""
        if member.member_id in self.members:
            self._count(self.members[member.member_id].protocols, -1)
        self.members[member.member_id] = member
        self._count(member.protocols, 1)
        self.pending.pop(member.member_id, None)
        if member.instance_id is not None:
            self.static_members[member.instance_id] = member.member_id
        if self.leader is None:
            self.leader = member.member_id

    def remove(self, member_id: str) -> Member | None:
        """Remove a member or a pending id; the first remaining member becomes the next leader (C-18)."""
        self.pending.pop(member_id, None)
        self.pending_sync.pop(member_id, None)
        member = self.members.pop(member_id, None)
        if member is None:
            return None
        self.joins.pop(member_id, None)
        self._count(member.protocols, -1)
        if member.instance_id is not None and self.static_members.get(member.instance_id) == member_id:
            del self.static_members[member.instance_id]
        if self.leader == member_id:
            self.leader = next(iter(self.members), None)
        return member

    def replace(self, old_id: str, new_id: str) -> Member:
        """Give a static member a new id; it keeps its place (PROTOCOL 6.2)."""
        member = self.members[old_id]
        assert member.instance_id is not None
        self.members = {new_id if m == old_id else m: v for m, v in self.members.items()}
        member.member_id = new_id
        member.is_new = False
        self.static_members[member.instance_id] = new_id
        if old_id in self.pending_sync:
            del self.pending_sync[old_id]
            self.pending_sync[new_id] = None
        if self.leader == old_id:
            self.leader = new_id
        return member

    def set_protocols(self, member: Member, protocols: tuple[JoinGroupProtocol, ...]) -> None:
        """Replace the protocols of a member."""
        if member.protocols != protocols:
            self._count(member.protocols, -1)
            member.protocols = protocols
            self._count(protocols, 1)

    def update(self, member: Member, request: JoinGroupRequest) -> None:
        """Take over the protocols and timeouts of a newer join of a member."""
        self.set_protocols(member, request.protocols)
        member.session_timeout_ms = request.session_timeout_ms
        member.rebalance_timeout_ms = request.rebalance_timeout_ms

    def _count(self, protocols: Sequence[JoinGroupProtocol], by: int) -> None:
        """Count the assignors of a member in `listing`, or remove them from it."""
        for name in dict.fromkeys(p.name for p in protocols):
            self.listing[name] = self.listing.get(name, 0) + by
            if not self.listing[name]:
                del self.listing[name]

    def check_identity(self, member_id: str, instance_id: str | None) -> ErrorCode:
        """Check that the id is a member's, and the current one of the instance id (PROTOCOL 4.1, C-38)."""
        if instance_id is not None:
            current = self.static_members.get(instance_id)
            if current is None:
                return ErrorCode.UNKNOWN_MEMBER_ID
            if current != member_id:
                return ErrorCode.FENCED_INSTANCE_ID
        if member_id not in self.members:
            return ErrorCode.UNKNOWN_MEMBER_ID
        return NONE

    def check(self, request: MemberRequest) -> ErrorCode:
        """Check in the order of PROTOCOL 4.1 whether a member may send a request now."""
        if self.state is _DEAD:
            return ErrorCode.COORDINATOR_NOT_AVAILABLE
        if request.group_instance_id is not None or request.member_id not in self.members:
            error = self.check_identity(request.member_id, request.group_instance_id)
            if error:
                return error
        if request.generation_id != self.generation:
            return ErrorCode.ILLEGAL_GENERATION
        if isinstance(request, SyncGroupRequest) and not self._has_protocol_of(request):
            return ErrorCode.INCONSISTENT_GROUP_PROTOCOL
        return REFUSED.get((self.state, type(request)), NONE)

    def _has_protocol_of(self, request: SyncGroupRequest) -> bool:
        same_type = request.protocol_type in (None, self.protocol_type)
        return same_type and request.protocol_name in (None, self.protocol_name)

    def next_generation(self) -> int:
        """Return the number of the next generation, which is greater than any before."""
        return max(self.generation, self.handed_out) + 1

    def lost_a_round(self) -> bool:
        """Return whether an earlier coordinator may have handed out a generation that was never stored.

        A member that joins again may have that generation, and must not be given the older, stored one.
        """
        return self.handed_out > self.generation

    def joining_members(self) -> Iterator[Member]:
        """Yield the members with a parked join, in the order in which they joined the group."""
        return (m for m in self.members.values() if m.member_id in self.joins)

    def all_have_joined(self) -> bool:
        """Return whether every member has joined and no id is pending (PROTOCOL 3.6)."""
        return not self.pending and len(self.joins) == len(self.members)

    def rebalance_timeout_ms(self) -> int:
        """Return the largest rebalance timeout of the members (PROTOCOL 3.6)."""
        return max((m.rebalance_timeout_ms for m in self.members.values()), default=0)

    def candidates(self) -> set[str]:
        """Return the assignors that every member lists. The set is never iterated."""
        return {name for name, members in self.listing.items() if members == len(self.members)}

    def supports(self, protocol_type: str, protocols: Sequence[JoinGroupProtocol]) -> bool:
        """Return whether a joining member's protocols fit the group's (PROTOCOL 3.3, C-06)."""
        if not protocol_type or not protocols:
            return False
        if not self.members:
            return True
        members = len(self.members)
        return protocol_type == self.protocol_type and any(
            self.listing.get(p.name) == members for p in protocols
        )

    def choose_protocol(self) -> str:
        """Return the one with most votes; ties go to the leader's order, then to the lower name (C-07)."""
        candidates = self.candidates()
        if len(candidates) == 1:
            return candidates.pop()
        votes = Counter(m.vote(candidates) for m in self.members.values())
        listed = [p.name for p in self.members[self.leader].protocols] if self.leader in self.members else []

        def rank(name: str) -> tuple[int, int, str]:
            return (-votes[name], listed.index(name) if name in listed else len(listed), name)

        return min(votes, key=rank)

    def elect_rejoined_leader(self) -> bool:
        """Keep the leader if it rejoined, else elect the first member that did (PROTOCOL 3.7).

        Returns False if no member rejoined.
        """
        leader = self.members.get(self.leader) if self.leader is not None else None
        if leader is not None and leader.member_id in self.joins:
            return True
        first = next(self.joining_members(), None)
        if first is None:
            return False
        self.leader = first.member_id
        return True

    def described_members(self) -> tuple[JoinGroupMember, ...]:
        """Return the members as the leader gets them."""
        return tuple(
            JoinGroupMember(m.member_id, m.instance_id, m.metadata(self.protocol_name))
            for m in self.members.values()
        )

    def stored(self, assignments: dict[str, bytes], now_ms: int) -> StoredGroup:
        """Return the group as the value of a record. Assignments that are missing are stored as empty."""
        return StoredGroup(
            protocol_type=self.protocol_type or "",
            protocol_name=self.protocol_name,
            generation=self.generation,
            leader=self.leader,
            members=tuple(
                StoredMember(
                    m.member_id,
                    m.instance_id,
                    m.client_id,
                    m.client_host,
                    m.session_timeout_ms,
                    m.rebalance_timeout_ms,
                    m.metadata(self.protocol_name),
                    assignments.get(m.member_id, b""),
                )
                for m in self.members.values()
            ),
            changed_at_ms=now_ms,
            family=FAMILY,
        )

    def assignments(self) -> dict[str, bytes]:
        """Return the assignments by member id."""
        return {m.member_id: m.assignment for m in self.members.values()}


def restored(group_id: str, stored: StoredGroup, handed_out: int) -> ClassicGroup:
    """Return the group of a record: Stable if it has members, else Empty (PROTOCOL 8.2)."""
    group = ClassicGroup(group_id)
    group.protocol_type = stored.protocol_type or None
    group.protocol_name = stored.protocol_name
    group.generation = stored.generation
    group.handed_out = group.reserved = handed_out
    group.emptied_at_ms = stored.changed_at_ms
    for m in stored.members:
        protocols = (JoinGroupProtocol(stored.protocol_name or "", m.subscription),)
        group.add(
            Member(
                m.member_id,
                m.instance_id,
                m.client_id,
                m.client_host,
                m.session_timeout_ms,
                m.rebalance_timeout_ms,
                protocols,
                m.assignment,
                is_new=False,
            )
        )
    group.leader = stored.leader
    if group.members:
        group.state = group.previous_state = GroupState.STABLE
    return group


def find(step: Step, group_id: str) -> ClassicGroup | None:
    """Return the group; None if it is unknown or has never had a member."""
    group = step.shard.groups.get(group_id)
    return group if isinstance(group, ClassicGroup) else None
