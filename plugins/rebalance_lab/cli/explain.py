"""``rebalance-lab explain``: why strategies differ on one scenario, in sentences."""

from typing import Annotated, Literal

import typer
from rich.text import Text

from coordinator_core.registry.registry import default_registry
from rebalance_lab.cli import options
from rebalance_lab.cli.output import ExitStatus, complain, print_document, print_hanging, stdout
from rebalance_lab.cli.running import run_one
from rebalance_lab.traces.invariants import Invariants
from rebalance_lab.verdicts.explaining import Explanation, as_document
from rebalance_lab.verdicts.explaining import explain as explained
from rebalance_lab.verdicts.tables import json_text

DEFAULT_STRATEGIES = ("range", "cooperative-sticky")


def explain(
    scenario: options.ScenarioArgument,
    strategies: Annotated[
        list[str] | None,
        options.strategy_option(
            "A strategy: an assignor, with +options and +modifiers. Give it several times; "
            f"{' and '.join(DEFAULT_STRATEGIES)} when not given."
        ),
    ] = None,
    output: Annotated[
        Literal["text", "json"], typer.Option("--format", help="Sentences, or sentences and figures as JSON.")
    ] = "text",
    seed: options.SeedOption = None,
    timeout: options.TimeoutOption = options.DEFAULT_TIMEOUT,
) -> None:
    """Run strategies on a scenario and explain why their costs differ.

    The sentences are computed from one run of each strategy: where the stopped time went, the members that
    rounds waited for, and the moves that were avoidable. `compare` has the figures over several seeds.
    """
    registry = default_registry()
    opened = options.opened_scenario(scenario, seed)
    chosen = list(dict.fromkeys(strategies or options.own_strategy(opened, DEFAULT_STRATEGIES)))
    for name in chosen:
        registry.strategy(name)
    options.tell_idle(opened, chosen)
    traces, failed = [], False
    for name in chosen:
        run = run_one(opened, name, timeout=timeout, watch=Invariants())
        if run.trace is None:
            failed = True
            complain(f"strategy {name!r}: {run.error}", traceback=run.traceback)
        else:
            traces.append(run.trace)
    if traces:
        explanation = explained(traces, registry)
        failed = failed or any(account.findings for account in explanation.accounts)
        if output == "json":
            print_document(json_text(as_document(explanation)))
        else:
            _print(explanation, opened.seed)
    if failed:
        raise typer.Exit(int(ExitStatus.SOME_INPUTS_FAILED))


def _print(explanation: Explanation, seed: int) -> None:
    console = stdout()
    console.print(Text.assemble((explanation.scenario, "bold"), f", seed {seed}"))
    for sentence in explanation.differences:
        print_hanging(sentence, console)
    for label, (costs, *reasons) in explanation.sentences.items():
        console.print(Text.assemble("\n", (label, "bold"), f": {costs}"))
        for reason in reasons:
            print_hanging(f"  {reason}", console, "    ")
