"""The assignors of Kafka's consumer protocol (KIP-848), which run in the coordinator.

Both ignore racks, as those of Apache Kafka 4 do. On the wire they are called ``range`` and ``uniform``.
"""

from dataclasses import replace

from assignors.average import AverageAssignor
from coordinator_core.assigning.assignor import Assignor, Capability
from coordinator_core.assigning.flow import balanced_owners
from coordinator_core.assigning.problem import Problem
from coordinator_core.model import GroupAssignment


class Range848Assignor(AverageAssignor):
    """Each topic in consecutive runs over its sorted members, static members first."""

    name = "range-848"


class Uniform848Assignor(Assignor):
    """The best balance, then the fewest moves: never worse than Kafka's UniformAssignor, its default."""

    name = "uniform-848"
    capabilities = (Capability.STICKY, Capability.BALANCED)

    def solve(self, problem: Problem) -> GroupAssignment:
        """Return the assignment of a problem."""
        owner = balanced_owners(problem if problem.racks is None else replace(problem, racks=None))
        return GroupAssignment.from_owners(problem.index, problem.members, owner)
