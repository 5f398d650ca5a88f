"""Sticky: name, eager protocol, user data and result are those of Apache Kafka 4.4's (PROTOCOL 10.5)."""

from assignors.kafka_sticky import kafka_sticky
from coordinator_core.assigning.assignor import Capability
from coordinator_core.assigning.memory import Memory, recalled
from coordinator_core.assigning.problem import Problem
from coordinator_core.model import GroupAssignment, Int32Array


class StickyAssignor(Memory):
    """Sends the last assignment of its member along with the subscription."""

    name = "sticky"
    version = 1
    capabilities = (Capability.STICKY, Capability.BALANCED, Capability.RACK_AWARE)
    subscribers_only = False

    def solve(self, problem: Problem) -> GroupAssignment:
        """Return the assignment of a problem."""
        if not problem.members:
            return GroupAssignment({})
        answer = kafka_sticky(recalled(problem), problem.group)
        return GroupAssignment.from_owners(
            problem.index, problem.members, answer.owner, order=answer.listed()
        )


def sticky_owners(problem: Problem) -> Int32Array:
    """int32[P]: the owner of each partition, -1 without subscribers."""
    return kafka_sticky(problem).owner if problem.members else problem.index.nobody
