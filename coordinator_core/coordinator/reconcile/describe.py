"""ConsumerGroupDescribe: a group and its members, as administrators see them. Deleted topics are left out."""

from collections.abc import Iterable

from coordinator_core.coordinator.kafka_versions import Rule
from coordinator_core.coordinator.reconcile.group import ReconcileGroup
from coordinator_core.coordinator.reconcile.heartbeat import not_found, not_reconciled
from coordinator_core.coordinator.reconcile.state import Current, GroupState
from coordinator_core.coordinator.reconcile.votes import preferred
from coordinator_core.coordinator.shard import Step
from coordinator_core.model import TopicPartition
from coordinator_core.protocol.error_codes import ErrorCode
from coordinator_core.protocol.reconcile import (
    SPEAKS_CLASSIC,
    SPEAKS_CONSUMER,
    ConsumerGroupDescribeRequest,
    ConsumerGroupDescribeResponse,
    ConsumerGroupMember,
)


def handle(step: Step, request_id: int, request: ConsumerGroupDescribeRequest) -> None:
    """Describe a group. A group of another family is none."""
    group_id, group = request.group_id, step.find(request.group_id, ReconcileGroup)
    if group is not None:
        response = _described(group)
    else:
        message = not_reconciled(group_id) if group_id in step.shard.groups else not_found(group_id)
        error = ErrorCode.GROUP_ID_NOT_FOUND
        response = ConsumerGroupDescribeResponse(error=error, group_id=group_id, message=message)
    step.effects.reply(request_id, response)


def refused(request: ConsumerGroupDescribeRequest, error: ErrorCode) -> ConsumerGroupDescribeResponse:
    """Return an error."""
    message = not_reconciled(request.group_id) if error is ErrorCode.GROUP_ID_NOT_FOUND else None
    return ConsumerGroupDescribeResponse(error=error, group_id=request.group_id, message=message)


def _described(group: ReconcileGroup) -> ConsumerGroupDescribeResponse:
    durable, computing = group.durable, group.computing
    held = Current.epochs if group.has(Rule.DESCRIBES_REVOKING) else Current.assigned_epochs
    shown = computing.topics(dict.fromkeys(tp.topic for of_one in _held(durable) for tp in of_one))
    members = tuple(
        ConsumerGroupMember(
            member_id,
            member.instance_id,
            member.rack,
            durable.currents[member_id].epoch,
            member.client_id,
            member.client_host,
            tuple(sorted(member.topics)),
            member.pattern or "",
            tuple(tp for tp in sorted(held(durable.currents[member_id])) if tp.topic in shown),
            tuple(tp for tp in sorted(durable.shares.get(member_id, ())) if tp.topic in shown),
            SPEAKS_CONSUMER if member.classic is None else SPEAKS_CLASSIC,
        )
        for member_id, member in durable.members.items()
    )
    return ConsumerGroupDescribeResponse(
        error=ErrorCode.NONE,
        group_id=group.group_id,
        state=group.state.value,
        group_epoch=durable.epoch,
        assignment_epoch=durable.target.epoch,
        assignor=preferred(durable.votes) or computing.assignors[0],
        members=members,
    )


def _held(durable: GroupState) -> Iterable[Iterable[TopicPartition]]:
    """Return what members may own or have yet to give up, and their shares."""
    return (durable.holders, *durable.shares.values())
