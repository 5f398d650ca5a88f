"""The leader's work: from the members' encoded subscriptions to their encoded assignments (PROTOCOL 9.6)."""

from collections.abc import Iterable
from typing import Any, NamedTuple

from coordinator_core.assigning.assignor import AnyAssignor, compute_assignment
from coordinator_core.model import Cluster, GroupSubscription, Subscription, java_order
from coordinator_core.protocol.consumer_protocol import KnownTopics, decode_subscription, encode_assignment
from coordinator_core.protocol.messages import JoinGroupMember, SyncGroupAssignment


class Led(NamedTuple):
    """A computed assignment, ready to be sent."""

    assignments: tuple[SyncGroupAssignment, ...]
    payload_bytes: int
    report: dict[str, Any]


def decode_members(members: Iterable[JoinGroupMember]) -> dict[str, Subscription]:
    """Member id -> subscription; an id that comes twice counts once (C-68). Raises ProtocolError."""
    known = KnownTopics()
    return {
        m.member_id: decode_subscription(m.metadata, instance_id=m.group_instance_id, known=known)
        for m in members
    }


def all_topics(members: dict[str, Subscription]) -> tuple[str, ...]:
    """Every topic that some member subscribes to, sorted."""
    lists = {id(s.topics): s.topics for s in members.values()}
    return tuple(java_order(dict.fromkeys(t for topics in lists.values() for t in topics)))


def lead(assignor: AnyAssignor, cluster: Cluster, members: dict[str, Subscription]) -> Led:
    """Run the assignor and encode what each member gets. Raises AssignmentError."""
    assignment = compute_assignment(assignor, cluster, GroupSubscription(members))
    user_data = assignment.user_data
    encoded = tuple(
        SyncGroupAssignment(m, encode_assignment(assignment[m], user_data.get(m))) for m in members
    )
    payload_bytes = sum(len(each.assignment) for each in encoded)
    return Led(encoded, payload_bytes, dict(assignment.report))
