"""Balance and fewest moves of components with equal subscriptions, by arithmetic.

Every member's load is floor(P / M) or one more. A member keeps what it owns up to its load; the places
with one more go first to members that own more than the floor, since only they can fill them by keeping.
"""

import numpy as np

from coordinator_core.assigning.flow.dealing import IntArray, deal, starts_of
from coordinator_core.assigning.problem import BoolArray
from coordinator_core.model import NO_OWNER, Int32Array


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
    quota, kept, surplus = _quotas(owner, partition_starts, member_starts)
    target = owner.copy()
    if surplus.any():
        target[_shed(owner, quota, surplus)] = NO_OWNER
    free = np.flatnonzero(target == NO_OWNER)
    if len(free):
        members = np.arange(len(quota), dtype=np.int32)
        missing = quota - kept
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
) -> tuple[IntArray, IntArray, BoolArray]:
    """Return the load of each member, the part that it keeps, and whether it owns more than that."""
    sizes = np.diff(member_starts)
    floor, extras = np.divmod(np.diff(partition_starts), sizes)
    held = np.bincount(owner + 1, minlength=int(member_starts[-1]) + 1)[1:]
    base = np.repeat(floor, sizes)
    over = held > base
    extra = _first_of(over, extras, member_starts)
    left = extras - np.minimum(extras, _sums(over, member_starts))
    extra |= _first_of(~over, left, member_starts)
    quota = base + extra
    return quota, np.minimum(held, quota), held > quota


def _first_of(chosen: BoolArray, counts: IntArray, starts: IntArray) -> BoolArray:
    """Select the first `counts[c]` of the chosen elements of each segment."""
    ranks = np.cumsum(chosen)
    before = np.concatenate(([0], ranks))[starts[:-1]]
    first: BoolArray = chosen & (ranks <= np.repeat(before + counts, np.diff(starts)))
    return first


def _sums(chosen: BoolArray, starts: IntArray) -> IntArray:
    total = starts_of(chosen)
    return total[starts[1:]] - total[starts[:-1]]


def _shed(owner: Int32Array, quota: IntArray, surplus: BoolArray) -> IntArray:
    """Return the partitions that members with a surplus lose: the highest ones that they own."""
    concerned = np.flatnonzero(np.append(surplus, False)[owner])
    holder = owner[concerned]
    keys = holder.astype(np.int16) if len(quota) <= np.iinfo(np.int16).max else holder
    order = np.argsort(keys, kind="stable")
    counts = np.bincount(holder, minlength=len(quota))
    rank = np.arange(len(order)) - np.repeat(starts_of(counts)[:-1], counts)
    shed: IntArray = concerned[order[rank >= np.repeat(quota, counts)]]
    return shed
