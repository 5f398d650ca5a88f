"""The exact answer for partitions that all count the same (PROTOCOL 10.3).

In this order: the least sum of squares of the members' loads, the fewest owners without a replica in
their rack, the fewest moves away from a previous owner. Components of the subscription graph are solved
separately: by arithmetic if all members subscribe alike and racks do not matter; otherwise by repair of the
previous owners, or by a min-cost flow where that is not exact. Scoring uses the same result as the bound for
every assignor.
"""

import numpy as np

from coordinator_core.assigning.flow.closed_form import balance_alike
from coordinator_core.assigning.flow.components import Component, components
from coordinator_core.assigning.flow.dealing import IntArray
from coordinator_core.assigning.flow.transport import balance_apart
from coordinator_core.assigning.problem import BoolArray, Problem, Racks
from coordinator_core.model import NO_OWNER, Int32Array
from coordinator_core.packing import starts_of

__all__ = ["balanced_owners"]


def balanced_owners(problem: Problem) -> Int32Array:
    """int32[P]: the best owner of each partition, -1 without subscribers.

    Equal problems have equal results: ties go to the lowest owned partitions and the first members.
    """
    if problem.alike and problem.racks is None and problem.members:
        everything = np.array([0, problem.index.size]), np.array([0, len(problem.members)])
        return balance_alike(_owners_or_none(problem, problem.owner), *everything)
    target = np.full(problem.index.size, NO_OWNER, dtype=np.int32)
    if not problem.members:
        return target
    class_component, topic_component, count = components(problem.class_subscribes)
    split = _Split(problem, class_component, topic_component, count)
    simple = np.bincount(class_component, minlength=count) == 1
    rack_aware = split.racks_matter() if problem.racks is not None else np.zeros(count, dtype=np.bool_)
    simple &= ~rack_aware
    split.solve_simple(simple, target)
    for component in np.flatnonzero(~simple).tolist():
        split.solve_apart(component, target, problem.racks if rack_aware[component] else None)
    return target


def _owners_or_none(problem: Problem, owner: Int32Array) -> Int32Array | None:
    return owner if len(problem.claim_partition) else None


class _Split:
    """A problem divided into its components: the partitions and members of each, in order."""

    def __init__(
        self, problem: Problem, class_component: Int32Array, topic_component: Int32Array, count: int
    ) -> None:
        self.problem, self.count = problem, count
        self.class_component, self.topic_component = class_component, topic_component
        if count == 1:
            self.member_component = np.zeros(len(problem.members), dtype=np.int32)
            self.members, self.partitions = (
                np.arange(len(problem.members), dtype=np.int32),
                problem.subscribed,
            )
            self.member_starts = np.array([0, len(self.members)])
            self.partition_starts = np.array([0, len(self.partitions)])
            return
        self.member_component = class_component[problem.member_class]
        self.members = np.argsort(self.member_component, kind="stable").astype(np.int32)
        self.member_starts = starts_of(np.bincount(self.member_component, minlength=count))
        sizes = np.diff(problem.index.offsets)
        partition_component = np.repeat(topic_component, sizes)
        keys = partition_component.astype(np.int16) if count < np.iinfo(np.int16).max else partition_component
        subscribed = topic_component >= 0
        counts = np.bincount(topic_component[subscribed], weights=sizes[subscribed], minlength=count)
        ordered = np.argsort(keys, kind="stable").astype(np.int32)
        self.partition_starts = starts_of(counts.astype(np.int64))
        self.partitions = ordered[len(ordered) - int(self.partition_starts[-1]) :]

    def racks_matter(self) -> BoolArray:
        """bool[K]: whether any member of a component could own a partition across racks."""
        racks = self.problem.racks
        assert racks is not None
        has_rack = np.zeros((self.count, len(racks.names) + 1), dtype=np.bool_)
        has_rack[self.member_component, racks.member] = True
        has_set = np.zeros((self.count, len(racks.sets)), dtype=np.bool_)
        at = np.repeat(np.arange(self.count), np.diff(self.partition_starts))
        has_set[at, racks.partition_set[self.partitions]] = True
        return np.asarray(((has_set.astype(np.int64) @ racks.crossing) * has_rack).any(axis=1))

    def solve_simple(self, chosen: BoolArray, target: Int32Array) -> None:
        """Solve all components with equal subscriptions at once."""
        if not chosen.any():
            return
        partitions, members = self.partitions, self.members
        partition_counts, member_counts = np.diff(self.partition_starts), np.diff(self.member_starts)
        if not chosen.all():
            partitions = partitions[np.repeat(chosen, partition_counts)]
            members = members[np.repeat(chosen, member_counts)]
            partition_counts, member_counts = partition_counts[chosen], member_counts[chosen]
        owner = self._local_owner(partitions, members)
        solved = balance_alike(owner, starts_of(partition_counts), starts_of(member_counts))
        target[partitions] = members[solved]

    def solve_apart(self, component: int, target: Int32Array, racks: Racks | None) -> None:
        """Solve a component by min-cost flow, without racks if they make no difference (PITFALLS C-72)."""
        problem = self.problem
        partitions = _segment(self.partitions, self.partition_starts, component)
        members = _segment(self.members, self.member_starts, component)
        subscribes = problem.class_subscribes
        topic, member_class = problem.index.topic_of_every, problem.member_class
        if self.count > 1 or len(partitions) < len(topic):
            topics = np.flatnonzero(self.topic_component == component)
            classes = np.flatnonzero(self.class_component == component)
            subscribes = subscribes[np.ix_(classes, topics)]
            topic = np.searchsorted(topics, topic[partitions]).astype(np.int32)
            member_class = np.searchsorted(classes, member_class[members]).astype(np.int32)
        nowhere = np.zeros(len(partitions), dtype=np.int32)
        owner = self._local_owner(partitions, members)
        solved = balance_apart(
            Component(
                topic=topic,
                owner=np.full(len(partitions), NO_OWNER, dtype=np.int32) if owner is None else owner,
                rack_set=nowhere if racks is None else racks.partition_set[partitions],
                member_class=member_class,
                member_rack=_rack_columns(racks, members),
                subscribes=subscribes,
                crossing=np.zeros((1, 1), dtype=np.bool_) if racks is None else racks.crossing,
            )
        )
        target[partitions] = members[solved]

    def _local_owner(self, partitions: Int32Array, members: Int32Array) -> Int32Array | None:
        """Return the previous owners as positions in `members`, which are all possible owners."""
        if not len(self.problem.claim_partition):
            return None
        if self.count == 1:
            return self.problem.owner[partitions]
        place = np.full(len(self.problem.members) + 1, NO_OWNER, dtype=np.int32)
        place[members] = np.arange(len(members), dtype=np.int32)
        return place[self.problem.owner[partitions]]


def _rack_columns(racks: Racks | None, members: Int32Array) -> Int32Array:
    if racks is None:
        return np.zeros(len(members), dtype=np.int32)
    where = racks.member[members]
    return np.where(where < 0, len(racks.names), where).astype(np.int32)


def _segment(values: Int32Array, starts: IntArray, at: int) -> Int32Array:
    return values[starts[at] : starts[at + 1]]
