"""A weighted problem in dense arrays, and the figures of its assignments.

A *unit* is assigned as a whole: a partition, or with colocation the partitions of several topics with the
same number. U units, M members.
"""

from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from coordinator_core.assigning.flow.fractional import (
    heaviest_alone,
    least_level,
    pigeonhole,
    sums_at,
    within_moves,
)
from coordinator_core.assigning.problem import BoolArray, FloatArray, Problem, merged_rows
from coordinator_core.model import NO_OWNER, Int32Array

IntArray = NDArray[np.int64]

SAME = 1e-9
"""Loads with a smaller relative difference are equal."""


def weights_of(problem: Problem, *, counts: bool = False) -> FloatArray | None:
    """float64[P]: the weights, 1 if all are 0 or unknown; None if only the number of partitions counts.

    Equal weights of members without capacities are such a case, unless ``counts`` wants weights anyway.
    """
    weight, mine = problem.weights, problem.subscribed
    counts |= problem.capacity is not None
    if weight is None or not weight[mine].any():
        return np.ones(problem.index.size) if counts and len(mine) and problem.members else None
    return weight if counts or np.ptp(weight[mine]) > 0 else None


def capacities_of(problem: Problem) -> FloatArray:
    """float64[M]: the capacities, 1 if they are unknown."""
    return np.ones(len(problem.members)) if problem.capacity is None else problem.capacity


@dataclass(frozen=True, eq=False)
class Instance:
    """Units to assign to members.

    ``weight``   float64[U], each above 0;
    ``capacity`` float64[M];
    ``allowed``  bool[U, M], at least one member for every unit;
    ``moved``    float64[U, M]: the weight that changes owner if the member gets the unit;
    ``moved_count`` the same in partitions;
    ``crossing`` int32[U, M] or None: partitions that are then outside the racks of their replicas;
    ``home``     int32[U]: the allowed member with which least of the unit moves; -1 if none owns any.
    """

    weight: FloatArray
    capacity: FloatArray
    allowed: BoolArray
    moved: FloatArray
    moved_count: FloatArray
    crossing: Int32Array | None
    home: Int32Array

    @property
    def total(self) -> float:
        """Return the weight of all units."""
        return float(self.weight.sum())

    @cached_property
    def bound(self) -> float:
        """Return a lower bound of the largest relative load without a limit of moves."""
        allowed, rows = merged_rows(self.allowed)
        supply = sums_at(rows, self.weight, len(allowed))
        roomiest = np.where(allowed, self.capacity, 0.0).max(axis=1)
        return max(
            least_level(supply, self.capacity, allowed),
            heaviest_alone(self.weight, roomiest[rows]),
            pigeonhole(self.weight, self.capacity),
        )

    @cached_property
    def kept_loads(self) -> FloatArray:
        """float64[M]: the load of every member if nothing moves."""
        kept = self.home != NO_OWNER
        return sums_at(self.home[kept], self.weight[kept], len(self.capacity))

    @cached_property
    def attached_loads(self) -> FloatArray:
        """float64[M]: the part of `kept_loads` that counts as moved if it leaves the member."""
        kept = np.flatnonzero(self.home != NO_OWNER)
        home = self.home[kept]
        elsewhere = np.where(self.allowed[kept], self.moved[kept], np.inf)
        here = elsewhere[np.arange(len(kept)), home]
        elsewhere[np.arange(len(kept)), home] = np.inf
        attached = np.minimum(elsewhere.min(axis=1, initial=np.inf) - here, self.weight[kept])
        return sums_at(home, attached, len(self.capacity))

    @cached_property
    def placing(self) -> FloatArray:
        """float64[U, M]: the crossings and the moved partitions of each unit as one number, in this order."""
        if self.crossing is None:
            return self.moved_count
        placing: FloatArray = self.moved_count + self.crossing * (1 + self.moved_count.max(axis=1).sum())
        return placing

    def placed(self, owner: Int32Array) -> float:
        """Return the sum of `placing` of an assignment."""
        return float(self.placing[np.arange(len(owner)), owner].sum())

    @cached_property
    def least_placing(self) -> FloatArray:
        """float64[U]: the least `placing` of each unit with a member that may own it."""
        least: FloatArray = np.where(self.allowed, self.placing, np.inf).min(axis=1)
        return least

    def bound_within(self, weight: float) -> float:
        """Return the bound if at most so much weight may move."""
        return max(self.bound, within_moves(self.attached_loads, self.capacity, weight))

    def loads(self, owner: Int32Array) -> FloatArray:
        """float64[M]: the loads of an assignment."""
        return sums_at(owner, self.weight, len(self.capacity))

    def worth(self, owner: Int32Array) -> "Worth":
        """Return the figures of an assignment, given as the owner of each unit."""
        relative = self.loads(owner) / self.capacity
        units = np.arange(len(owner))
        return Worth(
            largest=float(relative.max(initial=0.0)),
            squares=float(relative @ relative),
            crossings=0 if self.crossing is None else int(self.crossing[units, owner].sum()),
            moved=float(self.moved[units, owner].sum()),
            moved_count=int(self.moved_count[units, owner].sum()),
            idle=self.idle(owner, relative),
        )

    def idle(self, owner: Int32Array, relative: FloatArray) -> int:
        """Return the members without a unit to which another member could give one of several.

        ``relative`` float64[M]: the relative loads.
        """
        empty = np.flatnonzero(np.bincount(owner, minlength=len(relative)) == 0)
        return sum(bool((self.gains(owner, relative, m) > 0).any()) for m in empty.tolist())

    def gains(self, owner: Int32Array, relative: FloatArray, member: int) -> FloatArray:
        """float64[U]: the reductions of the sum of squares if a member without a unit gets one, or 0.

        A unit counts if its owner has others, and if the member stays below the former load of the owner.
        """
        before, given = relative[owner], self.weight / self.capacity[member]
        gain = before**2 - (before - self.weight / self.capacity[owner]) ** 2 - given**2
        usable = self.allowed[:, member] & (np.bincount(owner) > 1)[owner] & (given < before * (1 - SAME))
        return np.where(usable & (gain > SAME * before**2), gain, 0.0)


class Worth(NamedTuple):
    """The figures of an assignment. Less is better."""

    largest: float
    squares: float
    crossings: int
    moved: float
    moved_count: int
    idle: int = 0


def less(first: float, second: float) -> int:
    """Return -1 if the first is less by more than rounding, 1 if it is more, and 0 if they are equal."""
    if abs(first - second) <= SAME * max(abs(first), abs(second)):
        return 0
    return -1 if first < second else 1


@dataclass(frozen=True)
class Aim:
    """The objective: assignments are compared by keys, in order, and less is better.

    The keys are the largest relative load, the sum of squares, crossings, moved weight and moved partitions.
    A largest load below ``floor`` counts as the floor. ``price`` is the cost of a moved unit of weight in
    largest load. With ``moves_first`` the keys are the largest relative load, idle members, crossings, moved
    partitions, the sum of squares and moved weight. At most ``budget`` may move, in weight, or ``by_count``
    in partitions.
    """

    floor: float = 0.0
    price: float = 0.0
    moves_first: bool = False
    budget: float = np.inf
    by_count: bool = False

    @property
    def is_limited(self) -> bool:
        """Whether moves do more than break ties."""
        return self.price > 0 or self.moves_first or self.budget < np.inf

    def cost(self, instance: Instance) -> FloatArray:
        """float64[U, M]: the costs that the budget limits."""
        return instance.moved_count if self.by_count else instance.moved

    def keys(self, worth: Worth) -> tuple[float, ...]:
        """Return the keys in order."""
        first = max(worth.largest, self.floor) + self.price * worth.moved
        if self.moves_first:
            return first, worth.idle, worth.crossings, worth.moved_count, worth.squares, worth.moved
        return first, worth.squares, worth.crossings, worth.moved, worth.moved_count

    def allows(self, worth: Worth) -> bool:
        """Whether an assignment is within the budget."""
        return less(worth.moved_count if self.by_count else worth.moved, self.budget) <= 0

    def prefers(self, one: Worth, other: Worth) -> bool:
        """Whether one assignment is better than the other."""
        for mine, its in zip(self.keys(one), self.keys(other), strict=True):
            if less(mine, its):
                return mine < its
        return False


def build_instance(
    problem: Problem, members: Int32Array, units: list[Int32Array], weight: FloatArray, *, racks: bool
) -> Instance:
    """Return the instance of some members (ascending) and of partitions that only they may own.

    ``units`` are lists of partitions that belong together and have the same subscribers; ``weight``
    float64[P] of all partitions of the problem.
    """
    partitions = np.concatenate(units)
    count = len(units)
    unit_of = np.repeat(np.arange(count), [len(unit) for unit in units])
    first = partitions[np.flatnonzero(np.diff(unit_of, prepend=-1))]
    of_class = problem.class_subscribes[:, problem.index.topic_of_every[first]].T
    allowed = of_class[:, problem.member_class[members]]
    place = np.full(len(problem.members) + 1, NO_OWNER, dtype=np.int32)
    place[members] = np.arange(len(members), dtype=np.int32)
    owner = place[problem.owner[partitions]]
    held = owner != NO_OWNER
    at = unit_of[held], owner[held]
    kept, kept_count = np.zeros(allowed.shape), np.zeros(allowed.shape)
    np.add.at(kept, at, weight[partitions[held]])
    np.add.at(kept_count, at, 1)
    attached = np.where(allowed & (kept_count > 0), kept, -1.0)
    home = attached.argmax(axis=1).astype(np.int32)
    has_home = attached[np.arange(count), home] >= 0
    return Instance(
        weight=sums_at(unit_of, weight[partitions], count),
        capacity=capacities_of(problem)[members],
        allowed=allowed,
        moved=kept.sum(axis=1, keepdims=True) - kept,
        moved_count=kept_count.sum(axis=1, keepdims=True) - kept_count,
        crossing=_crossing(problem, members, partitions, unit_of) if racks else None,
        home=np.where(has_home, home, NO_OWNER).astype(np.int32),
    )


def _crossing(
    problem: Problem, members: Int32Array, partitions: Int32Array, unit_of: IntArray
) -> Int32Array | None:
    racks = problem.racks
    if racks is None or not racks.crossing.any():
        return None
    where = racks.member[members]
    column = np.where(where < 0, len(racks.names), where)
    per_partition = racks.crossing[racks.partition_set[partitions]][:, column]
    summed = np.zeros((int(unit_of[-1]) + 1, len(members)), dtype=np.int32)
    np.add.at(summed, unit_of, per_partition)
    return summed


def build_part(instance: Instance, owner: Int32Array, members: Int32Array) -> tuple[Instance, Int32Array]:
    """Return the instance of the units of some members (ascending) in an assignment, and those units."""
    units = np.flatnonzero(np.isin(owner, members)).astype(np.int32)
    cut = np.ix_(units, members)
    place = np.searchsorted(members, instance.home[units])
    home = np.where(np.isin(instance.home[units], members), place, NO_OWNER).astype(np.int32)
    part = Instance(
        weight=instance.weight[units],
        capacity=instance.capacity[members],
        allowed=instance.allowed[cut],
        moved=instance.moved[cut],
        moved_count=instance.moved_count[cut],
        crossing=None if instance.crossing is None else instance.crossing[cut],
        home=home,
    )
    return part, units
