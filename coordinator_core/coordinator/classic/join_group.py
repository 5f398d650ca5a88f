"""JoinGroup, versions 0-9 (PROTOCOL 3, 6; KIP-134, 345, 394, 800, 814). Not implemented: authorization."""

from coordinator_core.coordinator.classic import rebalance, replacement
from coordinator_core.coordinator.classic.group import ClassicGroup, Member, TimerKind, find
from coordinator_core.coordinator.classic.states import GroupState
from coordinator_core.coordinator.shard import Step
from coordinator_core.protocol.error_codes import NONE, ErrorCode
from coordinator_core.protocol.events import MemberAdded
from coordinator_core.protocol.messages import NO_MEMBER, JoinGroupRequest, JoinGroupResponse

KNOWN_IDS_SINCE = 4
_EMPTY, _DEAD, _STABLE = GroupState.EMPTY, GroupState.DEAD, GroupState.STABLE
_PREPARING, _COMPLETING = GroupState.PREPARING_REBALANCE, GroupState.COMPLETING_REBALANCE


def handle(step: Step, request_id: int, request: JoinGroupRequest) -> None:
    """Park the join until the round is complete, or answer it."""
    group = find(step, request.group_id)
    error = _check(step, group, request)
    if error:
        step.effects.reply(request_id, refused(request, error))
        return
    if group is None:
        group = _create(step, request.group_id)
    if not _has_room(step, group, request.member_id):
        _turn_away(step, group, request_id, request.member_id)
    elif not group.supports(request.protocol_type, request.protocols):
        step.effects.reply(request_id, refused(request, ErrorCode.INCONSISTENT_GROUP_PROTOCOL))
    elif request.member_id == NO_MEMBER:
        _new_member(step, group, request_id, request)
    else:
        _known_id(step, group, request_id, request)


def refused(request: JoinGroupRequest, error: ErrorCode) -> JoinGroupResponse:
    """Return an error."""
    return JoinGroupResponse(error=error, member_id=request.member_id)


def _check(step: Step, group: ClassicGroup | None, request: JoinGroupRequest) -> ErrorCode:
    """Check what does not depend on the members of the group."""
    low, high = step.config.min_session_timeout_ms, step.config.max_session_timeout_ms
    if not low <= request.session_timeout_ms <= high:
        return ErrorCode.INVALID_SESSION_TIMEOUT
    if group is None and request.member_id != NO_MEMBER:
        return ErrorCode.UNKNOWN_MEMBER_ID
    if group is None and not (request.protocol_type and request.protocols):
        return ErrorCode.INCONSISTENT_GROUP_PROTOCOL
    if group is not None and group.state is _DEAD:
        return ErrorCode.COORDINATOR_NOT_AVAILABLE
    return NONE


def _create(step: Step, group_id: str) -> ClassicGroup:
    """Create a group, in place of one without members, if there is one."""
    group = ClassicGroup(group_id)
    group.handed_out = group.reserved = step.shard.table.generations.get(group_id, 0)
    step.found(group)
    return group


def _has_room(step: Step, group: ClassicGroup, member_id: str) -> bool:
    """Return whether the group has room (PROTOCOL 3.1, C-08).

    In PreparingRebalance the members with a parked join count; in other states all members do.
    """
    if group.state is _EMPTY:
        return True
    if group.state is _PREPARING:
        return member_id in group.joins or len(group.joins) < step.config.max_size
    return member_id in group.members or len(group.members) < step.config.max_size


def _turn_away(step: Step, group: ClassicGroup, request_id: int, member_id: str) -> None:
    """Refuse a join to a full group; a known id becomes unknown (C-08)."""
    if member_id in group.pending:
        step.cancel(TimerKind.PENDING_MEMBER, group, member_id)
    member = group.members.get(member_id)
    if member is not None:
        rebalance.drop_member(step, group, member, "the group is full")
    else:
        group.remove(member_id)
    step.effects.reply(request_id, JoinGroupResponse(error=ErrorCode.GROUP_MAX_SIZE_REACHED))
    rebalance.complete_if_all_joined(step, group)


def _new_member(step: Step, group: ClassicGroup, request_id: int, request: JoinGroupRequest) -> None:
    instance_id = request.group_instance_id
    if instance_id is not None:
        member_id = step.new_member_id(instance_id)
        if instance_id in group.static_members:
            replacement.replace(step, group, request_id, request, member_id)
        else:
            _add(step, group, request_id, request, member_id)
        return
    member_id = step.new_member_id(step.client_id)
    if request.version < KNOWN_IDS_SINCE:
        _add(step, group, request_id, request, member_id)
        return
    group.pending[member_id] = None
    step.schedule(TimerKind.PENDING_MEMBER, group, request.session_timeout_ms, member_id)
    response = JoinGroupResponse(error=ErrorCode.MEMBER_ID_REQUIRED, member_id=member_id)
    step.effects.reply(request_id, response)


def _known_id(step: Step, group: ClassicGroup, request_id: int, request: JoinGroupRequest) -> None:
    member_id = request.member_id
    if member_id in group.pending:
        if request.group_instance_id is not None:  # C-05: a pending id is never a static member's
            step.effects.reply(request_id, refused(request, ErrorCode.UNKNOWN_SERVER_ERROR))
            return
        step.cancel(TimerKind.PENDING_MEMBER, group, member_id)
        _add(step, group, request_id, request, member_id)
        return
    error = group.check_identity(member_id, request.group_instance_id)
    if not error:
        _rejoin(step, group, request_id, request)
    else:
        step.effects.reply(request_id, refused(request, error))


def _add(step: Step, group: ClassicGroup, request_id: int, request: JoinGroupRequest, member_id: str) -> None:
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
    )
    group.add(member)
    group.joins[member_id] = request_id
    if rebalance.in_initial_delay(group):
        group.member_added_in_initial_delay = True
    step.schedule(TimerKind.SESSION, group, step.config.new_member_join_timeout_ms, member_id)
    step.effects.events.append(
        MemberAdded(group=group.group_id, member_id=member_id, instance_id=request.group_instance_id)
    )
    rebalance.start_or_continue(step, group, f"{member_id} joined")


def _rejoin(step: Step, group: ClassicGroup, request_id: int, request: JoinGroupRequest) -> None:
    """Handle the join of a member (PROTOCOL 3.9)."""
    member = group.members[request.member_id]
    unchanged = member.protocols == request.protocols  # names in order, and bytes (C-21)
    leads = group.leader == member.member_id
    state = group.state
    step.effects.supersede(group.joins.get(member.member_id))
    group.joins[member.member_id] = request_id
    follows = state is _STABLE and not leads and not group.lost_a_round()
    if unchanged and (follows or state is _COMPLETING):
        rebalance.answer_join(step, group, member)
        return
    group.update(member, request)
    group.restart_session(step, member.member_id)
    cause = f"{member.member_id} changed its metadata"
    if leads and unchanged:
        cause = f"the leader {member.member_id} rejoined"
    reason = f" ({request.reason})" if request.reason else ""
    rebalance.start_or_continue(step, group, cause + reason)
