"""CP-SAT: improves an assignment and proves a bound within deterministic time.

One worker, a fixed seed and `max_deterministic_time` give the same result for the same group and version of
OR-Tools. The solver needs the known assignment as a hint and the bound as the floor of the objective to find
anything in time. If moves do not count, alike members are in falling order of their loads.
"""

from dataclasses import dataclass
from itertools import pairwise
from math import ceil, floor
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from assignors.weighted.instance import SAME, Aim, Instance
from assignors.weighted.relabel import alike_members, in_falling_order
from coordinator_core.model import Int32Array

_RANGE = 1 << 31
"""Relative loads are scaled to integers up to about this number."""

_FINE = 1 << 40
"""The scale of the budget, so fine that rounding up every cost is within `SAME`."""

_ROUNDING = 1e-6
"""The largest relative error of the scaling with which a proof counts."""

_SECONDS_PER_PAIR = 2e-5
"""The time to build the model, which counts as solver time."""

SEED = 1

_Costs: TypeAlias = NDArray[np.int64]


@dataclass(frozen=True)
class Improved:
    """The result of the solver: an assignment or None, the bound of the first key, and the time.

    ``placing`` is a bound of the sum of `Instance.placing` with `moves_first`, and 0 without.
    """

    owner: Int32Array | None
    bound: float
    proven: bool
    seconds: float
    placing: float = 0.0


def improve(instance: Instance, aim: Aim, known: Int32Array, bound: float, seconds: float) -> Improved:
    """Search for a better assignment for a number of seconds of deterministic time.

    The objective is the first key. With `moves_first` the objective is crossings and moves, and loads are
    limited to a level (the floor) that `known` does not exceed. ``bound`` is a bound of the first key.
    """
    from ortools.sat.python import cp_model

    model = _Model(instance, aim, known, bound)
    solver = cp_model.CpSolver()
    solver.parameters.num_workers = 1
    solver.parameters.random_seed = SEED
    solver.parameters.max_deterministic_time = seconds
    solver.parameters.symmetry_level = 0  # symmetry breaking of the solver discards the hint
    status = solver.solve(model.model)
    used = float(solver.response_proto.deterministic_time) + len(model.x) * _SECONDS_PER_PAIR
    if status not in (cp_model.OPTIMAL, cp_model.FEASIBLE):
        return Improved(None, bound, False, used)
    owner = np.full(len(known), -1, dtype=np.int32)
    for (u, m), variable in model.x.items():
        if solver.boolean_value(variable):
            owner[u] = m
    proven = status == cp_model.OPTIMAL
    if aim.moves_first:
        return Improved(owner, bound, proven, used, solver.best_objective_bound)
    rounded = 0 if model.scale == 1.0 else 2 if aim.price else 1  # by less than one, every weight and price
    slack = rounded * len(known) / model.scale
    shown = solver.best_objective_bound / model.scale - slack
    return Improved(owner, max(bound, shown), proven and slack <= _ROUNDING * model.first_key, used)


class _Model:
    """The instance in integers. ``x[unit, member]`` is whether the member gets the unit."""

    def __init__(self, instance: Instance, aim: Aim, known: Int32Array, bound: float) -> None:
        from ortools.sat.python import cp_model

        self._instance, self._aim = instance, aim
        self.first_key = aim.keys(instance.worth(known))[0]
        self.scale = _scale(instance, aim, self.first_key)
        relative = self._relative()
        if not aim.is_limited:
            known = in_falling_order(instance, known)
        self.model = cp_model.CpModel()
        self.x: dict[tuple[int, int], Any] = {
            (u, m): self.model.new_bool_var("") for u, m in np.argwhere(instance.allowed).tolist()
        }
        for u in range(len(known)):
            self.model.add_exactly_one(self.x[u, m] for m in np.flatnonzero(instance.allowed[u]).tolist())
        loads = [self._sum(relative, m) for m in range(len(instance.capacity))]
        hinted = np.bincount(
            known, weights=relative[np.arange(len(known)), known], minlength=len(instance.capacity)
        )
        largest = self._largest(int(hinted.max()), bound)
        for load in loads:
            self.model.add(load <= largest)
        if aim.budget < np.inf:
            self._keep_within_budget(known)
        if not aim.is_limited:
            for alike in alike_members(instance):
                for first, second in pairwise(alike.tolist()):
                    self.model.add(loads[first] >= loads[second])
        if aim.moves_first:
            self.model.minimize(self._priced(np.round(instance.placing).astype(np.int64)))
        elif aim.price:
            prices = np.round(instance.moved * (aim.price * self.scale)).astype(np.int64)
            self.model.minimize(largest + self._priced(prices))
        else:
            self.model.minimize(largest)
        for (u, m), variable in self.x.items():
            self.model.add_hint(variable, bool(known[u] == m))
        if not aim.moves_first:
            self.model.add_hint(largest, int(hinted.max()))

    def _relative(self) -> _Costs:
        """int64[U, M]: the scaled loads. Under a level they are rounded down, so that no answer is lost."""
        exact = self._instance.weight[:, None] / self._instance.capacity * self.scale
        rounded = np.floor(exact + SAME) if self._aim.moves_first else np.ceil(exact - SAME)
        return np.asarray(rounded, dtype=np.int64)

    def _sum(self, relative: _Costs, member: int) -> Any:
        from ortools.sat.python import cp_model

        mine = np.flatnonzero(self._instance.allowed[:, member]).tolist()
        return cp_model.LinearExpr.weighted_sum(
            [self.x[u, member] for u in mine], relative[mine, member].tolist()
        )

    def _largest(self, hinted: int, bound: float) -> Any:
        """Return the variable of the largest load, between the bound and the known load."""
        aim = self._aim
        if aim.moves_first:
            most = max(hinted, floor(aim.floor * self.scale * (1 + SAME)))
            return self.model.new_int_var(0, most, "")
        most = max(hinted, ceil(aim.floor * self.scale))
        if aim.price:  # a larger load may be worth the moves that it saves
            most = max(most, ceil(self.first_key * self.scale) + len(self._instance.weight))
        least = 0 if aim.price else max(0, floor(bound * self.scale * (1 - SAME)))
        return self.model.new_int_var(min(least, most), most, "")

    def _keep_within_budget(self, known: Int32Array) -> None:
        """Limit the cost to the budget with the tolerance `SAME`. The known assignment stays feasible."""
        aim, instance = self._aim, self._instance
        scale = 1.0 if aim.by_count else _FINE / max(aim.budget, instance.total * 1e-3)
        costs = np.ceil(aim.cost(instance) * scale - SAME).astype(np.int64)
        spent = int(costs[np.arange(len(known)), known].sum())
        self.model.add(self._priced(costs) <= max(floor(aim.budget * scale * (1 + SAME)), spent))

    def _priced(self, costs: _Costs) -> Any:
        from ortools.sat.python import cp_model

        paid = [(variable, int(costs[at])) for at, variable in self.x.items() if costs[at]]
        return cp_model.LinearExpr.weighted_sum([v for v, _ in paid], [c for _, c in paid])


def _scale(instance: Instance, aim: Aim, first_key: float) -> float:
    """Return the scale of loads: 1 if they are whole numbers without a price, so that nothing is rounded."""
    whole = bool((instance.weight == np.floor(instance.weight)).all() and (instance.capacity == 1).all())
    return 1.0 if whole and not aim.price and instance.total < _RANGE else _RANGE / first_key
