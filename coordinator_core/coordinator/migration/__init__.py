"""Groups that go from the classic to the consumer protocol while they run, and back (PROTOCOL 11.9, KIP-848).

The group is one of the family `reconcile` as soon as a member speaks the consumer protocol. Its other members
go on with JoinGroup, SyncGroup and Heartbeat until they are restarted.
"""

from collections.abc import Mapping
from functools import partial
from typing import Any

from coordinator_core.coordinator.classic import PART
from coordinator_core.coordinator.migration import classic_members
from coordinator_core.coordinator.migration.downgrade import downgrade
from coordinator_core.coordinator.migration.upgrade import upgrade
from coordinator_core.coordinator.parts import Handler, Row
from coordinator_core.coordinator.reconcile import heartbeat
from coordinator_core.coordinator.reconcile.group import FAMILY, Computing
from coordinator_core.coordinator.reconcile.settings import ReconcileSettings
from coordinator_core.protocol import messages as m
from coordinator_core.protocol.reconcile import ConsumerGroupHeartbeatRequest

_CLASSIC: Mapping[type[Any], Handler] = {
    m.JoinGroupRequest: classic_members.join,
    m.SyncGroupRequest: classic_members.sync,
    m.HeartbeatRequest: classic_members.heartbeat,
    m.LeaveGroupRequest: classic_members.leave,
}


def between(computing: Computing, settings: ReconcileSettings) -> Mapping[tuple[str, type[Any]], Row]:
    """Return how requests of one of the two protocols to groups of the other are answered."""
    rows: dict[tuple[str, type[Any]], Row] = {
        (PART.name, ConsumerGroupHeartbeatRequest): Row(
            partial(upgrade, computing, settings), heartbeat.refused
        )
    }
    for kind, handle in _CLASSIC.items():
        rows[FAMILY, kind] = Row(handle, PART.requests[kind].refuse)
    return rows


__all__ = ["between", "downgrade"]
