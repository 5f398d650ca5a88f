"""The base class of eager assignors that keep owners: what their members owned travels in the user data."""

from functools import partial
from operator import attrgetter

from coordinator_core.assigning.assignor import Assignor, PlainAssignment
from coordinator_core.assigning.problem import Problem
from coordinator_core.assigning.user_data import decode_claims, decode_ownership, encode_ownership
from coordinator_core.model import (
    NO_GENERATION,
    NO_PARTITIONS,
    GroupSubscription,
    Partitions,
    Subscription,
)

_USER_DATA = attrgetter("user_data")


class Memory(Assignor):
    """Base class of eager assignors that keep owners.

    An eager member revokes all partitions before it joins, so its subscription does not list them. This class
    sends the last assignment and its generation in the user data, in the format of Apache Kafka's
    StickyAssignor. `assign` gets a group in which ``owned`` and ``generation`` are those of the user data:

        class Keeper(Memory):
            def assign(self, cluster, group):
                owner = {tp: member for member in group for tp in group[member].owned}
                ...  # owner[topic, partition] is a previous owner

    A subclass that overrides `solve` instead begins with ``problem = recalled(problem)``. A subclass that has
    an `__init__` must call ``super().__init__()``. Cooperative assignors do not need this class: their
    members list in their subscriptions what they own.
    """

    def __init__(self) -> None:
        self._owned = NO_PARTITIONS
        self._generation = NO_GENERATION

    def subscription_user_data(self, topics: tuple[str, ...]) -> bytes:  # noqa: ARG002 - the interface's
        """Return the last assignment and its generation."""
        return encode_ownership(self._owned, self._generation)

    def on_assignment(self, partitions: Partitions, generation: int) -> None:
        """Remember the assignment."""
        self._owned, self._generation = partitions, generation

    def solve(self, problem: Problem) -> PlainAssignment:
        """Call `assign` with the claims of the user data."""
        return super().solve(recalled(problem))


def recalled(problem: Problem) -> Problem:
    """Return the problem with the claims that members send in their user data.

    A member without valid user data keeps the claims of its subscription.
    """
    group = problem.group
    if not any(map(_USER_DATA, group.values())):
        return problem
    claimed = decode_claims(problem.index, group.in_order(problem.members))
    return problem.with_claims(GroupSubscription.later(partial(_with_memories, group)), claimed)


def _with_memories(group: GroupSubscription) -> dict[str, Subscription]:
    memories = ((m, s, decode_ownership(s.user_data or b"")) for m, s in group.items())
    return {m: s if memory is None else _with_memory(s, *memory) for m, s, memory in memories}


def _with_memory(s: Subscription, owned: Partitions, generation: int) -> Subscription:
    return Subscription(s.topics, owned, generation, s.rack, s.instance_id, s.user_data, s.capacity)
