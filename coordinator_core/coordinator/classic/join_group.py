"""JoinGroup, versions 0-9 (PROTOCOL 3, 6; KIP-134, 345, 394, 800, 814). Not implemented: authorization."""

from coordinator_core.coordinator.classic import rebalance, replacement
from coordinator_core.coordinator.classic.group import ClassicGroup, Member
from coordinator_core.coordinator.classic.states import GroupState
from coordinator_core.coordinator.expiry import delete_group, unattended
from coordinator_core.coordinator.round_group import TimerKind, has_valid_session
from coordinator_core.coordinator.shard import Step
from coordinator_core.protocol.error_codes import NONE, ErrorCode
from coordinator_core.protocol.messages import NO_MEMBER, JoinGroupRequest, JoinGroupResponse

KNOWN_IDS_SINCE = 4
_OF_COORDINATOR = frozenset(
    {
        ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
        ErrorCode.GROUP_AUTHORIZATION_FAILED,
        ErrorCode.NOT_COORDINATOR,
        ErrorCode.UNKNOWN_SERVER_ERROR,
    }
)


def handle(step: Step, request_id: int, request: JoinGroupRequest) -> None:
    """Park the join until the round is complete, or answer it."""
    group = step.find(request.group_id, ClassicGroup)
    error = _check(step, group, request)
    if error:
        step.effects.reply(request_id, refused(request, error))
        if error is ErrorCode.UNKNOWN_MEMBER_ID:
            _delete_other_kind(step, request.group_id)
        return
    is_new = request.group_id not in step.shard.groups
    if group is None:
        group = _founded(step, request.group_id)
    if not group.has_room(request.member_id, step.config.max_size):
        group.turn_away(step, request_id, request.member_id)
    elif not group.supports(request.protocol_type, request.protocols):
        step.effects.reply(request_id, refused(request, ErrorCode.INCONSISTENT_GROUP_PROTOCOL))
        if is_new:  # the group exists all the same; another one is stored with its first round
            group.store(step, {}, unattended)
    elif request.member_id == NO_MEMBER:
        _new_member(step, group, request_id, request)
    else:
        _known_id(step, group, request_id, request)


def _delete_other_kind(step: Step, group_id: str) -> None:
    """Delete an Empty group of another kind, because a member would join it that nobody knows, as Kafka does.

    Offsets stay.
    """
    group = step.shard.groups.get(group_id)
    if group is not None and group.family:
        delete_group(step, group, (), "a member of another protocol would join it")


def refused(request: JoinGroupRequest, error: ErrorCode) -> JoinGroupResponse:
    """Return an error, with the member id unless the coordinator itself has failed, as in Kafka."""
    member_id = NO_MEMBER if error in _OF_COORDINATOR else request.member_id
    return JoinGroupResponse(error=error, member_id=member_id)


def _check(step: Step, group: ClassicGroup | None, request: JoinGroupRequest) -> ErrorCode:
    """Check what does not depend on the members of the group."""
    if not has_valid_session(step, request.session_timeout_ms):
        return ErrorCode.INVALID_SESSION_TIMEOUT
    if group is None and request.member_id != NO_MEMBER and not _has_offsets_alone(step, request.group_id):
        return ErrorCode.UNKNOWN_MEMBER_ID
    if group is not None and group.state is GroupState.DEAD:
        return ErrorCode.COORDINATOR_NOT_AVAILABLE
    return NONE


def _has_offsets_alone(step: Step, group_id: str) -> bool:
    """Return whether a group exists because somebody has committed to it: it is a classic one for joins."""
    group = step.shard.groups.get(group_id)
    return group is not None and not group.family


def _founded(step: Step, group_id: str) -> ClassicGroup:
    """Return a new group. In the place of one of another kind it is stored at once."""
    before = step.shard.groups.get(group_id)
    is_of_another_kind = before is not None and bool(before.family)
    handed_out = 0 if is_of_another_kind else step.shard.table.generations.get(group_id, 0)
    group = step.found(ClassicGroup(group_id, handed_out))
    if is_of_another_kind:
        group.store(step, {}, unattended)
    return group


def _new_member(step: Step, group: ClassicGroup, request_id: int, request: JoinGroupRequest) -> None:
    instance_id = request.group_instance_id
    if instance_id in group.static_members:
        replacement.replace(step, group, request_id, request)
    elif instance_id is not None or request.version < KNOWN_IDS_SINCE:
        prefix = step.client_id if instance_id is None else instance_id
        _add(step, group, request_id, request, step.new_member_id(prefix))
    else:
        group.hand_out_id(step, request_id, request.session_timeout_ms)


def _known_id(step: Step, group: ClassicGroup, request_id: int, request: JoinGroupRequest) -> None:
    member_id, is_pending = request.member_id, request.member_id in group.pending
    error = NONE if is_pending else group.check_identity(member_id, request.group_instance_id)
    if is_pending and request.group_instance_id is not None:
        error = ErrorCode.UNKNOWN_SERVER_ERROR  # C-05: a pending id is never a static member's
    if error:
        step.effects.reply(request_id, refused(request, error))
    elif group.take_back_id(step, member_id):
        _add(step, group, request_id, request, member_id)
    else:
        _rejoin(step, group, request_id, request)


def _add(step: Step, group: ClassicGroup, request_id: int, request: JoinGroupRequest, member_id: str) -> None:
    if not group.members:
        group.protocol_type = request.protocol_type
    client, instance_id = (step.client_id, step.client_host), request.group_instance_id
    timeouts = request.session_timeout_ms, request.rebalance_timeout_ms
    group.add(Member(member_id, instance_id, *client, *timeouts, protocols=request.protocols))
    group.joins[member_id] = request_id
    step.schedule(TimerKind.SESSION, group, step.config.new_member_join_timeout_ms, member_id)
    step.effects.report_added(group.group_id, member_id, instance_id)
    rebalance.start_or_continue(step, group, f"{member_id} joined")


def _rejoin(step: Step, group: ClassicGroup, request_id: int, request: JoinGroupRequest) -> None:
    """Handle the join of a member (PROTOCOL 3.9)."""
    member = group.members[request.member_id]
    unchanged = member.protocols == request.protocols  # names in order, and bytes (C-21)
    leads = group.leader == member.member_id
    step.effects.supersede(group.joins.get(member.member_id))
    group.joins[member.member_id] = request_id
    follows = group.state is GroupState.STABLE and not leads and not group.lost_a_round()
    if unchanged and (follows or group.state is GroupState.COMPLETING_REBALANCE):
        rebalance.answer_join(step, group, member)
        return
    group.update(member, request)
    cause = f"{member.member_id} changed its metadata"
    if leads and unchanged:
        cause = f"the leader {member.member_id} rejoined"
    reason = f" ({request.reason})" if request.reason else ""
    rebalance.start_or_continue(step, group, cause + reason)
