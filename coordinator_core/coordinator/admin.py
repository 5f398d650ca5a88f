"""DescribeGroups 0-5, ListGroups 0-5, DeleteGroups 0-2 and OffsetDelete 0, for one shard (PROTOCOL 7.3).

Not implemented: authorized operations.
"""

from collections.abc import Callable, Collection, Iterator

import msgspec

from coordinator_core.coordinator.expiry import Unattended, delete_group
from coordinator_core.coordinator.records import OffsetRecord, Partition, PendingRecord, Record
from coordinator_core.coordinator.shard import DEAD, Group, Step
from coordinator_core.protocol.error_codes import ErrorCode
from coordinator_core.protocol.messages import (
    DescribedGroup,
    ListedGroup,
    OffsetDeleteRequest,
    OffsetDeleteResponse,
    PartitionError,
)


def describe(group: Group | None, group_id: str) -> DescribedGroup:
    """Describe a group. An unknown group is Dead, with GROUP_ID_NOT_FOUND (as of Kafka 4)."""
    if group is None:
        return DescribedGroup(error=ErrorCode.GROUP_ID_NOT_FOUND, group_id=group_id, state=DEAD)
    return group.describe()


def listed(group: Group, group_type: str) -> ListedGroup:
    """Return one row of ListGroups."""
    return ListedGroup(group.group_id, group.protocol_type or "", str(group.state), group_type)


def cannot_delete(group: Group | None) -> ErrorCode:
    """Return the reason not to delete a group, NONE if it is Empty."""
    if group is None:
        return ErrorCode.GROUP_ID_NOT_FOUND
    return ErrorCode.NONE if group.is_empty else ErrorCode.NON_EMPTY_GROUP


def delete(step: Step, group: Group) -> None:
    """Write the tombstones of a group and of its offsets, also of offsets that are being written."""
    group.forget_expected()
    offsets = set(step.shard.table.offsets.get(group.group_id, {}))
    pending = set(_pending_keys(step, group.group_id))
    for record in step.on_their_way(group.group_id):
        if isinstance(record, OffsetRecord):
            offsets.add((record.topic, record.partition))
        elif isinstance(record, PendingRecord):
            pending.add((record.producer_id, record.epoch, record.topic, record.partition))
    records = [OffsetRecord(group.group_id, topic, number, None) for topic, number in sorted(offsets)]
    dropped = [PendingRecord(group.group_id, *key, None) for key in sorted(pending)]
    delete_group(step, group, (*records, *dropped), "deleted")


def delete_offsets(step: Step, request_id: int, request: OffsetDeleteRequest) -> None:
    """Delete offsets of topics that no member subscribes to."""
    group = step.shard.groups.get(request.group_id)
    if group is None:
        step.effects.reply(request_id, OffsetDeleteResponse(error=ErrorCode.GROUP_ID_NOT_FOUND))
        return
    subscribed = group.subscribed_topics()
    if subscribed is None:
        step.effects.reply(request_id, OffsetDeleteResponse(error=ErrorCode.NON_EMPTY_GROUP))
        return
    errors = tuple(
        PartitionError(
            tp.topic,
            tp.partition,
            ErrorCode.GROUP_SUBSCRIBED_TO_TOPIC if tp.topic in subscribed else ErrorCode.NONE,
        )
        for tp in request.partitions
    )
    free = {tp for tp in request.partitions if tp.topic not in subscribed}
    records = _tombstones(step, request.group_id, lambda tp: tp in free)
    write = DeleteOffsets(request_id, errors)
    if records:
        step.append(records, write)
    else:
        write.completed(step, ErrorCode.NONE)


def delete_offsets_of(step: Step, group_id: str, topics: Collection[str]) -> None:
    """Delete the committed offsets of topics that are deleted."""
    records = _tombstones(step, group_id, lambda partition: partition[0] in topics)
    if records:
        step.append(records, Unattended())


def _tombstones(step: Step, group_id: str, is_gone: Callable[[Partition], bool]) -> tuple[Record, ...]:
    """Return the tombstones of offsets, also of those in transactions, which then commit nothing."""
    committed = step.shard.table.offsets.get(group_id, {})
    offsets = [OffsetRecord(group_id, *partition, None) for partition in committed if is_gone(partition)]
    pending = [
        PendingRecord(group_id, *key, None) for key in _pending_keys(step, group_id) if is_gone(key[2:])
    ]
    return (*offsets, *pending)


def _pending_keys(step: Step, group_id: str) -> Iterator[tuple[int, int, str, int]]:
    """Yield producer id, epoch, topic and partition of the offsets of a group in transactions."""
    for producer_id, held in step.shard.table.pending.get(group_id, {}).items():
        for partition in held.offsets:
            yield (producer_id, held.epoch, *partition)


class DeleteOffsets(msgspec.Struct, frozen=True):
    """Tombstones of offsets under way to the log."""

    request_id: int
    errors: tuple[PartitionError, ...]

    def completed(self, step: Step, error: ErrorCode) -> None:
        """Answer with the errors of the partitions, or with the error of the write."""
        partitions = self.errors if not error else ()
        step.effects.reply(self.request_id, OffsetDeleteResponse(error=error, partitions=partitions))
