"""FindCoordinator, version-independent: only groups, no transactions (PROTOCOL 1.1, 1.2)."""

from collections.abc import Mapping

from coordinator_core.coordinator.config import CoordinatorConfig
from coordinator_core.java import java_hash
from coordinator_core.protocol.error_codes import ErrorCode
from coordinator_core.protocol.messages import FindCoordinatorResponse


def home_partition(group_id: str, partitions: int) -> int:
    """Return the partition of the offsets topic that holds a group: abs(hash) % n, with abs(-2^31) = 0."""
    hashed = java_hash(group_id)
    return 0 if hashed == -(2**31) else abs(hashed) % partitions


def answer(
    home: int, config: CoordinatorConfig, leaders: Mapping[int, int], live_brokers: int
) -> FindCoordinatorResponse:
    """Return the broker that leads a group's partition. Without any leader the topic does not exist yet."""
    if not leaders and live_brokers < config.offsets_topic_replication:
        return FindCoordinatorResponse(error=ErrorCode.COORDINATOR_NOT_AVAILABLE)
    node = leaders.get(home)
    if node is None:
        return FindCoordinatorResponse(error=ErrorCode.COORDINATOR_NOT_AVAILABLE)
    return FindCoordinatorResponse(error=ErrorCode.NONE, node=node)
