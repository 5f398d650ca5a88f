"""The coordinator's part of groups whose coordinator computes the assignments.

The coordinator waits until all members have joined. It runs the assignor, stores the assignment, and answers
the joins with it. A change, of members or of topics, is announced by ILLEGAL_GENERATION in the responses to
heartbeats.
"""

from functools import partial

from coordinator_core.coordinator.parts import CoordinatorPart, Row
from coordinator_core.coordinator.server_side import requests, rounds
from coordinator_core.coordinator.server_side.group import FAMILY, Compute, restored
from coordinator_core.protocol import messages as m
from coordinator_core.protocol.server_side import JoinRequest


def server_side_part(compute: Compute) -> CoordinatorPart:
    """Return the part. ``compute`` runs the assignor for the members of a group."""
    return CoordinatorPart(
        name=FAMILY,
        requests={
            JoinRequest: Row(partial(requests.join, compute), requests.join_refused),
            m.HeartbeatRequest: Row(requests.heartbeat, lambda _, error: m.HeartbeatResponse(error=error)),
            m.LeaveGroupRequest: Row(requests.leave, lambda _, error: m.LeaveGroupResponse(error=error)),
        },
        restore=partial(restored, compute),
        on_timer=rounds.on_timer,
        on_topics=rounds.on_topics,
    )


__all__ = ["server_side_part"]
