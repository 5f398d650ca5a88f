"""The levels of the most balanced loads (Frank and Murota, arXiv 2007.09616; least sum of squares).

Where members subscribe differently, the best loads are not all alike. Members fall into blocks of one
level each, and in every best solution a member of level b has a load of b - 1 or b. The blocks come from
minimum cuts, by divide and conquer.
"""

from typing import Any

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
        here = subscribes[np.ix_(classes, pools)]
        for threshold in (average, average - 1):
            above = _overfull(supply[pools], size[classes], here, threshold)
            crowded = here[:, above].any(axis=1)
            if above.any() and not crowded.all():
                blocks.append((pools[above], classes[crowded]))
                blocks.append((pools[~above], classes[~crowded]))
                break
        else:
            level[classes] = average
    return level


def _overfull(supply: IntArray, size: IntArray, subscribes: BoolArray, threshold: int) -> BoolArray:
    """bool[S]: the pools that do not fit if every member takes at most `threshold` partitions."""
    if threshold == 0:
        return supply > 0
    graph, arcs = _graph(supply, size, subscribes, threshold)
    status = graph.solve(*arcs)
    assert status == graph.OPTIMAL
    above = np.zeros(len(supply), dtype=np.bool_)
    cut = np.asarray(graph.get_source_side_min_cut(), dtype=np.int64)
    above[cut[(cut >= 1) & (cut <= len(supply))] - 1] = True
    return above


def _graph(
    supply: IntArray, size: IntArray, subscribes: BoolArray, threshold: int
) -> tuple[Any, tuple[int, int]]:
    """Return the graph, its source and its sink.

    The nodes are the source 0, pools 1 .. S, classes S + 1 .. S + C, and the sink.
    """
    from ortools.graph.python.max_flow import SimpleMaxFlow

    pools, classes = len(supply), len(size)
    sink = pools + classes + 1
    rows, columns = np.nonzero(subscribes)
    pool_nodes = np.arange(1, pools + 1)
    class_nodes = np.arange(pools + 1, sink)
    tails = np.concatenate((np.zeros(pools, dtype=np.int64), columns + 1, class_nodes))
    heads = np.concatenate((pool_nodes, rows + pools + 1, np.full(classes, sink)))
    capacities = np.concatenate((supply, supply[columns], size * threshold))
    graph = SimpleMaxFlow()
    graph.add_arcs_with_capacity(tails.astype(np.int32), heads.astype(np.int32), capacities.astype(np.int64))
    return graph, (0, sink)
