"""The coordinator's part of groups that it reconciles (``group.protocol=consumer``, KIP-848).

Members report in heartbeats what they own, and the responses tell them what they may own. There is no round
for which members wait: each goes on as soon as the partitions are free that it waits for.
"""

from functools import partial

from coordinator_core.coordinator.parts import CoordinatorPart, Row
from coordinator_core.coordinator.reconcile import describe, heartbeat, topics
from coordinator_core.coordinator.reconcile.expiry import on_timer
from coordinator_core.coordinator.reconcile.group import FAMILY, Computing, restored
from coordinator_core.coordinator.reconcile.settings import ReconcileSettings
from coordinator_core.protocol.error_codes import ErrorCode
from coordinator_core.protocol.reconcile import (
    JOINS,
    ConsumerGroupDescribeRequest,
    ConsumerGroupHeartbeatRequest,
)


def reconcile_part(computing: Computing, settings: ReconcileSettings) -> CoordinatorPart:
    """Return the part. ``computing`` runs the assignors for the members of a group."""
    return CoordinatorPart(
        name=FAMILY,
        requests={
            ConsumerGroupHeartbeatRequest: Row(
                partial(heartbeat.handle, computing, settings),
                heartbeat.refused,
                needs_group_id=False,
                joins=lambda request: request.member_epoch == JOINS,
            ),
            ConsumerGroupDescribeRequest: Row(describe.handle, describe.refused),
        },
        restore=partial(restored, computing, settings),
        on_timer=on_timer,
        on_topics=topics.on_topics,
        on_deleted=topics.on_deleted,
        foreign_group=ErrorCode.GROUP_ID_NOT_FOUND,
        group_type="consumer",
    )


__all__ = ["reconcile_part"]
