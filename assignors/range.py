"""Range: the partitions of each topic in consecutive runs over its sorted members.

Equal to Apache Kafka's RangeAssignor, the order of each member's list included. With racks (since 3.5,
KIP-881) partitions first go to members in a rack of a replica, within each member's quota, and topics with
equal partition counts and subscribers stay co-partitioned.
"""

from collections.abc import Collection, Sequence
from itertools import chain

import numpy as np

from assignors.circles import TopicMembers, runs
from coordinator_core.assigning.assignor import Assignor, Capability
from coordinator_core.assigning.flow.dealing import IntArray
from coordinator_core.assigning.problem import BoolArray, Problem, Racks
from coordinator_core.java.hash_maps import hash_order, in_buckets, spread_hashes
from coordinator_core.model import NO_OWNER, GroupAssignment, Int32Array


class RangeAssignor(Assignor):
    """Kafka's default until 3.0, and the first of its defaults since."""

    name = "range"
    capabilities = (Capability.RACK_AWARE,)

    def solve(self, problem: Problem) -> GroupAssignment:
        """Return the assignment of a problem."""
        owner, by_racks = _owners(problem)
        order = None if by_racks else _listing_order(problem)
        return GroupAssignment.from_owners(problem.index, problem.members, owner, order=order)


def range_owners(problem: Problem) -> Int32Array:
    """int32[P]: the owner of each partition, -1 without subscribers."""
    return _owners(problem)[0]


def _owners(problem: Problem) -> tuple[Int32Array, bool]:
    """Return the owner of each partition, and whether they are matched by racks."""
    topic_members = TopicMembers(problem)
    racks = problem.racks
    owner = runs(problem, topic_members)
    aware = [] if racks is None else _topics_with_racks(problem, topic_members, racks)
    if not aware or racks is None:
        return owner, False
    for topics in _co_partitioned(problem, topic_members):
        if len(topics) > 1 or topics[0] in aware:
            _match_racks(problem, topic_members.of(topics[0]), racks, topics, owner)
    return owner, True


def _listing_order(problem: Problem) -> Int32Array | None:
    """Return the dense numbers topic by topic, in the order of Kafka's hash maps."""
    index = problem.index
    topics = [index.topics[t] for t in np.flatnonzero(problem.topic_subscribed).tolist()]
    if len(topics) <= 1:
        return None
    wanted = dict.fromkeys(topics)
    subscribed = list(dict.fromkeys(chain.from_iterable(_topic_lists(problem))))
    spread = dict(zip(subscribed, spread_hashes(subscribed), strict=True))
    inserted = {t: spread[t] for t in in_buckets(spread) if t in wanted}
    listed = [*in_buckets(inserted), *(t for t in index.topics if t not in inserted)]
    every: Int32Array = np.arange(index.size, dtype=np.int32)
    offsets, position = index.offsets.tolist(), index.topic_positions
    return np.concatenate([every[offsets[t] : offsets[t + 1]] for t in map(position.__getitem__, listed)])


def _topic_lists(problem: Problem) -> Collection[tuple[str, ...]]:
    """Return the different lists of topics, in the order in which Kafka's hash map yields the members."""
    lists = problem.topic_lists
    if len(lists) <= 1:
        return lists
    number = dict(zip(problem.members, problem.member_list.tolist(), strict=True))
    ordered = map(number.__getitem__, hash_order(problem.group))
    return [lists[n] for n in dict.fromkeys(ordered)]


def _topics_with_racks(problem: Problem, topic_members: TopicMembers, racks: Racks) -> frozenset[int]:
    """Return the topics for which racks matter by Kafka's rule (PITFALLS C-72)."""
    aware = []
    for t in np.flatnonzero(problem.topic_subscribed).tolist():
        members = racks.member[topic_members.of(t)]
        of_members = np.zeros(len(racks.names), dtype=np.bool_)
        of_members[members[members >= 0]] = True
        start, end = problem.index.offsets[t : t + 2]
        sets = racks.sets[np.unique(racks.partition_set[start:end])]
        replicas = sets.any(axis=0)
        if (of_members & replicas).any() and not (sets == replicas).all():
            aware.append(t)
    return frozenset(aware)


def _co_partitioned(problem: Problem, topic_members: TopicMembers) -> list[list[int]]:
    """Group topics with the same members and the same number of partitions."""
    groups: dict[tuple[int, int], list[int]] = {}
    counts = np.diff(problem.index.offsets).tolist()
    for t in np.flatnonzero(problem.topic_subscribed).tolist():
        if counts[t]:
            groups.setdefault((int(topic_members.signature[t]), counts[t]), []).append(t)
    return list(groups.values())


class _Quotas:
    """The numbers of partitions of a topic that its members may still get."""

    def __init__(self, partitions: int, members: int) -> None:
        self.quota, self.extra = divmod(partitions, members)
        self.taken = [0] * members

    def room(self, member: int) -> int:
        return max(0, self.quota + (self.extra > 0) - self.taken[member])

    def take(self, member: int, count: int) -> None:
        self.taken[member] += count
        if self.taken[member] > self.quota:
            self.extra -= 1


def _match_racks(
    problem: Problem, members: Int32Array, racks: Racks, topics: Sequence[int], owner: Int32Array
) -> None:
    """Assign co-partitioned topics: by matching racks first, then the rest in runs."""
    count = problem.index.partition_count(problem.index.topics[topics[0]])
    starts = problem.index.offsets[list(topics)]
    sets = racks.partition_set[starts[:, None] + np.arange(count)]  # int32[topics, count]
    near = np.concatenate((racks.sets, np.ones((len(racks.sets), 1), dtype=np.bool_)), axis=1)
    matches = near[sets][:, :, racks.member[members]].all(axis=0)  # bool[count, members]
    quotas = _Quotas(count, len(members))
    chosen = np.full(count, NO_OWNER, dtype=np.int64)
    if len(topics) > 1:
        _match_together(matches, quotas, chosen)
    else:
        _fill(matches, quotas, chosen)
    _fill(np.ones_like(matches), quotas, chosen)
    owner[starts[:, None] + np.arange(count)] = members[chosen]


def _match_together(
    matches: BoolArray,
    quotas: _Quotas,
    chosen: IntArray,
) -> None:
    """Assign each partition to the first member that matches all topics and has room."""
    room = np.array([quotas.room(m) > 0 for m in range(matches.shape[1])])
    for p in range(len(matches)):
        fits = np.flatnonzero(matches[p] & room)
        if len(fits):
            member = int(fits[0])
            chosen[p] = member
            quotas.take(member, 1)
            if quotas.extra > 0:
                room[member] = quotas.room(member) > 0
            else:
                room = np.array(quotas.taken) < quotas.quota


def _fill(
    matches: BoolArray,
    quotas: _Quotas,
    chosen: IntArray,
) -> None:
    """Give each member as many matching partitions as it has room for."""
    for member in range(matches.shape[1]):
        fitting = np.flatnonzero((chosen == NO_OWNER) & matches[:, member])[: quotas.room(member)]
        if len(fitting):
            chosen[fitting] = member
            quotas.take(member, len(fitting))
