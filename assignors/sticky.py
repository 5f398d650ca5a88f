"""Sticky: balance first, then racks, then as few moves as possible; exact in that order (PROTOCOL 10.3).

Takes its name and its eager protocol from Apache Kafka's StickyAssignor, whose result it never falls
behind. What a member owned travels in its user data, because an eager member gives everything up before
it joins.
"""

from operator import attrgetter

import msgspec

from assignors.user_data import decode_ownership, encode_ownership
from coordinator_core.flow import balanced_owners
from coordinator_core.model import (
    NO_GENERATION,
    NO_PARTITIONS,
    Cluster,
    GroupAssignment,
    GroupSubscription,
    Partitions,
    RebalanceProtocol,
    Subscription,
)
from coordinator_core.problem import Problem, build_problem

_USER_DATA = attrgetter("user_data")


class StickyAssignor:
    """One object per consumer: it remembers what its member got last."""

    name = "sticky"
    version = 1
    supported_protocols = (RebalanceProtocol.EAGER,)

    def __init__(self) -> None:
        self._owned = NO_PARTITIONS
        self._generation = NO_GENERATION

    def subscription_user_data(self, topics: tuple[str, ...]) -> bytes:  # noqa: ARG002 - the interface's
        """What the member got last, and when."""
        return encode_ownership(self._owned, self._generation)

    def on_assignment(self, partitions: Partitions, generation: int) -> None:
        """Remember what the member got."""
        self._owned, self._generation = partitions, generation

    def prepare(self, group: GroupSubscription) -> GroupSubscription:
        """The group with what its members say in their user data that they owned."""
        if not any(map(_USER_DATA, group.values())):
            return group
        return GroupSubscription({m: _as_owner(s) for m, s in group.items()})

    def assign(self, cluster: Cluster, group: GroupSubscription) -> GroupAssignment:
        """The assignment of a group."""
        return self.solve(build_problem(cluster, self.prepare(group)))

    def solve(self, problem: Problem) -> GroupAssignment:
        """The same, over arrays."""
        return GroupAssignment.from_owners(problem.index, problem.members, balanced_owners(problem))


def _as_owner(subscription: Subscription) -> Subscription:
    said = None if subscription.user_data is None else decode_ownership(subscription.user_data)
    if said is None:
        return subscription
    owned, generation = said
    return msgspec.structs.replace(subscription, owned=owned, generation=generation)
