"""ConsumerGroupHeartbeat: joins, reports and leaves (PROTOCOL 11.8)."""

from typing import TypeAlias

import msgspec

from coordinator_core.coordinator.reconcile.changes import Changes, submit
from coordinator_core.coordinator.reconcile.group import Computing, ReconcileGroup, Subscriber, TimerKind
from coordinator_core.coordinator.reconcile.reconciliation import advanced
from coordinator_core.coordinator.reconcile.settings import ReconcileSettings
from coordinator_core.coordinator.reconcile.state import (
    CURRENT,
    MEMBER,
    SHARE,
    TARGET,
    Current,
    GroupState,
    Member,
    MemberState,
    Target,
)
from coordinator_core.coordinator.shard import Step
from coordinator_core.protocol import reconcile as m
from coordinator_core.protocol.error_codes import NONE, ErrorCode
from coordinator_core.protocol.reconcile import JOINS, LEAVES_FOR_A_WHILE

Request: TypeAlias = m.ConsumerGroupHeartbeatRequest
Response: TypeAlias = m.ConsumerGroupHeartbeatResponse

MEMBER_MAKES_ID = 1
"""The version from which on a member makes its id itself."""


def refused(request: Request, error: ErrorCode, message: str | None = None) -> Response:
    """Return an error. GROUP_ID_NOT_FOUND without a message is that of a group of another family."""
    if error is ErrorCode.GROUP_ID_NOT_FOUND and message is None:
        message = not_reconciled(request.group_id)
    return Response(error=error, message=message, member_id=request.member_id)


def not_reconciled(group_id: str) -> str:
    """Return the message for a request to a group of another family."""
    return f"Group {group_id} is not a consumer group."


def not_found(group_id: str) -> str:
    """Return the message for a request to an unknown group."""
    return f"Group {group_id} not found."


def handle(
    computing: Computing,
    settings: ReconcileSettings,
    step: Step,
    request_id: int,
    request: Request,
) -> None:
    """Answer a request, when the records of its changes are written."""
    error, message = _invalid(computing, request)
    group = step.find(request.group_id, ReconcileGroup)
    if group is None and not error and request.member_epoch != JOINS:
        error, message = ErrorCode.GROUP_ID_NOT_FOUND, not_found(request.group_id)
    if error:
        step.effects.reply(request_id, refused(request, error, message))
        return
    if group is None:
        group = step.found(ReconcileGroup(request.group_id, computing, settings, GroupState()))
    if not request.member_id:
        request = msgspec.structs.replace(request, member_id=step.new_member_id(step.client_id))
    client = step.client_id, step.client_host

    def task(changes: Changes) -> None:
        leaves = request.member_epoch < JOINS
        found = _leave(changes, request) if leaves else _reconcile(changes, request, client)
        response = refused(request, found) if isinstance(found, ErrorCode) else found
        changes.effects.reply(request_id, response)

    submit(step, group, task)


def _invalid(computing: Computing, request: Request) -> tuple[ErrorCode, str | None]:
    """Check a request without the group. Return the error and its message."""
    message = _malformed(request)
    if message:
        return ErrorCode.INVALID_REQUEST, message
    if request.server_assignor is not None and request.server_assignor not in computing.assignors:
        supported = ", ".join(computing.assignors)
        message = f"ServerAssignor {request.server_assignor} is not supported. Supported: {supported}."
        return ErrorCode.UNSUPPORTED_ASSIGNOR, message
    if request.subscribed_topic_regex:
        try:
            computing.matching(request.subscribed_topic_regex)
        except ValueError as error:
            message = f"SubscribedTopicRegex `{request.subscribed_topic_regex}` is not valid: {error}."
            return ErrorCode.INVALID_REGULAR_EXPRESSION, message
    return NONE, None


def _malformed(request: Request) -> str:
    """Return the message for the first wrong field of a request, or ""."""
    makes_id = request.version >= MEMBER_MAKES_ID or request.member_epoch != JOINS
    has_topics = request.subscribed_topic_names is not None or request.subscribed_topic_regex is not None
    joins, stays_away = request.member_epoch == JOINS, request.member_epoch == LEAVES_FOR_A_WHILE
    no_timeout = "RebalanceTimeoutMs must be provided when (re-)joining."
    no_topics = "Either SubscribedTopicNames or SubscribedTopicRegex must be provided when (re-)joining."
    rules = (
        (not request.group_id, "GroupId can't be empty."),
        (makes_id and not request.member_id, "MemberId can't be empty."),
        (request.instance_id == "", "InstanceId can't be empty."),
        (request.rack_id == "", "RackId can't be empty."),
        (request.member_epoch < LEAVES_FOR_A_WHILE, "MemberEpoch is invalid."),
        (stays_away and request.instance_id is None, "InstanceId can't be null."),
        (joins and request.rebalance_timeout_ms <= 0, no_timeout),
        (joins and request.topic_partitions != (), "TopicPartitions must be empty when (re-)joining."),
        (joins and not has_topics, no_topics),
    )
    return next((message for is_broken, message in rules if is_broken), "")


# --- leaving


def _leave(changes: Changes, request: Request) -> Response | ErrorCode:
    """Remove the member; a static one that leaves for a while keeps its partitions.

    What it was to give up is free then: it works on nothing.
    """
    member_id, state = request.member_id, changes.state
    error = _unknown(state, request)
    if error:
        return error
    if request.member_epoch == LEAVES_FOR_A_WHILE:
        if state.members[member_id].instance_id is None:
            return ErrorCode.UNKNOWN_MEMBER_ID
        current = state.currents[member_id]
        away = Current(LEAVES_FOR_A_WHILE, current.previous_epoch, assigned=current.assigned)
        changes.put(CURRENT, member_id, away)
        changes.follow.append(lambda step: step.cancel(TimerKind.REBALANCE, changes.group, member_id))
        changes.show(f"{member_id} left for a while")
    else:
        changes.remove(member_id, "left", f"{member_id} left")
    return Response(error=NONE, member_id=member_id, member_epoch=request.member_epoch)


def _unknown(state: GroupState, request: Request) -> ErrorCode:
    """Return the error for a request of no member, or of one whose instance id another member has."""
    if request.instance_id is not None:
        known = state.instances.get(request.instance_id)
        if known is not None and known != request.member_id:
            return ErrorCode.FENCED_INSTANCE_ID
    return NONE if request.member_id in state.members else ErrorCode.UNKNOWN_MEMBER_ID


# --- joining and reporting


def _reconcile(changes: Changes, request: Request, client: tuple[str, str]) -> Response | ErrorCode:
    """Admit or update the member, compute the shares if the group has changed, and take the next step."""
    error = _admit(changes, request) if request.member_epoch == JOINS else _check(changes.state, request)
    if error:
        return error
    member_id, group = request.member_id, changes.group
    _update(changes, request, client)
    if changes.state.epoch > changes.state.target.epoch:
        _compute(changes)
    state, before = changes.state, changes.state.currents[member_id]
    share = state.shares.get(member_id, ())
    owned = request.topic_partitions
    current = advanced(member_id, before, share, state.target.epoch, owned, state.holders)
    if current is not before and current != before:
        changes.put(CURRENT, member_id, current)
        changes.show("all members have reached their shares")
        _time_revocation(changes, member_id, before, current)
    if owned is not None:
        reported = frozenset(owned)
        changes.follow.append(lambda _: group.reported.__setitem__(member_id, reported))
    else:
        reported = group.reported.get(member_id, frozenset(before.assigned))
    changes.follow.append(lambda step: group.begin_session(step, member_id))
    is_known = request.member_epoch != JOINS and _knows(current, before, reported)
    return Response(
        error=NONE,
        member_id=member_id,
        member_epoch=current.epoch,
        heartbeat_interval_ms=group.settings.heartbeat_interval_ms,
        assignment=None if is_known else current.assigned,
    )


def _knows(current: Current, before: Current, reported: frozenset[object]) -> bool:
    """Return whether a member has reported that it owns just what it may own."""
    return current.assigned == before.assigned and reported == frozenset(current.assigned)


def _check(state: GroupState, request: Request) -> ErrorCode:
    """Check the epoch of a member.

    It may be the one before, if the response with the present one was lost: then the member reports
    partitions that it may own.
    """
    error = _unknown(state, request)
    if error:
        return error
    current = state.currents[request.member_id]
    if request.member_epoch == current.epoch:
        return NONE
    owned = request.topic_partitions
    repeats = request.member_epoch == current.previous_epoch and owned is not None
    if repeats and owned is not None and frozenset(owned) <= frozenset(current.assigned):
        return NONE
    return ErrorCode.FENCED_MEMBER_EPOCH


def _admit(changes: Changes, request: Request) -> ErrorCode:
    """Let a member in that is new, or that joins again. A static one may take the place of its old id."""
    member_id, state = request.member_id, changes.state
    known = None if request.instance_id is None else state.instances.get(request.instance_id)
    if known is not None and known != member_id:
        current = state.currents[known]
        if current.epoch != LEAVES_FOR_A_WHILE:
            return ErrorCode.UNRELEASED_INSTANCE_ID
        member, share = state.members[known], state.shares.get(known, ())
        changes.delete(known)
        changes.put(MEMBER, member_id, member)
        changes.put(SHARE, member_id, share)
        changes.put(CURRENT, member_id, _back(current))
        changes.effects.report_replaced(changes.group.group_id, request.instance_id or "", known, member_id)
    elif member_id in state.members:
        current = state.currents[member_id]
        if current.epoch == LEAVES_FOR_A_WHILE or current.state is MemberState.UNREVOKED:
            changes.put(CURRENT, member_id, _back(current))
    elif len(state.members) >= changes.group.settings.max_size:
        return ErrorCode.GROUP_MAX_SIZE_REACHED
    return NONE


def _back(current: Current) -> Current:
    """Return what a member may own that owns nothing, when it begins with epoch 0."""
    return Current(assigned=current.assigned)


def _update(changes: Changes, request: Request, client: tuple[str, str]) -> None:
    """Take over what a member tells. Other topics raise the epoch of the group."""
    member_id = request.member_id
    before = changes.state.members.get(member_id)
    known = before or Member(*client, request.instance_id, None, 0, (), None, None)
    names, pattern = request.subscribed_topic_names, request.subscribed_topic_regex
    timeout_ms = request.rebalance_timeout_ms
    member = Member(
        *client,
        request.instance_id or known.instance_id,
        known.rack if request.rack_id is None else request.rack_id,
        timeout_ms if timeout_ms > 0 else known.rebalance_timeout_ms,
        known.topics if names is None else names,
        known.pattern if pattern is None else pattern or None,
        request.server_assignor or known.assignor,
        request.principal,
    )
    if member == before:
        return
    changes.put(MEMBER, member_id, member)
    if before is None:
        changes.put(CURRENT, member_id, Current())
        changes.effects.report_added(changes.group.group_id, member_id, member.instance_id)
        changes.bump(f"{member_id} joined")
    elif _wanted(member) != _wanted(before):
        changes.bump(f"{member_id} changed its topics")


def _wanted(member: Member) -> tuple[object, ...]:
    """Return what the topics of a member depend on. Its user counts for a pattern only."""
    return member.topics, member.pattern, member.principal if member.pattern else ""


def _time_revocation(changes: Changes, member_id: str, before: Current, current: Current) -> None:
    """Begin or end the time in which a member has to give up partitions."""
    group = changes.group
    if current.state is MemberState.UNREVOKED:
        timeout_ms = changes.state.members[member_id].rebalance_timeout_ms
        changes.follow.append(lambda step: step.schedule(TimerKind.REBALANCE, group, timeout_ms, member_id))
    elif before.state is MemberState.UNREVOKED:
        changes.follow.append(lambda step: step.cancel(TimerKind.REBALANCE, group, member_id))


# --- the shares


def subscribed(computing: Computing, member: Member) -> tuple[str, ...]:
    """Return the topics of a member: those that it lists, and those that match its pattern.

    Only topics that its user may describe match.
    """
    matching = computing.matching(member.pattern) if member.pattern else ()
    visible = (topic for topic in matching if computing.may_describe(member.principal, topic))
    return tuple(dict.fromkeys((*member.topics, *visible)))


def _compute(changes: Changes) -> None:
    """Compute the shares of all members for the epoch of the group."""
    computing, state = changes.group.computing, changes.state
    members = {
        member_id: Subscriber(
            subscribed(computing, member),
            state.shares.get(member_id, ()),
            member.instance_id,
            member.rack,
        )
        for member_id, member in state.members.items()
    }
    topics = computing.topics(dict.fromkeys(topic for each in members.values() for topic in each.topics))
    # The assignor that most members name; of several, and if none does, the coordinator's first.
    votes = [member.assignor for member in state.members.values()]
    assignor = max(computing.assignors, key=votes.count)
    shares = computing.assign(assignor, members)
    for member_id in members:
        share = shares.get(member_id, ())
        if share != state.shares.get(member_id):
            changes.put(SHARE, member_id, share)
    changes.put(TARGET, "", Target(state.epoch, assignor, topics))
    changes.effects.report_generation(changes.group.group_id, state.epoch, assignor, state.members)
    changes.show("the shares are computed")


def on_topics(step: Step, group: ReconcileGroup) -> None:
    """Raise the epoch if the topics of the members differ from those that the shares were computed for."""

    def task(changes: Changes) -> None:
        computing, state = group.computing, changes.state
        names = dict.fromkeys(t for member in state.members.values() for t in subscribed(computing, member))
        is_computed = state.members and state.epoch == state.target.epoch
        if is_computed and computing.topics(names) != state.target.topics:
            changes.bump("partitions of a subscribed topic changed")

    submit(step, group, task, again=True)
