"""ConsumerGroupHeartbeat: joins, reports and leaves (PROTOCOL 11.8)."""

from typing import TypeAlias

import msgspec

from coordinator_core.coordinator.reconcile.changes import Changes, submit
from coordinator_core.coordinator.reconcile.group import Asked, Computing, ReconcileGroup, TimerKind
from coordinator_core.coordinator.reconcile.members import (
    admit,
    advance,
    check_identity,
    subscribed,
    take_over,
)
from coordinator_core.coordinator.reconcile.settings import ReconcileSettings
from coordinator_core.coordinator.reconcile.state import CURRENT, Current, GroupState, Member
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
    error, message = invalid(computing, request)
    group = step.find(request.group_id, ReconcileGroup)
    if group is None and not error and request.member_epoch != JOINS:
        error, message = ErrorCode.GROUP_ID_NOT_FOUND, not_found(request.group_id)
    if error:
        step.effects.reply(request_id, refused(request, error, message))
        return
    if group is None:
        group = step.found(ReconcileGroup(request.group_id, computing, settings, GroupState()))
    reconcile(step, group, request_id, request)


def reconcile(step: Step, group: ReconcileGroup, request_id: int, request: Request) -> None:
    """Carry a valid request out."""
    if not request.member_id:
        request = msgspec.structs.replace(request, member_id=step.new_member_id(step.client_id))
    client = step.client_id, step.client_host

    def task(changes: Changes) -> None:
        leaves = request.member_epoch < JOINS
        found = _leave(changes, request) if leaves else _reconcile(changes, request, client)
        response = refused(request, found) if isinstance(found, ErrorCode) else found
        changes.effects.reply(request_id, response)

    submit(step, group, task, Asked(request_id, lambda error: Response(error=error)))


def invalid(computing: Computing, request: Request) -> tuple[ErrorCode, str | None]:
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
    error = check_identity(state, member_id, request.instance_id)
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
        changes.remove({member_id: "left"}, f"{member_id} left")
    return Response(error=NONE, member_id=member_id, member_epoch=request.member_epoch)


# --- joining and reporting


def _reconcile(changes: Changes, request: Request, client: tuple[str, str]) -> Response | ErrorCode:
    """Admit or update the member, compute the shares if the group has changed, and take the next step."""
    joins = request.member_epoch == JOINS
    error = (
        admit(changes, request.member_id, request.instance_id) if joins else _check(changes.state, request)
    )
    if error:
        return error
    member_id, group, owned = request.member_id, changes.group, request.topic_partitions
    take_over(changes, member_id, _told(request, client, changes.state.members.get(member_id)))
    before = changes.state.currents[member_id]
    current = advance(changes, member_id, owned)
    if owned is not None:
        reported = frozenset(owned)
        changes.follow.append(lambda _: group.reported.__setitem__(member_id, reported))
    else:
        reported = group.reported.get(member_id, frozenset(before.assigned))
    changes.follow.append(lambda step: group.begin_session(step, member_id))
    is_known = not joins and _knows(current, before, reported)
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
    error = check_identity(state, request.member_id, request.instance_id)
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


def _told(request: Request, client: tuple[str, str], known: Member | None) -> Member:
    """Return the member with what the request tells."""
    known = known or Member(*client, request.instance_id, None, 0, (), None, None)
    names, pattern = request.subscribed_topic_names, request.subscribed_topic_regex
    timeout_ms = request.rebalance_timeout_ms
    return Member(
        *client,
        request.instance_id or known.instance_id,
        known.rack if request.rack_id is None else request.rack_id,
        timeout_ms if timeout_ms > 0 else known.rebalance_timeout_ms,
        known.topics if names is None else names,
        known.pattern if pattern is None else pattern or None,
        request.server_assignor or known.assignor,
        request.principal,
    )


# --- topics


def on_topics(step: Step, group: ReconcileGroup) -> None:
    """Raise the epoch if the topics of the members differ from those that the shares were computed for."""

    def task(changes: Changes) -> None:
        computing, state = group.computing, changes.state
        names = dict.fromkeys(t for member in state.members.values() for t in subscribed(computing, member))
        is_computed = state.members and state.epoch == state.target.epoch
        if is_computed and computing.topics(names) != state.target.topics:
            changes.bump("partitions of a subscribed topic changed")

    submit(step, group, task, again=True)
