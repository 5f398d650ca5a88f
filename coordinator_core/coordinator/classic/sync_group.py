"""SyncGroup, versions 0-5 (PROTOCOL 4; KIP-345, 559)."""

import msgspec

from coordinator_core.coordinator.classic import rebalance
from coordinator_core.coordinator.classic.group import ClassicGroup, TimerKind, find
from coordinator_core.coordinator.classic.states import GroupState
from coordinator_core.coordinator.records import GroupRecord
from coordinator_core.coordinator.shard import Step
from coordinator_core.protocol.error_codes import ErrorCode
from coordinator_core.protocol.messages import SyncGroupRequest, SyncGroupResponse

_STABLE = GroupState.STABLE


def handle(step: Step, request_id: int, request: SyncGroupRequest) -> None:
    """Park the request until the leader's assignment is stored, or answer it."""
    group = find(step, request.group_id)
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
    if group.state is _STABLE:
        group.restart_session(step, request.member_id)
        rebalance.answer_sync(step, group, member)
    elif request.member_id == group.leader:
        _store(step, group, request)


def _store(step: Step, group: ClassicGroup, request: SyncGroupRequest) -> None:
    """Write the leader's assignment. Unknown ids are ignored; members without an entry get an empty one."""
    assignments = {a.member_id: a.assignment for a in request.assignments}
    stored = group.stored(assignments, step.now_ms)
    write = StoreAssignment(group.group_id, group.generation)
    step.append((GroupRecord(group.group_id, stored),), write)


class StoreAssignment(msgspec.Struct, frozen=True):
    """The append of the leader's assignment. Syncs are answered when it is stored (PROTOCOL 4.2)."""

    group_id: str
    generation: int

    def completed(self, step: Step, error: ErrorCode) -> None:
        """Answer the Syncs with the assignment, or start a round if the append failed.

        The result is ignored if the group has another generation meanwhile (C-26).
        """
        group = find(step, self.group_id)
        if group is None or group.generation != self.generation:
            return
        if group.state is not GroupState.COMPLETING_REBALANCE:
            return
        if error:
            rebalance.reset_assignments(step, group, error)
            rebalance.start(step, group, f"the assignment could not be stored ({error.name})")
            return
        stored = step.shard.table.groups[self.group_id]
        for stored_member in stored.members:
            member = group.members.get(stored_member.member_id)
            if member is not None:
                member.assignment = stored_member.assignment
        rebalance.move(step, group, GroupState.STABLE, "the leader's assignment is stored")
        for member in group.members.values():
            if member.syncing is not None:
                group.restart_session(step, member.member_id)
                rebalance.answer_sync(step, group, member)
