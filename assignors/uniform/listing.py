"""The order in which Kafka's coordinator writes down the partitions of its members.

It reads them again in this order, which counts in its next computation: sets keep partitions in chains in
the order in which they were inserted.
"""

from typing import NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from assignors.uniform.orders import owned_order
from coordinator_core.assigning.problem import Problem
from coordinator_core.java.hash_maps import (
    FIRST_TABLE,
    HashTable,
    copied_table,
    spread_int,
    spread_uuid,
    table_for,
)
from coordinator_core.model import Int32Array


class Move(NamedTuple):
    """A member gets a partition (a dense number), or it ``leaves`` the member."""

    member: int
    number: int
    leaves: bool


Moves: TypeAlias = list[Move]
"""In the order of the steps."""


def listing(problem: Problem, moves: Moves) -> tuple[Int32Array, NDArray[np.int64]]:
    """Return the dense numbers of all members one after the other, int32[n], and their starts, int64[M + 1].

    A member whose partitions stay the same keeps their order.
    """
    index = problem.index
    of_members: list[Moves] = [[] for _ in problem.members]
    for move in moves:
        of_members[move.member].append(move)
    pieces: list[Int32Array] = []
    for member, name in enumerate(problem.members):
        kept = problem.group[name].owned.dense_in(index)
        if of_members[member] or (problem.owner[kept] != member).any():
            pieces.append(np.array(_rewritten(problem, member, of_members[member]), dtype=np.int32))
        else:
            pieces.append(kept)
    starts = np.cumsum([0, *map(len, pieces)], dtype=np.int64)
    return np.concatenate(pieces) if pieces else np.zeros(0, dtype=np.int32), starts


def _rewritten(problem: Problem, member: int, moves: Moves) -> list[int]:
    """Return the partitions of a member after some moves, in the order of a map of sets."""
    index = problem.index
    spread = [spread_uuid(problem.cluster.ids[topic]) for topic in index.topics]
    first: list[int] = index.offsets.tolist()
    before = owned_order(problem, member)
    table: HashTable[int] = HashTable(table_for(len(before)))
    sets: dict[int, HashTable[int]] = {}
    for topic, numbers in before.items():
        table.put(topic, spread[topic])
        sets[topic] = HashTable(copied_table(len(numbers)))
        for number in numbers:
            sets[topic].put(number, spread_int(number - first[topic]))
    for topic in before:
        if not problem.class_subscribes[problem.member_class[member], topic]:
            table.remove(topic)
    for _, number, leaves in moves:
        topic = int(index.topic_of_every[number])
        if leaves:
            sets[topic].remove(number)
            if not len(sets[topic]):
                table.remove(topic)
            continue
        if topic not in table:
            sets[topic] = HashTable(_fresh_table(problem, topic))
        table.compute(topic, spread[topic])
        sets[topic].put(number, spread_int(number - first[topic]))
    return [number for topic in table for number in sets[topic]]


def _fresh_table(problem: Problem, topic: int) -> int:
    """Return the size of the table of a set for a topic of which the member has had no partition."""
    handover = problem.group.handover
    if handover is not None and handover.alike:
        return FIRST_TABLE
    subscribers = int(problem.class_subscribes[problem.member_class, topic].sum())
    count = problem.index.partition_count(problem.index.topics[topic])
    return table_for(-(-count // subscribers) * 4 // 3 + 1)
