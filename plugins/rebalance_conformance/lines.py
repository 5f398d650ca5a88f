"""A group as one line of JSON for ``rebalance-lab assign``: the inverse of `parse_group`."""

from typing import Any

import msgspec

from coordinator_core.model import NO_GENERATION, Cluster, GroupSubscription, Subscription, TopicInfo


def group_document(cluster: Cluster, group: GroupSubscription, assignor: str | None = None) -> dict[str, Any]:
    """Return the document of a group. It has no field for user data; absent values are left out."""
    named = {} if assignor is None else {"assignor": assignor}
    topics = {topic: _topic(info) for topic, info in cluster.topics.items()}
    members = [_member(member, subscription) for member, subscription in group.items()]
    return {**named, "topics": topics, "members": members}


def group_line(cluster: Cluster, group: GroupSubscription, assignor: str | None = None) -> str:
    """Return the document as one line of JSON."""
    return msgspec.json.encode(group_document(cluster, group, assignor)).decode()


def _topic(info: TopicInfo) -> dict[str, Any]:
    document: dict[str, Any] = {"partitions": info.partitions}
    if info.racks is not None:
        document["racks"] = [list(racks) for racks in info.racks]
    if info.weights is not None:
        document["weights"] = list(info.weights)
    return document


def _member(member: str, subscription: Subscription) -> dict[str, Any]:
    document: dict[str, Any] = {"id": member, "topics": list(subscription.topics)}
    if subscription.owned:
        document["owned"] = [[topic, number] for topic, number in subscription.owned]
    if subscription.generation != NO_GENERATION:
        document["generation"] = subscription.generation
    for field in ("rack", "instance_id", "capacity"):
        value = getattr(subscription, field)
        if value is not None:
            document[field] = value
    return document
