"""The assignments in which a group rested, as arrays. Metrics of moves and balance are computed from them."""

from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from coordinator_core.model import NO_OWNER, Int32Array, TopicIndex

IntArray: TypeAlias = NDArray[np.int64]
FloatArray: TypeAlias = NDArray[np.float64]
Steps: TypeAlias = Sequence[tuple[int, Sequence[float]]]
"""The records/s of each partition of a topic, with the times since which they hold."""


@dataclass(frozen=True, eq=False)
class Members:
    """The consumers in a group: ``clients`` int32[M], ascending numbers, and the topics of each."""

    clients: Int32Array
    topics: tuple[tuple[str, ...], ...]

    def __len__(self) -> int:
        return len(self.topics)

    @cached_property
    def common(self) -> frozenset[str]:
        """The topics to which every member subscribes."""
        lists = [frozenset(listed) for listed in dict.fromkeys(self.topics)]
        return frozenset.intersection(*lists) if lists else frozenset()

    @cached_property
    def any(self) -> frozenset[str]:
        """The topics to which a member subscribes."""
        return frozenset().union(*dict.fromkeys(self.topics))


class Traffic:
    """The records/s of the partitions of an index in the course of a run."""

    def __init__(self, index: TopicIndex, steps: Mapping[str, Steps]) -> None:
        self._index, self._steps = index, steps
        self._means: dict[tuple[int, int], FloatArray] = {}
        self._once: dict[Hashable, float] = {}

    def mean(self, from_ms: int, until_ms: int) -> FloatArray:
        """float64[P], read-only: the mean records/s of each partition in a time, NaN if the time is empty."""
        found = self._means.get((from_ms, until_ms))
        if found is None:
            found = self._means[from_ms, until_ms] = self._mean(from_ms, until_ms)
        return found

    def once(self, key: Hashable, compute: Callable[[], float]) -> float:
        """Return a figure that follows from the records/s and a key. It is computed once."""
        if key not in self._once:
            self._once[key] = compute()
        return self._once[key]

    def _mean(self, from_ms: int, until_ms: int) -> FloatArray:
        index = self._index
        if until_ms <= from_ms:
            return np.full(index.size, np.nan)
        every = np.arange(index.size)
        produced = self.produced(every, np.full(index.size, from_ms), np.full(index.size, until_ms))
        produced /= until_ms - from_ms
        return produced

    def produced(self, partitions: IntArray, from_ms: IntArray, until_ms: IntArray) -> FloatArray:
        """float64[n]: the records/s of n partitions, summed over the milliseconds of a time for each."""
        index = self._index
        produced = np.zeros(len(partitions))
        topic_of = index.topic_of(partitions.astype(np.int32))
        numbers = partitions - index.offsets[topic_of]
        for at, topic in enumerate(index.topics):
            steps = self._steps.get(topic, ())
            own = np.flatnonzero(topic_of == at) if steps else ()
            if not len(own):
                continue
            ends_ms = [*(at_ms for at_ms, _ in steps[1:]), np.iinfo(np.int64).max]
            for (at_ms, rates), end_ms in zip(steps, ends_ms, strict=True):
                overlap_ms = np.minimum(until_ms[own], end_ms) - np.maximum(from_ms[own], at_ms)
                rate = np.zeros(max(len(rates), index.partition_count(topic)))
                rate[: len(rates)] = rates
                produced[own] += rate[numbers[own]] * np.maximum(overlap_ms, 0)
        return produced


@dataclass(eq=False)
class Rest:
    """An assignment in which the group rested.

    ``owner`` int32[P]: the number of the client that owns each partition of `index`, or -1. Only ``until_ms``
    changes, when the rest ends.
    """

    index: TopicIndex
    from_ms: int
    until_ms: int
    owner: Int32Array
    members: Members

    @cached_property
    def loads(self) -> IntArray:
        """int64[>= clients]: the number of partitions of each client, at least up to the last member."""
        clients = self.members.clients
        least = int(clients[-1]) + 2 if len(clients) else 1
        loads: IntArray = np.bincount(self.owner + 1, minlength=least)[1:]
        return loads

    @cached_property
    def member_loads(self) -> IntArray:
        """int64[M]: the number of partitions of each member."""
        loads: IntArray = self.loads[self.members.clients]
        return loads

    @cached_property
    def is_whole(self) -> bool:
        """Whether every partition of the index has an owner."""
        return not np.count_nonzero(self.owner == NO_OWNER)

    @cached_property
    def sizes(self) -> dict[str, int]:
        """The topics with an owner, with their partitions up to the last one that has an owner."""
        if self.is_whole:
            return {topic: count for topic, count in self.index.counts.items() if count}
        held = np.flatnonzero(self.owner != NO_OWNER)
        at = self.index.topic_of_every[held]
        sizes = dict(zip(at.tolist(), (held - self.index.offsets[at] + 1).tolist(), strict=True))
        return {self.index.topics[topic]: size for topic, size in sizes.items()}

    @cached_property
    def is_alike(self) -> bool:
        """Whether there are members, and each subscribes to all topics that have owners."""
        return bool(len(self.members)) and self.members.common.issuperset(self.sizes)
