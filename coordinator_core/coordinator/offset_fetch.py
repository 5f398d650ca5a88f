"""OffsetFetch of one group (PROTOCOL 7.2, KIP-447)."""

from coordinator_core.coordinator.shard import Step
from coordinator_core.protocol.error_codes import NONE, ErrorCode
from coordinator_core.protocol.messages import (
    NO_OFFSET,
    FetchedOffset,
    OffsetFetchRequest,
    OffsetFetchResponse,
)


def handle(step: Step, request_id: int, request: OffsetFetchRequest) -> None:
    """Return the durable offsets, -1 for a partition without one. An unknown group has no offsets.

    If stable offsets are required, those that a transaction may change are UNSTABLE_OFFSET_COMMIT.
    """
    table = step.shard.table
    unstable = table.pending_partitions(request.group_id) if request.require_stable else ()
    committed = table.offsets.get(request.group_id, {})
    wanted = sorted(committed) if request.partitions is None else request.partitions
    offsets = []
    for partition in wanted:
        stored = committed.get(partition)
        if partition in unstable:
            error = ErrorCode.UNSTABLE_OFFSET_COMMIT
            offsets.append(FetchedOffset(*partition, NO_OFFSET, error=error))
        elif stored is None:
            offsets.append(FetchedOffset(*partition, NO_OFFSET))
        else:
            offsets.append(FetchedOffset(*partition, stored.offset, stored.leader_epoch, stored.metadata))
    step.effects.reply(request_id, OffsetFetchResponse(error=NONE, offsets=tuple(offsets)))
