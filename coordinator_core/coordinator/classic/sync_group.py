"""SyncGroup, versions 0-5 (PROTOCOL 4; KIP-345, 559)."""

from functools import partial

from coordinator_core.coordinator.classic import rebalance
from coordinator_core.coordinator.classic.group import ClassicGroup
from coordinator_core.coordinator.classic.states import GroupState
from coordinator_core.coordinator.round_group import TimerKind
from coordinator_core.coordinator.shard import Step
from coordinator_core.protocol.error_codes import ErrorCode
from coordinator_core.protocol.messages import SyncGroupRequest, SyncGroupResponse


def handle(step: Step, request_id: int, request: SyncGroupRequest) -> None:
    """Park the request until the leader's assignment is stored, or answer it."""
    group = step.find(request.group_id, ClassicGroup)
    error = ErrorCode.UNKNOWN_MEMBER_ID if group is None else group.check(request)
    if group is None or error:
        step.effects.reply(request_id, SyncGroupResponse(error=error))
        return
    member = group.members[request.member_id]
    step.effects.supersede(member.syncing)
    member.syncing = request_id
    group.pending_sync.pop(request.member_id, None)
    if not group.pending_sync:
        step.cancel(TimerKind.SYNC, group)
    if group.state is GroupState.STABLE:
        rebalance.answer_sync(step, group, member)
    elif request.member_id == group.leader:
        # Unknown ids are ignored; members without an entry get an empty assignment.
        assignments = {a.member_id: a.assignment for a in request.assignments}
        group.store(step, assignments, partial(_stored, group.group_id, group.generation))


def _stored(group_id: str, generation: int, step: Step, error: ErrorCode) -> None:
    """Answer the syncs with the stored assignment, or start a round if the append failed (PROTOCOL 4.2).

    The result is ignored if the group has another generation meanwhile (C-26).
    """
    group = step.find(group_id, ClassicGroup)
    if group is None or group.generation != generation or group.state is not GroupState.COMPLETING_REBALANCE:
        return
    if error:
        rebalance.reset_assignments(step, group, error)
        rebalance.start(step, group, f"the assignment could not be stored ({error.name})")
        return
    for entry in step.shard.table.groups[group_id].members:
        if entry.member_id in group.members:
            group.members[entry.member_id].assignment = entry.assignment
    group.move(step, GroupState.STABLE, "the leader's assignment is stored")
    for member in group.members.values():
        if member.syncing is not None:
            group.restart_session(step, member.member_id)
            rebalance.answer_sync(step, group, member)
