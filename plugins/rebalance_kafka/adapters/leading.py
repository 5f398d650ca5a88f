"""The leader's work: from what members say and the client knows of the cluster to what everybody gets.

Eager members do not join again after a round, so what a cooperative assignor holds back from them would stay
without an owner. But they have given up what they had: the leader plays the next rounds with the first one's
result, until nothing is held back but what somebody still works on. All of it is one round for the group, and
the answer is where a cooperative group would have arrived.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, NamedTuple, Protocol

import msgspec

from coordinator_core.assigning.assignor import Assignor, is_cooperative
from coordinator_core.assigning.computing import compute_assignment, unassigned
from coordinator_core.errors import AssignmentError
from coordinator_core.model import (
    NO_PARTITIONS,
    Cluster,
    GroupAssignment,
    GroupSubscription,
    Partitions,
    Subscription,
    TopicInfo,
)
from rebalance_kafka.adapters.claims import Claim, Grant, attach, detach
from rebalance_kafka.adapters.member import naming

MOST_ROUNDS = 10
"""A cooperative assignor that goes on moving partitions after so many rounds starts over without owners."""

Replicas = Callable[[str, int], Sequence[int]]
"""The brokers that have a replica of a partition; none where the client does not know."""


class ClusterMetadata(Protocol):
    """What both clients' metadata answer."""

    def partitions_for_topic(self, topic: str) -> set[int] | None:
        """The partitions of a topic, None for a topic that is not known."""
        ...

    def broker_metadata(self, broker_id: int) -> Any:
        """A broker with its ``rack``, None for one that is not known."""
        ...


class Joined(NamedTuple):
    """A member as the leader sees it. ``holds``: it still works on what it says it owns."""

    subscription: Subscription
    holds: bool


class Given(NamedTuple):
    """What a member gets: topics with partitions, in the assignor's order, and user data."""

    by_topic: list[tuple[str, list[int]]]
    user_data: bytes


def joined(member_id: str, subscription: Subscription) -> Joined:
    """A member by its subscription, as far as the client shows it; what it claims in its user data counts.

    Claims from under another member id are of a membership that was lost, and with it the partitions.
    """
    own, claim = detach(subscription.user_data, Claim)
    if claim is None:
        return Joined(subscription, holds=True)
    read = msgspec.structs.replace(
        subscription,
        owned=Partitions(claim.owned),
        generation=claim.generation,
        rack=subscription.rack or claim.rack,
        instance_id=subscription.instance_id or claim.instance_id,
        user_data=own,
    )
    return Joined(read, holds=not claim.gave_up and claim.member_id in (None, member_id))


def describe(metadata: ClusterMetadata, members: Iterable[Joined], replicas: Replicas) -> Cluster:
    """The topics that members subscribe to, as far as the metadata know them.

    Racks are read where a member has one.
    """
    members = list(members)
    with_racks = any(each.subscription.rack for each in members)
    topics: dict[str, TopicInfo] = {}
    for topic in dict.fromkeys(t for each in members for t in each.subscription.topics):
        known = metadata.partitions_for_topic(topic)
        if known is not None:
            # numbers are dense in Kafka: one that is missing has an error at present, and is assigned as well
            count = max(known, default=-1) + 1
            racks = _racks(metadata, topic, count, replicas) if with_racks else None
            topics[topic] = TopicInfo(count, racks)
    return Cluster(topics)


def _racks(
    metadata: ClusterMetadata, topic: str, count: int, replicas: Replicas
) -> tuple[tuple[str, ...], ...] | None:
    found = []
    for number in range(count):
        brokers = [metadata.broker_metadata(node) for node in replicas(topic, number)]
        found.append(tuple(dict.fromkeys(b.rack for b in brokers if b is not None and b.rack)))
    return tuple(found) if any(found) else None


def lead(assignor: Assignor, cluster: Cluster, members: Mapping[str, Joined]) -> dict[str, Given]:
    """What every member gets. Raises AssignmentError."""
    group = GroupSubscription({m: each.subscription for m, each in members.items()})
    free = frozenset(m for m, each in members.items() if not each.holds)
    try:
        with naming(assignor, "assign"):
            assignment = _settled(assignor, cluster, group, free)
    except AssignmentError as problem:
        raise problem.of(f"a group of {len(group)} members on {len(cluster.topics)} topics") from problem
    generation = max((0, *(s.generation for s in group.values()))) + 1
    return {
        m: Given(
            [(topic, numbers.tolist()) for topic, numbers in assignment[m].by_topic().items()],
            attach(assignment.user_data.get(m), Grant(generation, m)),
        )
        for m in members
    }


def _settled(
    assignor: Assignor, cluster: Cluster, group: GroupSubscription, free: frozenset[str]
) -> GroupAssignment:
    assignment = compute_assignment(assignor, cluster, group)
    if not free or not is_cooperative(assignor):
        return assignment
    held = Partitions.of(tp for m, s in group.items() if m not in free for tp in s.owned)
    for _ in range(MOST_ROUNDS):
        if unassigned(cluster, group, assignment) <= held:
            return assignment
        group = _with_owned(group, free, assignment)
        assignment = compute_assignment(assignor, cluster, group)
    nothing = dict.fromkeys(free, NO_PARTITIONS)
    return compute_assignment(assignor, cluster, _with_owned(group, free, nothing))


def _with_owned(
    group: GroupSubscription, members: frozenset[str], owned: Mapping[str, Partitions]
) -> GroupSubscription:
    return GroupSubscription(
        {m: msgspec.structs.replace(s, owned=owned[m]) if m in members else s for m, s in group.items()}
    )
