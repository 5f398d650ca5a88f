"""The APIs of the Kafka protocol that are spoken here: one row each, with versions and messages.

To add a request, add its API key and its row here, and the fields whose names differ from Kafka's to
`rebalance_kafka.wire.fields`. kio has the schemas of every version: a row selects them by key and version.

Spoken: consumer groups of both protocols, their administration and their offsets; records and topics
without replication, and the administration of topics; idempotent producers and transactions; authentication
with SASL.

Not spoken: share groups and streams groups (KIP-932, KIP-1071); changes of access control,
quotas and delegation tokens; and every request that only brokers send to each other.
"""

from collections.abc import Mapping
from enum import IntEnum
from typing import NamedTuple

from coordinator_core.errors import ProtocolError
from coordinator_core.protocol import messages as m
from coordinator_core.protocol import reconcile


class Api(IntEnum):
    """The APIs that the embedded broker serves, by their keys."""

    PRODUCE = 0
    FETCH = 1
    LIST_OFFSETS = 2
    METADATA = 3
    OFFSET_COMMIT = 8
    OFFSET_FETCH = 9
    FIND_COORDINATOR = 10
    JOIN_GROUP = 11
    HEARTBEAT = 12
    LEAVE_GROUP = 13
    SYNC_GROUP = 14
    DESCRIBE_GROUPS = 15
    LIST_GROUPS = 16
    SASL_HANDSHAKE = 17
    API_VERSIONS = 18
    CREATE_TOPICS = 19
    DELETE_TOPICS = 20
    DELETE_RECORDS = 21
    INIT_PRODUCER_ID = 22
    OFFSET_FOR_LEADER_EPOCH = 23
    ADD_PARTITIONS_TO_TXN = 24
    ADD_OFFSETS_TO_TXN = 25
    END_TXN = 26
    TXN_OFFSET_COMMIT = 28
    DESCRIBE_CONFIGS = 32
    ALTER_CONFIGS = 33
    SASL_AUTHENTICATE = 36
    CREATE_PARTITIONS = 37
    DELETE_GROUPS = 42
    INCREMENTAL_ALTER_CONFIGS = 44
    OFFSET_DELETE = 47
    DESCRIBE_CLUSTER = 60
    DESCRIBE_TRANSACTIONS = 65
    LIST_TRANSACTIONS = 66
    CONSUMER_GROUP_HEARTBEAT = 68
    CONSUMER_GROUP_DESCRIBE = 69


MOST_VERSION = 2**15 - 1


class Row(NamedTuple):
    """An API: its lowest and highest version, and the messages of the core that stand for it.

    Without messages, the broker works on the values of the schema. ``most_sent``: the highest version that
    the consumer sends, if the broker serves higher ones.
    """

    versions: tuple[int, int]
    request: type | None = None
    response: type | None = None
    most_sent: int = MOST_VERSION


ROWS: Mapping[Api, Row] = {
    Api.PRODUCE: Row((3, 13)),
    Api.FETCH: Row((4, 18), m.FetchRequest, m.FetchResponse, 12),  # from version 13 on topics have ids
    Api.LIST_OFFSETS: Row((1, 11), m.ListOffsetsRequest, m.ListOffsetsResponse, 9),
    Api.METADATA: Row((0, 13), m.MetadataRequest, m.MetadataResponse, 12),
    Api.OFFSET_COMMIT: Row((2, 10), m.OffsetCommitRequest, m.OffsetCommitResponse, 9),
    Api.OFFSET_FETCH: Row((1, 10), m.OffsetFetchRequest, m.OffsetFetchResponse, 7),  # then of several groups
    Api.FIND_COORDINATOR: Row((0, 6), m.FindCoordinatorRequest, m.FindCoordinatorResponse),
    Api.JOIN_GROUP: Row((0, 9), m.JoinGroupRequest, m.JoinGroupResponse),
    Api.HEARTBEAT: Row((0, 4), m.HeartbeatRequest, m.HeartbeatResponse),
    Api.LEAVE_GROUP: Row((0, 5), m.LeaveGroupRequest, m.LeaveGroupResponse),
    Api.SYNC_GROUP: Row((0, 5), m.SyncGroupRequest, m.SyncGroupResponse),
    Api.DESCRIBE_GROUPS: Row((0, 6), m.DescribeGroupsRequest, m.DescribeGroupsResponse, 5),
    Api.LIST_GROUPS: Row((0, 5), m.ListGroupsRequest, m.ListGroupsResponse),
    Api.SASL_HANDSHAKE: Row((0, 1)),
    Api.API_VERSIONS: Row((0, 5)),
    Api.CREATE_TOPICS: Row((2, 7)),
    Api.DELETE_TOPICS: Row((1, 6)),
    Api.DELETE_RECORDS: Row((0, 2)),
    Api.INIT_PRODUCER_ID: Row((0, 5)),
    Api.OFFSET_FOR_LEADER_EPOCH: Row((2, 4), m.OffsetForLeaderEpochRequest, m.OffsetForLeaderEpochResponse),
    Api.ADD_PARTITIONS_TO_TXN: Row((0, 3)),  # later versions are of brokers
    Api.ADD_OFFSETS_TO_TXN: Row((0, 4)),
    Api.END_TXN: Row((0, 5)),
    Api.TXN_OFFSET_COMMIT: Row((0, 6), m.TxnOffsetCommitRequest, m.TxnOffsetCommitResponse, 5),
    Api.DESCRIBE_CONFIGS: Row((1, 4)),
    Api.ALTER_CONFIGS: Row((0, 2)),
    Api.SASL_AUTHENTICATE: Row((0, 2)),
    Api.CREATE_PARTITIONS: Row((0, 3)),
    Api.DELETE_GROUPS: Row((0, 3), m.DeleteGroupsRequest, m.DeleteGroupsResponse),
    Api.INCREMENTAL_ALTER_CONFIGS: Row((0, 1)),
    Api.OFFSET_DELETE: Row((0, 0), m.OffsetDeleteRequest, m.OffsetDeleteResponse),
    Api.DESCRIBE_CLUSTER: Row((0, 2)),
    Api.DESCRIBE_TRANSACTIONS: Row((0, 0)),
    Api.LIST_TRANSACTIONS: Row((0, 2)),
    Api.CONSUMER_GROUP_HEARTBEAT: Row(
        (0, 1), reconcile.ConsumerGroupHeartbeatRequest, reconcile.ConsumerGroupHeartbeatResponse
    ),
    Api.CONSUMER_GROUP_DESCRIBE: Row(
        (0, 1), reconcile.ConsumerGroupDescribeRequest, reconcile.ConsumerGroupDescribeResponse
    ),
}

LISTED_FROM: Mapping[Api, int] = {Api.PRODUCE: 0}
"""Lowest versions that ApiVersions lists although they are not served, as Kafka does: librdkafka before 2.10
uses no compression with brokers that do not list Produce 0."""

VERSIONS: Mapping[Api, tuple[int, int]] = {api: row.versions for api, row in ROWS.items()}
"""The lowest and the highest version of each API that the embedded broker serves."""

UNLIMITED: Mapping[Api, int] = {}
"""Highest versions that leave out none of `VERSIONS`."""

_API_OF: Mapping[type, Api] = {row.request: api for api, row in ROWS.items() if row.request is not None}


def api_of(request: m.Request) -> Api:
    """Return the API of a request."""
    return _API_OF[type(request)]


def common_version(
    api: Api, offered: Mapping[int, tuple[int, int]], highest_versions: Mapping[Api, int] = UNLIMITED
) -> int:
    """Return the newest version that both sides speak and that ``highest_versions`` allows.

    Raises:
        ProtocolError: if the broker does not offer the API, or none of its versions is spoken here.
    """
    lowest, highest = ROWS[api].versions
    highest = min(highest, ROWS[api].most_sent, highest_versions.get(api, highest))
    if int(api) not in offered:
        raise ProtocolError("broker", f"does not offer {api.name}")
    their_lowest, their_highest = offered[int(api)]
    version = min(highest, their_highest)
    if version < max(lowest, their_lowest):
        found = f"offers {api.name} in versions {their_lowest} to {their_highest}"
        found += f", expected one of {lowest} to {highest}"
        raise ProtocolError("broker", found)
    return version
