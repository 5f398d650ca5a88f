"""Assignments with few moves: members shed only the units above a level, and these are assigned again."""

from math import ceil

import numpy as np

from assignors.weighted.greedy import place
from assignors.weighted.instance import SAME, Aim, Instance
from assignors.weighted.local_search import Work, even_out
from coordinator_core.assigning.flow.fractional import sums_at
from coordinator_core.assigning.problem import FloatArray
from coordinator_core.model import NO_OWNER, Int32Array

_STEPS = 1 << 15
"""The precision of the shed load, as a part of the load."""

_BISECTIONS = 30
_SLACKS = (0.0, 0.0005, 0.002, 0.005, 0.01, 0.03)
"""The levels to try, relative to the lowest one within the budget, because packing needs some room."""


def shed_to(instance: Instance, level: float, *, by_count: bool) -> Int32Array:
    """int32[U]: the homes of units, or -1 for units that a member sheds to reach the level.

    The shed units have little weight, or are few. Units that fit nowhere under the level stay, if the others
    suffice. Units without a home are -1, too.
    """
    chosen = fewest_above if by_count else _lightest
    owner = instance.home.copy()
    excess = instance.kept_loads - level * instance.capacity
    room = float(-excess.min(initial=0.0)) * (1 + SAME)
    for member in np.flatnonzero(excess > SAME * instance.kept_loads).tolist():
        mine = np.flatnonzero(owner == member)
        mine = mine[np.argsort(-instance.weight[mine], kind="stable")]
        light = mine[instance.weight[mine] <= room]
        if instance.weight[light].sum() >= excess[member]:
            mine = light
        owner[mine[chosen(instance.weight[mine], float(excess[member]))]] = NO_OWNER
    return owner


def fewest_above(weight: FloatArray, excess: float) -> list[int]:
    """Return positions in falling `weight`: of the heaviest, and of the lightest that suffices with them."""
    shed: list[int] = []
    rest = list(range(len(weight)))
    while rest and excess > 0:
        enough = [i for i in rest if weight[i] >= excess]
        shed.append(enough[-1] if enough else rest[0])
        excess -= weight[shed[-1]]
        rest.remove(shed[-1])
    return shed


def _lightest(weight: FloatArray, excess: float) -> list[int]:
    """Return the lightest sufficient set with the precision of `_STEPS`: subset sums as bits of integers."""
    step = float(weight.sum()) / _STEPS
    whole = np.floor(weight / step).astype(np.int64).tolist()
    wanted = ceil(excess / step - SAME)
    reached = [1]
    for amount in reversed(whole):  # the lightest first, so that of equal sums the lighter units are taken
        reached.append(reached[-1] | (reached[-1] << amount))
    sums = reached[-1] >> wanted
    if not sums:
        return list(range(len(weight)))
    left = wanted + (sums & -sums).bit_length() - 1
    shed: list[int] = []
    for position, before in enumerate(reversed(reached[:-1])):
        if left and not before >> left & 1:
            shed.append(position)
            left -= whole[position]
    return shed


def answers_within(instance: Instance, aim: Aim, work: Work) -> list[Int32Array]:
    """Return assignments with limited moves, for levels just above the lowest one within the budget."""
    cost = aim.cost(instance)
    units = np.arange(len(instance.weight))
    at_home = cost[units, instance.home]
    elsewhere = np.where(instance.allowed, cost, np.inf)
    homely = instance.home != NO_OWNER
    elsewhere[units[homely], instance.home[homely]] = np.inf
    away = elsewhere.min(axis=1)

    def least_cost(owner: Int32Array) -> float:
        return float(np.where(owner == NO_OWNER, away, at_home).sum())

    low = instance.bound_within(aim.budget if not aim.by_count else np.inf)
    high = float((instance.kept_loads / instance.capacity).max(initial=low))
    if low < high:
        for _ in range(_BISECTIONS):
            middle = (low + high) / 2
            if least_cost(shed_to(instance, middle, by_count=aim.by_count)) <= aim.budget:
                high = middle
            else:
                low = middle
    found = []
    for slack in _SLACKS:
        found.append(shed_and_place(instance, high * (1 + slack), aim, work))
        if work.done:
            break
    return found


def shed_and_place(instance: Instance, level: float, aim: Aim, work: Work) -> Int32Array:
    """int32[U]: the units above the level assigned again, and evened out within the budget."""
    owner = shed_to(instance, level, by_count=aim.by_count)
    placed = owner != NO_OWNER
    load = sums_at(owner[placed], instance.weight[placed], len(instance.capacity))
    place(instance, owner, load)
    return even_out(instance, owner, work, cost=aim.cost(instance), budget=aim.budget)


def go_home(instance: Instance, start: Int32Array, level: float) -> Int32Array:
    """int32[U]: the answer with units back at home that fit there under the level, heaviest first.

    A unit that returns makes room where it was, so units that did not fit are tried again.
    """
    owner, load = start.copy(), instance.loads(start)
    away = np.flatnonzero((owner != instance.home) & (instance.home != NO_OWNER))
    waiting = away[np.argsort(-instance.weight[away], kind="stable")].tolist()
    returned = True
    while returned:
        units, waiting, returned = waiting, [], False
        for unit in units:
            home, weight = instance.home[unit], instance.weight[unit]
            if load[home] + weight <= level * instance.capacity[home] * (1 + SAME):
                load[home] += weight
                load[owner[unit]] -= weight
                owner[unit] = home
                returned = True
            else:
                waiting.append(unit)
    return owner
