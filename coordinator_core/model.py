"""Topics, partitions, subscriptions and assignments.

A `TopicIndex` gives each partition a dense number: topic offset + partition number. `Partitions` and
`GroupAssignment` can be backed by arrays of such numbers, so that a million partitions are not a million
Python objects. Both behave like plain collections.
"""

from collections.abc import Callable, ItemsView, Iterable, Iterator, Mapping, Sequence, ValuesView
from collections.abc import Set as AbstractSet
from enum import Enum
from functools import cached_property, partial
from itertools import accumulate, chain, pairwise, repeat
from operator import attrgetter, methodcaller
from typing import Any, NamedTuple
from uuid import UUID

import msgspec
import numpy as np
from numpy.typing import NDArray

from coordinator_core.errors import InputError
from coordinator_core.java import java_key, java_order

Int32Array = NDArray[np.int32]

NO_OWNER = -1
NO_GENERATION = -1
MOST_PARTITIONS = 2**31 - 1


class TopicPartition(NamedTuple):
    """One partition of one topic; sorts by topic, then number, and equals the plain pair."""

    topic: str
    partition: int


_PARTITION = partial(tuple.__new__, TopicPartition)
"""Makes a `TopicPartition` of a pair without a call of a Python function."""


class RebalanceProtocol(Enum):
    """How members revoke partitions (KIP-429): all before they join, or those that move, afterwards."""

    EAGER = "eager"
    COOPERATIVE = "cooperative"


class TopicIndex:
    """A dense numbering of partitions. Topics are in Java's order.

    ``topics``   tuple of T names;
    ``offsets``  int32[T + 1]; the partitions of topic t are numbered offsets[t] .. offsets[t + 1] - 1;
    ``counts``   the number of partitions of each topic;
    ``topic_positions`` the position of each topic in `topics`.
    """

    def __init__(self, partition_counts: Mapping[str, int]) -> None:
        self.topics = tuple(java_order(partition_counts))
        counts = [partition_counts[t] for t in self.topics]
        self.counts: Mapping[str, int] = dict(zip(self.topics, counts, strict=True))
        if counts and min(counts) < 0:
            worst = self.topics[counts.index(min(counts))]
            raise InputError(f"topics.{worst}.partitions", f"{min(counts)}", "0 or more")
        self.size = sum(counts)
        if self.size > MOST_PARTITIONS:
            raise InputError("topics", f"{self.size:,} partitions in all", f"at most {MOST_PARTITIONS:,}")
        self.offsets: Int32Array = np.array([*accumulate(counts, initial=0)], dtype=np.int32)
        self.offsets.flags.writeable = False
        self.topic_positions: Mapping[str, int] = {t: i for i, t in enumerate(self.topics)}
        self._remapped: tuple[TopicIndex, Int32Array] | None = None

    def __len__(self) -> int:
        return self.size

    def position(self, topic: str) -> int | None:
        """Return the position of a topic in `topics`, or None."""
        return self.topic_positions.get(topic)

    def partition_count(self, topic: str) -> int:
        """Return the number of partitions of a topic; 0 if the topic is unknown."""
        at = self.topic_positions.get(topic)
        return 0 if at is None else int(self.offsets[at + 1] - self.offsets[at])

    def number(self, topic: str, partition: int) -> int | None:
        """Return the dense number of a partition, or None if it does not exist."""
        at = self.topic_positions.get(topic)
        if at is None or not 0 <= partition < self.offsets[at + 1] - self.offsets[at]:
            return None
        return int(self.offsets[at]) + partition

    def topic_of(self, dense: Int32Array) -> NDArray[np.intp]:
        """Return the position of the topic of each dense number (same shape)."""
        return np.searchsorted(self.offsets, dense, side="right") - 1

    def partitions(self, dense: Int32Array) -> Iterator[TopicPartition]:
        """Return an iterator over the partitions of dense numbers, in their order."""
        at = self.topic_of(dense)
        numbers = dense - self.offsets[at]
        return map(_PARTITION, zip(map(self.topics.__getitem__, at.tolist()), numbers.tolist(), strict=True))

    @cached_property
    def topic_of_every(self) -> Int32Array:
        """int32[size]: the position of the topic of every dense number. Read-only."""
        positions = np.arange(len(self.topics), dtype=np.int32)
        topics = np.repeat(positions, np.diff(self.offsets))
        topics.flags.writeable = False
        return topics

    @cached_property
    def nobody(self) -> Int32Array:
        """int32[size], all -1: the owners of a group that owns nothing. Read-only."""
        nobody = np.full(self.size, NO_OWNER, dtype=np.int32)
        nobody.flags.writeable = False
        return nobody

    def same_numbering(self, other: "TopicIndex") -> bool:
        """Whether every dense number stands for the same partition in both."""
        return other is self or self.counts == other.counts

    def renumber(self, other: "TopicIndex", dense: Int32Array) -> Int32Array:
        """Return numbers of `other` as numbers of this index, without partitions that this one lacks."""
        if self.same_numbering(other):
            return dense
        renumbered: Int32Array = self.table_from(other)[dense]
        known: Int32Array = renumbered[renumbered != NO_OWNER]
        return known

    def table_from(self, other: "TopicIndex") -> Int32Array:
        """int32[other.size]: the number in this index of each partition of `other`, or -1. Cached."""
        if self._remapped is not None and self._remapped[0] is other:
            return self._remapped[1]
        here = np.fromiter(
            map(self.topic_positions.get, other.topics, repeat(-1)), np.int64, len(other.topics)
        )
        sizes = np.append(np.diff(self.offsets), 0)[here]  # 0 for position -1, of topics that it lacks
        shift = self.offsets[here] - other.offsets[:-1]
        end = np.repeat(other.offsets[:-1] + sizes, np.diff(other.offsets))
        table = np.arange(other.size, dtype=np.int32)
        known = table < end
        table += np.repeat(shift, np.diff(other.offsets))
        table[~known] = NO_OWNER
        self._remapped = (other, table)
        return table


class Partitions(AbstractSet[TopicPartition]):
    """An immutable, ordered set of partitions, stored as arrays.

    The arrays are numbers per topic (the form in messages) or dense numbers of an index. The set yields
    `TopicPartition`s in the order of its creation. Equality and ``- & | <=`` are those of sets.
    """

    __slots__ = ("_by_topic", "_dense", "_index", "_members")

    def __init__(self, by_topic: Mapping[str, Sequence[int] | Int32Array] | None = None) -> None:
        self._by_topic: dict[str, Int32Array] | None = {
            topic: np.asarray(numbers, dtype=np.int32) for topic, numbers in (by_topic or {}).items()
        }
        self._index: TopicIndex | None = None
        self._dense: Int32Array | None = None
        self._members: frozenset[TopicPartition] | None = None

    @classmethod
    def dense(cls, index: TopicIndex, numbers: Int32Array) -> "Partitions":
        """Return the set of dense numbers of an index (int32[n], without duplicates; not copied)."""
        made = cls.__new__(cls)
        made._by_topic, made._index, made._dense, made._members = None, index, numbers, None
        return made

    @classmethod
    def of(cls, pairs: Iterable[tuple[str, int]]) -> "Partitions":
        """Return the set of (topic, partition) pairs; topics in order of first appearance."""
        grouped: dict[str, dict[int, None]] = {}
        for topic, number in pairs:
            grouped.setdefault(topic, {})[number] = None
        return cls({topic: list(numbers) for topic, numbers in grouped.items()})

    @classmethod
    def _from_iterable(cls, it: Iterable[Any]) -> Any:
        return cls.of(it)

    def by_topic(self) -> Mapping[str, Int32Array]:
        """Return the int32 partition numbers of each topic, in order of appearance. Read-only."""
        if self._by_topic is None:
            self._by_topic = self._grouped()
        return self._by_topic

    def _grouped(self) -> dict[str, Int32Array]:
        assert self._index is not None
        assert self._dense is not None
        if not len(self._dense):
            return {}
        at = self._index.topic_of(self._dense)
        numbers = self._dense - self._index.offsets[at]
        ends = [*(np.flatnonzero(at[1:] != at[:-1]) + 1).tolist(), len(at)]
        pieces: dict[str, list[Int32Array]] = {}
        for begin, end in pairwise([0, *ends]):
            pieces.setdefault(self._index.topics[at[begin]], []).append(numbers[begin:end])
        return {t: p[0] if len(p) == 1 else np.concatenate(p) for t, p in pieces.items()}

    def dense_in(self, index: TopicIndex) -> Int32Array:
        """int32[<= n]: the numbers in an index, without partitions that it does not have."""
        if self._index is not None and self._dense is not None:
            return index.renumber(self._index, self._dense)
        pieces = []
        for topic, numbers in self.by_topic().items():
            at = index.position(topic)
            if at is None:
                continue
            start, end = int(index.offsets[at]), int(index.offsets[at + 1])
            known = numbers[(numbers >= 0) & (numbers < end - start)]
            pieces.append(known + np.int32(start))
        return np.concatenate(pieces) if pieces else np.zeros(0, dtype=np.int32)

    @staticmethod
    def claims(index: TopicIndex, owned: Sequence["Partitions"]) -> tuple[Int32Array, Int32Array]:
        """Return the claimed dense numbers, int32[n], and the position of each claimant in `owned`, int32[n].

        Partitions that the index does not have are left out. The claims have no order. Sets that share an
        index, as those of one assignment do, are renumbered together.
        """
        indexes = list(map(_INDEX, owned))
        shared = next((each for each in indexes if each is not None), None)
        if shared is None:
            return _claims_by_topic(index, owned)
        pieces = list(map(_DENSE, owned))
        others = NOTHING, NOTHING
        if indexes.count(shared) < len(indexes):
            together = [each is shared for each in indexes]
            pieces = [p if own else NOTHING for p, own in zip(pieces, together, strict=True)]
            apart = [NO_PARTITIONS if own else o for o, own in zip(owned, together, strict=True)]
            others = _claims_by_topic(index, apart)
        numbers, holders = _gathered(pieces)
        if not index.same_numbering(shared):
            numbers = index.table_from(shared)[numbers]
            known = numbers != NO_OWNER
            numbers, holders = numbers[known], holders[known]
        if not len(others[0]):
            return numbers, holders
        return np.concatenate((numbers, others[0])), np.concatenate((holders, others[1]))

    def __len__(self) -> int:
        if self._dense is not None:
            return len(self._dense)
        return sum(map(len, self.by_topic().values()))

    def __iter__(self) -> Iterator[TopicPartition]:
        if self._index is not None and self._dense is not None:
            return self._index.partitions(self._dense)
        by_topic = self.by_topic().items()
        pairs = chain.from_iterable(zip(repeat(topic), numbers.tolist()) for topic, numbers in by_topic)
        return map(_PARTITION, pairs)

    def __contains__(self, item: object) -> bool:
        if self._members is None:
            self._members = frozenset(self)
        return item in self._members

    def __hash__(self) -> int:
        return self._hash()

    def __repr__(self) -> str:
        listed = ", ".join(f"{t}:{','.join(map(str, n.tolist()))}" for t, n in self.by_topic().items())
        return f"Partitions({listed})"


_INDEX, _DENSE = attrgetter("_index"), attrgetter("_dense")
_VALUES = methodcaller("values")
NO_PARTITIONS = Partitions()
NOTHING: Int32Array = np.zeros(0, dtype=np.int32)


def _claims_by_topic(index: TopicIndex, owned: Sequence[Partitions]) -> tuple[Int32Array, Int32Array]:
    """Return the claims of sets with numbers per topic, by one concatenation."""
    tables = [partitions.by_topic() for partitions in owned]
    topics = list(chain.from_iterable(tables))
    if not topics:
        return NOTHING, NOTHING
    pieces = list(chain.from_iterable(map(_VALUES, tables)))
    positions = map(index.topic_positions.get, topics, repeat(NO_OWNER))
    at = np.fromiter(positions, dtype=np.int32, count=len(topics))
    start, end = index.offsets[at], index.offsets[at + 1]  # no number is below the end of an unknown topic
    holder = np.repeat(np.arange(len(tables), dtype=np.int32), list(map(len, tables)))
    counts = np.fromiter(map(len, pieces), dtype=np.int64, count=len(pieces))
    numbers, sizes = np.concatenate(pieces), np.repeat(end - start, counts)
    known = (numbers >= 0) & (numbers < sizes)
    return (numbers + np.repeat(start, counts))[known], np.repeat(holder, counts)[known]


def _gathered(pieces: Sequence[Int32Array]) -> tuple[Int32Array, Int32Array]:
    if not pieces:
        return NOTHING, NOTHING
    counts = np.fromiter(map(len, pieces), dtype=np.int64, count=len(pieces))
    return np.concatenate(pieces), np.repeat(np.arange(len(pieces), dtype=np.int32), counts)


class TopicInfo(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A topic: its partitions, and for each one the racks of the replicas and the weight (records/s)."""

    partitions: int
    racks: tuple[tuple[str, ...], ...] | None = None
    weights: tuple[float, ...] | None = None


_NUMBERED = 0x1000 << 64


def made_up_ids(names: Iterable[str]) -> dict[str, UUID]:
    """Return ids for topics: Kafka's ``new Uuid(0x1000, k)``, k from 1 in the order of the sorted names."""
    return {name: UUID(int=_NUMBERED + at) for at, name in enumerate(java_order(names), start=1)}


class Cluster:
    """The topics of a cluster. Immutable.

    ``ids`` are the ids of topics, which decide in what order Kafka's coordinator treats them. Those of the
    others are made up.
    """

    def __init__(self, topics: Mapping[str, TopicInfo | int], ids: Mapping[str, UUID] | None = None) -> None:
        self.topics: Mapping[str, TopicInfo] = {
            name: info if isinstance(info, TopicInfo) else TopicInfo(info) for name, info in topics.items()
        }
        self._given_ids = dict(ids or {})

    @cached_property
    def ids(self) -> Mapping[str, UUID]:
        """Return the id of each topic."""
        return {**made_up_ids(self.topics), **self._given_ids}

    @cached_property
    def index(self) -> TopicIndex:
        """Return the dense numbering of the partitions of the cluster."""
        return TopicIndex({name: info.partitions for name, info in self.topics.items()})

    def partition_count(self, topic: str) -> int:
        """Return the number of partitions of a topic; 0 if the cluster does not describe it."""
        info = self.topics.get(topic)
        return 0 if info is None else info.partitions


class TabledTopics(tuple[str, ...]):
    """A list of topics that is also a row of a table: ``row`` bool[N] says which of N `names` it has.

    The lists of a group share `names`, which are in Java's order, so that names are looked up once for all.
    """

    names: tuple[str, ...]
    row: NDArray[np.bool_]

    @classmethod
    def of(cls, names: tuple[str, ...], row: NDArray[np.bool_], listed: Sequence[str]) -> "TabledTopics":
        """Return the list of the names in this row, which are given as well, in their order."""
        made = cls(listed)
        made.names, made.row = names, row
        return made


class Subscription(msgspec.Struct, frozen=True, eq=False):
    """The subscription of a member that joins (ConsumerProtocolSubscription v3).

    ``generation`` is that of the assignment in ``owned``, -1 for none. ``capacity`` has the unit of the
    weights of topics.
    """

    topics: tuple[str, ...]
    owned: Partitions = NO_PARTITIONS
    generation: int = NO_GENERATION
    rack: str | None = None
    instance_id: str | None = None
    user_data: bytes | None = None
    capacity: float | None = None


_INSTANCE_ID = attrgetter("instance_id")


class Handover(NamedTuple):
    """What a coordinator of Kafka says about a group that it hands to an assignor.

    ``alike``: whether it takes all members to subscribe alike. They may list topics that do not exist, and
    two expressions may match the same topics. ``keeps_extras``: whether a member keeps a partition beyond the
    mean, as since Kafka 4.1.
    """

    alike: bool
    keeps_extras: bool = True


class GroupSubscription(Mapping[str, Subscription]):
    """Member id -> subscription. Immutable, in the order of its creation.

    ``handover``: None, unless a coordinator made the group. Its members are in Kafka's order then.
    """

    _read: Callable[[], dict[str, Subscription]]
    handover: Handover | None = None

    def __init__(self, members: Mapping[str, Subscription], *, handover: Handover | None = None) -> None:
        self._members = dict(members)
        self.handover = handover

    @classmethod
    def later(cls, read: Callable[[], dict[str, Subscription]]) -> "GroupSubscription":
        """Return a group whose members are read when they are first used."""
        made = cls.__new__(cls)
        made._read = read
        return made

    @cached_property
    def _members(self) -> dict[str, Subscription]:
        return self._read()

    def __getitem__(self, member_id: str) -> Subscription:
        return self._members[member_id]

    def __iter__(self) -> Iterator[str]:
        return iter(self._members)

    def __len__(self) -> int:
        return len(self._members)

    def values(self) -> ValuesView[Subscription]:
        """Return the subscriptions in order."""
        return self._members.values()

    def items(self) -> ItemsView[str, Subscription]:
        """Return the members and subscriptions in order."""
        return self._members.items()

    def sorted_members(self) -> list[str]:
        """Return static members by instance id, then the others by member id (PITFALLS C-66).

        Members with the same instance id are in the order of their member ids.
        """
        if not any(map(_INSTANCE_ID, self._members.values())):
            return java_order(self._members)
        instance = {m: s.instance_id for m, s in self._members.items() if s.instance_id is not None}
        static = sorted(instance, key=lambda m: (java_key(instance[m]), java_key(m)))
        return static + java_order(m for m in self._members if m not in instance)

    def in_order(self, members: Iterable[str]) -> list[Subscription]:
        """Return the subscriptions of these members, in their order."""
        return list(map(self._members.__getitem__, members))

    def subscribers(self, topic: str) -> list[str]:
        """Return the subscribers of a topic, in the order of `sorted_members`."""
        return [m for m in self.sorted_members() if topic in self._members[m].topics]


class GroupAssignment(Mapping[str, Partitions]):
    """Member id -> partitions, with an entry for every member. Immutable.

    It is backed by a mapping or by an owner array (int32[index.size], -1 none) over `members`. The partitions
    of members are read from the array when they are first used. ``report`` has plain values of the assignor
    by name.
    """

    def __init__(
        self, assigned: Mapping[str, Partitions], *, user_data: Mapping[str, bytes] | None = None
    ) -> None:
        self._assigned: dict[str, Partitions] | None = dict(assigned)
        self._members: tuple[str, ...] = tuple(assigned)
        self.user_data: Mapping[str, bytes] = user_data or {}
        self.report: Mapping[str, Any] = {}
        self._index: TopicIndex | None = None
        self._owner: Int32Array | None = None
        self._order: Int32Array | None = None
        self._listing: tuple[Int32Array, NDArray[np.int64]] | None = None

    @classmethod
    def from_owners(
        cls,
        index: TopicIndex,
        members: Sequence[str],
        owner: Int32Array,
        *,
        order: Int32Array | None = None,
        listing: tuple[Int32Array, NDArray[np.int64]] | None = None,
        user_data: Mapping[str, bytes] | None = None,
        report: Mapping[str, Any] | None = None,
    ) -> "GroupAssignment":
        """Return the assignment of an owner array: owner[p] is a position in `members`, or -1.

        ``order``: int32 permutation of the dense numbers, the order in which a member's partitions are
        listed; ascending by default. ``listing``: the lists of both, if they are already known: the dense
        numbers of all members one after the other (int32[n]) and the start of each member (int64[M + 1]).
        """
        made = cls.__new__(cls)
        made._assigned, made._members, made.user_data = None, tuple(members), user_data or {}
        made._index, made._owner, made._order, made._listing = index, owner, order, listing
        made.report = report or {}
        return made

    def owner_array(self, index: TopicIndex, members: Sequence[str]) -> Int32Array | None:
        """Return the owner array of the assignment, if it has one over the same index and members."""
        same = (
            self._owner is not None
            and self._index is not None
            and index.same_numbering(self._index)
            and self._members == tuple(members)
        )
        return self._owner if same else None

    def owners(self, index: TopicIndex, members: Sequence[str]) -> Int32Array:
        """int32[index.size]: position in `members` of each partition's owner, -1 for none."""
        kept = self.owner_array(index, members)
        if kept is not None:
            return kept
        owner = np.full(index.size, NO_OWNER, dtype=np.int32)
        for m, member in enumerate(members):
            if member in self:
                owner[self[member].dense_in(index)] = m
        return owner

    def listing(self) -> tuple[TopicIndex, Int32Array, NDArray[np.int64]] | None:
        """Return the index of an owner array and its `listing` (see `from_owners`); None without one."""
        if self._index is None:
            return None
        if self._listing is None:
            self._listing = self._listed()
        return self._index, *self._listing

    def lists(self) -> dict[str, list[TopicPartition]]:
        """Return the partitions of each member as a list, in the order of its `Partitions`."""
        listing = self.listing()
        if listing is None:
            return {member: list(partitions) for member, partitions in self._read().items()}
        index, listed, starts = listing
        at, bounds = index.topic_of_every[listed], starts.tolist()
        topics = map(index.topics.__getitem__, at.tolist())
        pairs = list(map(_PARTITION, zip(topics, (listed - index.offsets[at]).tolist(), strict=True)))
        return dict(zip(self._members, map(pairs.__getitem__, map(slice, bounds, bounds[1:])), strict=False))

    def numbers(self) -> tuple[TopicIndex, Mapping[str, Sequence[int]]] | None:
        """Return the index of an owner array and the dense numbers of each member; None without one."""
        if self._index is None or self._owner is None:
            return None
        if self._listing is not None:
            listed, bounds = (values.tolist() for values in self._listing)
            pieces = map(listed.__getitem__, map(slice, bounds, bounds[1:]))
            return self._index, dict(zip(self._members, pieces, strict=True))
        owner = self._owner.tolist()
        order = range(len(owner)) if self._order is None else self._order.tolist()
        lists: list[list[int]] = [[] for _ in range(len(self._members) + 1)]  # the last is that of NO_OWNER
        for number in order:
            lists[owner[number]].append(number)
        return self._index, dict(zip(self._members, lists, strict=False))

    def _read(self) -> dict[str, Partitions]:
        if self._assigned is None:
            listing = self.listing()
            assert listing is not None
            index, listed, starts = listing
            bounds = starts.tolist()
            pieces = map(listed.__getitem__, map(slice, bounds, bounds[1:]))
            of_index = partial(Partitions.dense, index)
            self._assigned = dict(zip(self._members, map(of_index, pieces), strict=False))
        return self._assigned

    def _listed(self) -> tuple[Int32Array, NDArray[np.int64]]:
        assert self._owner is not None
        owner = self._owner if self._order is None else self._owner[self._order]
        count = len(self._members)
        keys = owner.astype(np.int16) if count <= np.iinfo(np.int16).max else owner
        listed = np.argsort(keys, kind="stable").astype(np.int32)
        if self._order is not None:
            listed = self._order[listed]
        return listed, np.cumsum(np.bincount(owner + 1, minlength=count + 1))

    def __getitem__(self, member_id: str) -> Partitions:
        return self._read()[member_id]

    def __iter__(self) -> Iterator[str]:
        return iter(self._members)

    def __len__(self) -> int:
        return len(self._members)

    def __repr__(self) -> str:
        return f"GroupAssignment({self._read()!r})"
