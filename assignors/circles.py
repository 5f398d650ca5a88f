"""The subscribers of each topic as arrays."""

import numpy as np
from numpy.typing import NDArray

from coordinator_core.assigning.problem import Problem
from coordinator_core.model import NO_OWNER, Int32Array


class TopicMembers:
    """The subscribers of every topic, in order. T topics, S different sets of members.

    ``signature`` int32[T]: the topic's set, -1 for none; ``count`` int64[T]: how many members it has.
    """

    def __init__(self, problem: Problem) -> None:
        self.signature, self._sets = problem.topic_signature
        sizes = np.array([len(members) for members in self._sets] + [0], dtype=np.int64)
        self._begin = np.concatenate(([0], np.cumsum(sizes[:-1])))
        self.count = sizes[self.signature]
        self._members = np.concatenate([*self._sets, np.array([NO_OWNER], dtype=np.int32)])

    def of(self, topic: int) -> Int32Array:
        """Return the members of a subscribed topic."""
        members: Int32Array = self._sets[self.signature[topic]]
        return members

    def pick(self, topic: Int32Array, place: NDArray[np.integer]) -> Int32Array:
        """int32[n]: the member at a place in the list of each topic; -1 without subscribers."""
        at = self._begin[self.signature[topic]] + place
        subscribed = self.count > 0
        if not subscribed.all():
            at = np.where(subscribed[topic], at, -1)
        members: Int32Array = self._members[at]
        return members


def place_in_topic(problem: Problem) -> tuple[Int32Array, Int32Array]:
    """Return the topic of each partition, int32[P], and its number in the topic, int32[P]."""
    topic = problem.index.topic_of_every
    place = np.arange(problem.index.size, dtype=np.int32) - problem.index.offsets[topic]
    return topic, place


def runs(problem: Problem, topic_members: TopicMembers) -> Int32Array:
    """int32[P]: the owners in consecutive runs of each topic; the first runs are longer by one."""
    counts = np.diff(problem.index.offsets).tolist()
    known: dict[tuple[int, int], Int32Array] = {}
    pieces = [np.zeros(0, dtype=np.int32)]
    for topic, key in enumerate(zip(topic_members.signature.tolist(), counts, strict=True)):
        if key not in known:
            known[key] = _runs_of_topic(topic_members, topic, *key)
        pieces.append(known[key])
    return np.concatenate(pieces)


def _runs_of_topic(topic_members: TopicMembers, topic: int, signature: int, count: int) -> Int32Array:
    if signature == NO_OWNER:
        return np.full(count, NO_OWNER, dtype=np.int32)
    members = topic_members.of(topic)
    quota, extra = divmod(count, len(members))
    if not quota:
        return members[:extra]
    lengths = np.full(len(members), quota)
    lengths[:extra] += 1
    return np.repeat(members, lengths)
