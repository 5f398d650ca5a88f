"""Limits on the memory that groups take."""

from collections.abc import Iterable
from time import monotonic

from coordinator_core.coordinator.facade import Coordinator
from coordinator_core.coordinator.reconcile.group import topic_bytes
from coordinator_core.coordinator.shard import GROUP_BYTES, MEMBER_BYTES
from coordinator_core.protocol import messages as m
from coordinator_core.protocol.error_codes import ErrorCode
from coordinator_core.protocol.reconcile import (
    JOINS,
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatResponse,
)
from rebalance_kafka.wire.values import LONGEST_STRING

LONGEST_NAME = 249
"""Characters of a name in the consumer protocol, and characters that are kept of a client id."""

MOST_INSTANCE_BYTES = LONGEST_STRING - 37
"""Bytes of an instance id, which is the prefix of a member id with a UUID."""

MOST_PROTOCOLS = 100
"""The number of assignors that a member may list."""

OFFSET_BYTES = 500
"""An estimate of the memory of a committed offset, without its metadata."""

_GROWING = frozenset(
    {
        m.JoinGroupRequest,
        m.SyncGroupRequest,
        m.OffsetCommitRequest,
        m.TxnOffsetCommitRequest,
        ConsumerGroupHeartbeatRequest,
    }
)

COUNTING = 0.1
"""The share of the time that may be spent on counting."""


class Room:
    """Refuses requests for which the coordinator has no memory.

    The most that each request may add is summed up. Everything is counted only when the sum reaches
    ``most_bytes``, and not more often than `COUNTING` allows.
    """

    def __init__(self, coordinator: Coordinator, most_bytes: int) -> None:
        self._coordinator, self._most_bytes = coordinator, most_bytes
        self._at_most = 0
        self._count_from = 0.0
        self._is_counted = False

    def refused(self, request: m.Request) -> m.Response | None:
        """Return the response to a request that needs too much, None for a request that may proceed."""
        if type(request) not in _GROWING:
            return None
        full = ErrorCode.GROUP_MAX_SIZE_REACHED
        if isinstance(request, m.JoinGroupRequest):
            error = self._refused_join(request)
            if error is not ErrorCode.NONE:
                return m.JoinGroupResponse(error=error, member_id=request.member_id)
        elif isinstance(request, ConsumerGroupHeartbeatRequest):
            error = self._refused_heartbeat(request)
            if error is not ErrorCode.NONE:
                return ConsumerGroupHeartbeatResponse(error=error)
        elif isinstance(request, m.SyncGroupRequest):
            if not self._admits(sum(map(_assignment_bytes, request.assignments))):
                return m.SyncGroupResponse(error=full)
        elif isinstance(request, m.OffsetCommitRequest):
            present = self._coordinator.offsets(request.group_id)
            new = sum(1 for offset in request.offsets if (offset.topic, offset.partition) not in present)
            added = GROUP_BYTES * (not present) + OFFSET_BYTES * new
            added += sum(len(offset.metadata) for offset in request.offsets)
            if not self._admits(added):
                errors = (
                    m.PartitionError(offset.topic, offset.partition, full) for offset in request.offsets
                )
                return m.OffsetCommitResponse(partitions=tuple(errors))
        elif isinstance(request, m.TxnOffsetCommitRequest):
            added = GROUP_BYTES + sum(OFFSET_BYTES + len(offset.metadata) for offset in request.offsets)
            if not self._admits(added):
                return self._coordinator.refusal(request, full)
        return None

    def _refused_join(self, request: m.JoinGroupRequest) -> ErrorCode:
        if len((request.group_instance_id or "").encode()) > MOST_INSTANCE_BYTES:
            return ErrorCode.INVALID_GROUP_ID
        if len(request.protocols) > MOST_PROTOCOLS:
            return ErrorCode.INCONSISTENT_GROUP_PROTOCOL
        texts = 2 * len(request.group_id) + 2 * len(request.group_instance_id or "")
        added = GROUP_BYTES + MEMBER_BYTES + texts + _protocol_bytes(request.protocols)
        return ErrorCode.NONE if self._admits(added) else ErrorCode.GROUP_MAX_SIZE_REACHED

    def _refused_heartbeat(self, request: ConsumerGroupHeartbeatRequest) -> ErrorCode:
        topics = request.subscribed_topic_names or ()
        added = sum(map(topic_bytes, topics)) + 2 * len(request.subscribed_topic_regex or "")
        names = (request.instance_id or "", request.rack_id or "", request.member_id)
        added += sum(2 * len(name) for name in names if len(name) > LONGEST_NAME)
        if request.member_epoch == JOINS:
            added += GROUP_BYTES + 2 * len(request.group_id) + MEMBER_BYTES
        return ErrorCode.NONE if self._admits(added) else ErrorCode.GROUP_MAX_SIZE_REACHED

    def _admits(self, added: int) -> bool:
        if not added:
            return True
        if not self._is_counted or self._at_most + added > self._most_bytes:
            begun = monotonic()
            if begun < self._count_from:
                return False
            self._at_most, self._is_counted = _kept_bytes(self._coordinator), True
            now = monotonic()
            self._count_from = now + (now - begun) / COUNTING
            if self._at_most + added > self._most_bytes:
                return False
        self._at_most += added
        return True


def _kept_bytes(coordinator: Coordinator) -> int:
    size = 0
    for group in coordinator.groups():
        offsets = list(coordinator.offsets(group.group_id).values())
        for held in coordinator.pending_offsets(group.group_id).values():
            offsets += held.offsets.values()
        size += group.size_bytes() + sum(OFFSET_BYTES + len(offset.metadata) for offset in offsets)
    return size


def _protocol_bytes(protocols: Iterable[m.JoinGroupProtocol]) -> int:
    """Return the size of subscriptions, twice: the table of the log keeps them as well."""
    return 2 * sum(len(protocol.name) + len(protocol.metadata) for protocol in protocols)


def _assignment_bytes(assignment: m.SyncGroupAssignment) -> int:
    return 2 * len(assignment.assignment)
