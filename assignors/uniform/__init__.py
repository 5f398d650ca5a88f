"""Uniform: members get the same number of partitions, and keep what they have as far as that allows.

Equal to Apache Kafka's UniformAssignor of 4.1 to 4.4; that of 4.0 differs in `quotas` only. Who gets which
partition depends on the order of members and topics in Java's hash maps, thus on their ids. A coordinator has
its members in another order than a document, and makes some maps of other sizes: groups that it made have a
`Handover`.
"""

from assignors.uniform.levels import fill_levels
from assignors.uniform.listing import Moves, listing
from assignors.uniform.orders import member_order
from assignors.uniform.quotas import fill_quotas
from coordinator_core.assigning.problem import Problem
from coordinator_core.model import GroupAssignment


def uniform_assignment(problem: Problem) -> GroupAssignment:
    """Return the assignment of a problem.

    The partitions of members of a coordinator are listed in the order of Kafka's records, others ascending.
    """
    index, members, owner = problem.index, problem.members, problem.owner.copy()
    handover = problem.group.handover
    moves: Moves | None = None if handover is None else []
    if members and problem.topic_subscribed.any():
        order = member_order(problem)
        if problem.class_count == 1 if handover is None else handover.alike:
            keeps_extras = handover is None or handover.keeps_extras
            fill_quotas(problem, order, owner, moves, keeps_extras=keeps_extras)
        else:
            fill_levels(problem, order, owner, moves)
    listed = None if moves is None else listing(problem, moves)
    return GroupAssignment.from_owners(index, members, owner, listing=listed)


__all__ = ["uniform_assignment"]
