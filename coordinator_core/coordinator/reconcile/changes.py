"""How a group changes: tasks make records, and what they mean is carried out when these are written.

The tasks that wait at one time write together. Requests and deadlines that come while records are being
written wait until then, so that no task sees a state that may not become durable.
"""

from collections.abc import Callable, Iterable, Mapping
from functools import partial
from typing import Any

import msgspec

from coordinator_core.coordinator.config import CoordinatorConfig
from coordinator_core.coordinator.kafka_versions import Rule
from coordinator_core.coordinator.outcome import Outcome
from coordinator_core.coordinator.reconcile.group import (
    Asked,
    ReconcileGroup,
    State,
    Task,
    TimerKind,
    state_of,
)
from coordinator_core.coordinator.reconcile.state import (
    CURRENT,
    MEMBER,
    PATTERN,
    SHARE,
    TARGET,
    Target,
    apply,
    part_record,
)
from coordinator_core.coordinator.records import GroupRecord, PartRecord, StoredGroup
from coordinator_core.coordinator.shard import Step
from coordinator_core.protocol.error_codes import ErrorCode

RETRY_MS = 500
"""The time after which deadlines are carried out again whose records could not be written."""


class Changes:
    """The state of a group with the changes of some tasks, and what follows once their records are written.

    ``state`` is that of the group, and a copy of it from the first record on. ``effects`` are the replies and
    events, and ``follow`` are calls with the step that carries them out: they set timers. ``undo`` are calls
    with the step and the group if the records cannot be written. ``shown`` is the state that was reported
    last. ``ends``: the group becomes one of another family, which reports its state: no epoch in between is.
    """

    def __init__(self, group: ReconcileGroup, now_ms: int, config: CoordinatorConfig) -> None:
        self.group, self.now_ms, self.config = group, now_ms, config
        self.state = group.durable
        self.records: list[GroupRecord | PartRecord] = []
        self.effects = Outcome()
        self.follow: list[Callable[[Step], None]] = []
        self.undo: list[Callable[[Step, ReconcileGroup], None]] = []
        self.ends = False
        self.shown = group.state

    def write(self, record: GroupRecord | PartRecord) -> None:
        """Write a record of the group."""
        if not self.records:
            self.state = self.state.copy()
        self.records.append(record)
        apply(self.state, record)

    def drop(self) -> None:
        """Take all changes back, with their effects."""
        self.state, self.shown, self.effects = self.group.durable, self.group.state, Outcome()
        self.records.clear()
        self.follow.clear()
        self.undo.clear()

    def put(self, kind: str, name: str, value: Any) -> None:
        """Write a part of the group; None deletes it."""
        self.write(part_record(self.group.group_id, kind, name, value))

    def begin(self, cause: str) -> None:
        """Give a group that has none an epoch. Members wait for the shares of it."""
        self._change(1, cause)

    def bump(self, cause: str) -> None:
        """Raise the epoch of the group, because it has changed, and note its topics as they are now."""
        before = self.state.epoch or int(self.group.has(Rule.BEGINS_WITH_EPOCH_2))
        self._change(before + 1, cause)

    def refresh(self) -> None:
        """Raise the epoch of the group if its topics have other partitions than when it was raised last."""
        if self.topics() != self.state.target.topics:
            self.bump("partitions of a subscribed topic changed")
        else:
            self.note_topics()

    def topics(self) -> dict[str, int]:
        """Return the existing topics of the members with their partitions."""
        return self.group.computing.topics(self.state.topics())

    def note_topics(self) -> None:
        """Note that the topics have been looked at as they are now."""
        group, changes = self.group, self.group.topic_changes

        def seen(_: Step) -> None:
            group.seen_changes = changes

        self.follow.append(seen)

    def _change(self, epoch: int, cause: str) -> None:
        group, topics, is_first = self.group, self.topics(), not self.state.epoch
        stored = StoredGroup(group.protocol_type, None, epoch, None, (), self.now_ms, group.family)
        self.write(GroupRecord(group.group_id, stored))
        # A group of another family may have been one like this before: then the log has an old target.
        if is_first or topics != self.state.target.topics:
            self.put(TARGET, "", msgspec.structs.replace(self.state.target, topics=topics))
        self.note_topics()
        self.show(cause, begins=True)

    def show(self, cause: str, *, begins: bool = False) -> None:
        """Report the state of the group if it has changed, or if a change of the group begins."""
        before, after = self.shown, state_of(self.state)
        if self.ends or (after is before and not (begins and after is State.ASSIGNING)):
            return
        if after is not before:
            self.group.check_move(before, after)
        self.shown = after
        self.effects.report_move(self.group.group_id, before, after, self.state.epoch, cause)

    def begin_with(self, before: str, cause: str) -> None:
        """Report that the group was one of another family, in a state of that family, up to now."""
        self.shown = state_of(self.state)
        self.effects.report_move(self.group.group_id, before, self.shown, self.state.epoch, cause)

    def delete(self, member_id: str) -> None:
        """Delete the parts of a member, and its deadlines unless the group becomes a classic one."""
        group = self.group
        for kind in (CURRENT, SHARE, MEMBER):
            self.put(kind, member_id, None)

        def forget(step: Step) -> None:
            if self.ends:
                return
            for kind in TimerKind:
                step.cancel(kind, group, member_id)

        self.follow.append(forget)

    def remove(self, reasons: Mapping[str, str], cause: str) -> None:
        """Remove members, given with the reasons, in one change of the group. Their partitions are free."""
        for member_id, reason in reasons.items():
            self.delete(member_id)
            self.effects.report_removed(self.group.group_id, member_id, reason)
        for pattern in [p for p in self.state.resolved if p not in self.state.patterns]:
            self.put(PATTERN, pattern, None)
        if self.group.computing.downgrade(self):
            return
        self.bump(cause)
        if not self.state.members:
            if self.group.has(Rule.EMPTY_IS_ASSIGNED):
                self.put(TARGET, "", Target(self.state.epoch, self.state.target.assignor))
            self.follow.append(lambda step: step.schedule_retention(self.group))


def submit(
    step: Step,
    group: ReconcileGroup,
    run: Callable[[Changes], None],
    asked: Asked | None = None,
    *,
    again: bool = False,
) -> None:
    """Run a task now, or when the records that are being written are written.

    ``asked`` is the request that it answers. ``again``: run it again if its records cannot be written.
    """
    group.tasks.append(Task(run, asked, again))
    _run(step, group)


def retry(step: Step, group: ReconcileGroup) -> None:
    """Run the tasks again whose records could not be written."""
    group.tasks += group.failed
    group.failed.clear()
    _run(step, group)


def _run(step: Step, group: ReconcileGroup) -> None:
    if group.is_writing or not group.tasks:
        return
    changes = Changes(group, step.now_ms, step.config)
    tasks: list[Task] = []
    while group.tasks and not changes.ends:
        tasks.append(group.tasks.popleft())
        tasks[-1].run(changes)
    if changes.records:
        group.is_writing = True
        step.append(tuple(changes.records), partial(_stored, changes, tasks))
    else:
        _carry_out(step, changes)


def _carry_out(step: Step, changes: Changes) -> None:
    changes.group.become(changes.state)
    step.effects.events += changes.effects.events
    step.effects.replies += changes.effects.replies
    for follow in changes.follow:
        follow(step)


def _stored(changes: Changes, tasks: list[Task], step: Step, error: ErrorCode) -> None:
    """Carry the changes out. If the write failed, the group stays as it was; requests get the error."""
    group = changes.group
    if step.shard.groups.get(group.group_id) is not group:
        return
    group.is_writing = False
    if error:
        _refuse(step, tasks, error)
        group.failed += [task for task in tasks if task.again]
        step.schedule(TimerKind.RETRY, group, RETRY_MS)
        for undo in changes.undo:
            undo(step, group)
    else:
        _carry_out(step, changes)
    if step.shard.groups.get(group.group_id) is group:
        _run(step, group)
    else:
        _refuse(step, group.tasks, ErrorCode.COORDINATOR_NOT_AVAILABLE)


def _refuse(step: Step, tasks: Iterable[Task], error: ErrorCode) -> None:
    """Answer the requests of tasks with an error. Clients repeat them."""
    for task in tasks:
        if task.asked is not None:
            step.effects.reply(task.asked.request_id, task.asked.refused(error))
