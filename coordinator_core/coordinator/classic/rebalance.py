"""The round: how it begins, whom it waits for, how it ends (PROTOCOL 3.5-3.11, 4.2, 4.3)."""

from dataclasses import dataclass

from coordinator_core.coordinator.classic.group import Group, Member
from coordinator_core.coordinator.classic.states import GroupState
from coordinator_core.coordinator.records import GenerationRecord, GroupRecord
from coordinator_core.coordinator.shard import Step
from coordinator_core.coordinator.timers import TimerKind
from coordinator_core.protocol.error_codes import ErrorCode
from coordinator_core.protocol.events import GenerationStarted, MemberRemoved
from coordinator_core.protocol.messages import JoinGroupResponse, SyncGroupResponse

RESERVE_AGAIN_MS = 100
"""How long after a failed write of a generation the next one is tried."""

CAN_START_ROUND = frozenset({GroupState.STABLE, GroupState.COMPLETING_REBALANCE, GroupState.EMPTY})


def start_or_continue(step: Step, group: Group, cause: str) -> None:
    """Start a round, or, where one is being prepared, end its join phase if nobody is missing."""
    if group.state in CAN_START_ROUND:
        start(step, group, cause)
    else:
        complete_if_all_joined(step, group)


def start(step: Step, group: Group, cause: str) -> None:
    """Begin a round: open joins, answer the syncs that wait (PROTOCOL 3.10), arm the join timer."""
    if group.state is GroupState.COMPLETING_REBALANCE:
        reset_assignments(step, group, ErrorCode.REBALANCE_IN_PROGRESS)
    step.cancel(TimerKind.SYNC, group)
    step.cancel(TimerKind.RETENTION, group)
    initial = group.state is GroupState.EMPTY
    step.move(group, GroupState.PREPARING_REBALANCE, cause)
    group.join_is_due = False
    _reserve_generation(step, group)
    if initial:
        _arm_initial_delay(step, group)
        return
    step.schedule(TimerKind.JOIN, group, group.rebalance_timeout_ms())
    if group.all_have_joined():
        complete_join(step, group)


def _arm_initial_delay(step: Step, group: Group) -> None:
    """KIP-134; never later than the rebalance timeout captured at the first join (C-10)."""
    delay = step.config.initial_rebalance_delay_ms
    group.member_added_in_initial_delay = False
    group.initial_delay_ms = delay
    group.initial_remaining_ms = max(group.rebalance_timeout_ms() - delay, 0)
    step.schedule(TimerKind.JOIN, group, delay)


def in_initial_delay(group: Group) -> bool:
    """Whether the first round of an Empty group is collecting members."""
    return group.state is GroupState.PREPARING_REBALANCE and group.previous_state is GroupState.EMPTY


def complete_if_all_joined(step: Step, group: Group) -> None:
    """End the join phase if nobody is missing; the initial delay is not cut short (C-11)."""
    preparing = group.state is GroupState.PREPARING_REBALANCE
    if preparing and not in_initial_delay(group) and group.all_have_joined():
        complete_join(step, group)


def on_join_timer(step: Step, group: Group) -> None:
    """The initial delay or the rebalance timeout has passed."""
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


def _reserve_generation(step: Step, group: Group) -> None:
    """Write down the generation that the round will hand out, so that no coordinator does so again."""
    wanted = group.next_generation()
    if group.reserved < wanted and not group.is_reserving:
        group.is_reserving = True
        step.append((GenerationRecord(group.group_id, wanted),), ReserveGeneration(group.group_id, wanted))


@dataclass(frozen=True, slots=True)
class ReserveGeneration:
    """Most often done long before everybody has joined; the join phase does not end before it."""

    group_id: str
    generation: int

    def completed(self, step: Step, error: ErrorCode) -> None:
        """Go on where the join phase waited for this; after a failure, a little later."""
        group = step.shard.groups.get(self.group_id)
        if group is None:
            return
        group.is_reserving = False
        if error is ErrorCode.NONE:
            group.reserved = max(group.reserved, self.generation)
        if group.state is not GroupState.PREPARING_REBALANCE:
            return
        if error is not ErrorCode.NONE:
            if group.join_is_due or (group.all_have_joined() and not in_initial_delay(group)):
                step.schedule(TimerKind.JOIN, group, RESERVE_AGAIN_MS)
        elif group.join_is_due:
            complete_join(step, group)
        else:
            complete_if_all_joined(step, group)  # an id may have become pending since (PROTOCOL 3.4)

    def abandoned(self, step: Step) -> None:
        """Nobody waits for it."""


def complete_join(step: Step, group: Group) -> None:
    """End the join phase (PROTOCOL 3.7), as soon as its generation is reserved."""
    if group.reserved < group.next_generation():
        _reserve_generation(step, group)
        return
    group.join_is_due = False
    step.cancel(TimerKind.JOIN, group)
    for member in list(group.members.values()):
        if member.joining is None and member.instance_id is None:
            drop_member(step, group, member, "did not rejoin within the rebalance timeout")
    if group.members and not group.elect_rejoined_leader():
        step.schedule(TimerKind.JOIN, group, max(group.rebalance_timeout_ms(), 1))  # 0 would never end
        return
    group.generation = group.next_generation()
    if group.members:
        _begin_sync_phase(step, group)
    else:
        become_empty(step, group)


def become_empty(step: Step, group: Group) -> None:
    """The last member has left: the generation has grown all the same (PROTOCOL 3.7)."""
    group.protocol_name = None
    group.leader = None
    group.emptied_at_ms = step.now_ms
    step.move(group, GroupState.EMPTY, "no member is left")
    arm_retention(step, group)
    step.append((GroupRecord(group.group_id, group.stored({}, step.now_ms)),), StoreEmptied())


def arm_retention(step: Step, group: Group) -> None:
    """An Empty group is looked at every so often: are its offsets past their time? (PROTOCOL 2.1)"""
    step.schedule(TimerKind.RETENTION, group, step.config.offsets_retention_check_ms)


@dataclass(frozen=True, slots=True)
class StoreEmptied:
    """Nobody waits for this write, and a failure is put right by the next one."""

    def completed(self, step: Step, error: ErrorCode) -> None:
        """Nothing to do."""

    def abandoned(self, step: Step) -> None:
        """Nothing to do."""


def _begin_sync_phase(step: Step, group: Group) -> None:
    group.protocol_name = group.choose_protocol()
    step.move(group, GroupState.COMPLETING_REBALANCE, "everybody has joined")
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
        step.restart_session(group, member.member_id)
        if member.joining is not None:
            answer_join(step, group, member)


def answer_join(step: Step, group: Group, member: Member) -> None:
    """Answer a parked JoinGroup with the current generation; only the leader is told of the members."""
    assert member.joining is not None
    leads = member.member_id == group.leader
    response = JoinGroupResponse(
        error=ErrorCode.NONE,
        generation_id=group.generation,
        protocol_type=group.protocol_type,
        protocol_name=group.protocol_name,
        leader=group.leader or "",
        member_id=member.member_id,
        members=group.described_members() if leads else (),
    )
    step.effects.reply(member.joining, response)
    member.joining = None


def refuse_join(step: Step, member: Member, error: ErrorCode) -> None:
    """Answer a parked JoinGroup, if there is one, with an error."""
    if member.joining is not None:
        step.effects.reply(member.joining, JoinGroupResponse(error=error, member_id=member.member_id))
        member.joining = None


def refuse_sync(step: Step, member: Member, error: ErrorCode) -> None:
    """Answer a parked SyncGroup, if there is one, with an error and an empty assignment."""
    if member.syncing is not None:
        step.effects.reply(member.syncing, SyncGroupResponse(error=error))
        member.syncing = None


def answer_sync(step: Step, group: Group, member: Member) -> None:
    """Answer a parked SyncGroup with the member's assignment."""
    if member.syncing is None:
        return
    response = SyncGroupResponse(
        error=ErrorCode.NONE,
        protocol_type=group.protocol_type,
        protocol_name=group.protocol_name,
        assignment=member.assignment,
    )
    step.effects.reply(member.syncing, response)
    member.syncing = None


def reset_assignments(step: Step, group: Group, error: ErrorCode) -> None:
    """Forget the assignments under way and tell those who wait for them; sessions start anew (C-31)."""
    for member in group.members.values():
        member.assignment = b""
        if member.syncing is not None:
            refuse_sync(step, member, error)
            step.restart_session(group, member.member_id)


def on_sync_timer(step: Step, group: Group) -> None:
    """Members that have not synced in time are removed, and a new round starts (PROTOCOL 4.3)."""
    if group.state not in (GroupState.COMPLETING_REBALANCE, GroupState.STABLE) or not group.pending_sync:
        return
    missing = [group.members[m] for m in group.pending_sync if m in group.members]
    for member in missing:
        drop_member(step, group, member, "did not sync within the rebalance timeout")
    names = ", ".join(m.member_id for m in missing)
    start_or_continue(step, group, f"{names} did not sync in time")


def drop_member(step: Step, group: Group, member: Member, reason: str) -> None:
    """Take a member out; whatever it has parked gets UNKNOWN_MEMBER_ID (C-37)."""
    refuse_join(step, member, ErrorCode.UNKNOWN_MEMBER_ID)
    refuse_sync(step, member, ErrorCode.UNKNOWN_MEMBER_ID)
    group.remove(member.member_id)
    step.cancel(TimerKind.SESSION, group, member.member_id)
    step.effects.events.append(MemberRemoved(group=group.group_id, member_id=member.member_id, reason=reason))
