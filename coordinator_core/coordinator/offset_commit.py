"""OffsetCommit 2-10 and TxnOffsetCommit 0-6 (PROTOCOL 7.1, 7.2, 5.2, KIP-98, KIP-447).

Offsets in a transaction are kept apart until `end_transaction`. The transaction coordinator checks whether
the producer has a transaction with the group.
"""

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, TypeAlias

from coordinator_core.coordinator.expiry import unattended
from coordinator_core.coordinator.records import (
    CommittedOffsets,
    OffsetRecord,
    PendingOffsets,
    PendingRecord,
    Record,
    Records,
    StoredOffset,
)
from coordinator_core.coordinator.shard import Group, Step
from coordinator_core.java import java_key
from coordinator_core.protocol import messages as m
from coordinator_core.protocol.error_codes import NONE, ErrorCode

WITH_EPOCHS = 9
"""The version from which on a request can name a member epoch (KIP-848)."""

WITH_EPOCHS_IN_TRANSACTIONS = 6
"""The same of TxnOffsetCommit (KIP-1319)."""

Commit: TypeAlias = m.OffsetCommitRequest | m.TxnOffsetCommitRequest
_RESPONSES: Mapping[type[Any], Callable[..., m.Response]] = {
    m.OffsetCommitRequest: m.OffsetCommitResponse,
    m.TxnOffsetCommitRequest: m.TxnOffsetCommitResponse,
}
_NO_PENDING = PendingOffsets(0)
_LARGE = ErrorCode.OFFSET_METADATA_TOO_LARGE


def refused(request: Commit, error: ErrorCode) -> m.Response:
    """Return the same error for every partition."""
    errors = [m.PartitionError(o.topic, o.partition, error) for o in request.offsets]
    return _RESPONSES[type(request)](partitions=tuple(errors))


def handle(step: Step, request_id: int, request: m.OffsetCommitRequest) -> None:
    """Write the offsets, and answer when they are written."""
    error = _accept(step, request)
    if error:
        step.effects.reply(request_id, refused(request, error))
    else:
        retention_ms, default = request.retention_time_ms, m.DEFAULT_RETENTION
        expires_at_ms = None if retention_ms == default else step.now_ms + retention_ms
        records = CommittedOffsets(request.group_id, _fitting(step, request), step.now_ms, expires_at_ms)
        _write(step, request_id, request, records)


def _accept(step: Step, request: m.OffsetCommitRequest) -> ErrorCode:
    """Check the request; a commit without a generation creates the group (C-33)."""
    group = step.shard.groups.get(request.group_id)
    if group is not None:
        return group.accept_commit(step, request)
    if request.generation_id >= 0:
        is_new = request.version >= WITH_EPOCHS
        return ErrorCode.GROUP_ID_NOT_FOUND if is_new else ErrorCode.ILLEGAL_GENERATION
    step.found(Group(request.group_id))
    return NONE


def handle_in_transaction(step: Step, request_id: int, request: m.TxnOffsetCommitRequest) -> None:
    """Write the offsets of a transaction, and answer when they are written."""
    pending = step.shard.table.pending.get(request.group_id, {}).get(request.producer_id, _NO_PENDING)
    error = _accept_in_transaction(step, request, pending)
    if error:
        step.effects.reply(request_id, refused(request, error))
        return
    producer = request.group_id, request.producer_id
    records: list[Record] = []
    if request.producer_epoch > pending.epoch:
        records += [PendingRecord(*producer, pending.epoch, *place, None) for place in pending.offsets]
    for o in _fitting(step, request):
        value = StoredOffset(o.offset, o.leader_epoch, o.metadata, step.now_ms)
        records.append(PendingRecord(*producer, request.producer_epoch, o.topic, o.partition, value))
    _write(step, request_id, request, tuple(records))


def _accept_in_transaction(
    step: Step, request: m.TxnOffsetCommitRequest, pending: PendingOffsets
) -> ErrorCode:
    """Check the request. Only a member that it names is checked, as older versions name none."""
    if request.producer_epoch < pending.epoch:
        return ErrorCode.INVALID_PRODUCER_EPOCH
    group = step.shard.groups.get(request.group_id)
    names_a_member = request.member_id or request.group_instance_id is not None
    if group is None:
        if request.generation_id >= 0:
            is_new = request.version >= WITH_EPOCHS_IN_TRANSACTIONS
            return ErrorCode.GROUP_ID_NOT_FOUND if is_new else ErrorCode.ILLEGAL_GENERATION
        step.found(Group(request.group_id))
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
        step.append(tuple(records), unattended)


def _fitting(step: Step, request: Commit) -> tuple[m.OffsetToCommit, ...]:
    limit = step.config.offset_metadata_max_bytes
    return tuple([o for o in request.offsets if not o.metadata or _fits(o, limit)])


def _fits(offset: m.OffsetToCommit, limit: int) -> bool:
    """Return whether the metadata is not too long. The limit of Kafka is one of UTF-16 characters."""
    return len(java_key(offset.metadata)) <= 2 * limit


def _write(step: Step, request_id: int, request: Commit, records: Records) -> None:
    """Write the records if there are any, and answer when they are written."""
    if records:
        step.append(records, partial(_written, request_id, request))
    else:
        _written(request_id, request, step, NONE)


def _written(request_id: int, request: Commit, step: Step, error: ErrorCode) -> None:
    """Answer with the result, or for a partition with too much metadata with that error."""
    limit = step.config.offset_metadata_max_bytes
    errors = [
        m.PartitionError(o.topic, o.partition, error if not o.metadata or _fits(o, limit) else _LARGE)
        for o in request.offsets
    ]
    step.effects.reply(request_id, _RESPONSES[type(request)](partitions=tuple(errors)))
