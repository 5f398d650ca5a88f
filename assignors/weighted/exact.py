"""The best assignment of small instances, by enumeration of all assignments unit by unit.

Of assignments that differ by an exchange of equal units only, one is enumerated.
"""

import numpy as np
from numpy.typing import NDArray

from assignors.weighted.instance import SAME, Aim, Instance, less
from assignors.weighted.relabel import alike_members
from coordinator_core.assigning.problem import FloatArray
from coordinator_core.model import Int32Array

MOST_CELLS = 3_000_000
"""The limit of partial assignments times members; larger instances are not enumerated.

With `moves_first`, the limit is for the partial assignments of all lengths together, because the number of
those with few moves hardly grows with their length.
"""

MOST_PAIRS = 100_000
"""The limit of units times members."""

_Indices = NDArray[np.intp]


def best_of_all(instance: Instance, aim: Aim, known: Int32Array) -> Int32Array | None:
    """int32[U]: the best assignment, or None if there are too many partial assignments.

    ``known`` is an assignment within the budget. Partial assignments with a worse first key are dropped, and
    with `moves_first` those that move more than ``known``, or as much and are less even.
    """
    units, members = instance.allowed.shape
    if not units or members == 1:
        return np.zeros(units, dtype=np.int32)
    if units * members > MOST_PAIRS:
        return None
    order, repeated = _in_order(instance, instance.moved, instance.moved_count, instance.crossing)
    worth, cost = instance.worth(known), aim.cost(instance)
    limit, budget = aim.keys(worth)[0] * (1 + SAME), aim.budget * (1 + SAME) + SAME
    pruned = aim.moves_first and not worth.idle and less(worth.largest, aim.floor) <= 0
    most = instance.placed(known) + 0.5 if pruned else np.inf
    load, spent, placing = np.zeros((1, members)), np.zeros(1), np.zeros(1)
    chosen = np.zeros((1, 0), dtype=np.int8 if members < 128 else np.int16)
    cells = 0
    for place, unit in enumerate(order.tolist()):
        grown = _grown(instance, load, unit)
        if grown is None:
            return None
        parent, member, after = grown
        cells += len(parent) * members
        if aim.moves_first and cells > MOST_CELLS:
            return None
        spent = spent[parent] + cost[unit, member]
        placing = placing[parent] + instance.placing[unit, member]
        left = order[place + 1 :]
        least = instance.least_placing[left].sum()
        fits = (after / instance.capacity[member] <= limit) & (spent <= budget) & (placing + least <= most)
        if repeated[place]:
            fits &= chosen[parent, -1] <= member
        parent, member = parent[fits], member[fits]
        load, spent, placing = _loaded(load, parent, member, after[fits]), spent[fits], placing[fits]
        chosen = np.column_stack((chosen[parent], member.astype(chosen.dtype)))
        if pruned:
            kept = placing + least < most - 1
            tied = np.flatnonzero(~kept)
            squares = _least_squares(load[tied], instance.capacity, float(instance.weight[left].sum()))
            kept[tied] = squares <= worth.squares * (1 + SAME)
            load, spent, placing, chosen = load[kept], spent[kept], placing[kept], chosen[kept]
    if not len(load):
        return None
    owner = np.empty((len(chosen), units), dtype=np.int32)
    owner[:, order] = chosen
    best: Int32Array = owner[_first_of_the_best(instance, aim, load / instance.capacity, owner)]
    return best


def least_of_all(instance: Instance, known: float) -> float | None:
    """Return the least largest relative load, or None if there are too many partial assignments.

    ``known`` is the largest relative load of an assignment. Of assignments that differ by an exchange of
    alike members only, one is enumerated.
    """
    units, members = instance.allowed.shape
    if units * members > MOST_PAIRS:
        return None
    order, repeated = _in_order(instance)
    before = np.full(members, -1)
    for alike in alike_members(instance):
        before[alike[1:]] = alike[:-1]
    load, last = np.zeros((1, members)), np.zeros(1, dtype=np.intp)
    for place, unit in enumerate(order.tolist()):
        grown = _grown(instance, load, unit)
        if grown is None:
            return None
        parent, member, after = grown
        fits = after / instance.capacity[member] < known * (1 - SAME)
        fits &= (before[member] < 0) | (load[parent, before[member]] > 0)
        if repeated[place]:
            fits &= last[parent] <= member
        parent, last = parent[fits], member[fits]
        load = _loaded(load, parent, last, after[fits])
    return float((load / instance.capacity).max(axis=1).min(initial=known))


def fewest_of_all(instance: Instance, level: float, known: int) -> int | None:
    """Return the fewest moved partitions under a level, or None if there are too many partial assignments.

    ``known`` is the moved partitions of an assignment under the level. Partial assignments that move as many
    are dropped.
    """
    units, members = instance.allowed.shape
    if units * members > MOST_PAIRS:
        return None
    order, repeated = _in_order(instance, instance.moved_count)
    least = np.where(instance.allowed, instance.moved_count, np.inf).min(axis=1)
    load, moved, last = np.zeros((1, members)), np.zeros(1), np.zeros(1, dtype=np.intp)
    cells = 0
    for place, unit in enumerate(order.tolist()):
        grown = _grown(instance, load, unit)
        if grown is None:
            return None
        parent, member, after = grown
        cells += len(parent) * members
        if cells > MOST_CELLS:
            return None
        moved = moved[parent] + instance.moved_count[unit, member]
        fits = after / instance.capacity[member] <= level * (1 + SAME)
        fits &= moved + least[order[place + 1 :]].sum() < known - 0.5
        if repeated[place]:
            fits &= last[parent] <= member
        parent, last, moved = parent[fits], member[fits], moved[fits]
        load = _loaded(load, parent, last, after[fits])
    return int(moved.min(initial=known))


def _in_order(instance: Instance, *figures: NDArray[np.generic] | None) -> tuple[Int32Array, list[bool]]:
    """Return the units, heaviest first, and whether each is equal to the one before.

    Equal units have the same weight, the same members, and equal rows of the figures, [U, M] each.
    """
    rows = [np.packbits(instance.allowed, axis=1), *(figure for figure in figures if figure is not None)]
    texts = [[row.tobytes() for row in figure] for figure in rows]
    seen: dict[tuple[object, ...], int] = {}
    equal = zip(instance.weight.tolist(), *texts, strict=True)
    kind = np.array([seen.setdefault(unit, len(seen)) for unit in equal])
    order = np.lexsort((kind, -instance.weight)).astype(np.int32)
    return order, [False, *(np.diff(kind[order]) == 0).tolist()]


def _grown(instance: Instance, load: FloatArray, unit: int) -> tuple[_Indices, _Indices, FloatArray] | None:
    """Return each partial assignment with each owner of the unit: the former, the latter, and its load."""
    able = np.flatnonzero(instance.allowed[unit])
    if len(load) * len(able) * load.shape[1] > MOST_CELLS:
        return None
    parent, member = np.repeat(np.arange(len(load)), len(able)), np.tile(able, len(load))
    return parent, member, load[parent, member] + instance.weight[unit]


def _loaded(load: FloatArray, parent: _Indices, member: _Indices, after: FloatArray) -> FloatArray:
    grown: FloatArray = load[parent]
    grown[np.arange(len(parent)), member] = after
    return grown


def _least_squares(load: FloatArray, capacity: FloatArray, rest: float) -> FloatArray:
    """float64[N]: bounds of the sum of squared relative loads, if the rest of the weight can be divided.

    ``load`` float64[N, M]. The bound is the Lagrangian dual for the level of an even load: every member is
    filled up to the level, and the weight that this takes beyond the rest counts at the price of the level.
    """
    area = capacity * capacity
    total = load.sum(axis=1) + rest
    level = total / area.sum()
    filled = np.maximum(load, level[:, None] * area)
    squares: FloatArray = (filled * filled) @ (1 / area) - 2 * level * (filled.sum(axis=1) - total)
    return squares


def _first_of_the_best(instance: Instance, aim: Aim, relative: FloatArray, owner: Int32Array) -> int:
    """Return the best assignment by the keys of `Aim`; of equal ones the one with the first members."""
    units = np.arange(owner.shape[1])
    moved, moved_count = (cost[units, owner].sum(axis=1) for cost in (instance.moved, instance.moved_count))
    squares = np.einsum("ij,ij->i", relative, relative)
    crossings = np.zeros(len(owner))
    if instance.crossing is not None:
        crossings = instance.crossing[units, owner].sum(axis=1).astype(np.float64)
    first = np.maximum(relative.max(axis=1), aim.floor) + aim.price * moved
    keys = [first, squares, crossings, moved, moved_count]
    if aim.moves_first:
        keys = [first, _idle(instance, relative, owner), crossings, moved_count, squares, moved]
    left = np.arange(len(owner))
    for key in keys:
        least = key[left].min()
        left = left[key[left] <= least * (1 + SAME) + SAME * SAME * instance.total]
    return int(left[np.lexsort(owner[left].T[::-1])[0]])


def _idle(instance: Instance, relative: FloatArray, owner: Int32Array) -> FloatArray:
    """float64[N]: the idle members of each assignment."""
    idle = np.zeros(len(owner))
    for at in np.flatnonzero((relative == 0).any(axis=1)).tolist():
        idle[at] = instance.idle(owner[at], relative[at])
    return idle
