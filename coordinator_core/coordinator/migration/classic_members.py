"""Members of a reconciled group that speak the classic protocol (PROTOCOL 11.9).

A join is answered at once: nobody waits for the others. The coordinator computes the assignments. A member
goes on to its own by joins: a heartbeat tells it to join, it gives up in one join, and gets more in the next.
"""

from collections.abc import Sequence
from functools import partial

from coordinator_core.coordinator.classic import join_group, leave_group
from coordinator_core.coordinator.migration.downgrade import common_protocol, downgrade
from coordinator_core.coordinator.reconcile.changes import Changes, submit
from coordinator_core.coordinator.reconcile.group import Asked, ReconcileGroup, TimerKind
from coordinator_core.coordinator.reconcile.members import admit, advance, check_identity, take_over
from coordinator_core.coordinator.reconcile.state import Classic, GroupState, Member, MemberState
from coordinator_core.coordinator.round_group import has_valid_session
from coordinator_core.coordinator.shard import Step
from coordinator_core.errors import ProtocolError
from coordinator_core.model import Partitions, Subscription
from coordinator_core.protocol import messages as m
from coordinator_core.protocol.consumer_protocol import PROTOCOL_TYPE, decode_subscription, encode_assignment
from coordinator_core.protocol.error_codes import NONE, ErrorCode


def speaking_classic(
    client: tuple[str, str],
    instance_id: str | None,
    timeouts_ms: tuple[int, int],
    protocols: Sequence[m.JoinGroupProtocol],
    subscription: Subscription,
) -> Member:
    """Return a member as its group has it.

    ``client``: its client id and host. ``timeouts_ms``: of its session, and of rebalances.
    """
    session_ms, rebalance_ms = timeouts_ms
    listed = tuple((p.name, p.metadata) for p in protocols)
    classic, topics = Classic(session_ms, listed), tuple(subscription.topics)
    return Member(*client, instance_id, subscription.rack, rebalance_ms, topics, None, None, classic=classic)


def _group(step: Step, group_id: str) -> ReconcileGroup:
    group = step.find(group_id, ReconcileGroup)
    assert group is not None
    return group


# --- JoinGroup


def join(step: Step, request_id: int, request: m.JoinGroupRequest) -> None:
    """Let the member in, or take over what it tells, and answer at once with its epoch as the generation."""
    refused = partial(join_group.refused, request)
    subscription = _readable(request)
    if not has_valid_session(step, request.session_timeout_ms):
        step.effects.reply(request_id, refused(ErrorCode.INVALID_SESSION_TIMEOUT))
        return
    if subscription is None:
        step.effects.reply(request_id, refused(ErrorCode.INCONSISTENT_GROUP_PROTOCOL))
        return
    instance_id, member_id = request.group_instance_id, request.member_id
    if not member_id:
        member_id = step.new_member_id(step.client_id if instance_id is None else instance_id)
        if instance_id is None and request.version >= join_group.KNOWN_IDS_SINCE:
            response = m.JoinGroupResponse(error=ErrorCode.MEMBER_ID_REQUIRED, member_id=member_id)
            step.effects.reply(request_id, response)
            return
    client, timeouts_ms = (
        (step.client_id, step.client_host),
        (request.session_timeout_ms, request.rebalance_timeout_ms),
    )
    told = speaking_classic(client, instance_id, timeouts_ms, request.protocols, subscription)

    def task(changes: Changes) -> None:
        found = _join(changes, member_id, told, subscription, is_new=not request.member_id)
        response = refused(found) if isinstance(found, ErrorCode) else found
        changes.effects.reply(request_id, response)

    submit(step, _group(step, request.group_id), task, Asked(request_id, refused))


def _readable(request: m.JoinGroupRequest) -> Subscription | None:
    """Return the subscription in a join; None if it is none of a consumer, or cannot be read."""
    if request.protocol_type != PROTOCOL_TYPE or not request.protocols:
        return None
    try:
        return decode_subscription(request.protocols[0].metadata)
    except ProtocolError:
        return None


def _join(
    changes: Changes, member_id: str, told: Member, subscription: Subscription, *, is_new: bool
) -> m.JoinGroupResponse | ErrorCode:
    state, group, classic = changes.state, changes.group, told.classic
    assert classic is not None
    error = _may_join(state, member_id, told, subscription, is_new=is_new)
    replaced = told.instance_id is not None and told.instance_id in state.instances and is_new
    error = error or admit(changes, member_id, told.instance_id, classic=True)
    if error:
        return error
    take_over(changes, member_id, told)
    name = classic.protocols[0][0]
    others = [member.classic for member in changes.state.members.values() if member.classic is not None]
    if replaced and downgrade(changes, in_a_round=False):
        epoch, name = changes.state.epoch, common_protocol(others)
    else:
        epoch = advance(changes, member_id, tuple(sorted(subscription.owned))).epoch
        changes.follow.append(lambda step: _await_sync(step, group, member_id))
    return m.JoinGroupResponse(
        error=NONE,
        generation_id=epoch,
        protocol_type=PROTOCOL_TYPE,
        protocol_name=name,
        member_id=member_id,
    )


def _may_join(
    state: GroupState, member_id: str, told: Member, subscription: Subscription, *, is_new: bool
) -> ErrorCode:
    """Check a join. An id that the group does not have is that of a new member only if it owns nothing."""
    if not state.members:
        return ErrorCode.REBALANCE_IN_PROGRESS  # it joins a classic group then
    is_known = member_id in state.members or told.instance_id is not None or bool(subscription.owned)
    error = NONE
    if is_known and not is_new:
        error = check_identity(state, member_id, told.instance_id, classic=True)
    return error if error or _fits(state, told) else ErrorCode.INCONSISTENT_GROUP_PROTOCOL


def _fits(state: GroupState, told: Member) -> bool:
    """Return whether every member of the classic protocol has one of the assignors."""
    assert told.classic is not None
    names = {name for name, _ in told.classic.protocols}
    for member in state.members.values():
        if member.classic is not None:
            names &= {name for name, _ in member.classic.protocols}
    return bool(names)


def _await_sync(step: Step, group: ReconcileGroup, member_id: str) -> None:
    if member_id not in group.members:  # a later change of the same write has removed it
        return
    step.cancel(TimerKind.JOIN, group, member_id)
    group.begin_session(step, member_id)
    step.schedule(TimerKind.SYNC, group, group.members[member_id].rebalance_timeout_ms, member_id)


# --- SyncGroup and Heartbeat


def _check(group: ReconcileGroup, request: m.SyncGroupRequest | m.HeartbeatRequest) -> ErrorCode:
    """Check that the request is of a member that speaks the classic protocol, in its generation."""
    state = group.durable
    error = check_identity(state, request.member_id, request.group_instance_id, classic=True)
    if error:
        return error
    epoch = state.currents[request.member_id].epoch
    return NONE if request.generation_id == epoch else ErrorCode.ILLEGAL_GENERATION


def sync(step: Step, request_id: int, request: m.SyncGroupRequest) -> None:
    """Answer with what the member may own now, in the version of its subscription."""
    group = _group(step, request.group_id)
    step.effects.reply(request_id, _synced(step, group, request))


def _synced(step: Step, group: ReconcileGroup, request: m.SyncGroupRequest) -> m.SyncGroupResponse:
    member_id, state = request.member_id, group.durable
    error = _check(group, request)
    if error:
        return m.SyncGroupResponse(error=error)
    classic, current = state.members[member_id].classic, state.currents[member_id]
    assert classic is not None
    # First, because the join before an upgrade was answered with the assignor of the classic group.
    if state.epoch > current.epoch and current.state is not MemberState.UNREVOKED:
        _await_join(step, group, member_id)
        return m.SyncGroupResponse(error=ErrorCode.REBALANCE_IN_PROGRESS)
    name, subscription = classic.protocols[0]
    if request.protocol_type not in (None, PROTOCOL_TYPE) or request.protocol_name not in (None, name):
        return m.SyncGroupResponse(error=ErrorCode.INCONSISTENT_GROUP_PROTOCOL)
    step.cancel(TimerKind.SYNC, group, member_id)
    group.begin_session(step, member_id)
    version = int.from_bytes(subscription[:2], "big")
    assignment = encode_assignment(Partitions.of(current.assigned), version=version)
    return m.SyncGroupResponse(
        error=NONE, protocol_type=PROTOCOL_TYPE, protocol_name=name, assignment=assignment
    )


def heartbeat(step: Step, request_id: int, request: m.HeartbeatRequest) -> None:
    """Answer whether the member is to join: its share has changed, or what it waits for is free."""
    group = _group(step, request.group_id)
    error = _check(group, request)
    if not error:
        group.begin_session(step, request.member_id)
        if _is_to_join(group.durable, request.member_id):
            _await_join(step, group, request.member_id)
            error = ErrorCode.REBALANCE_IN_PROGRESS
    step.effects.reply(request_id, m.HeartbeatResponse(error=error))


def _is_to_join(state: GroupState, member_id: str) -> bool:
    current = state.currents[member_id]
    if current.epoch < state.epoch or current.state is MemberState.UNREVOKED:
        return True
    if current.state is MemberState.STABLE:
        return False
    return all(state.holders.get(tp, member_id) == member_id for tp in state.shares.get(member_id, ()))


def _await_join(step: Step, group: ReconcileGroup, member_id: str) -> None:
    """Begin the time in which the member has to join, if it has not begun."""
    if not step.timers.is_set(TimerKind.JOIN, group.group_id, member_id):
        step.schedule(TimerKind.JOIN, group, group.members[member_id].rebalance_timeout_ms, member_id)


# --- LeaveGroup


def leave(step: Step, request_id: int, request: m.LeaveGroupRequest) -> None:
    """Remove the members that speak the classic protocol. Each gets its own error code."""

    def task(changes: Changes) -> None:
        members = tuple(
            m.LeaveGroupMemberResponse(each.member_id, each.group_instance_id, _leave(changes, each))
            for each in request.members
        )
        changes.effects.reply(request_id, m.LeaveGroupResponse(error=NONE, members=members))

    asked = Asked(request_id, partial(leave_group.refused, request))
    submit(step, _group(step, request.group_id), task, asked)


def _leave(changes: Changes, identity: m.MemberIdentity) -> ErrorCode:
    member_id, instance_id = identity.member_id, identity.group_instance_id
    if not member_id and instance_id is not None:
        member_id = changes.state.instances.get(instance_id, "")
    error = check_identity(changes.state, member_id, instance_id, classic=True)
    if not error:
        changes.remove({member_id: identity.reason or "left"}, f"{member_id} left")
    return error
