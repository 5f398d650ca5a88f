"""The levels of the most balanced loads (Frank and Murota, arXiv 2007.09616; least sum of squares).

Where members subscribe differently, the best loads are not all alike. Members fall into blocks of one
level each, and in every best solution a member of level b has a load of b - 1 or b. The blocks come from
minimum cuts, by divide and conquer.
"""

import numpy as np

from coordinator_core.assigning.flow.dealing import IntArray
from coordinator_core.assigning.problem import BoolArray


def load_levels(supply: IntArray, size: IntArray, subscribes: BoolArray) -> IntArray:
    """Return the level of each class of members: int64[C].

    ``supply`` int64[S]: partitions in each pool; ``size`` int64[C]: members in each class, at least one;
    ``subscribes`` bool[C, S]: which classes may own a pool's partitions. A pool with partitions has a class.
    """
    level = np.zeros(len(size), dtype=np.int64)
    blocks = [(np.arange(len(supply)), np.arange(len(size)))]
    while blocks:
        pools, classes = blocks.pop()
        total = int(supply[pools].sum())
        if not total or not len(classes):
            continue
        average = -(-total // int(size[classes].sum()))
        here = subscribes[np.ix_(classes, pools)].T
        for threshold in (average, average - 1):
            above = overfull(supply[pools], size[classes] * threshold, here)
            crowded = here[above].any(axis=0)
            if above.any() and not crowded.all():
                blocks.append((pools[above], classes[crowded]))
                blocks.append((pools[~above], classes[~crowded]))
                break
        else:
            level[classes] = average
    return level


def overfull(supply: IntArray, room: IntArray, allowed: BoolArray) -> BoolArray:
    """bool[S]: a set of pools that exceeds the room of its takers; empty if there is no such set.

    ``supply`` int64[S]; ``room`` int64[C]; ``allowed`` bool[S, C]. It is the side of the source of a minimum
    cut. The nodes are the source 0, pools 1 .. S, takers S + 1 .. S + C, and the sink.
    """
    from ortools.graph.python.max_flow import SimpleMaxFlow

    pools, takers = allowed.shape
    sink = pools + takers + 1
    rows, columns = np.nonzero(allowed)
    pool_nodes, taker_nodes = np.arange(1, pools + 1), np.arange(pools + 1, sink)
    tails = np.concatenate((np.zeros(pools, dtype=np.int64), rows + 1, taker_nodes))
    heads = np.concatenate((pool_nodes, columns + pools + 1, np.full(takers, sink)))
    capacities = np.concatenate((supply, supply[rows], room))
    graph = SimpleMaxFlow()
    graph.add_arcs_with_capacity(tails.astype(np.int32), heads.astype(np.int32), capacities.astype(np.int64))
    status = graph.solve(0, sink)
    assert status == graph.OPTIMAL
    above = np.zeros(sink + 1, dtype=np.bool_)
    above[graph.get_source_side_min_cut()] = True
    return above[pool_nodes]
