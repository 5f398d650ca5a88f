"""The assignors of Kafka's consumer protocol (KIP-848), which run in the coordinator.

Both ignore racks, as those of Apache Kafka 4 do. On the wire they are called ``range`` and ``uniform``.
"""

from assignors.average import AverageAssignor
from assignors.uniform import uniform_assignment
from coordinator_core.assigning.assignor import Assignor, Capability
from coordinator_core.assigning.problem import Problem
from coordinator_core.model import GroupAssignment


class Range848Assignor(AverageAssignor):
    """Each topic in consecutive runs over its sorted members, static members first."""

    name = "range-848"


class Uniform848Assignor(Assignor):
    """Equally many partitions for each member, which keeps what it has: Kafka's default."""

    name = "uniform-848"
    capabilities = (Capability.STICKY, Capability.BALANCED)

    def solve(self, problem: Problem) -> GroupAssignment:
        """Return the assignment of a problem."""
        return uniform_assignment(problem)
