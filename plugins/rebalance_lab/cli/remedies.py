"""Runs of remedies for the candidates of a comparison."""

from collections.abc import Mapping, Sequence
from dataclasses import replace

from coordinator_core.registry.registry import default_registry
from rebalance_lab.cli.running import StrategyRun, Task, run_all, run_one
from rebalance_lab.scenarios.scenario import Scenario
from rebalance_lab.traces.history import History
from rebalance_lab.traces.invariants import Invariants
from rebalance_lab.verdicts.changes import Change, facts_of
from rebalance_lab.verdicts.comparison import Comparison, Figure
from rebalance_lab.verdicts.dimensions import Trial
from rebalance_lab.verdicts.reasons import largest_parts
from rebalance_lab.verdicts.remedies import candidates, remedy


def with_remedies(
    comparison: Comparison,
    compared: Sequence[tuple[str, Sequence[Scenario]]],
    *,
    jobs: int | None,
    timeout: float,
) -> Comparison:
    """Run remedies for the causes of stopped time that the answers name, on the seeds of the comparison.

    ``compared`` has the strategy of each candidate, and its scenario for each seed. ``jobs``, ``timeout``:
    see `run_all`. With too few seeds to know an order nothing is run.
    """
    if not comparison.is_decided:
        return comparison
    registry, tried = default_registry(), {}
    for candidate, part, _ in largest_parts(comparison):
        strategy, scenarios = compared[comparison.candidates.index(candidate)]
        first = run_one(scenarios[0], strategy, timeout=timeout, watch=Invariants())
        if first.trace is None:
            continue
        facts = facts_of(scenarios[0], History(first.trace, registry))
        changes = candidates(part, scenarios[0], strategy, facts, registry)
        now = Trial(Change(strategy), candidate.figures)
        known, unknown = _known(changes, comparison, compared, scenarios[0].config)
        tasks = [
            Task(change.of(scenario, registry), change.strategy)
            for change in unknown
            for scenario in scenarios
        ]
        runs, count = run_all(tasks, jobs=jobs, timeout=timeout) if tasks else [], len(scenarios)
        trials = [_trial(change, runs[i * count : (i + 1) * count]) for i, change in enumerate(unknown)]
        others = len(scenarios[0].members) > 1
        tried[comparison.label(candidate)] = [
            remedy(now, trial, has_others=others) for trial in (*known, *trials) if not trial.error
        ]
    return replace(comparison, remedies=tried)


def _known(
    changes: Sequence[Change],
    comparison: Comparison,
    compared: Sequence[tuple[str, Sequence[Scenario]]],
    config: Mapping[str, object],
) -> tuple[list[Trial], list[Change]]:
    """Return the trials of changes that are candidates of the comparison, and the other changes."""
    figures = {
        strategy: candidate
        for candidate, (strategy, scenarios) in zip(comparison.candidates, compared, strict=True)
        if scenarios[0].config == config
    }
    same = [change for change in changes if not change.settings and change.strategy in figures]
    known = [
        Trial(change, figures[change.strategy].figures, findings=figures[change.strategy].findings)
        for change in same
    ]
    return known, [change for change in changes if change not in same]


def _trial(change: Change, runs: Sequence[StrategyRun]) -> Trial:
    error = next((run.error for run in runs if run.error), "")
    figures = [run.figures for run in runs if run.figures is not None]
    names = figures[0] if figures else {}
    return Trial(
        change,
        {name: Figure(tuple(own[name] for own in figures)) for name in names},
        findings=[text for run in runs for text in run.findings],
        error=error,
    )
