"""LeaveGroup, versions 0-5: one member or many (PROTOCOL 5.4; KIP-345, 800)."""

from coordinator_core.coordinator.classic import rebalance
from coordinator_core.coordinator.classic.group import ClassicGroup
from coordinator_core.coordinator.classic.states import GroupState
from coordinator_core.coordinator.shard import Step
from coordinator_core.protocol.error_codes import ErrorCode
from coordinator_core.protocol.messages import (
    LeaveGroupMemberResponse,
    LeaveGroupRequest,
    LeaveGroupResponse,
    MemberIdentity,
)


def handle(step: Step, request_id: int, request: LeaveGroupRequest) -> None:
    """Remove the members. Each gets its own error code; the whole batch starts at most one round."""
    group = step.find(request.group_id, ClassicGroup)
    if group is not None and group.state is GroupState.DEAD:
        step.effects.reply(request_id, LeaveGroupResponse(error=ErrorCode.COORDINATOR_NOT_AVAILABLE))
        return
    responses = []
    left = []
    for identity in request.members:
        error = ErrorCode.UNKNOWN_MEMBER_ID if group is None else _leave(step, group, identity)
        if not error:
            left.append(identity.member_id or f"instance {identity.group_instance_id}")
        responses.append(LeaveGroupMemberResponse(identity.member_id, identity.group_instance_id, error))
    step.effects.reply(request_id, LeaveGroupResponse(error=ErrorCode.NONE, members=tuple(responses)))
    if group is None or not left:
        return
    if group.state in (GroupState.STABLE, GroupState.COMPLETING_REBALANCE):
        rebalance.start(step, group, f"{', '.join(left)} left")
    else:
        rebalance.complete_if_all_joined(step, group)


def refused(request: LeaveGroupRequest, error: ErrorCode) -> LeaveGroupResponse:
    """Return an error, UNKNOWN_MEMBER_ID for each member."""
    if error is not ErrorCode.UNKNOWN_MEMBER_ID:
        return LeaveGroupResponse(error=error)
    members = (LeaveGroupMemberResponse(m.member_id, m.group_instance_id, error) for m in request.members)
    return LeaveGroupResponse(error=ErrorCode.NONE, members=tuple(members))


def _leave(step: Step, group: ClassicGroup, identity: MemberIdentity) -> ErrorCode:
    member_id = identity.member_id
    if not member_id and identity.group_instance_id is not None:
        member_id = group.static_members.get(identity.group_instance_id, "")
    elif group.take_back_id(step, member_id):
        return ErrorCode.NONE
    error = group.check_identity(member_id, identity.group_instance_id)
    if not error:
        group.drop(step, group.members[member_id], identity.reason or "left")
    return error
