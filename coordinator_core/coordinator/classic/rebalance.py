"""The round: how it starts, which members it waits for, how it ends (PROTOCOL 3.5-3.11, 4.2, 4.3)."""

from functools import partial

from coordinator_core.coordinator.classic.group import ClassicGroup, Member
from coordinator_core.coordinator.classic.states import GroupState
from coordinator_core.coordinator.records import GenerationRecord
from coordinator_core.coordinator.round_group import TimerKind
from coordinator_core.coordinator.shard import Step
from coordinator_core.protocol.error_codes import NONE, ErrorCode
from coordinator_core.protocol.messages import JoinGroupResponse, SyncGroupResponse

RESERVE_AGAIN_MS = 100
"""How long after a failed write of a generation the next write is tried."""

_PREPARING = GroupState.PREPARING_REBALANCE
CAN_START_ROUND = frozenset({GroupState.STABLE, GroupState.COMPLETING_REBALANCE, GroupState.EMPTY})


def start_or_continue(step: Step, group: ClassicGroup, cause: str) -> None:
    """Start a round. If a round is being prepared, end its join phase if all members have joined."""
    if group.state in CAN_START_ROUND:
        start(step, group, cause)
    else:
        complete_if_all_joined(step, group)


def start(step: Step, group: ClassicGroup, cause: str) -> None:
    """Start a round: answer the parked syncs (PROTOCOL 3.10), and set the join timer."""
    if group.state is GroupState.COMPLETING_REBALANCE:
        reset_assignments(step, group, ErrorCode.REBALANCE_IN_PROGRESS)
    step.cancel(TimerKind.SYNC, group)
    group.join_is_due = False
    group.begin_join_phase(step, cause)
    _reserve_generation(step, group)
    complete_if_all_joined(step, group)


def go_on(step: Step, group: ClassicGroup, cause: str) -> None:
    """Set the deadlines of a group anew, which has none and whose parked requests were answered."""
    group.forget_expected()
    group.is_reserving = False
    for member_id, member in group.members.items():
        if member.is_new:
            step.schedule(TimerKind.SESSION, group, step.config.new_member_join_timeout_ms, member_id)
        else:
            group.restart_session(step, member_id)
    if group.state is GroupState.COMPLETING_REBALANCE:
        start(step, group, cause)
    elif group.state is _PREPARING:
        is_first = group.is_in_initial_delay()
        delay_ms = step.config.initial_rebalance_delay_ms if is_first else group.rebalance_timeout_ms()
        step.schedule(TimerKind.JOIN, group, delay_ms)
        _reserve_generation(step, group)


def start_if_over_capacity(step: Step, group: ClassicGroup) -> None:
    """Start a round in which the last members to rejoin are removed, if the group is too large (C-08)."""
    size, limit = len(group.members), step.config.max_size
    if group.state is GroupState.STABLE and size > limit:
        start(step, group, f"{size} members were loaded, and group.max.size is {limit}")


def complete_if_all_joined(step: Step, group: ClassicGroup) -> None:
    """End the join phase if all members have joined, but never before the initial delay (C-11)."""
    if group.state is _PREPARING and not group.is_in_initial_delay() and group.all_have_joined():
        complete_join(step, group)


def on_join_timer(step: Step, group: ClassicGroup) -> None:
    """Prolong the initial delay, or end the join phase: its time has passed."""
    if group.state is _PREPARING and not group.prolong_initial_delay(step):
        group.join_is_due = True
        complete_join(step, group)


def _reserve_generation(step: Step, group: ClassicGroup) -> None:
    """Store the generation that the round will hand out, so that no coordinator hands it out again."""
    wanted = group.next_generation()
    if group.reserved < wanted and not group.is_reserving:
        group.is_reserving = True
        step.append((GenerationRecord(group.group_id, wanted),), partial(_reserved, group.group_id, wanted))


def _reserved(group_id: str, generation: int, step: Step, error: ErrorCode) -> None:
    """End the join phase if it waited only for this write; after a failure, try again a little later."""
    group = step.find(group_id, ClassicGroup)
    if group is None:
        return
    group.is_reserving = False
    if not error:
        group.reserved = max(group.reserved, generation)
    if group.state is not _PREPARING:
        return
    if error:
        if group.join_is_due or (group.all_have_joined() and not group.is_in_initial_delay()):
            step.schedule(TimerKind.JOIN, group, RESERVE_AGAIN_MS)
    elif group.join_is_due:
        complete_join(step, group)
    else:
        complete_if_all_joined(step, group)  # an id may have become pending since (PROTOCOL 3.4)


def complete_join(step: Step, group: ClassicGroup) -> None:
    """End the join phase (PROTOCOL 3.7), as soon as its generation is reserved."""
    if group.reserved < group.next_generation():
        _reserve_generation(step, group)
        return
    group.join_is_due = False
    step.cancel(TimerKind.JOIN, group)
    for member in list(group.members.values()):
        if member.instance_id is None and member.member_id not in group.joins:
            group.drop(step, member, "did not rejoin within the rebalance timeout")
    if group.members and not group.elect_rejoined_leader():
        step.schedule(TimerKind.JOIN, group, max(group.rebalance_timeout_ms(), 1))  # 0 would never end
        return
    group.generation = group.next_generation()
    if group.members:
        _begin_sync_phase(step, group)
    else:
        group.protocol_name = group.leader = None
        group.keep_subscriptions()
        group.become_empty(step)


def _begin_sync_phase(step: Step, group: ClassicGroup) -> None:
    group.protocol_name = group.choose_protocol()
    group.keep_subscriptions()
    group.move(step, GroupState.COMPLETING_REBALANCE, "everybody has joined")
    group.pending_sync = dict.fromkeys(group.members)
    assert group.leader is not None
    step.effects.report_generation(
        group.group_id, group.generation, group.protocol_name, group.members, group.leader
    )
    step.schedule(TimerKind.SYNC, group, group.rebalance_timeout_ms())
    for member in group.members.values():
        member.is_new = False
        group.restart_session(step, member.member_id)
        if member.member_id in group.joins:
            answer_join(step, group, member)


def answer_join(step: Step, group: ClassicGroup, member: Member) -> None:
    """Answer a parked join with the current generation. Only the leader gets the members."""
    leads = member.member_id == group.leader
    response = JoinGroupResponse(
        error=NONE,
        generation_id=group.generation,
        protocol_type=group.protocol_type,
        protocol_name=group.protocol_name,
        leader=group.leader or "",
        member_id=member.member_id,
        members=group.members_for_leader() if leads else (),
    )
    step.effects.reply(group.joins.pop(member.member_id), response)


def answer_sync(step: Step, group: ClassicGroup, member: Member) -> None:
    """Answer the parked sync of a member with its assignment."""
    assert member.syncing is not None
    response = SyncGroupResponse(
        error=NONE,
        protocol_type=group.protocol_type,
        protocol_name=group.protocol_name,
        assignment=member.assignment,
    )
    step.effects.reply(member.syncing, response)
    member.syncing = None


def reset_assignments(step: Step, group: ClassicGroup, error: ErrorCode) -> None:
    """Drop the assignments, and answer the parked syncs with an error; sessions restart (C-31)."""
    for member in group.members.values():
        member.assignment = b""
        if member.syncing is not None:
            group.refuse_sync(step, member, error)
            group.restart_session(step, member.member_id)


def on_sync_timer(step: Step, group: ClassicGroup) -> None:
    """Remove the members that have not synced in time, and start a round (PROTOCOL 4.3)."""
    if group.state not in (GroupState.COMPLETING_REBALANCE, GroupState.STABLE) or not group.pending_sync:
        return
    missing = [group.members[m] for m in group.pending_sync if m in group.members]
    for member in missing:
        group.drop(step, member, "did not sync within the rebalance timeout")
    names = ", ".join(m.member_id for m in missing)
    start_or_continue(step, group, f"{names} did not sync in time")
