"""First assignments: the heaviest unit first, each to the member with the least relative load afterwards."""

import numpy as np

from assignors.weighted.instance import Instance
from coordinator_core.assigning.problem import FloatArray
from coordinator_core.model import NO_OWNER, Int32Array


def largest_first(instance: Instance) -> Int32Array:
    """int32[U]: an assignment that ignores owners (Graham's largest processing time first)."""
    owner = np.full(len(instance.weight), NO_OWNER, dtype=np.int32)
    place(instance, owner, np.zeros(len(instance.capacity)))
    return owner


def stay_home(instance: Instance) -> Int32Array:
    """int32[U]: each unit at its `home`; units without an owner go to the member with the least load."""
    owner = instance.home.copy()
    place(instance, owner, instance.kept_loads.copy())
    return owner


def place(instance: Instance, owner: Int32Array, load: FloatArray) -> None:
    """Place the units that have no owner yet, heaviest first; changes `owner` and `load` in place.

    Ties go to the member with fewer units, then to the first.
    """
    waiting = np.flatnonzero(owner == NO_OWNER)
    count = np.bincount(owner[owner != NO_OWNER], minlength=len(load)).astype(np.float64)
    for unit in waiting[np.argsort(-instance.weight[waiting], kind="stable")].tolist():
        weight = instance.weight[unit]
        after = (load + weight) / instance.capacity
        after[~instance.allowed[unit]] = np.inf
        tied = np.flatnonzero(after <= after.min() * (1 + 1e-12))
        member = int(tied[count[tied].argmin()])
        owner[unit] = member
        load[member] += weight
        count[member] += 1
