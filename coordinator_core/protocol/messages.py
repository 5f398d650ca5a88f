"""The requests and responses that coordinator and client exchange.

Field names are Kafka's schema names in snake case. ``version`` is the API version of a request, where
behaviour depends on it: JoinGroup 4 requires known member ids, JoinGroup 9 has `skip_assignment`,
OffsetCommit 9 can name a member epoch. The structs check nothing when they are built; code that decodes into
them checks.
"""

from functools import cached_property
from typing import ClassVar

import msgspec

from coordinator_core.model import TopicInfo, TopicPartition
from coordinator_core.protocol.error_codes import ErrorCode

NO_MEMBER = ""
NO_OFFSET = -1
READ_UNCOMMITTED, READ_COMMITTED = 0, 1
"""Isolation levels: all records, or those of ended transactions without the aborted ones (KIP-98)."""


class Request(msgspec.Struct, frozen=True, kw_only=True):
    """The base of all requests."""


class Response(msgspec.Struct, frozen=True, kw_only=True):
    """The base of all responses."""


class FindCoordinatorRequest(Request, frozen=True):
    key: str


class FindCoordinatorResponse(Response, frozen=True):
    error: ErrorCode
    node: int = -1


class JoinGroupProtocol(msgspec.Struct, frozen=True):
    """An assignor of a member, with the member's subscription encoded for that assignor."""

    name: str
    metadata: bytes


class JoinGroupRequest(Request, frozen=True):
    group_id: str
    session_timeout_ms: int
    rebalance_timeout_ms: int
    member_id: str = NO_MEMBER
    group_instance_id: str | None = None
    protocol_type: str = "consumer"
    protocols: tuple[JoinGroupProtocol, ...] = ()
    reason: str = ""
    version: int = 9


class JoinGroupMember(msgspec.Struct, frozen=True):
    member_id: str
    group_instance_id: str | None
    metadata: bytes


class JoinGroupResponse(Response, frozen=True):
    error: ErrorCode
    generation_id: int = -1
    protocol_type: str | None = None
    protocol_name: str | None = None
    leader: str = ""
    skip_assignment: bool = False
    member_id: str = NO_MEMBER
    members: tuple[JoinGroupMember, ...] = ()


class SyncGroupAssignment(msgspec.Struct, frozen=True):
    member_id: str
    assignment: bytes


class SyncGroupRequest(Request, frozen=True):
    group_id: str
    generation_id: int
    member_id: str
    group_instance_id: str | None = None
    protocol_type: str | None = None
    protocol_name: str | None = None
    assignments: tuple[SyncGroupAssignment, ...] = ()


class SyncGroupResponse(Response, frozen=True):
    error: ErrorCode
    protocol_type: str | None = None
    protocol_name: str | None = None
    assignment: bytes = b""


class HeartbeatRequest(Request, frozen=True):
    group_id: str
    generation_id: int
    member_id: str
    group_instance_id: str | None = None


class HeartbeatResponse(Response, frozen=True):
    error: ErrorCode


class MemberIdentity(msgspec.Struct, frozen=True):
    """A member that leaves: by member id, or by instance id with an empty member id (administrators)."""

    member_id: str
    group_instance_id: str | None = None
    reason: str = ""


class LeaveGroupRequest(Request, frozen=True):
    group_id: str
    members: tuple[MemberIdentity, ...]


class LeaveGroupMemberResponse(msgspec.Struct, frozen=True):
    member_id: str
    group_instance_id: str | None
    error: ErrorCode


class LeaveGroupResponse(Response, frozen=True):
    error: ErrorCode
    members: tuple[LeaveGroupMemberResponse, ...] = ()


class OffsetToCommit(msgspec.Struct, frozen=True):
    topic: str
    partition: int
    offset: int
    leader_epoch: int = -1
    metadata: str = ""


DEFAULT_RETENTION = -1


class OffsetCommitRequest(Request, frozen=True):
    """``retention_time_ms``: the time after which the offsets expire, in versions 2 to 4."""

    group_id: str
    generation_id: int = -1
    member_id: str = NO_MEMBER
    group_instance_id: str | None = None
    offsets: tuple[OffsetToCommit, ...] = ()
    retention_time_ms: int = DEFAULT_RETENTION
    version: int = 9


class PartitionError(msgspec.Struct, frozen=True):
    topic: str
    partition: int
    error: ErrorCode


class OffsetCommitResponse(Response, frozen=True):
    partitions: tuple[PartitionError, ...] = ()


class TxnOffsetCommitRequest(Request, frozen=True):
    """A commit in the transaction of a producer. A member may name itself and its generation (KIP-447)."""

    transactional_id: str
    group_id: str
    producer_id: int
    producer_epoch: int
    generation_id: int = -1
    member_id: str = NO_MEMBER
    group_instance_id: str | None = None
    offsets: tuple[OffsetToCommit, ...] = ()
    version: int = 5


class TxnOffsetCommitResponse(Response, frozen=True):
    partitions: tuple[PartitionError, ...] = ()


class OffsetFetchRequest(Request, frozen=True):
    """``partitions``: None for all offsets of the group. A member may name itself and its epoch (KIP-848).

    ``require_stable``: an offset that a transaction may still change is an error (KIP-447).
    """

    group_id: str
    partitions: tuple[TopicPartition, ...] | None = None
    require_stable: bool = False
    member_id: str | None = None
    member_epoch: int = -1


class FetchedOffset(msgspec.Struct, frozen=True):
    topic: str
    partition: int
    offset: int
    leader_epoch: int = -1
    metadata: str = ""
    error: ErrorCode = ErrorCode.NONE


class OffsetFetchResponse(Response, frozen=True):
    error: ErrorCode
    offsets: tuple[FetchedOffset, ...] = ()


class DescribeGroupsRequest(Request, frozen=True):
    group_ids: tuple[str, ...]
    include_authorized_operations: bool = False


OPERATIONS_NOT_INCLUDED = -(2**31)
"""The authorized operations in a response to a request that does not include them."""


class DescribedMember(msgspec.Struct, frozen=True):
    member_id: str
    group_instance_id: str | None
    client_id: str
    client_host: str
    metadata: bytes
    assignment: bytes


class DescribedGroup(msgspec.Struct, frozen=True, kw_only=True):
    error: ErrorCode
    group_id: str
    state: str = ""
    protocol_type: str = ""
    protocol_name: str = ""
    members: tuple[DescribedMember, ...] = ()
    message: str | None = None
    authorized_operations: int = OPERATIONS_NOT_INCLUDED


class DescribeGroupsResponse(Response, frozen=True):
    groups: tuple[DescribedGroup, ...]


class ListGroupsRequest(Request, frozen=True):
    """``states`` and ``types``: the names of the states and types of groups to list; empty for all."""

    states: tuple[str, ...] = ()
    types: tuple[str, ...] = ()


class ListedGroup(msgspec.Struct, frozen=True):
    group_id: str
    protocol_type: str
    state: str
    group_type: str = ""


class ListGroupsResponse(Response, frozen=True):
    error: ErrorCode
    groups: tuple[ListedGroup, ...] = ()


class DeleteGroupsRequest(Request, frozen=True):
    group_ids: tuple[str, ...]


class DeletedGroup(msgspec.Struct, frozen=True):
    group_id: str
    error: ErrorCode


class DeleteGroupsResponse(Response, frozen=True):
    groups: tuple[DeletedGroup, ...]


class OffsetDeleteRequest(Request, frozen=True):
    group_id: str
    partitions: tuple[TopicPartition, ...]


class OffsetDeleteResponse(Response, frozen=True):
    error: ErrorCode
    partitions: tuple[PartitionError, ...] = ()


class MetadataRequest(Request, frozen=True):
    """``topics``: None for all topics."""

    topics: tuple[str, ...] | None = None


class PartitionMetadata(msgspec.Struct, frozen=True):
    leader: int
    leader_epoch: int = -1
    racks: tuple[str, ...] = ()
    error: ErrorCode = ErrorCode.NONE


class TopicMetadata(msgspec.Struct, frozen=True, dict=True):
    name: str
    partitions: tuple[PartitionMetadata, ...]
    error: ErrorCode = ErrorCode.NONE
    internal: bool = False

    @cached_property
    def is_led(self) -> bool:
        """Whether all partitions have leaders."""
        return all(partition.leader >= 0 for partition in self.partitions)

    @cached_property
    def info(self) -> TopicInfo:
        """The topic as assignors see it."""
        racks = tuple(partition.racks for partition in self.partitions)
        return TopicInfo(len(self.partitions), racks if any(racks) else None)


class MetadataResponse(Response, frozen=True):
    topics: tuple[TopicMetadata, ...]
    nodes: tuple[int, ...] = ()


class ListOffsetsRequest(Request, frozen=True):
    """``timestamp``: -1 for the end of the log (latest), -2 for its beginning (earliest)."""

    partitions: tuple[TopicPartition, ...]
    timestamp: int
    isolation_level: int = READ_UNCOMMITTED


class ListedOffset(msgspec.Struct, frozen=True):
    topic: str
    partition: int
    offset: int
    leader_epoch: int = -1
    error: ErrorCode = ErrorCode.NONE


class ListOffsetsResponse(Response, frozen=True):
    offsets: tuple[ListedOffset, ...]


class EpochToCheck(msgspec.Struct, frozen=True):
    """The leader epoch of a position, to be compared with the log (KIP-320)."""

    topic: str
    partition: int
    leader_epoch: int


class OffsetForLeaderEpochRequest(Request, frozen=True):
    partitions: tuple[EpochToCheck, ...]


class EpochEnd(msgspec.Struct, frozen=True):
    """The end of an epoch's records; -1 if it is unknown."""

    topic: str
    partition: int
    end_offset: int
    leader_epoch: int = -1
    error: ErrorCode = ErrorCode.NONE


class OffsetForLeaderEpochResponse(Response, frozen=True):
    ends: tuple[EpochEnd, ...]


class FetchPartition(msgspec.Struct, frozen=True):
    topic: str
    partition: int
    offset: int
    leader_epoch: int = -1
    partition_max_bytes: int = 1_048_576


class FetchRequest(Request, frozen=True):
    """A request of a fetch session (KIP-227): the partitions added or changed, and those forgotten.

    ``session_id`` 0 with ``session_epoch`` 0 opens a session; epoch -1 closes a session.
    """

    session_id: int = 0
    session_epoch: int = 0
    partitions: tuple[FetchPartition, ...] = ()
    forgotten: tuple[TopicPartition, ...] = ()
    max_wait_ms: int = 500
    isolation_level: int = READ_UNCOMMITTED


class FetchedRecord(msgspec.Struct, frozen=True):
    """One record. ``value`` is None for a tombstone; ``timestamp_ms`` is -1 if it is unknown."""

    offset: int
    value: bytes | None
    key: bytes | None = None
    timestamp_ms: int = -1
    headers: tuple[tuple[str, bytes | None], ...] = ()


class FetchedPartition(msgspec.Struct, frozen=True):
    """Records of one partition from ``offset`` on, in order; offsets may be missing between them.

    The records may begin before the requested offset, as brokers do not cut batches. ``next_offset`` is
    the offset to continue from, if it is not the one after the last record: the offsets between were
    compacted away, or are not records for consumers. Otherwise it is -1.
    """

    topic: str
    partition: int
    offset: int
    high_watermark: int = -1
    last_stable_offset: int = -1
    log_start_offset: int = -1
    records: tuple[FetchedRecord, ...] = ()
    next_offset: int = -1
    error: ErrorCode = ErrorCode.NONE


class FetchResponse(Response, frozen=True):
    error: ErrorCode
    session_id: int = 0
    partitions: tuple[FetchedPartition, ...] = ()


class FamilyRequest(Request, frozen=True):
    """The base of the requests that only one protocol family has.

    ``waits``: the request is answered when something changes. ``is_periodic``: members at rest send such
    requests again and again. The responses change nothing then. ``is_notable``: lists of messages describe
    the request even if it succeeds.
    """

    waits: ClassVar[bool] = False
    is_periodic: ClassVar[bool] = False
    is_notable: ClassVar[bool] = False

    @property
    def repeats(self) -> bool:
        """Whether a member at rest sends this request again and again."""
        return self.is_periodic


class FamilyResponse(Response, frozen=True):
    """The base of the responses that only one protocol family has."""

    @property
    def refusal(self) -> str:
        """What the response refuses, in the words of the family; "" if it has error codes, or succeeds."""
        return ""

    @property
    def changes_nothing(self) -> bool:
        """Whether the response changes nothing at a member at rest, which waits for none of its family."""
        return True
