"""How offsets expire and groups are forgotten (PROTOCOL 2.1)."""

from dataclasses import dataclass

from coordinator_core.coordinator.records import GenerationRecord, GroupRecord, OffsetRecord, Record
from coordinator_core.coordinator.shard import Group, Step
from coordinator_core.protocol.error_codes import ErrorCode


def check_retention(step: Step, group: Group) -> None:
    """Delete an Empty group's expired offsets; with no offset left, delete the group."""
    if not group.is_empty:
        return
    retention_ms = step.config.offsets_retention_minutes * 60_000
    offsets = step.shard.table.offsets.get(group.group_id, {})
    expired = [
        tp
        for tp in sorted(offsets)
        if step.now_ms - max(offsets[tp].committed_at_ms, group.emptied_at_ms) >= retention_ms
    ]
    records: list[Record] = [OffsetRecord(group.group_id, tp.topic, tp.partition, None) for tp in expired]
    if len(expired) == len(offsets) and not group.expects_members and not step.on_their_way(group.group_id):
        delete_group(step, group, tuple(records), "no member and no offset is left")
        return
    if records:
        step.append(tuple(records), Unattended())
    step.schedule_retention(group)


def delete_group(step: Step, group: Group, offsets: tuple[Record, ...], cause: str) -> None:
    """Write tombstones for a group and its offsets; once they are written, forget the group."""
    records = (*offsets, GenerationRecord(group.group_id, None), GroupRecord(group.group_id, None))
    step.append(records, ForgetGroup(group.group_id, cause))


@dataclass(frozen=True, slots=True)
class Unattended:
    """A write that no request waits for; the next write makes up for a failure."""

    def completed(self, step: Step, error: ErrorCode) -> None:
        """Do nothing."""


@dataclass(frozen=True, slots=True)
class ForgetGroup:
    """Tombstones of a group under way to the log."""

    group_id: str
    cause: str

    def completed(self, step: Step, error: ErrorCode) -> None:
        """Forget the group, unless it has come back to life, or was written to, since the tombstones."""
        group = step.shard.groups.get(self.group_id)
        if group is None:
            return
        written_to = bool(step.on_their_way(self.group_id))
        if error is ErrorCode.NONE and group.is_empty and not group.expects_members and not written_to:
            step.forget(group, self.cause)
        elif group.is_empty:
            step.schedule_retention(group)
