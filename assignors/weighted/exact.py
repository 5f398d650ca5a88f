"""The best assignment of small instances, by enumeration of all assignments unit by unit."""

import numpy as np

from assignors.weighted.instance import SAME, Aim, Instance
from coordinator_core.assigning.problem import FloatArray
from coordinator_core.model import Int32Array

MOST_CELLS = 3_000_000
"""The limit of partial assignments times members; larger instances are not enumerated."""


def best_of_all(instance: Instance, aim: Aim, known: Int32Array) -> Int32Array | None:
    """int32[U]: the best assignment, or None if there are too many partial assignments.

    ``known`` is an assignment within the budget. Partial assignments with a worse first key are dropped.
    """
    units, members = instance.allowed.shape
    if not units:
        return np.zeros(0, dtype=np.int32)
    order = np.argsort(-instance.weight, kind="stable")
    limit = aim.keys(instance.worth(known))[0] * (1 + SAME)
    load, spent = np.zeros((1, members)), np.zeros(1)
    chosen = np.zeros((1, 0), dtype=np.int8 if members < 128 else np.int16)
    cost = aim.cost(instance)
    for unit in order.tolist():
        able = np.flatnonzero(instance.allowed[unit])
        if len(load) * len(able) * members > MOST_CELLS:
            return None
        parent = np.repeat(np.arange(len(load)), len(able))
        member = np.tile(able, len(load))
        after = load[parent, member] + instance.weight[unit]
        costs = spent[parent] + cost[unit, member]
        fits = after / instance.capacity[member] <= limit
        fits &= costs <= aim.budget * (1 + SAME) + SAME
        parent, member, after, spent = parent[fits], member[fits], after[fits], costs[fits]
        load = load[parent]
        load[np.arange(len(parent)), member] = after
        chosen = np.column_stack((chosen[parent], member.astype(chosen.dtype)))
    if not len(load):
        return None
    owner = np.empty((len(chosen), units), dtype=np.int32)
    owner[:, order] = chosen
    best: Int32Array = owner[_first_of_the_best(instance, aim, load / instance.capacity, owner)]
    return best


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
        keys = [first, crossings, moved, moved_count, squares]
    left = np.arange(len(owner))
    for key in keys:
        least = key[left].min()
        left = left[key[left] <= least * (1 + SAME) + SAME * SAME * instance.total]
    return int(left[np.lexsort(owner[left].T[::-1])[0]])
