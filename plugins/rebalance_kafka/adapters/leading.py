"""The leader's part: the assignment is computed from the members' subscriptions and the client's metadata.

Eager members do not join again after a round, so partitions that a cooperative assignor withholds would stay
without an owner. Eager members have already given up their partitions. The leader therefore computes further
rounds, each from the result of the last, until the only withheld partitions are those that a member still
owns. The group sees one round, with the assignment that a cooperative group would reach after several.
"""

from collections.abc import Iterable, Mapping
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
"""After so many rounds of a cooperative assignor the leader assigns once more, without previous owners."""


class ClusterMetadata(Protocol):
    """The methods that the metadata of both clients have."""

    def partitions_for_topic(self, topic: str) -> set[int] | None:
        """Return the partitions of a topic, or None if the topic is unknown."""
        ...

    def broker_metadata(self, broker_id: int) -> Any:
        """Return a broker with its ``rack``, or None if the broker is unknown."""
        ...


class Joined(NamedTuple):
    """A member as the leader sees it. ``holds``: the member still consumes the partitions that it claims."""

    subscription: Subscription
    holds: bool


class Given(NamedTuple):
    """The assignment of a member: topics with partitions, in the assignor's order, and user data."""

    by_topic: list[tuple[str, list[int]]]
    user_data: bytes


def joined(member_id: str, subscription: Subscription) -> Joined:
    """Return a member from its subscription.

    A claim in the user data replaces the owned partitions and the generation, and adds a rack and an instance
    id if the fields have none. A claim with another member id is from a membership that the member has lost,
    together with its partitions.
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


def describe(metadata: ClusterMetadata, members: Iterable[Joined], replicas: str) -> Cluster:
    """Return the topics that members subscribe to and that the metadata contain.

    ``replicas``: the attribute that has the brokers of a partition, for which clients have no public method.
    Racks of replicas are included if any member has a rack.
    """
    members = list(members)
    with_racks = any(member.subscription.rack for member in members)
    topics: dict[str, TopicInfo] = {}
    for topic in dict.fromkeys(t for member in members for t in member.subscription.topics):
        known = metadata.partitions_for_topic(topic)
        if known is not None:
            # numbers are dense in Kafka: a missing one has an error at present, and is assigned as well
            count = max(known, default=-1) + 1
            racks = _racks(metadata, topic, count, replicas) if with_racks else None
            topics[topic] = TopicInfo(count, racks)
    return Cluster(topics)


def _racks(
    metadata: ClusterMetadata, topic: str, count: int, replicas: str
) -> tuple[tuple[str, ...], ...] | None:
    found = []
    partitions = getattr(metadata, "_partitions", {}).get(topic, {})
    for number in range(count):
        nodes = getattr(partitions.get(number), replicas, ())
        brokers = [metadata.broker_metadata(node) for node in nodes]
        found.append(tuple(dict.fromkeys(b.rack for b in brokers if b is not None and b.rack)))
    return tuple(found) if any(found) else None


def lead(assignor: Assignor, cluster: Cluster, members: Mapping[str, Joined]) -> dict[str, Given]:
    """Return the assignment of each member.

    Raises:
        AssignmentError: if the assignor fails or its result is invalid.
    """
    group = GroupSubscription({m: member.subscription for m, member in members.items()})
    free = frozenset(m for m, member in members.items() if not member.holds)
    try:
        with naming(assignor, "assign"):
            assignment = _settled(assignor, cluster, group, free)
    except AssignmentError as error:
        raise error.of(f"a group of {len(group)} members on {len(cluster.topics)} topics") from error
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
