"""Balance, then racks, then fewest moves, for different subscriptions: one min-cost flow.

Partitions of one topic and one set of replica racks are a *lot*; lots that the same classes may own are a
*pool*; members of one class and rack are a *kind*. A partition flows from its lot to its previous owner
for nothing, or through pool and kind to any member at the cost of a move; crossing racks costs more than
all moves together. Loads are bound to the levels of `levels`.
"""

from dataclasses import dataclass

import numpy as np

from coordinator_core.assigning.flow.components import Component, lowest_subscribers, merged_columns
from coordinator_core.assigning.flow.dealing import IntArray, deal, ranks_within
from coordinator_core.assigning.flow.keeping import keep_and_deal
from coordinator_core.assigning.flow.levels import load_levels
from coordinator_core.assigning.problem import BoolArray
from coordinator_core.model import NO_OWNER, Int32Array


@dataclass(frozen=True, eq=False)
class _Layout:
    """Lots, pools, kinds and owned pairs of a component, for one choice of eligible owners."""

    lot: IntArray  # of each partition
    lot_size: IntArray
    lot_pool: IntArray
    pool_sets: IntArray  # rack set of each pool
    pool_kind: tuple[IntArray, IntArray]  # the pairs that may exchange
    kind: IntArray  # of each member
    kind_rack: IntArray
    pair_of: IntArray  # of each partition whose owner may keep it, else -1
    pair: tuple[IntArray, IntArray, IntArray]  # lot, member, how many it owns
    pair_rack_set: IntArray


def balance_apart(component: Component) -> Int32Array:
    """Return the new owner of each partition: int32[p]. Exact in the order of PROTOCOL 10.3."""
    classes = len(component.subscribes)
    level = np.full(classes, -(-len(component.topic) // len(component.member_class)))
    owner = _with_levels(component, level)
    if owner is None:
        size = np.bincount(component.member_class, minlength=classes)
        supply, pools = _pooled_supply(component)
        owner = _with_levels(component, load_levels(supply, size, pools))
    assert owner is not None
    return owner


def _with_levels(component: Component, level: IntArray) -> Int32Array | None:
    """Return the best owners with every load in [level - 1, level], or None if there are none."""
    owner = None if component.crossing.any() else keep_and_deal(component, level)
    if owner is not None:
        return owner
    flows = _solve(component, level)
    return None if flows is None else _materialise(component, *flows)


def _pooled_supply(component: Component) -> tuple[IntArray, BoolArray]:
    """Combine topics with the same subscribers: int64[s] partitions, bool[c, s] eligible classes."""
    columns, which = merged_columns(component.subscribes)
    topics = component.subscribes.shape[1]
    per_topic = np.bincount(component.topic, minlength=topics)
    return np.bincount(which, weights=per_topic, minlength=columns.shape[1]).astype(np.int64), columns


def _layout(component: Component, level: IntArray) -> _Layout:
    allowed = lowest_subscribers(component.subscribes, level)
    sets, racks = component.crossing.shape
    signature_columns, signature = merged_columns(allowed)

    keys, lot = np.unique(component.topic.astype(np.int64) * sets + component.rack_set, return_inverse=True)
    pool_keys, lot_pool = np.unique(signature[keys // sets] * sets + keys % sets, return_inverse=True)
    pool_sets = pool_keys % sets
    kind_keys, kind = np.unique(
        component.member_class.astype(np.int64) * racks + component.member_rack, return_inverse=True
    )
    may = signature_columns[np.ix_(kind_keys // racks, pool_keys // sets)]
    kinds, pools = np.nonzero(may)

    members = len(component.member_class)
    owner_class = component.member_class[component.owner]
    keeps = (component.owner != NO_OWNER) & allowed[owner_class, component.topic]
    pair_keys, pair_of_kept, owned = np.unique(
        lot[keeps] * members + component.owner[keeps], return_inverse=True, return_counts=True
    )
    pair_of = np.full(len(lot), NO_OWNER, dtype=np.int64)
    pair_of[keeps] = pair_of_kept
    pair_lot = pair_keys // members
    return _Layout(
        lot=lot,
        lot_size=np.bincount(lot, minlength=len(keys)),
        lot_pool=lot_pool,
        pool_sets=pool_sets,
        pool_kind=(pools, kinds),
        kind=kind,
        kind_rack=kind_keys % racks,
        pair_of=pair_of,
        pair=(pair_lot, pair_keys % members, owned),
        pair_rack_set=keys[pair_lot] % sets,
    )


def _solve(component: Component, level: IntArray) -> tuple[_Layout, IntArray, IntArray, IntArray] | None:
    """Return the flow with every load in [level - 1, level], or None if there is none.

    Returns the layout and the flows owned pair -> member, pool -> kind, kind -> member.
    """
    from ortools.graph.python.min_cost_flow import SimpleMinCostFlow

    layout = _layout(component, level)
    partitions, members = len(component.topic), len(component.member_class)
    lots, pools, kinds = len(layout.lot_size), len(layout.pool_sets), len(layout.kind_rack)
    first_pool, first_kind = lots, lots + pools
    first_member = first_kind + kinds
    sink = first_member + members
    pair_lot, pair_member, owned = layout.pair
    exchange_pool, exchange_kind = layout.pool_kind
    crossing = component.crossing
    cross_cost = partitions + 1
    highest = level[component.member_class]
    least = np.maximum(highest - 1, 0)
    member_nodes = np.arange(first_member, sink)
    tails = (pair_lot, np.arange(lots), exchange_pool + first_pool, layout.kind + first_kind, member_nodes)
    heads = (
        pair_member + first_member,
        layout.lot_pool + first_pool,
        exchange_kind + first_kind,
        member_nodes,
        np.full(members, sink),
    )
    capacities = (owned, layout.lot_size, np.full(len(exchange_pool), partitions), highest, highest - least)
    costs = (
        crossing[layout.pair_rack_set, component.member_rack[pair_member]] * cross_cost,
        np.ones(lots),
        crossing[layout.pool_sets[exchange_pool], layout.kind_rack[exchange_kind]] * cross_cost,
        np.zeros(members),
        np.zeros(members),
    )
    demand = partitions - int(least.sum())
    if demand < 0:
        return None
    graph = SimpleMinCostFlow()
    graph.add_arcs_with_capacity_and_unit_cost(
        np.concatenate(tails).astype(np.int32),
        np.concatenate(heads).astype(np.int32),
        np.concatenate(capacities).astype(np.int64),
        np.concatenate(costs).astype(np.int64),
    )
    graph.set_nodes_supplies(
        np.concatenate((np.arange(lots), member_nodes, [sink])).astype(np.int32),
        np.concatenate((layout.lot_size, -least, [-demand])).astype(np.int64),
    )
    status = graph.solve()
    if status != graph.OPTIMAL:
        assert status == graph.INFEASIBLE
        return None
    flows = np.asarray(graph.flows(np.arange(graph.num_arcs(), dtype=np.int32)), dtype=np.int64)
    ends = np.cumsum([len(part) for part in tails])
    return layout, flows[: ends[0]], flows[ends[1] : ends[2]], flows[ends[2] : ends[3]]


def _materialise(
    component: Component, layout: _Layout, kept: IntArray, exchanged: IntArray, received: IntArray
) -> Int32Array:
    """Convert amounts to partitions: the lowest owned ones are kept, the others assigned in circles."""
    target = np.full(len(component.topic), NO_OWNER, dtype=np.int32)
    candidates = np.flatnonzero(layout.pair_of != NO_OWNER)
    candidates = candidates[np.argsort(layout.pair_of[candidates], kind="stable")]
    staying = candidates[ranks_within(layout.pair[2]) < np.repeat(kept, layout.pair[2])]
    target[staying] = component.owner[staying]

    free = np.flatnonzero(target == NO_OWNER)
    free = free[np.argsort(layout.lot_pool[layout.lot[free]], kind="stable")]
    pools, kinds = layout.pool_kind
    by_pool = np.lexsort((kinds, pools))
    taken_by = deal(kinds[by_pool].astype(np.int32), exchanged[by_pool], pools[by_pool])
    order = np.lexsort((free, taken_by))
    members = np.argsort(layout.kind, kind="stable").astype(np.int32)
    target[free[order]] = deal(members, received[members], layout.kind[members])
    return target
