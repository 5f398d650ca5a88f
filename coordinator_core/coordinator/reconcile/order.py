"""The order in which Kafka's coordinator hands its members to an assignor.

It keeps them in a hash table of its own (TimelineHashMap): slots by the upper bits of a multiplied hash,
chains that are read from the last to the first, and a size that never shrinks. A member whose request starts
the computation and that is new in the group comes last.
"""

from collections.abc import Iterable

import numpy as np

from coordinator_core.java import java_hashes

_MULTIPLIER = np.uint64(-7046029254386353131 % 2**64)
_SMALLEST_TABLE = 2


def handed_over(members: Iterable[str], most: int, newcomer: str | None) -> list[str]:
    """Return the members in Kafka's order.

    ``members`` are in the order in which they joined, ``most`` is the largest number of members that the
    group has had, and ``newcomer`` the member that is not in the table yet, if there is one.
    """
    known = [member for member in members if member != newcomer]
    hashes = java_hashes(known).view(np.int32).astype(np.int64).view(np.uint64)
    bits = (_table_size(most) - 1).bit_length()
    slots = (hashes * _MULTIPLIER) >> np.uint64(64 - bits)
    chained = np.lexsort((-np.arange(len(known)), slots)).tolist()
    last = [] if newcomer is None else [newcomer]
    return [*map(known.__getitem__, chained), *last]


def _table_size(most: int) -> int:
    """Return the size of the table: a member is written again when it has joined, which may double it."""
    size = _SMALLEST_TABLE
    while (most + 1) * 3 > size * 4:
        size *= 2
    return size
