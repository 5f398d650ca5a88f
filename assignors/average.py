"""The two allocations of Apache RocketMQ's clients: each topic apart, over its sorted subscribers."""

import numpy as np

from assignors.circles import TopicMembers, place_in_topic, runs
from coordinator_core.assigning.problem import Problem, build_problem
from coordinator_core.model import Cluster, GroupAssignment, GroupSubscription, RebalanceProtocol


class AverageAssignor:
    """Consecutive slices, the first ones longer by one: AllocateMessageQueueAveragely."""

    name = "average"
    version = 0
    supported_protocols = (RebalanceProtocol.EAGER,)

    def assign(self, cluster: Cluster, group: GroupSubscription) -> GroupAssignment:
        """The assignment of a group."""
        return self.solve(build_problem(cluster, group))

    def solve(self, problem: Problem) -> GroupAssignment:
        """The same, over arrays."""
        owner = runs(problem, TopicMembers(problem))
        return GroupAssignment.from_owners(problem.index, problem.members, owner)


class AverageByCircleAssignor:
    """One after another in a circle: AllocateMessageQueueAveragelyByCircle."""

    name = "average-by-circle"
    version = 0
    supported_protocols = (RebalanceProtocol.EAGER,)

    def assign(self, cluster: Cluster, group: GroupSubscription) -> GroupAssignment:
        """The assignment of a group."""
        return self.solve(build_problem(cluster, group))

    def solve(self, problem: Problem) -> GroupAssignment:
        """The same, over arrays."""
        topic_members = TopicMembers(problem)
        topic, place = place_in_topic(problem)
        owner = topic_members.pick(topic, place % np.maximum(topic_members.count, 1)[topic])
        return GroupAssignment.from_owners(problem.index, problem.members, owner)
