"""Members with equal subscriptions: each keeps up to its quota, the rest is dealt in a circle.

The quota is floor(P / M), and one more for P mod M members: first for those that hold more, in hash order,
then for those that reach the floor first. With racks, partitions first go to members near a replica.
"""

from functools import partial
from itertools import chain

import numpy as np

from assignors.kafka_sticky.answer import Answer
from assignors.kafka_sticky.group import Group, RacksInUse
from coordinator_core.assigning.flow.closed_form import highest_of_each
from coordinator_core.assigning.flow.dealing import IntArray, deal
from coordinator_core.assigning.problem import BoolArray
from coordinator_core.model import NO_OWNER, Int32Array


def assign_alike(group: Group) -> Answer:
    """Return the assignment of members that all subscribe to the same topics."""
    partitions = group.problem.subscribed
    quota, extras = divmod(len(partitions), group.size)
    holder, cancelled = group.holders
    target = _near(group, holder)
    target[cancelled] = NO_OWNER
    held = np.bincount(target + 1, minlength=group.size + 1)[1:]
    full = _first_over(group, held > quota, extras)
    _shed(group, target, held, quota + full)
    free = partitions[target[partitions] == NO_OWNER]
    kept = partitions[target[partitions] != NO_OWNER]
    places = _Places(held, full, quota, extras)
    if group.racks is not None:
        free = places.deal_near(group.racks, free)
    target[free] = places.deal(len(free))
    left = (holder[free] != NO_OWNER) & (holder[free] != target[free])
    left[np.isin(free, cancelled)] = True
    return Answer(group.members(target), free[left], partial(_order, group, kept, free))


def _near(group: Group, holder: Int32Array) -> Int32Array:
    """Return the holders without those far from all replicas of their partition."""
    target = holder.copy()
    if group.racks is not None:
        held = np.flatnonzero(holder != NO_OWNER)
        target[held[group.is_far(holder, held)]] = NO_OWNER
    return target


def _first_over(group: Group, over: BoolArray, extras: int) -> BoolArray:
    """bool[M]: the members that keep one more than the quota."""
    if not extras:
        return np.zeros_like(over)
    if np.count_nonzero(over) <= extras:
        return over
    full = np.zeros_like(over)
    full[group.iteration[over[group.iteration]][:extras]] = True
    return full


def _shed(group: Group, target: Int32Array, held: IntArray, quota: IntArray) -> None:
    """Take from members what they hold above the quota: the highest numbers, over all topics."""
    surplus = held > quota
    if surplus.any():
        concerned = np.flatnonzero(np.append(surplus, False)[target]).astype(np.int32)
        concerned = _by_number(group, concerned)
        target[concerned[highest_of_each(target[concerned], held - quota)]] = NO_OWNER


def _by_number(group: Group, partitions: Int32Array) -> Int32Array:
    """Sort ascending dense numbers by the partition's number in its topic, then by topic."""
    index = group.problem.index
    number = partitions - index.offsets[index.topic_of_every[partitions]]
    small = not len(number) or int(number.max()) <= np.iinfo(np.int16).max
    return partitions[np.argsort(number.astype(np.int16) if small else number, kind="stable")]


def _order(group: Group, kept: Int32Array, dealt: Int32Array) -> Int32Array | None:
    if not len(kept) and group.racks is None:
        return None
    every = np.arange(group.problem.index.size, dtype=np.int32)
    listed = np.concatenate((_by_number(group, kept), dealt))
    return listed if len(listed) == len(every) else np.concatenate((listed, np.setdiff1d(every, listed)))


class _Places:
    """The places of members that are not filled.

    ``missing``: how many partitions each member lacks to the quota; ``waiting``: the members that lack some,
    in the order of the circle; ``ready``: those that have the quota and may get one more, in the order in
    which they get it; ``extras``: how many of them still do.
    """

    def __init__(self, held: IntArray, full: BoolArray, quota: int, extras: int) -> None:
        self._missing = np.maximum(quota - held, 0)
        self._waiting = np.flatnonzero(self._missing).astype(np.int32)
        self._extras = extras - int(np.count_nonzero(full))
        self._ready = np.flatnonzero((held >= quota) & ~full).astype(np.int32)
        self._near = np.zeros(0, dtype=np.int32)
        if not self._extras:
            self._ready = self._ready[:0]

    def deal(self, count: int) -> Int32Array:
        """int32[count]: who gets each of the partitions, after those that `deal_near` has given."""
        missing = self._missing[self._waiting]
        circle = deal(self._waiting, missing)
        filled = self._waiting[np.argsort(missing, kind="stable")]
        extra = count - len(self._near) - len(circle)
        return np.concatenate((self._near, circle, np.concatenate((self._ready, filled))[:extra]))

    def deal_near(self, racks: RacksInUse, free: Int32Array) -> Int32Array:
        """Give partitions to members near a replica, those first that the fewest members are near.

        Return the partitions in the order in which they are given to members.
        """
        of_racks = np.bincount(racks.member + 1, minlength=racks.sets.shape[1] + 1)[1:]
        sets = racks.partition_set[free]
        order = np.argsort((racks.sets @ of_racks)[sets], kind="stable")
        return self._dealt_near(racks, free[order], sets[order])

    def _dealt_near(self, racks: RacksInUse, free: Int32Array, sets: Int32Array) -> Int32Array:
        racks_of = [frozenset(np.flatnonzero(row).tolist()) for row in racks.sets]
        waiting, ready = (_Queue(members.tolist(), racks) for members in (self._waiting, self._ready))
        missing, begin = self._missing, 0
        given, left, receivers = list[int](), list[int](), list[int]()
        for p, near in zip(free.tolist(), map(racks_of.__getitem__, sets.tolist()), strict=True):
            at = waiting.next(near, begin)
            if at is not None:
                member = waiting.members[at]
                missing[member] -= 1
                if missing[member]:
                    at += 1
                else:
                    waiting.remove(at)
                    if self._extras:
                        ready.add(member)
                begin = at % len(waiting.members) if waiting.members else 0
            elif self._extras and (at := ready.next(near, 0)) is not None:
                member = ready.members[at]
                ready.remove(at)
                self._extras -= 1
            else:
                left.append(p)
                continue
            given.append(p)
            receivers.append(member)
        self._waiting = np.array(waiting.members, dtype=np.int32)
        self._ready = np.array(ready.members if self._extras else (), dtype=np.int32)
        self._near = np.array(receivers, dtype=np.int32)
        return np.array(given + left, dtype=np.int32)


class _Queue:
    """Members in a circle, with the number of them in each rack."""

    def __init__(self, members: list[int], racks: RacksInUse) -> None:
        self.members, self._rack = members, racks.member.tolist()
        self._count = [0] * (racks.sets.shape[1] + 1)  # the last is that of members without a rack
        for member in members:
            self._count[self._rack[member]] += 1

    def next(self, racks: frozenset[int], begin: int) -> int | None:
        """Return the place of the first member in one of the racks, from a place on around the circle."""
        if not any(map(self._count.__getitem__, racks)):
            return None
        places = chain(range(begin, len(self.members)), range(begin))
        return next(at for at in places if self._rack[self.members[at]] in racks)

    def add(self, member: int) -> None:
        self.members.append(member)
        self._count[self._rack[member]] += 1

    def remove(self, at: int) -> None:
        self._count[self._rack[self.members.pop(at)]] -= 1
