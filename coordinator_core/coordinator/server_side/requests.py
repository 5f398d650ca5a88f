"""The requests to a group whose coordinator computes the assignments."""

from coordinator_core.coordinator.server_side import rounds
from coordinator_core.coordinator.server_side.group import Member, ServerSideGroup, State, TimerKind, find
from coordinator_core.coordinator.server_side.rounds import Compute
from coordinator_core.coordinator.shard import Step
from coordinator_core.protocol.error_codes import ErrorCode
from coordinator_core.protocol.events import MemberAdded
from coordinator_core.protocol.messages import (
    NO_MEMBER,
    HeartbeatRequest,
    HeartbeatResponse,
    LeaveGroupMemberResponse,
    LeaveGroupRequest,
    LeaveGroupResponse,
)
from coordinator_core.protocol.server_side import JoinRequest, JoinResponse


def join_refused(request: JoinRequest, error: ErrorCode) -> JoinResponse:
    """Return an error."""
    return JoinResponse(error=error, member_id=request.member_id)


def join(compute: Compute, step: Step, request_id: int, request: JoinRequest) -> None:
    """Park the join until the assignment is stored, or answer it."""
    group = find(step, request.group_id)
    low, high = step.config.min_session_timeout_ms, step.config.max_session_timeout_ms
    if not low <= request.session_timeout_ms <= high:
        step.effects.reply(request_id, join_refused(request, ErrorCode.INVALID_SESSION_TIMEOUT))
    elif group is not None and not _has_room(step, group, request.member_id):
        _turn_away(step, compute, group, request_id, request.member_id)
    elif request.member_id == NO_MEMBER:
        group = group or _create(step, request.group_id)
        member_id = step.new_member_id(step.client_id)
        group.pending[member_id] = None
        step.schedule(TimerKind.PENDING_MEMBER, group, request.session_timeout_ms, member_id)
        response = JoinResponse(error=ErrorCode.MEMBER_ID_REQUIRED, member_id=member_id)
        step.effects.reply(request_id, response)
    elif group is not None and request.member_id in group.pending:
        _add(step, compute, group, request_id, request)
    elif group is not None and request.member_id in group.members:
        _rejoin(step, compute, group, request_id, request)
    else:
        step.effects.reply(request_id, join_refused(request, ErrorCode.UNKNOWN_MEMBER_ID))


def _create(step: Step, group_id: str) -> ServerSideGroup:
    """Create a group, in place of a group that has only offsets, if there is one."""
    group = ServerSideGroup(group_id)
    if group_id not in step.shard.groups:
        step.schedule_retention(group)
    step.shard.groups[group_id] = group
    return group


def _has_room(step: Step, group: ServerSideGroup, member_id: str) -> bool:
    """Return whether the group has room (PROTOCOL 3.1, C-08).

    In PreparingRebalance the members with a parked join count; in other states all members do.
    """
    if len(group.members) < step.config.max_size:
        return True
    if group.state is not State.PREPARING:
        return member_id in group.members
    parked = [name for name, member in group.members.items() if member.joining is not None]
    return member_id in parked or len(parked) < step.config.max_size


def _turn_away(step: Step, compute: Compute, group: ServerSideGroup, request_id: int, member_id: str) -> None:
    """Refuse a join to a full group; a known id becomes unknown (C-08)."""
    _forget_pending(step, group, member_id)
    if member_id in group.members:
        rounds.drop(step, group, group.members[member_id], "the group is full")
    step.effects.reply(request_id, JoinResponse(error=ErrorCode.GROUP_MAX_SIZE_REACHED))
    rounds.complete_if_all_joined(step, compute, group)


def _forget_pending(step: Step, group: ServerSideGroup, member_id: str) -> bool:
    """Forget an id that was handed out. Return whether it was pending."""
    if member_id not in group.pending:
        return False
    del group.pending[member_id]
    step.cancel(TimerKind.PENDING_MEMBER, group, member_id)
    return True


def _add(step: Step, compute: Compute, group: ServerSideGroup, request_id: int, request: JoinRequest) -> None:
    member_id = request.member_id
    _forget_pending(step, group, member_id)
    group.members[member_id] = Member(
        member_id,
        step.client_id,
        step.client_host,
        request.session_timeout_ms,
        request.rebalance_timeout_ms,
        request.topics,
        joining=request_id,
    )
    group.added = True
    step.effects.events.append(MemberAdded(group=group.group_id, member_id=member_id))
    rounds.start_or_continue(step, compute, group, f"{member_id} joined")


def _rejoin(
    step: Step, compute: Compute, group: ServerSideGroup, request_id: int, request: JoinRequest
) -> None:
    """Park the join of a member. One that changes nothing in a Stable group gets the stored assignment."""
    member = group.members[request.member_id]
    step.effects.supersede(member.joining)
    step.cancel(TimerKind.SESSION, group, member.member_id)
    member.joining = request_id
    changed = member.topics != request.topics
    member.topics = request.topics
    member.session_timeout_ms = request.session_timeout_ms
    member.rebalance_timeout_ms = request.rebalance_timeout_ms
    if changed:
        rounds.start_or_continue(step, compute, group, f"{member.member_id} changed its topics")
    elif group.state is State.STABLE:
        rounds.answer(step, group, member, ErrorCode.NONE)
    else:
        rounds.complete_if_all_joined(step, compute, group)


def heartbeat(step: Step, request_id: int, request: HeartbeatRequest) -> None:
    """Answer, and restart the session of a member. ILLEGAL_GENERATION announces a round."""
    group = find(step, request.group_id)
    error = ErrorCode.UNKNOWN_MEMBER_ID
    if group is not None and request.member_id in group.members:
        group.restart_session(step, group.members[request.member_id])
        error = group.check(request.member_id, request.generation_id)
        if group.state is not State.STABLE:
            error = ErrorCode.ILLEGAL_GENERATION
    step.effects.reply(request_id, HeartbeatResponse(error=error))


def leave(compute: Compute, step: Step, request_id: int, request: LeaveGroupRequest) -> None:
    """Remove the members. Each gets its own error code; all of them start at most one round."""
    group = find(step, request.group_id)
    responses, left = [], []
    for identity in request.members:
        error = ErrorCode.UNKNOWN_MEMBER_ID
        if group is not None and identity.member_id in group.members:
            error = ErrorCode.NONE
            rounds.drop(step, group, group.members[identity.member_id], identity.reason or "left")
            left.append(identity.member_id)
        elif group is not None and _forget_pending(step, group, identity.member_id):
            error = ErrorCode.NONE
        responses.append(LeaveGroupMemberResponse(identity.member_id, None, error))
    step.effects.reply(request_id, LeaveGroupResponse(error=ErrorCode.NONE, members=tuple(responses)))
    if group is not None and left:
        rounds.start_or_continue(step, compute, group, f"{', '.join(left)} left")
    elif group is not None:
        rounds.complete_if_all_joined(step, compute, group)
