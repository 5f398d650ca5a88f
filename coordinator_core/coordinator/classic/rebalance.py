"""The round: how it starts, which members it waits for, how it ends (PROTOCOL 3.5-3.11, 4.2, 4.3)."""

import msgspec

from coordinator_core.coordinator.classic.group import ClassicGroup, Member, TimerKind, find
from coordinator_core.coordinator.classic.states import GroupState
from coordinator_core.coordinator.expiry import Unattended
from coordinator_core.coordinator.records import GenerationRecord, GroupRecord
from coordinator_core.coordinator.shard import Step
from coordinator_core.protocol.error_codes import NONE, ErrorCode
from coordinator_core.protocol.events import GenerationStarted, MemberRemoved
from coordinator_core.protocol.messages import JoinGroupResponse, SyncGroupResponse

RESERVE_AGAIN_MS = 100
"""How long after a failed write of a generation the next write is tried."""

_EMPTY, _PREPARING = GroupState.EMPTY, GroupState.PREPARING_REBALANCE
CAN_START_ROUND = frozenset({GroupState.STABLE, GroupState.COMPLETING_REBALANCE, GroupState.EMPTY})


def move(step: Step, group: ClassicGroup, state: GroupState, cause: str) -> None:
    """Change a group's state, and report it."""
    before = group.state
    group.move_to(state)
    step.moved(group, before.value, state.value, cause)


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
    initial = group.state is GroupState.EMPTY
    move(step, group, GroupState.PREPARING_REBALANCE, cause)
    group.join_is_due = False
    _reserve_generation(step, group)
    if initial:
        _arm_initial_delay(step, group)
        return
    step.schedule(TimerKind.JOIN, group, group.rebalance_timeout_ms())
    if group.all_have_joined():
        complete_join(step, group)


def start_if_over_capacity(step: Step, group: ClassicGroup) -> None:
    """Start a round in which the last members to rejoin are removed, if the group is too large (C-08)."""
    size, limit = len(group.members), step.config.max_size
    if group.state is GroupState.STABLE and size > limit:
        start(step, group, f"{size} members were loaded, and group.max.size is {limit}")


def _arm_initial_delay(step: Step, group: ClassicGroup) -> None:
    """Set the initial delay (KIP-134), at most the rebalance timeout at the first join (C-10)."""
    delay = step.config.initial_rebalance_delay_ms
    group.member_added_in_initial_delay = False
    group.initial_delay_ms = delay
    group.initial_remaining_ms = max(group.rebalance_timeout_ms() - delay, 0)
    step.schedule(TimerKind.JOIN, group, delay)


def in_initial_delay(group: ClassicGroup) -> bool:
    """Return whether the group collects members for its first round since it was Empty."""
    return group.state is _PREPARING and group.previous_state is _EMPTY


def complete_if_all_joined(step: Step, group: ClassicGroup) -> None:
    """End the join phase if all members have joined, but never before the initial delay (C-11)."""
    preparing = group.state is _PREPARING
    if preparing and not in_initial_delay(group) and group.all_have_joined():
        complete_join(step, group)


def on_join_timer(step: Step, group: ClassicGroup) -> None:
    """Prolong the initial delay, or end the join phase: its time has passed."""
    if group.state is not GroupState.PREPARING_REBALANCE:
        return
    if in_initial_delay(group) and group.member_added_in_initial_delay and group.initial_remaining_ms:
        delay = min(step.config.initial_rebalance_delay_ms, group.initial_remaining_ms)
        group.member_added_in_initial_delay = False
        group.initial_remaining_ms = max(group.initial_remaining_ms - group.initial_delay_ms, 0)
        group.initial_delay_ms = delay
        step.schedule(TimerKind.JOIN, group, delay)
        return
    group.join_is_due = True
    complete_join(step, group)


def _reserve_generation(step: Step, group: ClassicGroup) -> None:
    """Store the generation that the round will hand out, so that no coordinator hands it out again."""
    wanted = group.next_generation()
    if group.reserved < wanted and not group.is_reserving:
        group.is_reserving = True
        step.append((GenerationRecord(group.group_id, wanted),), ReserveGeneration(group.group_id, wanted))


class ReserveGeneration(msgspec.Struct, frozen=True):
    """A generation under way to the log. The join phase does not end before it is written."""

    group_id: str
    generation: int

    def completed(self, step: Step, error: ErrorCode) -> None:
        """End the join phase if it waited only for this write; after a failure, try again a little later."""
        group = find(step, self.group_id)
        if group is None:
            return
        group.is_reserving = False
        if not error:
            group.reserved = max(group.reserved, self.generation)
        if group.state is not GroupState.PREPARING_REBALANCE:
            return
        if error:
            if group.join_is_due or (group.all_have_joined() and not in_initial_delay(group)):
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
            drop_member(step, group, member, "did not rejoin within the rebalance timeout")
    if group.members and not group.elect_rejoined_leader():
        step.schedule(TimerKind.JOIN, group, max(group.rebalance_timeout_ms(), 1))  # 0 would never end
        return
    group.generation = group.next_generation()
    if group.members:
        _begin_sync_phase(step, group)
    else:
        become_empty(step, group)


def become_empty(step: Step, group: ClassicGroup) -> None:
    """Become Empty: the last member has left. The generation has grown all the same (PROTOCOL 3.7)."""
    group.protocol_name = None
    group.leader = None
    group.emptied_at_ms = step.now_ms
    move(step, group, GroupState.EMPTY, "no member is left")
    step.schedule_retention(group)
    step.append((GroupRecord(group.group_id, group.stored({}, step.now_ms)),), Unattended())


def _begin_sync_phase(step: Step, group: ClassicGroup) -> None:
    group.protocol_name = group.choose_protocol()
    move(step, group, GroupState.COMPLETING_REBALANCE, "everybody has joined")
    group.pending_sync = dict.fromkeys(group.members)
    assert group.leader is not None
    step.effects.events.append(
        GenerationStarted(
            group=group.group_id,
            generation=group.generation,
            protocol=group.protocol_name,
            leader=group.leader,
            members=list(group.members),
        )
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
        members=group.described_members() if leads else (),
    )
    step.effects.reply(group.joins.pop(member.member_id), response)


def refuse_join(step: Step, group: ClassicGroup, member: Member, error: ErrorCode) -> None:
    """Answer the parked join, if there is one, with an error."""
    request_id = group.joins.pop(member.member_id, None)
    if request_id is not None:
        step.effects.reply(request_id, JoinGroupResponse(error=error, member_id=member.member_id))


def refuse_sync(step: Step, member: Member, error: ErrorCode) -> None:
    """Answer the parked sync, if there is one, with an error and an empty assignment."""
    if member.syncing is not None:
        step.effects.reply(member.syncing, SyncGroupResponse(error=error))
        member.syncing = None


def answer_sync(step: Step, group: ClassicGroup, member: Member) -> None:
    """Answer the parked sync, if there is one, with the member's assignment."""
    if member.syncing is None:
        return
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
            refuse_sync(step, member, error)
            group.restart_session(step, member.member_id)


def on_sync_timer(step: Step, group: ClassicGroup) -> None:
    """Remove the members that have not synced in time, and start a round (PROTOCOL 4.3)."""
    if group.state not in (GroupState.COMPLETING_REBALANCE, GroupState.STABLE) or not group.pending_sync:
        return
    missing = [group.members[m] for m in group.pending_sync if m in group.members]
    for member in missing:
        drop_member(step, group, member, "did not sync within the rebalance timeout")
    names = ", ".join(m.member_id for m in missing)
    start_or_continue(step, group, f"{names} did not sync in time")


def drop_member(step: Step, group: ClassicGroup, member: Member, reason: str) -> None:
    """Remove a member; its parked requests get UNKNOWN_MEMBER_ID (C-37)."""
    refuse_join(step, group, member, ErrorCode.UNKNOWN_MEMBER_ID)
    refuse_sync(step, member, ErrorCode.UNKNOWN_MEMBER_ID)
    group.remove(member.member_id)
    step.cancel(TimerKind.SESSION, group, member.member_id)
    step.effects.events.append(MemberRemoved(group=group.group_id, member_id=member.member_id, reason=reason))
