"""The case of different subscriptions: partitions move topic by topic until members are level.

A partition moves only from one subscriber of its topic to another that has at least two fewer. That need not
end in the best balance, which may need chains of moves over several topics.
"""

from collections.abc import Iterator, Sequence
from itertools import pairwise

import numpy as np

from assignors.uniform.listing import Move, Moves
from coordinator_core.assigning.problem import Problem
from coordinator_core.model import NO_OWNER, Int32Array

_MOST_ROUNDS = 16
_SIGN = 1 << 63


def fill_levels(problem: Problem, order: Int32Array, owner: Int32Array, moves: Moves | None) -> None:
    """Change ``owner``: assign the partitions without one, then level the members of each topic.

    ``order``: the members in Kafka's order, which decides between members with equally many partitions.
    """
    levels = _Levels(problem, order, owner)
    topics = _ranked_topics(problem, list(map(len, levels.subscribers)))
    for topic in topics:
        levels.fill(topic)
    _until_level(levels, [topic for topic in topics if len(levels.subscribers[topic]) > 1])
    owner[:] = np.append(order, np.int32(NO_OWNER))[levels.owner]
    if moves is not None:
        members = order.tolist()
        moves += [Move(members[place], number, leaves) for place, number, leaves in levels.moves]


def _ranked_topics(problem: Problem, subscribers: Sequence[int]) -> list[int]:
    """Return the topics with subscribers: those with the most partitions for each first, then by subscribers.

    Of equal ones the least id is first, its halves compared as signed numbers.
    """
    index, ids = problem.index, problem.cluster.ids

    def rank(topic: int) -> tuple[float, int, int]:
        name = index.topics[topic]
        for_each = index.partition_count(name) / subscribers[topic]
        return -for_each, subscribers[topic], ids[name].int ^ (_SIGN << 64 | _SIGN)

    return sorted(np.flatnonzero(problem.topic_subscribed).tolist(), key=rank)


def _until_level(levels: "_Levels", topics: Sequence[int]) -> None:
    """Level topic after topic, until no partition has moved since the topic whose turn it is."""
    last = None
    for _ in range(_MOST_ROUNDS):
        for topic in topics:
            if topic == last:
                return
            if levels.level(topic) or last is None:
                last = topic


class _Levels:
    """Members by their places in Kafka's order, and the number of partitions of each.

    ``owner`` has the place of the owner of each partition, or -1; ``subscribers`` the places of the members
    of each topic, ascending; ``moves`` the changes: place, partition, and whether it leaves.
    """

    def __init__(self, problem: Problem, order: Int32Array, owner: Int32Array) -> None:
        self._bounds: list[int] = problem.index.offsets.tolist()
        place = np.full(len(order) + 1, NO_OWNER, dtype=np.int32)
        place[order] = np.arange(len(order))
        placed = place[owner]
        self.owner: list[int] = placed.tolist()
        self._sizes: list[int] = np.bincount(placed[placed != NO_OWNER], minlength=len(order)).tolist()
        topic, member = np.nonzero(problem.class_subscribes[problem.member_class[order]].T)
        starts = np.searchsorted(topic, np.arange(len(problem.index.topics) + 1)).tolist()
        places: list[int] = member.tolist()
        self.subscribers = [places[begin:end] for begin, end in pairwise(starts)]
        self.moves: list[tuple[int, int, bool]] = []

    def fill(self, topic: int) -> None:
        """Assign the partitions of a topic without an owner to the members with the fewest."""
        begin, end = self._bounds[topic : topic + 2]
        free = [number for number in range(begin, end) if self.owner[number] == NO_OWNER]
        if free:
            takers = _from_below(self._sizes, self._ranked(topic))
            for number, (_, taker) in zip(free, takers, strict=False):
                self._give(number, taker)

    def level(self, topic: int) -> bool:
        """Move partitions of a topic, those with high numbers first. Return whether any has moved."""
        sizes = list(map(self._sizes.__getitem__, self.subscribers[topic]))
        if max(sizes) - min(sizes) <= 1:
            return False
        owned: dict[int, list[int]] = {}
        for number in range(*self._bounds[topic : topic + 2]):
            owned.setdefault(self.owner[number], []).append(number)
        ranked, before = self._ranked(topic), len(self.moves)
        takers = _from_below(self._sizes, ranked)
        for high, giver in _from_above(self._sizes, ranked, owned):
            low, taker = next(takers)
            if high - low <= 1:
                break
            number = owned[giver].pop()
            self.moves.append((giver, number, True))
            self._sizes[giver] -= 1
            self._give(number, taker)
        return len(self.moves) > before

    def _ranked(self, topic: int) -> list[int]:
        """Return the subscribers of a topic, those with the fewest partitions first."""
        return sorted(self.subscribers[topic], key=self._sizes.__getitem__)

    def _give(self, number: int, taker: int) -> None:
        self.owner[number] = taker
        self._sizes[taker] += 1
        self.moves.append((taker, number, False))


def _from_below(sizes: Sequence[int], ranked: Sequence[int]) -> Iterator[tuple[int, int]]:
    """Yield a level and a member on it for ever: each turn raises the members of a level to the next one.

    ``sizes`` change meanwhile: whoever is yielded gets a partition.
    """
    level, end = sizes[ranked[0]], 0
    while True:
        while end < len(ranked) and sizes[ranked[end]] == level:
            end += 1
        for member in ranked[:end]:
            yield level, member
        level += 1


def _from_above(
    sizes: Sequence[int], ranked: Sequence[int], owned: dict[int, list[int]]
) -> Iterator[tuple[int, int]]:
    """Yield a level and a member on it that owns partitions of the topic, which it loses: the reverse.

    A member without one leaves its turn to the first of the level, which is the last in the next turns.
    """
    rest = list(ranked)
    level, turn = sizes[rest[-1]] + 1, list[int]()
    while turn or rest:
        level = level - 1 if turn else sizes[rest[-1]]
        while rest and sizes[rest[-1]] == level:
            turn.append(rest.pop())
        at = 0
        while at < len(turn):
            if owned.get(turn[at]):
                yield level, turn[at]
                at += 1
            else:
                turn[at] = turn[0]
                del turn[0]
