"""CooperativeSticky: the result of Sticky in two rounds; only partitions that move stop (KIP-429).

A partition that moves is left out until its owner has revoked it, by the rules of Apache Kafka 4.4.
"""

from operator import attrgetter

import msgspec

from assignors.kafka_sticky import Answer, kafka_sticky
from coordinator_core.assigning.assignor import Assignor, Capability
from coordinator_core.assigning.problem import Problem
from coordinator_core.assigning.user_data import decode_generation, encode_generation
from coordinator_core.model import (
    NO_GENERATION,
    NO_OWNER,
    GroupAssignment,
    GroupSubscription,
    Int32Array,
    Partitions,
    RebalanceProtocol,
    Subscription,
)

_USER_DATA = attrgetter("user_data")


class CooperativeStickyAssignor(Assignor):
    """Sends the generation of its member's last assignment along."""

    name = "cooperative-sticky"
    capabilities = (Capability.STICKY, Capability.BALANCED, Capability.RACK_AWARE)
    subscribers_only = False
    supported_protocols = (RebalanceProtocol.COOPERATIVE, RebalanceProtocol.EAGER)

    def __init__(self) -> None:
        self._generation = NO_GENERATION

    def subscription_user_data(self, topics: tuple[str, ...]) -> bytes:  # noqa: ARG002 - the interface's
        """Return the generation, for leaders that read subscriptions older than v2."""
        return encode_generation(self._generation)

    def on_assignment(self, partitions: Partitions, generation: int) -> None:  # noqa: ARG002 - the interface's
        """Remember the generation."""
        self._generation = generation

    def solve(self, problem: Problem) -> GroupAssignment:
        """Return the assignment of a problem without the partitions that move."""
        if not problem.members:
            return GroupAssignment({})
        answer = kafka_sticky(_with_generations(problem), problem.group)
        owner = _held_back(answer)
        return GroupAssignment.from_owners(problem.index, problem.members, owner, order=answer.listed())


def cooperative_owners(problem: Problem) -> Int32Array:
    """int32[P]: the owner of each partition, -1 without subscribers, and for partitions that move."""
    return _held_back(kafka_sticky(problem)) if problem.members else problem.index.nobody


def _held_back(answer: Answer) -> Int32Array:
    """Return the owners without those of the partitions that move. The answer is used up."""
    answer.owner[answer.moving] = NO_OWNER
    return answer.owner


def _with_generations(problem: Problem) -> Problem:
    """Use the generation of the user data if the subscription has none (PITFALLS C-65b)."""
    group = problem.group
    if not any(map(_USER_DATA, group.values())):
        return problem
    return problem.with_claims(GroupSubscription({m: _with_generation(s) for m, s in group.items()}))


def _with_generation(subscription: Subscription) -> Subscription:
    if subscription.generation != NO_GENERATION or subscription.user_data is None:
        return subscription
    generation = decode_generation(subscription.user_data)
    if generation is None:
        return subscription
    return msgspec.structs.replace(subscription, generation=generation)
