"""Sticky: balance first, then racks, then as few moves as possible; exact in that order (PROTOCOL 10.3).

Takes its name and its eager protocol from Apache Kafka's StickyAssignor, whose result it never falls
behind. What a member owned travels in its user data, because an eager member gives everything up before
it joins.
"""

from assignors.memory import Memory, as_owners
from coordinator_core.assigning.assignor import Capability
from coordinator_core.assigning.flow import balanced_owners
from coordinator_core.assigning.problem import Problem, build_problem
from coordinator_core.model import Cluster, GroupAssignment, GroupSubscription, Partitions, RebalanceProtocol


class StickyAssignor:
    """One object per consumer: it remembers what its member got last."""

    name = "sticky"
    version = 1
    capabilities = (Capability.STICKY, Capability.BALANCED, Capability.RACK_AWARE)
    supported_protocols = (RebalanceProtocol.EAGER,)

    def __init__(self) -> None:
        self._memory = Memory()

    def subscription_user_data(self, topics: tuple[str, ...]) -> bytes:  # noqa: ARG002 - the interface's
        """What the member got last, and when."""
        return self._memory.user_data()

    def on_assignment(self, partitions: Partitions, generation: int) -> None:
        """Remember what the member got."""
        self._memory.remember(partitions, generation)

    def prepare(self, group: GroupSubscription) -> GroupSubscription:
        """The group with what its members say in their user data that they owned."""
        return as_owners(group)

    def assign(self, cluster: Cluster, group: GroupSubscription) -> GroupAssignment:
        """The assignment of a group."""
        return self.solve(build_problem(cluster, self.prepare(group)))

    def solve(self, problem: Problem) -> GroupAssignment:
        """The same, over arrays."""
        return GroupAssignment.from_owners(problem.index, problem.members, balanced_owners(problem))
