"""A group in memory: members, who waits for what, and the choice of assignor. No time, no replies."""

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from coordinator_core.coordinator.classic.states import GroupState, check_move
from coordinator_core.coordinator.records import StoredGroup, StoredMember
from coordinator_core.protocol.error_codes import ErrorCode
from coordinator_core.protocol.messages import JoinGroupMember, JoinGroupProtocol


@dataclass(slots=True)
class Member:
    """A member. ``joining`` and ``syncing`` are the ids of the requests it is parked with."""

    member_id: str
    instance_id: str | None
    client_id: str
    client_host: str
    session_timeout_ms: int
    rebalance_timeout_ms: int
    protocols: tuple[JoinGroupProtocol, ...]
    assignment: bytes = b""
    is_new: bool = True
    joining: int | None = None
    syncing: int | None = None

    def metadata(self, protocol: str | None) -> bytes:
        """Its subscription for an assignor; empty when it does not list it."""
        return next((p.metadata for p in self.protocols if p.name == protocol), b"")

    def vote(self, candidates: set[str]) -> str:
        """The first assignor it lists among the candidates (PROTOCOL 3.8)."""
        return next(p.name for p in self.protocols if p.name in candidates)


@dataclass(slots=True)
class Group:
    """A group. ``members`` are kept in the order they joined.

    ``handed_out`` is the highest generation that a coordinator before this one may have given to members,
    ``reserved`` the highest that this one may; ``join_is_due``: the join phase is over its time.
    """

    group_id: str
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
    member_added_in_initial_delay: bool = False
    initial_delay_ms: int = 0
    initial_remaining_ms: int = 0
    emptied_at_ms: int = 0

    def move_to(self, state: GroupState) -> None:
        """Change state; an illegal move raises AssertionError."""
        check_move(self.state, state)
        self.previous_state, self.state = self.state, state

    def add(self, member: Member) -> None:
        """Take in a member; the first one leads and fixes the protocol type."""
        self.members[member.member_id] = member
        self.pending.pop(member.member_id, None)
        if member.instance_id is not None:
            self.static_members[member.instance_id] = member.member_id
        if self.leader is None:
            self.leader = member.member_id

    def remove(self, member_id: str) -> Member | None:
        """Take out a member or a pending id; the next leader is the first that remains (C-18)."""
        self.pending.pop(member_id, None)
        self.pending_sync.pop(member_id, None)
        member = self.members.pop(member_id, None)
        if member is None:
            return None
        if member.instance_id is not None and self.static_members.get(member.instance_id) == member_id:
            del self.static_members[member.instance_id]
        if self.leader == member_id:
            self.leader = next(iter(self.members), None)
        return member

    def replace(self, old_id: str, new_id: str) -> Member:
        """Give a static member a new id, in its old place (PROTOCOL 6.2)."""
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

    def check_identity(self, member_id: str, instance_id: str | None) -> ErrorCode:
        """Whether the id is a member's, and the instance id's current one (PROTOCOL 4.1, C-38)."""
        if instance_id is not None:
            current = self.static_members.get(instance_id)
            if current is None:
                return ErrorCode.UNKNOWN_MEMBER_ID
            if current != member_id:
                return ErrorCode.FENCED_INSTANCE_ID
        if member_id not in self.members:
            return ErrorCode.UNKNOWN_MEMBER_ID
        return ErrorCode.NONE

    def check_member(self, member_id: str, instance_id: str | None, generation: int) -> ErrorCode:
        """Whether a request comes from a member, and in the current generation (PROTOCOL 4.1)."""
        error = self.check_identity(member_id, instance_id)
        if error is ErrorCode.NONE and generation != self.generation:
            return ErrorCode.ILLEGAL_GENERATION
        return error

    def next_generation(self) -> int:
        """The number of the next generation: greater than any before."""
        return max(self.generation, self.handed_out) + 1

    def lost_a_round(self) -> bool:
        """Whether the coordinator before may have handed out a generation that was never stored.

        Who joins again may have that one, and must not be given the older one that was.
        """
        return self.handed_out > self.generation

    def joining_members(self) -> Iterator[Member]:
        """Those whose JoinGroup is parked, in the order they joined the group."""
        return (m for m in self.members.values() if m.joining is not None)

    def all_have_joined(self) -> bool:
        """Whether nobody is waited for: no member, and no pending id (PROTOCOL 3.6)."""
        return not self.pending and all(m.joining is not None for m in self.members.values())

    def rebalance_timeout_ms(self) -> int:
        """The largest of its members' (PROTOCOL 3.6)."""
        return max((m.rebalance_timeout_ms for m in self.members.values()), default=0)

    def candidates(self) -> set[str]:
        """The assignors that every member lists. Only looked into, never iterated."""
        lists = [{p.name for p in m.protocols} for m in self.members.values()]
        return set.intersection(*lists) if lists else set()

    def supports(self, protocol_type: str, protocols: Sequence[JoinGroupProtocol]) -> bool:
        """Whether a joining member's protocols fit the group's (PROTOCOL 3.3, C-06)."""
        if not protocol_type or not protocols:
            return False
        if not self.members:
            return True
        candidates = self.candidates()
        return protocol_type == self.protocol_type and any(p.name in candidates for p in protocols)

    def choose_protocol(self) -> str:
        """The assignor with most votes; ties go to the leader's order, then to the lower name (C-07)."""
        candidates = self.candidates()
        votes = Counter(m.vote(candidates) for m in self.members.values())
        listed = [p.name for p in self.members[self.leader].protocols] if self.leader in self.members else []

        def rank(name: str) -> tuple[int, int, str]:
            return (-votes[name], listed.index(name) if name in listed else len(listed), name)

        return min(votes, key=rank)

    def elect_rejoined_leader(self) -> bool:
        """Keep the leader if it rejoined, else take the first that did; False if nobody did (3.7)."""
        leader = self.members.get(self.leader) if self.leader is not None else None
        if leader is not None and leader.joining is not None:
            return True
        first = next(self.joining_members(), None)
        if first is None:
            return False
        self.leader = first.member_id
        return True

    def described_members(self) -> tuple[JoinGroupMember, ...]:
        """What the leader is told of the members."""
        return tuple(
            JoinGroupMember(m.member_id, m.instance_id, m.metadata(self.protocol_name))
            for m in self.members.values()
        )

    def stored(self, assignments: dict[str, bytes], now_ms: int) -> StoredGroup:
        """The group as a record's value, with the given assignments (missing ones are empty)."""
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
        )

    def assignments(self) -> dict[str, bytes]:
        """Member id -> its assignment."""
        return {m.member_id: m.assignment for m in self.members.values()}


def restored(group_id: str, stored: StoredGroup, handed_out: int) -> Group:
    """The group a record describes: Stable with members, Empty without (PROTOCOL 8.2)."""
    group = Group(group_id)
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
