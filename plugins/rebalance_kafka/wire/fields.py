"""Fields that Kafka's schemas and the messages of the core name differently, and fields that one side lacks.

Every other field has the same name on both sides, except for times: a field ``NAME_ms`` of a message is
``NAME`` in kio's schemas. Rows with fields ``topic`` and ``partition`` are grouped by topic if the schema
groups them.
"""

from collections.abc import Mapping
from typing import Any

from coordinator_core.protocol import messages as m
from coordinator_core.protocol import reconcile as r
from coordinator_core.protocol.error_codes import ErrorCode

MOST_BYTES = 50 * 1024 * 1024

_COMMITTED = {
    "offset": "committed_offset",
    "leader_epoch": "committed_leader_epoch",
    "metadata": "committed_metadata",
}

NAMES: Mapping[type, Mapping[str, str]] = {
    m.OffsetCommitRequest: {"generation_id": "generation_id_or_member_epoch", "offsets": "topics"},
    m.OffsetToCommit: _COMMITTED,
    m.OffsetCommitResponse: {"partitions": "topics"},
    m.TxnOffsetCommitRequest: {"offsets": "topics"},
    m.TxnOffsetCommitResponse: {"partitions": "topics"},
    m.OffsetFetchRequest: {"partitions": "topics"},
    m.OffsetFetchResponse: {"offsets": "topics"},
    m.FetchedOffset: _COMMITTED | {"metadata": "metadata"},
    m.OffsetDeleteRequest: {"partitions": "topics"},
    m.OffsetDeleteResponse: {"partitions": "topics"},
    m.DescribeGroupsRequest: {"group_ids": "groups"},
    m.DescribedGroup: {
        "state": "group_state",
        "protocol_name": "protocol_data",
        "message": "error_message",
    },
    m.DescribedMember: {"metadata": "member_metadata", "assignment": "member_assignment"},
    m.ListGroupsRequest: {"states": "states_filter", "types": "types_filter"},
    m.ListedGroup: {"state": "group_state"},
    m.DeleteGroupsRequest: {"group_ids": "groups_names"},
    m.DeleteGroupsResponse: {"groups": "results"},
    m.ListOffsetsResponse: {"offsets": "topics"},
    m.OffsetForLeaderEpochRequest: {"partitions": "topics"},
    m.OffsetForLeaderEpochResponse: {"ends": "topics"},
    m.FetchRequest: {"partitions": "topics", "forgotten": "forgotten_topics_data"},
    m.FetchPartition: {"offset": "fetch_offset", "leader_epoch": "current_leader_epoch"},
    r.ConsumerGroupHeartbeatResponse: {"message": "error_message"},
    r.ConsumerGroupDescribeResponse: {
        "message": "error_message",
        "state": "group_state",
        "assignor": "assignor_name",
    },
}
"""Message -> field of the message -> field of the schema."""

EVERYWHERE: Mapping[str, str] = {
    "error": "error_code",
    "node": "node_id",
    "partition": "partition_index",
}
"""The same for all messages, if the schema does not have the message's own name."""

ABSENT: Mapping[str, Any] = {
    "error": ErrorCode.NONE,
    "group_instance_id": None,
    "rebalance_timeout_ms": -1,
    "state": "",
    "subscribed_topic_regex": None,
}
"""Field of a message without a default -> its value in versions without a field for it."""

CONSTANTS: Mapping[str, Any] = {
    "allow_auto_topic_creation": False,
    "include_authorized_operations": False,
    "include_cluster_authorized_operations": False,
    "include_topic_authorized_operations": False,
    "key_type": 0,  # a group
    "max_bytes": MOST_BYTES,
    "min_bytes": 1,
    "rack_id": "",
    "replica_id": -1,  # a consumer
    "throttle_time": 0,
    "topic_id": None,  # topics are named
}
"""Field of a schema -> the value that is written where no message has a field for it."""
