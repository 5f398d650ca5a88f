"""ConsumerGroupHeartbeat: joins, reports and leaves (PROTOCOL 11.8)."""

from collections.abc import Callable
from typing import TypeAlias

import msgspec

from coordinator_core.coordinator.kafka_versions import Rule
from coordinator_core.coordinator.reconcile.changes import Changes, submit
from coordinator_core.coordinator.reconcile.group import Asked, Computing, ReconcileGroup, TimerKind
from coordinator_core.coordinator.reconcile.members import (
    advance,
    check_identity,
    has_room,
    may_join,
    replace,
    take_over,
)
from coordinator_core.coordinator.reconcile.settings import ReconcileSettings
from coordinator_core.coordinator.reconcile.state import CURRENT, Current, GroupState, Member
from coordinator_core.coordinator.shard import Step
from coordinator_core.protocol import reconcile as m
from coordinator_core.protocol.error_codes import NONE, ErrorCode
from coordinator_core.protocol.reconcile import JOINS, LEAVES_FOR_A_WHILE, UNCHANGED

Request: TypeAlias = m.ConsumerGroupHeartbeatRequest
Response: TypeAlias = m.ConsumerGroupHeartbeatResponse

MEMBER_MAKES_ID = 1
"""The version from which on a member makes its id itself."""


def refused(request: Request, error: ErrorCode, message: str | None = None) -> Response:
    """Return an error. GROUP_ID_NOT_FOUND without a message is that of a group of another family."""
    if error is ErrorCode.GROUP_ID_NOT_FOUND and message is None:
        message = not_reconciled(request.group_id)
    return Response(error=error, message=message)


def not_reconciled(group_id: str) -> str:
    """Return the message for a request to a group of another family."""
    return f"Group {group_id} is not a consumer group."


def not_found(group_id: str, kind: str = "Group") -> str:
    """Return the message for a request to an unknown group."""
    return f"{kind} {group_id} not found."


def handle(
    computing: Computing,
    settings: ReconcileSettings,
    step: Step,
    request_id: int,
    request: Request,
) -> None:
    """Answer a request, when the records of its changes are written."""
    error, message = invalid(computing, request)
    group = step.find(request.group_id, ReconcileGroup)
    if group is None and not error:
        if request.member_epoch == JOINS:
            error, message = invalid_pattern(computing, request.subscribed_topic_regex)
        else:
            kind = "Group" if request.member_epoch < JOINS else "Consumer group"
            error, message = ErrorCode.GROUP_ID_NOT_FOUND, not_found(request.group_id, kind)
    if error:
        step.effects.reply(request_id, refused(request, error, message))
        return
    if group is None:
        group = step.found(ReconcileGroup(request.group_id, computing, settings, GroupState()))
    reconcile(step, group, request_id, request)


def reconcile(
    step: Step,
    group: ReconcileGroup,
    request_id: int,
    request: Request,
    make: Callable[[Changes], None] | None = None,
) -> None:
    """Carry a valid request out. ``make`` makes the group first, unless the request is refused."""
    if not request.member_id:
        request = msgspec.structs.replace(request, member_id=step.new_member_id(step.client_id))
    client = step.client_id, step.client_host

    def task(changes: Changes) -> None:
        if make is not None:
            make(changes)
        leaves = request.member_epoch < JOINS
        found = _leave(changes, request) if leaves else _reconcile(changes, request, client)
        if make is not None and found.error:
            changes.drop()
        changes.effects.reply(request_id, found)

    submit(step, group, task, Asked(request_id, lambda error: Response(error=error)))


def invalid(computing: Computing, request: Request) -> tuple[ErrorCode, str | None]:
    """Check a request without the group. Return the error and its message."""
    message = _malformed(request)
    if message:
        return ErrorCode.INVALID_REQUEST, message
    if request.server_assignor is not None and request.server_assignor not in computing.assignors:
        supported = ", ".join(computing.assignors)
        message = (
            f"ServerAssignor {request.server_assignor} is not supported. Supported assignors: {supported}."
        )
        return ErrorCode.UNSUPPORTED_ASSIGNOR, message
    return NONE, None


def invalid_pattern(computing: Computing, pattern: str | None) -> tuple[ErrorCode, str | None]:
    """Check a regular expression. Return the error and its message."""
    try:
        if pattern:
            computing.matching(pattern)
    except ValueError as error:
        message = f"SubscribedTopicRegex `{pattern}` is not a valid regular expression: {error}."
        return ErrorCode.INVALID_REGULAR_EXPRESSION, message
    return NONE, None


def _malformed(request: Request) -> str:
    """Return the message for the first wrong field of a request, or ""."""
    makes_id = request.version >= MEMBER_MAKES_ID or request.member_epoch not in (JOINS, LEAVES_FOR_A_WHILE)
    has_topics = request.subscribed_topic_names is not None or request.subscribed_topic_regex is not None
    joins, stays_away = request.member_epoch == JOINS, request.member_epoch == LEAVES_FOR_A_WHILE
    no_topics = "Either SubscribedTopicNames or SubscribedTopicRegex must be non-null when (re-)joining."
    no_timeout = "RebalanceTimeoutMs must be provided in first request."
    rules = (
        (makes_id and _is_blank(request.member_id), "MemberId can't be empty."),
        (_is_blank(request.group_id), "GroupId can't be empty."),
        (_is_blank(request.instance_id), "InstanceId can't be empty."),
        (_is_blank(request.rack_id), "RackId can't be empty."),
        (joins and request.rebalance_timeout_ms == UNCHANGED, no_timeout),
        (joins and request.topic_partitions != (), "TopicPartitions must be empty when (re-)joining."),
        (joins and not has_topics, no_topics),
        (stays_away and request.instance_id is None, "InstanceId can't be null."),
        (request.member_epoch < LEAVES_FOR_A_WHILE, "MemberEpoch is invalid."),
    )
    return next((message for is_broken, message in rules if is_broken), "")


def _is_blank(text: str | None) -> bool:
    """Return whether a text has nothing but what Java's `trim` cuts off."""
    return text is not None and all(letter <= " " for letter in text)


# --- leaving


def _leave(changes: Changes, request: Request) -> Response:
    """Remove the member; a static one that leaves for a while keeps its partitions.

    What it was to give up is free then. Its session goes on.
    """
    member_id, state = request.member_id, changes.state
    error = check_identity(state, member_id, request.instance_id)
    if error:
        return refused(request, error)
    if request.member_epoch == LEAVES_FOR_A_WHILE:
        current = state.currents[member_id]
        away = msgspec.structs.replace(
            current, epoch=LEAVES_FOR_A_WHILE, revoking=(), since=(0,) * len(current.assigned)
        )
        changes.put(CURRENT, member_id, away)
        changes.follow.append(lambda step: step.cancel(TimerKind.REBALANCE, changes.group, member_id))
        changes.show(f"{member_id} left for a while")
    else:
        changes.remove({member_id: "left"}, f"{member_id} left")
    return Response(error=NONE, member_id=member_id, member_epoch=request.member_epoch)


# --- joining and reporting


def _reconcile(changes: Changes, request: Request, client: tuple[str, str]) -> Response:
    """Admit or update the member, compute the shares if they are due, and take the next step.

    The response has an assignment if the member joins, if its request has all fields, or if it may own other
    partitions than before.
    """
    error = _check(changes, request)
    message = None
    of_instance = changes.state.instances.get(request.instance_id or "")
    known = changes.state.members.get(request.member_id if of_instance is None else of_instance)
    told = _told(request, client, known)
    if not error and told.pattern not in (None, *changes.state.patterns):
        error, message = invalid_pattern(changes.group.computing, told.pattern)
    if error:
        return refused(request, error, message)
    member_id, group, joins = request.member_id, changes.group, request.member_epoch == JOINS
    if joins and of_instance is not None:
        replace(changes, of_instance, member_id)
    before = changes.state.currents.get(member_id, Current())
    taken = take_over(changes, member_id, told)
    current = advance(changes, member_id, request.topic_partitions, taken)
    changes.follow.append(lambda step: group.begin_session(step, member_id))
    shows = joins or request.is_full or current.assigned_epochs() != before.assigned_epochs()
    return Response(
        error=NONE,
        member_id=member_id,
        member_epoch=current.epoch,
        heartbeat_interval_ms=group.settings.heartbeat_interval_ms,
        assignment=current.assigned if shows else None,
    )


def _check(changes: Changes, request: Request) -> ErrorCode:
    """Check that the group has room for the member, and that the epoch of the request is the member's."""
    member_id, instance_id, state = request.member_id, request.instance_id, changes.state
    if not has_room(changes, member_id, instance_id):
        return ErrorCode.GROUP_MAX_SIZE_REACHED
    if request.member_epoch == JOINS:
        may_rejoin = instance_id is not None or changes.group.has(Rule.REJOINS_AT_ANY_EPOCH)
        if may_rejoin or member_id not in state.members:
            return may_join(changes, member_id, instance_id)
    else:
        error = check_identity(state, member_id, instance_id)
        if error:
            return error
    return _check_epoch(state.currents[member_id], request)


def _check_epoch(current: Current, request: Request) -> ErrorCode:
    """Check the epoch of a member.

    It may be the one before, if the response with the present one was lost: then the member reports
    partitions that it may own.
    """
    if request.member_epoch == current.epoch:
        return NONE
    owned = request.topic_partitions
    repeats = current.previous_epoch == request.member_epoch < current.epoch and owned is not None
    if repeats and owned is not None and frozenset(owned) <= frozenset(current.assigned):
        return NONE
    return ErrorCode.FENCED_MEMBER_EPOCH


def _told(request: Request, client: tuple[str, str], known: Member | None) -> Member:
    """Return the member with what the request tells, as one that speaks the consumer protocol."""
    known = known or Member(*client, request.instance_id, None, 0, (), None, None)
    names, pattern, timeout_ms = (
        request.subscribed_topic_names,
        request.subscribed_topic_regex,
        request.rebalance_timeout_ms,
    )
    return Member(
        *client,
        known.instance_id if request.instance_id is None else request.instance_id,
        known.rack if request.rack_id is None else request.rack_id,
        known.rebalance_timeout_ms if timeout_ms == UNCHANGED else timeout_ms,
        known.topics if names is None else tuple(sorted(set(names))),
        known.pattern if pattern is None else pattern or None,
        known.assignor if request.server_assignor is None else request.server_assignor,
        request.principal,
    )
