"""The reports of assignors with weights."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from assignors.weighted.instance import Instance, capacities_of, less
from assignors.weighted.solve import Method, Solution, Wishes
from coordinator_core.assigning.flow import balanced_owners
from coordinator_core.assigning.flow.fractional import sums_at
from coordinator_core.assigning.problem import BoolArray, FloatArray, Problem
from coordinator_core.model import NO_OWNER, Int32Array


def moved_away(problem: Problem, owner: Int32Array) -> BoolArray:
    """bool[P]: the partitions that left a member that could have kept them."""
    away: BoolArray = (owner != NO_OWNER) & (problem.owner != NO_OWNER) & (problem.owner != owner)
    return away


def flow_report(problem: Problem, owner: Int32Array) -> Mapping[str, Any]:
    """Return the report of a flow, in the unit of the weights if all have the same."""
    weight, mine = problem.weights, problem.subscribed
    unit = 1.0 if weight is None or not weight[mine].any() else float(weight[mine[0]])
    loads = np.bincount(owner[owner != NO_OWNER], minlength=len(problem.members))
    away = moved_away(problem, owner)
    moved, largest = int(away.sum()), float(loads.max(initial=0)) * unit
    fewest = moved
    if moved and problem.racks is not None:  # crossings have priority over moves
        fewest = int(moved_away(problem, balanced_owners(replace(problem, racks=None))).sum())
    return {
        **_report(Method.FLOW, largest, largest, 0.0, moved * unit, moved),
        "level": largest,
        "moves_bound": fewest,
        "moves_gap": (moved - fewest) / max(fewest, 1),
    }


def greedy_report(problem: Problem, owner: Int32Array, weight: FloatArray, bound: float) -> Mapping[str, Any]:
    """Return the report of an assignment with a bound but without a proof."""
    placed, away, capacity = owner != NO_OWNER, moved_away(problem, owner), capacities_of(problem)
    load = sums_at(owner[placed], weight[placed], len(capacity))
    largest = float((load / capacity).max(initial=0.0))
    gap = max(largest / bound - 1, 0.0) if bound else 0.0
    return _report(Method.HEURISTIC, largest, bound, gap, float(weight[away].sum()), int(away.sum()))


def _report(
    method: Method, largest: float, bound: float, gap: float, weight: float, moved: int, seconds: float = 0.0
) -> dict[str, Any]:
    """Return the entries that all reports have."""
    return {
        "method": method.value,
        "largest_load": largest,
        "bound": bound,
        "optimality_gap": gap,
        "moved_weight": weight,
        "moved_partitions": moved,
        "solver_seconds": seconds,
    }


_ORDER = list(Method)


def solved_report(
    instances: list[Instance], solved: list[Solution], wishes: Wishes, *, moved: int, torn: int
) -> Mapping[str, Any]:
    """Return the report of all components: the largest gap, and the most expensive method.

    ``moved``: the partitions that the assignment moves, those without weight included; ``torn``: the
    partitions without weight that every assignment moves.
    """

    def value(instance: Instance, solution: Solution) -> float:
        price = wishes.price * instance.bound / instance.total
        return solution.worth.largest + price * solution.worth.moved

    pairs = [(value(i, s), s) for i, s in zip(instances, solved, strict=True)]
    bound = max((s.bound for _, s in pairs), default=0.0)
    largest = max((v for v, _ in pairs), default=0.0)
    binding = [s for v, s in pairs if not less(v, largest)]
    strict = wishes.tolerance is None
    proven = (strict and any(s.proven for s in binding)) or not less(largest, bound)
    method = max((s.method for s in solved), key=_ORDER.index, default=Method.FLOW)
    load = max((s.worth.largest for s in solved), default=0.0)
    gap = 0.0 if proven or not bound else max(largest / bound - 1, 0.0)
    weight, seconds = sum(s.worth.moved for s in solved), round(sum(s.seconds for s in solved), 6)
    report = _report(method, load, bound, gap, weight, moved, seconds)
    return report if strict else report | _moves(solved, moved, torn)


def _moves(solved: list[Solution], moved: int, torn: int) -> dict[str, Any]:
    """Return the figures of moves under the level."""
    bound = sum(s.moves_bound for s in solved) + torn
    return {
        "level": max((s.level for s in solved), default=0.0),
        "moves_bound": bound,
        "moves_gap": (moved - bound) / max(bound, 1),
    }
