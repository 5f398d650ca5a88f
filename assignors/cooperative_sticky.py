"""CooperativeSticky: Sticky's answer, reached in two rounds so that only what moves stops (KIP-429).

A partition that goes to another member is left out until its owner has given it up.
"""

from operator import attrgetter

import msgspec

from assignors.user_data import decode_generation, encode_generation
from coordinator_core.assigning.assignor import Capability
from coordinator_core.assigning.combinators import hold_back
from coordinator_core.assigning.flow import balanced_owners
from coordinator_core.assigning.problem import Problem, build_problem
from coordinator_core.model import (
    NO_GENERATION,
    Cluster,
    GroupAssignment,
    GroupSubscription,
    Partitions,
    RebalanceProtocol,
    Subscription,
)

_USER_DATA = attrgetter("user_data")


class CooperativeStickyAssignor:
    """One object per consumer: it remembers the generation of what its member got last."""

    name = "cooperative-sticky"
    version = 0
    capabilities = (Capability.STICKY, Capability.BALANCED, Capability.RACK_AWARE)
    supported_protocols = (RebalanceProtocol.COOPERATIVE, RebalanceProtocol.EAGER)

    def __init__(self) -> None:
        self._generation = NO_GENERATION

    def subscription_user_data(self, topics: tuple[str, ...]) -> bytes:  # noqa: ARG002 - the interface's
        """The generation, for leaders that read subscriptions older than v2."""
        return encode_generation(self._generation)

    def on_assignment(self, partitions: Partitions, generation: int) -> None:  # noqa: ARG002 - the interface's
        """Remember the generation."""
        self._generation = generation

    def prepare(self, group: GroupSubscription) -> GroupSubscription:
        """The group with generations from user data where the subscription has none (PITFALLS C-65b)."""
        if not any(map(_USER_DATA, group.values())):
            return group
        return GroupSubscription({m: _with_generation(s) for m, s in group.items()})

    def assign(self, cluster: Cluster, group: GroupSubscription) -> GroupAssignment:
        """The assignment of a group; what changes hands is left out."""
        return self.solve(build_problem(cluster, self.prepare(group)))

    def solve(self, problem: Problem) -> GroupAssignment:
        """The same, over arrays."""
        target = balanced_owners(problem)
        hold_back(problem, target)
        return GroupAssignment.from_owners(problem.index, problem.members, target)


def _with_generation(subscription: Subscription) -> Subscription:
    if subscription.generation != NO_GENERATION or subscription.user_data is None:
        return subscription
    generation = decode_generation(subscription.user_data)
    if generation is None:
        return subscription
    return msgspec.structs.replace(subscription, generation=generation)
