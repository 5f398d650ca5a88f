"""Sticky-balanced: the best balance, then racks, then the fewest moves; exact in that order (PROTOCOL 10.3).

Kafka's sticky assignors search for balance one move at a time. This one is better where subscriptions differ:
it reaches the balance that they allow, with the fewest moves, and takes less time in large groups.
"""

from coordinator_core.assigning.assignor import Capability
from coordinator_core.assigning.flow import balanced_owners
from coordinator_core.assigning.memory import Memory, recalled
from coordinator_core.assigning.problem import Problem
from coordinator_core.model import GroupAssignment


class StickyBalancedAssignor(Memory):
    """Sends the last assignment of its member along with the subscription."""

    name = "sticky-balanced"
    version = 1
    capabilities = (Capability.STICKY, Capability.BALANCED, Capability.RACK_AWARE)

    def solve(self, problem: Problem) -> GroupAssignment:
        """Return the assignment of a problem."""
        problem = recalled(problem)
        return GroupAssignment.from_owners(problem.index, problem.members, balanced_owners(problem))
