"""OffsetCommit v0-v9 (PROTOCOL 7.1, 7.2, 5.2). Left out: transactions."""

from dataclasses import dataclass

from coordinator_core.coordinator.classic import rebalance
from coordinator_core.coordinator.classic.group import Group
from coordinator_core.coordinator.classic.states import GroupState
from coordinator_core.coordinator.records import OffsetRecord, StoredOffset
from coordinator_core.coordinator.shard import Step
from coordinator_core.protocol.error_codes import ErrorCode
from coordinator_core.protocol.messages import (
    NO_MEMBER,
    OffsetCommitRequest,
    OffsetCommitResponse,
    OffsetToCommit,
    PartitionError,
)


def refused(request: OffsetCommitRequest, error: ErrorCode) -> OffsetCommitResponse:
    """The same error for every partition."""
    return OffsetCommitResponse(
        partitions=tuple(PartitionError(o.topic, o.partition, error) for o in request.offsets)
    )


def handle(step: Step, request_id: int, request: OffsetCommitRequest) -> None:
    """Write the offsets, and answer when they are written."""
    if not request.group_id:
        step.effects.reply(request_id, refused(request, ErrorCode.INVALID_GROUP_ID))
        return
    group = step.shard.groups.get(request.group_id)
    if group is None and request.generation_id < 0:
        group = step.shard.groups[request.group_id] = Group(request.group_id)
        group.emptied_at_ms = step.now_ms
        rebalance.arm_retention(step, group)
    error = _check(group, request)
    if group is None or error is not ErrorCode.NONE:
        step.effects.reply(request_id, refused(request, error))
        return
    if request.member_id in group.members:
        step.restart_session(group, request.member_id)
    limit = step.config.offset_metadata_max_bytes
    fits = [o for o in request.offsets if len(o.metadata.encode()) <= limit]
    records = tuple(_record(request.group_id, o, step.now_ms) for o in fits)
    write = CommitOffsets(request_id, request, limit)
    if records:
        step.append(records, write)
    else:
        write.completed(step, ErrorCode.NONE)


def _record(group_id: str, offset: OffsetToCommit, now_ms: int) -> OffsetRecord:
    stored = StoredOffset(offset.offset, offset.leader_epoch, offset.metadata, now_ms)
    return OffsetRecord(group_id, offset.topic, offset.partition, stored)


def _check(group: Group | None, request: OffsetCommitRequest) -> ErrorCode:
    """C-33 to C-36."""
    if group is None:
        return ErrorCode.ILLEGAL_GENERATION
    if group.state is GroupState.DEAD:
        return ErrorCode.COORDINATOR_NOT_AVAILABLE
    if request.generation_id < 0 and group.state is GroupState.EMPTY:
        return ErrorCode.NONE
    managed = request.generation_id >= 0 or request.member_id != NO_MEMBER
    if not managed and request.group_instance_id is None:
        return ErrorCode.UNKNOWN_MEMBER_ID
    error = group.check_member(request.member_id, request.group_instance_id, request.generation_id)
    if error is ErrorCode.NONE and group.state is GroupState.COMPLETING_REBALANCE:
        return ErrorCode.REBALANCE_IN_PROGRESS
    return error


@dataclass(frozen=True, slots=True)
class CommitOffsets:
    """Offsets under way to the log."""

    request_id: int
    request: OffsetCommitRequest
    limit: int

    def completed(self, step: Step, error: ErrorCode) -> None:
        """Answer for each partition: too large, or how the write went."""
        answers = []
        for o in self.request.offsets:
            fits = len(o.metadata.encode()) <= self.limit
            answer = error if fits else ErrorCode.OFFSET_METADATA_TOO_LARGE
            answers.append(PartitionError(o.topic, o.partition, answer))
        step.effects.reply(self.request_id, OffsetCommitResponse(partitions=tuple(answers)))

    def abandoned(self, step: Step) -> None:
        """Whether it was written is for the new coordinator to know."""
        step.effects.reply(self.request_id, refused(self.request, ErrorCode.NOT_COORDINATOR))
