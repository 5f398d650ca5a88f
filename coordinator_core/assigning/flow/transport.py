"""Balance, then racks, then fewest moves, for different subscriptions: one min-cost flow.

Partitions of one topic and one set of replica racks are a *lot*; lots that the same classes may own are a
*pool*; members of one class and rack are a *kind*. A partition flows from its lot to its previous owner
for nothing, or through pool and kind to any member at the cost of a move; crossing racks costs more than
all moves together. Loads are bound to the levels of `levels`. The flow takes longer than what surrounds it,
which therefore has plain lists: small groups are many, and arrays would cost them more than the flow.
"""

from collections.abc import Iterator, Sequence
from itertools import chain, repeat
from typing import NamedTuple

import numpy as np

from coordinator_core.assigning.flow.components import Component, lowest_subscribers, merged_columns
from coordinator_core.assigning.flow.dealing import IntArray
from coordinator_core.assigning.flow.keeping import keep_and_deal
from coordinator_core.assigning.flow.levels import load_levels
from coordinator_core.assigning.problem import BoolArray
from coordinator_core.model import NO_OWNER, Int32Array


class _Layout(NamedTuple):
    """Lots, pools, kinds and owned pairs of a component, for one choice of eligible owners."""

    lot: list[int]  # of each partition
    lot_size: list[int]
    lot_pool: list[int]
    pool_sets: list[int]  # rack set of each pool
    exchange: list[tuple[int, int]]  # the pairs of kind and pool that may exchange, ascending
    kind: list[int]  # of each member
    kind_rack: list[int]
    pair_of: list[int]  # of each partition whose owner may keep it, else -1
    pair: list[tuple[int, int]]  # lot and member
    pair_size: list[int]  # how many partitions of the lot the member owns
    pair_rack_set: list[int]


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
    return None if flows is None else _materialise(*flows)


def _pooled_supply(component: Component) -> tuple[IntArray, BoolArray]:
    """Combine topics with the same subscribers: int64[s] partitions, bool[c, s] eligible classes."""
    columns, which = merged_columns(component.subscribes)
    topics = component.subscribes.shape[1]
    per_topic = np.bincount(component.topic, minlength=topics)
    return np.bincount(which, weights=per_topic, minlength=columns.shape[1]).astype(np.int64), columns


def _layout(component: Component, level: IntArray) -> _Layout:
    allowed = lowest_subscribers(component.subscribes, level)
    sets, racks = component.crossing.shape
    columns, signature = merged_columns(allowed)
    topics, classes = component.topic.tolist(), component.member_class.tolist()
    signatures, may, allowed_topics = signature.tolist(), columns.tolist(), allowed.tolist()

    lots, lot = _numbered([t * sets + r for t, r in zip(topics, component.rack_set.tolist(), strict=True)])
    pools, lot_pool = _numbered([signatures[key // sets] * sets + key % sets for key in lots])
    kinds, kind = _numbered(
        [c * racks + r for c, r in zip(classes, component.member_rack.tolist(), strict=True)]
    )

    members = len(classes)
    owners = component.owner.tolist()
    kept_key = [
        at * members + owner if owner != NO_OWNER and allowed_topics[classes[owner]][topic] else NO_OWNER
        for at, owner, topic in zip(lot, owners, topics, strict=True)
    ]
    pairs, pair_of = _numbered([key for key in kept_key if key != NO_OWNER])
    place = iter(pair_of)
    return _Layout(
        lot=lot,
        lot_size=_counts(lot, len(lots)),
        lot_pool=lot_pool,
        pool_sets=[key % sets for key in pools],
        exchange=[
            (k, p)
            for k, of_kind in enumerate(kinds)
            for p, of_pool in enumerate(pools)
            if may[of_kind // racks][of_pool // sets]
        ],
        kind=kind,
        kind_rack=[key % racks for key in kinds],
        pair_of=[NO_OWNER if key == NO_OWNER else next(place) for key in kept_key],
        pair=[divmod(key, members) for key in pairs],
        pair_size=_counts(pair_of, len(pairs)),
        pair_rack_set=[lots[key // members] % sets for key in pairs],
    )


def _numbered(keys: Sequence[int]) -> tuple[list[int], list[int]]:
    """Return the distinct keys, ascending, and the number of each key."""
    distinct = sorted(set(keys))
    number = {key: at for at, key in enumerate(distinct)}
    return distinct, [number[key] for key in keys]


def _counts(numbers: Sequence[int], size: int) -> list[int]:
    counts = [0] * size
    for number in numbers:
        counts[number] += 1
    return counts


def _solve(component: Component, level: IntArray) -> tuple[_Layout, list[int], list[int], list[int]] | None:
    """Return the flow with every load in [level - 1, level], or None if there is none.

    Returns the layout and the flows owned pair -> member, pool -> kind, kind -> member.
    """
    from ortools.graph.python.min_cost_flow import SimpleMinCostFlow

    highest = level[component.member_class].tolist()
    least = [max(load - 1, 0) for load in highest]
    partitions, members = len(component.topic), len(highest)
    demand = partitions - sum(least)
    if demand < 0:
        return None
    layout = _layout(component, level)
    lots, pools, kinds = len(layout.lot_size), len(layout.pool_sets), len(layout.kind_rack)
    first_pool, first_kind = lots, lots + pools
    first_member = first_kind + kinds
    sink = first_member + members
    member_nodes = range(first_member, sink)
    crossing, member_rack = component.crossing.tolist(), component.member_rack.tolist()
    cross_cost = partitions + 1
    tails = (
        [lot for lot, _ in layout.pair],
        range(lots),
        [first_pool + pool for _, pool in layout.exchange],
        [first_kind + kind for kind in layout.kind],
        member_nodes,
    )
    heads = (
        [first_member + member for _, member in layout.pair],
        [first_pool + pool for pool in layout.lot_pool],
        [first_kind + kind for kind, _ in layout.exchange],
        member_nodes,
        repeat(sink, members),
    )
    capacities = (
        layout.pair_size,
        layout.lot_size,
        repeat(partitions, len(layout.exchange)),
        highest,
        [high - low for high, low in zip(highest, least, strict=True)],
    )
    costs = (
        [
            crossing[rack_set][member_rack[member]] * cross_cost
            for rack_set, (_, member) in zip(layout.pair_rack_set, layout.pair, strict=True)
        ],
        repeat(1, lots),
        [crossing[layout.pool_sets[p]][layout.kind_rack[k]] * cross_cost for k, p in layout.exchange],
        repeat(0, 2 * members),
    )
    supplies = [*layout.lot_size, *(-low for low in least), -demand]
    graph = SimpleMinCostFlow()
    graph.add_arcs_with_capacity_and_unit_cost(
        np.array([*chain.from_iterable(tails)], dtype=np.int32),
        np.array([*chain.from_iterable(heads)], dtype=np.int32),
        np.array([*chain.from_iterable(capacities)], dtype=np.int64),
        np.array([*chain.from_iterable(costs)], dtype=np.int64),
    )
    graph.set_nodes_supplies(
        np.array([*range(lots), *member_nodes, sink], dtype=np.int32), np.array(supplies, dtype=np.int64)
    )
    status = graph.solve()
    if status != graph.OPTIMAL:
        assert status == graph.INFEASIBLE
        return None
    flows: list[int] = graph.flows(np.arange(graph.num_arcs(), dtype=np.int32)).tolist()
    end_kept = len(layout.pair)
    exchanged = end_kept + lots
    received = exchanged + len(layout.exchange)
    return layout, flows[:end_kept], flows[exchanged:received], flows[received : received + members]


def _materialise(layout: _Layout, kept: list[int], exchanged: list[int], received: list[int]) -> Int32Array:
    """Convert amounts to partitions: the lowest owned ones are kept, the others assigned in circles."""
    target = [NO_OWNER] * len(layout.lot)
    kept = list(kept)
    of_pool: list[list[int]] = [[] for _ in layout.pool_sets]
    for partition, (pair, lot) in enumerate(zip(layout.pair_of, layout.lot, strict=True)):
        if pair != NO_OWNER and kept[pair]:
            kept[pair] -= 1
            target[partition] = layout.pair[pair][1]
        else:
            of_pool[layout.lot_pool[lot]].append(partition)

    takers: list[list[tuple[int, int]]] = [[] for _ in of_pool]
    for (kind, pool), amount in zip(layout.exchange, exchanged, strict=True):
        takers[pool].append((kind, amount))
    of_kind: list[list[int]] = [[] for _ in layout.kind_rack]
    for partitions, of_kinds in zip(of_pool, takers, strict=True):
        for partition, kind in zip(partitions, _in_circles(of_kinds), strict=True):
            of_kind[kind].append(partition)
    receivers: list[list[tuple[int, int]]] = [[] for _ in of_kind]
    for member, (kind, amount) in enumerate(zip(layout.kind, received, strict=True)):
        receivers[kind].append((member, amount))
    for partitions, members in zip(of_kind, receivers, strict=True):
        for partition, member in zip(sorted(partitions), _in_circles(members), strict=True):
            target[partition] = member
    return np.array(target, dtype=np.int32)


def _in_circles(receivers: Sequence[tuple[int, int]]) -> Iterator[int]:
    """Yield each receiver as often as its amount says; they take turns."""
    left = [(receiver, amount) for receiver, amount in receivers if amount]
    while left:
        if len(left) == 1:
            yield from repeat(*left[0])
            return
        for receiver, _ in left:
            yield receiver
        left = [(receiver, amount - 1) for receiver, amount in left if amount > 1]
