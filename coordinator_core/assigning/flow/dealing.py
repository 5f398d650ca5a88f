"""Assignment of partitions in a circle, which spreads each topic over many members."""

import numpy as np
from numpy.typing import NDArray

from coordinator_core.model import Int32Array
from coordinator_core.packing import starts_of

IntArray = NDArray[np.int64]


def ranks_within(counts: NDArray[np.integer]) -> IntArray:
    """int64[sum(counts)]: 0, 1, 2 ... in each segment."""
    starts = starts_of(counts)
    return np.arange(starts[-1]) - np.repeat(starts[:-1], counts)


def deal(
    receivers: Int32Array, counts: NDArray[np.integer], circle: NDArray[np.integer] | None = None
) -> Int32Array:
    """Return the receiver of each partition, int32[sum(counts)], when partitions are dealt in circles.

    ``receivers`` int32[n], in the order of the circle; ``counts`` int[n]: the number of partitions of each
    receiver; ``circle`` int[n], ascending: the circle of each receiver, or None for a single circle. The
    circles are dealt one after the other.
    """
    turn = ranks_within(counts)
    dealt = np.repeat(receivers, counts)
    if not len(dealt):
        return dealt
    last_turn = int(turn.max())
    if circle is not None:
        turn += np.repeat(circle.astype(np.int64) * (last_turn + 1), counts)
        last_turn = int(turn[-1]) if last_turn == 0 else int(turn.max())
    keys = turn.astype(np.int16) if last_turn <= np.iinfo(np.int16).max else turn
    return dealt[np.argsort(keys, kind="stable")]
