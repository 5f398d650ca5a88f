"""A group whose coordinator computes the assignments: its members, and the joins parked for them."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from enum import IntEnum, StrEnum

from coordinator_core.coordinator.records import StoredGroup, StoredMember
from coordinator_core.coordinator.shard import DEAD, EMPTY, GROUP_BYTES, MEMBER_BYTES, Step
from coordinator_core.protocol.consumer_protocol import PROTOCOL_TYPE, decode_assignment
from coordinator_core.protocol.error_codes import ErrorCode
from coordinator_core.protocol.messages import (
    DescribedGroup,
    DescribedMember,
    OffsetCommitRequest,
    TxnOffsetCommitRequest,
)

FAMILY = "server-side"


class State(StrEnum):
    """The states of a group."""

    EMPTY = EMPTY
    """The group has no members."""

    PREPARING = "PreparingRebalance"
    """The group waits for its members to join. Heartbeats get ILLEGAL_GENERATION."""

    ASSIGNING = "Assigning"
    """The assignment is computed and is being stored. Joins are parked until it is."""

    STABLE = "Stable"
    """Every member has its share, or gets it when it joins."""

    DEAD = DEAD
    """The group is forgotten."""


MOVES: Mapping[State, frozenset[State]] = {
    State.EMPTY: frozenset({State.PREPARING, State.DEAD}),
    State.PREPARING: frozenset({State.ASSIGNING, State.EMPTY, State.DEAD}),
    State.ASSIGNING: frozenset({State.STABLE, State.PREPARING, State.DEAD}),
    State.STABLE: frozenset({State.PREPARING, State.DEAD}),
    State.DEAD: frozenset({State.DEAD}),
}


class TimerKind(IntEnum):
    """What a deadline of a group is for. Deadlines of one moment fire in this order."""

    PENDING_MEMBER = 0
    SESSION = 1
    JOIN = 2


@dataclass(slots=True)
class Member:
    """A member. ``joining`` is the id of its parked join; its session is not counted meanwhile."""

    member_id: str
    client_id: str
    client_host: str
    session_timeout_ms: int
    rebalance_timeout_ms: int
    topics: tuple[str, ...]
    assignment: bytes = b""
    joining: int | None = None


@dataclass(slots=True)
class ServerSideGroup:
    """A group. ``members`` are in the order in which they joined.

    ``pending`` are the ids that were handed out and have not joined. ``topics`` are the topics with their
    partitions for which the assignment was computed. ``next_cause`` is the reason for the round that follows
    the write under way, "" if there is none. ``is_first``, ``added`` and ``remaining_ms`` belong to the
    initial delay.
    """

    group_id: str
    family: str = FAMILY
    state: State = State.EMPTY
    generation: int = 0
    protocol_name: str = ""
    members: dict[str, Member] = field(default_factory=dict)
    pending: dict[str, None] = field(default_factory=dict)
    topics: dict[str, int] = field(default_factory=dict)
    next_cause: str = ""
    is_first: bool = False
    added: bool = False
    remaining_ms: int = 0
    emptied_at_ms: int = 0
    protocol_type: str | None = PROTOCOL_TYPE

    @property
    def is_empty(self) -> bool:
        """Whether the group is Empty."""
        return self.state is State.EMPTY

    @property
    def expects_members(self) -> bool:
        """Whether ids are pending."""
        return bool(self.pending)

    def describe(self) -> DescribedGroup:
        """Return the group as administrators see it."""
        return DescribedGroup(
            error=ErrorCode.NONE,
            group_id=self.group_id,
            state=self.state.value,
            protocol_type=PROTOCOL_TYPE,
            protocol_name=self.protocol_name if self.state is State.STABLE else "",
            members=tuple(
                DescribedMember(m.member_id, None, m.client_id, m.client_host, b"", m.assignment)
                for m in self.members.values()
            ),
        )

    def subscribed_topics(self) -> dict[str, None]:
        """Return the topics of all members."""
        return {topic: None for member in self.members.values() for topic in member.topics}

    def topics_in_use(self) -> Collection[str] | None:
        """Return the topics whose offsets do not expire now; None if no offset expires."""
        return self.subscribed_topics() if self.state is State.STABLE else None

    def accept_commit(self, step: Step, request: OffsetCommitRequest) -> ErrorCode:
        """Check a commit. A commit restarts the session of its member."""
        if request.generation_id < 0 and self.is_empty:
            return ErrorCode.NONE
        error = self.check(request.member_id, request.generation_id)
        if not error:
            self.restart_session(step, self.members[request.member_id])
        return error

    def accept_in_transaction(self, request: TxnOffsetCommitRequest) -> ErrorCode:
        """Check a commit in a transaction."""
        return self.check(request.member_id, request.generation_id)

    def check(self, member_id: str, generation: int) -> ErrorCode:
        """Check that an id is a member's, and that the member has the present generation."""
        if member_id not in self.members:
            return ErrorCode.UNKNOWN_MEMBER_ID
        return ErrorCode.NONE if generation == self.generation else ErrorCode.ILLEGAL_GENERATION

    def restart_session(self, step: Step, member: Member) -> None:
        """Restart the session of a member, unless its join is parked."""
        if member.joining is None:
            step.schedule(TimerKind.SESSION, self, member.session_timeout_ms, member.member_id)

    def rebalance_timeout_ms(self) -> int:
        """Return the largest rebalance timeout of the members."""
        return max((m.rebalance_timeout_ms for m in self.members.values()), default=0)

    def all_have_joined(self) -> bool:
        """Return whether every member has joined and no id is pending."""
        return not self.pending and all(m.joining is not None for m in self.members.values())

    def forget_expected(self) -> None:
        """Forget the pending ids."""
        self.pending.clear()

    def size_bytes(self) -> int:
        """Return about how much memory the group takes, without its offsets."""
        size = GROUP_BYTES + 2 * len(self.group_id) + MEMBER_BYTES * (len(self.members) + len(self.pending))
        return size + sum(2 * len(m.assignment) for m in self.members.values())

    def stored(self, assignments: Mapping[str, bytes], now_ms: int) -> StoredGroup:
        """Return the group as the value of a record."""
        return StoredGroup(
            protocol_type=PROTOCOL_TYPE,
            protocol_name=self.protocol_name,
            generation=self.generation,
            leader=None,
            members=tuple(
                StoredMember(
                    m.member_id,
                    None,
                    m.client_id,
                    m.client_host,
                    m.session_timeout_ms,
                    m.rebalance_timeout_ms,
                    ",".join(m.topics).encode(),
                    assignments[m.member_id],
                )
                for m in self.members.values()
            ),
            changed_at_ms=now_ms,
            family=FAMILY,
        )


def restored(step: Step, group_id: str, stored: StoredGroup, handed_out: int) -> ServerSideGroup:  # noqa: ARG001
    """Return the group of a record, with sessions that begin now: Stable if it has members, else Empty.

    Its assignment counts, whether its members have received it or not.
    """
    group = ServerSideGroup(group_id, generation=stored.generation, protocol_name=stored.protocol_name or "")
    group.emptied_at_ms = stored.changed_at_ms
    for m in stored.members:
        topics = tuple(filter(None, m.subscription.decode().split(",")))
        group.members[m.member_id] = member = Member(
            m.member_id,
            m.client_id,
            m.client_host,
            m.session_timeout_ms,
            m.rebalance_timeout_ms,
            topics,
            m.assignment,
        )
        group.restart_session(step, member)
        for topic, number in decode_assignment(m.assignment)[0]:
            group.topics[topic] = max(group.topics.get(topic, 0), number + 1)
    if group.members:
        group.state = State.STABLE
    step.schedule_retention(group)
    return group


def find(step: Step, group_id: str) -> ServerSideGroup | None:
    """Return the group; None if it is unknown or has never had a member."""
    group = step.shard.groups.get(group_id)
    return group if isinstance(group, ServerSideGroup) else None
