"""OffsetCommit 2-9 and TxnOffsetCommit 0-4 (PROTOCOL 7.1, 7.2, 5.2, KIP-98, KIP-447).

Offsets in a transaction are kept apart until `end_transaction`. The transaction coordinator checks whether
the producer has a transaction with the group. Not implemented: retention.
"""

import msgspec

from coordinator_core.coordinator.expiry import Unattended
from coordinator_core.coordinator.records import (
    CommittedOffsets,
    OffsetRecord,
    PendingOffsets,
    PendingRecord,
    Record,
    StoredOffset,
)
from coordinator_core.coordinator.shard import Step
from coordinator_core.coordinator.simple_group import SimpleGroup
from coordinator_core.protocol.error_codes import NONE, ErrorCode
from coordinator_core.protocol.messages import (
    OffsetCommitRequest,
    OffsetCommitResponse,
    OffsetToCommit,
    PartitionError,
    TxnOffsetCommitRequest,
    TxnOffsetCommitResponse,
)

WITH_EPOCHS = 9
"""The version from which on a request can name a member epoch (KIP-848)."""

_LARGE = ErrorCode.OFFSET_METADATA_TOO_LARGE


_NO_PENDING = PendingOffsets(0)


def refused(request: OffsetCommitRequest, error: ErrorCode) -> OffsetCommitResponse:
    """Return the same error for every partition."""
    return OffsetCommitResponse(partitions=_errors(request.offsets, error))


def refused_in_transaction(request: TxnOffsetCommitRequest, error: ErrorCode) -> TxnOffsetCommitResponse:
    """Return the same error for every partition."""
    return TxnOffsetCommitResponse(partitions=_errors(request.offsets, error))


def _errors(offsets: tuple[OffsetToCommit, ...], error: ErrorCode) -> tuple[PartitionError, ...]:
    return tuple(PartitionError(o.topic, o.partition, error) for o in offsets)


def handle(step: Step, request_id: int, request: OffsetCommitRequest) -> None:
    """Write the offsets, and answer when they are written."""
    error = _accept(step, request)
    if error:
        step.effects.reply(request_id, refused(request, error))
        return
    write = CommitOffsets(request_id, request)
    offsets = _fitting(step, request.offsets)
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
    _create(step, request.group_id)
    return NONE


def _create(step: Step, group_id: str) -> None:
    simple = step.shard.groups[group_id] = SimpleGroup(group_id)
    step.schedule_retention(simple)


def handle_in_transaction(step: Step, request_id: int, request: TxnOffsetCommitRequest) -> None:
    """Write the offsets of a transaction, and answer when they are written."""
    pending = step.shard.table.pending.get(request.group_id, {}).get(request.producer_id, _NO_PENDING)
    error = _accept_in_transaction(step, request, pending)
    if error:
        step.effects.reply(request_id, refused_in_transaction(request, error))
        return
    producer = request.group_id, request.producer_id
    records: list[PendingRecord] = []
    if request.producer_epoch > pending.epoch:
        records += [PendingRecord(*producer, pending.epoch, *place, None) for place in pending.offsets]
    for o in _fitting(step, request.offsets):
        value = StoredOffset(o.offset, o.leader_epoch, o.metadata, step.now_ms)
        records.append(PendingRecord(*producer, request.producer_epoch, o.topic, o.partition, value))
    write = CommitOffsets(request_id, request)
    if records:
        step.append(tuple(records), write)
    else:
        write.completed(step, ErrorCode.NONE)


def _accept_in_transaction(step: Step, request: TxnOffsetCommitRequest, pending: PendingOffsets) -> ErrorCode:
    """Check the request. Only a member that it names is checked, as older versions name none."""
    if request.producer_epoch < pending.epoch:
        return ErrorCode.INVALID_PRODUCER_EPOCH
    group = step.shard.groups.get(request.group_id)
    names_a_member = request.member_id or request.group_instance_id is not None
    if group is None:
        if request.generation_id >= 0:
            return ErrorCode.ILLEGAL_GENERATION
        _create(step, request.group_id)
    elif request.generation_id >= 0 or (names_a_member and not group.is_empty):
        return group.accept_in_transaction(request)
    return NONE


def end_transaction(step: Step, group_id: str, producer_id: int, *, committed: bool) -> None:
    """Commit the offsets of a group in the transaction of a producer, or drop them.

    An offset that was committed after that of the transaction stays.
    """
    table = step.shard.table
    pending = table.pending.get(group_id, {}).get(producer_id, _NO_PENDING)
    present = table.offsets.get(group_id, {})
    records: list[Record] = []
    for place, value in pending.offsets.items():
        other = present.get(place)
        if committed and (other is None or other.committed_at_ms <= value.committed_at_ms):
            records.append(OffsetRecord(group_id, *place, value))
        records.append(PendingRecord(group_id, producer_id, pending.epoch, *place, None))
    if records:
        step.append(tuple(records), Unattended())


def _fitting(step: Step, offsets: tuple[OffsetToCommit, ...]) -> tuple[OffsetToCommit, ...]:
    limit = step.config.offset_metadata_max_bytes
    return tuple([o for o in offsets if not o.metadata or _fits(o, limit)])


def _fits(offset: OffsetToCommit, limit: int) -> bool:
    return len(offset.metadata.encode()) <= limit


class CommitOffsets(msgspec.Struct, frozen=True):
    """Offsets under way to the log."""

    request_id: int
    request: OffsetCommitRequest | TxnOffsetCommitRequest

    def completed(self, step: Step, error: ErrorCode) -> None:
        """Answer with the result, or for a partition with too much metadata with that error."""
        limit = step.config.offset_metadata_max_bytes
        errors = [
            PartitionError(o.topic, o.partition, error if not o.metadata or _fits(o, limit) else _LARGE)
            for o in self.request.offsets
        ]
        is_plain = isinstance(self.request, OffsetCommitRequest)
        response = OffsetCommitResponse if is_plain else TxnOffsetCommitResponse
        step.effects.reply(self.request_id, response(partitions=tuple(errors)))
