"""Messages of the core whose fields Kafka arranges in another way, as clients and brokers send them.

All other messages are read and written as they are (`rebalance_kafka.wire.codecs`).
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cache
from typing import Any, NamedTuple, TypeAlias, TypeVar
from uuid import UUID

import msgspec
from msgspec.structs import replace

from coordinator_core.errors import ProtocolError
from coordinator_core.protocol import messages as m
from coordinator_core.protocol import reconcile as r
from coordinator_core.protocol.error_codes import ErrorCode
from rebalance_kafka.wire.apis import ROWS, Api
from rebalance_kafka.wire.batches import Aborted, records_of
from rebalance_kafka.wire.rows import as_requested

_T = TypeVar("_T")

Values: TypeAlias = Mapping[str, Any]
"""Fields of a message by the names of kio's newest version. Nested ones are mappings too."""


class Node(NamedTuple):
    """A broker of the cluster as a response describes it."""

    node: int
    host: str
    port: int
    rack: str | None = None


class Received(NamedTuple):
    """The core's message of a response, the brokers that it names, and the ids of its topics by name.

    ``unknown``: the ids of topics in the response whose names are unknown.
    """

    response: m.Response
    nodes: tuple[Node, ...] = ()
    topic_ids: Mapping[str, UUID] = {}
    unknown: tuple[UUID, ...] = ()


class Reading(NamedTuple):
    """How a message is read: its class, None for values, and what is then made of it."""

    message: Any = None
    finish: Callable[[Any], Any] | None = None


# --- several groups in one message


OF_GROUPS = 8
"""The version from which on OffsetFetch requests the offsets of several groups (KIP-709)."""


MOST_REPEATED = 100
"""Groups of a request up to which one that is repeated is answered as often, as in Kafka. In a longer request
it is answered once: a short request could have an endless response."""


class _OffsetsOfGroups(msgspec.Struct):
    groups: tuple[m.OffsetFetchRequest, ...]
    require_stable: bool

    def each(self) -> list[m.OffsetFetchRequest]:
        """Return a request for each group."""
        groups = self.groups
        if len(groups) > MOST_REPEATED:
            groups = tuple({group.group_id: group for group in groups}.values())
        return [replace(group, require_stable=self.require_stable) for group in groups]


class _FetchedGroup(msgspec.Struct):
    group_id: str
    error: ErrorCode
    topics: tuple[m.FetchedOffset, ...]


class _FetchedGroups(msgspec.Struct):
    groups: tuple[_FetchedGroup, ...]


class _DescribedGroups(msgspec.Struct):
    groups: tuple[r.ConsumerGroupDescribeResponse, ...]


def of_several(responses: Sequence[tuple[str, Any]]) -> Any:
    """Return the response to a request about several groups, from the id of each and the response to it."""
    if responses and isinstance(responses[0][1], m.OffsetFetchResponse):
        return _FetchedGroups(tuple(_FetchedGroup(i, f.error, f.offsets) for i, f in responses))
    return _DescribedGroups(tuple(described for _, described in responses))


def _each_to_describe(body: Any) -> list[r.ConsumerGroupDescribeRequest]:
    """Return a request for each group, first those without a name, which Kafka refuses first."""
    includes = body.include_authorized_operations
    return [
        r.ConsumerGroupDescribeRequest(group_id=group_id, include_authorized_operations=includes)
        for group_id in sorted(_as_listed(body.group_ids), key=bool)
    ]


# --- requests that the broker receives


class _OneLeaves(msgspec.Struct):
    """LeaveGroup before version 3 names one member."""

    group_id: str
    member_id: str

    def request(self) -> m.LeaveGroupRequest:
        return m.LeaveGroupRequest(group_id=self.group_id, members=(m.MemberIdentity(self.member_id),))


@cache
def reading_of(api: Api, version: int) -> Reading:
    """Return how a request is read: as a message of the core, a list of them, or values."""
    if api is Api.LEAVE_GROUP and version < 3:
        return Reading(_OneLeaves, _OneLeaves.request)
    if api is Api.OFFSET_FETCH and version >= OF_GROUPS:
        return Reading(_OffsetsOfGroups, _OffsetsOfGroups.each)
    if api is Api.JOIN_GROUP and version < 1:
        return Reading(m.JoinGroupRequest, lambda r: replace(r, rebalance_timeout_ms=r.session_timeout_ms))
    if api is Api.CONSUMER_GROUP_DESCRIBE:
        return Reading(None, _each_to_describe)
    if api in _OF_BROKER:
        return Reading()
    return Reading(ROWS[api].request, _FINISH.get(api))


_OF_BROKER = {
    Api.FETCH,
    Api.FIND_COORDINATOR,
    Api.LIST_OFFSETS,
    Api.METADATA,
    Api.OFFSET_FOR_LEADER_EPOCH,
}
"""Requests with a message that the broker handles, not the coordinator."""


def _as_listed(names: Sequence[_T]) -> tuple[_T, ...]:
    """Return names as a request lists them, or each once if there are too many."""
    return tuple(names) if len(names) <= MOST_REPEATED else _named_once(names)


def _named_once(names: Iterable[_T]) -> tuple[_T, ...]:
    """Return names without those that a client repeats."""
    return tuple(dict.fromkeys(names))


def _unique_groups(request: m.DeleteGroupsRequest) -> m.DeleteGroupsRequest:
    """Return each group once, first those without a name, which Kafka deletes first."""
    return replace(request, group_ids=tuple(sorted(_named_once(request.group_ids), key=bool)))


def _heartbeat(request: r.ConsumerGroupHeartbeatRequest) -> r.ConsumerGroupHeartbeatRequest:
    topics, owned = request.subscribed_topic_names, request.topic_partitions
    return replace(
        request,
        subscribed_topic_names=None if topics is None else _named_once(topics),
        topic_partitions=None if owned is None else tuple(sorted(set(owned))),
    )


_FINISH: Mapping[Api, Callable[[Any], Any]] = {
    Api.DELETE_GROUPS: _unique_groups,
    Api.DESCRIBE_GROUPS: lambda request: replace(request, group_ids=_as_listed(request.group_ids)),
    Api.CONSUMER_GROUP_HEARTBEAT: _heartbeat,
}


# --- requests that the consumer sends


def request_body(request: m.Request, version: int) -> Any:
    """Return a request as it is written in a version: a message or values."""
    shape = _SENT.get(type(request))
    return request if shape is None else shape(request, version)


def _find(request: m.FindCoordinatorRequest, _: int) -> Values:
    return {"key": request.key, "coordinator_keys": (request.key,)}


def _leave(request: m.LeaveGroupRequest, version: int) -> m.LeaveGroupRequest | _OneLeaves:
    if version >= 3:
        return request
    return _OneLeaves(request.group_id, request.members[0].member_id if request.members else "")


def _metadata(request: m.MetadataRequest, version: int) -> Values:
    """Write a request for all topics as null, or in version 0 as an empty list."""
    if request.topics is None:
        return {"topics": None if version >= 1 else ()}
    return {"topics": tuple({"name": name} for name in request.topics)}


class _Offset(msgspec.Struct):
    topic: str
    partition: int
    timestamp: int


class _Offsets(msgspec.Struct):
    topics: tuple[_Offset, ...]
    isolation_level: int


def _list_offsets(request: m.ListOffsetsRequest, _: int) -> _Offsets:
    offsets = (_Offset(topic, partition, request.timestamp) for topic, partition in request.partitions)
    return _Offsets(tuple(offsets), request.isolation_level)


def _describe_consumers(request: r.ConsumerGroupDescribeRequest, _: int) -> Values:
    includes = request.include_authorized_operations
    return {"group_ids": (request.group_id,), "include_authorized_operations": includes}


_SENT: Mapping[type, Callable[[Any, int], Any]] = {
    m.FindCoordinatorRequest: _find,
    m.LeaveGroupRequest: _leave,
    m.MetadataRequest: _metadata,
    m.ListOffsetsRequest: _list_offsets,
    r.ConsumerGroupDescribeRequest: _describe_consumers,
}


# --- responses that the broker sends


def response_body(request: m.Request, version: int, response: Any) -> Any:
    """Return a response as it is written in a version."""
    if isinstance(response, m.LeaveGroupResponse):
        return _left(response, version)
    if isinstance(response, m.JoinGroupResponse):
        return replace(response, protocol_name=response.protocol_name or None)  # Kafka has null for ""
    if isinstance(response, m.OffsetFetchResponse):
        return _fetched_offsets(request, version, response)
    if isinstance(response, m.DescribeGroupsResponse):
        return m.DescribeGroupsResponse(groups=tuple(_described_group(g, version) for g in response.groups))
    return response


def _left(response: m.LeaveGroupResponse, version: int) -> m.LeaveGroupResponse:
    """Return the error of the only member as the error of the response, before version 3."""
    if version < 3 and response.error is ErrorCode.NONE and response.members:
        return m.LeaveGroupResponse(error=response.members[0].error)
    return response


def _fetched_offsets(request: Any, version: int, response: m.OffsetFetchResponse) -> m.OffsetFetchResponse:
    """Add an error of the response to every requested partition, before version 2."""
    if version >= 2 or response.error is ErrorCode.NONE:
        return response
    offsets = [
        m.FetchedOffset(topic, number, m.NO_OFFSET, error=response.error)
        for topic, number in request.partitions
    ]
    return replace(response, offsets=as_requested(request.partitions, offsets))


def _described_group(group: m.DescribedGroup, version: int) -> m.DescribedGroup:
    """Describe an unknown group as Dead, before version 6 without an error (KIP-1043)."""
    if group.error is not ErrorCode.GROUP_ID_NOT_FOUND:
        return group
    if version < 6:
        return replace(group, error=ErrorCode.NONE)
    return replace(group, authorized_operations=m.OPERATIONS_NOT_INCLUDED)


# --- responses that the consumer receives


class _Coordinator(msgspec.Struct):
    error: ErrorCode
    node: int
    host: str
    port: int

    def received(self) -> Received:
        response = m.FindCoordinatorResponse(error=self.error, node=self.node)
        known = self.error is ErrorCode.NONE
        return Received(response, (Node(self.node, self.host, self.port),) if known else ())


class _Coordinators(msgspec.Struct):
    coordinators: tuple[_Coordinator, ...]


class _Partition(msgspec.Struct):
    partition_index: int
    leader_id: int
    replica_nodes: tuple[int, ...]
    error: ErrorCode
    leader_epoch: int = -1

    def described(self, racks: Mapping[int, str | None]) -> m.PartitionMetadata:
        known = tuple(rack for node in self.replica_nodes if (rack := racks.get(node)) is not None)
        return m.PartitionMetadata(self.leader_id, self.leader_epoch, known, self.error)


class _Topic(msgspec.Struct):
    name: str
    error: ErrorCode
    partitions: tuple[_Partition, ...]
    is_internal: bool = False
    topic_id: UUID | None = None


class _Metadata(msgspec.Struct):
    brokers: tuple[Node, ...]
    topics: tuple[_Topic, ...]

    def received(self) -> Received:
        racks = {broker.node: broker.rack for broker in self.brokers}
        topics = []
        for topic in self.topics:
            by_number = {p.partition_index: p.described(racks) for p in topic.partitions}
            partitions = tuple(by_number[number] for number in sorted(by_number))
            topics.append(m.TopicMetadata(topic.name, partitions, topic.error, topic.is_internal))
        nodes = tuple(broker.node for broker in self.brokers)
        ids = {topic.name: topic.topic_id for topic in self.topics if topic.topic_id is not None}
        return Received(m.MetadataResponse(topics=tuple(topics), nodes=nodes), self.brokers, ids)


class _Records(msgspec.Struct):
    topic: str
    partition: int
    error: ErrorCode
    high_watermark: int
    last_stable_offset: int
    records: bytes
    log_start_offset: int = -1
    aborted_transactions: tuple[Aborted, ...] = ()

    def fetched(self) -> m.FetchedPartition:
        error = self.error
        try:
            records, next_offset = records_of(self.records, self.aborted_transactions)
        except ProtocolError:  # the other partitions can be read
            records, next_offset, error = [], -1, ErrorCode.CORRUPT_MESSAGE
        return m.FetchedPartition(
            self.topic,
            self.partition,
            records[0].offset if records else -1,
            self.high_watermark,
            self.last_stable_offset,
            self.log_start_offset,
            tuple(records),
            next_offset,
            error,
        )


class _Fetched(msgspec.Struct):
    error: ErrorCode
    responses: tuple[_Records, ...]
    session_id: int = 0

    def received(self) -> Received:
        partitions = tuple(partition.fetched() for partition in self.responses)
        return Received(m.FetchResponse(error=self.error, session_id=self.session_id, partitions=partitions))


def _described(body: _DescribedGroups) -> Received:
    (group,) = body.groups
    return Received(group)


def _assigned(response: r.ConsumerGroupHeartbeatResponse) -> Received:
    given = response.assignment
    return Received(response if given is None else replace(response, assignment=tuple(sorted(given))))


@cache
def receiving_of(api: Api, version: int) -> Reading:
    """Return how a response is read: as a `Received`."""
    if api is Api.FIND_COORDINATOR and version >= 4:
        return Reading(_Coordinators, lambda body: body.coordinators[0].received())
    return _RECEIVED.get(api) or Reading(ROWS[api].response, Received)


_RECEIVED: Mapping[Api, Reading] = {
    Api.FIND_COORDINATOR: Reading(_Coordinator, _Coordinator.received),
    Api.METADATA: Reading(_Metadata, _Metadata.received),
    Api.FETCH: Reading(_Fetched, _Fetched.received),
    Api.CONSUMER_GROUP_DESCRIBE: Reading(_DescribedGroups, _described),
    Api.CONSUMER_GROUP_HEARTBEAT: Reading(r.ConsumerGroupHeartbeatResponse, _assigned),
}
