"""``rebalance-lab advise``: the changes to a strategy that help on one scenario, and what they cost."""

from collections.abc import Callable
from typing import Annotated, Literal

import typer
from rich.text import Text

from coordinator_core.errors import InputError, RebalanceLabError
from coordinator_core.registry.registry import default_registry
from rebalance_lab.cli.output import (
    ExitStatus,
    complain,
    give_up,
    print_document,
    print_table,
    stdout,
    text_width,
)
from rebalance_lab.cli.running import DEFAULT_TIMEOUT, TIMEOUT_HELP, StrategyRun, Task, run_all, run_one
from rebalance_lab.cli.scenarios import SCENARIO_HELP, SEED_HELP, opened_scenario, strategy_option
from rebalance_lab.scenarios.families import check_settings
from rebalance_lab.scenarios.scenario import Scenario
from rebalance_lab.traces.history import History
from rebalance_lab.traces.invariants import Invariants
from rebalance_lab.verdicts.advice import (
    Advice,
    Plan,
    as_document,
    legend,
    lines,
    plan_of,
    table,
)
from rebalance_lab.verdicts.changes import Change, facts_of
from rebalance_lab.verdicts.comparison_tables import hanging
from rebalance_lab.verdicts.dimensions import Trial
from rebalance_lab.verdicts.tables import json_text, text_tables
from rebalance_lab.verdicts.words import findings_of_seeds

DEFAULT_STRATEGY = "range"
_NARROW = 120
"""On terminals with fewer columns the settings of a change are below its strategy."""


class RunError(RebalanceLabError):
    """A run of a strategy failed. ``traceback`` is that of the exception in an author's code."""

    def __init__(self, strategy: str, run: StrategyRun) -> None:
        super().__init__(strategy, run)
        self.strategy, self.error, self.traceback = strategy, run.error, run.traceback

    def __str__(self) -> str:
        return f"strategy {self.strategy!r}: {self.error}"


def advise(
    scenario: Annotated[str, typer.Argument(metavar="SCENARIO", help=SCENARIO_HELP)],
    strategies: Annotated[
        list[str] | None,
        strategy_option(
            "The strategy that the group uses now: an assignor, with +options and +modifiers;"
            f" {DEFAULT_STRATEGY} when not given."
        ),
    ] = None,
    seeds: Annotated[
        int | None,
        typer.Option(min=1, metavar="N", help="Run N seeds; default: 10, or 6 if the runs are long."),
    ] = None,
    output: Annotated[
        Literal["text", "json"], typer.Option("--format", help="Sentences and a table, or JSON.")
    ] = "text",
    jobs: Annotated[
        int | None,
        typer.Option("--jobs", "-j", min=1, help="The number of processes; default: as for `compare`."),
    ] = None,
    seed: Annotated[int | None, typer.Option(min=0, help=SEED_HELP)] = None,
    timeout: Annotated[float, typer.Option(min=0, metavar="SECONDS", help=TIMEOUT_HELP)] = DEFAULT_TIMEOUT,
) -> None:
    """Try changes to a strategy and its settings on a scenario, and name those that help.

    Static members, cooperative and sticky assignors, session and heartbeat times, smaller batches, the time
    between polls, attempts to claim, delays and weights are tried where the run shows something that they act
    on. What a change costs is tried on a member that crashes, one that is closed for good, and one that
    freezes.
    """
    strategy, *others = strategies or [DEFAULT_STRATEGY]
    if others:
        raise InputError("--strategy", f"{1 + len(others)} strategies", "one: the strategy of the group now")
    opened = opened_scenario(scenario, seed)
    try:
        advice = advice_on(opened, strategy, seeds=seeds, jobs=jobs, timeout=timeout)
    except RunError as error:
        give_up(error, ExitStatus.SOME_INPUTS_FAILED, traceback=error.traceback)
    if output == "json":
        print_document(json_text(as_document(advice)))
    else:
        _print(advice)
    failed = [trial for trial in advice.trials if trial.error]
    for trial in failed:
        complain(f"{trial.change.label}: {trial.error}")
    if failed:
        raise typer.Exit(int(ExitStatus.SOME_INPUTS_FAILED))


def advice_on(
    scenario: Scenario,
    strategy: str,
    *,
    seeds: int | None = None,
    jobs: int | None = None,
    timeout: float = DEFAULT_TIMEOUT,
    progress: Callable[[float], None] | None = None,
) -> Advice:
    """Run a strategy and changes to it on a scenario, and return the advice.

    ``jobs``, ``timeout``, ``progress``: see `run_all`.

    Raises:
        InputError: if the strategy is unknown, or does not read a setting of the scenario.
        RunError: if a run of the strategy itself fails.
    """
    registry = default_registry()
    registry.strategy(strategy)
    check_settings(scenario.config, [strategy], f"scenario {scenario.name!r}: config", registry)
    first = run_one(scenario, strategy, timeout=timeout, watch=Invariants())
    if first.trace is None:
        raise RunError(strategy, first)
    facts = facts_of(scenario, History(first.trace, registry))
    plan = plan_of(scenario, strategy, facts, registry, seeds)
    tasks = [Task(each, change.strategy) for change in plan.changes for each in plan.scenarios(change)]
    runs = run_all(tasks, jobs=jobs, timeout=timeout, progress=progress)
    count = len(tasks) // len(plan.changes)
    now, *trials = (
        _trial(plan, change, runs[number * count : (number + 1) * count])
        for number, change in enumerate(plan.changes)
    )
    if now.error:
        raise RunError(strategy, next(run for run in runs if run.error))
    return Advice(scenario.name, plan.seeds, facts, now, trials)


def _trial(plan: Plan, change: Change, runs: list[StrategyRun]) -> Trial:
    error = next((run.error for run in runs if run.error), "")
    findings = findings_of_seeds({seed: run.findings for seed, run in zip(plan.seeds, runs, strict=False)})
    figures = [run.figures for run in runs if run.figures is not None]
    return plan.trial(change, [] if error else figures, findings, error)


def _print(advice: Advice) -> None:
    console = stdout()
    width = text_width(console)
    first, count = advice.seeds[0], len(advice.seeds)
    seeds = f"seed {first}" if count == 1 else f"seeds {first} to {first + count - 1}"
    changes = f"{len(advice.trials)} change{'s' * (len(advice.trials) != 1)} tried"
    console.print(Text.assemble((advice.scenario, "bold"), f", {seeds}, {changes}"))
    for line in lines(advice):
        is_item = line.startswith(" ")
        text = Text(hanging(line, width, "    " if is_item else "  "))
        if not is_item and ":" in line:
            text.stylize("bold", 0, text.plain.index(":"))
        console.print(text)
    console.print()
    head, rows = table(advice, narrow=console.width < _NARROW)
    for number, part in enumerate(text_tables(head, rows, console.width, 2)):
        if number:
            console.print()
        print_table(part, console)
    console.print()
    for line in legend(advice):
        console.print(Text(hanging(line, width), "dim"))
