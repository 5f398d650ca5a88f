"""What happens when a deadline passes (PROTOCOL 2.1, 3.4, 3.11, 5.2, 5.3)."""

from dataclasses import dataclass

from coordinator_core.coordinator.classic import rebalance
from coordinator_core.coordinator.classic.group import Group
from coordinator_core.coordinator.classic.states import GroupState
from coordinator_core.coordinator.records import GenerationRecord, GroupRecord, OffsetRecord, Record
from coordinator_core.coordinator.shard import Step
from coordinator_core.coordinator.timers import TimerKey, TimerKind
from coordinator_core.protocol.error_codes import ErrorCode


def on_timer(step: Step, group: Group, key: TimerKey) -> None:
    """Carry out one timer that is due."""
    if key.kind is TimerKind.PENDING_MEMBER:
        _pending_id_expired(step, group, key.member_id)
    elif key.kind is TimerKind.SESSION:
        _session_expired(step, group, key.member_id)
    elif key.kind is TimerKind.JOIN:
        rebalance.on_join_timer(step, group)
    elif key.kind is TimerKind.SYNC:
        rebalance.on_sync_timer(step, group)
    else:
        _retention_check(step, group)


def _pending_id_expired(step: Step, group: Group, member_id: str) -> None:
    if member_id in group.pending:
        del group.pending[member_id]
        _complete_after_expiry(step, group)


def _session_expired(step: Step, group: Group, member_id: str) -> None:
    member = group.members.get(member_id)
    if member is None:
        return
    parked = member.joining is not None or member.syncing is not None
    if parked and not member.is_new:
        return  # its session starts anew when it is answered (PROTOCOL 5.2)
    cause = f"{member_id} did not come back in time" if member.is_new else f"session of {member_id} expired"
    rebalance.drop_member(step, group, member, "session expired")
    if group.state in (GroupState.STABLE, GroupState.COMPLETING_REBALANCE):
        rebalance.start(step, group, cause)
    elif group.state is GroupState.PREPARING_REBALANCE:
        _complete_after_expiry(step, group)


def _complete_after_expiry(step: Step, group: Group) -> None:
    cut_short = step.config.expiry_cuts_initial_delay and rebalance.in_initial_delay(group)
    if cut_short and group.all_have_joined():
        group.join_is_due = True
        rebalance.complete_join(step, group)
    else:
        rebalance.complete_if_all_joined(step, group)


def _retention_check(step: Step, group: Group) -> None:
    """Drop offsets past their time; a group without members, pending ids and offsets is forgotten."""
    if group.state is not GroupState.EMPTY:
        return
    retention_ms = step.config.offsets_retention_minutes * 60_000
    offsets = step.shard.table.offsets.get(group.group_id, {})
    expired = [
        tp
        for tp in sorted(offsets)
        if step.now_ms - max(offsets[tp].committed_at_ms, group.emptied_at_ms) >= retention_ms
    ]
    records: list[Record] = [OffsetRecord(group.group_id, tp.topic, tp.partition, None) for tp in expired]
    if len(expired) == len(offsets) and not group.pending and not step.on_their_way(group.group_id):
        delete_group(step, group, tuple(records), "no member and no offset is left")
        return
    if records:
        step.append(tuple(records), rebalance.StoreEmptied())
    rebalance.arm_retention(step, group)


def delete_group(step: Step, group: Group, offsets: tuple[Record, ...], cause: str) -> None:
    """Write tombstones for a group and its offsets; once written, it is Dead and forgotten."""
    records = (*offsets, GenerationRecord(group.group_id, None), GroupRecord(group.group_id, None))
    step.append(records, ForgetGroup(group.group_id, cause))


@dataclass(frozen=True, slots=True)
class ForgetGroup:
    """Tombstones of a group."""

    group_id: str
    cause: str

    def completed(self, step: Step, error: ErrorCode) -> None:
        """Forget the group, unless it came back to life, or was written to, since the tombstones."""
        group = step.shard.groups.get(self.group_id)
        if group is None:
            return
        written_to = bool(step.on_their_way(self.group_id))
        alive = group.state is not GroupState.EMPTY or group.pending or written_to
        if error is not ErrorCode.NONE or alive:
            if group.state is GroupState.EMPTY:
                rebalance.arm_retention(step, group)
            return
        step.move(group, GroupState.DEAD, self.cause)
        step.timers.cancel_group(self.group_id)
        del step.shard.groups[self.group_id]

    def abandoned(self, step: Step) -> None:
        """Nobody waits for it."""
