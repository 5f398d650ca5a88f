"""The array view of a group: what the built-in assignors work on.

Members are numbered in the order of `GroupSubscription.sorted_members`, partitions by the cluster's
`TopicIndex`. Members that subscribe alike form a *class*; subscriptions are kept once a class.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import chain, repeat
from operator import attrgetter
from statistics import fmean

import numpy as np
from numpy.typing import NDArray

from coordinator_core.errors import InputError
from coordinator_core.model import (
    NO_OWNER,
    Cluster,
    GroupSubscription,
    Int32Array,
    Partitions,
    Subscription,
    TopicIndex,
    TopicInfo,
)

BoolArray = NDArray[np.bool_]
FloatArray = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Racks:
    """Where members and replicas are.

    ``member``        int32[M]: each member's rack, a position in `names`, or -1 for none;
    ``partition_set`` int32[P]: each partition's set of replica racks, a row of `sets`;
    ``sets``          bool[S, R]: row 0 is the empty set, of partitions whose racks nobody named;
    ``crossing``      bool[S, R + 1]: whether an owner in rack r has no replica in its rack. The last
                      column is that of members without a rack, for whom it is never so; nor is it for
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


@dataclass(frozen=True, eq=False)
class Problem:
    """A group as arrays. M members, P partitions of the cluster, T topics, C classes, n claims.

    ``members``          M ids, sorted;
    ``member_class``     int32[M];
    ``class_subscribes`` bool[C, T]: whether the members of a class subscribe to a topic; topics nobody
                         described are left out;
    ``owner``            int32[P]: the member that counts as the previous owner, or -1. The newest
                         generation that claims a partition wins, two claims of it cancel (PROTOCOL 10.3),
                         and an owner that no longer subscribes to the topic counts as none;
    ``claim_partition``  int32[n] and ``claim_member`` int32[n]: everything members say they own, those
                         claims that do not count included;
    ``racks``            None when no member or no replica has a rack;
    ``weights``          float64[P] or None; 1.0 where a topic has none while others do;
    ``capacity``         float64[M] or None; where a member names none while others do, their mean.
    """

    cluster: Cluster
    group: GroupSubscription
    index: TopicIndex
    members: tuple[str, ...]
    member_class: Int32Array
    class_subscribes: BoolArray
    owner: Int32Array
    claim_partition: Int32Array
    claim_member: Int32Array
    racks: Racks | None
    weights: FloatArray | None
    capacity: FloatArray | None

    @property
    def class_count(self) -> int:
        """How many different subscriptions there are."""
        return len(self.class_subscribes)

    @cached_property
    def alike(self) -> bool:
        """Whether all members subscribe to every topic of the cluster."""
        return self.class_count == 1 and bool(self.class_subscribes.all())

    @cached_property
    def class_offsets(self) -> Int32Array:
        """int32[C + 1]: where the topics of each class begin in `class_topics`."""
        offsets = np.zeros(self.class_count + 1, dtype=np.int32)
        np.cumsum(self.class_subscribes.sum(axis=1), out=offsets[1:])
        return offsets

    @cached_property
    def class_topics(self) -> Int32Array:
        """int32[class_offsets[-1]]: the topics of all classes one after the other, ascending in each."""
        return np.nonzero(self.class_subscribes)[1].astype(np.int32)

    @cached_property
    def topic_subscribed(self) -> BoolArray:
        """bool[T]: whether anybody subscribes to the topic."""
        return np.asarray(self.class_subscribes.any(axis=0))

    @cached_property
    def subscribed(self) -> Int32Array:
        """int32[<= P], ascending: the partitions of topics that somebody subscribes to."""
        if self.topic_subscribed.all():
            return np.arange(self.index.size, dtype=np.int32)
        wanted = np.repeat(self.topic_subscribed, np.diff(self.index.offsets))
        return np.flatnonzero(wanted).astype(np.int32)

    @cached_property
    def topic_signature(self) -> tuple[Int32Array, list[Int32Array]]:
        """Topics with the same subscribers: int32[T] number of that set, -1 none; and each set's members.

        The members of a set are ascending int32 arrays.
        """
        signature = np.full(len(self.index.topics), NO_OWNER, dtype=np.int32)
        subscribers: list[Int32Array] = []
        seen: dict[bytes, int] = {}
        columns = np.ascontiguousarray(self.class_subscribes.T)
        for t in np.flatnonzero(self.topic_subscribed).tolist():
            key = columns[t].tobytes()
            at = seen.setdefault(key, len(seen))
            if at == len(subscribers):
                subscribers.append(np.flatnonzero(columns[t][self.member_class]).astype(np.int32))
            signature[t] = at
        return signature, subscribers

    @cached_property
    def _class_rows(self) -> NDArray[np.intp]:
        """intp[M]: where the row of each member's class begins in the flat `class_subscribes`."""
        rows: NDArray[np.intp] = self.member_class.astype(np.intp)
        rows *= self.class_subscribes.shape[1]
        return rows

    def eligible(self, members: Int32Array, partitions: NDArray[np.integer]) -> BoolArray:
        """bool[n]: whether each member subscribes to the topic of the partition beside it."""
        if self.alike:
            return np.ones(len(members), dtype=np.bool_)
        cell = self._class_rows.take(members)
        cell += self.index.topic_of_every.take(partitions)
        allowed: BoolArray = self.class_subscribes.ravel().take(cell)
        return allowed


_TOPICS, _OWNED = attrgetter("topics"), attrgetter("owned")
_RACK, _CAPACITY = attrgetter("rack"), attrgetter("capacity")


def build_problem(cluster: Cluster, group: GroupSubscription) -> Problem:
    """The array view of a group on a cluster.

    Raises InputError, naming the topic or member, where racks or weights do not fit the partitions or
    weights and capacities are no amounts.
    """
    index = cluster.index
    members = group.sorted_members()
    subscriptions = group.in_order(members)
    topics, owned = list(map(_TOPICS, subscriptions)), list(map(_OWNED, subscriptions))
    member_class, class_subscribes = _classes(index, topics)
    claim_partition, claim_member = Partitions.claims(index, owned)
    bare = Problem(
        cluster=cluster,
        group=group,
        index=index,
        members=tuple(members),
        member_class=member_class,
        class_subscribes=class_subscribes,
        owner=np.full(index.size, NO_OWNER, dtype=np.int32) if len(claim_partition) else index.nobody,
        claim_partition=claim_partition,
        claim_member=claim_member,
        racks=_racks(cluster, index, list(map(_RACK, subscriptions))),
        weights=_weights(cluster, index),
        capacity=_capacity(members, list(map(_CAPACITY, subscriptions))),
    )
    if len(claim_partition):
        _resolve_claims(bare, subscriptions)
    return bare


def _classes(index: TopicIndex, topics: Sequence[tuple[str, ...]]) -> tuple[Int32Array, BoolArray]:
    """Members by subscription: equal ones share a class. Tuples are told apart by identity first."""
    identities = list(map(id, topics))
    lists = dict(zip(identities, topics, strict=True))
    by_value: dict[tuple[str, ...], int] = {}
    row_of = {identity: by_value.setdefault(listed, len(by_value)) for identity, listed in lists.items()}
    counts = np.fromiter(map(len, by_value), dtype=np.int64, count=len(by_value))
    positions = np.fromiter(
        map(index.topic_positions.get, chain.from_iterable(by_value), repeat(-1)),
        dtype=np.int32,
        count=int(counts.sum()),
    )
    rows = np.repeat(np.arange(len(by_value)), counts)
    # one column more than there are topics: position -1, of topics nobody described, falls into it
    subscribes = np.zeros((len(by_value), len(index.topics) + 1), dtype=np.bool_)
    subscribes[rows, positions] = True
    subscribes = subscribes[:, :-1]
    if len(by_value) == 1:
        return np.zeros(len(topics), dtype=np.int32), subscribes
    distinct, merged = _merged_rows(subscribes)
    member_row = np.fromiter(map(row_of.__getitem__, identities), dtype=np.int32, count=len(topics))
    return merged[member_row], distinct


def _resolve_claims(problem: Problem, subscriptions: Sequence[Subscription]) -> None:
    """Fill the owner array from the claims (PITFALLS C-65)."""
    owner, partition, member = problem.owner, problem.claim_partition, problem.claim_member
    owner[partition] = member
    overruled = owner[partition] != member
    if overruled.any():
        contested = np.zeros(problem.index.size, dtype=np.bool_)
        contested[partition[overruled]] = True
        at = np.flatnonzero(contested[partition])
        generations = np.fromiter((s.generation for s in subscriptions), np.int64, len(subscriptions))
        _settle(owner, partition[at], member[at], generations[member[at]])
    if not problem.alike:
        held = np.flatnonzero(owner != NO_OWNER).astype(np.int32)
        owner[held[~problem.eligible(owner[held], held)]] = NO_OWNER


def _settle(
    owner: Int32Array, partition: Int32Array, member: Int32Array, generation: NDArray[np.int64]
) -> None:
    """Give each contested partition to its newest claimant, or to none where two are equally new."""
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
        _same_length(topic, "racks", cluster.topics[topic])
    named = {rack for rack in racks if rack} if racks.count(None) < len(racks) else set()
    if not named or not described:
        return None
    replicas: dict[tuple[str, ...], int] = {(): 0}
    partition_set = np.zeros(index.size, dtype=np.int32)
    for at, topic in enumerate(index.topics):
        per_partition = cluster.topics[topic].racks
        if per_partition is not None:
            found = [replicas.setdefault(tuple(each), len(replicas)) for each in per_partition]
            partition_set[index.offsets[at] : index.offsets[at + 1]] = found
    names = tuple(sorted(named.union(*replicas)))
    number = {name: r for r, name in enumerate(names)}
    sets = np.zeros((len(replicas), len(names)), dtype=np.bool_)
    for row, each in enumerate(replicas):
        sets[row, [number[name] for name in each]] = True
    if not sets.any():
        return None
    distinct, merged = _merged_rows(sets)
    member = np.fromiter((number[r] if r else -1 for r in racks), dtype=np.int32, count=len(racks))
    return Racks(names, member, merged[partition_set], distinct)


def _merged_rows(sets: BoolArray) -> tuple[BoolArray, Int32Array]:
    """Equal rows once, in order of appearance, and the new number of each row (int32[rows])."""
    seen: dict[bytes, int] = {}
    packed = np.packbits(sets, axis=1)
    numbers = np.array([seen.setdefault(row.tobytes(), len(seen)) for row in packed], dtype=np.int32)
    if len(seen) == len(sets):
        return sets, numbers
    return sets[np.unique(numbers, return_index=True)[1]], numbers


def _weights(cluster: Cluster, index: TopicIndex) -> FloatArray | None:
    if all(info.weights is None for info in cluster.topics.values()):
        return None
    weights = np.ones(index.size, dtype=np.float64)
    for at, topic in enumerate(index.topics):
        info = cluster.topics[topic]
        if info.weights is None:
            continue
        _same_length(topic, "weights", info)
        for number, weight in enumerate(info.weights):
            if not (weight >= 0 and math.isfinite(weight)):
                raise InputError(f"topics.{topic}.weights[{number}]", f"{weight}", "a number of 0 or more")
        weights[index.offsets[at] : index.offsets[at + 1]] = info.weights
    return weights


def _same_length(topic: str, what: str, info: TopicInfo) -> None:
    given = getattr(info, what)
    if len(given) != info.partitions:
        raise InputError(
            f"topics.{topic}.{what}", f"{len(given)} entries", f"one per partition, {info.partitions}"
        )


def _capacity(members: Sequence[str], capacity: Sequence[float | None]) -> FloatArray | None:
    if capacity.count(None) == len(capacity):
        return None
    for member, each in zip(members, capacity, strict=True):
        if each is not None and not (each > 0 and math.isfinite(each)):
            raise InputError(f"members.{member}.capacity", f"{each}", "a finite number above 0")
    usual = fmean(each for each in capacity if each is not None)
    return np.array([usual if each is None else each for each in capacity], dtype=np.float64)
