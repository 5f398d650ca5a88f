"""FindCoordinator, and where a group lives (PROTOCOL 1.1, 1.2)."""

from collections.abc import Mapping

from coordinator_core.coordinator.config import CoordinatorConfig
from coordinator_core.model import java_key
from coordinator_core.protocol.error_codes import ErrorCode
from coordinator_core.protocol.messages import FindCoordinatorRequest, FindCoordinatorResponse


def java_hash(text: str) -> int:
    """Java's `String.hashCode`: 32 bits with wrap-around, over UTF-16 code units."""
    units = java_key(text)
    hashed = 0
    for high, low in zip(units[::2], units[1::2], strict=True):
        hashed = (31 * hashed + (high << 8 | low)) & 0xFFFFFFFF
    return hashed - 2**32 if hashed >= 2**31 else hashed


def home_partition(group_id: str, partitions: int) -> int:
    """The partition of the offsets topic that a group's records go to: abs(hash) % n, abs(-2^31) = 0."""
    hashed = java_hash(group_id)
    return 0 if hashed == -(2**31) else abs(hashed) % partitions


def answer(
    request: FindCoordinatorRequest, config: CoordinatorConfig, leaders: Mapping[int, int], live_brokers: int
) -> FindCoordinatorResponse:
    """The broker that leads the group's partition. With no leaders at all the topic does not exist yet."""
    if not request.key:
        return FindCoordinatorResponse(error=ErrorCode.INVALID_GROUP_ID)
    if not leaders and live_brokers < config.offsets_topic_replication:
        return FindCoordinatorResponse(error=ErrorCode.COORDINATOR_NOT_AVAILABLE)
    node = leaders.get(home_partition(request.key, config.offsets_topic_partitions))
    if node is None:
        return FindCoordinatorResponse(error=ErrorCode.COORDINATOR_NOT_AVAILABLE)
    return FindCoordinatorResponse(error=ErrorCode.NONE, node=node)
