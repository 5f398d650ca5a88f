"""Balance and fewest moves of components with equal subscriptions, by arithmetic.

Every member's load is floor(P / M) or one more. A member keeps what it owns up to its load; the places
with one more go first to members that own more than the floor, since only they can fill them by keeping.
"""

import numpy as np
from numpy.typing import NDArray

from coordinator_core.assigning.flow.dealing import IntArray, deal, ranks_within
from coordinator_core.assigning.problem import BoolArray
from coordinator_core.model import NO_OWNER, Int32Array
from coordinator_core.packing import starts_of


def balance_alike(
    owner: Int32Array | None, partition_starts: IntArray, member_starts: IntArray
) -> Int32Array:
    """Return the new owner of each partition: int32[n].

    Members and partitions are sorted by component: those of component c have the numbers
    ``starts[c] .. starts[c + 1] - 1``. ``owner`` int32[n]: previous owners, -1 for none; None if no partition
    has an owner. Every component has a member.
    """
    if owner is None:
        return _dealt_afresh(partition_starts, member_starts)
    quota, held = _quotas(owner, partition_starts, member_starts)
    target = owner.copy()
    surplus = held > quota
    if surplus.any():
        concerned = np.flatnonzero(np.append(surplus, False)[owner])
        target[concerned[highest_of_each(owner[concerned], held - quota)]] = NO_OWNER
    free = np.flatnonzero(target == NO_OWNER)
    if len(free):
        members = np.arange(len(quota), dtype=np.int32)
        missing = quota - np.minimum(held, quota)
        short = np.flatnonzero(missing)
        circle = None
        if len(member_starts) > 2:
            circle = np.repeat(np.arange(len(member_starts) - 1), np.diff(member_starts))[short]
        target[free] = deal(members[short], missing[short], circle)
    return target


def _dealt_afresh(partition_starts: IntArray, member_starts: IntArray) -> Int32Array:
    circles = []
    for first, end, size in zip(
        member_starts.tolist(), member_starts[1:].tolist(), np.diff(partition_starts).tolist(), strict=False
    ):
        members = np.arange(first, end, dtype=np.int32)
        circles.append(np.tile(members, -(-size // len(members)))[:size])
    return circles[0] if len(circles) == 1 else np.concatenate(circles)


def _quotas(
    owner: Int32Array, partition_starts: IntArray, member_starts: IntArray
) -> tuple[IntArray, IntArray]:
    """Return the load of each member and the number of partitions that it owned."""
    sizes = np.diff(member_starts)
    floor, extras = np.divmod(np.diff(partition_starts), sizes)
    held = np.bincount(owner + 1, minlength=int(member_starts[-1]) + 1)[1:]
    base = np.repeat(floor, sizes)
    over = held > base
    extra = first_of(over, extras, member_starts)
    left = extras - np.minimum(extras, _sums(over, member_starts))
    extra |= first_of(~over, left, member_starts)
    quota = base + extra
    return quota, held


def first_of(chosen: BoolArray, counts: IntArray, starts: IntArray) -> BoolArray:
    """Select the first `counts[c]` of the chosen elements of each segment."""
    ranks = np.cumsum(chosen)
    if len(counts) == 1:
        return np.asarray(chosen & (ranks <= counts))
    before = np.concatenate(([0], ranks))[starts[:-1]]
    first: BoolArray = chosen & (ranks <= np.repeat(before + counts, np.diff(starts)))
    return first


def _sums(chosen: BoolArray, starts: IntArray) -> IntArray:
    if len(starts) == 2:
        return np.array([np.count_nonzero(chosen)])
    total = starts_of(chosen)
    return total[starts[1:]] - total[starts[:-1]]


def highest_of_each(owner: Int32Array, counts: NDArray[np.integer]) -> IntArray:
    """Return the positions of the last `counts[m]` partitions of each owner m, owner by owner."""
    keys = owner.astype(np.int16) if len(counts) <= np.iinfo(np.int16).max else owner
    order = np.argsort(keys, kind="stable")
    held = np.bincount(owner, minlength=len(counts))
    highest: IntArray = order[ranks_within(held) >= np.repeat(held - counts, held)]
    return highest
