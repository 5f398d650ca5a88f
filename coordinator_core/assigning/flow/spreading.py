"""Spread free partitions over the members that may own them, each within its room.

The pools with the fewest owners come first. Several pools at a time, a quarter of those left at most, are
dealt in proportion to the room of their owners. Where that does not come out even, a maximum flow deals the
last pools again, and more of them until all fit.
"""

import numpy as np
from numpy.typing import NDArray

from coordinator_core.assigning.flow.dealing import IntArray, deal
from coordinator_core.assigning.problem import BoolArray, FloatArray
from coordinator_core.model import NO_OWNER, Int32Array
from coordinator_core.packing import starts_of

_FIRST_TAIL = 16
"""The number of pools that the first flow deals again."""

_FEW_PAIRS = 1 << 12
"""The pairs of a pool and a class up to which impossible cases are looked for first."""


def spread(supply: IntArray, must: IntArray, may: IntArray, allowed: BoolArray) -> Int32Array | None:
    """Return the class that receives each free partition, int32[sum(supply)], pool after pool.

    ``supply`` int64[S]: the free partitions of each pool; ``must`` int64[C]: the least number that a class
    receives, ``may`` int64[C]: how many more it may receive; ``allowed`` bool[S, C]. None if there is no way.
    """
    pools, classes = np.flatnonzero(supply), np.flatnonzero(must + may)
    if not len(pools):
        return None if must.any() else np.zeros(0, dtype=np.int32)
    if len(pools) < len(supply) or len(classes) < len(must):
        allowed = allowed[np.ix_(pools, classes)]
    supply, must, may = supply[pools], must[classes], may[classes]
    if not allowed.any(axis=1).all() or (
        allowed.size <= _FEW_PAIRS and not _may_fit(supply, must, may, allowed)
    ):
        return None
    dealer = _Dealer(supply, must, may, allowed)
    return classes[dealer.result()].astype(np.int32) if dealer.deal() else None


def _may_fit(supply: IntArray, must: IntArray, may: IntArray, allowed: BoolArray) -> bool:
    """Whether each pool alone fits into its classes, and each class alone gets what it must receive."""
    weighted = allowed.astype(np.float64)  # of whole numbers; float products are the fast ones
    fits = (weighted @ (must + may) >= supply).all() and (supply @ weighted >= must).all()
    return bool(fits)


class _Dealer:
    """Deals the pools of `spread`, all of which have partitions, to classes with room.

    ``order`` int64[S]: the pools in the order in which they are dealt; of the k-th one, ``takers``
    int32[taker_starts[k] .. taker_starts[k + 1]] are the classes that may receive its partitions, and
    ``dealt`` int32[unit_starts[k] .. unit_starts[k + 1]] those that do. ``room`` float64[C]: whole numbers.
    """

    def __init__(self, supply: IntArray, must: IntArray, may: IntArray, allowed: BoolArray) -> None:
        counts = np.count_nonzero(allowed, axis=1)
        self.order = np.argsort(counts, kind="stable")
        self.supply, self.may = supply[self.order], may.astype(np.float64)
        self.allowed = allowed[self.order]
        self.room = (must + may).astype(np.float64)
        counts = counts[self.order]
        cells = np.flatnonzero(self.allowed)
        cells -= np.repeat(np.arange(0, self.allowed.size, len(must)), counts)
        self.takers = cells.astype(np.int32)
        self.taker_starts = starts_of(counts)
        self.unit_starts = starts_of(self.supply)
        self.dealt = np.full(int(self.unit_starts[-1]), NO_OWNER, dtype=np.int32)

    def deal(self) -> bool:
        """Deal all pools, or return False if they do not fit."""
        dealt = self._in_proportion()
        return (dealt == len(self.order) and bool((self.room <= self.may).all())) or self._by_flows(dealt)

    def result(self) -> Int32Array:
        """Return the class of each partition, pool after pool."""
        sizes = np.empty_like(self.supply)
        sizes[self.order] = self.supply
        first = starts_of(sizes)[self.order] - self.unit_starts[:-1]
        result = np.empty_like(self.dealt)
        result[np.arange(len(result)) + np.repeat(first, self.supply)] = self.dealt
        return result

    def _in_proportion(self) -> int:
        """Return the number of pools dealt before one that does not fit."""
        begin, end, size = 0, len(self.order), len(self.order)
        if end > _FIRST_TAIL and self.room.sum() == self.supply.sum():
            end -= _FIRST_TAIL  # without room to spare, a flow deals these again
        while begin < end:
            size = max(1, min(size, (len(self.order) - begin) // 4))
            if self._together(begin, begin + size):
                begin += size
            elif size == 1:
                break
            else:
                size //= 2
        return begin

    def _together(self, begin: int, end: int) -> bool:
        """Deal some pools in proportion to the room before, unless a class has too little for its share."""
        starts = self.taker_starts[begin : end + 1]
        takers = self.takers[starts[0] : starts[-1]]
        room, supply = self.room[takers], self.supply[begin:end]
        total = np.add.reduceat(room, starts[:-1] - starts[0])
        if (total < supply).any():
            return False
        counts = np.diff(starts)
        # rounded sums, which are whole at the end of each pool
        share = np.repeat(supply / total, counts)
        share *= room
        np.rint(np.cumsum(share, out=share), out=share)
        share[1:] -= share[:-1].copy()
        left = self.room - np.bincount(takers, weights=share, minlength=len(self.room))
        if left.min() < 0:
            return False
        self.room = left
        self.dealt[self.unit_starts[begin] : self.unit_starts[end]] = _in_turns(takers, share, counts)
        return True

    def _by_flows(self, dealt: int) -> bool:
        """Deal the last pools again, more of them each time, until everything fits."""
        tail = _FIRST_TAIL
        while True:
            begin = max(0, min(dealt, len(self.order) - tail))
            freed = self.dealt[self.unit_starts[begin] :]
            self.room += np.bincount(freed[freed != NO_OWNER], minlength=len(self.room))
            freed[:] = NO_OWNER
            may = np.minimum(self.room, self.may)
            amounts = _by_flow(self.supply[begin:], self.room - may, may, self.allowed[begin:])
            if amounts is not None:
                pool, taker = np.nonzero(amounts)
                counts = np.bincount(pool, minlength=len(amounts))
                freed[:] = _in_turns(taker.astype(np.int32), amounts[pool, taker], counts)
                return True
            if begin == 0:
                return False
            tail *= 4


def _in_turns(takers: Int32Array, share: NDArray[np.number], counts: IntArray) -> Int32Array:
    """Return the taker of each partition; the takers of a pool take turns.

    ``share``: whole numbers; ``counts``: the number of takers of each pool.
    """
    if share.max() == 1:
        return takers[np.flatnonzero(share)]
    return deal(takers, share.astype(np.int64), np.repeat(np.arange(len(counts)), counts))


def _by_flow(supply: IntArray, must: FloatArray, may: FloatArray, allowed: BoolArray) -> IntArray | None:
    """Return how many partitions of each pool go to each class, int64[S, C], or None if they do not fit.

    The nodes are the source 0, pools 1 .. S, classes S + 1 .. S + C, the node of all optional places, and the
    sink.
    """
    from ortools.graph.python.max_flow import SimpleMaxFlow

    total, spare = int(supply.sum()), int(supply.sum() - must.sum())
    if spare < 0:
        return None
    pools, classes = allowed.shape
    rows, columns = np.nonzero(allowed)
    pool_nodes = np.arange(1, pools + 1)
    class_nodes = np.arange(pools + 1, pools + classes + 1)
    optional, sink = pools + classes + 1, pools + classes + 2
    tails = (rows + 1, np.zeros(pools, dtype=np.int64), class_nodes, class_nodes, [optional])
    heads = (columns + pools + 1, pool_nodes, np.full(classes, sink), np.full(classes, optional), [sink])
    capacities = (supply[rows], supply, must, may, [spare])
    graph = SimpleMaxFlow()
    graph.add_arcs_with_capacity(
        np.concatenate(tails).astype(np.int32),
        np.concatenate(heads).astype(np.int32),
        np.concatenate(capacities).astype(np.int64),
    )
    status = graph.solve(0, sink)
    assert status == graph.OPTIMAL
    if graph.optimal_flow() < total:
        return None
    amounts = np.zeros((pools, classes), dtype=np.int64)
    amounts[rows, columns] = graph.flows(np.arange(len(rows), dtype=np.int32))
    return amounts
