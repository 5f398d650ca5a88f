"""The deadlines of a group that the coordinator reconciles."""

from functools import partial

from coordinator_core.coordinator.reconcile.changes import Changes, retry, submit
from coordinator_core.coordinator.reconcile.group import ReconcileGroup, TimerKind
from coordinator_core.coordinator.reconcile.state import MemberState
from coordinator_core.coordinator.shard import Step
from coordinator_core.coordinator.timers import TimerKey

_LATE = {
    TimerKind.JOIN: "failed to join within the rebalance timeout",
    TimerKind.SYNC: "failed to sync within the rebalance timeout",
}
"""Why members are removed that speak the classic protocol."""


def on_timer(step: Step, group: ReconcileGroup, key: TimerKey) -> None:
    """Remove a member whose session has expired, or that has not given up partitions in time.

    Let the next heartbeat resolve regular expressions again.
    """
    member_id = key.member_id

    def session(changes: Changes) -> None:
        if member_id in changes.state.members:
            changes.remove({member_id: "session expired"}, f"session of {member_id} expired")

    def rebalance(changes: Changes) -> None:
        current = changes.state.currents.get(member_id)
        if current is not None and current.state is MemberState.UNREVOKED:
            reason = "did not give up its partitions within the rebalance timeout"
            changes.remove({member_id: reason}, f"{member_id} {reason}")

    def late(changes: Changes, reason: str) -> None:
        if member_id in changes.state.members:
            changes.remove({member_id: reason}, f"{member_id} {reason}")

    if key.kind == TimerKind.RETRY:
        retry(step, group)
    elif key.kind == TimerKind.REFRESH:
        group.resolved_changes = None
    elif key.kind in _LATE:
        submit(step, group, partial(late, reason=_LATE[TimerKind(key.kind)]), again=True)
    else:
        submit(step, group, session if key.kind == TimerKind.SESSION else rebalance, again=True)
