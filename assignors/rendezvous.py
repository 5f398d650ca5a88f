"""Rendezvous: each partition goes to the member with the highest random weight that has room.

Highest random weight hashing (Thaler and Ravishankar, 1998). The load of a member is at most a quarter more
than its share (as in consistent hashing with bounded loads; Mirrokni, Thorup and Zadimoghaddam, arXiv
1608.01350). The owners follow from the names alone, without memory and user data. The bound counts for all
topics with the same subscribers together.
"""

from zlib import crc32

import numpy as np
from numpy.typing import NDArray

from coordinator_core.assigning.assignor import Assignor
from coordinator_core.assigning.problem import Problem
from coordinator_core.model import NO_OWNER, GroupAssignment, Int32Array

BOUND = 1.25
"""The largest load of a member relative to an equal share."""

_CHUNK = 1 << 22
"""The pairs of a partition and a member that are hashed at once."""

Words = NDArray[np.uint64]


class RendezvousAssignor(Assignor):
    """A pure function of the names of members and partitions."""

    name = "rendezvous"

    def solve(self, problem: Problem) -> GroupAssignment:
        """Return the assignment of a problem."""
        owner = np.full(problem.index.size, NO_OWNER, dtype=np.int32)
        signature, subscribers = problem.topic_signature
        names = _member_words(problem)
        partitions = _partition_words(problem)
        of_partition = signature[problem.index.topic_of_every]
        for at, members in enumerate(subscribers):
            mine = np.flatnonzero(of_partition == at)
            if len(mine):
                owner[mine] = members[_matched(partitions[mine], names[members])]
        return GroupAssignment.from_owners(problem.index, problem.members, owner)


def _matched(partitions: Words, members: Words) -> Int32Array:
    """int32[P]: the position of the member of each partition.

    Every partition proposes to members in falling order of weight. A member keeps the partitions with the
    highest weights up to its bound and rejects the others (deferred acceptance: the order does not matter).
    """
    count, bound = len(partitions), int(np.ceil(BOUND * len(partitions) / len(members)))
    chosen = np.full(count, NO_OWNER, dtype=np.int32)
    ranked = _Preferences(partitions, members)
    turn = np.zeros(count, dtype=np.int64)
    open_ones = np.arange(count)
    while len(open_ones):
        chosen[open_ones] = ranked(open_ones, turn[open_ones])
        turn[open_ones] += 1
        weights = _mixed(partitions, members[chosen])
        order = np.lexsort((np.arange(count), ~weights, chosen))
        starts = np.flatnonzero(np.diff(chosen[order], prepend=-1))
        place = np.arange(count) - np.repeat(starts, np.diff(np.append(starts, count)))
        open_ones = np.sort(order[place >= bound])
    return chosen


class _Preferences:
    """The members of each partition by falling weight. The first ones are stored, others sorted on demand."""

    def __init__(self, partitions: Words, members: Words) -> None:
        self._partitions, self._members = partitions, members
        self._first = np.concatenate(
            [
                _mixed(partitions[a : a + self._rows][:, None], members[None, :]).argmax(axis=1)
                for a in range(0, len(partitions), self._rows)
            ]
        )

    @property
    def _rows(self) -> int:
        return max(1, _CHUNK // len(self._members))

    def __call__(self, which: NDArray[np.int64], turn: NDArray[np.int64]) -> NDArray[np.int64]:
        chosen = self._first[which]
        later = np.flatnonzero(turn > 0)
        for a in range(0, len(later), self._rows):
            at = later[a : a + self._rows]
            weights = _mixed(self._partitions[which[at]][:, None], self._members[None, :])
            falling = np.argsort(~weights, axis=1, kind="stable")
            chosen[at] = falling[np.arange(len(at)), turn[at]]
        return chosen


def _member_words(problem: Problem) -> Words:
    """uint64[M]: hashes of instance ids or member ids, so that a returning static member is the same."""
    group = problem.group
    named = [group[m].instance_id or m for m in problem.members]
    return np.array([_word(name) for name in named], dtype=np.uint64)


def _partition_words(problem: Problem) -> Words:
    topics = np.array([_word(topic) for topic in problem.index.topics], dtype=np.uint64)
    at = problem.index.topic_of_every
    number = (np.arange(problem.index.size) - problem.index.offsets[at]).astype(np.uint64)
    return _scrambled(topics[at] + _scrambled(number))


def _word(name: str) -> int:
    data = name.encode("utf-8", "surrogatepass")
    return crc32(data) | crc32(data, 0x9E3779B9) << 32


def _mixed(partitions: Words, members: Words) -> Words:
    return _scrambled(partitions ^ _scrambled(members))


def _scrambled(words: Words) -> Words:
    """The finalizer of SplitMix64 (Steele, Lea and Flood, 2014)."""
    words = words + np.uint64(0x9E3779B97F4A7C15)
    words = (words ^ (words >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    words = (words ^ (words >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return words ^ (words >> np.uint64(31))
