"""OffsetFetch: committed offsets, -1 where nobody committed (PROTOCOL 7.2)."""

from coordinator_core.coordinator.shard import Step
from coordinator_core.protocol.error_codes import ErrorCode
from coordinator_core.protocol.messages import (
    NO_OFFSET,
    FetchedOffset,
    OffsetFetchRequest,
    OffsetFetchResponse,
)


def handle(step: Step, request_id: int, request: OffsetFetchRequest) -> None:
    """Answer from what is durable; an unknown group has no offsets."""
    committed = step.shard.table.offsets.get(request.group_id, {})
    wanted = sorted(committed) if request.partitions is None else request.partitions
    found = []
    for tp in wanted:
        stored = committed.get(tp)
        if stored is None:
            found.append(FetchedOffset(tp.topic, tp.partition, NO_OFFSET))
        else:
            found.append(
                FetchedOffset(tp.topic, tp.partition, stored.offset, stored.leader_epoch, stored.metadata)
            )
    step.effects.reply(request_id, OffsetFetchResponse(error=ErrorCode.NONE, offsets=tuple(found)))
