"""Uniform: members get the same number of partitions, and keep what they have as far as that allows.

Equal to Apache Kafka's UniformAssignor of 4.1 to 4.4; that of 4.0 differs in `quotas` only. Who gets which
partition depends on the order of members and topics in Java's hash maps, thus on their ids. A coordinator has
its members in another order than a document, and makes some maps of other sizes: it is meant wherever
`GroupSubscription.alike` is not None.
"""

from assignors.uniform.levels import fill_levels
from assignors.uniform.listing import Moves, listing
from assignors.uniform.orders import member_order
from assignors.uniform.quotas import fill_quotas
from coordinator_core.assigning.problem import Problem
from coordinator_core.model import GroupAssignment


def uniform_assignment(problem: Problem, *, first_get_extra: bool = False) -> GroupAssignment:
    """Return the assignment; ``first_get_extra`` is that of `fill_quotas`.

    The partitions of members of a coordinator are listed in the order of Kafka's records, others ascending.
    """
    index, members, owner = problem.index, problem.members, problem.owner.copy()
    alike = problem.group.alike
    moves: Moves | None = None if alike is None else []
    if members and problem.topic_subscribed.any():
        order = member_order(problem)
        if problem.class_count == 1 if alike is None else alike:
            fill_quotas(problem, order, owner, moves, first_get_extra=first_get_extra)
        else:
            fill_levels(problem, order, owner, moves)
    listed = None if moves is None else listing(problem, moves)
    return GroupAssignment.from_owners(index, members, owner, listing=listed)


__all__ = ["uniform_assignment"]
