"""Requests and responses of the consumer protocol (KIP-848). They name topics by id, the core names them."""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Protocol
from uuid import UUID

from kio.schema.errors import ErrorCode as Wire

from coordinator_core.model import TopicPartition
from coordinator_core.protocol.error_codes import ErrorCode
from coordinator_core.protocol.reconcile import (
    ConsumerGroupDescribeRequest,
    ConsumerGroupDescribeResponse,
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatResponse,
    ConsumerGroupMember,
)
from rebalance_kafka.wire.frames import Request, Values, from_ms, in_ms

CONSUMER_MEMBER = 1
"""The type of a member of this protocol, in a group that may have members of the classic one, too."""


class Topics(Protocol):
    """The topics with their ids."""

    @property
    def ids(self) -> Mapping[str, UUID]:
        """The ids by name."""

    def named(self, topic_id: UUID | None) -> str | None:
        """Return the name of a topic, None if it is unknown."""


class KnownTopics:
    """The topics whose ids were learned. An id stays known when its topic has got another one."""

    def __init__(self) -> None:
        self.ids: dict[str, UUID] = {}
        self._names: dict[UUID, str] = {}

    def learn(self, ids: Mapping[str, UUID]) -> None:
        """Take over ids by name."""
        self.ids |= ids
        self._names |= {topic_id: name for name, topic_id in ids.items()}

    def named(self, topic_id: UUID | None) -> str | None:
        """Return the name of a topic, None if it is unknown."""
        return None if topic_id is None else self._names.get(topic_id)


NO_TOPICS = KnownTopics()
"""No topics, for messages without ids."""


# --- the broker's side


def heartbeat_message(request: Request, topics: Topics) -> ConsumerGroupHeartbeatRequest:
    """Return the core's message of a heartbeat. A topic that is unknown has its id as its name."""
    body = request.body
    owned = body.topic_partitions
    return ConsumerGroupHeartbeatRequest(
        group_id=body.group_id,
        member_id=body.member_id,
        member_epoch=body.member_epoch,
        instance_id=body.instance_id,
        rack_id=body.rack_id,
        rebalance_timeout_ms=in_ms(body.rebalance_timeout),
        subscribed_topic_names=_unique(body.subscribed_topic_names),
        subscribed_topic_regex=getattr(body, "subscribed_topic_regex", None),
        server_assignor=body.server_assignor,
        topic_partitions=None if owned is None else tuple(sorted(set(_named(owned, topics)))),
        version=request.version,
    )


def heartbeat_body(response: ConsumerGroupHeartbeatResponse, topics: Topics) -> Values:
    """Return the body of a response to a heartbeat."""
    assignment = response.assignment
    return {
        "error_code": Wire(int(response.error)),
        "error_message": response.message,
        "member_id": response.member_id or None,
        "member_epoch": response.member_epoch,
        "heartbeat_interval": from_ms(response.heartbeat_interval_ms),
        "assignment": None if assignment is None else {"topic_partitions": _by_id(assignment, topics)},
    }


def describe_messages(request: Request) -> list[ConsumerGroupDescribeRequest]:
    """Return the core's messages of a ConsumerGroupDescribe, one for each group."""
    return [ConsumerGroupDescribeRequest(group_id=g) for g in dict.fromkeys(request.body.group_ids)]


def described_body(responses: Iterable[ConsumerGroupDescribeResponse], topics: Topics) -> Values:
    """Return the body of a response to a ConsumerGroupDescribe."""
    return {"groups": tuple(_described(response, topics) for response in responses)}


def _described(group: ConsumerGroupDescribeResponse, topics: Topics) -> Values:
    return {
        "error_code": Wire(int(group.error)),
        "error_message": group.message,
        "group_id": group.group_id,
        "group_state": group.state,
        "group_epoch": group.group_epoch,
        "assignment_epoch": group.assignment_epoch,
        "assignor_name": group.assignor,
        "members": tuple(_member(member, topics) for member in group.members),
    }


def _member(member: ConsumerGroupMember, topics: Topics) -> Values:
    return {
        "member_id": member.member_id,
        "instance_id": member.instance_id,
        "rack_id": member.rack_id,
        "member_epoch": member.member_epoch,
        "client_id": member.client_id,
        "client_host": member.client_host,
        "subscribed_topic_names": member.subscribed_topic_names,
        "subscribed_topic_regex": member.subscribed_topic_regex,
        "assignment": {"topic_partitions": _by_id(member.assignment, topics)},
        "target_assignment": {"topic_partitions": _by_id(member.target_assignment, topics)},
        "member_type": CONSUMER_MEMBER,
    }


# --- the consumer's side


def heartbeat_request(request: ConsumerGroupHeartbeatRequest, topics: Topics) -> Values:
    """Return the body of a heartbeat."""
    owned = request.topic_partitions
    return {
        "group_id": request.group_id,
        "member_id": request.member_id,
        "member_epoch": request.member_epoch,
        "instance_id": request.instance_id,
        "rack_id": request.rack_id,
        "rebalance_timeout": from_ms(request.rebalance_timeout_ms),
        "subscribed_topic_names": request.subscribed_topic_names,
        "subscribed_topic_regex": request.subscribed_topic_regex,
        "server_assignor": request.server_assignor,
        "topic_partitions": None if owned is None else _by_id(owned, topics),
    }


def unknown_topics(body: Any, topics: Topics) -> list[UUID]:
    """Return the ids of the unknown topics of a response to a heartbeat."""
    rows = () if body.assignment is None else body.assignment.topic_partitions
    return [row.topic_id for row in rows if topics.named(row.topic_id) is None]


def heartbeat_response(body: Any, topics: Topics) -> ConsumerGroupHeartbeatResponse:
    """Return the core's message of a response to a heartbeat.

    One with a topic that does not exist any more is an error: the coordinator is about to assign anew.
    """
    if unknown_topics(body, topics):
        return ConsumerGroupHeartbeatResponse(error=ErrorCode.UNKNOWN_SERVER_ERROR)
    assignment = body.assignment
    return ConsumerGroupHeartbeatResponse(
        error=_core_error(body.error_code),
        message=body.error_message,
        member_id=body.member_id or "",
        member_epoch=body.member_epoch,
        heartbeat_interval_ms=in_ms(body.heartbeat_interval),
        assignment=None if assignment is None else tuple(sorted(_named(assignment.topic_partitions, topics))),
    )


def describe_request(request: ConsumerGroupDescribeRequest) -> Values:
    """Return the body of a ConsumerGroupDescribe of one group."""
    return {"group_ids": (request.group_id,), "include_authorized_operations": False}


def describe_response(body: Any) -> ConsumerGroupDescribeResponse:
    """Return the core's message of a response with one group."""
    (group,) = body.groups
    return ConsumerGroupDescribeResponse(
        error=_core_error(group.error_code),
        group_id=group.group_id,
        message=group.error_message,
        state=group.group_state,
        group_epoch=group.group_epoch,
        assignment_epoch=group.assignment_epoch,
        assignor=group.assignor_name,
        members=tuple(map(_read_member, group.members)),
    )


def _read_member(member: Any) -> ConsumerGroupMember:
    return ConsumerGroupMember(
        member.member_id,
        member.instance_id,
        member.rack_id,
        member.member_epoch,
        member.client_id,
        member.client_host,
        tuple(member.subscribed_topic_names),
        member.subscribed_topic_regex,
        _partitions(member.assignment),
        _partitions(member.target_assignment),
    )


def _partitions(assignment: Any) -> tuple[TopicPartition, ...]:
    rows = assignment.topic_partitions
    return tuple(sorted(TopicPartition(row.topic_name, n) for row in rows for n in row.partitions))


# --- both sides


def _named(rows: Iterable[Any], topics: Topics) -> Iterator[TopicPartition]:
    for row in rows:
        name = topics.named(row.topic_id) or str(row.topic_id)
        for number in row.partitions:
            yield TopicPartition(name, number)


def _by_id(partitions: Iterable[TopicPartition], topics: Topics) -> tuple[Values, ...]:
    """Return the rows of partitions, without those of topics that do not exist any more."""
    numbers: dict[str, list[int]] = {}
    for topic, number in partitions:
        numbers.setdefault(topic, []).append(number)
    ids = topics.ids
    return tuple(
        {"topic_id": ids[topic], "topic_name": topic, "partitions": tuple(listed)}
        for topic, listed in numbers.items()
        if topic in ids
    )


def _unique(names: Iterable[str] | None) -> tuple[str, ...] | None:
    return None if names is None else tuple(dict.fromkeys(names))


def _core_error(error: Wire) -> ErrorCode:
    try:
        return ErrorCode(int(error))
    except ValueError:
        return ErrorCode.UNKNOWN_SERVER_ERROR
