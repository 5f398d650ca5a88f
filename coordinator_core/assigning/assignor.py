"""The `Assignor` base class. Names are those of Kafka's ConsumerPartitionAssignor.

An author overrides `assign` and works on plain mappings; the built-in assignors override `solve` and work on
arrays. Classes, objects and functions that do not derive from `Assignor` are adapted by
`loading.assignor_from`.
"""

from collections.abc import Callable, Collection, Iterable, Mapping
from enum import StrEnum
from types import MappingProxyType
from typing import Any, TypeAlias

from coordinator_core.assigning.problem import Problem, build_problem
from coordinator_core.model import Cluster, GroupSubscription, Partitions, RebalanceProtocol

PlainAssignment: TypeAlias = Mapping[str, Iterable[tuple[str, int]]]
"""Member id -> (topic, partition) pairs. A `GroupAssignment` is one, too."""

NO_OPTIONS: Mapping[str, Callable[[str], Any]] = MappingProxyType({})


class Capability(StrEnum):
    """A property that an assignor declares; the conformance suite then verifies it."""

    STICKY = "sticky"
    """Keeps the owners of an unchanged group, and moves only what it must if a member leaves."""
    BALANCED = "balanced"
    """Gives members with equal subscriptions the same number of partitions, or one more."""
    WEIGHTED = "weighted"
    """Uses the weights of partitions and the capacities of members, if they are known."""
    RACK_AWARE = "rack-aware"
    """Prefers owners in the rack of a replica."""


class Assignor:
    """Base class of assignors. Override `assign` or `solve`; everything else has a default.

    Every consumer has an assignor of its own. The assignor of the group's leader computes the assignment.
    """

    name: str = ""
    """The protocol name in JoinGroup; by default the name of the class in kebab case."""
    version: int = 0
    supported_protocols: Collection[RebalanceProtocol] = (RebalanceProtocol.EAGER,)
    capabilities: Collection[Capability] = ()
    options: Mapping[str, Callable[[str], Any]] = NO_OPTIONS
    """Keyword arguments of the class that a strategy may set, each with the parser of its text."""
    repeats: bool = True
    """Whether equal groups and topics get equal assignments at any time."""
    subscribers_only: bool = True
    """Whether it is an error to assign a topic to a member that does not subscribe to it.

    Apache Kafka's sticky ones do so in rare cases (PITFALLS C-69). The member then joins again.
    """
    provider: str = ""
    """The provider of weights and capacities, unless a strategy or the assignor's record names another."""

    def subscription_user_data(self, topics: tuple[str, ...]) -> bytes | None:  # noqa: ARG002 - for subclasses
        """Return the user data of the member's subscription to these topics."""
        return None

    def on_assignment(self, partitions: Partitions, generation: int) -> None:
        """Receive the assignment of the member."""

    def rejoin_after_ms(self, user_data: bytes | None) -> int | None:  # noqa: ARG002 - for subclasses
        """Return after how many ms the member joins again, though nothing has changed; None for never.

        Called after `on_assignment`, with the user data of the member's assignment.
        """
        return None

    def assign(self, cluster: Cluster, group: GroupSubscription) -> PlainAssignment:
        """Assign each partition of a subscribed topic to one of the topic's subscribers."""
        return self.solve(build_problem(cluster, group))

    def solve(self, problem: Problem) -> PlainAssignment:
        """Do the same for a group as arrays. The fast way to build the result: `GroupAssignment.from_owners`.

        Arrays of the problem must not be changed.
        """
        if type(self).assign is Assignor.assign:
            raise NotImplementedError(f"{type(self).__name__} overrides neither assign nor solve")
        return self.assign(problem.cluster, problem.group)


class Wrapper(Assignor):
    """Base class of assignors around another one. Override `solve`.

    `solve` must compute the assignment with `computing.run(self.inner, problem)`, which validates it, and
    may only take partitions away from it: the result of a wrapper is not validated again.
    """

    def __init__(self, inner: Assignor, *, name: str = "") -> None:
        self.inner = inner
        self.name = name or inner.name
        self.version = inner.version
        self.supported_protocols = inner.supported_protocols
        self.capabilities = inner.capabilities
        self.repeats = inner.repeats
        self.subscribers_only = inner.subscribers_only

    def subscription_user_data(self, topics: tuple[str, ...]) -> bytes | None:
        """Return the user data of the inner assignor."""
        return self.inner.subscription_user_data(topics)

    def on_assignment(self, partitions: Partitions, generation: int) -> None:
        """Pass the assignment on to the inner assignor."""
        self.inner.on_assignment(partitions, generation)

    def rejoin_after_ms(self, user_data: bytes | None) -> int | None:
        """Pass the user data on to the inner assignor."""
        return self.inner.rejoin_after_ms(user_data)


def is_cooperative(assignor: Assignor) -> bool:
    """Whether the assignor supports the cooperative protocol."""
    return RebalanceProtocol.COOPERATIVE in assignor.supported_protocols
