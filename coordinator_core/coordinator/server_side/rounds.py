"""The round: it starts, waits for the joins of all members, and ends with a stored assignment."""

from functools import partial

from coordinator_core.coordinator.round_group import TimerKind
from coordinator_core.coordinator.server_side.group import Member, ServerSideGroup, State
from coordinator_core.coordinator.shard import Step
from coordinator_core.coordinator.timers import TimerKey
from coordinator_core.protocol.error_codes import NONE, ErrorCode
from coordinator_core.protocol.server_side import JoinResponse


def start_or_continue(step: Step, group: ServerSideGroup, cause: str) -> None:
    """Start a round, or end the one that is being prepared if all members have joined."""
    if group.state in (State.EMPTY, State.STABLE):
        start(step, group, cause)
    elif group.state is State.ASSIGNING:
        group.next_cause = group.next_cause or cause
    else:
        complete_if_all_joined(step, group)


def start(step: Step, group: ServerSideGroup, cause: str) -> None:
    """Start a round. The first round of an Empty group waits for the initial delay (KIP-134)."""
    group.next_cause = ""
    group.begin_join_phase(step, cause)
    complete_if_all_joined(step, group)


def complete_if_all_joined(step: Step, group: ServerSideGroup) -> None:
    """Compute the assignment if all members have joined, but never before the initial delay."""
    if group.state is State.PREPARING and not group.is_in_initial_delay() and group.all_have_joined():
        _assign(step, group)


def on_topics(step: Step, group: ServerSideGroup) -> None:
    """Start a round if the topics of the members differ from those of the assignment."""
    if group.members and group.compute.topics(group.subscribed_topics()) != group.topics:
        start_or_continue(step, group, "partitions of a subscribed topic changed")


def on_timer(step: Step, group: ServerSideGroup, key: TimerKey) -> None:
    """Carry out one timer that is due."""
    if key.kind == TimerKind.JOIN:
        _join_time_is_over(step, group)
    elif key.kind == TimerKind.PENDING_MEMBER:
        if group.take_back_id(step, key.member_id):
            complete_if_all_joined(step, group)
    elif key.member_id in group.members and key.member_id not in group.joins:
        group.drop(step, group.members[key.member_id], "session expired")
        start_or_continue(step, group, f"session of {key.member_id} expired")


def _join_time_is_over(step: Step, group: ServerSideGroup) -> None:
    """Prolong the initial delay while members join, else go on without the others."""
    if group.state is State.PREPARING and not group.prolong_initial_delay(step):
        for member in [m for m in group.members.values() if m.member_id not in group.joins]:
            group.drop(step, member, "did not rejoin within the rebalance timeout")
        _assign(step, group)


def _assign(step: Step, group: ServerSideGroup) -> None:
    """Run the assignor, and store what it returns."""
    step.cancel(TimerKind.JOIN, group)
    group.generation += 1
    if not group.members:
        group.become_empty(step)
        return
    computed = group.compute.assign({m.member_id: m.topics for m in group.members.values()})
    group.protocol_name, group.topics = computed.protocol, computed.topics
    group.move(step, State.ASSIGNING, "everybody has joined")
    write = partial(_stored, group.group_id, group.generation, computed.assignments)
    group.store(step, computed.assignments, write)


def _stored(
    group_id: str, generation: int, assignments: dict[str, bytes], step: Step, error: ErrorCode
) -> None:
    """Answer the joins; start another round if the append failed, or if something happened meanwhile."""
    group = step.find(group_id, ServerSideGroup)
    if group is None or group.generation != generation or group.state is not State.ASSIGNING:
        return
    if error:
        for member in group.members.values():
            answer(step, group, member, error)
        start(step, group, f"the assignment could not be stored ({error.name})")
        return
    members = [m for m in group.members.values() if m.member_id in assignments]
    names = [m.member_id for m in members]
    step.effects.report_generation(group.group_id, group.generation, group.protocol_name, names)
    group.move(step, State.STABLE, "the assignment is stored")
    for member in members:
        member.assignment = assignments[member.member_id]
        answer(step, group, member, NONE)
    if group.next_cause:
        start(step, group, group.next_cause)


def answer(step: Step, group: ServerSideGroup, member: Member, error: ErrorCode) -> None:
    """Answer the parked join of a member, if there is one, with its share or an error. Its session begins."""
    if member.member_id not in group.joins:
        return
    if error:
        group.refuse_parked(step, member, error)
    else:
        response = JoinResponse(
            error=error,
            member_id=member.member_id,
            generation_id=group.generation,
            protocol_name=group.protocol_name,
            assignment=member.assignment,
        )
        step.effects.reply(group.joins.pop(member.member_id), response)
    group.restart_session(step, member.member_id)
