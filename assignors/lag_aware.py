"""Lag-aware: largest first, sticky within a tolerance. Fast at any size, and close where weights are many.

The weight of a partition is whatever the host knows: by default the records that wait in it and those that
come in the next minutes, as the members report. Without weights it is the sticky assignor.
"""

import numpy as np

from assignors.memory import Memory, as_owners
from assignors.weighted.reports import greedy_report
from assignors.weighted.tolerant import sticky_within
from coordinator_core.assigning.assignor import Capability
from coordinator_core.assigning.flow import balanced_owners
from coordinator_core.assigning.problem import Problem, build_problem
from coordinator_core.model import Cluster, GroupAssignment, GroupSubscription, Partitions, RebalanceProtocol

TOLERANCE = 0.1


class LagAwareAssignor:
    """One object per consumer: it remembers what its member got last."""

    name = "lag-aware"
    version = 0
    capabilities = (Capability.STICKY, Capability.BALANCED, Capability.WEIGHTED)
    supported_protocols = (RebalanceProtocol.EAGER,)

    def __init__(self, *, tolerance: float = TOLERANCE) -> None:
        """``tolerance``: how far above the bound a member may be and still keep what it has, relatively."""
        self._tolerance = tolerance
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
        weight, capacity = problem.weights, problem.capacity
        mine = problem.subscribed
        even = weight is None or not len(mine) or not np.ptp(weight[mine]) > 0
        if even and (capacity is None or not len(mine)):
            return GroupAssignment.from_owners(problem.index, problem.members, balanced_owners(problem))
        if weight is None or not weight[mine].any():
            weight = np.ones(problem.index.size)
        if capacity is None:
            capacity = np.ones(len(problem.members))
        owner, bound = sticky_within(problem, weight, capacity, self._tolerance)
        return GroupAssignment.from_owners(
            problem.index,
            problem.members,
            owner,
            report=greedy_report(problem, owner, weight, capacity, bound),
        )
