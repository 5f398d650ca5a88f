"""What the user of a client may not do with groups: the part of a request that the coordinator receives."""

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, NamedTuple, TypeAlias

from msgspec.structs import replace

from coordinator_core.coordinator.offset_commit import refused
from coordinator_core.protocol import messages as m
from coordinator_core.protocol.error_codes import ErrorCode
from coordinator_core.protocol.reconcile import (
    ConsumerGroupDescribeRequest,
    ConsumerGroupDescribeResponse,
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatResponse,
)
from rebalance_kafka.access import EVERYTHING, Access, Kind, Operation

_GROUP, _TOPIC = ErrorCode.GROUP_AUTHORIZATION_FAILED, ErrorCode.TOPIC_AUTHORIZATION_FAILED
_TRANSACTIONAL_ID = ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED

Refuse: TypeAlias = Callable[[m.Request, ErrorCode], m.Response]
"""Returns the response that reports an error to a request to one group."""

_Complete: TypeAlias = Callable[[Any], m.Response]


def _unchanged(response: m.Response) -> m.Response:
    return response


class Permit(NamedTuple):
    """The part of a request that is allowed.

    ``refusal``: the response, if nothing of it is allowed. ``complete`` adds what is not allowed to the
    response to the rest, or removes it.
    """

    message: m.Request
    refusal: m.Response | None = None
    complete: _Complete = _unchanged


def permitted(message: m.Request, access: Access, refuse: Refuse) -> Permit:
    """Return the part of a request that a user may make.

    A request to one group needs `Operation.READ`, if `_OPERATIONS` has no other one.
    """
    if access is EVERYTHING:
        return Permit(message)
    group_id = getattr(message, "group_id", None)
    operation = _OPERATIONS.get(type(message), Operation.READ)
    if group_id is not None and not access.group(operation, group_id):
        return Permit(message, _REFUSALS.get(type(message), refuse)(message, _GROUP))
    part = _PARTS.get(type(message))
    return Permit(message) if part is None else part(message, access)


def with_operations(response: Any, access: Access) -> Any:
    """Return a description of groups with the operations that a user may do on them."""

    def described(group: Any) -> Any:
        if group.error not in (ErrorCode.NONE, ErrorCode.GROUP_ID_NOT_FOUND):
            return group
        return replace(group, authorized_operations=access.operations(Kind.GROUP, group.group_id))

    if isinstance(response, m.DescribeGroupsResponse):
        return replace(response, groups=tuple(map(described, response.groups)))
    return response if response.error is not ErrorCode.NONE else described(response)


_OPERATIONS: Mapping[type, Operation] = {
    m.OffsetFetchRequest: Operation.DESCRIBE,
    m.OffsetDeleteRequest: Operation.DELETE,
    ConsumerGroupDescribeRequest: Operation.DESCRIBE,
}

_REFUSALS: Mapping[type, Refuse] = {
    m.OffsetDeleteRequest: lambda _, error: m.OffsetDeleteResponse(error=error),
}
"""Refusals of requests that the coordinator answers for itself."""


def _part(
    message: Any, rows: str, may: Callable[[Any], bool], answers: str, refuse: Callable[[Any], Any]
) -> Permit:
    """Return the rows of a request that are allowed. The others are refused in the rows of the response."""
    allowed, refused = [], []
    for row in getattr(message, rows):
        if may(row):
            allowed.append(row)
        else:
            refused.append(refuse(row))
    return Permit(
        replace(message, **{rows: tuple(allowed)}),
        complete=lambda response: replace(response, **{answers: (*getattr(response, answers), *refused)}),
    )


def _commit_in_transaction(message: m.TxnOffsetCommitRequest, access: Access) -> Permit:
    if not access.transactional_id(Operation.WRITE, message.transactional_id):
        return Permit(message, refused(message, _TRANSACTIONAL_ID))
    return Permit(message)


def _describe(message: m.DescribeGroupsRequest, access: Access) -> Permit:
    def refused(group_id: str) -> m.DescribedGroup:
        return m.DescribedGroup(error=_GROUP, group_id=group_id)

    return _part(message, "group_ids", partial(access.group, Operation.DESCRIBE), "groups", refused)


def _delete(message: m.DeleteGroupsRequest, access: Access) -> Permit:
    may = partial(access.group, Operation.DELETE)
    return _part(message, "group_ids", may, "groups", lambda group_id: m.DeletedGroup(group_id, _GROUP))


def _list(message: m.ListGroupsRequest, access: Access) -> Permit:
    def visible(response: m.ListGroupsResponse) -> m.ListGroupsResponse:
        groups = tuple(row for row in response.groups if access.group(Operation.DESCRIBE, row.group_id))
        return replace(response, groups=groups)

    return Permit(message, complete=visible)


def _beat(message: ConsumerGroupHeartbeatRequest, access: Access) -> Permit:
    """Refuse a member that lists a topic which the user may not see. The user limits what patterns match."""
    topics = message.subscribed_topic_names or ()
    if all(access.topic(Operation.DESCRIBE, topic) for topic in topics):
        return Permit(replace(message, principal=access.user))
    return Permit(message, ConsumerGroupHeartbeatResponse(error=_TOPIC))


def _describe_consumers(message: ConsumerGroupDescribeRequest, access: Access) -> Permit:
    """Describe nothing of a group whose members have topics that the user may not see."""

    def visible(response: ConsumerGroupDescribeResponse) -> ConsumerGroupDescribeResponse:
        owned = [tp for member in response.members for tp in (*member.assignment, *member.target_assignment)]
        topics = dict.fromkeys(tp.topic for tp in owned)
        if all(access.topic(Operation.DESCRIBE, topic) for topic in topics):
            return response
        found = "The described group uses topics that the client is not authorized to describe."
        return ConsumerGroupDescribeResponse(error=_TOPIC, group_id=response.group_id, message=found)

    return Permit(message, complete=visible)


_PARTS: Mapping[type, Callable[[Any, Access], Permit]] = {
    m.TxnOffsetCommitRequest: _commit_in_transaction,
    m.DescribeGroupsRequest: _describe,
    m.DeleteGroupsRequest: _delete,
    m.ListGroupsRequest: _list,
    ConsumerGroupHeartbeatRequest: _beat,
    ConsumerGroupDescribeRequest: _describe_consumers,
}
