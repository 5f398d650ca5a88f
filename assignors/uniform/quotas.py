"""The case in which all members subscribe to the same topics: each has a quota of partitions."""

from itertools import chain

import numpy as np

from assignors.uniform.listing import Move, Moves
from assignors.uniform.orders import owned_order, topic_order
from coordinator_core.assigning.flow.dealing import IntArray
from coordinator_core.assigning.problem import Problem
from coordinator_core.model import NO_OWNER, Int32Array


def fill_quotas(
    problem: Problem, order: Int32Array, owner: Int32Array, moves: Moves | None, *, keeps_extras: bool
) -> None:
    """Change ``owner`` until each member has its quota. ``order`` int32[M]: the members in Kafka's order.

    Members above their quota give up their last partitions. The members below theirs, in their order, get the
    partitions without an owner, topic by topic, and then these. ``keeps_extras`` is that of `_quotas`.
    """
    held = np.bincount(owner[owner != NO_OWNER], minlength=len(order))[order]
    total = int(np.diff(problem.index.offsets)[problem.topic_subscribed].sum())
    lacks = _quotas(held, total, keeps_extras=keeps_extras) - held
    given_up: list[int] = []
    for place in np.flatnonzero(lacks < 0).tolist():
        member = int(order[place])
        numbers = _owned(problem, member, owner)[int(lacks[place]) :]
        given_up += numbers
        if moves is not None:
            moves += [Move(member, number, leaves=True) for number in numbers]
    free = np.append(_without_owner(problem, int(order[0]), owner), np.array(given_up, dtype=np.int32))
    receivers = np.repeat(order, np.maximum(lacks, 0))
    owner[free] = receivers
    if moves is not None:
        gained = zip(receivers.tolist(), free.tolist(), strict=True)
        moves += [Move(member, number, leaves=False) for member, number in gained]


def _quotas(held: IntArray, total: int, *, keeps_extras: bool) -> IntArray:
    """int64[M]: how many partitions each member is to have: the mean, and one more for some.

    ``held`` int64[M], in Kafka's order. Members that have more than the mean keep one additional partition
    each; the last members get those that are left. ``keeps_extras``: if not, the first members get them.
    """
    count = len(held)
    least, extra = divmod(total, count)
    place = np.arange(count)
    if not keeps_extras:
        return least + (place < extra)
    above = held > least
    left = extra - (np.cumsum(above) - above)
    return least + np.where(count - place <= left, True, above & (left > 0))


def _without_owner(problem: Problem, first: int, owner: Int32Array) -> Int32Array:
    """int32[n]: the partitions without an owner, topic by topic. ``first`` is the first member."""
    index = problem.index
    free = np.flatnonzero(owner == NO_OWNER).astype(np.int32)
    if not problem.alike:
        free = free[problem.topic_subscribed[index.topic_of_every[free]]]
    if not len(free):
        return free
    topics = topic_order(problem, first)
    rank = np.zeros(len(index.topics), dtype=np.min_scalar_type(len(topics)))
    rank[topics] = np.arange(len(topics))
    return free[np.argsort(rank[index.topic_of_every[free]], kind="stable")]


def _owned(problem: Problem, member: int, owner: Int32Array) -> list[int]:
    """Return the dense numbers of the partitions that a member owns, in Kafka's order."""
    listed = chain.from_iterable(owned_order(problem, member).values())
    return [number for number in listed if owner[number] == member]
