"""OffsetFetch of one group (PROTOCOL 7.2). Not implemented: `require_stable`."""

from coordinator_core.coordinator.shard import Step
from coordinator_core.protocol.error_codes import NONE
from coordinator_core.protocol.messages import (
    NO_OFFSET,
    FetchedOffset,
    OffsetFetchRequest,
    OffsetFetchResponse,
)


def handle(step: Step, request_id: int, request: OffsetFetchRequest) -> None:
    """Return the durable offsets, -1 for a partition without one. An unknown group has no offsets."""
    committed = step.shard.table.offsets.get(request.group_id, {})
    wanted = sorted(committed) if request.partitions is None else request.partitions
    offsets = []
    for partition in wanted:
        stored = committed.get(partition)
        if stored is None:
            offsets.append(FetchedOffset(*partition, NO_OFFSET))
        else:
            offsets.append(FetchedOffset(*partition, stored.offset, stored.leader_epoch, stored.metadata))
    step.effects.reply(request_id, OffsetFetchResponse(error=NONE, offsets=tuple(offsets)))
