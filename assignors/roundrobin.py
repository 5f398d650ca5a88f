"""RoundRobin: all partitions, sorted by topic and number, assigned to the sorted members in a circle.

Equal to Apache Kafka's RoundRobinAssignor, the order of each member's list included.
"""

import numpy as np

from assignors.circles import TopicMembers, place_in_topic
from coordinator_core.assigning.assignor import Assignor, Capability
from coordinator_core.assigning.flow.dealing import IntArray
from coordinator_core.assigning.problem import Problem
from coordinator_core.model import GroupAssignment, Int32Array


class RoundRobinAssignor(Assignor):
    """Even loads for equal subscriptions; assigns everything again after every change."""

    name = "roundrobin"
    capabilities = (Capability.BALANCED,)

    def solve(self, problem: Problem) -> GroupAssignment:
        """Return the assignment of a problem."""
        return GroupAssignment.from_owners(problem.index, problem.members, roundrobin_owners(problem))


def roundrobin_owners(problem: Problem) -> Int32Array:
    """int32[P]: the owner of each partition, -1 without subscribers."""
    if problem.alike:
        return np.arange(problem.index.size, dtype=np.int32) % np.int32(len(problem.members))
    topic_members = TopicMembers(problem)
    first = _first_places(problem, topic_members)
    topic, place = place_in_topic(problem)
    circle = np.maximum(topic_members.count, 1)
    return topic_members.pick(topic, (first[topic] + place) % circle[topic])


def _first_places(problem: Problem, topic_members: TopicMembers) -> IntArray:
    """int64[T]: the position in the members of each topic at which its assignment starts."""
    counts = np.diff(problem.index.offsets).tolist()
    first = np.zeros(len(counts), dtype=np.int64)
    next_member = 0
    for t in np.flatnonzero(problem.topic_subscribed).tolist():
        if not counts[t]:
            continue
        members = topic_members.of(t)
        first[t] = np.searchsorted(members, next_member) % len(members)
        next_member = int(members[(first[t] + counts[t] - 1) % len(members)]) + 1
    return first
