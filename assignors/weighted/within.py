"""The default order of `optimal`: a largest load within a tolerance of the least, few moves, even loads."""

from collections.abc import Iterable
from dataclasses import replace
from math import ceil

import numpy as np

from assignors.weighted.cp import Improved, improve
from assignors.weighted.exact import MOST_PAIRS, best_of_all, fewest_of_all, least_of_all
from assignors.weighted.greedy import largest_first, stay_home
from assignors.weighted.instance import SAME, Aim, Instance, less
from assignors.weighted.keeping import fewest_moves, keep_under, settled
from assignors.weighted.local_search import CELLS_PER_SECOND, Work, even_out
from assignors.weighted.shedding import answers_within, go_home
from assignors.weighted.solve import (
    MOST_PAIRS_FOR_PROOF,
    SHARE_OF_SEARCH,
    Method,
    Solution,
    Wishes,
    better,
    solve,
)
from coordinator_core.model import Int32Array

SHARE_OF_BOUND = 0.25
"""The share of the time to prove a bound of the moves, if crossings or weights limit the moves as well."""

_SHARES = (0.02, 0.05, 0.1, 0.2)
"""The shares of the weight that may move in the assignments with which the search under a level begins."""


def solve_within(instances: list[Instance], wishes: Wishes, tolerance: float) -> list[Solution]:
    """Return the best assignments within the time. The tolerance is of the least largest load of all.

    Small instances are enumerated. In larger ones the level is relative to the bound of the least largest
    load, if members can keep their units under it, and otherwise to the least one that is found.
    """
    share = 1 + tolerance
    if not wishes.price and wishes.budget == np.inf:
        bound = max((i.bound for i in instances), default=0.0)
        drafts = [keep_under(i, bound * share, _work(wishes)) for i in instances]
        solutions = _enumerated(instances, drafts, bound, share, wishes)
        if solutions is not None:
            return solutions
        if all(_is_under(i, d, bound * share) for i, d in zip(instances, drafts, strict=True)):
            return [_improved(i, wishes, bound * share, d) for i, d in zip(instances, drafts, strict=True)]
    half = replace(wishes, seconds=wishes.seconds / 2)
    solved = [solve(instance, half) for instance in instances]
    overall = max((s.worth.largest for s in solved), default=0.0)
    least = max((s.worth.largest if s.proven else s.bound for s in solved), default=0.0)
    level = max(overall, min(least, overall) * share)
    return [_relaxed(i, half, level, s) for i, s in zip(instances, solved, strict=True)]


def _enumerated(
    instances: list[Instance], drafts: list[Int32Array], bound: float, share: float, wishes: Wishes
) -> list[Solution] | None:
    """Return the best assignments, or None if there are too many assignments.

    ``bound`` is that of the least largest load. If the best assignments for a level that may be too high are
    under one that may be too low, they are the best for the level of the least largest load as well.
    """
    if any(i.allowed.size > MOST_PAIRS for i in instances):
        return None
    balanced = [_balanced(i, d, bound, wishes) for i, d in zip(instances, drafts, strict=True)]
    found = [i.worth(b).largest for i, b in zip(instances, balanced, strict=True)]
    starts = list(zip(drafts, balanced, strict=True))
    best = _all_best(instances, max(found, default=0.0) * share, starts)
    if best is None:
        return None
    certain = all(_is_under(i, b, bound * share) for i, b in zip(instances, best, strict=True))
    tops = [min(top, i.worth(b).largest) for i, b, top in zip(instances, best, found, strict=True)]
    least = _least(instances, tops, bound)
    if not certain:
        best = None if least is None else _all_best(instances, least * share, starts)
    if best is None:
        return None
    if least is None:
        return [_proven(i, b, i.bound, bound * share) for i, b in zip(instances, best, strict=True)]
    return [_proven(i, b, least, least * share) for i, b in zip(instances, best, strict=True)]


def _least(instances: list[Instance], tops: list[float], bound: float) -> float | None:
    """Return the least largest load of all, or None if there are too many assignments.

    ``tops`` are the largest loads of assignments, and ``bound`` a bound of the result.
    """
    least = bound
    for instance, top in zip(instances, tops, strict=True):
        exact = least_of_all(instance, top) if less(top, least) > 0 else top
        if exact is None:
            return None
        least = max(least, exact)
    return least


def _all_best(
    instances: list[Instance], level: float, starts: list[tuple[Int32Array, Int32Array]]
) -> list[Int32Array] | None:
    """Return the best assignments under a level by enumeration, or None if there are too many."""
    aim, best = Aim(floor=level, moves_first=True), []
    for instance, known in zip(instances, starts, strict=True):
        exact = best_of_all(instance, aim, _best(instance, aim, known))
        if exact is None:
            return None
        best.append(exact)
    return best


def _best(instance: Instance, aim: Aim, starts: Iterable[Int32Array]) -> Int32Array:
    """Return the best of some assignments, whose units may return home."""
    best, *others = [a for start in starts for a in (start, go_home(instance, start, aim.floor))]
    for other in others:
        best = better(instance, aim, best, other)
    return best


def _balanced(instance: Instance, draft: Int32Array, bound: float, wishes: Wishes) -> Int32Array:
    """Return an assignment with a small largest load: the draft, if it is under the bound."""
    if _is_under(instance, draft, bound):
        return draft
    starts = [draft, even_out(instance, largest_first(instance), _work(wishes))]
    starts.append(even_out(instance, stay_home(instance), _work(wishes)))
    return min(starts, key=lambda start: instance.worth(start).largest)


def _proven(instance: Instance, owner: Int32Array, least: float, level: float) -> Solution:
    worth = instance.worth(owner)
    fewest = _fewest_enumerated(instance, level, worth.moved_count)
    return Solution(owner, worth, least, Method.ENUMERATION, True, 0.0, level, fewest)


def _fewest_enumerated(instance: Instance, level: float, moved: int) -> int:
    """Return a lower bound of the moves under a level, exact unless there are too many assignments.

    An enumerated assignment may move more, because idle members and crossings have priority over moves.
    """
    fewest = fewest_moves(instance, level)
    if fewest >= moved:
        return moved
    exact = fewest_of_all(instance, level, moved)
    return fewest if exact is None else exact


def _relaxed(instance: Instance, wishes: Wishes, level: float, balanced: Solution) -> Solution:
    """Return the best assignment for a level that a solution is under."""
    draft = keep_under(instance, level, _work(wishes))
    starts = [draft, balanced.owner]
    if not wishes.price and wishes.budget == np.inf:  # a few moves more than those of the draft may do
        work = _work(wishes)
        for share in _SHARES:
            starts += answers_within(instance, Aim(budget=share * instance.total), work)[:1]
    final = _improved(instance, wishes, level, *starts)
    used = balanced.seconds + final.seconds
    exact = balanced.proven and not wishes.price  # the bound of the solver is rounded
    bound = balanced.worth.largest if exact else balanced.bound
    return replace(final, bound=bound, proven=balanced.proven, seconds=used)


def _improved(instance: Instance, wishes: Wishes, level: float, *starts: Int32Array) -> Solution:
    """Return the best assignment for a level: enumerated, or one of the starts, improved by the solver."""
    aim = Aim(floor=level, moves_first=True, budget=wishes.budget, by_count=wishes.by_count)
    best, bound, fewest = _best(instance, aim, starts), instance.bound, fewest_moves(instance, level)
    exact = best_of_all(instance, aim, best)
    if exact is not None:
        worth = instance.worth(exact)
        fewest = _fewest_enumerated(instance, level, worth.moved_count)
        return Solution(exact, worth, bound, Method.ENUMERATION, False, 0.0, level, fewest)
    least = max(float(fewest), float(instance.least_placing.sum()))
    if instance.placed(best) <= least or int(instance.allowed.sum()) > MOST_PAIRS_FOR_PROOF:
        return Solution(best, instance.worth(best), bound, Method.HEURISTIC, False, 0.0, level, fewest)
    limited = instance.crossing is not None or (wishes.budget < np.inf and not wishes.by_count)
    unlimited = _without_limits(instance, level, best, wishes) if limited else None
    used = unlimited.seconds if unlimited else 0.0
    improved = improve(instance, aim, best, bound, max(wishes.seconds - used, 0.0))
    if improved.owner is not None:
        best = better(instance, aim, best, settled(instance, improved.owner, _work(wishes)))
    worth = instance.worth(best)
    proven = ceil((unlimited or improved).placing - SAME)
    fewest = max(fewest, min(proven, worth.moved_count))
    return Solution(best, worth, bound, Method.SOLVER, False, used + improved.seconds, level, fewest)


def _without_limits(instance: Instance, level: float, best: Int32Array, wishes: Wishes) -> Improved:
    """Return the solver's bound of the moves under a level, whatever crosses racks and however heavy."""
    apart, aim = replace(instance, crossing=None), Aim(floor=level, moves_first=True)
    known = _best(apart, aim, [best, keep_under(apart, level, _work(wishes))])
    return improve(apart, aim, known, instance.bound, wishes.seconds * SHARE_OF_BOUND)


def _work(wishes: Wishes) -> Work:
    return Work(wishes.seconds * SHARE_OF_SEARCH * CELLS_PER_SECOND)


def _is_under(instance: Instance, owner: Int32Array, level: float) -> bool:
    return less(instance.worth(owner).largest, level) <= 0
