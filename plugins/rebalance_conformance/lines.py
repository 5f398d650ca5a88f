"""A group as one line of JSON for ``rebalance-lab assign``: the inverse of `parse_group`."""

from typing import Any

import msgspec

from coordinator_core.model import NO_GENERATION, Cluster, GroupSubscription, Subscription, TopicInfo


def group_document(cluster: Cluster, group: GroupSubscription, assignor: str | None = None) -> dict[str, Any]:
    """Return the document of a group. It has no field for user data; absent values are left out."""
    topics = {topic: _topic(info) for topic, info in cluster.topics.items()}
    members = [_member(member, subscription) for member, subscription in group.items()]
    return {**_known(assignor=assignor), "topics": topics, "members": members}


def group_line(cluster: Cluster, group: GroupSubscription, assignor: str | None = None) -> str:
    """Return the document as one line of JSON."""
    return msgspec.json.encode(group_document(cluster, group, assignor)).decode()


def _topic(info: TopicInfo) -> dict[str, Any]:
    weights = None if info.weights is None else list(info.weights)
    racks = None if info.racks is None else list(map(list, info.racks))
    return {"partitions": info.partitions, **_known(racks=racks, weights=weights)}


def _member(member: str, subscription: Subscription) -> dict[str, Any]:
    fields = _known(
        owned=[[topic, number] for topic, number in subscription.owned] or None,
        generation=None if subscription.generation == NO_GENERATION else subscription.generation,
        rack=subscription.rack,
        instance_id=subscription.instance_id,
        capacity=subscription.capacity,
    )
    return {"id": member, "topics": list(subscription.topics), **fields}


def _known(**fields: Any) -> dict[str, Any]:
    return {name: value for name, value in fields.items() if value is not None}
