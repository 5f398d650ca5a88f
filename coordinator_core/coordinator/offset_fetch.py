"""OffsetFetch of one group (PROTOCOL 7.2, KIP-447)."""

from coordinator_core.coordinator.shard import Step
from coordinator_core.protocol import messages as m
from coordinator_core.protocol.error_codes import NONE, ErrorCode

_UNSTABLE = ErrorCode.UNSTABLE_OFFSET_COMMIT


def handle(step: Step, request_id: int, request: m.OffsetFetchRequest) -> None:
    """Return the durable offsets, -1 for a partition without one. A group that does not exist has none.

    If stable offsets are required, those that a transaction may change are UNSTABLE_OFFSET_COMMIT.
    """
    table, group = step.shard.table, step.shard.groups.get(request.group_id)
    error = NONE if group is None else group.accept_fetch(request)
    if error:
        step.effects.reply(request_id, m.OffsetFetchResponse(error=error))
        return
    committed = {} if group is None else table.offsets.get(request.group_id, {})
    counts_pending = request.require_stable and group is not None
    unstable = table.pending_partitions(request.group_id) if counts_pending else ()
    wanted = sorted(committed) if request.partitions is None else request.partitions
    offsets = []
    for partition in wanted:
        stored = committed.get(partition)
        if partition in unstable:
            offsets.append(m.FetchedOffset(*partition, m.NO_OFFSET, error=_UNSTABLE))
        elif stored is None:
            offsets.append(m.FetchedOffset(*partition, m.NO_OFFSET))
        else:
            offsets.append(m.FetchedOffset(*partition, stored.offset, stored.leader_epoch, stored.metadata))
    step.effects.reply(request_id, m.OffsetFetchResponse(error=NONE, offsets=tuple(offsets)))
