"""Sticky: the best balance, then racks, then the fewest moves; exact in that order (PROTOCOL 10.3).

Name, eager protocol and user data are those of Apache Kafka's StickyAssignor; the result is never worse.
"""

from coordinator_core.assigning.assignor import Capability
from coordinator_core.assigning.flow import balanced_owners
from coordinator_core.assigning.memory import Memory, recalled
from coordinator_core.assigning.problem import Problem
from coordinator_core.model import GroupAssignment


class StickyAssignor(Memory):
    """Sends the last assignment of its member along with the subscription."""

    name = "sticky"
    version = 1
    capabilities = (Capability.STICKY, Capability.BALANCED, Capability.RACK_AWARE)

    def solve(self, problem: Problem) -> GroupAssignment:
        """Return the assignment of a problem."""
        problem = recalled(problem)
        return GroupAssignment.from_owners(problem.index, problem.members, balanced_owners(problem))
