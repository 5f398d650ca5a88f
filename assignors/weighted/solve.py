"""The best assignment of an instance within the time, with a bound and the method."""

from dataclasses import dataclass, replace
from enum import StrEnum

import numpy as np

from assignors.weighted.cp import improve
from assignors.weighted.exact import best_of_all
from assignors.weighted.greedy import largest_first, stay_home
from assignors.weighted.instance import Aim, Instance, Worth, build_part, less
from assignors.weighted.local_search import CELLS_PER_SECOND, Work, even_out
from assignors.weighted.relabel import keep_most
from assignors.weighted.shedding import answers_within
from coordinator_core.model import Int32Array

MOST_PAIRS_FOR_PROOF = 60_000
"""The limit of pairs of a unit and an allowed member up to which the solver solves the whole instance."""

GAP_ENOUGH = 2e-4
"""An assignment with a smaller relative gap to its bound is not passed to the solver."""

NEIGHBOURHOOD = 6
"""The number of members that are solved together in larger instances."""

_NEIGHBOURHOOD_SECONDS = 0.25
_NEIGHBOURHOOD_PAIRS = 6_000
SHARE_OF_SEARCH = 0.5
_PATIENCE = 60
"""The number of consecutive neighbourhoods without improvement after which the search ends."""


class Method(StrEnum):
    """The method that found the assignment."""

    FLOW = "flow"
    ENUMERATION = "enumeration"
    SOLVER = "solver"
    HEURISTIC = "heuristic"


@dataclass(frozen=True)
class Solution:
    """An assignment: ``owner`` int32[U], ``bound`` of the first key, ``seconds`` of deterministic time.

    With a tolerance, ``level`` is the largest load that it allows, and ``moves_bound`` a bound of the moved
    partitions of all assignments under that level, whatever their idle members and crossings.
    """

    owner: Int32Array
    worth: Worth
    bound: float
    method: Method
    proven: bool
    seconds: float
    level: float = 0.0
    moves_bound: int = 0


@dataclass(frozen=True)
class Wishes:
    """The options of an author besides balance; see `Aim`. Without a tolerance the order is strict."""

    budget: float = np.inf
    by_count: bool = False
    price: float = 0.0
    tolerance: float | None = None
    seconds: float = 1.0


def solve(instance: Instance, wishes: Wishes, *, floor: float = 0.0) -> Solution:
    """Return the best assignment in the strict order within the time. It is never worse than the greedy ones.

    ``wishes.price`` is per share of the whole weight, relative to the bound. Largest loads below ``floor``
    are equal.
    """
    price = wishes.price * instance.bound / instance.total if wishes.price else 0.0
    aim = Aim(floor=floor, price=price, budget=wishes.budget, by_count=wishes.by_count)
    seconds = wishes.seconds
    work = Work(seconds * SHARE_OF_SEARCH * CELLS_PER_SECOND)
    best = _best_heuristic(instance, aim, work)
    worth, bound = instance.worth(best), _bound(instance, aim)
    exact = best_of_all(instance, aim, best)
    if exact is not None:
        found = instance.worth(exact)
        return Solution(exact, found, aim.keys(found)[0], Method.ENUMERATION, True, 0.0)
    proven = not aim.is_limited and not less(worth.largest, max(bound, aim.floor))
    if proven or aim.keys(worth)[0] <= max(bound, aim.floor) * (1 + GAP_ENOUGH):
        best = _settled(instance, aim, best)
        return Solution(best, instance.worth(best), bound, Method.HEURISTIC, proven, 0.0)
    if int(instance.allowed.sum()) > MOST_PAIRS_FOR_PROOF:
        found_best, used = _by_neighbourhoods(instance, aim, best, bound, seconds)
        best = _settled(instance, aim, better(instance, aim, best, found_best))
        return Solution(best, instance.worth(best), bound, Method.HEURISTIC, False, used)
    return _with_solver(instance, aim, best, bound, seconds)


def _with_solver(instance: Instance, aim: Aim, best: Int32Array, bound: float, seconds: float) -> Solution:
    """Solve the whole instance by CP-SAT, and even out the result."""
    improved = improve(instance, aim, best, bound, seconds)
    if improved.owner is not None:
        polish = Work(CELLS_PER_SECOND * SHARE_OF_SEARCH)
        best = better(instance, aim, best, improved.owner)
        best = better(instance, aim, best, _evened(instance, aim, best, polish))
    best = _settled(instance, aim, best)
    worth = instance.worth(best)
    bound = max(bound, min(improved.bound, aim.keys(worth)[0]))
    return Solution(best, worth, bound, Method.SOLVER, improved.proven, improved.seconds)


def _bound(instance: Instance, aim: Aim) -> float:
    if aim.budget < np.inf and not aim.by_count:
        return instance.bound_within(aim.budget)
    return instance.bound


def _best_heuristic(instance: Instance, aim: Aim, work: Work) -> Int32Array:
    home = stay_home(instance)
    answers = [home]
    if not aim.is_limited:
        fresh = largest_first(instance)
        answers += [fresh, even_out(instance, fresh, work), even_out(instance, home, work)]
    elif aim.price:
        answers += [largest_first(instance), even_out(instance, home, work)]
        for share in (0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0):
            limited = replace(aim, budget=min(aim.budget, share * instance.total), by_count=False)
            answers += answers_within(instance, limited, work)[:1]
    else:
        answers += [_evened(instance, aim, home, work), *answers_within(instance, aim, work)]
    best = answers[0]
    for answer in answers[1:]:
        best = better(instance, aim, best, answer)
    return best


def _evened(instance: Instance, aim: Aim, start: Int32Array, work: Work) -> Int32Array:
    cost = aim.cost(instance) if aim.budget < np.inf else None
    return even_out(instance, start, work, cost=cost, budget=aim.budget)


def better(instance: Instance, aim: Aim, best: Int32Array, other: Int32Array) -> Int32Array:
    """Return the other assignment if it is within the budget and better."""
    mine, its = instance.worth(best), instance.worth(other)
    if not aim.allows(its):
        return best
    return other if not aim.allows(mine) or aim.prefers(its, mine) else best


def _settled(instance: Instance, aim: Aim, owner: Int32Array) -> Int32Array:
    """Return the assignment with the fewest moves for these loads."""
    return better(instance, aim, owner, keep_most(instance, owner))


def _by_neighbourhoods(
    instance: Instance, aim: Aim, start: Int32Array, bound: float, seconds: float
) -> tuple[Int32Array, float]:
    """Repeatedly solve the most loaded member together with a few others."""
    best, used, idle = start, 0.0, 0
    random = np.random.default_rng(0)
    while used < seconds and idle < _PATIENCE:
        worth = instance.worth(best)
        if aim.keys(worth)[0] <= max(bound, aim.floor) * (1 + GAP_ENOUGH):
            break
        members = _neighbours(instance, best, random)
        part, units = build_part(instance, best, members)
        if int(part.allowed.sum()) > _NEIGHBOURHOOD_PAIRS:
            break
        spent = float(aim.cost(instance)[np.arange(len(best)), best].sum())
        inside = np.searchsorted(members, best[units]).astype(np.int32)
        mine = float(aim.cost(part)[np.arange(len(units)), inside].sum())
        local = replace(aim, budget=aim.budget - spent + mine, floor=max(aim.floor, bound))
        improved = improve(part, local, inside, part.bound, min(_NEIGHBOURHOOD_SECONDS, seconds - used))
        used += max(improved.seconds, 1e-3)
        idle += 1
        if improved.owner is None:
            continue
        candidate = best.copy()
        candidate[units] = members[improved.owner]
        if aim.allows(instance.worth(candidate)) and _lowers(part, inside, improved.owner):
            best, idle = candidate, 0
    return best, used


def _lowers(part: Instance, before: Int32Array, after: Int32Array) -> bool:
    return less(part.worth(after).largest, part.worth(before).largest) < 0


def _neighbours(instance: Instance, owner: Int32Array, random: "np.random.Generator") -> Int32Array:
    """Return the most loaded member and a sample of the less loaded ones that may own its units."""
    relative = instance.loads(owner) / instance.capacity
    source = int(relative.argmax())
    able = instance.allowed[owner == source].any(axis=0)
    able[source] = False
    others = np.flatnonzero(able)
    rising = others[np.argsort(relative[others], kind="stable")]
    low = rising[: NEIGHBOURHOOD * 4]
    count = min(NEIGHBOURHOOD - 1, len(low))
    return np.sort(np.append(random.choice(low, size=count, replace=False), source)).astype(np.int32)
