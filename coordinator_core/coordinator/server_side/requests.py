"""The requests to a group whose coordinator computes the assignments."""

from coordinator_core.coordinator.round_group import TimerKind, has_valid_session
from coordinator_core.coordinator.server_side import rounds
from coordinator_core.coordinator.server_side.group import Compute, Member, ServerSideGroup, State
from coordinator_core.coordinator.shard import Step
from coordinator_core.protocol import messages as m
from coordinator_core.protocol.error_codes import NONE, ErrorCode
from coordinator_core.protocol.server_side import JoinRequest, JoinResponse


def join_refused(request: JoinRequest, error: ErrorCode) -> JoinResponse:
    """Return an error."""
    return JoinResponse(error=error, member_id=request.member_id)


def join(compute: Compute, step: Step, request_id: int, request: JoinRequest) -> None:
    """Park the join until the assignment is stored, or answer it."""
    group, member_id = step.find(request.group_id, ServerSideGroup), request.member_id
    if not has_valid_session(step, request.session_timeout_ms):
        step.effects.reply(request_id, join_refused(request, ErrorCode.INVALID_SESSION_TIMEOUT))
    elif group is not None and not group.has_room(member_id, step.config.max_size):
        group.turn_away(step, request_id, member_id)
        rounds.complete_if_all_joined(step, group)
    elif member_id == m.NO_MEMBER:
        group = group or step.found(ServerSideGroup(request.group_id, compute))
        group.hand_out_id(step, request_id, request.session_timeout_ms)
    elif group is not None and group.take_back_id(step, member_id):
        _add(step, group, request_id, request)
    elif group is not None and member_id in group.members:
        _rejoin(step, group, request_id, request)
    else:
        step.effects.reply(request_id, join_refused(request, ErrorCode.UNKNOWN_MEMBER_ID))


def _add(step: Step, group: ServerSideGroup, request_id: int, request: JoinRequest) -> None:
    member_id, client = request.member_id, (step.client_id, step.client_host)
    timeouts = request.session_timeout_ms, request.rebalance_timeout_ms
    group.add(Member(member_id, None, *client, *timeouts, topics=request.topics))
    group.joins[member_id] = request_id
    step.effects.report_added(group.group_id, member_id)
    rounds.start_or_continue(step, group, f"{member_id} joined")


def _rejoin(step: Step, group: ServerSideGroup, request_id: int, request: JoinRequest) -> None:
    """Park the join of a member. One that changes nothing in a Stable group gets the stored assignment."""
    member = group.members[request.member_id]
    step.effects.supersede(group.joins.get(member.member_id))
    step.cancel(TimerKind.SESSION, group, member.member_id)
    group.joins[member.member_id] = request_id
    changed = member.topics != request.topics
    member.topics = request.topics
    member.session_timeout_ms = request.session_timeout_ms
    member.rebalance_timeout_ms = request.rebalance_timeout_ms
    if changed:
        rounds.start_or_continue(step, group, f"{member.member_id} changed its topics")
    elif group.state is State.STABLE:
        rounds.answer(step, group, member, NONE)
    else:
        rounds.complete_if_all_joined(step, group)


def heartbeat(step: Step, request_id: int, request: m.HeartbeatRequest) -> None:
    """Answer, and restart the session of a member. ILLEGAL_GENERATION announces a round."""
    group = step.find(request.group_id, ServerSideGroup)
    error = ErrorCode.UNKNOWN_MEMBER_ID
    if group is not None and request.member_id in group.members:
        group.restart_session(step, request.member_id)
        is_stable = group.state is State.STABLE
        error = group.check(request) if is_stable else ErrorCode.ILLEGAL_GENERATION
    step.effects.reply(request_id, m.HeartbeatResponse(error=error))


def leave(step: Step, request_id: int, request: m.LeaveGroupRequest) -> None:
    """Remove the members. Each gets its own error code; all of them start at most one round."""
    group = step.find(request.group_id, ServerSideGroup)
    responses, left = [], []
    for identity in request.members:
        member_id, error = identity.member_id, ErrorCode.UNKNOWN_MEMBER_ID
        if group is not None and member_id in group.members:
            error = NONE
            group.drop(step, group.members[member_id], identity.reason or "left")
            left.append(member_id)
        elif group is not None and group.take_back_id(step, member_id):
            error = NONE
        responses.append(m.LeaveGroupMemberResponse(member_id, None, error))
    step.effects.reply(request_id, m.LeaveGroupResponse(error=NONE, members=tuple(responses)))
    if group is not None and left:
        rounds.start_or_continue(step, group, f"{', '.join(left)} left")
    elif group is not None:
        rounds.complete_if_all_joined(step, group)
