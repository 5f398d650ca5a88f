"""Lower bounds of the largest load relative to capacity, for partitions with weights.

The first bound allows fractions of partitions: the members that subscribe to a set of topics have to share
the weight of these topics. The level of this bound is found by repeated maximum flows, as in Dinkelbach's
method. The other bounds consider whole partitions: some member has the heaviest one, and of m k + 1
partitions one of m members has at least k + 1.
"""

import numpy as np
from numpy.typing import NDArray

from coordinator_core.assigning.flow.levels import overfull
from coordinator_core.assigning.problem import BoolArray, FloatArray

_WHOLE = 1 << 40
"""The approximate sum of the weights after they are scaled to integers, which maximum flows require."""


def sums_at(place: NDArray[np.integer], weight: FloatArray, count: int) -> FloatArray:
    """float64[count]: the sum of the weights at each place."""
    return np.asarray(np.bincount(place, weights=weight, minlength=count), dtype=np.float64)


def least_level(supply: FloatArray, capacity: FloatArray, allowed: BoolArray) -> float:
    """Return the least possible largest load relative to capacity, if pools can be divided at will.

    ``supply`` float64[S]: the weight of each pool; ``capacity`` float64[C], above 0; ``allowed`` bool[S, C]:
    the takers of each pool. A pool with a weight has a taker. The result is 0 if no pool has a weight.
    """
    pools = np.flatnonzero(supply > 0)
    total = float(supply.sum())
    if not len(pools):
        return 0.0
    takers = allowed[pools].any(axis=0)
    level = total / float(capacity[takers].sum())
    if allowed[np.ix_(pools, np.flatnonzero(takers))].all():
        return level
    scale = _WHOLE / total
    while True:
        whole = np.floor(supply[pools] * scale).astype(np.int64)
        crowded = overfull(whole, np.ceil(capacity * scale * level).astype(np.int64), allowed[pools])
        if not crowded.any():
            return level
        above = pools[crowded]
        higher = float(supply[above].sum()) / float(capacity[allowed[above].any(axis=0)].sum())
        if higher <= level * (1 + 1e-9):
            return level
        level = higher


def heaviest_alone(weight: FloatArray, roomiest: FloatArray) -> float:
    """Return the largest load relative to capacity of a single partition.

    ``weight`` float64[n]; ``roomiest`` float64[n]: the greatest capacity of a possible owner of each.
    """
    return float((weight / roomiest).max(initial=0.0))


def pigeonhole(weight: FloatArray, capacity: FloatArray) -> float:
    """Return a bound from counts: of the m k + 1 heaviest partitions, some member has at least k + 1."""
    members, count = len(capacity), len(weight)
    if not members or count <= members:
        return 0.0
    falling = -np.sort(-weight)
    summed = np.concatenate(([0.0], np.cumsum(falling)))
    k = np.arange(1, (count - 1) // members + 1)
    last = k * members + 1
    return float((summed[last] - summed[last - k - 1]).max()) / float(capacity.max())


def within_moves(load: FloatArray, capacity: FloatArray, movable: float) -> float:
    """Return the least largest load relative to capacity if at most ``movable`` weight may move.

    ``load`` float64[M]: the load of each member before any move.
    """
    order = np.argsort(-(load / capacity))
    loads, rooms = np.cumsum(load[order]), np.cumsum(capacity[order])
    levels = (loads - movable) / rooms
    return max(float(levels.max(initial=0.0)), 0.0)
