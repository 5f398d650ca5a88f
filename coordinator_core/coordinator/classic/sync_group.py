"""SyncGroup v0-v5 (PROTOCOL 4; KIP-559)."""

from dataclasses import dataclass

from coordinator_core.coordinator.classic import rebalance
from coordinator_core.coordinator.classic.group import Group
from coordinator_core.coordinator.classic.states import GroupState
from coordinator_core.coordinator.records import GroupRecord
from coordinator_core.coordinator.shard import Step
from coordinator_core.coordinator.timers import TimerKind
from coordinator_core.protocol.error_codes import ErrorCode
from coordinator_core.protocol.messages import SyncGroupRequest, SyncGroupResponse


def handle(step: Step, request_id: int, request: SyncGroupRequest) -> None:
    """Park the request until the leader's assignment is stored, or answer it."""
    group = step.shard.groups.get(request.group_id)
    error = _check(group, request)
    if group is None or error is not ErrorCode.NONE:
        step.effects.reply(request_id, SyncGroupResponse(error=error))
        return
    member = group.members[request.member_id]
    member.syncing = request_id
    group.pending_sync.pop(request.member_id, None)
    if not group.pending_sync:
        step.cancel(TimerKind.SYNC, group)
    if group.state is GroupState.STABLE:
        step.restart_session(group, request.member_id)
        rebalance.answer_sync(step, group, member)
    elif request.member_id == group.leader:
        _store(step, group, request)


def _check(group: Group | None, request: SyncGroupRequest) -> ErrorCode:
    """The checks of PROTOCOL 4.1, in their order."""
    if group is None:
        return ErrorCode.UNKNOWN_MEMBER_ID
    if group.state is GroupState.DEAD:
        return ErrorCode.COORDINATOR_NOT_AVAILABLE
    error = group.check_member(request.member_id, request.group_instance_id, request.generation_id)
    if error is not ErrorCode.NONE:
        return error
    type_differs = request.protocol_type not in (None, group.protocol_type)
    if type_differs or request.protocol_name not in (None, group.protocol_name):
        return ErrorCode.INCONSISTENT_GROUP_PROTOCOL
    if group.state is GroupState.PREPARING_REBALANCE:
        return ErrorCode.REBALANCE_IN_PROGRESS
    return ErrorCode.NONE


def _store(step: Step, group: Group, request: SyncGroupRequest) -> None:
    """Write the leader's assignment; ids nobody knows are ignored, members left out get an empty one."""
    assignments = {a.member_id: a.assignment for a in request.assignments}
    stored = group.stored(assignments, step.now_ms)
    write = StoreAssignment(group.group_id, group.generation)
    step.append((GroupRecord(group.group_id, stored),), write)


@dataclass(frozen=True, slots=True)
class StoreAssignment:
    """The leader's assignment is stored before anybody is told (PROTOCOL 4.2)."""

    group_id: str
    generation: int

    def completed(self, step: Step, error: ErrorCode) -> None:
        """Hand out the assignment, or start anew; ignored if the generation moved on meanwhile (C-26)."""
        group = step.shard.groups.get(self.group_id)
        if group is None or group.generation != self.generation:
            return
        if group.state is not GroupState.COMPLETING_REBALANCE:
            return
        if error is not ErrorCode.NONE:
            rebalance.reset_assignments(step, group, error)
            rebalance.start(step, group, f"the assignment could not be stored ({error.name})")
            return
        stored = step.shard.table.groups[self.group_id]
        for stored_member in stored.members:
            member = group.members.get(stored_member.member_id)
            if member is not None:
                member.assignment = stored_member.assignment
        step.move(group, GroupState.STABLE, "the leader's assignment is stored")
        for member in group.members.values():
            if member.syncing is not None:
                step.restart_session(group, member.member_id)
                rebalance.answer_sync(step, group, member)

    def abandoned(self, step: Step) -> None:
        """The parked syncs are answered with the group's others."""
