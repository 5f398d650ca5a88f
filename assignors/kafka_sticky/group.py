"""A group as Kafka's sticky assignors see it: members by id, racks that count, and whose claim counts."""

from functools import cached_property
from operator import attrgetter
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from coordinator_core.assigning.problem import BoolArray, Problem
from coordinator_core.java import java_order
from coordinator_core.java.hash_maps import hash_order
from coordinator_core.model import NO_OWNER, GroupSubscription, Int32Array

_GENERATION = attrgetter("generation")


class Holders(NamedTuple):
    """int32[P]: the member whose claim counts, -1 for none; and the partitions with cancelled claims."""

    holder: Int32Array
    cancelled: Int32Array


class RacksInUse(NamedTuple):
    """The racks of a group in which they matter to Kafka. R racks, S sets of racks.

    ``member``        int32[M]: the rack of each member, -1 for none;
    ``partition_set`` int32[P];
    ``sets``          bool[S, R];
    ``near``          bool[S, R + 1]: `sets`, and true for members without a rack.
    """

    member: Int32Array
    partition_set: Int32Array
    sets: BoolArray
    near: BoolArray


class Group:
    """A problem with its M members numbered in Java's order of their ids, static members too.

    ``ids`` in that order; ``by_id`` int32[M]: the position of each in ``problem.members``. All other arrays
    have the numbers by id: ``claim_member`` int32[n] beside ``claim_partition`` int32[n], without claims on
    topics that nobody subscribes to; ``generation`` int64[M] of the claims. ``sent``: the group as its
    members sent it, if the claims of the problem are from user data.
    """

    def __init__(self, problem: Problem, sent: GroupSubscription | None) -> None:
        self.problem, self.size = problem, len(problem.members)
        self.ids = tuple(java_order(problem.members))
        self._in_order = self.ids == problem.members
        self.by_id = np.arange(self.size, dtype=np.int32)
        if not self._in_order:
            position = {member: at for at, member in enumerate(problem.members)}
            self.by_id[:] = list(map(position.__getitem__, self.ids))
        self.generation = problem.claim_generation[self.by_id]
        self._sent = sent
        partition, member = problem.claim_partition, problem.claim_member
        if not problem.topic_subscribed.all():
            wanted = problem.topic_subscribed[problem.index.topic_of_every[partition]]
            partition, member = partition[wanted], member[wanted]
        self.claim_partition = partition
        self.claim_member: Int32Array = (
            member if self._in_order else np.argsort(self.by_id).astype(np.int32)[member]
        )

    def members(self, owner: Int32Array) -> Int32Array:
        """int32[P]: owners by id as positions in the members of the problem. -1 stays."""
        if self._in_order:
            return owner
        return np.append(self.by_id, np.int32(NO_OWNER))[owner]

    @cached_property
    def iteration(self) -> Int32Array:
        """int32[M]: the members in the order in which Java's HashMap yields them."""
        number = {member: at for at, member in enumerate(self.ids)}
        names = hash_order(self._sent or self.problem.group)
        return np.fromiter(map(number.__getitem__, names), np.int32, self.size)

    @cached_property
    def subscribes_alike(self) -> bool:
        """Whether Kafka takes all subscriptions as equal.

        It compares the names in the lists, those of unknown topics too, with the first list that is not
        empty. Members with empty lists that its hash map yields before are not compared.
        """
        lists = self.problem.topic_lists
        first = next((names for names in lists if names), ())
        if len(lists) == 1 or all(names == first for names in lists):
            return len(set(first)) == len(first) or self.size == 1
        rows = self.problem.member_list[self.by_id[self.iteration]].tolist()
        begin = next((at for at, row in enumerate(rows) if lists[row]), len(rows))
        known = set(lists[rows[begin]]) if begin < len(rows) else set()
        others = dict.fromkeys(rows[begin + 1 :])
        return all(len(lists[row]) == len(known) and known.issuperset(lists[row]) for row in others)

    @cached_property
    def holders(self) -> Holders:
        """Whose claim counts. A claim is compared with the one that counted before it, in hash order.

        The newer one wins, equal generations cancel each other. Kafka takes the generation of the claim that
        it looks at from the user data, and that of the other one from the subscription.
        """
        partition, member = self.claim_partition, self.claim_member
        nothing = partition[:0]
        if not len(partition):
            return Holders(self.problem.index.nobody, nothing)
        holder = np.full(self.problem.index.size, NO_OWNER, dtype=np.int32)
        holder[partition] = member
        overruled = holder[partition] != member
        if not overruled.any():
            return Holders(holder, nothing)
        contested = np.zeros(self.problem.index.size, dtype=np.bool_)
        contested[partition[overruled]] = True
        at = np.flatnonzero(contested[partition])
        place = np.empty(self.size, dtype=np.int32)
        place[self.iteration] = np.arange(self.size, dtype=np.int32)
        at = at[np.lexsort((place[member[at]], partition[at]))]
        cancelled = self._settle(holder, partition[at].tolist(), member[at].tolist())
        return Holders(holder, np.array(cancelled, dtype=np.int32))

    def _settle(self, holder: Int32Array, partitions: list[int], members: list[int]) -> list[int]:
        """Settle contested partitions, sorted, each with its claimants in hash order."""
        generation = listed = self.generation.tolist()
        if self._sent is not None:
            listed = list(map(_GENERATION, self._sent.in_order(self.ids)))
        cancelled: dict[int, None] = {}
        partition, last = NO_OWNER, NO_OWNER
        for p, member in zip(partitions, members, strict=True):
            if p != partition:
                partition, last = p, member
                holder[p] = member
            elif generation[member] == listed[last]:
                cancelled[p] = None
                holder[p], last = NO_OWNER, member
            elif generation[member] > listed[last]:
                holder[p], last = member, member
        return list(cancelled)

    @cached_property
    def racks(self) -> RacksInUse | None:
        """The racks, if Kafka uses them: members and replicas share one, and not every partition has all."""
        racks = self.problem.racks
        if racks is None:
            return None
        used = racks.sets[np.unique(racks.partition_set[self.problem.subscribed])]
        replicas = used.any(axis=0)
        of_members = np.zeros(len(racks.names), dtype=np.bool_)
        of_members[racks.member[racks.member >= 0]] = True
        if not (of_members & replicas).any() or (used == replicas).all():
            return None
        near = np.concatenate((racks.sets, np.ones((len(racks.sets), 1), dtype=np.bool_)), axis=1)
        return RacksInUse(racks.member[self.by_id], racks.partition_set, racks.sets, near)

    def is_far(self, owner: Int32Array, held: NDArray[np.integer]) -> BoolArray:
        """bool[n]: whether the owners of partitions have a rack in which there is no replica."""
        racks = self.racks
        if racks is None:
            return np.zeros(len(held), dtype=np.bool_)
        far: BoolArray = ~racks.near[racks.partition_set[held], racks.member[owner[held]]]
        return far
