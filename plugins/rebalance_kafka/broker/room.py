"""How much memory groups take, so that no flood of them takes all of it."""

from collections.abc import Iterable
from time import monotonic

from coordinator_core.coordinator.facade import Coordinator
from coordinator_core.coordinator.shard import GROUP_BYTES, MEMBER_BYTES
from coordinator_core.protocol import messages as m
from coordinator_core.protocol.error_codes import ErrorCode

LONGEST_NAME = 249
"""Of static members, in characters, as clients have it; and what is used of a client id."""

MOST_PROTOCOLS = 100
"""Assignors that a member may list."""

OFFSET_BYTES = 500
"""About what a committed offset takes beside its metadata."""

COUNTING = 0.1
"""The share of the time that may be spent on it."""


class Room:
    """Whether there is room for what a request would have the coordinator keep.

    What each may add is added up; only when that comes to ``most_bytes`` is everything counted, and not all
    the time either.
    """

    def __init__(self, coordinator: Coordinator, most_bytes: int) -> None:
        self._coordinator, self._most_bytes = coordinator, most_bytes
        self._at_most = 0
        self._count_from = 0.0
        self._is_counted = False

    def refused(self, request: m.Request) -> m.Response | None:
        """The answer to what is too much, None for what may go on to the coordinator."""
        full = ErrorCode.GROUP_MAX_SIZE_REACHED
        if isinstance(request, m.JoinGroupRequest):
            error = self._refused_join(request)
            if error is not ErrorCode.NONE:
                return m.JoinGroupResponse(error=error, member_id=request.member_id)
        elif isinstance(request, m.SyncGroupRequest):
            if not self._admits(sum(map(_assignment_bytes, request.assignments))):
                return m.SyncGroupResponse(error=full)
        elif isinstance(request, m.OffsetCommitRequest):
            there = self._coordinator.offsets(request.group_id)
            new = sum(1 for each in request.offsets if (each.topic, each.partition) not in there)
            added = GROUP_BYTES * (not there) + OFFSET_BYTES * new
            added += sum(len(each.metadata) for each in request.offsets)
            if not self._admits(added):
                errors = (m.PartitionError(each.topic, each.partition, full) for each in request.offsets)
                return m.OffsetCommitResponse(partitions=tuple(errors))
        return None

    def _refused_join(self, request: m.JoinGroupRequest) -> ErrorCode:
        if len(request.group_instance_id or "") > LONGEST_NAME:
            return ErrorCode.INVALID_GROUP_ID
        if len(request.protocols) > MOST_PROTOCOLS:
            return ErrorCode.INCONSISTENT_GROUP_PROTOCOL
        added = GROUP_BYTES + 2 * len(request.group_id) + MEMBER_BYTES + _protocol_bytes(request.protocols)
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
        offsets = coordinator.offsets(group.group_id).values()
        size += group.size_bytes() + sum(OFFSET_BYTES + len(offset.metadata) for offset in offsets)
    return size


def _protocol_bytes(protocols: Iterable[m.JoinGroupProtocol]) -> int:
    """Twice: a member's subscription is kept in the log's table as well."""
    return 2 * sum(len(each.name) + len(each.metadata) for each in protocols)


def _assignment_bytes(assignment: m.SyncGroupAssignment) -> int:
    return 2 * len(assignment.assignment)
