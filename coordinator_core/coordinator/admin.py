"""DescribeGroups 0-6, ListGroups 0-5, DeleteGroups 0-3 and OffsetDelete 0, for one shard (PROTOCOL 7.3).

Whoever knows the users adds their authorized operations.
"""

from collections.abc import Callable, Collection, Iterable, Iterator
from functools import partial

from coordinator_core.coordinator.expiry import delete_group, unattended
from coordinator_core.coordinator.records import OffsetRecord, Partition, PendingRecord, Record
from coordinator_core.coordinator.shard import DEAD, Group, Step
from coordinator_core.protocol import messages as m
from coordinator_core.protocol.error_codes import NONE, ErrorCode


def describe(group: Group | None, group_id: str) -> m.DescribedGroup:
    """Describe a group. An unknown group is Dead, with GROUP_ID_NOT_FOUND (as of Kafka 4)."""
    if group is None:
        found = f"Group {group_id} not found."
        return m.DescribedGroup(
            error=ErrorCode.GROUP_ID_NOT_FOUND, group_id=group_id, state=DEAD, message=found
        )
    return group.describe()


def listed(group: Group, group_type: str) -> m.ListedGroup:
    """Return one row of ListGroups."""
    return m.ListedGroup(group.group_id, group.protocol_type or "", str(group.state), group_type)


def wanted(rows: Iterable[m.ListedGroup], request: m.ListGroupsRequest) -> tuple[m.ListedGroup, ...]:
    """Return the rows that a request is for, sorted by group."""
    states = {state.lower().strip() for state in request.states}
    types = {group_type.lower() for group_type in request.types}
    return tuple(
        row
        for row in sorted(rows, key=lambda row: row.group_id)
        if (not states or row.state.lower() in states) and (not types or row.group_type.lower() in types)
    )


def delete(step: Step, group_id: str) -> ErrorCode:
    """Write the tombstones of an Empty group and of its offsets, also of offsets that are being written.

    Return the reason not to do so, NONE if there is none.
    """
    group = step.shard.groups.get(group_id)
    if group is None or not group.is_empty:
        return ErrorCode.GROUP_ID_NOT_FOUND if group is None else ErrorCode.NON_EMPTY_GROUP
    group.forget_expected()
    offsets = set(step.shard.table.offsets.get(group_id, {}))
    pending = set(_pending_keys(step, group_id))
    for record in step.on_their_way(group_id):
        if isinstance(record, OffsetRecord):
            offsets.add((record.topic, record.partition))
        elif isinstance(record, PendingRecord):
            pending.add((record.producer_id, record.epoch, record.topic, record.partition))
    records = [OffsetRecord(group_id, topic, number, None) for topic, number in sorted(offsets)]
    dropped = [PendingRecord(group_id, *key, None) for key in sorted(pending)]
    delete_group(step, group, (*records, *dropped), "deleted")
    return NONE


def delete_offsets(step: Step, request_id: int, request: m.OffsetDeleteRequest) -> None:
    """Delete offsets of topics that no member subscribes to."""
    group = step.shard.groups.get(request.group_id)
    subscribed = None if group is None else group.subscribed_topics()
    if subscribed is None:
        error = ErrorCode.GROUP_ID_NOT_FOUND if group is None else ErrorCode.NON_EMPTY_GROUP
        step.effects.reply(request_id, m.OffsetDeleteResponse(error=error))
        return
    in_use = ErrorCode.GROUP_SUBSCRIBED_TO_TOPIC
    errors = tuple(
        m.PartitionError(tp.topic, tp.partition, in_use if tp.topic in subscribed else NONE)
        for tp in request.partitions
    )
    free = {tp for tp in request.partitions if tp.topic not in subscribed}
    records = _tombstones(step, request.group_id, lambda tp: tp in free)
    if records:
        step.append(records, partial(_deleted, request_id, errors))
    else:
        _deleted(request_id, errors, step, NONE)


def delete_offsets_of(step: Step, group_id: str, topics: Collection[str]) -> None:
    """Delete the committed offsets of topics that are deleted."""
    records = _tombstones(step, group_id, lambda partition: partition[0] in topics)
    if records:
        step.append(records, unattended)


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


def _deleted(request_id: int, errors: tuple[m.PartitionError, ...], step: Step, error: ErrorCode) -> None:
    """Answer with the errors of the partitions, or with the error of the write."""
    partitions = errors if not error else ()
    step.effects.reply(request_id, m.OffsetDeleteResponse(error=error, partitions=partitions))
