"""A classic group in memory: members, the requests parked for them, and the choice of assignor."""

from collections import Counter
from collections.abc import Container, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from coordinator_core.coordinator.classic.states import LEGAL_MOVES, REFUSED, GroupState
from coordinator_core.coordinator.classic.subscriptions import read_topics
from coordinator_core.coordinator.records import StoredGroup
from coordinator_core.coordinator.round_group import RoundGroup, RoundMember, TimerKind
from coordinator_core.coordinator.shard import EVERY_TOPIC, Step
from coordinator_core.coordinator.timers import TimerKey
from coordinator_core.java.hash_maps import hash_order
from coordinator_core.protocol import messages as m
from coordinator_core.protocol.consumer_protocol import PROTOCOL_TYPE
from coordinator_core.protocol.error_codes import NONE, ErrorCode

FAMILY = "classic"

MemberRequest: TypeAlias = (
    m.SyncGroupRequest | m.HeartbeatRequest | m.OffsetCommitRequest | m.TxnOffsetCommitRequest
)
"""The requests that only members in good standing may send."""

_DEAD, _SESSION = GroupState.DEAD, TimerKind.SESSION


@dataclass(slots=True)
class Member(RoundMember):
    """A member. ``syncing`` is the id of its parked SyncGroup."""

    protocols: tuple[m.JoinGroupProtocol, ...] = ()
    is_new: bool = True
    syncing: int | None = None

    def subscription(self, protocol: str | None) -> bytes:
        """Return the subscription for an assignor; empty if the member does not list the assignor."""
        for p in self.protocols:
            if p.name == protocol:
                return p.metadata
        return b""

    def shown(self, protocol: str | None, *, is_stable: bool) -> tuple[bytes, bytes]:
        """Return the subscription, if the group is Stable, and the last assignment."""
        return self.subscription(protocol) if is_stable else b"", self.assignment

    def vote(self, candidates: Container[str]) -> str:
        """Return the first assignor among the candidates in the member's list (PROTOCOL 3.8)."""
        return next(p.name for p in self.protocols if p.name in candidates)

    def size_bytes(self) -> int:
        """Return about how much memory the member takes. Its subscription is in the log's table as well."""
        return RoundMember.size_bytes(self) + 2 * sum(len(p.name) + len(p.metadata) for p in self.protocols)


class ClassicGroup(RoundGroup[Member]):
    """A group.

    ``handed_out`` is the highest generation that an earlier coordinator may have given to members,
    ``reserved`` the highest that this coordinator may give. ``join_is_due``: the time of the join phase has
    passed. ``listing`` is the number of members that list an assignor. ``suspended`` are deadlines of the
    time in which the group was one of the consumer protocol: they go on if it becomes one again.
    """

    family, moves, join_response = FAMILY, LEGAL_MOVES, m.JoinGroupResponse
    empty, preparing, stable = GroupState.EMPTY, GroupState.PREPARING_REBALANCE, GroupState.STABLE
    state: GroupState = GroupState.EMPTY

    def __init__(self, group_id: str, handed_out: int = 0) -> None:
        super().__init__(group_id)
        self.handed_out = self.reserved = handed_out
        self.is_reserving = False
        self.join_is_due = False
        self.static_members: dict[str, str] = {}
        self.pending_sync: dict[str, None] = {}
        self.listing: dict[str, int] = {}
        self.suspended: dict[TimerKey, int] = {}
        self._subscriptions: tuple[bytes, ...] | None = None

    def subscribed_topics(self) -> Container[str] | None:
        """Return the topics of the last generation; None for members that are not consumers.

        These are all topics if they are unknown, as before the first generation.
        """
        if self.protocol_type == PROTOCOL_TYPE:
            topics = self.topics
            return EVERY_TOPIC if topics is None else topics
        return () if self.is_empty else None

    def topics_in_use(self) -> Container[str] | None:
        """Return the topics whose offsets do not expire now; None if no offset expires (PROTOCOL 2.1)."""
        return self.topics if self.state is GroupState.STABLE else None

    def keep_subscriptions(self) -> None:
        """Keep the subscriptions of a new generation. They are read where their topics are needed."""
        of_members = (member.subscription(self.protocol_name) for member in self.members.values())
        self._subscriptions = tuple(of_members) if self.protocol_type == PROTOCOL_TYPE else None

    @property
    def topics(self) -> dict[str, None] | None:
        """The topics that the members of the last generation subscribe to, None if they are unknown."""
        return None if self._subscriptions is None else read_topics(self._subscriptions)

    def restart_session(self, step: Step, member_id: str) -> None:
        """Restart the session of a member."""
        at_ms = step.now_ms + self.members[member_id].session_timeout_ms
        step.timers.schedule(_SESSION, self.group_id, member_id, at_ms)

    def add(self, member: Member) -> None:
        """Add a member, in place of one with the same id; the first one becomes the leader."""
        if member.member_id in self.members:
            self._count(self.members[member.member_id].protocols, -1)
        super().add(member)
        self._count(member.protocols, 1)
        if member.instance_id is not None:
            self.static_members[member.instance_id] = member.member_id
        if self.leader is None:
            self.leader = member.member_id

    def remove(self, member_id: str) -> None:
        """Remove a member; the first remaining member becomes the next leader (C-18)."""
        member = self.members.pop(member_id)
        self.pending_sync.pop(member_id, None)
        self._count(member.protocols, -1)
        if member.instance_id is not None and self.static_members.get(member.instance_id) == member_id:
            del self.static_members[member.instance_id]
        if self.leader == member_id:
            self.leader = next(iter(self.members), None)

    def replace(self, old_id: str, new_id: str) -> None:
        """Give a static member a new id; it keeps its place (PROTOCOL 6.2).

        If a SyncGroup of the old id was expected, one of the new id does not count, as in Kafka.
        """
        member = self.members[old_id]
        assert member.instance_id is not None
        self.members = {new_id if name == old_id else name: v for name, v in self.members.items()}
        member.member_id = new_id
        member.is_new = False
        self.static_members[member.instance_id] = new_id
        if self.leader == old_id:
            self.leader = new_id

    def update(self, member: Member, newer: m.JoinGroupRequest | Member) -> None:
        """Take over the protocols and timeouts of a newer join of a member, or of the member as it was."""
        self.list_protocols(member, newer.protocols)
        member.session_timeout_ms = newer.session_timeout_ms
        member.rebalance_timeout_ms = newer.rebalance_timeout_ms

    def list_protocols(self, member: Member, protocols: tuple[m.JoinGroupProtocol, ...]) -> None:
        """Take over the list of assignors of a member, with its subscription for each."""
        if member.protocols != protocols:
            self._count(member.protocols, -1)
            member.protocols = protocols
            self._count(protocols, 1)

    def drop(self, step: Step, member: Member, reason: str) -> None:
        """Remove a member. Its parked join gets UNKNOWN_MEMBER_ID, its parked sync no response (C-37)."""
        step.effects.supersede(member.syncing)
        member.syncing = None
        super().drop(step, member, reason)

    def refuse_parked(self, step: Step, member: Member, error: ErrorCode) -> None:
        """Answer the parked join and the parked sync of a member with an error."""
        super().refuse_parked(step, member, error)
        self.refuse_sync(step, member, error)

    def refuse_sync(self, step: Step, member: Member, error: ErrorCode) -> None:
        """Answer the parked sync, if there is one, with an error and an empty assignment."""
        if member.syncing is not None:
            step.effects.reply(member.syncing, m.SyncGroupResponse(error=error))
            member.syncing = None

    def _count(self, protocols: Sequence[m.JoinGroupProtocol], by: int) -> None:
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
        return NONE if member_id in self.members else ErrorCode.UNKNOWN_MEMBER_ID

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
        if isinstance(request, m.SyncGroupRequest) and not self._has_protocol_of(request):
            return ErrorCode.INCONSISTENT_GROUP_PROTOCOL
        return REFUSED.get((self.state, type(request)), NONE)

    def _has_protocol_of(self, request: m.SyncGroupRequest) -> bool:
        has_type = None in (request.protocol_type, self.protocol_type)
        has_name = None in (request.protocol_name, self.protocol_name)
        return (has_type or request.protocol_type == self.protocol_type) and (
            has_name or request.protocol_name == self.protocol_name
        )

    def next_generation(self) -> int:
        """Return the number of the next generation, which is greater than any before."""
        return max(self.generation, self.handed_out) + 1

    def lost_a_round(self) -> bool:
        """Return whether an earlier coordinator may have handed out a generation that was never stored.

        A member that joins again may have that generation, and must not be given the older, stored one.
        """
        return self.handed_out > self.generation

    def supports(self, protocol_type: str, protocols: Sequence[m.JoinGroupProtocol]) -> bool:
        """Return whether a joining member's protocols fit the group's (PROTOCOL 3.3, C-06)."""
        if not protocol_type or not protocols:
            return False
        if self.is_empty:
            return True
        members = len(self.members)
        return protocol_type == self.protocol_type and any(
            self.listing.get(p.name, 0) == members for p in protocols
        )

    def choose_protocol(self) -> str:
        """Return the one with most votes; of equal ones the first in a hash map of the votes (C-07)."""
        candidates = [name for name, members in self.listing.items() if members == len(self.members)]
        if len(candidates) == 1:
            return candidates[0]
        votes = Counter(member.vote(candidates) for member in self.members.values())
        return max(hash_order(votes), key=votes.__getitem__)

    def elect_rejoined_leader(self) -> bool:
        """Keep the leader if it rejoined, else elect the first member that did (PROTOCOL 3.7).

        Returns False if no member rejoined.
        """
        if self.leader not in self.joins:
            self.leader = next((name for name in self.members if name in self.joins), self.leader)
        return self.leader in self.joins

    def members_for_leader(self) -> tuple[m.JoinGroupMember, ...]:
        """Return the members as the leader gets them."""
        return tuple(
            m.JoinGroupMember(member.member_id, member.instance_id, member.subscription(self.protocol_name))
            for member in self.members.values()
        )


def restored(group_id: str, stored: StoredGroup, handed_out: int) -> ClassicGroup:
    """Return the group of a record: Stable if it has members, else Empty (PROTOCOL 8.2)."""
    group = ClassicGroup(group_id, handed_out)
    for entry in stored.members:
        member = Member.of(entry)
        member.protocols = (m.JoinGroupProtocol(stored.protocol_name or "", entry.subscription),)
        member.is_new = False
        group.add(member)
    group.take_over(stored)
    group.keep_subscriptions()
    return group
