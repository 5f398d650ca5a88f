"""Trials of changes to a strategy: the one that a verdict suggests, and members enough for a load."""

from collections.abc import Sequence
from dataclasses import replace

from coordinator_core.registry.registry import default_registry
from rebalance_lab.cli.running import Task, run_grid, run_one
from rebalance_lab.scenarios.scenario import Scenario
from rebalance_lab.traces.history import History
from rebalance_lab.traces.invariants import Invariants
from rebalance_lab.verdicts.changes import Change, facts_of
from rebalance_lab.verdicts.finding import Finding
from rebalance_lab.verdicts.grid import Grid, Setup
from rebalance_lab.verdicts.load import Load
from rebalance_lab.verdicts.remedies import candidates
from rebalance_lab.verdicts.runs import Run, faults_of, figures_of
from rebalance_lab.verdicts.screen import largest_part, tried
from rebalance_lab.verdicts.verdict import Enough


class Trials:
    """Runs of changes to a strategy on a scenario. ``jobs``, ``timeout``: see `run_all`."""

    def __init__(self, scenario: Scenario, strategy: str, jobs: int | None, timeout: float) -> None:
        self._scenario, self._strategy, self._jobs, self._timeout = scenario, strategy, jobs, timeout

    def remedy(self, grid: Grid, number: int) -> list[Finding]:
        """Run the change that acts first on the largest cause of the stopped time of a candidate.

        It is run on the seeds of the grid. Nothing is run with too few seeds to know an order, or if all
        changes are candidates themselves.
        """
        largest = largest_part(grid, number)
        if largest is None or not grid.is_decided or number not in grid.working:
            return []
        registry = default_registry()
        first = run_one(self._scenario, self._strategy, timeout=self._timeout, watch=Invariants())
        if first.trace is None:
            return []
        facts = facts_of(self._scenario, History(first.trace, registry))
        known = {grid.label(i) for i in range(len(grid.setups))}
        changes = candidates(largest[0], self._scenario, self._strategy, facts, registry)
        change = next((each for each in changes if _compared_as(each) not in known), None)
        if change is None:
            return []
        seeds = [int(unit) for unit in grid.units]
        runs = dict(zip(seeds, self._run(change, seeds), strict=True))
        columns = grid.figures[:, number].tolist()
        now = {s: dict(zip(grid.metrics, row, strict=True)) for s, row in zip(seeds, columns, strict=True)}
        error = next((run.error for run in runs.values() if run.error), "")
        setups = [grid.setups[number], Setup(change.strategy, findings=faults_of(runs), error=error)]
        both = Grid.of(setups, [now, figures_of(runs)], partitions=grid.partitions)
        return [tried(both, 0, 1, change.label.removeprefix(f"{self._strategy} with "))]

    def enough(self, grid: Grid, load: Load | None) -> Enough | None:
        """Run the group with so many members more as a high load takes, and return what that leaves.

        None if the load is not high, if no number of members takes it, or if it does not in the run.
        """
        more = grid.median("members_to_ease", grid.now)
        if load is None or not load.is_high or load.hot or not more > 0:
            return None
        (run,) = self._run(Change(self._strategy, more=int(more)), [int(grid.units[0])])
        if run.figures is None or run.load is None or run.load.is_high or run.load.left:
            return None
        busiest = run.figures.get("utilization", 1.0)
        return Enough(load.members + int(more), 1 - busiest) if busiest < 1 else None

    def _run(self, change: Change, seeds: Sequence[int]) -> list[Run]:
        registry = default_registry()
        changed = change.of(self._scenario, registry)
        tasks = [Task(replace(changed, seed=seed), change.strategy) for seed in seeds]
        (runs,) = run_grid([tasks], jobs=self._jobs, timeout=self._timeout)
        return runs


def _compared_as(change: Change) -> str:
    """Return the label that a change has as a candidate of a comparison."""
    return change.label if change.settings else change.strategy
