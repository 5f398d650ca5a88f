"""Balance with the fewest moves by repair: members keep what they owned, and the rest is dealt out.

If all loads are in [level - 1, level], a member keeps at most level - 1 of its partitions, and one more if it
gets a place above that. An assignment in which all members keep that many is exact. If there is none, some
members pass on partitions that they could keep, and `transport` finds out which.
"""

import numpy as np

from coordinator_core.assigning.flow.closed_form import first_of, highest_of_each
from coordinator_core.assigning.flow.components import Component, lowest_subscribers, merged_columns
from coordinator_core.assigning.flow.dealing import IntArray, deal
from coordinator_core.assigning.flow.spreading import spread
from coordinator_core.assigning.problem import BoolArray
from coordinator_core.model import NO_OWNER, Int32Array
from coordinator_core.packing import starts_of


def keep_and_deal(component: Component, level: IntArray) -> Int32Array | None:
    """Return the new owner of each partition, int32[p], or None if members cannot keep that many.

    ``level`` int64[c]: the level of each class. Racks must not matter.
    """
    eligible, pool_of_topic = merged_columns(lowest_subscribers(component.subscribes, level))
    pool = pool_of_topic[component.topic]
    supply = np.bincount(pool, minlength=eligible.shape[1])
    member_class = component.member_class
    levels, block = level[:1], np.zeros_like(level)
    if (level != level[0]).any():
        levels, block = np.unique(level, return_inverse=True)
    target = component.owner.copy()
    if len(levels) > 1:
        target[~eligible[member_class[target], pool]] = NO_OWNER

    member_block = block[member_class]
    high = level[member_class]
    low = np.maximum(high - 1, 0)
    held = np.bincount(target + 1, minlength=len(high) + 1)[1:]
    over = (held >= high) & (high > 0)
    block_supply = np.bincount(block[eligible.argmax(axis=0)], weights=supply, minlength=len(levels))
    places = block_supply.astype(np.int64) - np.bincount(member_block, weights=low).astype(np.int64)
    if ((places < 0) | (places > np.bincount(member_block, weights=high - low))).any():
        return None
    # the places above low that nobody fills by keeping; below 0, so many members go down to low
    open_places: IntArray = places - np.bincount(member_block[over], minlength=len(levels))
    must = np.maximum(low - held, 0)
    may = (held < high) & (open_places[member_block] > 0)

    lost = np.maximum(held - high, 0)
    if lost.any() or (open_places < 0).any():
        receiving = np.bincount(member_class, weights=must + may) > 0
        takeable = np.asarray(eligible[receiving].any(axis=0))[pool]
        lower = np.where(over, member_block, NO_OWNER)
        given_up = _given_up(target, takeable, lost, lower, np.maximum(-open_places, 0))
        if given_up is None:
            return None
        target[given_up] = NO_OWNER
    return _dealt_out(target, pool, eligible, member_class, must, may)


def _given_up(
    owner: Int32Array, takeable: BoolArray, lost: IntArray, lower: IntArray, lowered: IntArray
) -> IntArray | None:
    """Return the partitions that members give up, or None if nobody may take enough of them.

    ``owner`` int32[p]; ``takeable`` bool[p]; ``lost`` int64[M]: how many a member loses in any case; of the
    members m with ``lower[m] == b``, as many as ``lowered[b]`` lose one more.
    """
    concerned = (lost > 0) | (np.append(lowered, 0)[lower] > 0)
    candidates = np.flatnonzero(np.append(concerned, False)[owner] & takeable)
    found = np.bincount(owner[candidates], minlength=len(lost))
    if (found < lost).any():
        return None
    lost = lost.copy()
    for block in np.flatnonzero(lowered).tolist():
        able = np.flatnonzero((lower == block) & (found > lost))
        if len(able) < lowered[block]:
            return None
        lost[able[len(able) - lowered[block] :]] += 1
    return candidates[highest_of_each(owner[candidates], lost)]


def _dealt_out(
    target: Int32Array,
    pool: IntArray,
    eligible: BoolArray,
    member_class: Int32Array,
    must: IntArray,
    may: BoolArray,
) -> Int32Array | None:
    """Give the free partitions to classes, and those of a class to its members in a circle."""
    classes, pools = eligible.shape
    free = np.flatnonzero(target == NO_OWNER)
    free = free[np.argsort(pool[free], kind="stable")]
    class_must = np.bincount(member_class, weights=must, minlength=classes).astype(np.int64)
    class_may = np.bincount(member_class, weights=may, minlength=classes).astype(np.int64)
    taker = spread(np.bincount(pool[free], minlength=pools), class_must, class_may, eligible.T)
    if taker is None:
        return None
    members = np.argsort(member_class, kind="stable").astype(np.int32)
    if len(members) == classes:
        target[free] = members[taker]
        return target
    above = np.bincount(taker, minlength=classes) - class_must
    starts = starts_of(np.bincount(member_class, minlength=classes))
    received = must[members] + first_of(may[members], above, starts)
    order = np.lexsort((free, taker))
    target[free[order]] = deal(members, received, member_class[members])
    return target
