"""A group whose coordinator computes the assignments: its members, and the joins parked for them."""

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import NamedTuple, TypeAlias

import msgspec

from coordinator_core.coordinator.records import StoredGroup
from coordinator_core.coordinator.round_group import RoundGroup, RoundMember, TimerKind
from coordinator_core.coordinator.shard import DEAD, EMPTY, Step
from coordinator_core.protocol.consumer_protocol import PROTOCOL_TYPE, decode_assignment
from coordinator_core.protocol.error_codes import NONE, ErrorCode
from coordinator_core.protocol.messages import HeartbeatRequest, OffsetCommitRequest, TxnOffsetCommitRequest
from coordinator_core.protocol.server_side import JoinResponse

FAMILY = "server-side"

MemberRequest: TypeAlias = HeartbeatRequest | OffsetCommitRequest | TxnOffsetCommitRequest


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


class Computed(NamedTuple):
    """The result of an assignor: its name, the topics that it was given, and each member's share, encoded."""

    protocol: str
    topics: dict[str, int]
    assignments: dict[str, bytes]


class Compute(msgspec.Struct, frozen=True):
    """How a coordinator computes assignments.

    ``topics`` returns the partitions of the existing ones among some topics. ``assign`` runs the assignor for
    the topics of each member id.
    """

    topics: Callable[[Mapping[str, None]], dict[str, int]]
    assign: Callable[[Mapping[str, tuple[str, ...]]], Computed]


@dataclass(slots=True)
class Member(RoundMember):
    """A member. Its session is not counted while its join is parked."""

    topics: tuple[str, ...] = ()

    def subscription(self, protocol: str | None) -> bytes:  # noqa: ARG002 - the same for every assignor
        """Return the topics, as the log has them."""
        return ",".join(self.topics).encode()

    def shown(self, protocol: str | None, *, is_stable: bool) -> tuple[bytes, bytes]:  # noqa: ARG002
        """Return no subscription, and the assignment."""
        return b"", self.assignment


class ServerSideGroup(RoundGroup[Member]):
    """A group, and how its assignments are computed.

    ``topics`` are the topics with their partitions for which the assignment was computed. ``next_cause`` is
    the reason for the round that follows the write under way, "" if there is none.
    """

    family, moves, join_response = FAMILY, MOVES, JoinResponse
    empty, preparing, stable = State.EMPTY, State.PREPARING, State.STABLE
    state: State = State.EMPTY
    protocol_type: str = PROTOCOL_TYPE

    def __init__(self, group_id: str, compute: Compute) -> None:
        super().__init__(group_id)
        self.compute = compute
        self.protocol_name: str = ""
        self.topics: dict[str, int] = {}
        self.next_cause = ""

    def subscribed_topics(self) -> dict[str, None]:
        """Return the topics of all members."""
        return {topic: None for member in self.members.values() for topic in member.topics}

    def topics_in_use(self) -> Collection[str] | None:
        """Return the topics whose offsets do not expire now; None if no offset expires."""
        return self.subscribed_topics() if self.state is State.STABLE else None

    def check(self, request: MemberRequest) -> ErrorCode:
        """Check that a request is a member's, and that the member has the present generation."""
        if request.member_id not in self.members:
            return ErrorCode.UNKNOWN_MEMBER_ID
        return NONE if request.generation_id == self.generation else ErrorCode.ILLEGAL_GENERATION

    def restart_session(self, step: Step, member_id: str) -> None:
        """Restart the session of a member, unless its join is parked."""
        if member_id not in self.joins:
            timeout_ms = self.members[member_id].session_timeout_ms
            step.schedule(TimerKind.SESSION, self, timeout_ms, member_id)


def restored(compute: Compute, step: Step, group_id: str, stored: StoredGroup, _: int) -> ServerSideGroup:
    """Return the group of a record, with sessions that begin now: Stable if it has members, else Empty.

    Its assignment counts, whether its members have received it or not.
    """
    group = ServerSideGroup(group_id, compute)
    for entry in stored.members:
        member = Member.of(entry)
        member.topics = tuple(filter(None, entry.subscription.decode().split(",")))
        group.add(member)
        group.restart_session(step, member.member_id)
        for topic, number in decode_assignment(entry.assignment)[0]:
            group.topics[topic] = max(group.topics.get(topic, 0), number + 1)
    group.take_over(stored)
    step.schedule_retention(group)
    return group
