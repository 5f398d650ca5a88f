"""JoinGroup v0-v9 (PROTOCOL 3, 6; KIP-134, 345, 394, 814).

Left out: authorisation, and the wording of `reason` in logs.
"""

from dataclasses import dataclass

from coordinator_core.coordinator.classic import rebalance
from coordinator_core.coordinator.classic.group import Group, Member
from coordinator_core.coordinator.classic.states import GroupState
from coordinator_core.coordinator.classic.subscriptions import topics_of
from coordinator_core.coordinator.records import GroupRecord
from coordinator_core.coordinator.shard import Step
from coordinator_core.coordinator.timers import TimerKind
from coordinator_core.protocol.error_codes import ErrorCode
from coordinator_core.protocol.events import MemberAdded, MemberRemoved, MemberReplaced
from coordinator_core.protocol.messages import (
    NO_MEMBER,
    JoinGroupProtocol,
    JoinGroupRequest,
    JoinGroupResponse,
)

KNOWN_IDS_SINCE = 4
SKIP_ASSIGNMENT_SINCE = 9


def invalid(step: Step, request: JoinGroupRequest) -> ErrorCode:
    """What is wrong with a request before any group is looked at (C-02)."""
    if not request.group_id:
        return ErrorCode.INVALID_GROUP_ID
    low, high = step.config.min_session_timeout_ms, step.config.max_session_timeout_ms
    if not low <= request.session_timeout_ms <= high:
        return ErrorCode.INVALID_SESSION_TIMEOUT
    return ErrorCode.NONE


def handle(step: Step, request_id: int, request: JoinGroupRequest) -> None:
    """Park the request, or answer it."""
    error = invalid(step, request)
    if error is not ErrorCode.NONE:
        _refuse(step, request_id, request.member_id, error)
        return
    group = step.shard.groups.get(request.group_id)
    if group is None:
        if request.member_id != NO_MEMBER:
            _refuse(step, request_id, request.member_id, ErrorCode.UNKNOWN_MEMBER_ID)
            return
        if not request.protocol_type or not request.protocols:
            _refuse(step, request_id, NO_MEMBER, ErrorCode.INCONSISTENT_GROUP_PROTOCOL)
            return
        group = step.shard.groups[request.group_id] = Group(request.group_id)
        group.emptied_at_ms = step.now_ms
        rebalance.arm_retention(step, group)
    if group.state is GroupState.DEAD:
        _refuse(step, request_id, request.member_id, ErrorCode.COORDINATOR_NOT_AVAILABLE)
    elif not _has_room(step, group, request.member_id):
        _turn_away(step, group, request_id, request.member_id)
    elif not group.supports(request.protocol_type, request.protocols):
        _refuse(step, request_id, request.member_id, ErrorCode.INCONSISTENT_GROUP_PROTOCOL)
    elif request.member_id == NO_MEMBER:
        _new_member(step, group, request_id, request)
    else:
        _known_id(step, group, request_id, request)


def _refuse(step: Step, request_id: int, member_id: str, error: ErrorCode) -> None:
    step.effects.reply(request_id, JoinGroupResponse(error=error, member_id=member_id))


def _has_room(step: Step, group: Group, member_id: str) -> bool:
    """PROTOCOL 3.1, C-08: while preparing, those who already wait count; later, the members do."""
    if group.state is GroupState.EMPTY:
        return True
    member = group.members.get(member_id)
    if group.state is GroupState.PREPARING_REBALANCE:
        waiting = sum(1 for _ in group.joining_members())
        return (member is not None and member.joining is not None) or waiting < step.config.max_size
    return member is not None or len(group.members) < step.config.max_size


def _turn_away(step: Step, group: Group, request_id: int, member_id: str) -> None:
    """The group is full: the id, if it was known, is so no more (C-08)."""
    if member_id in group.pending:
        step.cancel(TimerKind.PENDING_MEMBER, group, member_id)
    member = group.members.get(member_id)
    if member is not None:
        rebalance.drop_member(step, group, member, "the group is full")
    else:
        group.remove(member_id)
    _refuse(step, request_id, NO_MEMBER, ErrorCode.GROUP_MAX_SIZE_REACHED)
    rebalance.complete_if_all_joined(step, group)


def _new_member(step: Step, group: Group, request_id: int, request: JoinGroupRequest) -> None:
    instance_id = request.group_instance_id
    if instance_id is not None:
        member_id = step.new_member_id(instance_id)
        if instance_id in group.static_members:
            _replace(step, group, request_id, request, member_id)
        else:
            _add(step, group, request_id, request, member_id)
        return
    member_id = step.new_member_id(step.client_id)
    if request.version < KNOWN_IDS_SINCE:
        _add(step, group, request_id, request, member_id)
        return
    group.pending[member_id] = None
    step.schedule(TimerKind.PENDING_MEMBER, group, request.session_timeout_ms, member_id)
    _refuse(step, request_id, member_id, ErrorCode.MEMBER_ID_REQUIRED)


def _known_id(step: Step, group: Group, request_id: int, request: JoinGroupRequest) -> None:
    member_id = request.member_id
    if member_id in group.pending:
        if request.group_instance_id is not None:  # C-05: a pending id is never a static member's
            _refuse(step, request_id, member_id, ErrorCode.UNKNOWN_SERVER_ERROR)
            return
        step.cancel(TimerKind.PENDING_MEMBER, group, member_id)
        _add(step, group, request_id, request, member_id)
        return
    error = group.check_identity(member_id, request.group_instance_id)
    if error is ErrorCode.NONE:
        _rejoin(step, group, request_id, request)
    else:
        _refuse(step, request_id, member_id, error)


def _add(step: Step, group: Group, request_id: int, request: JoinGroupRequest, member_id: str) -> None:
    if not group.members:
        group.protocol_type = request.protocol_type
    member = Member(
        member_id,
        request.group_instance_id,
        step.client_id,
        step.client_host,
        request.session_timeout_ms,
        request.rebalance_timeout_ms,
        request.protocols,
        joining=request_id,
    )
    group.add(member)
    if rebalance.in_initial_delay(group):
        group.member_added_in_initial_delay = True
    step.schedule(TimerKind.SESSION, group, step.config.new_member_join_timeout_ms, member_id)
    step.effects.events.append(
        MemberAdded(group=group.group_id, member_id=member_id, instance_id=request.group_instance_id)
    )
    rebalance.start_or_continue(step, group, f"{member_id} joined")


def _rejoin(step: Step, group: Group, request_id: int, request: JoinGroupRequest) -> None:
    """PROTOCOL 3.9."""
    member = group.members[request.member_id]
    unchanged = member.protocols == request.protocols  # names in order, and bytes (C-21)
    leads = group.leader == member.member_id
    state = group.state
    if state is GroupState.COMPLETING_REBALANCE and unchanged:
        member.joining = request_id
        rebalance.answer_join(step, group, member)
        return
    if state is GroupState.STABLE and unchanged and not leads and not group.lost_a_round():
        member.joining = request_id
        rebalance.answer_join(step, group, member)
        return
    _take_over(member, request_id, request)
    step.restart_session(group, member.member_id)
    cause = f"{member.member_id} changed its metadata"
    if leads and unchanged:
        cause = f"the leader {member.member_id} rejoined"
    said = f" ({request.reason})" if request.reason else ""
    rebalance.start_or_continue(step, group, cause + said)


def _take_over(member: Member, request_id: int, request: JoinGroupRequest) -> None:
    member.protocols = request.protocols
    member.session_timeout_ms = request.session_timeout_ms
    member.rebalance_timeout_ms = request.rebalance_timeout_ms
    member.joining = request_id


def _replace(step: Step, group: Group, request_id: int, request: JoinGroupRequest, new_id: str) -> None:
    """A static member is back under its instance id (PROTOCOL 6.2, 6.3)."""
    assert request.group_instance_id is not None
    old_id = group.static_members[request.group_instance_id]
    member = group.members[old_id]
    rebalance.refuse_join(step, member, ErrorCode.FENCED_INSTANCE_ID)
    rebalance.refuse_sync(step, member, ErrorCode.FENCED_INSTANCE_ID)
    before = MemberBefore(
        old_id, member.protocols, member.session_timeout_ms, member.rebalance_timeout_ms, group.leader
    )
    group.replace(old_id, new_id)
    step.cancel(TimerKind.SESSION, group, old_id)
    _take_over(member, request_id, request)
    step.restart_session(group, new_id)
    step.effects.events.append(
        MemberReplaced(
            group=group.group_id,
            instance_id=request.group_instance_id,
            old_member_id=old_id,
            new_member_id=new_id,
        )
    )
    if group.state is not GroupState.STABLE:
        rebalance.start_or_continue(step, group, f"{new_id} came back during a rebalance")
        return
    if _must_rebalance(step, group, before, member):
        rebalance.start(step, group, f"{new_id} came back with other metadata")
        return
    stored = group.stored(group.assignments(), step.now_ms)
    write = StoreReplacement(group.group_id, group.generation, new_id, before, request.version)
    step.append((GroupRecord(group.group_id, stored),), write)


def _must_rebalance(step: Step, group: Group, before: "MemberBefore", member: Member) -> bool:
    """Kafka looks only at the choice of assignor (KAFKA-12759); ours may look at the subscription."""
    if group.choose_protocol() != group.protocol_name:
        return True
    if not step.config.notice_static_subscription:
        return False
    return topics_of(before.protocols).keys() != topics_of(member.protocols).keys()


@dataclass(frozen=True, slots=True)
class MemberBefore:
    """What a failed write of a replacement must restore (C-41)."""

    member_id: str
    protocols: tuple[JoinGroupProtocol, ...]
    session_timeout_ms: int
    rebalance_timeout_ms: int
    leader: str | None


@dataclass(frozen=True, slots=True)
class StoreReplacement:
    """The new id of a static member in a Stable group is stored before the member hears of it."""

    group_id: str
    generation: int
    new_id: str
    before: MemberBefore
    version: int

    def completed(self, step: Step, error: ErrorCode) -> None:
        """Answer with the old assignment's generation, or put the old id back; ignored if a round began."""
        group = step.shard.groups.get(self.group_id)
        member = group.members.get(self.new_id) if group is not None else None
        if group is None or member is None:
            return
        if group.state is not GroupState.STABLE or group.generation != self.generation:
            return  # the member is in a round, which stores its new id and answers it
        if error is not ErrorCode.NONE:
            self._restore(step, group, member, error)
        else:
            self._answer(step, group, member)

    def _answer(self, step: Step, group: Group, member: Member) -> None:
        if member.joining is None:
            return
        led = self.before.leader == self.before.member_id
        skips = led and self.version >= SKIP_ASSIGNMENT_SINCE
        response = JoinGroupResponse(
            error=ErrorCode.NONE,
            generation_id=group.generation,
            protocol_type=group.protocol_type,
            protocol_name=group.protocol_name,
            leader=self.new_id if skips else self.before.leader or "",
            skip_assignment=skips,
            member_id=self.new_id,
            members=group.described_members() if skips else (),
        )
        step.effects.reply(member.joining, response)
        member.joining = None
        step.restart_session(group, member.member_id)

    def _restore(self, step: Step, group: Group, member: Member, error: ErrorCode) -> None:
        if member.joining is not None:
            step.effects.reply(member.joining, JoinGroupResponse(error=error))
            member.joining = None
        step.cancel(TimerKind.SESSION, group, self.new_id)
        group.replace(self.new_id, self.before.member_id)
        member.protocols = self.before.protocols
        member.session_timeout_ms = self.before.session_timeout_ms
        member.rebalance_timeout_ms = self.before.rebalance_timeout_ms
        step.restart_session(group, member.member_id)
        step.effects.events.append(
            MemberRemoved(
                group=group.group_id,
                member_id=self.new_id,
                reason=f"the replacement could not be stored ({error.name}); {member.member_id} is back",
            )
        )

    def abandoned(self, step: Step) -> None:
        """The parked join is answered with the group's others."""
