"""``rebalance-lab advise``: the changes to a strategy that help on one scenario, and what they cost."""

from collections.abc import Callable
from dataclasses import replace
from typing import Annotated, Literal

import typer

from coordinator_core.errors import RebalanceLabError
from coordinator_core.registry.registry import default_registry
from rebalance_lab.cli import options
from rebalance_lab.cli.compare import print_screen
from rebalance_lab.cli.output import ExitStatus, complain, give_up, print_document
from rebalance_lab.cli.running import Task, run_grid, run_one
from rebalance_lab.cli.trials import Trials
from rebalance_lab.scenarios.scenario import Scenario
from rebalance_lab.traces.history import History
from rebalance_lab.traces.invariants import Invariants
from rebalance_lab.verdicts.advice import advised, choice_among_changes, plan_of
from rebalance_lab.verdicts.changes import facts_of
from rebalance_lab.verdicts.runs import Run, loads_of
from rebalance_lab.verdicts.screen import Screen
from rebalance_lab.verdicts.screen_formats import as_document
from rebalance_lab.verdicts.tables import json_text

DEFAULT_STRATEGY = "range"


class RunError(RebalanceLabError):
    """A run of a strategy failed. ``traceback`` is that of the exception in an author's code."""

    def __init__(self, strategy: str, run: Run) -> None:
        super().__init__(strategy, run)
        self.strategy, self.error, self.traceback = strategy, run.error, run.traceback

    def __str__(self) -> str:
        return f"strategy {self.strategy!r}: {self.error}"


def advise(
    scenario: options.ScenarioArgument,
    strategies: Annotated[
        list[str] | None,
        options.strategy_option(
            "The strategy that the group uses now: an assignor, with +options and +modifiers;"
            f" {DEFAULT_STRATEGY} when not given."
        ),
    ] = None,
    seeds: Annotated[
        int | None,
        options.seeds_option("Run N seeds; default: 12, or as few as a choice needs if the runs are long."),
    ] = None,
    everything: Annotated[bool, typer.Option("--all", help="Show all changes that were tried.")] = False,
    spread: Annotated[
        bool, typer.Option("--spread", help="Show the least and the greatest figure of the seeds.")
    ] = False,
    output: Annotated[
        Literal["text", "json"], typer.Option("--format", help="Lines and a table, or JSON.")
    ] = "text",
    jobs: Annotated[int | None, options.jobs_option("as for `compare`")] = None,
    seed: options.SeedOption = None,
    timeout: options.TimeoutOption = options.DEFAULT_TIMEOUT,
) -> None:
    """Try changes to a strategy and its settings on a scenario, and name those that help.

    Static members, cooperative and sticky assignors, session and heartbeat times, smaller batches, the time
    between polls, attempts to claim, delays and weights are tried where the run shows something that they act
    on. What a change costs is tried on a member that crashes, one that is closed for good, and one that
    freezes.
    """
    opened = options.opened_scenario(scenario, seed)
    default = opened.words.strategy or DEFAULT_STRATEGY
    strategy = options.only_strategy(strategies, default, "one: the strategy of the group now")
    options.tell_idle(opened, [strategy])
    try:
        screen = advice_on(opened, strategy, seeds=seeds, jobs=jobs, timeout=timeout)
    except RunError as error:
        give_up(error, ExitStatus.SOME_INPUTS_FAILED, traceback=error.traceback)
    if output == "json":
        print_document(json_text(as_document(screen)))
    else:
        print_screen(screen if not everything else replace(screen, rows=()), spread=spread)
    failed = [setup for setup in screen.grid.setups if setup.error]
    for setup in failed:
        complain(f"{setup.label()}: {setup.error}")
    if failed:
        raise typer.Exit(int(ExitStatus.SOME_INPUTS_FAILED))


def advice_on(
    scenario: Scenario,
    strategy: str,
    *,
    seeds: int | None = None,
    jobs: int | None = None,
    timeout: float = options.DEFAULT_TIMEOUT,
    progress: Callable[[float], None] | None = None,
) -> Screen:
    """Run a strategy and changes to it on a scenario, and return the advice.

    ``jobs``, ``timeout``, ``progress``: see `run_all`.

    Raises:
        InputError: if the strategy is unknown.
        RunError: if a run of the strategy itself fails.
    """
    registry = default_registry()
    registry.strategy(strategy)
    first = run_one(scenario, strategy, timeout=timeout, watch=Invariants())
    if first.trace is None:
        raise RunError(strategy, first)
    facts = facts_of(scenario, History(first.trace, registry))
    plan = plan_of(scenario, strategy, facts, registry, seeds)
    rows = [[Task(each, change.strategy) for each in plan.scenarios(change)] for change in plan.changes]
    runs = run_grid(rows, jobs=jobs, timeout=timeout, progress=progress)
    grid = plan.grid(runs)
    if grid.setups[0].error:
        raise RunError(strategy, next(run for run in runs[0] if run.error))
    load = loads_of(runs[0][: len(plan.seeds)])
    choice = choice_among_changes(grid)
    change = plan.changes[choice.chosen]
    enough = Trials(change.of(scenario, registry), change.strategy, jobs, timeout).enough(grid, load)
    return advised(plan, grid, choice, list(registry.metrics().values()), load, enough)
