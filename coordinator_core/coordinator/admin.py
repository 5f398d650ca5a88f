"""DescribeGroups 0-5, ListGroups 0-5, DeleteGroups 0-2 and OffsetDelete 0, for one shard (PROTOCOL 7.3).

Not implemented: authorized operations.
"""

from collections.abc import Collection

import msgspec

from coordinator_core.coordinator.expiry import Unattended, delete_group
from coordinator_core.coordinator.records import OffsetRecord
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
    for record in step.on_their_way(group.group_id):
        if isinstance(record, OffsetRecord):
            offsets.add((record.topic, record.partition))
    records = tuple(OffsetRecord(group.group_id, topic, number, None) for topic, number in sorted(offsets))
    delete_group(step, group, records, "deleted")


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
    committed = step.shard.table.offsets.get(request.group_id, {})
    records = tuple(
        OffsetRecord(request.group_id, tp.topic, tp.partition, None)
        for tp in request.partitions
        if tp.topic not in subscribed and tp in committed
    )
    write = DeleteOffsets(request_id, errors)
    if records:
        step.append(records, write)
    else:
        write.completed(step, ErrorCode.NONE)


def delete_offsets_of(step: Step, group_id: str, topics: Collection[str]) -> None:
    """Delete the committed offsets of topics that are deleted."""
    committed = step.shard.table.offsets.get(group_id, {})
    records = tuple(OffsetRecord(group_id, topic, n, None) for topic, n in committed if topic in topics)
    if records:
        step.append(records, Unattended())


class DeleteOffsets(msgspec.Struct, frozen=True):
    """Tombstones of offsets under way to the log."""

    request_id: int
    errors: tuple[PartitionError, ...]

    def completed(self, step: Step, error: ErrorCode) -> None:
        """Answer with the errors of the partitions, or with the error of the write."""
        partitions = self.errors if not error else ()
        step.effects.reply(self.request_id, OffsetDeleteResponse(error=error, partitions=partitions))
