"""Requests: from the messages of the core to kio's entities, which the consumer sends, and back."""

from collections.abc import Callable, Iterable, Mapping
from functools import cache
from typing import Any, TypeVar

import msgspec
from kio.index import load_request_schema

from coordinator_core.model import TopicPartition
from coordinator_core.protocol import messages as m
from coordinator_core.protocol.reconcile import ConsumerGroupDescribeRequest, ConsumerGroupHeartbeatRequest
from rebalance_kafka.wire.apis import ROWS, Api, api_of
from rebalance_kafka.wire.consumer_groups import NO_TOPICS, Topics, describe_request, heartbeat_request
from rebalance_kafka.wire.frames import Request
from rebalance_kafka.wire.mapping import Convert, reader, writer

_T = TypeVar("_T")


def request_entity(request: m.Request, version: int, topics: Topics = NO_TOPICS) -> Any:
    """Return the entity of a request, or its values, for `encode_request` in that version."""
    if isinstance(request, ConsumerGroupHeartbeatRequest):
        return heartbeat_request(request, topics)
    if isinstance(request, ConsumerGroupDescribeRequest):
        return describe_request(request)
    shape = _SHAPES.get(type(request))
    shaped: Any = request if shape is None else shape(request, version)
    kind: Any = type(shaped)
    return _writer(kind, api_of(request), version)(shaped)


def request_message(request: Request) -> m.Request:
    """Return the core's message of a request that a client sent."""
    message: m.Request = _reader(request.api, request.version)(request.body)
    finish = _FINISH.get(type(message))
    return message if finish is None else finish(message)


OF_GROUPS = 8
"""The version from which on OffsetFetch requests the offsets of several groups (KIP-709)."""


def offset_requests(request: Request) -> list[m.OffsetFetchRequest]:
    """Return the core's messages of an OffsetFetch in version `OF_GROUPS` or later, one for each group."""
    messages: dict[str, m.OffsetFetchRequest] = {}
    for group in request.body.groups:
        listed = None
        if group.topics is not None:
            listed = _unique(TopicPartition(t.name, n) for t in group.topics for n in t.partition_indexes)
        messages[group.group_id] = m.OffsetFetchRequest(
            group_id=group.group_id,
            partitions=listed,
            require_stable=request.body.require_stable,
            member_id=getattr(group, "member_id", None),
            member_epoch=getattr(group, "member_epoch", -1),
        )
    return list(messages.values())


@cache
def _writer(shape: Any, api: Api, version: int) -> Convert:
    return writer(shape, load_request_schema(api, version))


@cache
def _reader(api: Api, version: int) -> Convert:
    schema = load_request_schema(api, version)
    if api is Api.LEAVE_GROUP and version < 3:
        read = reader(_OneLeaves, schema)
        return lambda body: read(body).request()
    return reader(ROWS[api].request, schema)


# --- shapes: requests whose fields Kafka arranges in another way


class _Coordinators(msgspec.Struct):
    key: str
    coordinator_keys: tuple[str, ...]


class _OneLeaves(msgspec.Struct):
    """LeaveGroup before version 3 names one member."""

    group_id: str
    member_id: str

    def request(self) -> m.LeaveGroupRequest:
        return m.LeaveGroupRequest(group_id=self.group_id, members=(m.MemberIdentity(self.member_id),))


class _Topic(msgspec.Struct):
    name: str


class _Topics(msgspec.Struct):
    topics: tuple[_Topic, ...] | None


class _Offset(msgspec.Struct):
    topic: str
    partition: int
    timestamp: int


class _Offsets(msgspec.Struct):
    topics: tuple[_Offset, ...]
    isolation_level: int


def _find(request: m.FindCoordinatorRequest, _: int) -> _Coordinators:
    return _Coordinators(request.key, (request.key,))


def _leave(request: m.LeaveGroupRequest, version: int) -> m.LeaveGroupRequest | _OneLeaves:
    if version >= 3:
        return request
    return _OneLeaves(request.group_id, request.members[0].member_id if request.members else "")


def _metadata(request: m.MetadataRequest, version: int) -> _Topics:
    """Encode a request for all topics as null, or in version 0 as an empty list."""
    if request.topics is None:
        return _Topics(None if version >= 1 else ())
    return _Topics(tuple(map(_Topic, request.topics)))


def _list_offsets(request: m.ListOffsetsRequest, _: int) -> _Offsets:
    return _Offsets(
        tuple(_Offset(topic, partition, request.timestamp) for topic, partition in request.partitions),
        request.isolation_level,
    )


_SHAPES: Mapping[type, Callable[[Any, int], Any]] = {
    m.FindCoordinatorRequest: _find,
    m.LeaveGroupRequest: _leave,
    m.MetadataRequest: _metadata,
    m.ListOffsetsRequest: _list_offsets,
}


# --- names that clients repeat are answered once


def _unique(names: Iterable[_T]) -> tuple[_T, ...]:
    return tuple(dict.fromkeys(names))


def _unique_groups(request: Any) -> Any:
    return msgspec.structs.replace(request, group_ids=_unique(request.group_ids))


def _unique_partitions(request: m.OffsetFetchRequest) -> m.OffsetFetchRequest:
    if request.partitions is None:
        return request
    return msgspec.structs.replace(request, partitions=_unique(request.partitions))


_FINISH: Mapping[type, Callable[[Any], Any]] = {
    m.DescribeGroupsRequest: _unique_groups,
    m.DeleteGroupsRequest: _unique_groups,
    m.OffsetFetchRequest: _unique_partitions,
}
