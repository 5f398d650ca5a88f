"""The core's requests onto the wire and the answers back: what a client needs.

A version that has no place for something is not told of it; what it cannot say comes back as unknown.
"""

from collections.abc import Callable, Mapping, Sequence
from itertools import groupby
from typing import Any, NamedTuple, TypeAlias

from coordinator_core.errors import ProtocolError
from coordinator_core.model import TopicPartition
from coordinator_core.protocol import messages as m
from coordinator_core.protocol.error_codes import ErrorCode
from rebalance_kafka.wire.apis import Api, Values, from_ms
from rebalance_kafka.wire.batches import records_of

MOST_BYTES = 50 * 1024 * 1024
MOST_PARTITION_BYTES = 1024 * 1024
GROUP_KEY = 0
READ_UNCOMMITTED = 0


class Node(NamedTuple):
    """A broker as it tells of itself."""

    node: int
    host: str
    port: int
    rack: str | None


class Answer(NamedTuple):
    """The core's answer, and the brokers it named."""

    response: m.Response
    nodes: tuple[Node, ...] = ()


Reader: TypeAlias = Callable[[Any, Any, int], Answer | m.Response]
"""Entity, the core's request and the version to the answer."""


def api_of(request: m.Request) -> Api:
    """Which API a request of the core's is."""
    return _APIS[type(request)]


def request_values(request: m.Request, version: int) -> Values:
    """What the request says, for `encode_request` in that version."""
    values: Values = _WRITERS[type(request)](request, version)
    return values


def core_answer(request: m.Request, body: Any, version: int) -> Answer:
    """The core's answer from kio's entity. Raises ProtocolError for records that cannot be read."""
    answer = _READERS[type(request)](body, request, version)
    return answer if isinstance(answer, Answer) else Answer(answer)


def _error(code: int) -> ErrorCode:
    """An error that the core does not know is the broker's own trouble."""
    try:
        return ErrorCode(int(code))
    except ValueError:
        return ErrorCode.UNKNOWN_SERVER_ERROR


# --- group membership


def _find(request: m.FindCoordinatorRequest, _: int) -> Values:
    return {"key": request.key, "coordinator_keys": (request.key,), "key_type": GROUP_KEY}


def _found(body: Any, _: m.FindCoordinatorRequest, version: int) -> Answer:
    found = body.coordinators[0] if version >= 4 else body
    error = _error(found.error_code)
    nodes = (Node(found.node_id, found.host, found.port, None),) if error is ErrorCode.NONE else ()
    return Answer(m.FindCoordinatorResponse(error=error, node=found.node_id), nodes)


def _join(request: m.JoinGroupRequest, _: int) -> Values:
    return {
        "group_id": request.group_id,
        "session_timeout": from_ms(request.session_timeout_ms),
        "rebalance_timeout": from_ms(request.rebalance_timeout_ms),
        "member_id": request.member_id,
        "group_instance_id": request.group_instance_id,
        "protocol_type": request.protocol_type,
        "protocols": tuple({"name": p.name, "metadata": p.metadata} for p in request.protocols),
        "reason": request.reason,
    }


def _joined(body: Any, _: m.JoinGroupRequest, version: int) -> m.JoinGroupResponse:
    return m.JoinGroupResponse(
        error=_error(body.error_code),
        generation_id=body.generation_id,
        protocol_type=body.protocol_type if version >= 7 else None,
        protocol_name=body.protocol_name,
        leader=body.leader,
        skip_assignment=body.skip_assignment if version >= 9 else False,
        member_id=body.member_id,
        members=tuple(
            m.JoinGroupMember(
                each.member_id, each.group_instance_id if version >= 5 else None, bytes(each.metadata)
            )
            for each in body.members
        ),
    )


def _sync(request: m.SyncGroupRequest, _: int) -> Values:
    return {
        "group_id": request.group_id,
        "generation_id": request.generation_id,
        "member_id": request.member_id,
        "group_instance_id": request.group_instance_id,
        "protocol_type": request.protocol_type,
        "protocol_name": request.protocol_name,
        "assignments": tuple(
            {"member_id": each.member_id, "assignment": each.assignment} for each in request.assignments
        ),
    }


def _synced(body: Any, _: m.SyncGroupRequest, version: int) -> m.SyncGroupResponse:
    return m.SyncGroupResponse(
        error=_error(body.error_code),
        protocol_type=body.protocol_type if version >= 5 else None,
        protocol_name=body.protocol_name if version >= 5 else None,
        assignment=bytes(body.assignment),
    )


def _heartbeat(request: m.HeartbeatRequest, _: int) -> Values:
    return {
        "group_id": request.group_id,
        "generation_id": request.generation_id,
        "member_id": request.member_id,
        "group_instance_id": request.group_instance_id,
    }


def _heard(body: Any, _: m.HeartbeatRequest, __: int) -> m.HeartbeatResponse:
    return m.HeartbeatResponse(error=_error(body.error_code))


def _leave(request: m.LeaveGroupRequest, _: int) -> Values:
    members = tuple(
        {
            "member_id": each.member_id,
            "group_instance_id": each.group_instance_id,
            "reason": each.reason,
        }
        for each in request.members
    )
    return {
        "group_id": request.group_id,
        "member_id": request.members[0].member_id if request.members else "",
        "members": members,
    }


def _left(body: Any, _: m.LeaveGroupRequest, version: int) -> m.LeaveGroupResponse:
    if version < 3:
        return m.LeaveGroupResponse(error=_error(body.error_code))
    members = tuple(
        m.LeaveGroupMemberResponse(each.member_id, each.group_instance_id, _error(each.error_code))
        for each in body.members
    )
    return m.LeaveGroupResponse(error=_error(body.error_code), members=members)


# --- offsets


def _commit(request: m.OffsetCommitRequest, _: int) -> Values:
    return {
        "group_id": request.group_id,
        "generation_id_or_member_epoch": request.generation_id,
        "member_id": request.member_id,
        "group_instance_id": request.group_instance_id,
        "retention_time": from_ms(-1),
        "topics": _by_topic(
            request.offsets,
            lambda each: {
                "partition_index": each.partition,
                "committed_offset": each.offset,
                "committed_leader_epoch": each.leader_epoch,
                "committed_metadata": each.metadata,
            },
        ),
    }


def _committed(body: Any, _: m.OffsetCommitRequest, __: int) -> m.OffsetCommitResponse:
    return m.OffsetCommitResponse(partitions=_partition_errors(body.topics))


def _fetch_offsets(request: m.OffsetFetchRequest, _: int) -> Values:
    if request.partitions is None:
        return {"group_id": request.group_id, "topics": None}
    wanted = _grouped(request.partitions)
    topics = tuple({"name": topic, "partition_indexes": tuple(n)} for topic, n in wanted.items())
    return {"group_id": request.group_id, "topics": topics, "require_stable": True}


def _fetched_offsets(body: Any, _: m.OffsetFetchRequest, version: int) -> m.OffsetFetchResponse:
    offsets = tuple(
        m.FetchedOffset(
            topic.name,
            each.partition_index,
            each.committed_offset,
            each.committed_leader_epoch if version >= 5 else -1,
            each.metadata or "",
            _error(each.error_code),
        )
        for topic in body.topics or ()  # null from librdkafka's mock cluster
        for each in topic.partitions
    )
    error = _error(body.error_code) if version >= 2 else ErrorCode.NONE
    return m.OffsetFetchResponse(error=error, offsets=offsets)


# --- topics and records


def _metadata(request: m.MetadataRequest, version: int) -> Values:
    topics = None if request.topics is None else tuple({"name": name} for name in request.topics)
    if version == 0 and topics is None:
        topics = ()
    return {
        "topics": topics,
        "allow_auto_topic_creation": False,
        "include_cluster_authorized_operations": False,
        "include_topic_authorized_operations": False,
    }


def _described(body: Any, _: m.MetadataRequest, version: int) -> Answer:
    nodes = tuple(
        Node(each.node_id, each.host, each.port, each.rack if version >= 1 else None) for each in body.brokers
    )
    racks = {each.node: each.rack for each in nodes}
    topics = tuple(
        m.TopicMetadata(
            topic.name,
            _partitions(topic, racks, version),
            _error(topic.error_code),
            version >= 1 and topic.is_internal,
        )
        for topic in body.topics
    )
    return Answer(m.MetadataResponse(topics=topics, nodes=tuple(each.node for each in nodes)), nodes)


def _partitions(topic: Any, racks: Mapping[int, str | None], version: int) -> tuple[m.PartitionMetadata, ...]:
    described = {
        each.partition_index: m.PartitionMetadata(
            each.leader_id,
            each.leader_epoch if version >= 7 else -1,
            tuple(rack for node in each.replica_nodes if (rack := racks.get(node)) is not None),
            _error(each.error_code),
        )
        for each in topic.partitions
    }
    return tuple(described[number] for number in sorted(described))


def _list_offsets(request: m.ListOffsetsRequest, _: int) -> Values:
    return {
        "replica_id": -1,
        "isolation_level": READ_UNCOMMITTED,
        "topics": _by_topic(
            request.partitions,
            lambda each: {"partition_index": each.partition, "timestamp": request.timestamp},
        ),
    }


def _listed_offsets(body: Any, _: m.ListOffsetsRequest, version: int) -> m.ListOffsetsResponse:
    offsets = tuple(
        m.ListedOffset(
            topic.name,
            each.partition_index,
            each.offset,
            each.leader_epoch if version >= 4 else -1,
            _error(each.error_code),
        )
        for topic in body.topics
        for each in topic.partitions
    )
    return m.ListOffsetsResponse(offsets=offsets)


def _epochs(request: m.OffsetForLeaderEpochRequest, _: int) -> Values:
    topics = tuple(
        {
            "topic": topic,
            "partitions": tuple({"partition": e.partition, "leader_epoch": e.leader_epoch} for e in each),
        }
        for topic, each in groupby(request.partitions, key=lambda each: each.topic)
    )
    return {"replica_id": -1, "topics": topics}


def _epoch_ends(body: Any, _: m.OffsetForLeaderEpochRequest, __: int) -> m.OffsetForLeaderEpochResponse:
    ends = tuple(
        m.EpochEnd(topic.topic, e.partition, e.end_offset, e.leader_epoch, _error(e.error_code))
        for topic in body.topics
        for e in topic.partitions
    )
    return m.OffsetForLeaderEpochResponse(ends=ends)


def _fetch(request: m.FetchRequest, version: int) -> Values:
    topics = tuple(
        {
            "topic": topic,
            "partitions": tuple(
                {
                    "partition": part.partition,
                    "current_leader_epoch": part.leader_epoch,
                    "fetch_offset": part.offset,
                    "partition_max_bytes": MOST_PARTITION_BYTES,
                }
                for part in each
            ),
        }
        for topic, each in groupby(request.partitions, key=lambda part: part.topic)
    )
    forgotten = _grouped(request.forgotten)
    return {
        "replica_id": -1,
        "max_wait": from_ms(request.max_wait_ms),
        "min_bytes": 1,
        "max_bytes": MOST_BYTES,
        "isolation_level": READ_UNCOMMITTED,
        "session_id": request.session_id if version >= 7 else 0,
        "session_epoch": request.session_epoch if version >= 7 else -1,
        "topics": topics,
        "forgotten_topics_data": tuple({"topic": t, "partitions": tuple(n)} for t, n in forgotten.items()),
        "rack_id": "",
    }


def _fetched(body: Any, _: m.FetchRequest, version: int) -> m.FetchResponse:
    partitions = tuple(
        _fetched_partition(topic.topic, each) for topic in body.responses for each in topic.partitions
    )
    return m.FetchResponse(
        error=_error(body.error_code) if version >= 7 else ErrorCode.NONE,
        session_id=body.session_id if version >= 7 else 0,
        partitions=partitions,
    )


def _fetched_partition(topic: str, each: Any) -> m.FetchedPartition:
    error = _error(each.error_code)
    try:
        records, next_offset = records_of(bytes(each.records or b""))
    except ProtocolError:  # the other partitions go on
        records, next_offset, error = [], -1, ErrorCode.CORRUPT_MESSAGE
    return m.FetchedPartition(
        topic,
        each.partition_index,
        records[0].offset if records else -1,
        each.high_watermark,
        each.last_stable_offset,
        getattr(each, "log_start_offset", -1),
        tuple(records),
        next_offset,
        error,
    )


# --- groups from outside


def _describe(request: m.DescribeGroupsRequest, _: int) -> Values:
    return {"groups": request.group_ids, "include_authorized_operations": False}


def _groups_described(body: Any, _: m.DescribeGroupsRequest, version: int) -> m.DescribeGroupsResponse:
    groups = tuple(
        m.DescribedGroup(
            error=_error(group.error_code),
            group_id=group.group_id,
            state=group.group_state,
            protocol_type=group.protocol_type,
            protocol_name=group.protocol_data,
            members=tuple(
                m.DescribedMember(
                    each.member_id,
                    each.group_instance_id if version >= 4 else None,
                    each.client_id,
                    each.client_host,
                    bytes(each.member_metadata),
                    bytes(each.member_assignment),
                )
                for each in group.members
            ),
        )
        for group in body.groups
    )
    return m.DescribeGroupsResponse(groups=groups)


def _list(request: m.ListGroupsRequest, _: int) -> Values:
    return {"states_filter": request.states}


def _listed(body: Any, _: m.ListGroupsRequest, version: int) -> m.ListGroupsResponse:
    groups = tuple(
        m.ListedGroup(each.group_id, each.protocol_type, each.group_state if version >= 4 else "")
        for each in body.groups
    )
    return m.ListGroupsResponse(error=_error(body.error_code), groups=groups)


# --- shapes


def _grouped(partitions: Sequence[TopicPartition]) -> dict[str, list[int]]:
    grouped: dict[str, list[int]] = {}
    for topic, number in partitions:
        grouped.setdefault(topic, []).append(number)
    return grouped


def _by_topic(rows: Sequence[Any], each: Callable[[Any], Values]) -> tuple[Values, ...]:
    grouped: dict[str, list[Values]] = {}
    for row in rows:
        grouped.setdefault(row.topic, []).append(each(row))
    return tuple({"name": topic, "partitions": tuple(values)} for topic, values in grouped.items())


def _partition_errors(topics: Any) -> tuple[m.PartitionError, ...]:
    return tuple(
        m.PartitionError(topic.name, each.partition_index, _error(each.error_code))
        for topic in topics
        for each in topic.partitions
    )


_APIS: Mapping[type, Api] = {
    m.FindCoordinatorRequest: Api.FIND_COORDINATOR,
    m.JoinGroupRequest: Api.JOIN_GROUP,
    m.SyncGroupRequest: Api.SYNC_GROUP,
    m.HeartbeatRequest: Api.HEARTBEAT,
    m.LeaveGroupRequest: Api.LEAVE_GROUP,
    m.OffsetCommitRequest: Api.OFFSET_COMMIT,
    m.OffsetFetchRequest: Api.OFFSET_FETCH,
    m.MetadataRequest: Api.METADATA,
    m.ListOffsetsRequest: Api.LIST_OFFSETS,
    m.OffsetForLeaderEpochRequest: Api.OFFSET_FOR_LEADER_EPOCH,
    m.FetchRequest: Api.FETCH,
    m.DescribeGroupsRequest: Api.DESCRIBE_GROUPS,
    m.ListGroupsRequest: Api.LIST_GROUPS,
}

_WRITERS: Mapping[type, Callable[[Any, int], Values]] = {
    m.FindCoordinatorRequest: _find,
    m.JoinGroupRequest: _join,
    m.SyncGroupRequest: _sync,
    m.HeartbeatRequest: _heartbeat,
    m.LeaveGroupRequest: _leave,
    m.OffsetCommitRequest: _commit,
    m.OffsetFetchRequest: _fetch_offsets,
    m.MetadataRequest: _metadata,
    m.ListOffsetsRequest: _list_offsets,
    m.OffsetForLeaderEpochRequest: _epochs,
    m.FetchRequest: _fetch,
    m.DescribeGroupsRequest: _describe,
    m.ListGroupsRequest: _list,
}

_READERS: Mapping[type, Reader] = {
    m.FindCoordinatorRequest: _found,
    m.JoinGroupRequest: _joined,
    m.SyncGroupRequest: _synced,
    m.HeartbeatRequest: _heard,
    m.LeaveGroupRequest: _left,
    m.OffsetCommitRequest: _committed,
    m.OffsetFetchRequest: _fetched_offsets,
    m.MetadataRequest: _described,
    m.ListOffsetsRequest: _listed_offsets,
    m.OffsetForLeaderEpochRequest: _epoch_ends,
    m.FetchRequest: _fetched,
    m.DescribeGroupsRequest: _groups_described,
    m.ListGroupsRequest: _listed,
}
