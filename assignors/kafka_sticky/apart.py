"""Members with different subscriptions: owners are kept, free partitions go to the member with the fewest.

Then partitions move one by one from a member to the subscriber with the fewest, if that evens out the two.
The result of the moves is dropped if it does not improve the balance. This is a local search: no single move
improves its result, but a chain of moves may.
"""

from collections.abc import Sequence
from functools import partial
from typing import TypeAlias

import numpy as np

from assignors.kafka_sticky.answer import Answer
from assignors.kafka_sticky.group import Group
from assignors.kafka_sticky.movements import Movements
from coordinator_core.assigning.flow.dealing import IntArray, ranks_within
from coordinator_core.model import NO_OWNER, Int32Array

_Blocks: TypeAlias = Sequence[tuple[int, Int32Array]]
"""Topics, each with ascending dense numbers of some of its partitions."""

_FEW = 4
"""So many partitions are assigned one by one, since arithmetic takes longer."""

_FAILS = (
    "Apache Kafka's raises NullPointerException here: {!r} claims a partition of an earlier generation, and "
    "takes no part in moves, since it shares no topic of its own"
)


def assign_apart(group: Group) -> Answer:
    """Return the assignment of members whose subscriptions differ."""
    search = _Search(group)
    search.keep()
    search.assign()
    search.balance()
    owner, when = search.owner, search.when
    claimed = np.zeros(len(owner), dtype=np.bool_)
    claimed[group.claim_partition] = True
    claimed[group.claim_partition[group.claim_member == owner[group.claim_partition]]] = False
    moving = np.flatnonzero(claimed & (owner != NO_OWNER)).astype(np.int32)
    return Answer(group.members(owner), moving, partial(_order, when))


def _order(when: IntArray) -> Int32Array:
    return np.argsort(when, kind="stable").astype(np.int32)


class _Search:
    """The state of the search. M members by id, P partitions, T topics.

    ``owner`` int32[P]; ``when`` int64[P]: the time at which each partition came into the list of its owner;
    ``key``   int64[M]: the number of partitions of each member times M, plus the member. The least key is
              that of the member that Kafka takes first.
    """

    def __init__(self, group: Group) -> None:
        problem = group.problem
        self._group, self._size = group, group.size
        self._offsets, self._topic = problem.index.offsets, problem.index.topic_of_every
        self._counts = np.diff(self._offsets)
        member_class = problem.member_class[group.by_id]
        self._subscribes = problem.class_subscribes[member_class]
        of_classes: IntArray = np.matmul(problem.class_subscribes, self._counts, dtype=np.int64)
        self._most = of_classes[member_class]
        self._members: dict[int, Int32Array] = {}
        topics = np.flatnonzero(problem.topic_subscribed & (self._counts > 0))
        subscribers = self._subscribes.sum(axis=0)[topics]
        self._topics: list[int] = topics[np.argsort(subscribers, kind="stable")].tolist()
        self.owner = np.full(len(self._topic), NO_OWNER, dtype=np.int32)
        self.when = np.zeros(len(self._topic), dtype=np.int64)
        self.key = np.arange(self._size, dtype=np.int64)
        self._now = 0
        self._starts_anew = self._revokes = False
        self._free: list[tuple[int, Int32Array]] = []
        self._movements: dict[int, Movements] = {}

    def keep(self) -> None:
        """Keep the partitions of members that still subscribe to them, and are near a replica."""
        group = self._group
        holder = group.holders.holder
        held = np.flatnonzero(holder != NO_OWNER)
        kept = self._subscribes[holder[held], self._topic[held]] & ~group.is_far(holder, held)
        self._revokes = not kept.all()
        held = held[kept]
        self.owner[held] = holder[held]
        claims = np.flatnonzero(holder[group.claim_partition] == group.claim_member)
        self.when[group.claim_partition[claims]] = claims
        self._now = len(group.claim_partition)
        self.key += np.bincount(holder[held], minlength=self._size) * self._size
        self._starts_anew = not len(held)

    def assign(self) -> None:
        """Assign the free partitions, those of topics with few subscribers first."""
        for topic in self._topics:
            block = self._all_of(topic)
            free = block[self.owner[block] == NO_OWNER]
            if len(free):
                self._free.append((topic, free))
        if self._group.racks is not None:
            for topic, free in self._free:
                self._assign_near(topic, free)
        for topic, free in self._free:
            left = free[self.owner[free] == NO_OWNER]
            if len(left):
                self._fill(self._of(topic), left)

    def balance(self) -> None:
        """Move partitions as long as a move evens out two members, unless all moves together do not."""
        shared = [topic for topic in self._topics if len(self._of(topic)) > 1]
        self._take_out_fixed(shared)
        before = self.owner.copy(), self.when.copy(), self.key.copy()
        self._recall()
        if not self._revokes:
            self._reassign([(t, free) for t, free in self._free if len(self._of(t)) > 1])
        moved = self._reassign([(topic, self._all_of(topic)) for topic in shared])
        if moved and not self._starts_anew and self._unevenness(self.key) >= self._unevenness(before[2]):
            self.owner, self.when, self.key = before

    def _of(self, topic: int) -> Int32Array:
        """Return the subscribers of a topic."""
        found = self._members.get(topic)
        if found is None:
            found = self._members[topic] = np.flatnonzero(self._subscribes[:, topic]).astype(np.int32)
        return found

    def _all_of(self, topic: int) -> Int32Array:
        return np.arange(self._offsets[topic], self._offsets[topic + 1], dtype=np.int32)

    # --- free partitions

    def _give(self, partition: int, member: int) -> None:
        self.owner[partition], self.when[partition] = member, self._now
        self.key[member] += self._size
        self._now += 1

    def _assign_near(self, topic: int, free: Int32Array) -> None:
        racks, members = self._group.racks, self._of(topic)
        assert racks is not None
        rack, candidates = racks.member[members], dict[int, Int32Array]()
        for p, racks_of in zip(free.tolist(), racks.partition_set[free].tolist(), strict=True):
            near = candidates.get(racks_of)
            if near is None:
                near = candidates[racks_of] = members[racks.near[racks_of, rack]]
            if len(near):
                self._give(p, int(near[self.key[near].argmin()]))

    def _fill(self, members: Int32Array, free: Int32Array) -> None:
        """Give each partition to the member that has the fewest then, the first by id."""
        if len(free) <= _FEW:
            for p in free.tolist():
                self._give(p, int(members[self.key[members].argmin()]))
            return
        taken = _poured(self.key[members] // self._size, len(free))
        level = np.repeat(self.key[members], taken) + ranks_within(taken) * self._size
        order = np.argsort(level, kind="stable")
        self.owner[free] = np.repeat(members, taken)[order]
        self.when[free] = np.arange(self._now, self._now + len(free))
        self._now += len(free)
        self.key[members] += taken * self._size

    # --- balance

    def _take_out_fixed(self, shared: Sequence[int]) -> None:
        """Find the members that own all that they can, nothing of it shared: they take no part."""
        sizes = self.key // self._size
        is_shared = np.zeros(len(self._counts), dtype=np.bool_)
        is_shared[shared] = True
        owns_shared = np.zeros(self._size + 1, dtype=np.bool_)
        owns_shared[self.owner[is_shared[self._topic]]] = True
        self._takes_part = (sizes < self._most) | owns_shared[:-1]

    def _recall(self) -> None:
        """Find the members of older generations that had a partition: int32[P], -1 for none."""
        group = self._group
        self._earlier: Int32Array | None = None
        self._may_be_unsubscribed = False
        older = group.generation < group.generation.max()
        at = np.flatnonzero(older[group.claim_member])
        if not len(at):
            return
        place = np.empty(self._size, dtype=np.int64)
        place[group.iteration] = np.arange(self._size)
        member = group.claim_member[at]
        at = at[np.lexsort((-place[member], group.generation[member]))]  # the last one written counts
        partition, member = group.claim_partition[at], group.claim_member[at]
        self._earlier = np.full(len(self.owner), NO_OWNER, dtype=np.int32)
        self._earlier[partition] = member
        self._may_be_unsubscribed = not self._subscribes[member, self._topic[partition]].all()

    def _reassign(self, blocks: _Blocks) -> bool:
        """Pass over the partitions until a pass moves nothing. Return whether any moved."""
        moved = False
        while self._pass(blocks):
            moved = True
        return moved

    def _pass(self, blocks: _Blocks) -> bool:
        moved = False
        for topic, block in blocks:
            members, begin = self._of(topic), 0
            while True:
                least = int(self.key[members].min())
                found = self._next(block[begin:], least // self._size)
                if found is None:
                    break
                begin += found
                if self._may_be_unsubscribed and self._is_balanced():
                    return moved
                self._move(topic, int(block[begin]), least % self._size)
                begin, moved = begin + 1, True
        return moved

    def _next(self, block: Int32Array, fewest: int) -> int | None:
        """Return the place of the next partition whose move evens out two members."""
        sizes = self.key // self._size
        has = sizes[self.owner[block]]
        due = has > fewest + 1
        if self._earlier is not None:
            earlier = self._earlier[block]
            due |= (earlier != NO_OWNER) & ((has > sizes[earlier] + 1) | ~self._takes_part[earlier])
        at = int(due.argmax()) if len(due) else 0
        return at if len(due) and due[at] else None

    def _move(self, topic: int, partition: int, receiver: int) -> None:
        owner, earlier = int(self.owner[partition]), NO_OWNER
        if self._earlier is not None:
            earlier = int(self._earlier[partition])
        if earlier != NO_OWNER:
            if not self._takes_part[earlier]:
                raise RuntimeError(_FAILS.format(self._group.ids[earlier]))
            if self.key[owner] // self._size > self.key[earlier] // self._size + 1:
                receiver = earlier
        if topic not in self._movements:
            self._movements[topic] = Movements(self._group.problem.index.topics[topic])
        movements, first = self._movements[topic], int(self._offsets[topic])
        number = movements.instead(partition - first, owner, receiver)
        owner = int(self.owner[first + number])
        movements.add(number, owner, receiver)
        self.key[owner] -= self._size
        self._give(first + number, receiver)

    def _is_balanced(self) -> bool:
        """Whether Kafka stops: no two members differ by more than one, or no subscriber could take one.

        Moves to members that do not subscribe end here, and others where no move is left.
        """
        sizes = self.key // self._size
        present = sizes[self._takes_part]
        if present.min() >= present.max() - 1:
            return True
        can_take = self._takes_part & (sizes != self._most)
        for topic in self._topics:
            takers = self._of(topic)
            takers = takers[can_take[takers]]
            if len(takers) and sizes[takers].min() + 1 < sizes[self.owner[self._all_of(topic)]].max():
                return False
        return True

    def _unevenness(self, key: IntArray) -> int:
        """Return the sum of the differences of all pairs of members."""
        sizes = np.sort((key // self._size)[self._takes_part])
        return int(sizes @ (2 * np.arange(len(sizes)) - len(sizes) + 1))


def _poured(sizes: IntArray, count: int) -> IntArray:
    """Return how many of `count` partitions each member gets, if the one with the fewest is always next.

    Of several, the first one is.
    """
    ordered = np.sort(sizes)
    needed = ordered * np.arange(1, len(sizes) + 1) - np.cumsum(ordered)
    low = int(np.searchsorted(needed, count, side="right"))  # so many members reach a common level
    level, extra = divmod(count + int(ordered[:low].sum()), low)
    taken = np.maximum(level - sizes, 0)
    reached = np.flatnonzero(sizes <= level)[:extra]
    taken[reached] += 1
    return taken
