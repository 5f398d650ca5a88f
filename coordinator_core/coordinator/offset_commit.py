"""OffsetCommit, versions 2-9 (PROTOCOL 7.1, 7.2, 5.2). Not implemented: retention, transactions."""

import msgspec

from coordinator_core.coordinator.records import CommittedOffsets
from coordinator_core.coordinator.shard import Step
from coordinator_core.coordinator.simple_group import SimpleGroup
from coordinator_core.protocol.error_codes import NONE, ErrorCode
from coordinator_core.protocol.messages import (
    OffsetCommitRequest,
    OffsetCommitResponse,
    OffsetToCommit,
    PartitionError,
)

WITH_EPOCHS = 9
"""The version from which on a request can name a member epoch (KIP-848)."""

_LARGE = ErrorCode.OFFSET_METADATA_TOO_LARGE


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
    write = CommitOffsets(request_id, request)
    limit = step.config.offset_metadata_max_bytes
    offsets = tuple([o for o in request.offsets if not o.metadata or _fits(o, limit)])
    if offsets:
        step.append(CommittedOffsets(request.group_id, offsets, step.now_ms), write)
    else:
        write.completed(step, ErrorCode.NONE)


def _accept(step: Step, request: OffsetCommitRequest) -> ErrorCode:
    """Check the request; a commit without a generation creates the group (C-33)."""
    group = step.shard.groups.get(request.group_id)
    if group is not None:
        return group.accept_commit(step, request)
    if request.generation_id >= 0:
        is_new = request.version >= WITH_EPOCHS
        return ErrorCode.GROUP_ID_NOT_FOUND if is_new else ErrorCode.ILLEGAL_GENERATION
    simple = step.shard.groups[request.group_id] = SimpleGroup(request.group_id)
    step.schedule_retention(simple)
    return NONE


def _fits(offset: OffsetToCommit, limit: int) -> bool:
    return len(offset.metadata.encode()) <= limit


class CommitOffsets(msgspec.Struct, frozen=True):
    """Offsets under way to the log."""

    request_id: int
    request: OffsetCommitRequest

    def completed(self, step: Step, error: ErrorCode) -> None:
        """Answer with the result, or for a partition with too much metadata with that error."""
        limit = step.config.offset_metadata_max_bytes
        errors = [
            PartitionError(o.topic, o.partition, error if not o.metadata or _fits(o, limit) else _LARGE)
            for o in self.request.offsets
        ]
        step.effects.reply(self.request_id, OffsetCommitResponse(partitions=tuple(errors)))
