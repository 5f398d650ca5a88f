"""Exchange of all units between alike members, to move less without a change of loads."""

import numpy as np

from assignors.weighted.instance import Instance
from coordinator_core.model import Int32Array

_RANGE = 1 << 30


def keep_most(instance: Instance, start: Int32Array) -> Int32Array:
    """int32[U]: the assignment with the loads of alike members exchanged so that the least weight moves.

    Exact for each set of members that may own the same units and have the same capacity: a linear
    assignment of loads to members.
    """
    owner = start.copy()
    for alike in alike_members(instance):
        _deal(instance, owner, alike)
    return owner


def in_falling_order(instance: Instance, start: Int32Array) -> Int32Array:
    """int32[U]: the assignment with the loads of alike members in falling order."""
    load = instance.loads(start)
    mate = np.arange(len(load), dtype=np.int32)
    for alike in alike_members(instance):
        mate[alike[np.argsort(-load[alike], kind="stable")]] = alike
    dealt: Int32Array = mate[start]
    return dealt


def alike_members(instance: Instance) -> list[Int32Array]:
    """Return the sets of two or more members that may own the same units and have the same capacity."""
    packed = np.packbits(instance.allowed, axis=0).T
    groups: dict[tuple[bytes, float], list[int]] = {}
    for member, capacity in enumerate(instance.capacity.tolist()):
        groups.setdefault((packed[member].tobytes(), capacity), []).append(member)
    return [np.array(g, dtype=np.int32) for g in groups.values() if len(g) > 1]


def _deal(instance: Instance, owner: Int32Array, alike: Int32Array) -> None:
    from ortools.graph.python.linear_sum_assignment import SimpleLinearSumAssignment

    place = np.full(len(instance.capacity), -1, dtype=np.int32)
    place[alike] = np.arange(len(alike), dtype=np.int32)
    units = np.flatnonzero(place[owner] >= 0)
    if not len(units):
        return
    slot = place[owner[units]]
    cost = np.zeros((len(alike), len(alike)))
    total = max(instance.total, 1e-300)
    placed = instance.moved[units][:, alike] / total * _RANGE + instance.moved_count[units][:, alike]
    if instance.crossing is not None:
        placed = placed + instance.crossing[units][:, alike] * (2.0 * _RANGE)
    np.add.at(cost, slot, placed)
    solver = SimpleLinearSumAssignment()
    rows, columns = np.indices(cost.shape)
    whole = np.round(cost).astype(np.int64)
    solver.add_arcs_with_cost(rows.ravel().astype(np.int32), columns.ravel().astype(np.int32), whole.ravel())
    status = solver.solve()
    assert status == solver.OPTIMAL
    mate = np.array([solver.right_mate(i) for i in range(len(alike))], dtype=np.int32)
    owner[units] = alike[mate[slot]]
