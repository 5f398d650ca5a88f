"""Members of a reconciled group that speak the classic protocol (PROTOCOL 11.9).

A join is answered at once: nobody waits for the others. The coordinator computes the assignments. A member
goes on to its own by joins: a heartbeat tells it to join, it gives up in one join, and gets more in the next.
"""

from collections.abc import Collection, Sequence
from functools import partial

import msgspec

from coordinator_core.coordinator.classic import join_group, leave_group
from coordinator_core.coordinator.kafka_versions import Rule
from coordinator_core.coordinator.migration.downgrade import become_classic, may_become_classic
from coordinator_core.coordinator.reconcile.changes import Changes, submit
from coordinator_core.coordinator.reconcile.group import Asked, ReconcileGroup, TimerKind
from coordinator_core.coordinator.reconcile.members import (
    advance,
    check_identity,
    has_room,
    replace,
    take_over,
)
from coordinator_core.coordinator.reconcile.state import Classic, GroupState, Member, MemberState
from coordinator_core.coordinator.round_group import has_valid_session
from coordinator_core.coordinator.shard import Step
from coordinator_core.errors import ProtocolError
from coordinator_core.model import Partitions, Subscription
from coordinator_core.protocol import messages as m
from coordinator_core.protocol.consumer_protocol import PROTOCOL_TYPE, decode_subscription, encode_assignment
from coordinator_core.protocol.error_codes import NONE, ErrorCode
from coordinator_core.protocol.messages import NO_MEMBER


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
    rack = subscription.rack or None
    return Member(*client, instance_id, rack, rebalance_ms, topics, None, None, classic=classic)


def _group(step: Step, group_id: str) -> ReconcileGroup:
    group = step.find(group_id, ReconcileGroup)
    assert group is not None
    return group


# --- JoinGroup


def join(step: Step, request_id: int, request: m.JoinGroupRequest) -> None:
    """Let the member in, or take over what it tells, and answer at once with its epoch as the generation."""
    if not has_valid_session(step, request.session_timeout_ms):
        refused = join_group.refused(request, ErrorCode.INVALID_SESSION_TIMEOUT)
        step.effects.reply(request_id, refused)
        return
    prefix = step.client_id if request.group_instance_id is None else request.group_instance_id
    member_id = request.member_id or step.new_member_id(prefix)
    client = step.client_id, step.client_host

    def task(changes: Changes) -> None:
        found = _join(changes, member_id, request, client)
        changes.effects.reply(request_id, _refused(found) if isinstance(found, ErrorCode) else found)

    submit(step, _group(step, request.group_id), task, Asked(request_id, _refused))


def _refused(error: ErrorCode) -> m.JoinGroupResponse:
    """Return an error. Unlike that of a classic group it does not repeat the member id."""
    return m.JoinGroupResponse(error=error)


def _join(
    changes: Changes, member_id: str, request: m.JoinGroupRequest, client: tuple[str, str]
) -> m.JoinGroupResponse | ErrorCode:
    state, group, instance_id = changes.state, changes.group, request.group_instance_id
    error = _may_join(changes, member_id, request)
    if error:
        return error
    is_new = request.member_id == NO_MEMBER
    if is_new and instance_id is None and request.version >= join_group.KNOWN_IDS_SINCE:
        return m.JoinGroupResponse(error=ErrorCode.MEMBER_ID_REQUIRED, member_id=member_id)
    if instance_id is not None and not is_new:
        error = check_identity(state, member_id, instance_id)
        if error:
            return error
    subscription = _readable(request)
    if subscription is None:
        return ErrorCode.INCONSISTENT_GROUP_PROTOCOL
    of_instance = None if instance_id is None else state.instances.get(instance_id)
    is_last = of_instance is not None and _is_last_of_consumers(state, of_instance)
    changes.ends = is_last and may_become_classic(changes, len(state.members))
    if of_instance is not None and of_instance != member_id:
        replace(changes, of_instance, member_id)
    generation = state.epoch
    timeouts_ms = request.session_timeout_ms, request.rebalance_timeout_ms
    told = speaking_classic(client, instance_id, timeouts_ms, request.protocols, subscription)
    told = _with_what_it_keeps(told, changes.state.members.get(member_id))
    taken = take_over(changes, member_id, told)
    has_changed = changes.state.epoch > changes.state.target.epoch
    if not (changes.ends and has_changed):
        advance(changes, member_id, tuple(sorted(subscription.owned)), taken)
    epoch = changes.state.currents[member_id].epoch
    if changes.ends:
        become_classic(changes, generation, in_a_round=has_changed, joining=member_id)
    else:
        changes.follow.append(lambda step: _await_sync(step, group, member_id))
    return m.JoinGroupResponse(
        error=NONE,
        generation_id=epoch,
        protocol_type=PROTOCOL_TYPE,
        protocol_name=request.protocols[0].name,
        member_id=member_id,
    )


def _may_join(changes: Changes, member_id: str, request: m.JoinGroupRequest) -> ErrorCode:
    """Check what does not depend on the member itself."""
    state = changes.state
    if not state.members:
        return ErrorCode.REBALANCE_IN_PROGRESS  # it joins a classic group then
    if not changes.group.settings.admits_classic:
        return ErrorCode.INCONSISTENT_GROUP_PROTOCOL
    if not has_room(changes, member_id, request.group_instance_id):
        return ErrorCode.GROUP_MAX_SIZE_REACHED
    fits = request.protocol_type == PROTOCOL_TYPE and _fits(state, [p.name for p in request.protocols])
    return NONE if fits else ErrorCode.INCONSISTENT_GROUP_PROTOCOL


def _fits(state: GroupState, names: Collection[str]) -> bool:
    """Return whether every member of the classic protocol has one of the assignors."""
    common = set(names)
    for member in state.members.values():
        if member.classic is not None:
            common &= {name for name, _ in member.classic.protocols}
    return bool(common)


def _readable(request: m.JoinGroupRequest) -> Subscription | None:
    """Return the subscription for the first assignor of a join; None if it cannot be read."""
    try:
        return decode_subscription(request.protocols[0].metadata)
    except ProtocolError:
        return None


def _is_last_of_consumers(state: GroupState, member_id: str) -> bool:
    """Return whether a member speaks the consumer protocol, and no other member does."""
    return [name for name, member in state.members.items() if member.classic is None] == [member_id]


def _with_what_it_keeps(told: Member, known: Member | None) -> Member:
    """Return a member that joins again, with what it had told before where a join says nothing."""
    if known is None:
        return told
    return msgspec.structs.replace(
        told,
        instance_id=told.instance_id or known.instance_id,
        rack=told.rack or known.rack,
        rebalance_timeout_ms=known.rebalance_timeout_ms
        if told.rebalance_timeout_ms < 0
        else told.rebalance_timeout_ms,
        assignor=known.assignor,
    )


def _await_sync(step: Step, group: ReconcileGroup, member_id: str) -> None:
    if member_id not in group.members:  # a later change of the same write has removed it
        return
    step.cancel(TimerKind.JOIN, group, member_id)
    group.begin_session(step, member_id)
    step.schedule(TimerKind.SYNC, group, group.members[member_id].rebalance_timeout_ms, member_id)


# --- SyncGroup and Heartbeat


def _check(state: GroupState, request: m.SyncGroupRequest | m.HeartbeatRequest) -> ErrorCode:
    """Check that the request is of a member that speaks the classic protocol, in its generation."""
    member_id = request.member_id
    error = check_identity(state, member_id, request.group_instance_id)
    if error or state.members[member_id].classic is None:
        return error or ErrorCode.UNKNOWN_MEMBER_ID
    epoch = state.currents[member_id].epoch
    return NONE if request.generation_id == epoch else ErrorCode.ILLEGAL_GENERATION


def sync(step: Step, request_id: int, request: m.SyncGroupRequest) -> None:
    """Answer with what the member may own now, in the version of its subscription."""
    submit(
        step,
        _group(step, request.group_id),
        lambda changes: changes.effects.reply(request_id, _synced(changes, request)),
        Asked(request_id, lambda error: m.SyncGroupResponse(error=error)),
    )


def _synced(changes: Changes, request: m.SyncGroupRequest) -> m.SyncGroupResponse:
    member_id, state, group = request.member_id, changes.state, changes.group
    error = _check(state, request)
    if error:
        return m.SyncGroupResponse(error=error)
    classic, current = state.members[member_id].classic, state.currents[member_id]
    assert classic is not None
    name, subscription = classic.protocols[0]
    if request.protocol_type not in (None, PROTOCOL_TYPE) or request.protocol_name not in (None, name):
        return m.SyncGroupResponse(error=ErrorCode.INCONSISTENT_GROUP_PROTOCOL)
    if _is_called(changes, member_id) and current.state is not MemberState.UNREVOKED:
        changes.follow.append(lambda step: _await_join(step, group, member_id))
        return m.SyncGroupResponse(error=ErrorCode.REBALANCE_IN_PROGRESS)

    def follow(step: Step) -> None:
        step.cancel(TimerKind.SYNC, group, member_id)
        group.begin_session(step, member_id)

    changes.follow.append(follow)
    version = int.from_bytes(subscription[:2], "big")
    assignment = encode_assignment(Partitions.of(current.assigned), version=version)
    return m.SyncGroupResponse(
        error=NONE,
        protocol_type=request.protocol_type,
        protocol_name=request.protocol_name,
        assignment=assignment,
    )


def heartbeat(step: Step, request_id: int, request: m.HeartbeatRequest) -> None:
    """Answer whether the member is to join: there is a new target, or what it waits for is free."""
    group, member_id = _group(step, request.group_id), request.member_id

    def task(changes: Changes) -> None:
        error = _check(changes.state, request)
        if not error:
            changes.follow.append(lambda step: group.begin_session(step, member_id))
            if _is_to_join(changes, member_id):
                changes.follow.append(lambda step: _await_join(step, group, member_id))
                error = ErrorCode.REBALANCE_IN_PROGRESS
        changes.effects.reply(request_id, m.HeartbeatResponse(error=error))

    submit(step, group, task, Asked(request_id, lambda error: m.HeartbeatResponse(error=error)))


def _is_to_join(changes: Changes, member_id: str) -> bool:
    state, current = changes.state, changes.state.currents[member_id]
    if _is_called(changes, member_id) or current.state is MemberState.UNREVOKED:
        return True
    if current.state is MemberState.STABLE:
        return False
    return all(state.holders.get(tp, member_id) == member_id for tp in state.shares.get(member_id, ()))


def _is_called(changes: Changes, member_id: str) -> bool:
    """Return whether a member is to join because the group has gone on.

    A change of the group alone is no reason: who joins before there is a target for it gets nothing new.
    """
    state, settings = changes.state, changes.group.settings
    by_target = settings.has(Rule.TARGET_CALLS_CLASSIC_MEMBERS)
    return state.currents[member_id].epoch < (state.target.epoch if by_target else state.epoch)


def _await_join(step: Step, group: ReconcileGroup, member_id: str) -> None:
    """Begin the time in which the member has to join, if it has not begun."""
    if member_id in group.members and not step.timers.is_set(TimerKind.JOIN, group.group_id, member_id):
        step.schedule(TimerKind.JOIN, group, group.members[member_id].rebalance_timeout_ms, member_id)


# --- LeaveGroup


def leave(step: Step, request_id: int, request: m.LeaveGroupRequest) -> None:
    """Remove members, of either protocol, in one change of the group. Each gets its own error code."""

    def task(changes: Changes) -> None:
        reasons, answers = dict[str, str](), []
        for each in request.members:
            member_id, error = _leaving(changes.state, each)
            if not error:
                reasons[member_id] = each.reason or "left"
            answers.append(m.LeaveGroupMemberResponse(each.member_id, each.group_instance_id, error))
        if reasons:
            changes.remove(reasons, f"{', '.join(reasons)} left")
        changes.effects.reply(request_id, m.LeaveGroupResponse(error=NONE, members=tuple(answers)))

    asked = Asked(request_id, partial(leave_group.refused, request))
    submit(step, _group(step, request.group_id), task, asked)


def _leaving(state: GroupState, identity: m.MemberIdentity) -> tuple[str, ErrorCode]:
    """Return the member that leaves. The instance id alone is enough for a static one."""
    member_id, instance_id = identity.member_id, identity.group_instance_id
    if not member_id and instance_id is not None:
        member_id = state.instances.get(instance_id, "")
    return member_id, check_identity(state, member_id, instance_id)
