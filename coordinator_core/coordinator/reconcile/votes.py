"""The assignor of a group: the one that most members name.

If several have most votes, Kafka takes the first in the order of a hash map. It counts the votes of the group
in one kind of map, and those after a heartbeat in another, where it takes the member's away and puts it back.
So with a tie, a heartbeat that changes nothing can win it for its own assignor.
"""

from collections.abc import Mapping

from coordinator_core.java import java_hash
from coordinator_core.java.hash_maps import spread_hashes

_GOLDEN, _MASK = 0x9E3779B97F4A7C15, 2**64 - 1


def preferred(votes: Mapping[str, int]) -> str | None:
    """Return the assignor with most of the votes of a group, None without any.

    Of several it is the first in the order of Kafka's TimelineHashMap, whose buckets are in the order of the
    hash times the golden ratio.
    """
    return max(_in_timeline_order(votes), key=votes.__getitem__, default=None)


def preferred_after(votes: Mapping[str, int], before: str | None, after: str | None) -> str | None:
    """Return the assignor with most votes after a member that named ``before`` has named ``after``.

    Of several it is the first in the order of a Java HashMap that is a copy of the votes: the vote is taken
    away, with its entry if it is the only one, and added, where a new entry is the first of its bucket.
    """
    counts, order = dict(votes), _in_timeline_order(votes)
    if before is not None:
        counts[before] -= 1
        if not counts[before]:
            order.remove(before)
    if after is not None:
        counts[after] = counts.get(after, 0) + 1
        if after not in order:
            order.insert(0, after)
    bucket = dict(zip(order, spread_hashes(order), strict=True))
    size = _table_size(len(votes))
    return max(sorted(order, key=lambda name: bucket[name] % size), key=counts.__getitem__, default=None)


def _in_timeline_order(names: Mapping[str, int]) -> list[str]:
    return sorted(names, key=lambda name: java_hash(name) * _GOLDEN & _MASK)


def _table_size(entries: int) -> int:
    """Return the number of buckets of a HashMap that is made as a copy of a map. One more entry fits in."""
    return 1 << (int(entries / 0.75 + 1) - 1).bit_length() if entries else 16
