"""A group to try as a value: it can be copied, reordered, and written as a line of JSON."""

from collections.abc import Callable, Sequence
from typing import NamedTuple

import msgspec

from coordinator_core.model import Cluster, GroupSubscription, Partitions, Subscription, TopicPartition

Order = Callable[[Sequence[str]], Sequence[str]]


class Case(NamedTuple):
    """A cluster, and a group on it."""

    cluster: Cluster
    group: GroupSubscription


def copy_of(case: Case) -> Case:
    """Return a copy of all objects, so that an assignor that changes them does not affect other checks."""
    return reordered(case, lambda items: items)


def reordered(case: Case, order: Order) -> Case:
    """Return the group with its members, topics and lists of topics in another order."""
    topics, members = order(list(case.cluster.topics)), order(list(case.group))
    cluster = Cluster({t: case.cluster.topics[t] for t in topics})
    return Case(cluster, GroupSubscription({m: _copy(case.group[m], order) for m in members}))


def _copy(subscription: Subscription, order: Order) -> Subscription:
    by_topic = subscription.owned.by_topic()
    owned = Partitions({t: by_topic[t].tolist() for t in order(list(by_topic))})
    return msgspec.structs.replace(subscription, topics=tuple(order(subscription.topics)), owned=owned)


def with_members(case: Case, members: Sequence[str]) -> Case:
    """Return the group of only these members."""
    return Case(case.cluster, GroupSubscription({m: case.group[m] for m in members}))


def subscribed(case: Case) -> list[TopicPartition]:
    """Return the partitions of subscribed topics, in order."""
    wanted = {topic for subscription in case.group.values() for topic in subscription.topics}
    return [
        TopicPartition(topic, number)
        for topic in sorted(case.cluster.topics)
        if topic in wanted
        for number in range(case.cluster.partition_count(topic))
    ]


def claims(case: Case) -> dict[TopicPartition, dict[str, int]]:
    """Return the claimants of each partition with their generations."""
    made: dict[TopicPartition, dict[str, int]] = {}
    for member, subscription in case.group.items():
        for tp in subscription.owned:
            if tp.partition < case.cluster.partition_count(tp.topic):
                made.setdefault(tp, {})[member] = subscription.generation
    return made


def valid_owner(case: Case, tp: TopicPartition, claimants: dict[str, int]) -> str | None:
    """Return the valid owner: the only newest claimant, if it still subscribes (PROTOCOL 10.3)."""
    newest = [m for m, generation in claimants.items() if generation == max(claimants.values())]
    return newest[0] if len(newest) == 1 and tp.topic in case.group[newest[0]].topics else None


def size_of(case: Case) -> str:
    """``3 members, 12 partitions``."""
    partitions = sum(info.partitions for info in case.cluster.topics.values())
    members = len(case.group)
    return f"{members:,} member{'s' * (members != 1)}, {partitions:,} partition{'s' * (partitions != 1)}"
