"""The array view of a group: the input of the built-in assignors.

Members are numbered in the order of `GroupSubscription.sorted_members`, partitions by the cluster's
`TopicIndex`. Members with equal subscriptions form a *class*; each class is stored once.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import chain, repeat
from operator import attrgetter
from statistics import fmean
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from coordinator_core.errors import InputError
from coordinator_core.model import (
    NO_OWNER,
    Cluster,
    GroupSubscription,
    Int32Array,
    Partitions,
    TabledTopics,
    TopicIndex,
    TopicInfo,
)
from coordinator_core.reading.checks import LARGEST

BoolArray = NDArray[np.bool_]
FloatArray = NDArray[np.float64]

LEAST_CAPACITY = 1e-50
"""No capacity is below it: the squares of loads relative to capacities are finite."""


@dataclass(frozen=True, eq=False)
class Racks:
    """The racks of members and replicas.

    ``member``        int32[M]: the rack of each member as a position in `names`, or -1 for none;
    ``partition_set`` int32[P]: the set of replica racks of each partition as a row of `sets`;
    ``sets``          bool[S, R]: row 0 is the empty set, used for partitions without racks;
    ``crossing``      bool[S, R + 1]: whether an owner in rack r has no replica in its rack. The last
                      column stands for members without a rack and is always false, as is the row of
                      partitions without racks.
    """

    names: tuple[str, ...]
    member: Int32Array
    partition_set: Int32Array
    sets: BoolArray

    @cached_property
    def crossing(self) -> BoolArray:
        matrix = np.zeros((len(self.sets), len(self.names) + 1), dtype=np.bool_)
        matrix[:, :-1] = ~self.sets & self.sets.any(axis=1, keepdims=True)
        return matrix


class Claimed(NamedTuple):
    """The claims of M members: int32[n] partitions and int32[n] members, and int64[M] generations."""

    partition: Int32Array
    member: Int32Array
    generation: NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Problem:
    """A group as arrays. M members, P partitions of the cluster, T topics, C classes, n claims.

    ``members``          M ids, sorted;
    ``topic_lists``      the different lists of topics of the subscriptions; equal ones that were decoded
                         together may recur;
    ``member_list``      int32[M]: the number of each member's list;
    ``member_class``     int32[M];
    ``class_subscribes`` bool[C, T]: whether the members of a class subscribe to a topic; topics that the
                         cluster does not describe are left out;
    ``owner``            int32[P], read-only: the previous owner of each partition, or -1. The claim of the
                         newest generation wins, two claims of that generation cancel each other
                         (PROTOCOL 10.3), and an owner that no longer subscribes to the topic does not count;
    ``claim_partition``  int32[n] and ``claim_member`` int32[n]: all claims, including those that do not
                         count;
    ``racks``            None if no member or no replica has a rack;
    ``weights``          float64[P] or None; 1.0 for topics without weights if others have them;
    ``capacity``         float64[M] or None; the mean for members without a capacity if others have one;
    ``claimed``          the claims of the members, or None if they are those in `group`.
    """

    cluster: Cluster
    group: GroupSubscription
    index: TopicIndex
    members: tuple[str, ...]
    topic_lists: tuple[tuple[str, ...], ...]
    member_list: Int32Array
    member_class: Int32Array
    class_subscribes: BoolArray
    racks: Racks | None
    weights: FloatArray | None
    capacity: FloatArray | None
    claimed: Claimed | None = None

    def with_claims(self, group: GroupSubscription, claimed: Claimed | None = None) -> "Problem":
        """Return the problem of the same members with other claims (`owned` and `generation`).

        Everything else of the subscriptions in `group` must be as in this problem. ``claimed``: the claims of
        the group, if they are already known.
        """
        return self if group is self.group else replace(self, group=group, claimed=claimed)

    @property
    def claim_partition(self) -> Int32Array:
        return self._claims.partition

    @property
    def claim_member(self) -> Int32Array:
        return self._claims.member

    @property
    def claim_generation(self) -> NDArray[np.int64]:
        """int64[M]: the generation of the claims of each member."""
        return self._claims.generation

    @cached_property
    def _claims(self) -> Claimed:
        if self.claimed is not None:
            return self.claimed
        subscriptions = self.group.in_order(self.members)
        claims = Partitions.claims(self.index, list(map(_OWNED, subscriptions)))
        return Claimed(*claims, np.fromiter(map(_GENERATION, subscriptions), np.int64, len(subscriptions)))

    @cached_property
    def owner(self) -> Int32Array:
        partition, member, generation = self._claims
        if not len(partition):
            return self.index.nobody
        owner = np.full(self.index.size, NO_OWNER, dtype=np.int32)
        owner[partition] = member
        overruled = owner[partition] != member
        if overruled.any():
            contested = np.zeros(self.index.size, dtype=np.bool_)
            contested[partition[overruled]] = True
            at = np.flatnonzero(contested[partition])
            _settle(owner, partition[at], member[at], generation[member[at]])
        if not self.alike:
            held = np.flatnonzero(owner != NO_OWNER).astype(np.int32)
            owner[held[~self.eligible(owner[held], held)]] = NO_OWNER
        owner.flags.writeable = False
        return owner

    @property
    def class_count(self) -> int:
        """Return the number of different subscriptions."""
        return len(self.class_subscribes)

    @cached_property
    def alike(self) -> bool:
        """Whether all members subscribe to every topic of the cluster."""
        return self.class_count == 1 and bool(self.class_subscribes.all())

    @cached_property
    def topic_subscribed(self) -> BoolArray:
        """bool[T]: whether at least one member subscribes to the topic."""
        return np.asarray(self.class_subscribes.any(axis=0))

    @cached_property
    def subscribed(self) -> Int32Array:
        """int32[<= P], ascending: the partitions of topics with a subscriber."""
        if self.topic_subscribed.all():
            return np.arange(self.index.size, dtype=np.int32)
        wanted = np.repeat(self.topic_subscribed, np.diff(self.index.offsets))
        return np.flatnonzero(wanted).astype(np.int32)

    @cached_property
    def topic_signature(self) -> tuple[Int32Array, list[Int32Array]]:
        """Return the sets of topics with the same subscribers.

        The first value is int32[T], the number of the topic's set, or -1 without subscribers. The second
        lists the members of each set as ascending int32 arrays.
        """
        if self.class_count == 1:
            everybody = [np.arange(len(self.members), dtype=np.int32)]
            alike = np.where(self.topic_subscribed, 0, NO_OWNER).astype(np.int32)
            return alike, everybody if self.topic_subscribed.any() else []
        signature = np.full(len(self.index.topics), NO_OWNER, dtype=np.int32)
        distinct, signature[self.topic_subscribed] = merged_rows(
            self.class_subscribes.T[self.topic_subscribed]
        )
        return signature, [np.flatnonzero(row[self.member_class]).astype(np.int32) for row in distinct]

    @cached_property
    def _class_rows(self) -> NDArray[np.intp]:
        """intp[M]: the start of the row of each member's class in the flat `class_subscribes`."""
        rows: NDArray[np.intp] = self.member_class.astype(np.intp)
        rows *= self.class_subscribes.shape[1]
        return rows

    def eligible(self, members: Int32Array, partitions: NDArray[np.integer]) -> BoolArray:
        """bool[n]: whether ``members[i]`` subscribes to the topic of ``partitions[i]``."""
        if self.alike:
            return np.ones(len(members), dtype=np.bool_)
        cell = self._class_rows.take(members)
        cell += self.index.topic_of_every.take(partitions)
        allowed: BoolArray = self.class_subscribes.ravel().take(cell)
        return allowed


_TOPICS, _OWNED, _GENERATION = attrgetter("topics"), attrgetter("owned"), attrgetter("generation")
_RACK, _CAPACITY = attrgetter("rack"), attrgetter("capacity")


def build_problem(cluster: Cluster, group: GroupSubscription) -> Problem:
    """Return the array view of a group on a cluster.

    Raises:
        InputError: if racks or weights do not match the partitions of a topic, or if a weight or capacity
            is not a valid amount. The error names the topic or member.
    """
    index = cluster.index
    members = group.sorted_members()
    subscriptions = group.in_order(members)
    topics = _different(list(map(_TOPICS, subscriptions)))
    member_class, class_subscribes = _classes(index, topics)
    return Problem(
        cluster=cluster,
        group=group,
        index=index,
        members=tuple(members),
        topic_lists=topics.lists,
        member_list=topics.member,
        member_class=member_class,
        class_subscribes=class_subscribes,
        racks=_racks(cluster, index, list(map(_RACK, subscriptions))),
        weights=_weights(cluster, index),
        capacity=_capacity(members, list(map(_CAPACITY, subscriptions))),
    )


class _Lists(NamedTuple):
    """The different lists of topics, and int32[M]: the number of the list of each member."""

    lists: tuple[tuple[str, ...], ...]
    member: Int32Array


def _different(topics: Sequence[tuple[str, ...]]) -> _Lists:
    """Merge the equal lists of topics of the members. Lists are compared by identity first."""
    identities = list(map(id, topics))
    lists = dict(zip(identities, topics, strict=True))
    row_of = _rows_of(lists)
    row_lists = dict(zip(row_of.values(), lists.values(), strict=True))
    member = np.zeros(len(topics), dtype=np.int32)
    if len(row_lists) > 1:
        member[:] = list(map(row_of.__getitem__, identities))
    return _Lists(tuple(row_lists.values()), member)


def _classes(index: TopicIndex, topics: _Lists) -> tuple[Int32Array, BoolArray]:
    """Group members by subscription."""
    subscribes = _subscribed(index, topics.lists)
    if len(topics.lists) == 1:
        return topics.member, subscribes
    distinct, merged = merged_rows(subscribes)
    return merged[topics.member], distinct


def _rows_of(lists: Mapping[int, tuple[str, ...]]) -> dict[int, int]:
    """Return the number of the row of each list, by identity: equal lists have the same one.

    A list is compared with the first one of the same length and the same first and last topic, and hashed
    only if they differ. Lists of a table are not compared by their names, since equal rows are merged later.
    """
    rows: dict[object, int] = {}
    first_like: dict[tuple[int, str, str], tuple[int, tuple[str, ...]]] = {}
    row_of: dict[int, int] = {}
    for identity, listed in lists.items():
        if type(listed) is TabledTopics or not listed:
            row_of[identity] = rows.setdefault(identity if listed else (), len(rows))
            continue
        names = tuple(listed)  # the same object, unless the caller has used a list
        like = len(names), names[0], names[-1]
        row, first = first_like.get(like, (-1, ()))
        if first != names:
            row = rows.setdefault(names, len(rows))
            first_like.setdefault(like, (row, names))
        row_of[identity] = row
    return row_of


def _subscribed(index: TopicIndex, lists: Sequence[tuple[str, ...]]) -> BoolArray:
    """bool[n, T]: which topics are in each list. Topics that the cluster does not describe are left out."""
    names = next((t.names for t in lists if type(t) is TabledTopics), None)
    if names is None:
        return _subscribed_by_name(index, lists)
    tabled = [t.row if type(t) is TabledTopics and t.names is names else None for t in lists]
    rows = np.concatenate([row for row in tabled if row is not None]).reshape(-1, len(names))
    others = [at for at, row in enumerate(tabled) if row is None]
    subscribes = np.empty((len(lists), len(index.topics)), dtype=np.bool_)
    subscribes[[at for at, row in enumerate(tabled) if row is not None]] = _columns(rows, names, index.topics)
    subscribes[others] = _subscribed_by_name(index, [lists[at] for at in others])
    return subscribes


def _columns(rows: BoolArray, names: tuple[str, ...], wanted: tuple[str, ...]) -> BoolArray:
    """Return the columns with the wanted names, false for those that there are not: bool[n, len(wanted)]."""
    if names == wanted:
        return rows
    place = {name: at for at, name in enumerate(names)}
    at = np.fromiter(map(place.get, wanted, repeat(len(names))), np.intp, len(wanted))
    columns: BoolArray = np.pad(rows, ((0, 0), (0, 1))).take(at, axis=1)
    return columns


def _subscribed_by_name(index: TopicIndex, lists: Sequence[tuple[str, ...]]) -> BoolArray:
    topics, counts = len(index.topics), list(map(len, lists))
    names = chain.from_iterable(lists)
    position = np.fromiter(map(index.topic_positions.get, names, repeat(-1)), np.int32, sum(counts))
    cell = np.repeat(np.arange(len(lists)) * topics, counts)
    cell += position
    # the additional last cell is that of topics that the cluster does not describe
    cell[position < 0] = -1
    cells = np.zeros(len(lists) * topics + 1, dtype=np.bool_)
    cells[cell] = True
    return cells[:-1].reshape(len(lists), topics)


def _settle(
    owner: Int32Array, partition: Int32Array, member: Int32Array, generation: NDArray[np.int64]
) -> None:
    """Give each contested partition to its newest claimant, or to none if two are equally new."""
    order = np.lexsort((member, -generation, partition))
    partition, member, generation = partition[order], member[order], generation[order]
    doubled = np.zeros(len(order), dtype=np.bool_)
    doubled[1:] = (partition[1:] == partition[:-1]) & (member[1:] == member[:-1])
    partition, member, generation = partition[~doubled], member[~doubled], generation[~doubled]
    first = np.flatnonzero(np.diff(partition, prepend=-1))
    owner[partition[first]] = member[first]
    second = first + 1
    inside = second < len(partition)
    first, second = first[inside], second[inside]
    tied = (partition[first] == partition[second]) & (generation[first] == generation[second])
    owner[partition[first[tied]]] = NO_OWNER


def _racks(cluster: Cluster, index: TopicIndex, racks: Sequence[str | None]) -> Racks | None:
    described = [t for t, info in cluster.topics.items() if info.racks is not None]
    for topic in described:
        _check_length(topic, "racks", cluster.topics[topic])
    named = {rack for rack in racks if rack} if racks.count(None) < len(racks) else set()
    if not named or not described:
        return None
    replicas: dict[tuple[str, ...], int] = {(): 0}
    partition_set = np.zeros(index.size, dtype=np.int32)
    for at, topic in enumerate(index.topics):
        per_partition = cluster.topics[topic].racks
        if per_partition is not None:
            found = [replicas.setdefault(tuple(listed), len(replicas)) for listed in per_partition]
            partition_set[index.offsets[at] : index.offsets[at + 1]] = found
    names = tuple(sorted(named.union(*replicas)))
    number = {name: r for r, name in enumerate(names)}
    sets = np.zeros((len(replicas), len(names)), dtype=np.bool_)
    for row, replica_racks in enumerate(replicas):
        sets[row, [number[name] for name in replica_racks]] = True
    if not sets.any():
        return None
    distinct, merged = merged_rows(sets)
    member = np.fromiter((number[r] if r else -1 for r in racks), dtype=np.int32, count=len(racks))
    return Racks(names, member, merged[partition_set], distinct)


def merged_rows(sets: BoolArray) -> tuple[BoolArray, Int32Array]:
    """Return the distinct rows in order of appearance, and the new number of each row (int32[rows])."""
    packed = np.ascontiguousarray(np.packbits(sets, axis=1))
    rows = packed.view(f"V{packed.shape[1]}").ravel().tolist() if packed.size else [b""] * len(sets)
    first = dict(zip(reversed(rows), reversed(range(len(rows))), strict=True))
    if len(first) == len(rows):
        return sets, np.arange(len(rows), dtype=np.int32)
    number = {row: at for at, row in enumerate(dict.fromkeys(rows))}
    numbers = np.fromiter(map(number.__getitem__, rows), dtype=np.int32, count=len(rows))
    return sets[list(map(first.__getitem__, number))], numbers


def _weights(cluster: Cluster, index: TopicIndex) -> FloatArray | None:
    if all(info.weights is None for info in cluster.topics.values()):
        return None
    weights = np.ones(index.size, dtype=np.float64)
    for at, topic in enumerate(index.topics):
        info = cluster.topics[topic]
        if info.weights is None:
            continue
        _check_length(topic, "weights", info)
        for number, weight in enumerate(info.weights):
            if not 0 <= weight < LARGEST:
                found = f"topics.{topic}.weights[{number}]", f"{weight}"
                raise InputError(*found, f"a number of 0 or more, below {LARGEST:g}")
        weights[index.offsets[at] : index.offsets[at + 1]] = info.weights
    return weights


def _check_length(topic: str, field: str, info: TopicInfo) -> None:
    given = getattr(info, field)
    if len(given) != info.partitions:
        raise InputError(
            f"topics.{topic}.{field}", f"{len(given)} entries", f"one per partition, {info.partitions}"
        )


def is_capacity(amount: float) -> bool:
    """Return whether a number can be the capacity of a member."""
    return LEAST_CAPACITY <= amount < LARGEST


def _capacity(members: Sequence[str], capacity: Sequence[float | None]) -> FloatArray | None:
    if capacity.count(None) == len(capacity):
        return None
    for member, amount in zip(members, capacity, strict=True):
        if amount is not None and not is_capacity(amount):
            expected = f"a number of {LEAST_CAPACITY:g} or more, below {LARGEST:g}"
            raise InputError(f"members.{member}.capacity", f"{amount}", expected)
    mean = fmean(amount for amount in capacity if amount is not None)
    return np.array([mean if amount is None else amount for amount in capacity], dtype=np.float64)
