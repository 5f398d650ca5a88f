"""Improvement of an assignment by moves of a unit, and exchanges of two, that make loads more even."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from assignors.weighted.instance import SAME, Instance
from coordinator_core.assigning.problem import BoolArray, FloatArray
from coordinator_core.model import Int32Array

CELLS_PER_SECOND = 1.2e7
"""The exchanges that are evaluated per second of the time limit."""

_MOST_EXCHANGES = 1 << 21
"""The limit of exchanges in one step, because of memory; of more, an even sample is evaluated."""


@dataclass
class Work:
    """The remaining work in evaluated exchanges, which is the same on every machine."""

    cells: float

    @property
    def done(self) -> bool:
        return self.cells <= 0


def even_out(
    instance: Instance,
    start: Int32Array,
    work: Work,
    *,
    cost: FloatArray | None = None,
    budget: float = np.inf,
    movable: BoolArray | None = None,
) -> Int32Array:
    """int32[U]: an assignment whose sum of squared relative loads no move or exchange reduces.

    Only moves that leave the receiver below the former load of the giver count, so that the largest load
    never grows. The search starts at the most loaded member, and again after each improvement. ``cost``
    float64[U, M] is limited by `budget`, if the start is within it. Units that are not ``movable``, bool[U],
    stay where they are. The search ends with the work.
    """
    owner, load = start.copy(), instance.loads(start)
    movable = np.ones(len(owner), dtype=np.bool_) if movable is None else movable
    spent = 0.0 if cost is None else float(cost[np.arange(len(owner)), owner].sum())
    tried = _without(movable, owner, len(load))
    while not work.done:
        relative = np.where(tried, -1.0, load / instance.capacity)
        source = int(relative.argmax())
        if relative[source] <= 0:
            break
        found = _best(instance, owner, load, source, work, cost, budget - spent, movable)
        if found is None:
            tried[source] = True
            continue
        unit, target, other = found
        if cost is not None:
            spent += float(cost[unit, target] - cost[unit, source])
            if other >= 0:
                spent += float(cost[other, source] - cost[other, target])
        shifted = instance.weight[unit] - (instance.weight[other] if other >= 0 else 0.0)
        owner[unit] = target
        if other >= 0:
            owner[other] = source
        load[source] -= shifted
        load[target] += shifted
        tried = _without(movable, owner, len(load))
    return owner


def _without(movable: BoolArray, owner: Int32Array, members: int) -> BoolArray:
    """bool[M]: the members that have no movable unit."""
    none: BoolArray = np.bincount(owner[movable], minlength=members) == 0
    return none


def _best(
    instance: Instance,
    owner: Int32Array,
    load: FloatArray,
    source: int,
    work: Work,
    cost: FloatArray | None,
    left: float,
    movable: BoolArray,
) -> tuple[int, int, int] | None:
    """Return the best unit to move, its receiver, and the unit that comes back (-1 for none)."""
    mine = np.flatnonzero((owner == source) & movable)
    work.cells -= (len(mine) + 1) * len(load)
    best: tuple[float, int, int, int] | None = None
    weight = instance.weight
    # moves
    shift = np.broadcast_to(weight[mine][:, None], (len(mine), len(load)))
    targets = np.arange(len(load))
    fits = instance.allowed[mine] & (targets != source)
    if cost is not None:
        fits = fits & (cost[mine] - cost[mine, source][:, None] <= left + SAME)
    gain = _gains(instance, load, source, shift, targets, fits)
    if gain.size:
        at = int(gain.argmax())
        if gain.flat[at] > 0:
            row, column = divmod(at, gain.shape[1])
            best = float(gain.flat[at]), int(mine[row]), column, -1
    # exchanges
    others = np.flatnonzero((owner != source) & movable)
    others = others[instance.allowed[others, source]]
    others = others[:: 1 + len(mine) * len(others) // _MOST_EXCHANGES]
    work.cells -= len(mine) * len(others)
    if len(others) and len(mine):
        homes = owner[others]
        shift = weight[mine][:, None] - weight[others][None, :]
        fits = (shift > 0) & instance.allowed[mine][:, homes]
        if cost is not None:
            extra = cost[mine][:, homes] - cost[mine, source][:, None]
            extra = extra + (cost[others, source] - cost[others, homes])[None, :]
            fits &= extra <= left + SAME
        gain = _gains(instance, load, source, shift, homes, fits)
        at = int(gain.argmax())
        if gain.flat[at] > (best[0] if best else 0.0):
            row, column = divmod(at, gain.shape[1])
            best = float(gain.flat[at]), int(mine[row]), int(homes[column]), int(others[column])
    return None if best is None else best[1:]


def _gains(
    instance: Instance,
    load: FloatArray,
    source: int,
    shift: FloatArray,
    targets: NDArray[np.integer],
    fits: BoolArray,
) -> FloatArray:
    """float64, the shape of `shift`: the reduction of the sum of squares, or 0."""
    capacity = instance.capacity
    here, room = load[source], capacity[source]
    there, rooms = load[targets][None, :], capacity[targets][None, :]
    after = (there + shift) / rooms
    gain = (2 * here - shift) * shift / room**2 - (2 * there + shift) * shift / rooms**2
    least = SAME * (here / room) ** 2
    usable = fits & (gain > least) & (after < here / room * (1 - 1e-12))
    return np.where(usable, gain, 0.0)
