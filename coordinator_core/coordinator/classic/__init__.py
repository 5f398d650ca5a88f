"""The coordinator's part of the classic group protocol.

Where Kafka leaves a choice to a hash map over member ids, which are random, this coordinator has a rule:

- equal deadlines fire in the order of `round_group.TimerKind`, then by group id, then by member id;
- "the first member", who becomes the leader when the leader has left or did not rejoin, is the member that
  has been in the group longest; a static member that comes back keeps its place (C-16, C-18).
"""

from coordinator_core.coordinator.classic import expiry, heartbeat, join_group, leave_group, sync_group
from coordinator_core.coordinator.classic.group import FAMILY, ClassicGroup, restored
from coordinator_core.coordinator.parts import CoordinatorPart, Row
from coordinator_core.coordinator.records import StoredGroup
from coordinator_core.coordinator.round_group import TimerKind
from coordinator_core.coordinator.shard import Step
from coordinator_core.protocol import messages as m
from coordinator_core.protocol.error_codes import ErrorCode


def _restore(step: Step, group_id: str, stored: StoredGroup, handed_out: int) -> ClassicGroup:
    """Restore a group and restart the sessions of its members (PROTOCOL 1.3).

    A group above group.max.size starts a round at the next deadline, which is now (C-08).
    """
    group = restored(group_id, stored, handed_out)
    for member_id in group.members:
        group.restart_session(step, member_id)
    if len(group.members) > step.config.max_size:
        step.schedule(TimerKind.CAPACITY, group, 0)
    step.schedule_retention(group)
    return group


PART = CoordinatorPart(
    name=FAMILY,
    requests={
        m.JoinGroupRequest: Row(join_group.handle, join_group.refused, joins=lambda _: True),
        m.SyncGroupRequest: Row(
            sync_group.handle,
            lambda _, error: m.SyncGroupResponse(error=error),
            while_loading=ErrorCode.REBALANCE_IN_PROGRESS,
            foreign_group=ErrorCode.UNKNOWN_MEMBER_ID,
        ),
        m.HeartbeatRequest: Row(
            heartbeat.handle,
            lambda _, error: m.HeartbeatResponse(error=error),
            while_loading=ErrorCode.NONE,
            foreign_group=ErrorCode.UNKNOWN_MEMBER_ID,
        ),
        m.LeaveGroupRequest: Row(
            leave_group.handle, leave_group.refused, foreign_group=ErrorCode.UNKNOWN_MEMBER_ID
        ),
    },
    restore=_restore,
    on_timer=expiry.on_timer,
)
