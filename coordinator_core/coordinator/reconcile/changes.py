"""How a group changes: tasks make records, and what they mean is carried out when these are written.

The tasks that wait at one time write together. Requests and deadlines that come while records are being
written wait until then, so that no task sees a state that may not become durable.
"""

from collections.abc import Callable
from functools import partial
from typing import Any, TypeAlias

from coordinator_core.coordinator.outcome import Outcome
from coordinator_core.coordinator.reconcile.group import ReconcileGroup, State, TimerKind, state_of
from coordinator_core.coordinator.reconcile.state import CURRENT, MEMBER, SHARE, TARGET, apply, part_record
from coordinator_core.coordinator.records import GroupRecord, PartRecord, StoredGroup
from coordinator_core.coordinator.shard import Step
from coordinator_core.protocol.error_codes import ErrorCode
from coordinator_core.protocol.reconcile import ConsumerGroupHeartbeatResponse

RETRY_MS = 500
"""The time after which deadlines are carried out again whose records could not be written."""


class Changes:
    """The state of a group with the changes of some tasks, and what follows once their records are written.

    ``state`` is that of the group, and a copy of it from the first record on. ``effects`` are the replies and
    events, and ``follow`` are calls with the step that carries them out: they set timers.
    """

    def __init__(self, group: ReconcileGroup, now_ms: int) -> None:
        self.group, self.now_ms = group, now_ms
        self.state = group.durable
        self.records: list[GroupRecord | PartRecord] = []
        self.effects = Outcome()
        self.follow: list[Callable[[Step], None]] = []
        self._shown = group.state

    def _put(self, record: GroupRecord | PartRecord) -> None:
        if not self.records:
            self.state = self.state.copy()
        self.records.append(record)
        apply(self.state, record)

    def put(self, kind: str, member_id: str, value: Any) -> None:
        """Write a part of the group; None deletes it."""
        self._put(part_record(self.group.group_id, kind, member_id, value))

    def bump(self, cause: str) -> None:
        """Raise the epoch of the group, because it has changed."""
        group, epoch = self.group, self.state.epoch + 1
        stored = StoredGroup(group.protocol_type, None, epoch, None, (), self.now_ms, group.family)
        self._put(GroupRecord(group.group_id, stored))
        self.show(cause, begins=True)

    def show(self, cause: str, *, begins: bool = False) -> None:
        """Report the state of the group if it has changed, or if a change of the group begins."""
        before, after = self._shown, state_of(self.state)
        if after is before and not (begins and after is State.ASSIGNING):
            return
        if after is not before:
            self.group.check_move(before, after)
        self._shown = after
        self.effects.report_move(self.group.group_id, before, after, self.state.epoch, cause)

    def delete(self, member_id: str) -> None:
        """Delete the parts of a member, and its deadlines."""
        group = self.group
        for kind in (CURRENT, SHARE, MEMBER):
            self.put(kind, member_id, None)

        def forget(step: Step) -> None:
            group.reported.pop(member_id, None)
            step.cancel(TimerKind.SESSION, group, member_id)
            step.cancel(TimerKind.REBALANCE, group, member_id)

        self.follow.append(forget)

    def remove(self, member_id: str, reason: str, cause: str) -> None:
        """Remove a member from the group. Its partitions are free."""
        self.delete(member_id)
        self.effects.report_removed(self.group.group_id, member_id, reason)
        if not self.state.members:
            self.put(TARGET, "", None)
            self.follow.append(lambda step: step.schedule_retention(self.group))
        self.bump(cause)


Task: TypeAlias = Callable[[Changes], None]
"""The work for a request or a deadline: it reads and changes the state of the group."""


def submit(step: Step, group: ReconcileGroup, task: Task, *, again: bool = False) -> None:
    """Run a task now, or when the records that are being written are written.

    ``again``: run it again if its records cannot be written.
    """
    group.tasks.append((task, again))
    _run(step, group)


def retry(step: Step, group: ReconcileGroup) -> None:
    """Run the tasks again whose records could not be written."""
    group.tasks += [(task, True) for task in group.failed]
    group.failed.clear()
    _run(step, group)


def _run(step: Step, group: ReconcileGroup) -> None:
    if group.is_writing or not group.tasks:
        return
    tasks, group.tasks = group.tasks, []
    changes = Changes(group, step.now_ms)
    for task, _ in tasks:
        task(changes)
    if changes.records:
        group.is_writing = True
        again = [task for task, again in tasks if again]
        step.append(tuple(changes.records), partial(_stored, changes, again))
    else:
        _carry_out(step, changes)


def _carry_out(step: Step, changes: Changes) -> None:
    changes.group.become(changes.state)
    for follow in changes.follow:
        follow(step)
    step.effects.events += changes.effects.events
    step.effects.replies += changes.effects.replies


def _stored(changes: Changes, again: list[Task], step: Step, error: ErrorCode) -> None:
    """Carry the changes out. If the write failed, the group stays as it was; requests get the error."""
    group = changes.group
    if step.shard.groups.get(group.group_id) is not group:
        return
    group.is_writing = False
    if error:
        for reply in changes.effects.replies:
            step.effects.reply(reply.request_id, ConsumerGroupHeartbeatResponse(error=error))
        group.failed += again
        step.schedule(TimerKind.RETRY, group, RETRY_MS)
    else:
        _carry_out(step, changes)
    _run(step, group)
