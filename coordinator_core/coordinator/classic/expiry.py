"""What happens when a deadline of a classic group passes (PROTOCOL 3.4, 3.11, 5.2, 5.3)."""

from coordinator_core.coordinator.classic import rebalance
from coordinator_core.coordinator.classic.group import ClassicGroup
from coordinator_core.coordinator.classic.states import GroupState
from coordinator_core.coordinator.round_group import TimerKind
from coordinator_core.coordinator.shard import Step
from coordinator_core.coordinator.timers import TimerKey


def on_timer(step: Step, group: ClassicGroup, key: TimerKey) -> None:
    """Carry out one timer that is due."""
    if key.kind == TimerKind.PENDING_MEMBER:
        _pending_id_expired(step, group, key.member_id)
    elif key.kind == TimerKind.SESSION:
        _session_expired(step, group, key.member_id)
    elif key.kind == TimerKind.JOIN:
        rebalance.on_join_timer(step, group)
    elif key.kind == TimerKind.SYNC:
        rebalance.on_sync_timer(step, group)
    else:
        rebalance.start_if_over_capacity(step, group)


def _pending_id_expired(step: Step, group: ClassicGroup, member_id: str) -> None:
    if member_id in group.pending:
        del group.pending[member_id]
        _complete_after_expiry(step, group)


def _session_expired(step: Step, group: ClassicGroup, member_id: str) -> None:
    member = group.members.get(member_id)
    if member is None:
        return
    parked = member_id in group.joins or member.syncing is not None
    if parked and not member.is_new:
        return  # its session restarts when the request is answered (PROTOCOL 5.2)
    cause = f"{member_id} did not come back in time" if member.is_new else f"session of {member_id} expired"
    group.drop(step, member, "session expired")
    if group.state in (GroupState.STABLE, GroupState.COMPLETING_REBALANCE):
        rebalance.start(step, group, cause)
    elif group.state is GroupState.PREPARING_REBALANCE:
        _complete_after_expiry(step, group)


def _complete_after_expiry(step: Step, group: ClassicGroup) -> None:
    """End the join phase if all members have joined, also during the initial delay (C-12)."""
    if group.state is GroupState.PREPARING_REBALANCE and group.all_have_joined():
        group.join_is_due = True
        rebalance.complete_join(step, group)
