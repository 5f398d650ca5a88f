"""The round: it starts, waits for the joins of all members, and ends with a stored assignment."""

from collections.abc import Callable, Mapping
from typing import NamedTuple, TypeAlias

import msgspec

from coordinator_core.coordinator.expiry import Unattended
from coordinator_core.coordinator.records import GroupRecord
from coordinator_core.coordinator.server_side.group import (
    MOVES,
    Member,
    ServerSideGroup,
    State,
    TimerKind,
    find,
)
from coordinator_core.coordinator.shard import Step
from coordinator_core.coordinator.timers import TimerKey
from coordinator_core.protocol.error_codes import ErrorCode
from coordinator_core.protocol.events import GenerationStarted, MemberRemoved
from coordinator_core.protocol.server_side import JoinResponse


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


Cause: TypeAlias = str


def move(step: Step, group: ServerSideGroup, state: State, cause: Cause) -> None:
    """Change the state of a group, and report it."""
    if state not in MOVES[group.state]:
        raise AssertionError(f"illegal move of a group from {group.state.value} to {state.value}")
    before, group.state = group.state, state
    step.moved(group, before.value, state.value, cause)


def start_or_continue(step: Step, compute: Compute, group: ServerSideGroup, cause: Cause) -> None:
    """Start a round, or end the one that is being prepared if all members have joined."""
    if group.state in (State.EMPTY, State.STABLE):
        start(step, compute, group, cause)
    elif group.state is State.ASSIGNING:
        group.next_cause = group.next_cause or cause
    else:
        complete_if_all_joined(step, compute, group)


def start(step: Step, compute: Compute, group: ServerSideGroup, cause: Cause) -> None:
    """Start a round. The first round of an Empty group waits for the initial delay (KIP-134)."""
    group.is_first, group.added, group.next_cause = group.state is State.EMPTY, False, ""
    move(step, group, State.PREPARING, cause)
    if group.is_first:
        delay_ms = step.config.initial_rebalance_delay_ms
        group.remaining_ms = max(group.rebalance_timeout_ms() - delay_ms, 0)
        step.schedule(TimerKind.JOIN, group, delay_ms)
        return
    step.schedule(TimerKind.JOIN, group, group.rebalance_timeout_ms())
    complete_if_all_joined(step, compute, group)


def complete_if_all_joined(step: Step, compute: Compute, group: ServerSideGroup) -> None:
    """Compute the assignment if all members have joined, but never before the initial delay."""
    if group.state is State.PREPARING and not group.is_first and group.all_have_joined():
        _assign(step, compute, group)


def on_topics(compute: Compute, step: Step, group: ServerSideGroup) -> None:
    """Start a round if the topics of the members differ from those of the assignment."""
    if group.members and compute.topics(group.subscribed_topics()) != group.topics:
        start_or_continue(step, compute, group, "partitions of a subscribed topic changed")


def on_timer(compute: Compute, step: Step, group: ServerSideGroup, key: TimerKey) -> None:
    """Carry out one timer that is due."""
    if key.kind == TimerKind.JOIN:
        _join_time_is_over(step, compute, group)
    elif key.kind == TimerKind.PENDING_MEMBER:
        if group.pending.pop(key.member_id, "") is None:
            complete_if_all_joined(step, compute, group)
    elif key.member_id in group.members and group.members[key.member_id].joining is None:
        drop(step, group, group.members[key.member_id], "session expired")
        start_or_continue(step, compute, group, f"session of {key.member_id} expired")


def _join_time_is_over(step: Step, compute: Compute, group: ServerSideGroup) -> None:
    """Prolong the initial delay while members join, else go on without the others."""
    if group.state is not State.PREPARING:
        return
    if group.is_first and group.added and group.remaining_ms:
        delay_ms = min(step.config.initial_rebalance_delay_ms, group.remaining_ms)
        group.added, group.remaining_ms = False, group.remaining_ms - delay_ms
        step.schedule(TimerKind.JOIN, group, delay_ms)
        return
    for member in [m for m in group.members.values() if m.joining is None]:
        drop(step, group, member, "did not rejoin within the rebalance timeout")
    _assign(step, compute, group)


def _assign(step: Step, compute: Compute, group: ServerSideGroup) -> None:
    """Run the assignor, and store what it returns."""
    step.cancel(TimerKind.JOIN, group)
    group.is_first = False
    group.generation += 1
    if not group.members:
        group.emptied_at_ms = step.now_ms
        move(step, group, State.EMPTY, "no member is left")
        step.schedule_retention(group)
        step.append((GroupRecord(group.group_id, group.stored({}, step.now_ms)),), Unattended())
        return
    computed = compute.assign({m.member_id: m.topics for m in group.members.values()})
    group.protocol_name, group.topics = computed.protocol, computed.topics
    move(step, group, State.ASSIGNING, "everybody has joined")
    stored = group.stored(computed.assignments, step.now_ms)
    write = StoreAssignment(group.group_id, group.generation, computed.assignments, compute)
    step.append((GroupRecord(group.group_id, stored),), write)


class StoreAssignment(msgspec.Struct, frozen=True):
    """The append of an assignment. When it is stored, the generation starts, and joins are answered."""

    group_id: str
    generation: int
    assignments: dict[str, bytes]
    compute: Compute

    def completed(self, step: Step, error: ErrorCode) -> None:
        """Answer the joins; start another round if the append failed, or if something happened meanwhile."""
        group = find(step, self.group_id)
        if group is None or group.generation != self.generation or group.state is not State.ASSIGNING:
            return
        if error:
            for member in group.members.values():
                answer(step, group, member, error)
            start(step, self.compute, group, f"the assignment could not be stored ({error.name})")
            return
        members = [m for m in group.members.values() if m.member_id in self.assignments]
        step.effects.events.append(
            GenerationStarted(
                group=group.group_id,
                generation=group.generation,
                protocol=group.protocol_name,
                leader="",
                members=[m.member_id for m in members],
            )
        )
        move(step, group, State.STABLE, "the assignment is stored")
        for member in members:
            member.assignment = self.assignments[member.member_id]
            answer(step, group, member, ErrorCode.NONE)
        if group.next_cause:
            start(step, self.compute, group, group.next_cause)


def answer(step: Step, group: ServerSideGroup, member: Member, error: ErrorCode) -> None:
    """Answer the parked join of a member, if there is one, with its share or an error."""
    request_id, member.joining = member.joining, None
    if request_id is None:
        return
    group.restart_session(step, member)
    response = JoinResponse(error=error, member_id=member.member_id)
    if not error:
        response = JoinResponse(
            error=error,
            member_id=member.member_id,
            generation_id=group.generation,
            protocol_name=group.protocol_name,
            assignment=member.assignment,
        )
    step.effects.reply(request_id, response)


def drop(step: Step, group: ServerSideGroup, member: Member, reason: str) -> None:
    """Remove a member. Its parked join gets UNKNOWN_MEMBER_ID."""
    answer(step, group, member, ErrorCode.UNKNOWN_MEMBER_ID)
    del group.members[member.member_id]
    step.cancel(TimerKind.SESSION, group, member.member_id)
    step.effects.events.append(MemberRemoved(group=group.group_id, member_id=member.member_id, reason=reason))
