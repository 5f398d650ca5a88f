"""OffsetCommit, versions 2-9 (PROTOCOL 7.1, 7.2, 5.2). Not implemented: retention, transactions."""

from dataclasses import dataclass

from coordinator_core.coordinator.records import OffsetRecord, StoredOffset
from coordinator_core.coordinator.shard import Step
from coordinator_core.coordinator.simple_group import SimpleGroup
from coordinator_core.protocol.error_codes import ErrorCode
from coordinator_core.protocol.messages import (
    OffsetCommitRequest,
    OffsetCommitResponse,
    OffsetToCommit,
    PartitionError,
)


def refused(request: OffsetCommitRequest, error: ErrorCode) -> OffsetCommitResponse:
    """Return the same error for every partition."""
    return OffsetCommitResponse(
        partitions=tuple(PartitionError(o.topic, o.partition, error) for o in request.offsets)
    )


def handle(step: Step, request_id: int, request: OffsetCommitRequest) -> None:
    """Write the offsets, and answer when they are written."""
    error = _accept(step, request)
    if error:
        step.effects.reply(request_id, refused(request, error))
        return
    limit = step.config.offset_metadata_max_bytes
    fits = [o for o in request.offsets if _fits(o, limit)]
    records = tuple([_record(request.group_id, o, step.now_ms) for o in fits])
    write = CommitOffsets(request_id, request, limit)
    if records:
        step.append(records, write)
    else:
        write.completed(step, ErrorCode.NONE)


def _accept(step: Step, request: OffsetCommitRequest) -> ErrorCode:
    """Check the request; a commit without a generation creates the group (C-33)."""
    group = step.shard.groups.get(request.group_id)
    if group is not None:
        return group.accept_commit(step, request)
    if request.generation_id >= 0:
        return ErrorCode.ILLEGAL_GENERATION
    simple = step.shard.groups[request.group_id] = SimpleGroup(request.group_id)
    step.schedule_retention(simple)
    return ErrorCode.NONE


def _fits(offset: OffsetToCommit, limit: int) -> bool:
    return not offset.metadata or len(offset.metadata.encode()) <= limit


def _record(group_id: str, offset: OffsetToCommit, now_ms: int) -> OffsetRecord:
    stored = StoredOffset(offset.offset, offset.leader_epoch, offset.metadata, now_ms)
    return OffsetRecord(group_id, offset.topic, offset.partition, stored)


@dataclass(frozen=True, slots=True)
class CommitOffsets:
    """Offsets under way to the log."""

    request_id: int
    request: OffsetCommitRequest
    limit: int

    def completed(self, step: Step, error: ErrorCode) -> None:
        """Answer with the result, or for a partition with too much metadata with that error."""
        errors = []
        for o in self.request.offsets:
            result = error if _fits(o, self.limit) else ErrorCode.OFFSET_METADATA_TOO_LARGE
            errors.append(PartitionError(o.topic, o.partition, result))
        step.effects.reply(self.request_id, OffsetCommitResponse(partitions=tuple(errors)))
