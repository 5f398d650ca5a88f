"""Runs of remedies for the candidates of a comparison."""

from collections.abc import Mapping, Sequence
from dataclasses import replace

from coordinator_core.registry.registry import default_registry
from rebalance_lab.cli.running import Task, run_grid, run_one
from rebalance_lab.scenarios.scenario import Scenario
from rebalance_lab.traces.history import History
from rebalance_lab.traces.invariants import Invariants
from rebalance_lab.verdicts.changes import Change, facts_of
from rebalance_lab.verdicts.comparison import Comparison
from rebalance_lab.verdicts.grid import Candidate, candidate_of, trial_of
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
        known, unknown = _known(changes, comparison, compared, scenarios[0].config)
        rows = [
            [Task(change.of(scenario, registry), change.strategy) for scenario in scenarios]
            for change in unknown
        ]
        runs = run_grid(rows, jobs=jobs, timeout=timeout)
        trials = [
            trial_of(change, candidate_of(change.strategy, dict(zip(comparison.seeds, own, strict=True))))
            for change, own in zip(unknown, runs, strict=True)
        ]
        others = len(scenarios[0].members) > 1
        tried[comparison.label(candidate)] = [
            remedy(candidate, trial, has_others=others) for trial in (*known, *trials) if not trial.error
        ]
    return replace(comparison, remedies=tried)


def _known(
    changes: Sequence[Change],
    comparison: Comparison,
    compared: Sequence[tuple[str, Sequence[Scenario]]],
    config: Mapping[str, object],
) -> tuple[list[Candidate], list[Change]]:
    """Return the trials of changes that are candidates of the comparison, and the other changes."""
    found = {
        strategy: candidate
        for candidate, (strategy, scenarios) in zip(comparison.candidates, compared, strict=True)
        if scenarios[0].config == config
    }
    same = [change for change in changes if not change.settings and change.strategy in found]
    known = [trial_of(change, found[change.strategy]) for change in same]
    return known, [change for change in changes if change not in same]
