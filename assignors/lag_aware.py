"""Lag-aware: the heaviest partitions first, sticky within a tolerance. Fast at any size.

The weight of a partition comes from a provider: by default its lag and the records of the next minutes, as
the members report them. Without weights the result is that of the sticky assignor.
"""

from assignors.weighted.instance import weights_of
from assignors.weighted.reports import greedy_report
from assignors.weighted.tolerant import sticky_within
from coordinator_core.assigning.assignor import Capability
from coordinator_core.assigning.flow import balanced_owners
from coordinator_core.assigning.memory import Memory, recalled
from coordinator_core.assigning.problem import Problem
from coordinator_core.model import GroupAssignment

TOLERANCE = 0.1


class LagAwareAssignor(Memory):
    """Sends the last assignment of its member along with the subscription."""

    name = "lag-aware"
    capabilities = (Capability.STICKY, Capability.BALANCED, Capability.WEIGHTED)

    def __init__(self, *, tolerance: float = TOLERANCE) -> None:
        """``tolerance``: a member keeps its partitions up to this share above the bound."""
        super().__init__()
        self._tolerance = tolerance

    def solve(self, problem: Problem) -> GroupAssignment:
        """Return the assignment of a problem."""
        problem = recalled(problem)
        weight = weights_of(problem)
        if weight is None:
            return GroupAssignment.from_owners(problem.index, problem.members, balanced_owners(problem))
        owner, bound = sticky_within(problem, weight, self._tolerance)
        report = greedy_report(problem, owner, weight, bound)
        return GroupAssignment.from_owners(problem.index, problem.members, owner, report=report)
