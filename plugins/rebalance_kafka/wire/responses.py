"""Responses: from the messages of the core to kio's entities, which the broker sends, and back."""

from collections.abc import Callable, Mapping
from functools import cache
from typing import Any, NamedTuple
from uuid import UUID

import msgspec
from kio.index import load_response_schema
from kio.schema.errors import ErrorCode as Wire

from coordinator_core.errors import ProtocolError
from coordinator_core.protocol import messages as m
from coordinator_core.protocol.error_codes import ErrorCode
from coordinator_core.protocol.reconcile import ConsumerGroupDescribeRequest, ConsumerGroupHeartbeatRequest
from rebalance_kafka.wire.apis import ROWS, Api, api_of
from rebalance_kafka.wire.batches import Aborted, records_of
from rebalance_kafka.wire.consumer_groups import NO_TOPICS, Topics, describe_response, heartbeat_response
from rebalance_kafka.wire.frames import Request, Values, encode_response
from rebalance_kafka.wire.mapping import Convert, reader, writer

_CORRELATION = slice(4, 8)
"""The place of the correlation id in a frame with its length."""


class Node(NamedTuple):
    """A broker of the cluster as a response describes it."""

    node: int
    host: str
    port: int
    rack: str | None = None


class Received(NamedTuple):
    """The core's message of a response, the brokers that it names, and the ids of its topics by name."""

    response: m.Response
    nodes: tuple[Node, ...] = ()
    topic_ids: Mapping[str, UUID] = {}


def response_entity(request: Request, response: m.Response) -> Any:
    """Return the entity of a response, for `encode_response` in the request's version."""
    shape = _SHAPES.get(request.api)
    shaped = response if shape is None else shape(response, request)
    return _writer(request.api, request.version)(shaped)


def heartbeat_frame(request: Request, response: m.HeartbeatResponse) -> bytes:
    """Return the frame of a response to a heartbeat, of which only the correlation id differs."""
    template = _heartbeat_template(request.version, response.error)
    correlation_id = request.correlation_id.to_bytes(4, "big", signed=True)
    return template[: _CORRELATION.start] + correlation_id + template[_CORRELATION.stop :]


@cache
def _heartbeat_template(version: int, error: ErrorCode) -> bytes:
    entity = _writer(Api.HEARTBEAT, version)(m.HeartbeatResponse(error=error))
    return encode_response(Api.HEARTBEAT, version, 0, entity)


def offsets_of_groups(responses: Mapping[str, m.OffsetFetchResponse]) -> Values:
    """Return the body of a response to an OffsetFetch of several groups, from the response of each."""
    groups = []
    for group_id, response in responses.items():
        topics: dict[str, list[Values]] = {}
        for offset in response.offsets:
            topics.setdefault(offset.topic, []).append(
                {
                    "partition_index": offset.partition,
                    "committed_offset": offset.offset,
                    "committed_leader_epoch": offset.leader_epoch,
                    "metadata": offset.metadata,
                    "error_code": Wire(int(offset.error)),
                }
            )
        rows = tuple({"name": name, "partitions": tuple(rows)} for name, rows in topics.items())
        groups.append({"group_id": group_id, "topics": rows, "error_code": Wire(int(response.error))})
    return {"groups": tuple(groups)}


def response_message(request: m.Request, body: Any, version: int, topics: Topics = NO_TOPICS) -> Received:
    """Return the core's message of a response that a broker sent.

    Records that cannot be read are an error of their partition.
    """
    if isinstance(request, ConsumerGroupHeartbeatRequest):
        return Received(heartbeat_response(body, topics))
    if isinstance(request, ConsumerGroupDescribeRequest):
        return Received(describe_response(body))
    api = api_of(request)
    special = _SPECIAL.get(api)
    if special is not None:
        return special(body, version)
    return Received(_reader(api, ROWS[api].response, version)(body))


@cache
def _writer(api: Api, version: int) -> Convert:
    return writer(ROWS[api].response, load_response_schema(api, version))


@cache
def _reader(api: Api, shape: type, version: int) -> Convert:
    return reader(shape, load_response_schema(api, version))


# --- responses that the broker sends and Kafka arranges in another way


def _left(response: m.LeaveGroupResponse, request: Request) -> m.LeaveGroupResponse:
    """Return the error of the only member as the error of the response, before version 3."""
    if request.version < 3 and response.error is ErrorCode.NONE and response.members:
        return m.LeaveGroupResponse(error=response.members[0].error)
    return response


def _fetched_offsets(response: m.OffsetFetchResponse, request: Request) -> m.OffsetFetchResponse:
    """Add an error of the response to every requested partition."""
    if response.error is ErrorCode.NONE or request.body.topics is None:
        return response
    offsets = tuple(
        m.FetchedOffset(topic.name, number, m.NO_OFFSET, error=response.error)
        for topic in request.body.topics
        for number in topic.partition_indexes
    )
    return m.OffsetFetchResponse(error=response.error, offsets=offsets)


def _described_groups(response: m.DescribeGroupsResponse, _: Request) -> m.DescribeGroupsResponse:
    """Describe unknown groups as Dead, without an error, as before version 6 (KIP-1043)."""
    groups = tuple(
        msgspec.structs.replace(group, error=ErrorCode.NONE)
        if group.error is ErrorCode.GROUP_ID_NOT_FOUND
        else group
        for group in response.groups
    )
    return m.DescribeGroupsResponse(groups=groups)


_SHAPES: Mapping[Api, Callable[[Any, Request], m.Response]] = {
    Api.LEAVE_GROUP: _left,
    Api.OFFSET_FETCH: _fetched_offsets,
    Api.DESCRIBE_GROUPS: _described_groups,
}


# --- responses that the consumer receives and Kafka arranges in another way


class _Coordinator(msgspec.Struct):
    error: ErrorCode
    node: int
    host: str
    port: int


class _Coordinators(msgspec.Struct):
    coordinators: tuple[_Coordinator, ...]


class _Partition(msgspec.Struct):
    partition_index: int
    leader_id: int
    replica_nodes: tuple[int, ...]
    error: ErrorCode
    leader_epoch: int = -1


class _Topic(msgspec.Struct):
    name: str
    error: ErrorCode
    partitions: tuple[_Partition, ...]
    is_internal: bool = False
    topic_id: UUID | None = None


class _Metadata(msgspec.Struct):
    brokers: tuple[Node, ...]
    topics: tuple[_Topic, ...]


class _Aborted(msgspec.Struct):
    producer_id: int
    first_offset: int


class _Records(msgspec.Struct):
    topic: str
    partition: int
    error: ErrorCode
    high_watermark: int
    last_stable_offset: int
    records: bytes
    log_start_offset: int = -1
    aborted_transactions: tuple[_Aborted, ...] = ()


class _Fetched(msgspec.Struct):
    error: ErrorCode
    responses: tuple[_Records, ...]
    session_id: int = 0


def _found(body: Any, version: int) -> Received:
    if version >= 4:
        found = _reader(Api.FIND_COORDINATOR, _Coordinators, version)(body).coordinators[0]
    else:
        found = _reader(Api.FIND_COORDINATOR, _Coordinator, version)(body)
    response = m.FindCoordinatorResponse(error=found.error, node=found.node)
    if found.error is not ErrorCode.NONE:
        return Received(response)
    return Received(response, (Node(found.node, found.host, found.port),))


def _described(body: Any, version: int) -> Received:
    metadata: _Metadata = _reader(Api.METADATA, _Metadata, version)(body)
    racks = {broker.node: broker.rack for broker in metadata.brokers}
    topics = tuple(
        m.TopicMetadata(topic.name, _partitions(topic, racks), topic.error, topic.is_internal)
        for topic in metadata.topics
    )
    nodes = tuple(broker.node for broker in metadata.brokers)
    ids = {topic.name: topic.topic_id for topic in metadata.topics if topic.topic_id is not None}
    return Received(m.MetadataResponse(topics=topics, nodes=nodes), metadata.brokers, ids)


def _partitions(topic: _Topic, racks: Mapping[int, str | None]) -> tuple[m.PartitionMetadata, ...]:
    """Return the partitions of a topic by their numbers."""
    by_number = {
        partition.partition_index: m.PartitionMetadata(
            partition.leader_id,
            partition.leader_epoch,
            tuple(rack for node in partition.replica_nodes if (rack := racks.get(node)) is not None),
            partition.error,
        )
        for partition in topic.partitions
    }
    return tuple(by_number[number] for number in sorted(by_number))


def _fetched(body: Any, version: int) -> Received:
    fetched: _Fetched = _reader(Api.FETCH, _Fetched, version)(body)
    partitions = tuple(map(_with_records, fetched.responses))
    return Received(
        m.FetchResponse(error=fetched.error, session_id=fetched.session_id, partitions=partitions)
    )


def _with_records(partition: _Records) -> m.FetchedPartition:
    error = partition.error
    try:
        aborted = [Aborted(each.producer_id, each.first_offset) for each in partition.aborted_transactions]
        records, next_offset = records_of(partition.records, aborted)
    except ProtocolError:  # the other partitions can be read
        records, next_offset, error = [], -1, ErrorCode.CORRUPT_MESSAGE
    return m.FetchedPartition(
        partition.topic,
        partition.partition,
        records[0].offset if records else -1,
        partition.high_watermark,
        partition.last_stable_offset,
        partition.log_start_offset,
        tuple(records),
        next_offset,
        error,
    )


_SPECIAL: Mapping[Api, Callable[[Any, int], Received]] = {
    Api.FIND_COORDINATOR: _found,
    Api.METADATA: _described,
    Api.FETCH: _fetched,
}
