"""DescribeGroups, ListGroups, DeleteGroups and OffsetDelete, for one shard (PROTOCOL 7.3)."""

from dataclasses import dataclass

from coordinator_core.coordinator.classic.group import Group
from coordinator_core.coordinator.classic.states import GroupState
from coordinator_core.coordinator.classic.subscriptions import topics_of
from coordinator_core.coordinator.expiry import delete_group
from coordinator_core.coordinator.records import OffsetRecord
from coordinator_core.coordinator.shard import Step
from coordinator_core.model import TopicPartition
from coordinator_core.protocol.error_codes import ErrorCode
from coordinator_core.protocol.messages import (
    DescribedGroup,
    DescribedMember,
    ListedGroup,
    OffsetDeleteRequest,
    OffsetDeleteResponse,
    PartitionError,
)

CONSUMER = "consumer"


def describe(group: Group | None, group_id: str) -> DescribedGroup:
    """A group as administrators see it; an unknown one is Dead (Kafka 4.x: with GROUP_ID_NOT_FOUND)."""
    if group is None:
        dead = GroupState.DEAD.value
        return DescribedGroup(error=ErrorCode.GROUP_ID_NOT_FOUND, group_id=group_id, state=dead)
    stable = group.state is GroupState.STABLE
    return DescribedGroup(
        error=ErrorCode.NONE,
        group_id=group_id,
        state=group.state.value,
        protocol_type=group.protocol_type or "",
        protocol_name=(group.protocol_name or "") if stable else "",
        members=tuple(
            DescribedMember(
                m.member_id,
                m.instance_id,
                m.client_id,
                m.client_host,
                m.metadata(group.protocol_name) if stable else b"",
                m.assignment if stable else b"",
            )
            for m in group.members.values()
        ),
    )


def listed(group: Group) -> ListedGroup:
    """One row of ListGroups."""
    return ListedGroup(group.group_id, group.protocol_type or "", group.state.value)


def cannot_delete(group: Group | None) -> ErrorCode:
    """Only an Empty group can be deleted."""
    if group is None:
        return ErrorCode.GROUP_ID_NOT_FOUND
    return ErrorCode.NONE if group.state is GroupState.EMPTY else ErrorCode.NON_EMPTY_GROUP


def delete(step: Step, group: Group) -> None:
    """Write the tombstones; the group is forgotten when they are written."""
    group.pending.clear()
    offsets = set(step.shard.table.offsets.get(group.group_id, {}))
    for record in step.on_their_way(group.group_id):
        if isinstance(record, OffsetRecord):
            offsets.add(TopicPartition(record.topic, record.partition))
    records = tuple(OffsetRecord(group.group_id, tp.topic, tp.partition, None) for tp in sorted(offsets))
    delete_group(step, group, records, "deleted")


def delete_offsets(step: Step, request_id: int, request: OffsetDeleteRequest) -> None:
    """Delete offsets of topics that nobody in the group subscribes to."""
    group = step.shard.groups.get(request.group_id)
    if group is None:
        step.effects.reply(request_id, OffsetDeleteResponse(error=ErrorCode.GROUP_ID_NOT_FOUND))
        return
    if group.state is not GroupState.EMPTY and group.protocol_type != CONSUMER:
        step.effects.reply(request_id, OffsetDeleteResponse(error=ErrorCode.NON_EMPTY_GROUP))
        return
    subscribed = {topic for member in group.members.values() for topic in topics_of(member.protocols)}
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


@dataclass(frozen=True, slots=True)
class DeleteOffsets:
    """Tombstones of offsets under way to the log."""

    request_id: int
    errors: tuple[PartitionError, ...]

    def completed(self, step: Step, error: ErrorCode) -> None:
        """Answer for each partition."""
        partitions = self.errors if error is ErrorCode.NONE else ()
        step.effects.reply(self.request_id, OffsetDeleteResponse(error=error, partitions=partitions))

    def abandoned(self, step: Step) -> None:
        """Whether it was written is for the new coordinator to know."""
        step.effects.reply(self.request_id, OffsetDeleteResponse(error=ErrorCode.NOT_COORDINATOR))
