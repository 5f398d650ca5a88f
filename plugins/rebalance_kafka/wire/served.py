"""Group requests off the wire into the core's values, and its answers back: what a broker needs.

Where an old version has no place for what the core says, the nearest thing that version knows stands for
it: a LeaveGroup of before v3 is one member, its error that member's.
"""

from collections.abc import Callable, Iterable, Mapping
from itertools import groupby
from typing import Any, TypeVar

from kio.schema.errors import ErrorCode as Wire

from coordinator_core.model import TopicPartition
from coordinator_core.protocol import messages as m
from coordinator_core.protocol.error_codes import ErrorCode
from rebalance_kafka.wire.apis import Api, Request, Values, in_ms

_T = TypeVar("_T")


def core_request(request: Request) -> m.Request:
    """The core's request; FindCoordinator is not among them, it asks for several keys at once."""
    return _REQUESTS[request.api](request.body, request.version)


def answer_values(request: Request, response: m.Response) -> Values:
    """What the answer says, for `encode_response` in the request's version."""
    values: Values = _ANSWERS[request.api](response, request)
    return values


# --- requests


def _join(body: Any, version: int) -> m.JoinGroupRequest:
    session_ms = in_ms(body.session_timeout)
    return m.JoinGroupRequest(
        group_id=body.group_id,
        session_timeout_ms=session_ms,
        rebalance_timeout_ms=in_ms(body.rebalance_timeout) if version >= 1 else session_ms,
        member_id=body.member_id,
        group_instance_id=body.group_instance_id if version >= 5 else None,
        protocol_type=body.protocol_type,
        protocols=tuple(m.JoinGroupProtocol(p.name, bytes(p.metadata)) for p in body.protocols),
        reason=(body.reason or "") if version >= 8 else "",
        version=version,
    )


def _sync(body: Any, version: int) -> m.SyncGroupRequest:
    return m.SyncGroupRequest(
        group_id=body.group_id,
        generation_id=body.generation_id,
        member_id=body.member_id,
        group_instance_id=body.group_instance_id if version >= 3 else None,
        protocol_type=body.protocol_type if version >= 5 else None,
        protocol_name=body.protocol_name if version >= 5 else None,
        assignments=tuple(m.SyncGroupAssignment(a.member_id, bytes(a.assignment)) for a in body.assignments),
    )


def _heartbeat(body: Any, version: int) -> m.HeartbeatRequest:
    return m.HeartbeatRequest(
        group_id=body.group_id,
        generation_id=body.generation_id,
        member_id=body.member_id,
        group_instance_id=body.group_instance_id if version >= 3 else None,
    )


def _leave(body: Any, version: int) -> m.LeaveGroupRequest:
    if version < 3:
        members: tuple[m.MemberIdentity, ...] = (m.MemberIdentity(body.member_id),)
    else:
        members = tuple(
            m.MemberIdentity(
                each.member_id, each.group_instance_id, (each.reason or "") if version >= 5 else ""
            )
            for each in body.members
        )
    return m.LeaveGroupRequest(group_id=body.group_id, members=members)


def _commit(body: Any, version: int) -> m.OffsetCommitRequest:
    offsets = tuple(
        m.OffsetToCommit(
            topic.name,
            each.partition_index,
            each.committed_offset,
            each.committed_leader_epoch if version >= 6 else -1,
            each.committed_metadata or "",
        )
        for topic in body.topics
        for each in topic.partitions
    )
    return m.OffsetCommitRequest(
        group_id=body.group_id,
        generation_id=body.generation_id_or_member_epoch,
        member_id=body.member_id,
        group_instance_id=body.group_instance_id if version >= 7 else None,
        offsets=offsets,
    )


def _fetch_offsets(body: Any, _: int) -> m.OffsetFetchRequest:
    if body.topics is None:
        return m.OffsetFetchRequest(group_id=body.group_id)
    wanted = (TopicPartition(t.name, number) for t in body.topics for number in t.partition_indexes)
    return m.OffsetFetchRequest(group_id=body.group_id, partitions=_once(wanted))


def _describe(body: Any, _: int) -> m.DescribeGroupsRequest:
    return m.DescribeGroupsRequest(group_ids=_once(body.groups))


def _list(body: Any, version: int) -> m.ListGroupsRequest:
    return m.ListGroupsRequest(states=tuple(body.states_filter) if version >= 4 else ())


def _delete(body: Any, _: int) -> m.DeleteGroupsRequest:
    return m.DeleteGroupsRequest(group_ids=_once(body.groups_names))


def _delete_offsets(body: Any, _: int) -> m.OffsetDeleteRequest:
    wanted = tuple(TopicPartition(t.name, p.partition_index) for t in body.topics for p in t.partitions)
    return m.OffsetDeleteRequest(group_id=body.group_id, partitions=wanted)


def _once(asked: Iterable[_T]) -> tuple[_T, ...]:
    """Whoever asks for something a thousand times is not answered a thousand times."""
    return tuple(dict.fromkeys(asked))


# --- answers


def _error(code: ErrorCode) -> Wire:
    return Wire(int(code))


def _joined(answer: m.JoinGroupResponse, request: Request) -> Values:
    name = answer.protocol_name
    return {
        "error_code": _error(answer.error),
        "generation_id": answer.generation_id,
        "protocol_type": answer.protocol_type,
        "protocol_name": name if name is not None or request.version >= 7 else "",
        "leader": answer.leader,
        "skip_assignment": answer.skip_assignment,
        "member_id": answer.member_id,
        "members": tuple(
            {"member_id": e.member_id, "group_instance_id": e.group_instance_id, "metadata": e.metadata}
            for e in answer.members
        ),
    }


def _synced(answer: m.SyncGroupResponse, _: Request) -> Values:
    return {
        "error_code": _error(answer.error),
        "protocol_type": answer.protocol_type,
        "protocol_name": answer.protocol_name,
        "assignment": answer.assignment,
    }


def _heard(answer: m.HeartbeatResponse, _: Request) -> Values:
    return {"error_code": _error(answer.error)}


def _left(answer: m.LeaveGroupResponse, request: Request) -> Values:
    error = answer.error
    if request.version < 3 and error is ErrorCode.NONE and answer.members:
        error = answer.members[0].error
    members = tuple(
        {
            "member_id": each.member_id,
            "group_instance_id": each.group_instance_id,
            "error_code": _error(each.error),
        }
        for each in answer.members
    )
    return {"error_code": _error(error), "members": members}


def _committed(answer: m.OffsetCommitResponse, _: Request) -> Values:
    return {"topics": _partition_errors(answer.partitions)}


def _fetched(answer: m.OffsetFetchResponse, request: Request) -> Values:
    offsets = answer.offsets
    if answer.error is not ErrorCode.NONE and request.body.topics is not None:
        offsets = tuple(
            m.FetchedOffset(topic.name, number, m.NO_OFFSET, error=answer.error)
            for topic in request.body.topics
            for number in topic.partition_indexes
        )
    topics = _by_topic(
        offsets,
        lambda each: {
            "partition_index": each.partition,
            "committed_offset": each.offset,
            "committed_leader_epoch": each.leader_epoch,
            "metadata": each.metadata,
            "error_code": _error(each.error),
        },
    )
    return {"topics": topics, "error_code": _error(answer.error)}


def _described(answer: m.DescribeGroupsResponse, _: Request) -> Values:
    return {"groups": tuple(_described_group(group) for group in answer.groups)}


def _described_group(group: m.DescribedGroup) -> Values:
    members = tuple(
        {
            "member_id": each.member_id,
            "group_instance_id": each.group_instance_id,
            "client_id": each.client_id,
            "client_host": each.client_host,
            "member_metadata": each.metadata,
            "member_assignment": each.assignment,
        }
        for each in group.members
    )
    unknown = group.error is ErrorCode.GROUP_ID_NOT_FOUND  # before version 6 it is Dead only (KIP-1043)
    return {
        "error_code": _error(ErrorCode.NONE if unknown else group.error),
        "group_id": group.group_id,
        "group_state": group.state,
        "protocol_type": group.protocol_type,
        "protocol_data": group.protocol_name,
        "members": members,
    }


def _listed(answer: m.ListGroupsResponse, _: Request) -> Values:
    groups = tuple(
        {"group_id": each.group_id, "protocol_type": each.protocol_type, "group_state": each.state}
        for each in answer.groups
    )
    return {"error_code": _error(answer.error), "groups": groups}


def _deleted(answer: m.DeleteGroupsResponse, _: Request) -> Values:
    return {"results": tuple({"group_id": g.group_id, "error_code": _error(g.error)} for g in answer.groups)}


def _offsets_deleted(answer: m.OffsetDeleteResponse, _: Request) -> Values:
    return {"error_code": _error(answer.error), "topics": _partition_errors(answer.partitions)}


def _partition_errors(partitions: Iterable[m.PartitionError]) -> tuple[Values, ...]:
    return _by_topic(
        partitions, lambda each: {"partition_index": each.partition, "error_code": _error(each.error)}
    )


def _by_topic(rows: Iterable[Any], each: Callable[[Any], Values]) -> tuple[Values, ...]:
    """Rows that follow one another and are of one topic, together."""
    return tuple(
        {"name": topic, "partitions": tuple(map(each, group))}
        for topic, group in groupby(rows, key=lambda row: row.topic)
    )


_REQUESTS: Mapping[Api, Callable[[Any, int], m.Request]] = {
    Api.JOIN_GROUP: _join,
    Api.SYNC_GROUP: _sync,
    Api.HEARTBEAT: _heartbeat,
    Api.LEAVE_GROUP: _leave,
    Api.OFFSET_COMMIT: _commit,
    Api.OFFSET_FETCH: _fetch_offsets,
    Api.DESCRIBE_GROUPS: _describe,
    Api.LIST_GROUPS: _list,
    Api.DELETE_GROUPS: _delete,
    Api.OFFSET_DELETE: _delete_offsets,
}

_ANSWERS: Mapping[Api, Callable[[Any, Request], Values]] = {
    Api.JOIN_GROUP: _joined,
    Api.SYNC_GROUP: _synced,
    Api.HEARTBEAT: _heard,
    Api.LEAVE_GROUP: _left,
    Api.OFFSET_COMMIT: _committed,
    Api.OFFSET_FETCH: _fetched,
    Api.DESCRIBE_GROUPS: _described,
    Api.LIST_GROUPS: _listed,
    Api.DELETE_GROUPS: _deleted,
    Api.OFFSET_DELETE: _offsets_deleted,
}
