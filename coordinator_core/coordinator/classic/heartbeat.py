"""Heartbeat v0-v4 (PROTOCOL 5.1)."""

from coordinator_core.coordinator.classic.group import Group
from coordinator_core.coordinator.classic.states import GroupState
from coordinator_core.coordinator.shard import Step
from coordinator_core.protocol.error_codes import ErrorCode
from coordinator_core.protocol.messages import HeartbeatRequest, HeartbeatResponse

_ANSWERS = {error: HeartbeatResponse(error=error) for error in ErrorCode}


def handle(step: Step, request_id: int, request: HeartbeatRequest) -> None:
    """Answer, and start the session anew where the member is in good standing."""
    group = step.shard.groups.get(request.group_id)
    error = _check(group, request)
    if group is not None and error in (ErrorCode.NONE, ErrorCode.REBALANCE_IN_PROGRESS):
        step.restart_session(group, request.member_id)
    step.effects.reply(request_id, _ANSWERS[error])


def _check(group: Group | None, request: HeartbeatRequest) -> ErrorCode:
    if group is None or group.state is GroupState.EMPTY:
        return ErrorCode.UNKNOWN_MEMBER_ID
    if group.state is GroupState.DEAD:
        return ErrorCode.COORDINATOR_NOT_AVAILABLE
    error = group.check_member(request.member_id, request.group_instance_id, request.generation_id)
    if error is ErrorCode.NONE and group.state is GroupState.PREPARING_REBALANCE:
        return ErrorCode.REBALANCE_IN_PROGRESS
    return error
