"""Heartbeat, versions 0-4 (PROTOCOL 5.1)."""

from coordinator_core.coordinator.classic.group import ClassicGroup
from coordinator_core.coordinator.shard import Step
from coordinator_core.protocol.error_codes import NONE, ErrorCode
from coordinator_core.protocol.messages import HeartbeatRequest, HeartbeatResponse

_RESPONSES = {error: HeartbeatResponse(error=error) for error in ErrorCode}
_ALIVE = (NONE, ErrorCode.REBALANCE_IN_PROGRESS)


def handle(step: Step, request_id: int, request: HeartbeatRequest) -> None:
    """Answer, and restart the session of a member in good standing."""
    group = step.find(request.group_id, ClassicGroup)
    error = ErrorCode.UNKNOWN_MEMBER_ID if group is None else group.check(request)
    if group is not None and error in _ALIVE:
        group.restart_session(step, request.member_id)
    step.effects.reply(request_id, _RESPONSES[error])
