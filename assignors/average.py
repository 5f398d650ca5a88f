"""The two allocations of Apache RocketMQ's clients: each topic separately, over its sorted subscribers."""

import numpy as np

from assignors.circles import TopicMembers, place_in_topic, runs
from coordinator_core.assigning.assignor import Assignor
from coordinator_core.assigning.problem import Problem
from coordinator_core.model import GroupAssignment


class AverageAssignor(Assignor):
    """Consecutive slices, the first ones longer by one: AllocateMessageQueueAveragely."""

    name = "average"

    def solve(self, problem: Problem) -> GroupAssignment:
        """Return the assignment of a problem."""
        owner = runs(problem, TopicMembers(problem))
        return GroupAssignment.from_owners(problem.index, problem.members, owner)


class AverageByCircleAssignor(Assignor):
    """One after another in a circle: AllocateMessageQueueAveragelyByCircle."""

    name = "average-by-circle"

    def solve(self, problem: Problem) -> GroupAssignment:
        """Return the assignment of a problem."""
        topic_members = TopicMembers(problem)
        topic, place = place_in_topic(problem)
        owner = topic_members.pick(topic, place % np.maximum(topic_members.count, 1)[topic])
        return GroupAssignment.from_owners(problem.index, problem.members, owner)
