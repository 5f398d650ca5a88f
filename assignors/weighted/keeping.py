"""Assignments under a level in which members keep their units, and a bound of the moves."""

from heapq import heapify, heappop, heappush

import numpy as np

from assignors.weighted.instance import SAME, Instance
from assignors.weighted.local_search import Work, even_out
from assignors.weighted.shedding import fewest_above, shed_to
from coordinator_core.assigning.flow.fractional import sums_at
from coordinator_core.assigning.problem import FloatArray
from coordinator_core.model import NO_OWNER, Int32Array


def keep_under(instance: Instance, level: float, work: Work) -> Int32Array:
    """int32[U]: an assignment with few moves whose largest load is under the level, if one is found.

    Members above the level give up the fewest units. These units and the units without an owner are placed,
    the heaviest first. A unit that fits nowhere takes the place of a lighter unit, which is placed next: so
    each move fills the room of a member. Then the units that are not at home are evened out.
    """
    if len(instance.capacity) == 1:
        return np.zeros(len(instance.weight), dtype=np.int32)
    return settled(instance, _placed_under(instance, level), work)


def settled(instance: Instance, start: Int32Array, work: Work) -> Int32Array:
    """int32[U]: the assignment without idle members, and with the units that are not at home evened out.

    They are not, if that would take the only unit of a member.
    """
    owner = start.copy()
    fill_idle(instance, owner)
    away = owner != instance.home
    even = even_out(instance, owner, work, cost=instance.placing, budget=instance.placed(owner), movable=away)
    return owner if instance.worth(even).idle > instance.worth(owner).idle else even


def _placed_under(instance: Instance, level: float) -> Int32Array:
    """int32[U]: an assignment. No unit is displaced twice, because the waiting units only get lighter."""
    owner = shed_to(instance, level, by_count=True)
    placed = owner != NO_OWNER
    room = level * instance.capacity * (1 + SAME)
    room -= sums_at(owner[placed], instance.weight[placed], len(instance.capacity))
    waiting = [(-float(instance.weight[u]), u) for u in np.flatnonzero(~placed).tolist()]
    heapify(waiting)
    while waiting:
        unit = heappop(waiting)[1]
        after = np.where(instance.allowed[unit], (room - instance.weight[unit]) / instance.capacity, -np.inf)
        member = int(after.argmax())
        if after[member] < 0:
            for lighter in _displaced(instance, owner, room, unit):
                member = int(owner[lighter])
                owner[lighter] = NO_OWNER
                room[member] += instance.weight[lighter]
                heappush(waiting, (-float(instance.weight[lighter]), lighter))
        owner[unit] = member
        room[member] -= instance.weight[unit]
    return owner


def _displaced(instance: Instance, owner: Int32Array, room: FloatArray, unit: int) -> list[int]:
    """Return lighter units of one member that leave enough room for a unit, or an empty list.

    A unit needs about as many moves as members whose room it fills. The lightest single unit counts if it
    exceeds what is needed by less than the mean room, and otherwise the units of the member whose units need
    the fewest moves.
    """
    weight = instance.weight
    lighter = instance.allowed[unit][owner] & (owner != NO_OWNER) & (weight < weight[unit])
    usual = float(np.maximum(room, 0.0).sum()) / max(int((room > 0).sum()), 1)
    needed = weight[unit] - room
    best: list[int] = []
    least = np.inf
    single = np.flatnonzero(lighter & (weight >= needed[owner]))
    if len(single):
        one = int(single[weight[single].argmin()])
        best, least = [one], float(weight[one])
        if least <= needed[owner[one]] + usual:
            return best
    units = np.flatnonzero(lighter)
    units = units[np.lexsort((-weight[units], owner[units]))]
    for mine in np.split(units, np.flatnonzero(np.diff(owner[units])) + 1):
        if len(mine) and weight[mine].sum() >= needed[owner[mine[0]]]:
            given = mine[fewest_above(weight[mine], float(needed[owner[mine[0]]]))]
            moves = float(np.maximum(weight[given], usual).sum())
            if moves < least:
                best, least = given.tolist(), moves
    return best


def fill_idle(instance: Instance, owner: Int32Array) -> None:
    """Give a unit to every idle member (see `Instance.idle`), in place.

    Of the units with the fewest moves, the one that reduces the sum of squares most.
    """
    load = instance.loads(owner)
    for member in np.flatnonzero(np.bincount(owner, minlength=len(load)) == 0).tolist():
        gain = instance.gains(owner, load / instance.capacity, member)
        units = np.flatnonzero(gain > 0)
        if not len(units):
            continue
        extra = instance.placing[units, member] - instance.placing[units, owner[units]]
        units = units[extra == extra.min()]
        unit = int(units[gain[units].argmax()])
        load[owner[unit]] -= instance.weight[unit]
        load[member] += instance.weight[unit]
        owner[unit] = member


def fewest_moves(instance: Instance, level: float) -> int:
    """Return a lower bound of the moved partitions if no load is above the level.

    Members above the level give up at least their heaviest units. The members with the most room take what
    they give up and the units without an owner, each of them at least one unit.
    """
    excess = instance.kept_loads - level * instance.capacity * (1 + SAME)
    given = 0
    for member in np.flatnonzero(excess > 0).tolist():
        falling = -np.sort(-instance.weight[instance.home == member])
        given += int(np.searchsorted(np.cumsum(falling), excess[member])) + 1
    free = instance.home == NO_OWNER
    wanted = float(instance.weight[free].sum() + excess[excess > 0].sum())
    rooms = np.cumsum(-np.sort(excess[excess < 0]))
    takers = int(np.searchsorted(rooms, wanted * (1 - SAME))) + 1 if wanted > 0 else 0
    leaving = max(given, min(takers, len(rooms)) - int(free.sum()), 0)
    return int(instance.moved_count.min(axis=1).sum()) + (leaving if _all_or_nothing(instance) else 0)


def _all_or_nothing(instance: Instance) -> bool:
    """Whether each unit moves another partition if it leaves its home."""
    units = np.flatnonzero(instance.home != NO_OWNER)
    at_home = instance.moved_count[units, instance.home[units]]
    elsewhere = instance.moved_count[units].copy()
    elsewhere[np.arange(len(units)), instance.home[units]] = np.inf
    return bool((elsewhere.min(axis=1, initial=np.inf) >= at_home + 1).all())
