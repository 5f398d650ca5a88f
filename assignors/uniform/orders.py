"""The orders in which Kafka's hash maps yield members, topics and the partitions of a member."""

from collections.abc import Sequence

import numpy as np

from coordinator_core.assigning.problem import Problem
from coordinator_core.java.hash_maps import (
    FIRST_TABLE,
    HashTable,
    in_buckets,
    order_of,
    spread_hashes,
    spread_int,
    spread_uuid,
)
from coordinator_core.model import Int32Array


def member_order(problem: Problem) -> Int32Array:
    """int32[M]: the positions of the members in a map that was filled in the order of the group."""
    filled = tuple(problem.group)
    order = order_of(filled).astype(np.int32)
    if filled == problem.members:
        return order
    position = {member: at for at, member in enumerate(problem.members)}
    return np.fromiter(map(position.__getitem__, filled), np.int32, len(filled))[order]


def topic_order(problem: Problem, member: int) -> list[int]:
    """Return the positions of the topics that a member subscribes to, in a set of their ids.

    A coordinator makes it of a set of the names, and of their number, whether they exist or not.
    """
    index, ids = problem.index, problem.cluster.ids
    names: Sequence[str] = problem.group[problem.members[member]].topics
    if problem.group.handover is not None:
        names = in_buckets(dict(zip(names, spread_hashes(names), strict=True)), copied=len(names))
    spread = {at: spread_uuid(ids[name]) for name in names if (at := index.position(name)) is not None}
    return in_buckets(spread, copied=len(spread) if problem.group.handover is None else len(names))


def owned_order(problem: Problem, member: int) -> dict[int, list[int]]:
    """Return the dense numbers of what a member owns, by positions of topics, in the order of a map of sets.

    A coordinator has made the map and the sets of lists; otherwise they grew with the claims of the group.
    """
    index, ids = problem.index, problem.cluster.ids
    dense = problem.group[problem.members[member]].owned.dense_in(index)
    of_topics = index.topic_of_every[dense].tolist()
    owned: dict[int, list[int]] = {}
    for topic, number in zip(of_topics, dense.tolist(), strict=True):
        owned.setdefault(topic, []).append(number)
    table: HashTable[int] = HashTable()
    copied = problem.group.handover is not None
    if copied:
        for topic in owned:
            table.put(topic, spread_uuid(ids[index.topics[topic]]))
    else:
        for topic in of_topics:
            table.compute(topic, spread_uuid(ids[index.topics[topic]]))
    return {topic: _in_set(owned[topic], int(index.offsets[topic]), copied=copied) for topic in table}


def _in_set(numbers: list[int], first: int, *, copied: bool) -> list[int]:
    """Return dense numbers of a topic in the order of a set of partitions, made of a list if ``copied``."""
    if max(numbers) - first < FIRST_TABLE:
        return sorted(numbers)
    spread = {number: spread_int(number - first) for number in numbers}
    return in_buckets(spread, copied=len(numbers) if copied else 0)
