"""How offsets expire and groups are forgotten (PROTOCOL 2.1)."""

from functools import partial

from coordinator_core.coordinator.records import (
    GenerationRecord,
    GroupRecord,
    OffsetRecord,
    Partition,
    PartRecord,
    PendingRecord,
    Record,
    StoredOffset,
)
from coordinator_core.coordinator.shard import Group, Step
from coordinator_core.protocol.error_codes import ErrorCode


def check_retention(step: Step, group: Group) -> None:
    """Delete the expired offsets of a group; delete an Empty group without offsets."""
    offsets = step.shard.table.offsets.get(group.group_id, {})
    on_their_way = step.on_their_way(group.group_id)
    expired = _expired(step, group, on_their_way)
    records: list[Record] = [OffsetRecord(group.group_id, *partition, None) for partition in expired]
    is_written_to = bool(on_their_way) or group.group_id in step.shard.table.pending
    is_unused = group.is_empty and not group.expects_members and not is_written_to
    if is_unused and len(expired) == len(offsets):
        delete_group(step, group, tuple(records), "no member and no offset is left")
        return
    if records:
        step.append(tuple(records), unattended)
    step.schedule_retention(group)


def _expired(step: Step, group: Group, on_their_way: list[Record]) -> list[Partition]:
    """Return the partitions whose offsets have expired, without those that are being committed.

    An offset in a transaction keeps the committed one, too.
    """
    written = {(r.topic, r.partition) for r in on_their_way if isinstance(r, (OffsetRecord, PendingRecord))}
    written |= step.shard.table.pending_partitions(group.group_id)
    expired = sorted(
        partition
        for partition, offset in step.shard.table.offsets.get(group.group_id, {}).items()
        if _has_expired(step, group, offset) and partition not in written
    )
    if group.is_empty or not expired:
        return expired
    in_use = group.topics_in_use()
    return [] if in_use is None else [(topic, n) for topic, n in expired if topic not in in_use]


def _has_expired(step: Step, group: Group, offset: StoredOffset) -> bool:
    """Return whether the time of an offset has passed: its own, or the retention of the coordinator.

    That begins with the commit, or when the last member left, even if the commit is newer.
    """
    if offset.expires_at_ms is not None:
        return step.now_ms >= offset.expires_at_ms
    begun_ms = group.emptied_at_ms if group.is_empty and group.emptied_at_ms else offset.committed_at_ms
    return step.now_ms - begun_ms >= step.config.offsets_retention_minutes * 60_000


def delete_group(step: Step, group: Group, offsets: tuple[Record, ...], cause: str) -> None:
    """Write tombstones for a group, its parts and its offsets; once they are written, forget the group."""
    parts = (PartRecord(group.group_id, key, None) for key in step.shard.table.parts.get(group.group_id, ()))
    records = (*offsets, *parts, GenerationRecord(group.group_id, None), GroupRecord(group.group_id, None))
    step.append(records, partial(_forget, group.group_id, cause))


def unattended(step: Step, error: ErrorCode) -> None:
    """Do nothing after a write that no request waits for; the next write makes up for a failure."""


def _forget(group_id: str, cause: str, step: Step, error: ErrorCode) -> None:
    """Forget the group, unless it has come back to life, or was written to, since the tombstones."""
    group = step.shard.groups.get(group_id)
    if group is None:
        return
    written_to = bool(step.on_their_way(group_id))
    if not error and group.is_empty and not group.expects_members and not written_to:
        step.forget(group, cause)
    else:
        step.schedule_retention(group)
