"""Optimal: the best assignment, or the best one found in limited time with its gap to a bound.

Without weights and capacities it is exact by PROTOCOL 10.3 (a flow). With them, in this order: a
largest load relative to capacity within a tolerance of the least one, the fewest members without partitions
that another member could give, the fewest owners outside their replicas' racks, the fewest moves, the least
sum of squares of relative loads, the least moved weight. The strict order is the least largest load, the
least sum of squares, the fewest owners outside racks, the least moved weight. Components of the subscription
graph are solved separately. The report of the assignment has:

``method``           flow, enumeration, solver (CP-SAT) or heuristic;
``optimality_gap``   (value - bound) / bound of the largest load, or with `move_cost` of that and the cost:
                     the gap that is proven; 0.0 only if no assignment has a smaller value;
``largest_load``, ``bound``, ``moved_weight``, ``moved_partitions``, ``solver_seconds``;
``level``            the largest load that the tolerance allows: above the least one, or above its bound;
``moves_bound``      a lower bound of the moved partitions of all assignments whose largest load is at most
                     the level, whatever their idle members and rack crossings; with the method flow, of all
                     assignments with the least sum of squares, whatever their rack crossings;
``moves_gap``        (moves - bound) / bound of the moved partitions, with a bound of at least 1; above 0 also
                     if idle members or rack crossings cost moves.

The last three are not in the reports of the strict order, and of assignments that are greedy.

Sizes: groups of few partial answers are enumerated; up to 60,000 pairs of a partition and a member CP-SAT
takes the whole; beyond, members keep their partitions under the level, and what does not fit moves; in the
strict order, local search improves a greedy answer. Beyond 20,000,000 pairs it is the greedy answer.
"""

from collections.abc import Mapping
from dataclasses import replace
from math import inf
from typing import Any

import numpy as np

from assignors.weighted.instance import Instance, less, weights_of
from assignors.weighted.options import (
    MoveLimit,
    read_amount,
    read_moves,
    read_seconds,
    read_share,
    read_switch,
)
from assignors.weighted.parts import Light, Part, parts_of, units_of
from assignors.weighted.reports import flow_report, greedy_report, moved_away, solved_report
from assignors.weighted.solve import Method, Solution, Wishes, solve
from assignors.weighted.tolerant import sticky_within
from assignors.weighted.within import solve_within
from coordinator_core.assigning.assignor import Capability
from coordinator_core.assigning.flow import balanced_owners
from coordinator_core.assigning.memory import Memory, recalled
from coordinator_core.assigning.problem import FloatArray, Problem
from coordinator_core.errors import AssignmentError, InputError
from coordinator_core.model import (
    NO_OWNER,
    GroupAssignment,
    Int32Array,
)

MOST_PAIRS = 20_000_000
"""Larger groups, in pairs of a partition and a member, get the greedy assignment."""


TOLERANCE = 0.02
"""The default of `tolerance` if partitions have weights."""

OPTIONS = {
    "max_moves": read_moves,
    "move_cost": read_amount,
    "tolerance": read_share,
    "strict": read_switch,
    "time_limit": read_seconds,
    "colocate": read_switch,
    "racks": read_switch,
}
"""The options after ``optimal+`` in a strategy."""


class OptimalAssignor(Memory):
    """Sends the last assignment of its member along with the subscription."""

    name = "optimal"
    capabilities = (Capability.STICKY, Capability.BALANCED, Capability.WEIGHTED, Capability.RACK_AWARE)

    def __init__(
        self,
        *,
        max_moves: MoveLimit | int | None = None,
        move_cost: float = 0.0,
        tolerance: float | None = None,
        strict: bool = False,
        time_limit: float = 1.0,
        colocate: bool = False,
        racks: bool = True,
    ) -> None:
        """Set the options. Those of moves, balance and colocation use weights (1 without), not the flow.

        ``max_moves``: partitions, or a `MoveLimit`; partitions without a valid owner do not count.
        ``move_cost``: the cost of moving the whole weight, as a multiple of the ideal largest load.
        ``tolerance``: of all assignments whose largest load exceeds the least by at most this share, the one
        with the fewest owners outside the racks of their replicas, and then the fewest moves; 2 % if the
        partitions have weights and moves have no cost. ``strict``: the strict order, with no tolerance.
        ``time_limit``: deterministic seconds of CP-SAT and local search, about seconds of a core.
        ``colocate``: in topics with equal counts and subscribers, partitions with equal numbers have one
        owner. ``racks``: whether rack crossings count.
        """
        super().__init__()
        if strict and tolerance is not None:
            raise InputError("options of optimal", "strict and tolerance", "one of the two")
        self._max_moves = MoveLimit(partitions=max_moves) if isinstance(max_moves, int) else max_moves
        self._counts = colocate or max_moves is not None or bool(move_cost) or bool(tolerance)
        usual = None if strict or move_cost else TOLERANCE
        share = usual if tolerance is None else tolerance
        self._wishes = Wishes(price=move_cost, tolerance=share, seconds=time_limit)
        self._colocate, self._racks = colocate, racks

    def solve(self, problem: Problem) -> GroupAssignment:
        """Return the assignment of a problem.

        Raises:
            AssignmentError: if colocation needs more moves than `max_moves` allows.
        """
        problem = recalled(problem)
        weight = weights_of(problem, counts=self._counts)
        if weight is None:
            owner = balanced_owners(problem)
            report = flow_report(problem, owner)
        else:
            owner, report = self._weighted(problem, weight)
        return GroupAssignment.from_owners(problem.index, problem.members, owner, report=report)

    def _weighted(self, problem: Problem, weight: FloatArray) -> tuple[Int32Array, Mapping[str, Any]]:
        mine = problem.subscribed
        wishes = self._with_budget(float(weight[mine].sum()))
        if int((weight[mine] > 0).sum()) * len(problem.members) > MOST_PAIRS:
            return _greedy(problem, weight, wishes)
        owner = np.full(problem.index.size, NO_OWNER, dtype=np.int32)
        heavy, light = [], Light()
        for unit in units_of(problem, mine, colocate=self._colocate):
            if weight[unit].any():
                heavy.append(unit)
            else:
                light.add(unit, problem)
        together = self._max_moves is not None or bool(wishes.price)  # a limit is for all components
        parts = parts_of(problem, heavy, weight, racks=self._racks, together=together)
        self._check_feasible(problem, parts, wishes, light.torn if wishes.by_count else 0)
        wishes = replace(wishes, budget=wishes.budget - (light.torn if wishes.by_count else 0))
        solved = self._solved([part.instance for part in parts], wishes)
        for part, solution in zip(parts, solved, strict=True):
            part.write(solution.owner, owner)
        moved = sum(s.worth.moved_count for s in solved)
        light.deal(problem, owner, wishes.budget - moved if wishes.by_count else inf)
        away = int(moved_away(problem, owner).sum())
        instances = [part.instance for part in parts]
        return owner, solved_report(instances, solved, wishes, moved=away, torn=light.torn)

    def _solved(self, instances: list[Instance], wishes: Wishes) -> list[Solution]:
        """Solve the instances. Below the largest load of all, and the tolerance, the other keys count."""
        if wishes.tolerance is not None:
            return solve_within(instances, wishes, wishes.tolerance)
        solved = [solve(instance, wishes) for instance in instances]
        overall = max((s.worth.largest for s in solved), default=0.0)
        for i, instance in enumerate(instances):
            if len(instances) > 1 and less(solved[i].worth.largest, overall) < 0:
                lower = solve(instance, wishes, floor=overall)
                if lower.method is Method.ENUMERATION:
                    solved[i] = replace(lower, bound=solved[i].bound, proven=False)
        return solved

    def _with_budget(self, total: float) -> Wishes:
        limit, wishes = self._max_moves, self._wishes
        budget, by_count = inf, False
        if limit is not None and limit.partitions is not None:
            budget, by_count = float(limit.partitions), True
        elif limit is not None and limit.share is not None:
            budget = limit.share * total
        return replace(wishes, budget=budget, by_count=by_count)

    def _check_feasible(self, problem: Problem, parts: list[Part], wishes: Wishes, needed: float) -> None:
        """Check that colocation needs no more moves than allowed. ``needed``: by units without weight."""
        if wishes.budget == inf:
            return
        for part in parts:
            cost = part.instance.moved_count if wishes.by_count else part.instance.moved
            needed += float(np.where(part.instance.allowed, cost, inf).min(axis=1).sum())
        if less(needed, wishes.budget) > 0:
            what = "partitions" if wishes.by_count else "of the weight"
            raise AssignmentError(
                self.name,
                [
                    f"max_moves allows {wishes.budget:g} {what}, but at least {needed:g} must move to"
                    f" bring together what belongs together, in a group of {len(problem.members)} members"
                ],
            )


_TOLERANCES = (0.01, 0.03, 0.1, 0.3, 1.0, 3.0, inf)
"""The greedy assignment tries them in turn until it is within `max_moves`."""


def _greedy(problem: Problem, weight: FloatArray, wishes: Wishes) -> tuple[Int32Array, Mapping[str, Any]]:
    least = wishes.tolerance or 0.0
    for tolerance in (least, *(t for t in _TOLERANCES if t > least)):
        owner, bound = sticky_within(problem, weight, tolerance)
        away = moved_away(problem, owner)
        if (int(away.sum()) if wishes.by_count else float(weight[away].sum())) <= wishes.budget:
            break
    return owner, greedy_report(problem, owner, weight, bound)
